"""The innermost loops of the product kernels keep their numbers in registers: spills.py ROOT BUILD [-v].

Disassembles the objects of src/backends/cpu/kernels/x86 in the build folder and counts, in every innermost loop, the instructions
that move vectors to or from the stack. None is allowed but for the functions listed below. Where gcc and clang are both
there, the files are also compiled with the one that the build does not use, with the build's flags. Where zig and llvm-objdump
are there, so are those for arm64.
Exit code 77 (skipped) without objdump or without the objects (another architecture)."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cross"))
import compile as cross  # noqa: E402

FOLDER = "CMakeFiles/sotto_objects.dir/src/backends/cpu/kernels/x86"
ARM = os.path.join("src", "backends", "cpu", "kernels", "arm")
ARM_FILES = re.compile(r"^(?:dot|narrow)_\w+\.c$")
OBJECTS = re.compile(r"^(product_v[34]|dot_(?:v3|v4|avxvnni|avx512vnni|amx)|narrow_\w+|attention_\w+|window_\w+)\.c\.o$")
# Object, function, most moves in an innermost loop of it with any compiler: what gcc 12 and clang 14 make, and a little more.
BOUNDS = [
    ("product_v3", r"product_i8_4", 2),
    ("product_v3", r"skinny_Q[45]_[01]_\d", 170),  # a block of 32 rows expanded at once, unrolled as a whole
    ("product_v3", r"skinny_(Q8_0|BF16)_\d", 50),
    ("product_v4", r"product_i8_\d", 4),
    ("narrow_v3", r"fine_[26]|bytes_[246]", 8),  # clang, which has the weights' bytes there; gcc none
    ("product_v4", r"skinny_Q5_[01]_\d", 30),
    ("product_v4", r"skinny_F16_1", 12),  # clang, which converts all weights of a block before it multiplies them
    ("window_amx", r"window_bf16", 4),
    ("window_vnni", r"score_\d+_1", 4),  # clang
    ("window_vnni", r"add_values_(?:32_\d|64_1)", 80),  # clang, which unpacks the values of sixteen cells first; gcc none
    ("dot_(?:v4|avx512vnni)", r"direct_\w+", 40),  # masks that clang keeps there; gcc none
    ("dot_avx512vnni", r"product_\w+", 20),  # two groups at once
    ("dot_(?:v3|avxvnni)", r"direct_\w+", 80),  # sixteen registers
    ("dot_v3", r"many_groups6", 2),
    ("dot_avxvnni", r"product_plain2_\d", 30),  # clang; gcc 12
    ("dot_avxvnni", r"product_\w+", 12),
    ("dot_i8mm", r"product_\w+_[56]", 12),  # 24 sums
    ("dot_i8mm", r"direct_\w+_[34]", 20),
    ("dot_i8mm", r"direct_Q5_K_2", 6),
    ("dot_neon", r"product_min2_\d", 50),  # two groups at once
    ("dot_neon", r"product_\w+", 20),
    ("dot_(?:neon|dotprod)", r"\w+", 12),
    ("narrow_(?:dotprod|i8mm|bf16mm)", r"pack_row\w*", 4),
    ("narrow_avxvnni", r"block_i8", 2),
    ("narrow_v[34]", r"(?:four|two|word)_pass_1", 64),  # clang, for the row that may be left of all; gcc none
    ("narrow_v4", r"bytes_1", 4),  # clang, over four k at once
    ("narrow_v[34]", r"block_bytes|bytes_part", 12),  # what a tile is told, once for each, and its rows' scales
    ("attention_v3", r"pack_keys", 4),  # once for eight keys
    ("attention_v3", r"find_largest", 6),  # clang: those of a row
    # once for a row or a tile, not for each product
    ("product_v[34]", r"pack_row_i8|to_i8|finish\w*", 12),
    (r"narrow_(?:v3|v4|avx\w+)", r"\w*pack_row\w*", 12),
    ("narrow_(?:v3|avxvnni)", r"block_finish_tile", 70),  # GELU by a polynomial, in sixteen registers
    (r"dot_\w+", r"pack_row", 60),  # what it finds for many blocks at once lies there; once for sixteen of them
]
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
# of x86 and of arm64
JUMP = re.compile(r"^j\w+$|^loop\w*$|^b$|^b\.\w+$|^[ct]bn?z$")
TARGET = re.compile(r"\b(?:0x)?([0-9a-f]+) <")
VECTOR = re.compile(r"%(?:[xyz]mm|tmm)\d+|\b[dqv]\d+\b")


def functions(objdump, path):
    """name -> [(address, mnemonic, operands)]"""
    more = ["--mattr=+dotprod,+i8mm,+bf16"] if "llvm" in objdump else []
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", *more, path], check=True, capture_output=True, text=True).stdout
    out, current = {}, None
    for line in text.split("\n"):
        head = FUNCTION.match(line)
        if head:
            current = out.setdefault(head[1], [])
            continue
        found = LINE.match(line)
        if found and current is not None:
            current.append((int(found[1], 16), found[2], found[3] if more else found[3].split("#")[0]))
    return out


def innermost_loops(code):
    """(first, last) addresses of the loops that hold no other."""
    longest = {}
    first = code[0][0] if code else 0
    for address, name, operands in code:
        target = TARGET.search(operands) if JUMP.match(name) else None
        if target and first <= int(target[1], 16) <= address:
            head = int(target[1], 16)
            longest[head] = max(address, longest.get(head, address))
    loops = list(longest.items())
    return [(a, b) for a, b in loops if not any((c, d) != (a, b) and a <= c and d <= b for c, d in loops)]


def spills(code):
    """Most stack moves of vectors in one innermost loop, and the number of such loops with vector instructions."""
    frame = {"mov": re.compile(r"%rsp,%rbp$"), "lea": re.compile(r".*\(%rsp\),%rbp$")}
    framed = any(name[:3] in frame and frame[name[:3]].match(ops.strip()) for _, name, ops in code)
    stack = re.compile(r"\(%r(?:sp|bp)\b" if framed else r"\(%rsp\b|\[sp\b")
    worst = loops = 0
    for a, b in innermost_loops(code):
        inside = [(name, ops) for address, name, ops in code if a <= address <= b]
        if not any(VECTOR.search(ops) for _, ops in inside):
            continue
        loops += 1
        worst = max(worst, sum(1 for _, ops in inside if VECTOR.search(ops) and stack.search(ops)))
    return worst, loops


def bound_of(name, function):
    for pattern, which, most in BOUNDS:
        if re.match(pattern, name) and re.fullmatch(which, function):
            return most
    return 0


def compile_with(compiler, build, names, folder):
    """The same files with another compiler; those that it does not take are left out."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    for entry in commands:
        name = os.path.basename(entry["file"]) + ".o"
        if name not in names or "/kernels/x86/" not in entry["file"]:
            continue
        words = entry["command"].split() if "command" in entry else entry["arguments"]
        words = [compiler] + words[1:]
        words[words.index("-o") + 1] = os.path.join(folder, name)
        result = subprocess.run(words, cwd=entry["directory"], capture_output=True, text=True)
        if result.returncode:
            print(f"spills: {compiler} does not compile {name}: {result.stderr.splitlines()[0] if result.stderr else ''}")


def compile_arm(root, folder):
    """The files for arm64 with zig, as a build on arm64 makes them."""
    compiler, levels = cross.zig(), cross.level_flags()
    flags = ["-std=gnu17", "-O3", *(f for f in cross.FLAGS if not f.startswith(("-std", "-O")))]
    for name in sorted(n for n in os.listdir(os.path.join(root, ARM)) if ARM_FILES.match(n)) if compiler else []:
        path = os.path.join(root, ARM, name)
        subprocess.run([*compiler, "cc", "-target", "aarch64-linux-musl", *flags, *cross.cpu_flags(path, levels), "-I",
                        os.path.join(root, "include"), "-I", os.path.join(root, "src"), "-c", path, "-o",
                        os.path.join(folder, name + ".o")], check=True)
    return sorted(os.listdir(folder))


def check(objdump, folder, names, title):
    """(loops, problems)"""
    problems, loops, total = 0, 0, 0
    for name in names:
        for function, code in functions(objdump, os.path.join(folder, name)).items():
            worst, n = spills(code)
            loops += n
            total += worst
            most = bound_of(name, re.sub(r"\.(constprop|isra|part|cold)\.\d+", "", function))
            if worst > most:
                problems += 1
                print(f"{title}, {name}: {function}: an innermost loop moves vectors to or from the stack {worst} times, at most {most}")
            elif "-v" in sys.argv and worst:
                print(f"{title}, {name}: {function}: {worst} of {most}")
    print(f"spills: {title}: {loops} innermost loops of {len(names)} files checked, {problems} problems, {total} moves allowed")
    return loops, problems


def objects(folder):
    return sorted(n for n in os.listdir(folder) if OBJECTS.match(n)) if os.path.isdir(folder) else []


def main():
    build = sys.argv[2]
    objdump, folder = shutil.which("objdump"), os.path.join(build, FOLDER)
    names = objects(folder)
    if not objdump or not names:
        print("spills: skipped, " + ("no objects of x86 kernels in " + build if objdump else "objdump is not there"))
        sys.exit(77)
    cache = open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8").read()
    own = os.path.basename((re.search(r"^CMAKE_C_COMPILER:\w+=(.*)$", cache, re.M) or ["", "cc"])[1])
    loops, problems = check(objdump, folder, names, own)
    other = shutil.which("gcc" if "clang" in own else "clang")
    if other:
        with tempfile.TemporaryDirectory() as second:
            compile_with(other, build, names, second)
            problems += check(objdump, second, objects(second), os.path.basename(other))[1]
    llvm = shutil.which("llvm-objdump")
    if llvm:
        with tempfile.TemporaryDirectory() as third:
            names = compile_arm(sys.argv[1], third)
            problems += check(llvm, third, names, "arm64")[1] if names else 0
    sys.exit(1 if problems or not loops else 0)


main()
