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


def sotto(executable, recover, options):
    command = [executable, "transcribe", "-l", "en", "-q", "-nt", "--recover-missed", recover, *options]
    return lambda path: subprocess.run([*command, path], check=True, stdout=subprocess.PIPE, text=True).stdout


def faster_whisper(options):
    import faster_whisper

    known = argparse.ArgumentParser()
    known.add_argument("-m", "--model")
    known.add_argument("-bs", "--beam-size", type=int, default=5)
    known.add_argument("-t", "--threads", type=int, default=0)
    given, _ = known.parse_known_args(options)
    model = faster_whisper.WhisperModel(given.model, device="cpu", compute_type="int8", cpu_threads=given.threads)
    return lambda path: " ".join(s.text for s in model.transcribe(path, language="en", beam_size=given.beam_size)[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sotto")
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--peer", action="store_true")
    args, options = parser.parse_known_args()
    normal = speech.normaliser()
    programs = {"passages left out": sotto(args.sotto, "false", options), "heard again": sotto(args.sotto, "true", options)}
    if args.peer:
        programs["faster-whisper"] = faster_whisper(options)
    total = {name: 0 for name in programs}
    seconds = dict(total)
    words = 0
    print("| order | words |" + "".join(f" {name} |" for name in programs) + "\n" + "|---" * (2 + len(programs)) + "|")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "order.wav")
        for seed in range(args.orders):
            pcm, text, _ = speech.compose(ROOT, seed=seed)
            speech.write_wav(path, pcm)
            row = []
            for name, transcribe in programs.items():
                began = time.monotonic()
                out = transcribe(path)
                seconds[name] += time.monotonic() - began
                errors, count = speech.word_errors(text, out, normal)
                total[name] += errors
                row.append(errors)
            words += count
            print(f"| {seed} | {count} |" + "".join(f" {errors} |" for errors in row), flush=True)
    print(f"| all | {words} |" + "".join(f" {errors} |" for errors in total.values()))
    print("| s | |" + "".join(f" {s:.1f} |" for s in seconds.values()))


if __name__ == "__main__":
    main()
