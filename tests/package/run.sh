#!/bin/sh
# Install into a temporary prefix, move it, and build the examples outside the tree from there.
#   run.sh SOURCE BUILD CC SANITIZERS|none pkgconfig|cmake shared|static
# generate runs on a small seeded model. With models/tiny.en and the sample fetched transcribe also runs on them; without, it
# has to fail with a sentence.
set -eu
source=$1 build=$2 cc=$3 sanitize=$4 way=$5 kind=$6
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

cmake --install "$build" --prefix "$work/first" >"$work/install.log" || {
    cat "$work/install.log"
    exit 1
}
mv "$work/first" "$work/prefix"
mkdir "$work/example"
cp "$source/examples/transcribe.c" "$source/examples/generate.c" "$source/examples/CMakeLists.txt" "$work/example"
cd "$work/example"
pc=$(find "$work/prefix" -name sotto.pc)
lib=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH="$lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
export LD_LIBRARY_PATH="$lib"
flags="-std=c11 -Wall -Wextra -Wpedantic -Werror"
[ "$sanitize" = none ] || flags="$flags -fsanitize=$sanitize"

case $way-$kind in
pkgconfig-shared)
    for example in transcribe generate; do
        # shellcheck disable=SC2046,SC2086
        "$cc" $flags $example.c $(pkg-config --cflags --libs sotto) -o $example
    done
    ;;
pkgconfig-static)
    rm -f "$lib"/libsotto.so*
    for example in transcribe generate; do
        # shellcheck disable=SC2046,SC2086
        "$cc" $flags $example.c $(pkg-config --static --cflags --libs sotto) -o $example
    done
    ;;
cmake-*)
    command -v make >/dev/null || export CMAKE_GENERATOR=Ninja
    cmake -S . -B build -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags" \
        -DSOTTO_TARGET="sotto::sotto_$kind" >cmake.log 2>&1 && cmake --build build >>cmake.log 2>&1 || {
        cat cmake.log
        exit 1
    }
    cp build/transcribe build/generate .
    ;;
esac
if [ "$kind" = static ] && ldd ./transcribe | grep -q libsotto; then
    echo "the static example needs libsotto.so"
    exit 1
fi
if [ "$kind" = shared ] && ! ldd ./transcribe | grep -q "libsotto.so.0 => $lib"; then
    echo "the shared example does not use the installed library:"
    ldd ./transcribe
    exit 1
fi

if ./transcribe /does/not/exist </dev/null 2>message; then
    echo "a missing model was accepted"
    exit 1
fi
grep -q '^transcribe: not.found: .*/does/not/exist' message || {
    echo "unexpected message:"
    cat message
    exit 1
}
if ./generate /does/not/exist "text" >text 2>message || ! grep -q '^generate: not.found: .*/does/not/exist' message; then
    echo "a missing model was accepted, or the message is unexpected:"
    cat message
    exit 1
fi
if [ -e "$build/llama/made" ]; then
    ./generate "$build/llama/llama.gguf" "the quick brown" >text
    ./generate "$build/llama/llama.gguf" "the quick brown" >again
    [ "$(wc -c <text)" -gt 10 ] && cmp text again # the same seed, the same text
fi
wav=$(find "$source/models/sample" "$source/models/samples" -name '*-0880.wav' 2>/dev/null | head -n 1)
if [ "$wav" ] && [ -d "$source/models/tiny.en" ]; then
    tail -c +45 "$wav" >audio.s16le # a WAV header of 44 bytes
    ./transcribe "$source/models/tiny.en" <audio.s16le >text
    cat text
    grep -q 'young man' text
else
    echo "models/tiny.en or the sample is not fetched: the example was built, not run on audio"
fi
