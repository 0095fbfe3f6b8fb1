#!/usr/bin/env python3
"""How long a user waits for the first words: start.py --sotto PROGRAM [--model base] [--runs 7] [--compute int8,bf16]. JSON.

A clip of 11 s (of `sotto get sample`, with silence behind) is transcribed by a process of its own, which starts, opens the model and
computes; and six times by one process. What each further clip takes is the pure computing. Runs alternate, medians are told.
"""

import argparse
import json
import os
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
    start = time.perf_counter()
    subprocess.run([sotto, "transcribe", "-m", model, "--compute", compute] + [clip] * count, check=True, capture_output=True)
    return time.perf_counter() - start


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
            first, all_of_them = (statistics.median(column) for column in zip(*runs))
            further = (all_of_them - first) / MORE
            rows.append({"compute": compute, "first_s": first, "further_s": further, "of_allowed": first / (1.15 * further + 0.1)})
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
