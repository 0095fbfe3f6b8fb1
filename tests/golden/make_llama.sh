#!/bin/sh
# Makes the small seeded models of the LLaMA family once for a build folder: make_llama.sh SOURCE OUT. Leaves with 77 without Python.
set -eu
source=$1 out=$2
if [ -e "$out/made" ] && [ "$out/made" -nt "$source/tools/make_gguf.py" ]; then
    exit 0
fi
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import array, random, statistics' 2>/dev/null; then
        rm -rf "$out"
        "$python" "$source/tools/make_gguf.py" --all "$out"
        : >"$out/made"
        exit 0
    fi
done
echo "skipped: no Python"
exit 77
