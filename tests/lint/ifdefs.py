"""Conditional compilation lives in src/base and src/backends. Elsewhere only include guards, __cplusplus and the
compiled-in rows of a list are allowed; optional parts are files of their own that the build picks."""
import re
import common

CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b\s*(.*)$")
ALLOWED = [
    (re.compile(r"^(src|programs|examples)/"), re.compile(r"^SOTTO_[A-Z0-9_]*_H$")),
    (re.compile(r"^include/sotto/"), re.compile(r"^(SOTTO_[A-Z0-9_]*_H|__cplusplus)$")),
    (re.compile(r"^include/sotto/base\.h$"),
     re.compile(r"^(defined\((_WIN32|SOTTO_BUILD_SHARED|SOTTO_USE_SHARED|__GNUC__)\)\s*)+$")),
    (re.compile(r"^src/runtime/backends\.inc$"), re.compile(r"^SOTTO_NO_[A-Z]+$")),
]


def main():
    top = common.root()
    problems, checked = [], 0
    for path in common.files(top, ".c", ".h", ".inc"):
        if path.startswith(("src/base/", "src/backends/", "tests/", "bench/", "tools/")):
            continue
        checked += 1
        for number, line in enumerate(common.strip_c(common.text(top, path)).split("\n"), 1):
            match = CONDITION.match(line)
            if not match:
                continue
            condition = match[2].strip()
            if not any(where.match(path) and what.match(condition) for where, what in ALLOWED):
                problems.append(f"{path}:{number}: #{match[1]} {condition}")
    common.finish("ifdefs", problems, checked)


main()
