#!/usr/bin/env python3
"""f32 products of OpenBLAS, as numpy's wheels bring it, on one thread: a JSON list of GMAC/s by shape. For comparison with
bench_kernels, by processor time as there."""

import json
import os
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402

STATES = (("tiny", 384), ("base", 512), ("small", 768), ("medium", 1024), ("large-v3", 1280))


def rate(m, n, k):
    x, w = np.ones((m, k), np.float32), np.ones((n, k), np.float32)
    y = np.empty((m, n), np.float32)
    np.matmul(x, w.T, out=y)
    times = []
    for _ in range(5):
        start = time.process_time()
        np.matmul(x, w.T, out=y)
        times.append(time.process_time() - start)
    return m * n * k / sorted(times)[2] * 1e-9


rows = []
for size, d in STATES:
    for n, k in ((d, d), (4 * d, d), (d, 4 * d)):
        rows.append({"size": size, "shape": f"1500x{n}x{k}", "rate": rate(1500, n, k)})
print(json.dumps(rows))
