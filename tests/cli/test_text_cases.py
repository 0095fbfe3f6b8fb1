#!/usr/bin/env python3
"""Reported faults of programs that write text (tests/cases.tsv), by the command: odd prompts and names, full disks, files that are no
model, numbers of threads, logits that are no numbers."""
import json
import os
import subprocess
import sys

import run_cli

sys.dont_write_bytecode = True
from test_text import CPU, small, text_of, write  # noqa: E402


def any_prompt(c):
    """Prompts of spaces, of bytes that are no text, and far too long ones."""
    for text in (" " * 900, "\n" * 300, "a" * 900, "\u0301" * 200, "\U0001F642" * 100):
        for name in ("llama", "llama-spm", "gemma3"):
            o = text_of(c, "-p", text, "-n", "3", "--ignore-eos", "-c", "2048", model=small(name))
            c.equal([o["prompt"] == text, o["n_tokens"]], [True, 3], "prompt and tokens after %r" % text[:9])
    for data in (b"\xff\xfe\x80", b"\xe2\x82", b"a\x00b", bytes(range(256))):
        o = text_of(c, "-f", "-", "-n", "3", "--ignore-eos", "-c", "2048", stdin=data)
        c.equal(o["n_tokens"], 3, "tokens after bytes that are no text: %r" % data[:9])
        r = c.run("chat", "-m", small(), *CPU, "--template", "chatml", "-n", "3", "-c", "2048", "-q", stdin=data.replace(b"\n", b""))
        c.check(r.code in (0, 1) and (r.code == 0) == (r.err == ""), "chat: exit %d: %s" % (r.code, r.err))
    c.write("long.txt", "the quick brown fox " * 50000)
    r = write(c, "-f", "long.txt", code=1)
    c.match(r.err, r"context full: the prompt has \d{6} tokens, but the context holds 512", "stderr of a million bytes")
    c.equal(r.out, "", "stdout of a million bytes")


def names_of_any_bytes(c):
    """JSON and messages stay valid whatever a model's file is called."""
    for name in ('a "b" \\c', "l\u00efne\nbreak", b"\xff\x01".decode("utf-8", "surrogateescape")):
        path = os.path.join(c.dir, name + ".gguf")
        with open(small(), "rb") as f, open(path, "wb") as copy:
            copy.write(f.read())
        o = text_of(c, "-p", "a", "-n", "1", "--ignore-eos", model=path)
        c.match(o["model"], r"\.gguf$", "name in JSON")
        json.loads(c.run("bench", "-m", path, "--json", "-r", "1", "-p", "2", "-n", "2", *CPU).out)
        os.truncate(path, 1000)
        r = write(c, "-p", "a", code=1, model=path)
        c.match(r.err, r"\.gguf", "name in a message")


def full_disk(c):
    """A text that cannot be written is no success."""
    if not os.path.exists("/dev/full"):
        raise run_cli.Skip("no /dev/full")
    c.write("text.txt", "the quick brown fox jumps over the lazy dog " * 40)
    for args in (("generate", "-p", "a", "-n", "40", "--ignore-eos"), ("generate", "-p", "a", "-n", "4", "--json"),
                 ("tokenize", "-p", "a b c"), ("perplexity", "-f", "text.txt", "-c", "32", "--chunks", "1"), ("chat", "--template", "chatml")):
        with open("/dev/full", "wb") as full:
            p = c.start(args[0], "-m", small(), *(() if args[0] == "tokenize" else CPU), *args[1:], stdout=full, stdin=subprocess.PIPE)
            _, err = p.communicate(b"hello\n", timeout=60)
        c.equal(p.returncode, 1, "exit of %s to a full disk: %s" % (args, err))
        c.match(err.decode(), "cannot write to standard output", "stderr of %s" % (args,))


def what_is_no_model(c):
    """Empty files, pages of errors, archives, folders, files of other kinds and cut ones are refused by every command, by name."""
    with open(small(), "rb") as f:
        whole = f.read()
    files = {"empty.gguf": b"", "page.gguf": b"<!DOCTYPE html><html>404</html>" * 50, "zip.gguf": b"PK\x03\x04" + bytes(500),
             "short.gguf": b"GGUF\x03\0\0\0", "turned.gguf": whole[:4] + whole[4:8][::-1] + whole[8:], "half.gguf": whole[:len(whole) // 2],
             "last.gguf": whole[:-1], "text.gguf": "caf\u00e9".encode() * 100}
    for name, data in files.items():
        c.write(name, data)
    os.mkdir(c.path("folder.gguf"))
    for name in list(files) + ["folder.gguf"]:
        for args in (("generate", "-p", "a"), ("tokenize", "a"), ("bench", "-r", "1"), ("chat",)):
            r = c.run(args[0], "-m", "./" + name, *(() if args[0] == "tokenize" else CPU), *args[1:])
            c.equal([r.code, r.out], [1, ""], "exit and text of %s with %s: %s" % (args[0], name, r.err))
            c.match(r.err, name, "stderr of %s with %s" % (args[0], name))


def any_number_of_threads(c):
    """The same text on 1 to 1000 threads; others are refused."""
    args = ("-p", "the quick brown fox", "-n", "12", "--temperature", "0", "--ignore-eos", "--compute", "f32")
    want = text_of(c, *args)["tokens"]
    for n in ("0", "2", "3", "7", "64", "1000"):
        c.equal(text_of(c, *args, "-t", n)["tokens"], want, "tokens on %s threads" % n)
    for n in ("-1", "10000", "x"):
        write(c, *args, "-t", n, code=2)


def logits_that_are_no_numbers(c):
    """Weights that are no numbers lead to an error and no text, whatever chooses the tokens."""
    with open(small(), "rb") as f:
        data = bytearray(f.read())
    data[-40:-36] = b"\x00\x00\xc0\x7f"
    path = c.write("broken.gguf", bytes(data))
    for args in (("--temperature", "0"), ("--seed", "1"), ("--mirostat", "2"), ("--grammar", 'root ::= "a"*', "--ignore-eos")):
        r = write(c, "-p", "the", "-n", "4", *args, model=path, code=1)
        c.match(r.err, "nan", "stderr with %s" % (args,))
        c.equal(r.out, "", "text with %s" % (args,))


CASES = [any_prompt, names_of_any_bytes, full_disk, what_is_no_model, any_number_of_threads, logits_that_are_no_numbers]


if __name__ == "__main__":
    sys.exit(run_cli.main([], CASES))
