#!/usr/bin/env python3
"""Sotto beside pywhispercpp (whisper.cpp): the same ggml file, the same audio, one run, alternating.

    script/bootstrap --peers
    .venv/bin/python bench/peers.py [--model models/base] [--types f16,q8_0,q5_0] [--threads 1,2] [--runs 5] [--audio FILE] [--sotto PATH]

Prints one table: encoder window, decoder step and whole file, each as the median in ms and as the ratio peer / Sotto (above
1: Sotto is faster), with the ratio of the best runs beside it, which other work on the machine disturbs least; and the memory
of caches and compute buffers of both. Sotto's steps come after a full prompt, so they see ten times more text than the
peer's. The ggml files are made with `sotto convert`.
"""

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import wave

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DECODER_STEPS = 32
PROMPT = (50258, 50259, 50359)


def read_wav(path):
    with wave.open(path) as w:
        assert w.getframerate() == 16000 and w.getnchannels() == 1 and w.getsampwidth() == 2, path
        return np.frombuffer(w.readframes(w.getnframes()), np.int16).astype(np.float32) / 32768


@contextlib.contextmanager
def native_stderr(path):
    """What the peer's C code writes to file descriptor 2 goes to a file: it logs its buffer sizes there."""
    sys.stderr.flush()
    old = os.dup(2)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(fd, 2)
    os.close(fd)
    try:
        yield
    finally:
        os.dup2(old, 2)
        os.close(old)


class Peer:
    def __init__(self, model, threads):
        import _pywhispercpp as w

        self.w, self.threads = w, threads
        log = tempfile.mktemp()
        with native_stderr(log):
            self.ctx = w.whisper_init_from_file_with_params(model, w.whisper_context_default_params())
        sizes = re.findall(r"(kv self size|kv cross size|kv pad +size|compute buffer \((\w+)\)) *= +([\d.]+) MB", open(log).read())
        os.remove(log)
        self.memory_mb = sum(float(s[2]) for s in sizes)

    def encoder_ms(self, pcm):
        self.w.whisper_pcm_to_mel(self.ctx, pcm, len(pcm), self.threads)
        start = time.perf_counter()
        assert self.w.whisper_encode(self.ctx, 0, self.threads) == 0
        return (time.perf_counter() - start) * 1e3

    def decoder_ms(self):
        # the binding takes one token a call
        for i, token in enumerate(PROMPT):
            self.w.whisper_decode(self.ctx, token, 1, i, self.threads)
        start = time.perf_counter()
        for i in range(DECODER_STEPS):
            self.w.whisper_decode(self.ctx, 400 + i, 1, len(PROMPT) + i, self.threads)
        return (time.perf_counter() - start) * 1e3 / DECODER_STEPS

    def file_ms(self, pcm, beam):
        w = self.w
        p = w.whisper_full_default_params(
            w.whisper_sampling_strategy.WHISPER_SAMPLING_BEAM_SEARCH if beam > 1 else w.whisper_sampling_strategy.WHISPER_SAMPLING_GREEDY)
        p.n_threads, p.print_progress, p.print_realtime, p.print_timestamps = self.threads, False, False, False
        p.language = "en"
        if beam > 1:
            p.beam_search = {"beam_size": beam, "patience": -1.0}
        start = time.perf_counter()
        assert w.whisper_full(self.ctx, p, pcm, len(pcm)) == 0
        return (time.perf_counter() - start) * 1e3


def sotto_bench(sotto, model, threads):
    out = subprocess.run([sotto, "bench", "-m", model, "-t", str(threads), "--runs", "1", "--json"], check=True, capture_output=True)
    return json.loads(out.stdout)


def sotto_file(sotto, model, threads, audio, beam):
    """ms of transcription alone (`sotto bench` measures the model's loading), and MB of caches and compute buffers."""
    out = subprocess.run([sotto, "transcribe", "-m", model, "-t", str(threads), "-l", "en", "--beam-size", str(beam), "--temperature-inc", "0.2",
                          "-f", "json-full", "--quiet", audio], check=True, capture_output=True)
    document = json.loads(out.stdout)
    return document["timings"]["total_s"] * 1e3, sum(mb for name, mb in document["memory_mb"].items() if name != "weights")


def compare(sotto, model, dtype, threads, runs, audio, beam):
    pcm = read_wav(audio)
    peer = Peer(model, threads)
    rows = {"encoder window": ([], []), "decoder step": ([], []), f"file, beam {beam}": ([], [])}
    memory = 0
    for _ in range(runs):
        b = sotto_bench(sotto, model, threads)
        total_ms, memory = sotto_file(sotto, model, threads, audio, beam)
        with native_stderr(os.devnull):
            peer_values = (peer.encoder_ms(pcm), peer.decoder_ms(), peer.file_ms(pcm, beam))
        for (ours, theirs), mine, other in zip(rows.values(), (b["encoder_ms"], b["decoder_ms"], total_ms), peer_values):
            ours.append(mine)
            theirs.append(other)
    for name, (ours, theirs) in rows.items():
        a, b = statistics.median(ours), statistics.median(theirs)
        print(f"| {dtype} | {threads} | {name} | {a:.1f} ms | {b:.1f} ms | {b / a:.2f} | {min(theirs) / min(ours):.2f} |", flush=True)
    print(f"| {dtype} | {threads} | caches and compute | {memory:.0f} MB | {peer.memory_mb:.0f} MB | {peer.memory_mb / memory:.2f} | |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=os.path.join(ROOT, "models", "base"))
    parser.add_argument("--sotto", default=os.path.join(ROOT, "build", "sotto"), help="the command to measure")
    parser.add_argument("--types", default="f16,q8_0,q5_0")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--audio", default=os.path.join(ROOT, "models", "samples", "librivox", "sense_and_sensibility_01_austen_64kb-0870.wav"))
    args = parser.parse_args()
    print("| weights | threads | what | sotto | pywhispercpp | ratio | ratio of best |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for dtype in args.types.split(","):
            model = os.path.join(folder, f"model-{dtype}.bin")
            subprocess.run([args.sotto, "convert", args.model, model, "--type", dtype, "--quiet"], check=True)
            for threads in args.threads.split(","):
                compare(args.sotto, model, dtype, int(threads), args.runs, args.audio, args.beam)


if __name__ == "__main__":
    main()
