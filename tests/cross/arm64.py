"""Build the library and its tests for arm64 Linux with zig and run them under qemu-user.

Only tests that need no third-party library take part: a test that does not link for want of PCRE2, jansson or zlib is
counted and named. cmocka is replaced by include/cmocka.h beside this file."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compile as cross  # noqa: E402

# Processors that qemu stands for, and the level that each must be given.
PROCESSORS = {"cortex-a72": "neon", "neoverse-n1": "dotprod", "max": "bf16mm"}
LINES = ["-target", "aarch64-linux-musl", "-static"]


def program_tests():
    """Names of the tests that belong to the command, from the build's own list."""
    with open(os.path.join(cross.ROOT, "tests", "CMakeLists.txt")) as f:
        return re.search(r"set\(SOTTO_PROGRAM_TESTS ([^)]*)\)", f.read())[1].split()


def link_all(out, objects, compiler, include):
    """(name, program) of each test that links; names of those that need more."""
    archive = os.path.join(out, "libsotto.a")
    subprocess.run([*compiler, "ar", "rcs", archive, *objects], check=True)
    programs, needy, left_out = [], [], program_tests()
    for kind in ("unit", "kernels", "backends"):
        folder = os.path.join(cross.ROOT, "tests", kind)
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        support = [os.path.join(folder, n) for n in names if n.endswith("_support.c")]
        for name in (n for n in names if re.match(r"test_\w+\.c$", n)):
            if name[5:-2] in left_out:
                continue
            if re.match(r"test_(gpu|sim|opencl|cuda|metal)", name):
                continue  # what is built here has no GPU interface
            if name.endswith("_alloc_fail.c"):
                continue  # wants the linker's --wrap, which zig does not pass on
            program = os.path.join(out, f"{kind}.{name[5:-2]}")
            command = [*compiler, "cc", *LINES, *cross.FLAGS, "-w", "-g",
                       f'-DSOTTO_SOURCE_DIR="{cross.ROOT}"', f'-DSOTTO_BUILD_DIR="{out}"',
                       "-I", os.path.join(cross.ROOT, "tests", "cross", "include"), "-I", os.path.join(cross.ROOT, "include"),
                       "-I", os.path.join(cross.ROOT, "src"), "-I", os.path.join(cross.ROOT, "tests"), "-isystem", include,
                       os.path.join(folder, name), *support, archive, "-lm", "-o", program]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode == 0:
                programs.append((f"{kind}.{name[5:-2]}", program))
            elif re.search(r"undefined (symbol|reference).*(json_|pcre2_|inflate|deflate|compress|crc32)", result.stderr):
                needy.append(f"{kind}.{name[5:-2]}")
            else:
                print(result.stderr)
                programs.append((f"{kind}.{name[5:-2]}", None))
    return programs, needy


def check_levels(qemu, program):
    """Processors that are not given the level they should have."""
    wrong = []
    for cpu, level in PROCESSORS.items():
        text = subprocess.run([qemu, "-cpu", cpu, program], capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
        found = re.search(r"this machine's level: (\w+)", text)
        print(f"{cpu}: level {found[1] if found else 'unknown'}")
        if not found or found[1] != level:
            wrong.append(f"{cpu} is not given {level}")
    return wrong


def main():
    compiler = cross.zig()
    qemu = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if not compiler or not qemu:
        print("needs ziglang (script/bootstrap --cross) and qemu-user")
        sys.exit(77)
    only = sys.argv[1:]
    failed = []
    with tempfile.TemporaryDirectory() as out:
        problems, objects = cross.compile_target("arm64", out, compiler)
        for problem in problems:
            print(problem)
        if problems:
            sys.exit(1)
        programs, needy = link_all(out, objects, compiler, os.path.join(out, "include"))
        for name, program in programs:
            if only and name not in only:
                continue
            try:
                code = subprocess.run([qemu, program], cwd=cross.ROOT, timeout=900, stdin=subprocess.DEVNULL).returncode if program else 1
            except subprocess.TimeoutExpired:
                code = "timeout"
            print(f"{name}: {'passed' if code == 0 else 'skipped' if code == 77 else f'failed ({code})'}", flush=True)
            if code not in (0, 77):
                failed.append(name)
            elif name == "kernels.levels":
                failed += check_levels(qemu, program)
    print(f"arm64: {len(programs)} programs, {len(failed)} failed; need third-party libraries: {', '.join(needy) or 'none'}")
    sys.exit(1 if failed or not programs else 0)


main()
