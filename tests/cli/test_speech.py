#!/usr/bin/env python3
"""`sotto transcribe` and `sotto bench` with a real model; skipped when none was fetched.
Reported faults B02, B04, B05, B18, B23, B24, B27, B55."""
import json
import math
import os
import re
import signal
import struct
import subprocess
import sys
import time

import run_cli

LINE = r"^\[\d\d:\d\d:\d\d\.\d\d\d --> \d\d:\d\d:\d\d\.\d\d\d\]  \S"
TEXT = r"(?i)young man"


def wav(samples, rate=16000, size=None):
    data = b"".join(struct.pack("<h", s) for s in samples)
    size = len(data) if size is None else size
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, rate * 2, 2, 16) + \
        b"data" + struct.pack("<I", size) + data


def hear(c, *args, **more):
    return c.run("transcribe", "-m", c.model(), *args, **more)


def times_and_text(c):
    r = hear(c, c.sample(), "--timings", "--print-progress")
    c.equal(r.code, 0, "exit: " + r.err)
    c.match(r.out, LINE, "stdout")
    c.match(r.out, TEXT, "stdout")
    c.match(r.err, r"weights [\d.]+ MB, self cache [\d.]+ MB, cross cache [\d.]+ MB, compute: mel", "stderr")
    c.match(r.err, "transcribing: 100 %", "stderr")


def plain_and_quiet(c):
    r = hear(c, "--no-timestamps", "--quiet", c.sample())
    c.equal(r.code, 0, "exit: " + r.err)
    c.equal(r.err, "", "stderr with --quiet")
    c.match(r.out, r"\A\w[^\[\]]*young man\.?\n\Z", "stdout")


def standard_input(c):
    """A pipe with the size of the data unknown, and raw samples: the same text as the file."""
    with open(c.sample(), "rb") as f:
        data = f.read()
    at = data.index(b"data") + 4
    want = hear(c, "--no-timestamps", c.sample()).out
    c.match(want, TEXT, "stdout")
    for size in (0, 0xFFFFFFFF):
        r = hear(c, "--no-timestamps", "-", stdin=data[:at] + struct.pack("<I", size) + data[at + 4:])
        c.equal((r.code, r.out), (0, want), "from a pipe: " + r.err)
    r = hear(c, "--no-timestamps", "--raw", "s16le:16000:1", "-", stdin=data[at + 4:])
    c.equal((r.code, r.out), (0, want), "raw: " + r.err)


def every_format(c):
    r = hear(c, "-f", "all,lrc,csv".replace("all", "txt,vtt,srt,tsv,json"), "-o", "deep/out", c.sample())
    c.equal(r.code, 0, "exit: " + r.err)
    c.equal(r.out, "", "stdout with --output-dir")
    stem = os.path.basename(c.sample())[:-4]
    c.equal(sorted(os.listdir(c.path("deep/out"))), sorted(stem + e for e in (".txt", ".vtt", ".srt", ".tsv", ".json", ".lrc", ".csv")),
            "files")
    text = {e: c.read("deep/out/%s.%s" % (stem, e)).decode() for e in ("txt", "vtt", "srt", "tsv", "json", "lrc", "csv")}
    for e in text:
        c.match(text[e], TEXT, e)
    c.match(text["srt"], r"\A1\n00:00:00,\d\d\d --> 00:00:0\d,\d\d\d\n", "srt")
    c.match(text["vtt"], r"\AWEBVTT\n\n00:00\.\d\d\d --> 00:0\d\.\d\d\d\n", "vtt")
    c.match(text["csv"], "\\Astart,end,text\r\n0,\\d+,\" ", "csv")
    parsed = json.loads(text["json"])
    c.equal("".join(s["text"] for s in parsed["segments"]), parsed["text"], "joined segments")
    c.equal(parsed["language"], "en", "language")
    for s in parsed["segments"]:
        c.check(0 <= s["start"] <= s["end"] <= parsed["duration"] + 0.01, "times of %s" % s)


def json_full_on_stdout(c):
    full = json.loads(hear(c, "-f", "json-full", c.sample()).out)
    c.check(full["memory_mb"]["weights"] > 10 and full["timings"]["encode_s"] > 0, "memory and timings")
    for s in full["segments"]:
        c.equal([d["id"] for d in s["token_details"]], s["tokens"], "ids")
        c.check(all(0 <= d["p"] <= 1 for d in s["token_details"]), "probabilities")


def output_file(c):
    r = hear(c, "-osrt", "-of", "sub/name", "-o", ".", c.sample())
    c.equal(r.code, 1, "a folder that is not there: " + r.err)
    r = hear(c, "-osrt", "-of", "name", c.sample())
    c.equal(r.code, 0, "exit: " + r.err)
    c.match(c.read("name.srt").decode(), TEXT, "name.srt")


def failed_inputs(c):
    c.write("bad.wav", b"no music at all")
    c.write("film.mp4", b"\0\0\0\x18ftypisom" + b"\0" * 60)
    r = hear(c, "bad.wav", c.sample(), "missing.wav", "film.mp4", ".")
    c.equal(r.code, 1, "exit")
    c.match(r.out, TEXT, "stdout of the good input")
    for name in ("bad.wav", "missing.wav", "film.mp4"):
        c.match(r.err, "^sotto: %s: " % re.escape(name), "stderr")
    r = hear(c, "-o", "out", "bad.wav")
    c.equal((r.code, os.listdir(c.path("out"))), (1, []), "a failed input leaves no file")


def windows_of_time(c):
    for args, words in ((["-ot", "500000"], False), (["-ot", "2990"], False), (["-d", "1"], None), (["-ot", "100", "-d", "9000000"], True)):
        r = hear(c, *args, "-f", "json", c.sample())
        c.equal(r.code, 0, "%s: %s" % (args, r.err))
        segments = json.loads(r.out)["segments"]
        if words is not None:
            c.equal(bool(segments), words, "text with %s: %s" % (args, segments))
        for s in segments:
            c.check(s["end"] <= 3.0, "%s: %s" % (args, s))


def little_or_nothing_to_hear(c):
    for n in (0, 1, 5, 199, 200, 201, 1600):
        c.write("short.wav", wav([0] * n))
        r = hear(c, "short.wav")
        c.equal((r.code, r.out), (0, ""), "%d samples: %s" % (n, r.err))
    c.write("silence.wav", wav([0] * 16000 * 10))
    first, second = hear(c, "silence.wav"), hear(c, "silence.wav")
    c.equal((first.code, first.out), (0, second.out), "silence, heard twice")


def speech_only(c):
    """B49: silence gives no text, also before a recording with speech; times are those of the recording."""
    vad = ("--vad", "-vm", c.vad_model())
    with open(c.sample(), "rb") as f:
        data = f.read()
    speech = list(struct.unpack("<%dh" % ((len(data) - 44) // 2), data[44:]))
    c.write("silence.wav", wav([0] * 16000 * 40))
    c.write("late.wav", wav([0] * 16000 * 40 + speech))
    r = hear(c, *vad, "silence.wav")
    c.equal((r.code, r.out, r.err), (0, "", ""), "silence")
    r = hear(c, *vad, "-f", "json", "silence.wav")
    value = json.loads(r.out)
    c.equal((r.code, value["text"], value["segments"]), (0, "", []), "silence: " + r.err)
    r = hear(c, *vad, "silence.wav", "late.wav", "silence.wav")
    c.equal(r.code, 0, "exit: " + r.err)
    c.match(r.out, r"\A\[00:00:(39|40)\.\d+ --> 00:00:4[1-3].*young man", "stdout")
    with open(c.path("late.wav"), "rb") as f:
        c.equal(hear(c, *vad, "-", stdin=f.read()).out, r.out, "from a pipe")
    r = c.run("vad", "-vm", c.vad_model(), "-f", "json", "silence.wav", "late.wav")
    c.equal(r.code, 0, "exit: " + r.err)
    silence, late = (json.loads(line) for line in r.out.splitlines())
    c.equal(silence["speech"], [], "spans of silence")
    c.check(late["speech"] and all(40 <= s["start"] < s["end"] <= late["duration"] for s in late["speech"]), r.out)
    c.match(c.run("vad", "-vm", c.vad_model(), c.sample()).out, r"\A\[00:00:00\.\d+ --> 00:00:0[23]\.\d+\]\n\Z", "stdout")
    r = hear(c, "--vad", "-vm", c.model(), c.sample())
    c.equal(r.code, 1, "exit with another kind of model")
    c.match(r.err, "stft_conv.weight: missing", "stderr")


def full_disk(c):
    with open("/dev/full", "wb") as full:
        p = subprocess.run([c.sotto, "transcribe", "-m", c.model(), c.sample()], stdout=full, stderr=subprocess.PIPE, env=c.env)
    c.equal(p.returncode, 1, "exit")
    c.match(p.stderr.decode(), "standard output: No space", "stderr")


def interrupted(c):
    long = [int(8000 * math.sin(i / 9.0) * math.sin(i / 4000.0)) for i in range(16000 * 120)]
    c.write("long.wav", wav(long))
    p = c.start("transcribe", "-m", c.model(), "-o", "out", "long.wav")
    time.sleep(1.5)
    p.send_signal(signal.SIGINT)
    sent = time.time()
    p.communicate(timeout=60)
    c.equal(p.returncode, 130, "exit")
    c.check(time.time() - sent < 20, "it took %.1f s to stop" % (time.time() - sent))
    c.equal(os.listdir(c.path("out")), [], "files left")


def the_operations(c):
    r = hear(c, "--trace", "--beam-size", "1", "--best-of", "1", c.sample())
    c.equal(r.code, 0, "exit")
    c.match(r.err, r"^linear +\[\d+, \d+\] +f32 +\S+ +[\d.]+ ms", "stderr")


def the_graphs(c):
    r = c.run("transcribe", "-m", c.model(), "--trace", "dot")
    c.equal(r.code, 0, "exit: " + r.err)
    c.equal(len(re.findall(r"^digraph ", r.out, re.M)), 3, "graphs")
    c.equal(r.out.count("{"), r.out.count("}"), "braces")


def language(c):
    r = c.run("transcribe", "-m", c.base_model(), "--detect-language", c.sample())
    c.equal(r.code, 0, "exit: " + r.err)
    c.match(r.out, r"^en 0\.\d+ english\n", "stdout")
    r = hear(c, "-l", "de", c.sample())
    c.check(r.code in (0, 1, 2), "exit %d" % r.code)


def same_seed_same_text(c):
    args = ("-tp", "0.8", "--no-fallback", "--seed", "7", "--no-timestamps", c.sample())
    c.equal(hear(c, *args).out, hear(c, *args).out, "two runs")


def bench(c):
    r = c.run("bench", "-m", c.model(), "--runs", "1", "--rows", "5", "--json")
    c.equal(r.code, 0, "exit: " + r.err)
    values = json.loads(r.out)
    c.check("decoder_40_ms" not in values, "40 rows were not asked for")
    for key in ("encoder_ms", "decoder_ms", "decoder_5_ms", "prompt_ms", "load_ms", "peak_rss_mb"):
        c.check(values[key] > 0, "%s is %s" % (key, values[key]))
    c.check(values["threads"] > 0, "%s threads" % values["threads"])
    c.check(values["steps"] > 50, "only %d steps" % values["steps"])


CASES = [times_and_text, plain_and_quiet, standard_input, every_format, json_full_on_stdout, output_file, failed_inputs,
         windows_of_time, little_or_nothing_to_hear, speech_only, full_disk, interrupted, the_operations, the_graphs, language, same_seed_same_text, bench]

if __name__ == "__main__":
    sys.exit(run_cli.main([], CASES))
