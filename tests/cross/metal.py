"""Link the runtime with the Metal backend for macOS on arm64 and x86-64, with the zig compiler of the PyPI package ziglang.

    metal.py [--out DIR]

No SDK of Apple is needed: the backend opens the Objective-C runtime and Metal when it runs. The programs are not run here."""
import argparse
import concurrent.futures
import os
import struct
import subprocess
import sys
import tempfile

import compile as cross

ROOT = cross.ROOT
FOLDERS = ["base", "tensor", "quant", "reference", "runtime", "backends/gpu", "backends/gpu/api/metal"]
LEFT_OUT = ["-DSOTTO_NO_CPU", "-DSOTTO_NO_SIM", "-DSOTTO_NO_OPENCL", "-DSOTTO_NO_CUDA"]
TARGETS = {"aarch64-macos": 0x0100000C, "x86_64-macos": 0x01000007}  # and the processor's number in a Mach-O file


def embed(out):
    """The kernels' text as C, made by the build's own script."""
    kernels, prelude = os.path.join(ROOT, "src/backends/gpu/kernels"), os.path.join(ROOT, "src/backends/gpu/api/metal/prelude.h")
    names = sorted(n for n in os.listdir(kernels) if n.endswith(".krn") or n == "params.h")
    paths = [os.path.join(kernels, n) for n in names] + [prelude]
    made = os.path.join(out, "gpu_text.c")
    subprocess.run(["cmake", "-DOUT=" + made, "-DNAMES=" + ";".join(names + ["metal/prelude.h"]), "-DFILES=" + ";".join(paths),
                    "-P", os.path.join(ROOT, "cmake/embed.cmake")], check=True)
    return made


def sources():
    for folder in FOLDERS:
        full = os.path.join(ROOT, "src", folder)
        yield from (os.path.join(full, name) for name in sorted(os.listdir(full)) if name.endswith(".c"))
    yield os.path.join(ROOT, "tests/cross/metal_main.c")


def link(target, out, text, compiler):
    """Problems found; the program goes to out."""
    command = [*compiler, "cc", "-target", target]

    def one(path):
        obj = os.path.join(out, target + "_" + os.path.relpath(path, ROOT).replace("/", "_").replace(".", "_") + ".o")
        result = subprocess.run([*command, *cross.FLAGS, *cross.WARNINGS, *LEFT_OUT, "-I", os.path.join(ROOT, "include"), "-I",
                                 os.path.join(ROOT, "src"), "-c", path, "-o", obj], capture_output=True, text=True)
        return obj, result.stderr if result.returncode else ""

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        made = list(pool.map(one, [*sources(), text]))
    problems = [report for _, report in made if report]
    if problems:
        return problems
    program = os.path.join(out, "devices-" + target)
    result = subprocess.run([*command, "-o", program, *(obj for obj, _ in made)], capture_output=True, text=True)
    if result.returncode:
        return [result.stderr]
    with open(program, "rb") as f:
        magic, processor, _, kind = struct.unpack("<4I", f.read(16))
    if (magic, processor, kind) != (0xFEEDFACF, TARGETS[target], 2):
        return [f"{program}: magic {magic:#x}, processor {processor:#x}, kind {kind}: not a program for {target}"]
    print(f"{target}: {len(made)} files, {os.path.getsize(program) // 1024} KiB")
    return []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    args = parser.parse_args()
    compiler = cross.zig()
    if not compiler:
        print("ziglang is not installed: script/bootstrap --cross")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        out = args.out or folder
        os.makedirs(out, exist_ok=True)
        text = embed(out)
        problems = [f"{target}: {problem}" for target in TARGETS for problem in link(target, out, text, compiler)]
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


main()
