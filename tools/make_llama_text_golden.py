#!/usr/bin/env python3
"""What llama.cpp writes after ten prompts, for tests/golden/test_llama_text.c.

    export LD_LIBRARY_PATH=FOLDER
    FOLDER/llama-quantize --allow-requantize model.gguf exact.gguf F32
    python3 tools/make_llama_text_golden.py FOLDER-of-libllama.so model.gguf exact.gguf out.json

The second file has the first one's weights as f32, so that no activation is brought to 8 bits; caches are f32 and attention is
plain: that is the text of the weights as they are. For each prompt: its ids, the 64 likeliest ids after it one by one, and at
each place the log-probability of that id, the id that came second and its log-probability; last what llama.cpp makes of that id's
log-probability with the quantised file, as it comes: activations in 8 bits, caches in f16.
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
        total = math.log(sum(math.exp(x - best) for x in row if x > best - 30))
        row[token] = float("-inf")
        other = max(row)
        steps.append([token, round(-total, 5), row.index(other), round(other - best - total, 5)])
    return steps


def log_probability(row, token):
    best = max(row)
    return row[token] - best - math.log(sum(math.exp(x - best) for x in row if x > best - 30))


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    folder, path, exact_path, out = sys.argv[1:]
    exact = compare_llama.Llama(folder, exact_path, 1, exact=True)
    texts = []
    for prompt in compare_llama.PROMPTS:
        ids, rows = exact.greedy(prompt, compare_llama.N_TEXT)
        texts.append({"prompt": prompt, "ids": exact.tokenize(prompt), "steps": steps_of(ids, rows)})
        print(prompt, len(ids), flush=True)
    exact.close()
    llama = compare_llama.Llama(folder, path, 1)
    for text in texts:
        feed, at = text["ids"], 0
        for step in text["steps"]:
            step.append(round(log_probability(llama.logits(feed, at), step[0]), 5))
            at += len(feed)
            feed = [step[0]]
    with open(out, "w", encoding="utf-8") as f:
        f.write('{"file": %s, "texts": [\n' % json.dumps(os.path.basename(path)))
        f.write(",\n".join(json.dumps(t, separators=(",", ":")) for t in texts) + "\n]}\n")
    off = [abs(s[4] - s[1]) for t in texts for s in t["steps"]]
    print("the quantised file: log-probabilities off by %.4f on average, %.4f at most" % (sum(off) / len(off), max(off)), flush=True)
    os._exit(0)  # the library's own ends are of no interest


if __name__ == "__main__":
    main()
