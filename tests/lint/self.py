"""The lint tests themselves: each finds the fault planted in a small tree, and nothing in the tree without it."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CLEAN = {
    "README.md": "# X\n\n```sh\nscript/demo\nscript/test\n```\n\n```c\nputs(\"x\");\n```\n",
    "include/sotto/sotto.h": '#ifndef SOTTO_SOTTO_H\n#define SOTTO_SOTTO_H\n#include <stdint.h>\n#endif\n',
    "script/demo": "#!/bin/sh\n",
    "script/test": "#!/bin/sh\n",
    "include/sotto/base.h": "#ifndef SOTTO_BASE_H\n#define SOTTO_BASE_H\n#include <stddef.h>\n#endif\n",
    "src/base/a.h": "#ifndef SOTTO_SRC_BASE_A_H\n#define SOTTO_SRC_BASE_A_H\n#endif\n",
    "src/base/a.c": '#include "base/a.h"\n#include <pthread.h>\nint st_a(void)\n{\n    return 0;\n}\n',
    "src/formats/f.c": '#include "base/a.h"\n#include <jansson.h>\n',
    "src/models/m.c": '#include "sotto/base.h"\n',
}
LONG = "int st_long(int x)\n{\n" + "    x++;\n" * 130 + "    return x;\n}\n"
# check, file, its planted content, a word of the report
PLANTED = [
    ("layers", "src/base/a.c", '#include "models/m.h"\n', "not in the repository"),
    ("layers", "src/base/a.c", '#include "formats/f.h"\n', "base may not include"),
    ("layers", "src/tensor/t.c", "#include <jansson.h>\n", "tensor may not include"),
    ("layers", "src/models/m.c", "#include <unistd.h>\n", "models may not include"),
    ("layers", "src/models/m.c", '#include "runtime/backend_impl.h"\n', "models may not include"),
    ("layers", "src/backends/cpu/c.c", '#include "backends/gpu/g.h"\n', "backends may not include"),
    ("layers", "src/formats/f.c", "#include <immintrin.h>\n", "formats may not include"),
    ("sizes", "src/base/a.c", LONG, "st_long has 133 lines"),
    ("sizes", "src/base/a.c", "int x;\n" * 1001, "1001 lines"),
    ("text", "src/base/a.c", "int x; \n", "white space at the end"),
    ("text", "src/base/a.c", "\tint x;\n", "tab"),
    ("text", "src/base/a.c", "int x;", "no newline"),
    ("text", "src/base/a.c", "/* TO" "DO */\n", "belongs into docs/roadmap.md"),
    ("text", "README.md", "in /ro" "ot/x\n", "path of one machine"),
    ("ifdefs", "src/models/m.c", "#ifdef __linux__\n#endif\n", "#ifdef __linux__"),
    ("docs", "README.md", "```sh\nscript/other\n```\n", "script/other"),
    ("docs", "README.md", CLEAN["README.md"] + "```c\nint x = none;\n```\n", "does not compile"),
    ("docs", "README.md", CLEAN["README.md"] + "[x](docs/none.md)\n", "docs/none.md"),
]
EXTRA = {"src/formats/f.h": "", "src/backends/gpu/g.h": "", "src/runtime/backend_impl.h": ""}


def check(name, tree):
    with tempfile.TemporaryDirectory() as top:
        for path, content in tree.items():
            full = os.path.join(top, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w") as f:
                f.write(content)
        result = subprocess.run([sys.executable, os.path.join(HERE, name + ".py"), top], capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr


def main():
    failures = 0
    for name in ("layers", "sizes", "text", "ifdefs", "docs"):
        code, report = check(name, CLEAN)
        if code != 0:
            failures += 1
            print(f"{name}: complains about the clean tree:\n{report}")
    for name, path, content, word in PLANTED:
        code, report = check(name, {**CLEAN, **EXTRA, path: content})
        if code != 1 or word not in report:
            failures += 1
            print(f"{name}: misses {word!r} in {path}; it said:\n{report}")
    print(f"{len(PLANTED)} planted faults, {failures} failures")
    sys.exit(1 if failures else 0)


main()
