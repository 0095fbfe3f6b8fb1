#!/bin/sh
# One transcription with a small model under valgrind: no wrong access, no leak. valgrind.sh BUILD
set -eu
cd "$(dirname "$0")/.."
build=$1
command -v valgrind >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
script/bootstrap --tests --python || exit 77
.venv/bin/python tools/make_tiny_models.py "$work" --variant tiny-multilingual --layout ggml-f16 >/dev/null
model=$(find "$work" -type f -name '*.bin' | head -n 1)
# Three seconds of a quiet buzz: valgrind has no AVX-512, so the level is v3.
.venv/bin/python -c 'import sys; sys.stdout.buffer.write((b"\x10" * 80 + b"\xf0" * 80) * 300)' >"$work/buzz.raw"
valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect \
    "$build"/sotto transcribe --cpu v3 --threads 2 --language en --beam-size 2 --audio-ctx 150 --temperature-inc 0 --raw s8:16000:1 -m "$model" "$work/buzz.raw"
