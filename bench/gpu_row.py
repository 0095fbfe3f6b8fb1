#!/usr/bin/env python3
"""One row of bench/gpu.sh's table from `sotto bench --json`: gpu_row.py MODEL NUMBERS."""
import json
import sys


def main():
    result = json.load(sys.stdin)

    def ms(key):
        value = result.get(key)
        return "" if value is None else f"{value:.3f}"

    print("|", " | ".join([sys.argv[1], sys.argv[2]] + [ms(key) for key in (
        "encoder_ms", "prompt_ms", "decoder_ms", "decoder_5_ms")]), "|")


main()
