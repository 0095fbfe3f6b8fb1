"""No source file over 1,000 lines and no function over 120. Tables (*_table.c, *.inc) may be any length."""
import re
import common

FILE_LINES, FUNCTION_LINES = 1000, 120
OPENING = re.compile(r"^[A-Za-z_].*\)\s*(\{)?\s*$")


def functions(source):
    """(name, first line, number of lines) of each function body at file scope."""
    lines = common.strip_c(source).split("\n")
    depth, start, head = 0, 0, ""
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#"):
            continue
        if depth == 0 and "{" in line:
            before = " ".join(lines[max(0, number - 8):number - 1]) + line.split("{")[0]
            tail = re.split(r"[;}]", before)[-1]
            found = re.search(r"(\w+)\s*\([^=]*\)\s*$", tail)
            head, start = (found[1] if found and "=" not in tail else ""), number
        was = depth
        depth = max(0, depth + line.count("{") - line.count("}"))
        if was > 0 and depth == 0 and head and head != "C":
            yield head, start, number - start + 1
            head = ""


def main():
    top = common.root()
    problems, checked = [], 0
    for path in common.files(top, ".c", ".h", ".py", ".krn"):
        if path.endswith(("_table.c", "_table.h", "_tables.c")) or path.startswith("tests/golden/data"):
            continue
        checked += 1
        source = common.text(top, path)
        count = source.count("\n")
        if count > FILE_LINES:
            problems.append(f"{path}: {count} lines, at most {FILE_LINES}")
        if path.endswith((".c", ".h")):
            # extern "C" blocks of the public headers are no functions and hold none
            for name, line, length in functions(source):
                if length > FUNCTION_LINES:
                    problems.append(f"{path}:{line}: {name} has {length} lines, at most {FUNCTION_LINES}")
    common.finish("sizes", problems, checked)


main()
