"""Compile the library for systems that are not here, with the zig compiler of the PyPI package ziglang.

    compile.py [--out DIR] [TARGET ...]      all targets without one named

Windows x86-64 and macOS arm64 use the headers that come with zig. It has none of Android: those of musl stand in, with
Android's own macros set, so what is checked there is the code and not Bionic's API. PCRE2, jansson and zlib are portable
headers: copies of those of this machine. Nothing is linked."""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FOLDERS = ["base", "tensor", "quant", "reference", "runtime", "formats", "models/common", "models/whisper",
           "models/silero", "backends/cpu", "backends/cpu/kernels/portable"]
INTERFACES = ("sim", "opencl", "cuda", "metal")  # of GPUs
X86, ARM = "backends/cpu/kernels/x86", "backends/cpu/kernels/arm"
TARGETS = {  # flags, folder of kernels, interfaces
    "windows": (["-target", "x86_64-windows-gnu"], X86, ("opencl", "cuda")),
    "macos": (["-target", "aarch64-macos"], ARM, ("sim", "opencl", "metal")),
    "android": (["-target", "aarch64-linux-android"], ARM, ("sim", "opencl")),
    "arm64": (["-target", "aarch64-linux-musl"], ARM, ()),
}
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-command-line-argument"]
LEVELS = os.path.join(ROOT, "cmake", "isa.cmake")
FLAGS = ["-std=gnu17", "-O1", "-ffp-contract=off", "-fno-math-errno", "-fno-sanitize=undefined"]


def zig():
    for candidate in (os.path.join(ROOT, ".venv", "bin", "python"), sys.executable):
        if os.path.exists(candidate) and subprocess.run([candidate, "-c", "import ziglang"], capture_output=True).returncode == 0:
            return [candidate, "-m", "ziglang"]
    return None


def level_flags():
    """{"v3": ["-march=..."]} from the build's own list."""
    with open(LEVELS) as f:
        return {name: flags.split() for name, flags in re.findall(r"^set\(SOTTO_FLAGS_(\w+) (.*)\)$", f.read(), re.M)}


def cpu_flags(path, levels):
    """zig takes the processor as -mcpu and features as +x; gcc's -march names are the same but for dashes."""
    cpu, features = "", ""
    for flag in levels.get(path.rsplit("_", 1)[-1][:-2], []):
        if flag.startswith("-march="):
            cpu, _, more = flag[len("-march="):].partition("+")
            if cpu.startswith("armv8."):
                cpu, features = "generic", "+v" + cpu[len("armv"):].replace("-", "").replace(".", "_")
            cpu = cpu.replace("-", "_")
            features += "+" + more if more else ""
        elif flag.startswith(("-mavx", "-mamx")):
            features += "+" + flag[2:].replace("-", "_")
    return ["-mcpu=" + cpu + features] if cpu else []


def sources(isa, interfaces):
    gpu = ["backends/gpu", *(f"backends/gpu/api/{name}" for name in interfaces)] if interfaces else []
    for folder in FOLDERS + [isa] + gpu:
        full = os.path.join(ROOT, "src", folder)
        if os.path.isdir(full):
            for name in sorted(os.listdir(full)):
                if name.endswith(".c"):
                    yield os.path.join(full, name)


def third_party(folder):
    for name in ("pcre2.h", "jansson.h", "jansson_config.h", "zlib.h", "zconf.h"):
        for base in ("/usr/include", "/usr/local/include", *(os.path.join("/usr/include", d) for d in os.listdir("/usr/include")
                                                             if d.endswith("-linux-gnu"))):
            if os.path.exists(os.path.join(base, name)):
                shutil.copy(os.path.join(base, name), folder)
                break


def system_flags(target, compiler):
    if target == "android":
        lib = os.path.join(os.path.dirname(subprocess.run([*compiler, "env"], capture_output=True, text=True).stdout
                                           .split('"lib_dir": "')[1].split('"')[0]), "lib", "libc", "include")
        return ["-D__ANDROID_API__=24", *(f for d in ("aarch64-linux-musl", "generic-musl", "aarch64-linux-any", "any-linux-any")
                                          for f in ("-isystem", os.path.join(lib, d)))]
    return []


def compile_target(target, out, compiler):
    """Problems found; objects go to out."""
    flags, isa, interfaces = TARGETS[target]
    flags = flags + [f"-DSOTTO_NO_{name.upper()}" for name in INTERFACES if name not in interfaces]
    levels = level_flags()
    include = os.path.join(out, "include")
    os.makedirs(include, exist_ok=True)
    third_party(include)
    extra = system_flags(target, compiler)

    def one(path):
        obj = os.path.join(out, os.path.relpath(path, ROOT).replace("/", "_")[:-2] + ".o")
        command = [*compiler, "cc", *flags, *FLAGS, *WARNINGS, *cpu_flags(path, levels), "-I", os.path.join(ROOT, "include"),
                   "-I", os.path.join(ROOT, "src"), *extra, "-isystem", include, "-c", path, "-o", obj]
        result = subprocess.run(command, capture_output=True, text=True)
        return path, obj, result.returncode, result.stderr

    problems, objects = [], []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for path, obj, code, report in pool.map(one, sources(isa, interfaces)):
            if code:
                problems.append(f"{target}: {os.path.relpath(path, ROOT)}\n{report}")
            else:
                objects.append(obj)
    return problems, objects


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    parser.add_argument("targets", nargs="*")
    args = parser.parse_args()
    compiler = zig()
    if not compiler:
        print("ziglang is not installed: script/bootstrap --cross")
        sys.exit(77)
    failed = 0
    for target in args.targets or ("windows", "macos", "android"):
        with tempfile.TemporaryDirectory() as folder:
            problems, objects = compile_target(target, args.out or folder, compiler)
        for problem in problems:
            print(problem)
        print(f"{target}: {len(objects)} files compiled, {len(problems)} failed")
        failed += len(problems) or not objects
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
