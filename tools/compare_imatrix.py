#!/usr/bin/env python3
"""Compares two importance matrices in GGUF, as sotto imatrix and llama-imatrix write them, tensor by tensor. Needs no package.

    FOLDER/llama-quantize --allow-requantize model.gguf exact.gguf F32     (so that no activation is rounded)
    FOLDER/llama-imatrix -m exact.gguf -f text.txt -c 512 --chunks 4 -fa off -ctk f32 -ctv f32 --no-repack -o theirs.gguf
    build/sotto imatrix -m exact.gguf -f text.txt -c 512 --chunks 4 --compute f32 -ctk f32 -ctv f32 -o ours.gguf
    python3 tools/compare_imatrix.py ours.gguf theirs.gguf [BOUND]

For each tensor the difference of the sums of squares, as a norm over all columns and at the worst column, in parts of the second
file's; both divided by their counts first. Exit code 1 when tensors differ or a norm is above BOUND (1e-4).
"""
import array
import math
import mmap
import struct
import sys

SIZES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Reader:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        self.at = 0

    def number(self, kind):
        value = struct.unpack_from("<" + kind, self.data, self.at)[0]
        self.at += struct.calcsize("<" + kind)
        return value

    def text(self):
        n = self.number("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            inner, n = self.number("I"), self.number("Q")
            return [self.value(inner) for _ in range(n)]
        return self.number(SIZES[kind])


def read(path):
    """{name: [numbers]} of a GGUF file whose tensors are f32."""
    r = Reader(path)
    if r.data[:4] != b"GGUF":
        sys.exit("%s is no GGUF file" % path)
    r.at = 8
    n_tensors, n_keys = r.number("Q"), r.number("Q")
    meta = {}
    for _ in range(n_keys):
        key = r.text()
        meta[key] = r.value(r.number("I"))
    places = []
    for _ in range(n_tensors):
        name = r.text()
        dims = [r.number("Q") for _ in range(r.number("I"))]
        kind, offset = r.number("I"), r.number("Q")
        if kind != 0:
            sys.exit("%s: %s is not f32" % (path, name))
        places.append((name, math.prod(dims), offset))
    alignment = meta.get("general.alignment", 32)
    base = (r.at + alignment - 1) // alignment * alignment
    return {name: array.array("f", r.data[base + offset:base + offset + 4 * n]) for name, n, offset in places}


def means(path):
    tensors = read(path)
    out = {}
    for name, sums in tensors.items():
        if not name.endswith(".in_sum2"):
            continue
        counts = tensors[name[:-len("in_sum2")] + "counts"]
        width = len(sums) // len(counts)
        out[name[:-len(".in_sum2")]] = [x / max(counts[i // width], 1) for i, x in enumerate(sums)]
    return out


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    bound = float(sys.argv[3]) if len(sys.argv) == 4 else 1e-4
    ours, theirs = means(sys.argv[1]), means(sys.argv[2])
    for name in sorted(set(ours) ^ set(theirs)):
        print("%s: only in %s" % (name, sys.argv[1] if name in ours else sys.argv[2]))
    worst = []
    for name in sorted(set(ours) & set(theirs)):
        a, b = ours[name], theirs[name]
        if len(a) != len(b):
            sys.exit("%s: %d and %d columns" % (name, len(a), len(b)))
        norm = math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b))
        column = max(abs(x - y) / abs(y) for x, y in zip(a, b) if y)
        worst.append((norm, column, name))
        print("%-28s %.1e, worst column %.1e" % (name, norm, column))
    print("%d tensors: %.1e at most, %.1e in the middle; worst column %.1e" %
          (len(worst), max(w[0] for w in worst), sorted(w[0] for w in worst)[len(worst) // 2], max(w[1] for w in worst)))
    return 0 if set(ours) == set(theirs) and max(w[0] for w in worst) <= bound else 1


if __name__ == "__main__":
    sys.exit(main())
