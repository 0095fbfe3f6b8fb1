"""Each public header compiles alone, as C11 and as C++11, without a warning: headers.py ROOT CC [CXX]."""
import os
import shutil
import subprocess
import sys
import tempfile
import common

FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def main():
    top = common.root()
    compilers = [(sys.argv[2], "c", "-std=c11")]
    cxx = next((c for c in sys.argv[3:] + ["c++", "g++", "clang++"] if c and shutil.which(c)), None)
    if cxx:
        compilers.append((cxx, "c++", "-std=c++11"))
    else:
        print("no C++ compiler here: only C is checked")
    problems, checked = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(os.listdir(os.path.join(top, "include", "sotto"))):
            unit = os.path.join(folder, "unit.c")
            with open(unit, "w") as f:
                f.write(f"#include <sotto/{name}>\n#include <sotto/{name}>\nint sotto_unit_;\n")
            for compiler, language, standard in compilers:
                checked += 1
                result = subprocess.run([compiler, "-x", language, standard, *FLAGS, "-I", os.path.join(top, "include"), unit],
                                        capture_output=True, text=True)
                if result.returncode:
                    problems.append(f"{name} as {language}:\n{result.stderr}")
    common.finish("headers", problems, checked)


main()
