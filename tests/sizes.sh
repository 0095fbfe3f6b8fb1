#!/bin/sh
# Every published size loads and runs with seeded weights: sizes.sh SOTTO [SIZE ...]. Needs numpy and 1 GB of disk.
set -eu
cd "$(dirname "$0")/.."
sotto=$1
shift
[ $# -gt 0 ] || set -- tiny tiny.en base base.en small small.en medium medium.en large-v2 large-v3 large-v3-turbo
python=
for candidate in .venv/bin/python /usr/bin/python3 python3; do
    "$candidate" -c 'import numpy' 2>/dev/null && python=$candidate && break
done
if [ -z "$python" ]; then
    echo "skipped: no Python with numpy (script/bootstrap --python)"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
head -c 64000 /dev/zero | tr '\0' '\125' >"$folder/audio.raw"
for size in "$@"; do
    "$python" tools/make_sized_model.py "$size" "$folder/model.gguf"
    "$sotto" inspect "$folder/model.gguf" >"$folder/inspect"
    # without a language: an English-only model takes English, the others detect one
    "$sotto" transcribe -m "$folder/model.gguf" --raw s16le:16000:1 --beam-size 2 --audio-ctx 200 --no-fallback -f json \
        --quiet - <"$folder/audio.raw" >"$folder/out.json"
    "$python" -c 'import json, sys; json.load(open(sys.argv[1]))["segments"]' "$folder/out.json"
    echo "$size: loads and runs ($(head -n 1 "$folder/inspect" | sed 's/^[^:]*: //'))"
    rm -f "$folder/model.gguf"
done
