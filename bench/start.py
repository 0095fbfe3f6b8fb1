#!/usr/bin/env python3
"""How long a user waits for the first words: start.py --sotto PROGRAM [--model base] [--runs 7] [--compute int8,bf16]. JSON.

A clip of 11 s (of `sotto get sample`, with silence behind) is transcribed by a process of its own, which starts, opens the model and
computes; and six times by one process. What each further clip takes is the pure computing. Of the first process also what it tells
itself: opening the model and hearing the clip, without the rest of its life. Runs alternate, medians are told.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
import time
import wave

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SECONDS, MORE = 11, 5


def compose(path):
    folder = os.path.join(ROOT, "models", "samples", "librivox")
    frames = b""
    for name in sorted(n for n in os.listdir(folder) if n.endswith(".wav"))[:2]:
        with wave.open(os.path.join(folder, name)) as w:
            rate, frames = w.getframerate(), frames + w.readframes(w.getnframes())
    with wave.open(path, "wb") as w:
        w.setparams((1, 2, rate, 0, "NONE", ""))
        w.writeframes(frames[:2 * SECONDS * rate].ljust(2 * SECONDS * rate, b"\0"))


def seconds(sotto, model, compute, clip, count):
    """(of the process, of opening and the first clip)"""
    start = time.perf_counter()
    done = subprocess.run([sotto, "transcribe", "-m", model, "--compute", compute, "--timings"] + [clip] * count, check=True, capture_output=True, text=True)
    whole = time.perf_counter() - start
    return whole, sum(float(x) for x in re.search(r"load ([\d.]+) s,.* total ([\d.]+) s", done.stderr).groups())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sotto", required=True)
    parser.add_argument("--model", default=os.path.join(ROOT, "models", "base"))
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--compute", default="int8,bf16,f32")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        clip = os.path.join(folder, "clip.wav")
        compose(clip)
        for compute in args.compute.split(","):
            runs = [(seconds(args.sotto, args.model, compute, clip, 1), seconds(args.sotto, args.model, compute, clip, 1 + MORE)) for _ in range(args.runs)]
            first, opened = (statistics.median(one[i] for one, _ in runs) for i in range(2))
            further = (statistics.median(six[0] for _, six in runs) - first) / MORE
            rows.append({"compute": compute, "first_s": first, "opened_s": opened, "further_s": further, "of_allowed": opened / (1.15 * further + 0.1)})
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
