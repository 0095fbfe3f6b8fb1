#!/usr/bin/env python3
"""The benchmarks run and their page is written; skipped where bench/ is not built (script/bench builds it)."""
import os
import subprocess
import sys
import tempfile
import xml.dom.minidom

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "bench"))
import speech  # noqa: E402
import svg  # noqa: E402


def words():
    for reference, transcript, errors in (("a b c", "a b c", 0), ("a b c", "a c", 1), ("a b c", "a x b c", 1), ("a b c", "x b y", 2),
                                          ("a b c", "", 3), ("kitten s", "sitting s now", 2)):
        got = speech.word_errors(reference, transcript, lambda text: text)
        assert got == (errors, len(reference.split())), (reference, transcript, got)


def picture():
    text = svg.bars("a < b & c", "ms", [("one", [("x", 1.5), ("y", 0)]), ("two", [("x", 3)])], (2, "mark"))
    assert len(xml.dom.minidom.parseString(text).getElementsByTagName("rect")) == 1 + 2 + 3


def page(build):
    with tempfile.TemporaryDirectory() as out:
        result = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "report.py"), "--build", build, "--out", out, "--quick"],
                                capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        text = open(os.path.join(out, "performance.md"), encoding="utf-8").read()
        for wanted in ("## Kernels", "## Memory", "GMAC/s", "performance-kernels.svg"):
            assert wanted in text, wanted
        xml.dom.minidom.parse(os.path.join(out, "performance-kernels.svg"))


words()
picture()
build = os.environ.get("SOTTO_BUILD_DIR", os.path.join(ROOT, "build"))
if not os.path.exists(os.path.join(build, "bench_kernels")):
    print("skipped: bench_kernels is not built")
    sys.exit(77)
page(build)
