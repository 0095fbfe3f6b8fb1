"""The kernels' text as Metal gets it, checked by clang: metal_text.py ROOT CLANG.

Metal's language is C++14 with address spaces; clang's "C++ for OpenCL" has the same ones by other names, which
metal_shim/check/metal_stdlib gives them. What clang takes for a pointer to anywhere (its generic address space) does not
exist in Metal: it shows in the code that clang makes, as a variable or a parameter in address space 4, and is refused.
Mistakes that are put in on purpose must be found."""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

INCLUDE = re.compile(r'#include "(.+)"$')
GENERIC = re.compile(r"^(?:define|declare).*addrspace\(4\)|= alloca .*addrspace\(4\)", re.M)
COPY = re.compile(r"@llvm\.mem")  # of whole structs
SHIM = "tests/backends/metal_shim/check"
FLAGS = ["-x", "cl", "-cl-std=clc++2021", "-target", "spir64", "-cl-no-stdinc", "-Xclang",
         "-cl-ext=-all,+cl_khr_fp16,+__opencl_c_generic_address_space", "-Wno-unknown-attributes", "-Wno-unused-value",
         "-femit-all-decls", "-S", "-emit-llvm", "-O0", "-Xclang", "-disable-O0-optnone"]

# (what, in which file, what is replaced, by what, part of what clang says or "generic")
MISTAKES = [
    ("a helper's pointer without an address space", "types.krn", "FN float load_any(GLOBAL const uchar *x,",
     "FN float load_any(const uchar *x,", "generic"),
    ("a variable that points to anywhere", "element.krn", "store_any(y, p.y_type, to,",
     "{ uchar *z = y; z[0] = 0; } store_any(y, p.y_type, to,", "generic"),
    ("a group's memory without threadgroup", "metal/prelude.h", "FN float wg_sum_of(float x, threadgroup float *scratch,",
     "FN float wg_sum_of(float x, float *scratch,", "generic"),
    ("device memory taken for a group's", "rows.krn", "wg_sum(s) / (float)p.n;\n    s = 0.0f;",
     "wg_sum_of(s, y, LID, 1) / (float)p.n;\n    s = 0.0f;", "no matching function"),
    ("a group's array in a helper", "types.krn", "    if (type == T_F32)\n        return",
     "    LOCAL(float, z, 4);\n    if (type == T_F32)\n        return", "local address space"),
    ("a function that Metal lacks", "element.krn", "erf_(x", "erf(x", "undeclared identifier 'erf'"),
    ("writing to what is only read", "element.krn", "store_any(y, p.y_type, to,", "store_any(x, p.y_type, to,",
     "no matching function"),
    ("a field that the parameters lack", "element.krn", "p.op,", "p.opp,", "no member named 'opp'"),
]


def expand(texts, name):
    lines = [f'#line 1 "{name}"']
    for number, line in enumerate(texts[name].split("\n"), 1):
        match = INCLUDE.match(line)
        if match:
            lines += [expand(texts, match[1]), f'#line {number + 1} "{name}"']
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def read_texts(root):
    folder = os.path.join(root, "src/backends/gpu/kernels")
    paths = {name: os.path.join(folder, name) for name in os.listdir(folder)}
    paths["metal/prelude.h"] = os.path.join(root, "src/backends/gpu/api/metal/prelude.h")
    texts = {}
    for name, path in paths.items():
        with open(path, encoding="utf-8") as f:
            texts[name] = f.read()
    return texts


def modules_of(root, clang):
    """From the rows of kernels.inc, whose lists are macros."""
    text = '#define KERNEL(module, name, group, params, n_args) @module@\n#include "kernels.inc"\n'
    made = subprocess.run([clang, "-E", "-P", "-x", "c", "-I", os.path.join(root, "src/backends/gpu/kernels"), "-"], input=text,
                          capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r"@(\w+)@", made)))


def check(root, clang, texts, module):
    """What is wrong with a module, or an empty string."""
    text = expand(texts, "metal/prelude.h") + expand(texts, "params.h") + expand(texts, module + ".krn")
    with tempfile.TemporaryDirectory() as folder:
        source, made = os.path.join(folder, "kernels.metal"), os.path.join(folder, "kernels.ll")
        with open(source, "w", encoding="utf-8") as f:
            f.write(text)
        result = subprocess.run([clang, *FLAGS, "-I", os.path.join(root, SHIM), "-o", made, source], capture_output=True,
                                text=True)
        if result.returncode:
            return result.stderr or "clang failed"
        with open(made, encoding="utf-8") as f:
            generic = [line for line in f if GENERIC.search(line) and not COPY.search(line)]
    return f"generic: {generic[0].strip()}" if generic else ""


def planted(root, clang, texts, mistake):
    """A complaint if the mistake is not found."""
    what, name, old, new, said = mistake
    if old not in texts[name]:
        return f"{what}: {name} no longer has {old!r}"
    module = name[:-4] if name in ("element.krn", "rows.krn") else "rows"
    found = check(root, clang, {**texts, name: texts[name].replace(old, new, 1)}, module)
    return "" if said in found else f"{what}: not found; clang says {found[:500]!r}"


def main():
    root, clang = sys.argv[1:3]
    if not os.path.exists(clang):
        print("no clang")
        sys.exit(77)
    texts, problems = read_texts(root), []
    modules = modules_of(root, clang)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for module, found in zip(modules, pool.map(lambda m: check(root, clang, texts, m), modules)):
            if found:
                problems.append(f"{module}.krn: {found}")
        problems += filter(None, pool.map(lambda m: planted(root, clang, texts, m), MISTAKES))
    for problem in problems:
        print(problem)
    print(f"metal_text: {len(modules)} modules, {len(MISTAKES)} mistakes put in, {len(problems)} problems")
    sys.exit(1 if problems else 0)


main()
