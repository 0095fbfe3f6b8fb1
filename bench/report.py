#!/usr/bin/env python3
"""Runs every benchmark and writes one page about it: report.py --build BUILD --out FOLDER [--quick] [--sizes tiny,base,small]
[--minutes 5] [--runs 2] [--reuse].

FOLDER gets performance.md and its plots. What was measured is kept as JSON in BUILD/bench; --reuse writes the page from what is
there. --quick shows in less than a minute that everything runs: its figures mean nothing, and no model is needed. What
cannot run (no numpy, no peers) is left out and said. script/bench builds and fetches, then calls this.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import svg

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMPUTE = ("int8", "bf16", "f32")
TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
# Levels of ours, those of oneDNN, and the processor's feature that both need.
ONEDNN = {"amx": ("avx512_core_amx", "amx"), "vnni": ("avx512_core_bf16", "avx512-bf16"), "avx512vnni": ("avx512_core_vnni", "avx512-vnni"),
          "v4": ("avx512_core", "avx512"), "avxvnni": ("avx2_vnni", "avx-vnni"), "v3": ("avx2", "avx2")}
MODES = ("greedy", "beam5", "greedy-batch8", "beam5-batch8")


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Bench:
    def __init__(self, args):
        self.args, self.notes = args, []
        self.store = os.path.join(args.build, "bench")
        self.sotto = os.path.join(args.build, "sotto")
        os.makedirs(self.store, exist_ok=True)

    def measure(self, name, call):
        """What call() returns, kept in a file; None when it cannot run."""
        path = os.path.join(self.store, name + ".json")
        if self.args.reuse:
            return json.load(open(path, encoding="utf-8")) if os.path.exists(path) else None
        start = time.time()
        try:
            value = call()
        except (OSError, subprocess.CalledProcessError, ValueError) as e:
            detail = (getattr(e, "stderr", None) or str(e)).strip().split("\n")[-1]
            self.notes.append(f"{name} could not run: {detail}".replace(ROOT + "/", ""))
            say(self.notes[-1])
            return None
        say(f"{name}: {time.time() - start:.0f} s")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(value, f, indent=1)
        return value

    def kernels(self):
        command = [os.path.join(self.args.build, "bench_kernels"), "--json"] + (["--quick"] if self.args.quick else ["--level", "all"])
        return [json.loads(line) for line in output(*command).splitlines()]

    def model(self):
        extra = ["--runs", "1", "--steps", "4", "--rows", "5"] if self.args.quick else ["--steps", "64"]
        name = self.quick_model() if self.args.quick else os.path.join(ROOT, "models", "base")
        return {c: json.loads(output(self.sotto, "bench", "-m", name, "--compute", c, "--json", *extra)) for c in COMPUTE}

    def python(self):
        own = os.path.join(ROOT, ".venv", "bin", "python")
        if self.args.python:
            return self.args.python
        return own if os.path.exists(own) else sys.executable

    def sized(self, size):
        path = os.path.join(self.store, f"{size}-q4_0.gguf")
        if not os.path.exists(path):
            output(self.python(), os.path.join(ROOT, "tools", "make_sized_model.py"), size, path)
        return path

    def quick_model(self):
        return self.sized("tiny")

    def sizes(self):
        rows = []
        for size in self.args.sizes.split(","):
            source = self.sized(size)
            for dtype in TYPES if not self.args.quick else ("q8_0",):
                path = os.path.join(self.store, f"size-{dtype}.gguf")
                output(self.sotto, "convert", source, path, "--type", dtype, "--quiet", "--force")
                values = json.loads(output(self.sotto, "bench", "-m", path, "--runs", "1", "--rows", "5", "--steps", "24", "--json"))
                rows.append({"size": size, "type": dtype, "mb": os.path.getsize(path) / 1e6, **values})
                os.remove(path)
        return rows

    def blas(self):
        return json.loads(output(self.python(), os.path.join(ROOT, "bench", "blas.py")))

    def onednn(self):
        """By level: the best one in all sizes."""
        program = os.path.join(self.args.build, "bench_onednn")
        if not os.path.exists(program):
            raise ValueError("it was not built: libdnnl-dev of version 2 is not installed")
        best = next(device for device in json.loads(output(self.sotto, "devices", "--json")) if device["kind"] == "cpu")["features"].split()
        got = {}
        for level, (isa, needs) in ONEDNN.items():
            if needs in best:
                got[level] = [json.loads(line) for line in output(program, "--isa", isa, *(["--sizes", "base"] if got else [])).splitlines()]
        return got

    def start(self):
        return json.loads(output(sys.executable, os.path.join(ROOT, "bench", "start.py"), "--sotto", self.sotto))

    def peers(self):
        path = os.path.join(self.store, "peers-rows.json")
        command = [self.python(), os.path.join(ROOT, "bench", "peers.py"), "--sotto", self.sotto, "--json", path,
                   "--minutes", str(self.args.minutes), "--runs", str(self.args.runs)]
        output(*command)
        return json.load(open(path, encoding="utf-8"))

    def plot(self, name, text):
        with open(os.path.join(self.args.out, name), "w", encoding="utf-8") as f:
            f.write(text)
        return f"![{name}]({name})\n"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]) + "\n"


def number(row, key, form=".1f"):
    return format(row[key], form) if row and row.get(key) is not None else ""


def machine(bench):
    device = next(d for d in json.loads(output(bench.sotto, "devices", "--json")) if d["kind"] == "cpu")
    memory = next((line for line in open("/proc/meminfo", encoding="utf-8") if line.startswith("MemTotal")), "") if os.path.exists("/proc/meminfo") else ""
    commit = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%h of %cs"], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run(["git", "-C", ROOT, "status", "--porcelain", "src", "programs", "include"], capture_output=True, text=True).stdout.strip()
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    return (f"- processor: {device['name']}, {len(os.sched_getaffinity(0))} threads at hand ({device['features']})\n"
            f"- memory: {int(memory.split()[1]) / 1e6:.1f} GB\n" if memory else "") + (
            f"- commit {commit or 'unknown'}{', with changes' if changed else ''}; {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC; load before the page was written: {load}\n")


def other_machines(out):
    """Links to the pages of other machines: docs/performance.md and those in folders beside it."""
    docs = os.path.join(ROOT, "docs")
    pages = [os.path.join(docs, name, "performance.md") for name in ["."] + sorted(os.listdir(docs))]
    links = []
    for page in pages:
        if not os.path.exists(page) or os.path.samefile(os.path.dirname(page), out):
            continue
        name = next((line.split(": ", 1)[1].split(",")[0] for line in open(page, encoding="utf-8") if line.startswith("- processor: ")), "another")
        folder = os.path.basename(os.path.dirname(page))  # one processor's name may be that of several kinds
        links.append(f"[{name}{'' if folder == '.' else ', ' + folder}]({os.path.relpath(page, out)})")
    return f"- other machines: {', '.join(links)}\n" if links else ""


def onednn_beside(gemm, onednn):
    """Ours are the products of f32 rows, which are converted on the way; theirs begin with rows of the product's type."""
    names = ("f32", "bf16", "i8")
    lines = []
    for level, theirs in (onednn or {}).items():
        for size, shape in dict.fromkeys((r["size"], r["shape"]) for r in theirs):
            cells = []
            for t in names:
                pair = [next((r["rate"] for r in rows if (r["size"], r["shape"], r["type"]) == (size, shape, t) and r.get("level", level) == level), None)
                        for rows in (gemm, theirs)]
                cells += [f"{pair[0]:.0f}", f"{pair[1]:.0f}", f"{pair[0] / pair[1]:.2f}"] if all(pair) else [""] * 3
            lines.append([level, size, shape] + cells)
    if not lines:
        return ""
    head = ["level", "size", "shape"] + [c for t in names for c in (t, "oneDNN", "ratio")]
    return ("### Beside oneDNN, one thread: GMAC/s\n\nSotto's products take rows in f32, convert them and give f32 with a bias; those of oneDNN 2 take rows that lie ready in "
            "the type, with weights in the order it likes best. Without VNNI its 8-bit sums saturate at 16 bits, which is faster, and wrong for large numbers; ours do not.\n\n" + table(head, lines))


def page_kernels(bench, rows, blas, onednn):
    if not rows:
        return ""
    best = rows[-1]["level"]
    text = ["## Kernels", "One thread. Products of many rows as a fraction of a loop of the instruction in the last column, with accumulators that stay in "
            "registers, measured before each sample; products of few rows and attention over cells as a fraction of reading the same "
            "bytes; rows of a fraction of copying them. Types that a level has no instruction for are computed with what is named.\n"]
    sizes = list(dict.fromkeys(r["size"] for r in rows if r["level"] == best))

    def cell(kind, r):
        return f"{r['rate']:.0f}, {100 * r['fraction']:.0f} %" if r and "fraction" in r else ""

    text.append(f"### Products of 1500 rows at level {best}: GMAC/s, fraction of the peak\n")
    gemm = [r for r in rows if r["op"] == "gemm"]
    shapes = {"d x d": lambda m, n, k: n == k, "4d x d": lambda m, n, k: n > k, "d x 4d": lambda m, n, k: n < k}
    types = list(dict.fromkeys(r["type"] for r in gemm))
    lines = []
    for size in sizes:
        for label, test in shapes.items():
            found = {r["type"]: r for r in gemm if r["level"] == best and r["size"] == size and test(*map(int, r["shape"].split("x")))}
            lines.append([size, label] + [cell("gemm", found.get(t)) for t in types])
    text.append(table(["size", "shape"] + types, lines))
    ceilings = {t: next((r for r in gemm if r["level"] == best and r["type"] == t), {}) for t in types}
    text.append("The peaks: " + ", ".join(f"{t} {r['ceiling_name']} {r['ceiling']:.0f}" for t, r in ceilings.items() if "ceiling" in r) + " GMAC/s.\n")
    theirs = {(r["size"], r["shape"]): r["rate"] for r in blas or []}
    both = [(r, theirs[r["size"], r["shape"]]) for r in gemm if r["level"] == best and r["type"] == "f32" and (r["size"], r["shape"]) in theirs]
    if both:
        text.append("### f32 beside OpenBLAS (numpy's), one thread: GMAC/s\n")
        text.append(table(["size", "shape", "sotto", "OpenBLAS", "ratio"],
                          [[r["size"], r["shape"], f"{r['rate']:.1f}", f"{o:.1f}", f"{r['rate'] / o:.2f}"] for r, o in both]))
    text.append(onednn_beside(gemm, onednn))
    levels = list(dict.fromkeys(r["level"] for r in rows))
    shown = "base" if "base" in sizes else sizes[0]
    if len(levels) > 1:
        text.append(f"### Every level, {shown}, 4d x d: GMAC/s, fraction of the level's own peak\n")
        lines = []
        for level in levels:
            found = {r["type"]: r for r in gemm if r["level"] == level and r["size"] == shown and shapes["4d x d"](*map(int, r["shape"].split("x")))}
            names = dict.fromkeys(found[t].get("ceiling_name", "") for t in types if t in found)
            lines.append([level] + [cell("gemm", found.get(t)) for t in types] + [", ".join(names)])
        text.append(table(["level"] + types + ["peaks of"], lines))
    groups = [(f"{t} {s}", [(label, 100 * r["fraction"]) for label, test in shapes.items() for r in gemm
                            if r["level"] == best and r["size"] == s and r["type"] == t and "fraction" in r and test(*map(int, r["shape"].split("x")))])
              for t in types for s in sizes if s in ("base", "large-v3", sizes[0] if bench.args.quick else "base")]
    text.append(bench.plot("performance-kernels.svg", svg.bars(f"Products of 1500 rows, level {best}", "percent of the peak of the instruction", groups, (100, "peak"))))
    text.append(f"### Products of few rows at level {best}: GB/s, fraction of reading\n")
    skinny = [r for r in rows if r["op"] == "skinny" and r["level"] == best]
    lines = []
    for size in sizes:
        for shape in dict.fromkeys(r["shape"] for r in skinny if r["size"] == size):
            lines.append([size, shape] + [cell("skinny", next((r for r in skinny if r["size"] == size and r["shape"] == shape and r["type"] == t), None)) for t in types])
    text.append(table(["size", "shape"] + types, lines))
    text.append("### Attention and rows\n")
    lines = [[r["level"], r["op"], r["type"], r["size"], r["shape"], f"{r['rate']:.1f} {r['unit']}", f"{100 * r.get('fraction', 0):.0f} %", r.get("ceiling_name", "")]
             for r in rows if r["op"] not in ("gemm", "skinny")]
    text.append(table(["level", "operation", "numbers", "size", "shape", "rate", "fraction", "of"], lines))
    return "\n".join(text) + "\n"


def page_model(results):
    if not results:
        return ""
    keys = ("load_ms", "mel_ms", "encoder_ms", "prompt_ms", "decoder_ms", "decoder_5_ms", "decoder_40_ms", "step_mb", "read_gb_s", "bandwidth_used", "peak_rss_mb", "weights_mb", "cross_cache_mb", "compute_encode_mb")
    first = next(iter(results.values()))
    head = (f"## Model\n`sotto bench -m base --steps 64`, {first['threads']} threads, by `--compute`. A window of 30 s, a full prompt, a step of the decoder "
            "with 1, 5 and 40 rows; memory in MB.\n\n")
    return head + table(["compute"] + [k.replace("_", " ") for k in keys], [[c] + [number(r, k, ".2f" if k == "bandwidth_used" else ".1f") for k in keys] for c, r in results.items()]) + "\n"


def page_start(rows):
    if not rows:
        return ""
    head = ("## The first words\n`bench/start.py`: seconds of a whole process that transcribes a clip of 11 s, of opening the model and hearing the clip alone, and of each "
            "further clip in the same process; opening and hearing as a part of 1.15 times a further clip and 0.1 s.\n\n")
    return head + table(["compute", "process s", "opened and heard s", "further s", "part"],
                        [[r["compute"]] + [number(r, k, ".2f") for k in ("first_s", "opened_s", "further_s", "of_allowed")] for r in rows]) + "\n"


def page_sizes(rows):
    if not rows:
        return ""
    head = ("## Every size and type\nSeeded random weights (`tools/make_sized_model.py`, `sotto convert`), automatic compute type: ms of an encoder window, of a "
            "decoder step with one row and with five, and peak memory. `script/bench --sizes tiny,base,small,medium,large-v3` measures the large ones, too.\n\n")
    return head + table(["size", "type", "file MB", "compute", "encoder ms", "decoder ms", "decoder ms, 5 rows", "peak MB"],
                        [[r["size"], r["type"], f"{r['mb']:.0f}", r["compute"], number(r, "encoder_ms"), number(r, "decoder_ms", ".2f"), number(r, "decoder_5_ms", ".2f"),
                          number(r, "peak_rss_mb", ".0f")] for r in rows]) + "\n"


def page_matmul(matmul, memory):
    text = ""
    if matmul:
        rows = matmul["matmul"]
        types = list(dict.fromkeys(r["type"] for r in rows))
        lines = []
        for size in dict.fromkeys(r["size"] for r in rows):
            for count in dict.fromkeys(r["rows"] for r in rows):
                here = {r["type"]: r for r in rows if r["size"] == size and r["rows"] == count}
                any_row = next(iter(here.values()))
                lines.append([size, f"{count} x {any_row['n']} x {any_row['k']}"] + [number(here.get(t), "gmac_s", ".0f") for t in types])
        text += f"## Products through graphs\n`sotto bench --matmul`, {matmul['backend']}: GMAC/s by wall clock.\n\n" + table(["size", "shape"] + types, lines) + "\n"
    if memory:
        text += (f"## Memory\n`sotto bench --memcpy`, {memory['threads']} threads, ordinary pages (weights lie in huge ones where the system has them): GB/s.\n\n"
                 + table(["KiB", "read", "copied"], [[r["bytes"] >> 10, number(r, "read_gb_s"), number(r, "copy_gb_s")] for r in memory["memcpy"]]) + "\n")
    return text


def page_peers(bench, peers):
    if not peers:
        return ""
    rows = peers["rows"]
    text = [f"## Beside other programs\n`bench/peers.py`, {peers['threads']} threads: a recording of {peers['seconds']:.0f} s and {peers['words']} words ({peers['what']}), "
            "model `base`. Runs alternate, every one in a process of its own; times are medians without loading. The ratio is the time of that program to that of Sotto "
            "with int8 in the same mode: above 1 Sotto is faster. Memory is the peak of the process. \"five rows\" are beams that hear noise and have little "
            "in common; \"step ms\", of the recording, is all that is not mel, encoder or prompt, by the number of steps: also choosing tokens.\n"]
    steps = [r for r in rows if r["mode"] == "steps"]
    text.append(table(["program", "numbers", "encoder window ms", "ratio", "decoder step ms", "ratio", "five rows ms", "runs"],
                      [[r["program"], r["type"], number(r, "encoder_ms", ".0f"), number(r, "ratio_encoder_ms", ".2f"), number(r, "decoder_ms", ".2f"),
                        number(r, "ratio_decoder_ms", ".2f"), number(r, "decoder_5_ms", ".2f"), r["runs"]] for r in steps]))
    groups = []
    for mode in MODES:
        mine = [r for r in rows if r["mode"] == mode]
        if not mine:
            continue
        text.append(f"### {mode}\n")
        text.append(table(["program", "numbers", "s", "times real time", "ratio", "word errors", "step ms", "peak MB", "runs"],
                          [[r["program"], r["type"], number(r, "seconds"), number(r, "real_time"), number(r, "ratio_seconds", ".2f"), f"{r['errors']}/{r['words']}",
                            number(r, "step_ms", ".2f"), number(r, "peak_mb", ".0f"), r["runs"]] for r in mine]))
        groups.append((mode, [(f"{r['program']} {r['type']}", r["real_time"]) for r in mine]))
    text.append(bench.plot("performance-peers.svg", svg.bars("A recording of five minutes, model base", "times real time", groups)))
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--out", default=os.path.join(ROOT, "docs"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--sizes", default="tiny,base,small")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--python", help="one with numpy and the other programs; .venv's if there is one")
    parser.add_argument("--skip", default="", help="stages to leave out, as peers,sizes")
    args = parser.parse_args()
    if args.quick:
        args.sizes = "tiny"
    os.makedirs(args.out, exist_ok=True)
    bench, skip = Bench(args), args.skip.split(",")
    stages = {"model": bench.model, "start": bench.start, "peers": bench.peers, "kernels": bench.kernels, "blas": bench.blas, "onednn": bench.onednn, "sizes": bench.sizes,
              "matmul": lambda: json.loads(output(bench.sotto, "bench", "--matmul", "--json")),
              "memcpy": lambda: json.loads(output(bench.sotto, "bench", "--memcpy", "--json"))}
    if args.quick:
        del stages["start"], stages["peers"], stages["matmul"], stages["blas"], stages["onednn"]
    got = {name: bench.measure(name, call) for name, call in stages.items() if name not in skip}
    text = ("# Performance\n\nWritten by `script/bench`, which runs everything below in one go; the figures of another machine, or another hour, differ: "
            "compare within the page.\n\n" + machine(bench) + other_machines(args.out) + "\n"
            "```sh\nscript/bench            # this page; --out FOLDER writes it there\nscript/bench peers      # the other programs alone\nscript/bench kernels --level all\nscript/bench command\n```\n\n"
            + page_peers(bench, got.get("peers")) + page_model(got.get("model")) + page_start(got.get("start")) + page_sizes(got.get("sizes")) + page_kernels(bench, got.get("kernels"), got.get("blas"), got.get("onednn"))
            + page_matmul(got.get("matmul"), got.get("memcpy")))
    if bench.notes:
        text += "## Left out\n" + "".join(f"- {n}\n" for n in bench.notes)
    with open(os.path.join(args.out, "performance.md"), "w", encoding="utf-8") as f:
        f.write(text.rstrip("\n") + "\n")
    say(f"wrote {os.path.join(args.out, 'performance.md')}")
    return 1 if args.quick and bench.notes and any("kernels" in n or "memcpy" in n for n in bench.notes) else 0


if __name__ == "__main__":
    sys.exit(main())
