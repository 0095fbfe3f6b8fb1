"""Plain text rules: UTF-8, no trailing white space, no tab in C, a newline at the end, nothing of one machine, no bare TODO."""
import re
import common

ENDINGS = (".c", ".h", ".inc", ".py", ".md", ".txt", ".cmake", ".in", ".krn", ".sh", ".yml", ".json")
SCRIPTS = ("script/", ".ci/")
# Home folders and absolute paths of whoever wrote the line.
MACHINE = re.compile(r"(?<![\w.$}~-])/(root|work|home/\w+|Users/\w+)(/|\b(?=[\s\"'`)]))")
TODO = re.compile(r"\b(TODO|FIXME|XXX)\b")
DATA = ("tests/golden/data/", "tests/fuzz/corpus/", "tests/cli/data/", "tests/data/")


def main():
    top = common.root()
    problems, checked = [], 0
    for path in common.files(top):
        if not (path.endswith(ENDINGS) or path.startswith(SCRIPTS)) or path.startswith(DATA):
            continue
        checked += 1
        raw = common.read(top, path)
        try:
            source = raw.decode("utf-8")
        except UnicodeDecodeError as e:
            problems.append(f"{path}: not UTF-8 at byte {e.start}")
            continue
        if raw and not raw.endswith(b"\n"):
            problems.append(f"{path}: no newline at the end")
        if raw.endswith(b"\n\n"):
            problems.append(f"{path}: empty lines at the end")
        if b"\r" in raw:
            problems.append(f"{path}: carriage return")
        for number, line in enumerate(source.split("\n"), 1):
            if line != line.rstrip() and not path.endswith(".json"):
                problems.append(f"{path}:{number}: white space at the end")
            if "\t" in line and path.endswith((".c", ".h", ".inc", ".py", ".cmake")):
                problems.append(f"{path}:{number}: tab")
            if path.endswith("lint/text.py"):
                continue
            if MACHINE.search(line):
                problems.append(f"{path}:{number}: path of one machine")
            if TODO.search(line) and path.endswith((".c", ".h", ".py", ".cmake", ".inc")):
                problems.append(f"{path}:{number}: a TODO belongs into docs/roadmap.md, with its reason")
    common.finish("text", problems, checked)


main()
