#!/usr/bin/env python3
"""Runs the cases of tests/cli/test_*.py: arguments, standard input, expected exit code and output. Standard library only.

  SOTTO=build/sotto tests/cli/test_args.py [PART OF A CASE'S NAME]

Exit 0 = all passed, 1 = failures, 77 = everything was skipped. A case is a row of the table ROWS or a function in CASES.
Cases that hear speech need models/base or models/tiny.en and are skipped with a message when there is none."""
import os
import re
import subprocess
import sys
import tempfile


class Skip(Exception):
    pass


class Failure(Exception):
    pass


class Result:
    def __init__(self, code, out, err):
        self.code, self.out_bytes, self.err_bytes = code, out, err
        self.out = out.decode("utf-8")   # strict: every output is valid UTF-8
        self.err = err.decode("utf-8")


class Context:
    """What a case gets: a scratch folder as the working directory, and the command."""

    def __init__(self, sotto, source, scratch):
        self.sotto, self.source, self.dir = sotto, source, scratch
        self.env = dict(os.environ)
        for name in ("PIP_INDEX_URL", "PIP_CONFIG_FILE", "HF_ENDPOINT", "XDG_CONFIG_HOME"):
            self.env.pop(name, None)
        self.env["XDG_CACHE_HOME"] = os.path.join(scratch, "cache")
        self.env["HOME"] = scratch
        self.env["no_proxy"] = "127.0.0.1"

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def write(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def exists(self, name):
        return os.path.exists(self.path(name))

    def run(self, *args, stdin=b"", env=None, timeout=300):
        p = subprocess.run([self.sotto, *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.dir,
                           env={**self.env, **(env or {})}, timeout=timeout)
        return Result(p.returncode, p.stdout, p.stderr)

    def start(self, *args, **more):
        return subprocess.Popen([self.sotto, *args], stderr=subprocess.PIPE, cwd=self.dir, env=self.env,
                                **{"stdout": subprocess.PIPE, **more})

    def model(self):
        """Path of the smallest real model that was fetched."""
        for name in ("tiny.en", "base"):
            path = os.path.join(self.source, "models", name)
            if os.path.exists(os.path.join(path, "model.bin")):
                return path
        raise Skip("no model: run sotto get base")

    def base_model(self):
        path = os.path.join(self.source, "models", "base")
        if not os.path.exists(os.path.join(path, "model.bin")):
            raise Skip("no model: run sotto get base")
        return path

    def vad_model(self):
        path = os.path.join(self.source, "models", "silero-vad")
        if not os.path.exists(os.path.join(path, "model.safetensors")):
            raise Skip("no model: run sotto get silero-vad")
        return path

    def sample(self):
        folder = os.path.join(self.source, "models", "samples", "librivox")
        path = os.path.join(folder, "sense_and_sensibility_01_austen_64kb-0880.wav")
        if not os.path.exists(path):
            raise Skip("no recording: run sotto get sample")
        return path

    def check(self, what, message):
        if not what:
            raise Failure(message)

    def equal(self, got, want, what):
        if got != want:
            raise Failure("%s: got %r, expected %r" % (what, got, want))

    def match(self, text, pattern, what):
        if not re.search(pattern, text, re.S | re.M):
            raise Failure("%s does not match %r:\n%s" % (what, pattern, text[-2000:]))


def run_row(c, row):
    """A row: {"args", "stdin"?, "files"?, "exit", "out"?, "err"?, "quiet"?}; out and err are patterns."""
    for name, data in row.get("files", {}).items():
        c.write(name, data)
    r = c.run(*row["args"], stdin=row.get("stdin", b""))
    said = "\nstdout: %s\nstderr: %s" % (r.out[-800:], r.err[-800:])
    c.check(r.code == row["exit"], "exit code %d, expected %d%s" % (r.code, row["exit"], said))
    if "out" in row:
        c.match(r.out, row["out"], "stdout")
    if "err" in row:
        c.match(r.err, row["err"], "stderr")


def main(rows, functions):
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sotto = os.path.abspath(os.environ.get("SOTTO", os.path.join(source, "build", "sotto")))
    if not os.path.exists(sotto):
        print("no program at %s: set SOTTO" % sotto)
        return 1
    failed = passed = skipped = 0
    cases = [("sotto " + " ".join(row["args"]), lambda c, row=row: run_row(c, row)) for row in rows]
    cases += [(f.__name__, f) for f in functions]
    for name, case in cases:
        if len(sys.argv) > 1 and sys.argv[1] not in name:
            continue
        with tempfile.TemporaryDirectory(prefix="sotto-cli-") as scratch:
            try:
                case(Context(sotto, source, scratch))
                passed += 1
            except Skip as e:
                skipped += 1
                print("skipped %s: %s" % (name, e))
            except Exception as e:  # whatever it is, it is this case's failure, and the others still run
                failed += 1
                print("FAILED %s: %s: %s" % (name, type(e).__name__, e))
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return 1 if failed else 77 if skipped and not passed else 0
