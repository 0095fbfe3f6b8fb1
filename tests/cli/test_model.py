#!/usr/bin/env python3
"""`sotto inspect` and `sotto convert` with a real model; skipped when none was fetched."""
import json
import os
import signal
import sys

import run_cli

TEXT = "(?i)young man"


def inspect(c):
    r = c.run("inspect", c.model())
    c.equal(r.code, 0, "exit: " + r.err)
    c.match(r.out, r": ctranslate2, \d+ tensors, [\d.]+ MB, [\d.]+ M parameters\n  \S+ = ", "stdout")
    c.match(r.out, r"^  encoder\.blocks\.0\.attn\.query\.weight +\S+ +\[384, 384\]|^  encoder\.blocks\.0\.attn\.query\.weight +\S+ +\[512, 512\]",
            "stdout")
    parsed = json.loads(c.run("inspect", "--json", c.model()).out)
    c.equal(parsed["tensor_count"], len(parsed["tensors"]), "tensors")
    c.check("general.architecture" in parsed["metadata"], "metadata: %s" % list(parsed["metadata"]))
    c.check("tensors" not in json.loads(c.run("inspect", "--json", "--no-tensors", c.model()).out), "tensors with --no-tensors")


def convert(c):
    for name, options in (("a.bin", []), ("b.gguf", ["--type", "q5_0"]), ("c.bin", ["-t", "q8_0"])):
        r = c.run("convert", c.model(), name, *options)
        c.equal(r.code, 0, "%s: %s" % (name, r.err))
        r = c.run("transcribe", "-m", "./" + name, "--no-timestamps", c.sample())
        c.equal(r.code, 0, "%s: %s" % (name, r.err))
        c.match(r.out, TEXT, name)
    c.check(os.path.getsize(c.path("c.bin")) < os.path.getsize(c.path("a.bin")) * 1.1, "q8_0 is not smaller")
    r = c.run("convert", c.model(), "a.bin")
    c.equal(r.code, 1, "over an existing file")
    c.match(r.err, "exists; --force", "stderr")
    r = c.run("convert", "b.gguf", "d.bin", "--type", "q4_0")
    c.equal((r.code, c.exists("d.bin")), (1, False), "quantised already")
    c.match(r.err, "quantised already; --force", "stderr")
    r = c.run("convert", "b.gguf", "d.bin", "--type", "q4_0", "--force", "--quiet")
    c.equal((r.code, r.err, c.exists("d.bin")), (0, "", True), "forced")


def onto_itself(c):
    c.equal(c.run("convert", c.model(), "a.bin", "-t", "f16").code, 0, "exit")
    before = c.read("a.bin")
    r = c.run("convert", "a.bin", "a.bin", "--force")
    c.equal(r.code, 1, "exit")
    c.check(c.read("a.bin") == before, "the file changed")


def interrupted(c):
    """Stopped while it writes: the old file stays, and nothing else."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        c.write("old.gguf", "old")
        p = c.start("convert", c.model(), "old.gguf", "-t", "q5_0", "--force")
        while p.poll() is None and os.listdir(c.dir) == ["old.gguf"]:
            pass
        p.send_signal(number)
        p.communicate(timeout=60)
        c.equal(os.listdir(c.dir), ["old.gguf"], "files left")
        # it may have been done before the signal came
        c.check(p.returncode == 0 or (p.returncode, c.read("old.gguf")) == (128 + number, b"old"), "exit %d" % p.returncode)


def folder(c):
    os.makedirs(c.path("in"))
    os.symlink(c.model(), c.path("in", "tiny.en"))
    c.equal(c.run("convert", c.model(), "in/small.bin", "-t", "q5_1").code, 0, "exit")
    c.write("in/notes.txt", "no model")
    r = c.run("convert", "in", "out", "--type", "q8_0")
    c.equal(r.code, 0, "exit: " + r.err)
    c.equal(os.listdir(c.path("out")), ["tiny.en.bin"], "files")
    c.match(r.err, "passed over in/small.bin: quantised already", "stderr")
    c.match(r.err, "passed over in/notes.txt", "stderr")
    os.makedirs(c.path("empty"))
    c.equal(c.run("convert", "empty", "out2").code, 1, "an empty folder")


def unwritable(c):
    r = c.run("convert", c.model(), "no/such/folder/a.bin")
    c.equal(r.code, 1, "exit")
    c.match(r.err, "no/such/folder", "stderr")


def damaged(c):
    c.equal(c.run("convert", c.model(), "a.bin", "-t", "q4_0").code, 0, "exit")
    data = c.read("a.bin")
    for n in (0, 1, 8, 100, len(data) // 2, len(data) - 1):
        c.write("cut.bin", data[:n])
        for args in (["inspect", "cut.bin"], ["transcribe", "-m", "./cut.bin", c.sample()]):
            r = c.run(*args)
            c.equal(r.code, 1, "%s of %d bytes" % (args, n))
            c.match(r.err, "cut.bin", "stderr")


CASES = [inspect, convert, onto_itself, interrupted, folder, unwritable, damaged]

if __name__ == "__main__":
    sys.exit(run_cli.main([], CASES))
