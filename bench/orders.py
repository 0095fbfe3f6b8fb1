"""Words lost where a window's text leaves out what is spoken in it, with and without --recover-missed.

usage: bench/orders.py SOTTO -m MODEL [--orders N] [--beam-size N] [other options of sotto transcribe]
Recordings of five minutes, the same clips in N seeded orders (bench/speech.py): which clip follows which decides where the
model skips. Prints word errors a row, and the time of both runs.
"""

import argparse
import os
import subprocess
import tempfile
import time

import speech

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sotto")
    parser.add_argument("--orders", type=int, default=10)
    args, options = parser.parse_known_args()
    normal = speech.normaliser()
    total = {"false": [0, 0.0], "true": [0, 0.0]}
    words = 0
    print("| order | words | errors, passages left out | errors, heard again |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "order.wav")
        for seed in range(args.orders):
            pcm, text, _ = speech.compose(ROOT, seed=seed)
            speech.write_wav(path, pcm)
            row = []
            for recover in total:
                command = [args.sotto, "transcribe", "-l", "en", "-q", "-nt", "--recover-missed", recover, *options, path]
                began = time.monotonic()
                out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                total[recover][1] += time.monotonic() - began
                errors, count = speech.word_errors(text, out, normal)
                total[recover][0] += errors
                row.append(errors)
            words += count
            print(f"| {seed} | {count} | {row[0]} | {row[1]} |", flush=True)
    print(f"| all | {words} | {total['false'][0]} | {total['true'][0]} |")
    print(f"\n{total['false'][1]:.1f} s and {total['true'][1]:.1f} s")


if __name__ == "__main__":
    main()
