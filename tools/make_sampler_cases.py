#!/usr/bin/env python3
"""Writes tests/unit/data/sampler.json: tokens that a plain restatement of the sampling chain draws, for test_sampler.c.

    make_sampler_cases.py > tests/unit/data/sampler.json

Standard library only. Logits are made from the same random numbers as in the test: entry = float32(24 u - 12), which are
far enough from ties. Definitions: llama.cpp's samplers; mirostat 2 as in the paper of S. Basu et al., 2021."""

import json
import math
import struct

MASK = (1 << 64) - 1
N_VOCAB, STEPS = 300, 60


class Rng:
    """xoshiro256** started by splitmix64."""

    def __init__(self, seed):
        self.s = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & MASK
            z = seed
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            self.s.append(z ^ (z >> 31))

    def uniform(self):
        s = self.s
        rotl = lambda x, k: ((x << k) | (x >> (64 - k))) & MASK
        result = rotl(s[1] * 5 & MASK, 7) * 9 & MASK
        t = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        return (result >> 11) * 2.0**-53


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


DEFAULT = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "typical_p": 1.0, "penalty_last": 64,
           "repeat_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0, "mirostat": 0, "mirostat_tau": 5.0,
           "mirostat_eta": 0.1, "bias": [], "scale": 1.0}


def probabilities(candidates, temperature=1.0):
    top = max(x for _, x in candidates)
    weights = [math.exp((x - top) / temperature) for _, x in candidates]
    total = sum(weights)
    return [w / total for w in weights]


def draw(candidates, p, u):
    left = u
    for (token, _), q in zip(candidates, p):
        left -= q
        if left < 0:
            break
    return token, q


def likeliest_first(candidates):
    return sorted(candidates, key=lambda c: (-c[1], c[0]))


def truncate(candidates, o):
    if 0 < o["top_k"]:
        candidates = likeliest_first(candidates)[: o["top_k"]]
    if o["typical_p"] < 1:
        p = probabilities(candidates)
        entropy = -sum(q * math.log(q) for q in p if q > 0)
        order = sorted(range(len(p)), key=lambda i: (abs(-math.log(p[i]) - entropy), candidates[i][0]))
        kept, total = [], 0.0
        for i in order:
            kept.append(candidates[i])
            total += p[i]
            if total > o["typical_p"]:
                break
        candidates = kept
    if o["top_p"] < 1:
        candidates = likeliest_first(candidates)
        kept, total = [], 0.0
        for c, q in zip(candidates, probabilities(candidates)):
            kept.append(c)
            total += q
            if total >= o["top_p"]:
                break
        candidates = kept
    if o["min_p"] > 0:
        bar = max(x for _, x in candidates) + math.log(o["min_p"])
        candidates = [c for c in candidates if c[1] >= bar]
    return candidates


def run(options):
    o = dict(DEFAULT, **options)
    for key, value in o.items():  # as the C structure holds them
        if isinstance(value, float):
            o[key] = f32(value)
    rows, rng = Rng(o["row_seed"]), Rng(o["seed"])
    accepted, tokens, mu = [], [], 2 * o["mirostat_tau"]
    for _ in range(STEPS):
        x = [f32(f32(24 * rows.uniform() - 12) * o["scale"]) for _ in range(N_VOCAB)]
        for token, bias in o["bias"]:
            x[token] = f32(x[token] + bias) if bias is not None else -math.inf
        last = accepted if o["penalty_last"] < 0 else accepted[-o["penalty_last"] :] if o["penalty_last"] else []
        for token in set(last):
            v = f32(x[token] / o["repeat_penalty"]) if x[token] > 0 else f32(x[token] * o["repeat_penalty"])
            x[token] = f32(v - f32(f32(last.count(token) * o["frequency_penalty"]) + o["presence_penalty"]))
        candidates = [(t, v) for t, v in enumerate(x) if v != -math.inf]
        if o["temperature"] <= 0:
            token = likeliest_first(candidates)[0][0]
        elif o["mirostat"] == 2:
            hot = [(t, f32(v / o["temperature"])) for t, v in candidates]
            p = probabilities(hot)
            kept = [c for c, q in zip(hot, p) if -math.log2(q) <= mu] or likeliest_first(hot)[:1]
            token, q = draw(kept, probabilities(kept), rng.uniform())
            mu -= o["mirostat_eta"] * (-math.log2(q) - o["mirostat_tau"])
        else:
            kept = truncate(candidates, o)
            token, _ = draw(kept, probabilities(kept, o["temperature"]), rng.uniform())
        tokens.append(token)
        accepted.append(token)
    return dict(options, tokens=tokens, **({"mu": mu} if o["mirostat"] else {}))


CASES = [
    {"name": "greedy", "temperature": 0.0},
    {"name": "default"},
    {"name": "flat", "scale": 0.1, "temperature": 1.5},
    {"name": "top_k", "top_k": 3, "top_p": 1.0, "min_p": 0.0, "scale": 0.2},
    {"name": "top_k 290", "top_k": 290, "top_p": 1.0, "min_p": 0.0, "scale": 0.2},
    {"name": "top_p", "top_k": 0, "top_p": 0.7, "min_p": 0.0, "scale": 0.2, "temperature": 1.0},
    {"name": "top_p and min_p of all", "top_k": 0, "top_p": 0.9, "min_p": 0.02, "scale": 0.3, "temperature": 1.0},
    {"name": "min_p", "top_k": 0, "top_p": 1.0, "min_p": 0.2, "scale": 0.2, "temperature": 1.0},
    {"name": "typical", "top_k": 0, "top_p": 1.0, "min_p": 0.0, "typical_p": 0.5, "scale": 0.3, "temperature": 1.0},
    {"name": "typical of few", "top_k": 20, "top_p": 0.8, "min_p": 0.0, "typical_p": 0.6, "scale": 0.2, "temperature": 1.0},
    {"name": "typical, top_p and min_p of all", "top_k": 0, "top_p": 0.8, "min_p": 0.3, "typical_p": 0.7, "scale": 0.3},
    {"name": "repeat", "temperature": 0.0, "repeat_penalty": 1.3, "scale": 0.1},
    {"name": "repeat, all", "repeat_penalty": 1.5, "penalty_last": -1, "scale": 0.1, "top_k": 8},
    {"name": "frequency", "frequency_penalty": 0.7, "penalty_last": 10, "scale": 0.1, "top_k": 5},
    {"name": "presence", "presence_penalty": 0.5, "penalty_last": 30, "scale": 0.1, "top_k": 5},
    {"name": "negative penalties", "presence_penalty": -0.5, "frequency_penalty": -0.25, "scale": 0.1, "top_k": 5},
    {"name": "penalties off", "presence_penalty": 5.0, "penalty_last": 0, "scale": 0.1, "top_k": 5},
    {"name": "bias", "bias": [[5, 30.0], [6, 29.5], [7, None], [5, -0.5]], "scale": 0.5},
    {"name": "mirostat", "mirostat": 2, "scale": 0.3, "temperature": 1.0},
    {"name": "mirostat, eager", "mirostat": 2, "scale": 0.5, "temperature": 1.3, "mirostat_tau": 2.0, "mirostat_eta": 0.9},
    {"name": "mirostat, cold", "mirostat": 2, "scale": 0.2, "temperature": 0.5, "mirostat_tau": 0.2, "mirostat_eta": 1.0},
]


def main():
    out = [run(dict(case, row_seed=1000 + i, seed=77 * i)) for i, case in enumerate(CASES)]
    print("[" + ",\n".join(json.dumps(case) for case in out) + "]")


main()
