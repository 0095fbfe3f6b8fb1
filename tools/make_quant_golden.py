#!/usr/bin/env python3
"""Makes tests/unit/data/quant_golden.bin with the numpy (de)quantisers of the PyPI package `gguf`.

    pip install gguf==0.19.0 numpy
    python3 tools/make_quant_golden.py tests/unit/data/quant_golden.bin

Little-endian: "SQG1", then records until the end: u8 kind (0 pack, 1 unpack), u8 type (GGUF's number), u32 number of
elements n, u32 number of bytes b, n floats, b bytes. Pack: the floats give the bytes. Unpack: the bytes give the floats.
"""
import struct
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T, quants

PACK = [T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0]
UNPACK_ONLY = {  # offsets of the f16 fields
    T.Q2_K: [80, 82],
    T.Q3_K: [108],
    T.Q4_K: [0, 2],
    T.Q5_K: [0, 2],
    T.Q6_K: [208],
    T.IQ4_NL: [0],
}


def rows(rng):
    """Blocks of 32: ordinary numbers at many scales, then edges."""
    out = [rng.standard_normal(32) * 10.0**e for e in (-6, -4, -3, -2, -1, 0, 1, 2, 3, 4)]
    out += [rng.uniform(0, 1, 32), rng.uniform(-5, -3, 32), rng.integers(-8, 8, 32)]
    out += [np.zeros(32), np.full(32, 3.25), np.arange(32), np.arange(32)[::-1] - 31]
    out += [np.where(np.arange(32) == 7, 1e-36, 0), np.where(np.arange(32) % 2, 4.0, -4.0)]  # 4 twice: a tie
    out += [rng.standard_normal(32) * 1e-36, rng.standard_normal(32) * 1e6, rng.standard_normal(32) * 1e35]
    denormal = rng.standard_normal(32)
    denormal[::3] *= 1e-40
    out += [denormal, np.concatenate([np.arange(16) / 15, np.arange(16) / 31])]
    return np.array(out).astype(np.float32)


def record(kind, dtype, floats, data):
    floats = np.ascontiguousarray(floats, dtype="<f4").ravel()
    data = np.ascontiguousarray(data).view(np.uint8).ravel()
    return struct.pack("<BBII", kind, int(dtype), floats.size, data.size) + floats.tobytes() + data.tobytes()


def main():
    rng = np.random.default_rng(20240607)
    out = [b"SQG1"]
    np.seterr(all="ignore")
    for dtype in PACK:
        x = rows(rng)
        data = quants.quantize(x, dtype)
        out.append(record(0, dtype, x, data))
        out.append(record(1, dtype, quants.dequantize(data.view(np.uint8) if dtype != T.F16 else data, dtype), data))
    for dtype, fields in UNPACK_ONLY.items():
        data = rng.integers(0, 256, (7, GGML_QUANT_SIZES[dtype][1]), dtype=np.uint8)
        data[1] = 0
        data[2] = 255
        scales = [0.01, 1.0, -0.5, 6e-8, 3e-5, 60000.0, 0.125]
        for block, scale in zip(data, scales):
            for i, at in enumerate(fields):
                block[at : at + 2] = np.array([scale * (1 - 0.25 * i)], dtype="<f2").view(np.uint8)
        out.append(record(1, dtype, quants.dequantize(data, dtype), data))
    with open(sys.argv[1], "wb") as f:
        f.write(b"".join(out))


main()
