#!/usr/bin/env python3
"""Reads the lines of bench_gpu_products (rows, columns, depth, ms) and writes rows of a Markdown table with cuBLAS's time for
the same products in f16, through PyTorch and a CUDA graph."""
import statistics
import sys

import torch


def cublas_ms(rows, columns, depth):
    layers = 2 if columns > 20000 else 8
    x = torch.randn(rows, depth, device="cuda", dtype=torch.float16)
    w = [torch.randn(columns, depth, device="cuda", dtype=torch.float16) for _ in range(layers)]
    y = torch.empty(rows, columns, device="cuda", dtype=torch.float16)
    for matrix in w:
        torch.mm(x, matrix.t(), out=y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for matrix in w:
            torch.mm(x, matrix.t(), out=y)
    times = []
    for _ in range(9):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(5):
            graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 5 / layers)
    return statistics.median(times)


def main():
    for line in sys.stdin:
        rows, columns, depth = (int(part) for part in line.split()[:3])
        ms = float(line.split()[3])
        other = cublas_ms(rows, columns, depth)
        print(f"| {rows} | {columns} | {depth} | {ms:.4f} | {2e-9 * rows * columns * depth / ms:.1f} | {other:.4f} | "
              f"{other / ms:.2f} |", flush=True)


main()
