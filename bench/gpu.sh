#!/bin/sh
# What the CUDA backend does on a real NVIDIA GPU, in under 8 minutes: the conformance table, compute-sanitizer, products
# against cuBLAS, encoder and decoder of base and of a seeded large-v3. The results are written as Markdown.
#   bench/gpu.sh [--out FILE]   run; builds first unless .gpu/ holds them
#   bench/gpu.sh --pack         on a machine with compilers and libraries, without a GPU: puts the programs and the shared
#                               libraries that they need into .gpu/programs.tar.gz, so that the machine with the GPU needs
#                               neither
#   --only LIST                 some of tests,memcheck,racecheck,products,blocks,models (comma-separated)
#   --small                     products and blocks in small, to see on a stand-in for the driver that the script runs
# Needs nothing but the driver for the tests; python3 with torch for cuBLAS, with numpy for the seeded models. What is not
# there is said in the table.
set -u
cd "$(dirname "$0")/.." || exit 1
out= pack= small= only=tests,memcheck,racecheck,products,blocks,models
while [ $# -gt 0 ]; do
    case $1 in
    --pack) pack=1 ;;
    --out) shift && out=$1 ;;
    --only) shift && only=$1 ;;
    --small) small=--small ;;
    *)
        echo "usage: bench/gpu.sh [--pack | --out FILE] [--only LIST] [--small]" >&2
        exit 2
        ;;
    esac
    shift
done
programs="test_backends_cuda test_backends_conformance test_backends_networks test_backends_int8_products bench_gpu_products sotto"
build=${BUILD_DIR:-build-gpu}

make_programs() { # folder
    cmake -S . -B "$1" -G Ninja -DSOTTO_SIM=OFF -DSOTTO_OPENCL=OFF -DSOTTO_METAL=OFF -DSOTTO_FFMPEG=OFF -DSOTTO_BENCH=ON \
        -DSOTTO_SHARED=OFF -DCMAKE_BUILD_TYPE=Release >"$1.log" 2>&1 || { cat "$1.log" && return 1; }
    for program in $programs; do
        ninja -C "$1" "$program" >>"$1.log" 2>&1 || echo "$program does not build (see $1.log)" >&2
    done
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -n "$pack" ]; then
    make_programs "$build" || exit 1
    mkdir -p .gpu "$work/bin" "$work/lib"
    for program in $programs; do
        [ -x "$build/$program" ] || continue
        cp "$build/$program" "$work/bin/"
        strip "$work/bin/$program"
        # All but the C library, which the other machine has in this version or a newer one.
        ldd "$build/$program" | awk '$3 ~ /^\// { print $3 }' | grep -v -E '/lib(c|m|dl|rt|pthread|resolv)\.so' |
            while read -r library; do cp -Ln "$library" "$work/lib/"; done
    done
    tar -C "$work" -czf .gpu/programs.tar.gz bin lib
    ls -l .gpu/programs.tar.gz
    exit 0
fi

if [ -f .gpu/programs.tar.gz ]; then
    tar -C "$work" -xzf .gpu/programs.tar.gz || exit 1
    bin=$work/bin
    LD_LIBRARY_PATH=$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
else
    make_programs "$build" || exit 1
    bin=$build
fi
table=$work/table.md
started=$(date +%s)
bad=0
say() { printf '%s\n' "$@" | tee -a "$table"; }
wanted() { case ,$only, in *,"$1",*) return 0 ;; *) return 1 ;; esac; }
# The tests of the table on this device only, and no processor beside it.
SOTTO_TEST_DEVICE=cuda:0
export SOTTO_TEST_DEVICE

say "# NVIDIA GPU" "" "Made by \`bench/gpu.sh\`, $(date -u +%Y-%m-%d), revision $(git rev-parse --short HEAD 2>/dev/null || echo unknown)." ""
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader 2>/dev/null | sed 's/^/    /' |
    tee -a "$table"
say "" "| check | result |" "|---|---|"

check() { # name, command...
    name=$1
    shift
    [ -x "$1" ] || [ "$1" = compute-sanitizer ] || { say "| $name | not built |" && return; }
    begin=$(date +%s)
    [ $((begin - started)) -lt 330 ] || { say "| $name | no time left |" && return; }
    timeout ${LIMIT:-100} "$@" >"$work/log" 2>&1
    code=$?
    took=$(($(date +%s) - begin))
    if [ $code -eq 0 ]; then
        say "| $name | passed, $took s |"
    elif [ $code -eq 77 ]; then
        say "| $name | skipped: $(tail -1 "$work/log") |"
    else
        bad=1
        say "| $name | FAILED ($code), $took s |"
        grep -v '^\[ *\(RUN\|OK\)' "$work/log" | head -40
    fi
}
if wanted tests; then
    check "the interface itself" $bin/test_backends_cuda
    LIMIT=150 check "conformance" $bin/test_backends_conformance
    check "networks" $bin/test_backends_networks
    check "products in bytes" $bin/test_backends_int8_products
fi
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        wanted $tool || continue
        # calls that may fail are asked for: variables that a module may have, more memory than there is
        sanitize="compute-sanitizer --tool $tool --report-api-errors no --error-exitcode 9"
        LIMIT=60 check "$tool, the interface" $sanitize $bin/test_backends_cuda
        for part in test_rows test_products test_narrow_products test_attention test_narrow_attention test_cells; do
            LIMIT=60 check "$tool, $part" $sanitize $bin/test_backends_conformance $part
        done
    done
else
    say "| compute-sanitizer | not there |"
fi

if wanted products && [ -x $bin/bench_gpu_products ]; then
    say "" "## Products of large-v3, f16" "" "| rows | columns | depth | ms | TFLOP/s | cuBLAS ms | share of cuBLAS |" "|---|---|---|---|---|---|---|"
    $bin/bench_gpu_products --device cuda:0 $small >"$work/products" || bad=1
    python3 bench/gpu_cublas.py <"$work/products" 2>"$work/log" >"$work/compared" ||
        awk '{ printf "| %s | %s | %s | %s | %.1f | | no torch |\n", $1, $2, $3, $4, 2e-9 * $1 * $2 * $3 / $4 }' "$work/products" >"$work/compared"
    tee -a "$table" <"$work/compared"
fi

if wanted blocks && [ -x $bin/bench_gpu_products ]; then
    say "" "## Few rows by weights in blocks" "" "| weights | rows | columns | depth | ms, f16: whole rows | GB/s | ms, int8: rows as bytes | GB/s | times as fast |" "|---|---|---|---|---|---|---|---|---|"
    $bin/bench_gpu_products --device cuda:0 --blocks $small >"$work/blocks" || bad=1
    awk 'BEGIN { bits["q8_0"] = 8.5; bits["q4_0"] = 4.5; bits["q4_1"] = 5; bits["q5_1"] = 6; bits["q4_k"] = 4.625; bits["q6_k"] = 6.625 }
        { bytes = $3 * $4 * bits[$1] / 8
          printf "| %s | %s | %s | %s | %s | %.0f | %s | %.0f | %.2f |\n", $1, $2, $3, $4, $5, bytes / $5 / 1e6, $6, bytes / $6 / 1e6, $5 / $6 }' \
        "$work/blocks" | tee -a "$table"
fi

if wanted models && [ -x $bin/sotto ]; then
    say "" "## Models, seeded weights" "" "| model | --compute | encoder ms | prompt ms | decoder ms a step, greedy | 5 beams |" "|---|---|---|---|---|---|"
    for size in base large-v3; do
        if ! python3 tools/make_sized_model.py $size "$work/$size-q4_0.gguf" >"$work/log" 2>&1; then
            say "| $size | | no numpy: $(tail -1 "$work/log") | | | |"
            continue
        fi
        for compute in f16 auto; do
            if $bin/sotto bench -m "$work/$size-q4_0.gguf" --device cuda:0 --compute $compute --rows 5 --runs 2 --json \
                >"$work/bench.json" 2>"$work/log"; then
                python3 bench/gpu_row.py "$size" "$compute" <"$work/bench.json" | tee -a "$table"
            else
                bad=1
                say "| $size | $compute | FAILED: $(tail -1 "$work/log") | | | |"
            fi
        done
        rm -f "$work/$size"-*
    done
fi
say "" "The whole took $(($(date +%s) - started)) s."
[ -z "$out" ] || cp "$table" "$out"
exit $bad
