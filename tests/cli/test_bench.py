#!/usr/bin/env python3
"""The benchmarks run, also beside llama-bench, and their page is written; the page is skipped where bench/ is not built (script/bench builds it)."""
import json
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


FAKE = """#!%s
import json, sys
if "--repack" not in sys.argv:
    sys.exit("no --repack")
print(json.dumps([{"n_prompt": 16, "n_gen": 0, "n_depth": 0, "avg_ts": 100.0}, {"n_prompt": 0, "n_gen": 4, "n_depth": 0, "avg_ts": 10.0}]))
"""


def beside_llama_bench(sotto):
    """bench/peers.py --llama to its end, with a program in llama-bench's place that tells what it is to tell."""
    with tempfile.TemporaryDirectory() as folder:
        model, fake, out = (os.path.join(folder, name) for name in ("llama.gguf", "llama-bench", "out.json"))
        subprocess.run([sys.executable, os.path.join(ROOT, "tools", "make_gguf.py"), "llama", model], check=True)
        with open(fake, "w", encoding="utf-8") as f:
            f.write(FAKE % sys.executable)
        os.chmod(fake, 0o755)
        command = [sys.executable, os.path.join(ROOT, "bench", "peers.py"), "--llama", model, "--sotto", sotto, "--llama-bench", folder,
                   "--prompt", "16", "--generate", "4", "--runs", "2", "--repeat", "1", "--threads", "1", "--json", out]
        result = subprocess.run([*command, "--llama-args=--repack 0"], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        assert "| llama.gguf | tg4 |" in result.stdout, result.stdout
        with open(out, encoding="utf-8") as f:
            rows = json.load(f)["models"][0]["rows"]
        assert [(r["test"], r["llama.cpp"]) for r in rows] == [("pp16", 100.0), ("tg4", 10.0)], rows
        assert rows[1]["bandwidth_used"] > 0 and all(r["ratio"] == r["sotto"] / r["llama.cpp"] for r in rows), rows
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 1 and "llama-bench -m" in result.stderr and "no --repack" in result.stderr, result.stderr


words()
picture()
if os.environ.get("SOTTO"):
    beside_llama_bench(os.environ["SOTTO"])
build = os.environ.get("SOTTO_BUILD_DIR", os.path.join(ROOT, "build"))
if not os.path.exists(os.path.join(build, "bench_kernels")):
    print("skipped: bench_kernels is not built")
    sys.exit(77)
page(build)
