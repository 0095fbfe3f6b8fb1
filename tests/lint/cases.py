"""tests/cases.tsv: every reported fault has a test or a reason why not, and every test named there exists."""
import os
import re
import common

ROWS = """B01 B02 B03 B04 B05 B06 B07 B08 B09 B10 B11 B15 B16 B18 B19 B20 B22 B23 B24 B25 B26 B27 B30 B31 B32 B33 B34 B35 B37 B38
B40 B41 B43 B44 B45 B49 B50 B51 B52 B53 B55 B57 B58 B59 B60 B62 B63 B64 B66 B67 B69 B70 B71
R01 R02 R04 R05 R06 R08 R09 R10 R11 R12 R14 R16 R17 R18 R19""".split()


def exists(top, program, case):
    text = common.text(top, program)
    if program.endswith(".c"):
        return re.search(r"cmocka_unit_test\w*\(\s*%s\b" % re.escape(case), text)
    name = re.search(r"^def %s\(c" % re.escape(case), text, re.M)
    return re.search(r"\b%s\b" % re.escape(case), text.split("CASES = [")[1]) if name else " " in case and case in text


def main():
    top = common.root()
    problems, seen = [], set()
    for number, line in enumerate(common.text(top, "tests/cases.tsv").split("\n"), 1):
        if not line or line[0] == "#":
            continue
        fields = line.split("\t")
        if len(fields) != 4 or not all(fields):
            problems.append(f"tests/cases.tsv:{number}: {len(fields)} fields, expected 4: {line}")
            continue
        row, _, program, case = fields
        seen.add(row)
        if row not in ROWS:
            problems.append(f"tests/cases.tsv:{number}: row {row} is unknown")
        if program == "-":
            continue
        if not os.path.exists(os.path.join(top, program)):
            problems.append(f"tests/cases.tsv:{number}: there is no {program}")
        elif not exists(top, program, case):
            problems.append(f"tests/cases.tsv:{number}: {program} has no case \"{case}\"")
    problems += [f"tests/cases.tsv: row {row} has neither a test nor a reason" for row in ROWS if row not in seen]
    common.finish("cases", problems, len(seen))


main()
