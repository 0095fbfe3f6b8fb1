"""A line for each test that the emulated machine has run, and what a failing one printed.

    report.py "LEVEL ..." "TEST ..." <what the machine prints, from tests/emulate/init.sh

Exit code 0 only if the machine has every level, nothing failed and something ran; what did not end has failed."""
import sys


def main():
    levels, tests = sys.argv[1].split(), sys.argv[2].split()
    here, text, done = [], [], {"passed": 0, "failed": 0, "skipped": 0}
    for line in sys.stdin:
        words = line.split()
        if line.startswith("levels of this machine:"):
            here = words
        if words[:1] == ["BEGIN"]:
            text = []
        elif words[:1] == ["END"] and len(words) == 4:
            result = {"0": "passed", "77": "skipped"}.get(words[3], "failed")
            done[result] += 1
            print(f"{words[1]} {words[2]}: {result}", *(text if result == "failed" else []), sep="\n", flush=True)
        else:
            text.append(line.rstrip())
    lacks = [level for level in levels if level not in here]
    for level in lacks:
        print(f"the emulated machine does not have {level}")
    left = len(levels) * len(tests) - sum(done.values())
    if left:
        print(f"the machine stopped before {left} tests; its last lines:", *text, sep="\n")
    print(f"emulate-x86: {done['passed']} passed, {done['failed'] + left} failed, {done['skipped']} skipped")
    sys.exit(1 if lacks or left or done["failed"] or not done["passed"] else 0)


main()
