#!/usr/bin/env python3
"""What llama.cpp writes after ten prompts, for tests/golden/test_llama_text.c.

    LD_LIBRARY_PATH=FOLDER python3 tools/make_llama_text_golden.py FOLDER-of-libllama.so model.gguf out.json [NUMBER-OF-PROMPTS]

For each prompt: its ids, the 64 likeliest ids after it one by one, and at each place the log-probability of that id, the id
that came second and its log-probability.
"""
import json
import math
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare_llama  # noqa: E402


def steps_of(ids, rows):
    steps = []
    for token, row in zip(ids, rows):
        best = row[token]
        total = math.log(sum(math.exp(x - best) for x in row if x > best - 20))
        row[token] = float("-inf")
        other = max(row)
        steps.append([token, round(-total, 4), row.index(other), round(other - best - total, 4)])
    return steps


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    folder, path, out = sys.argv[1:4]
    prompts = compare_llama.PROMPTS[:int(sys.argv[4]) if len(sys.argv) == 5 else None]
    llama = compare_llama.Llama(folder, path, 1)
    texts = []
    for prompt in prompts:
        ids, rows = llama.greedy(prompt, compare_llama.N_TEXT)
        texts.append({"prompt": prompt, "ids": llama.tokenize(prompt), "steps": steps_of(ids, rows)})
        with open(out, "w", encoding="utf-8") as f:
            f.write('{"file": %s, "texts": [\n' % json.dumps(os.path.basename(path)))
            f.write(",\n".join(json.dumps(t, separators=(",", ":")) for t in texts) + "\n]}\n")
        print(prompt, len(ids), flush=True)
    os._exit(0)  # the library's own ends are of no interest


if __name__ == "__main__":
    main()
