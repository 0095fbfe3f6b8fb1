#!/usr/bin/env python3
"""generate, chat, tokenize, perplexity and bench of models that write text: usage, exit codes, seeds, contexts, signals, pipes.

Most cases use a small seeded model that tools/make_gguf.py writes, whose texts mean nothing. Cases about real texts need
models/smollm2-135m (sotto get smollm2-135m) and are skipped without it."""
import atexit
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import run_cli

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CPU = ("--device", os.environ.get("SOTTO_TEST_DEVICE", "cpu"), "-t", "1")

ROWS = [
    {"args": ["generate"], "exit": 2, "err": "^usage: sotto generate .*--prompt TEXT or --prompt-file FILE is missing"},
    {"args": ["generate", "-p", "a", "-f", "b"], "exit": 2, "err": "exclude each other"},
    {"args": ["generate", "-p", "a", "extra"], "exit": 2, "err": 'unexpected argument "extra"'},
    {"args": ["generate", "-p", "a", "-n", "-2"], "exit": 2, "err": "whole number from -1"},
    {"args": ["generate", "-p", "a", "-c", "-1"], "exit": 2, "err": "whole number from 0"},
    {"args": ["generate", "-p", "a", "--temperature", "-1"], "exit": 2, "err": "number from 0"},
    {"args": ["generate", "-p", "a", "--temp", "nan"], "exit": 2, "err": "number from 0"},
    {"args": ["generate", "-p", "a", "--top-p", "1.5"], "exit": 2, "err": "number from 0 to 1"},
    {"args": ["generate", "-p", "a", "--mirostat", "1"], "exit": 2, "err": "one of: 0 2"},
    {"args": ["generate", "-p", "a", "--logit-bias", "12"], "exit": 2, "err": "--logit-bias"},
    {"args": ["generate", "-p", "a", "--logit-bias", "-1+2"], "exit": 2, "err": "--logit-bias"},
    {"args": ["generate", "-p", "a", "--logit-bias", "12+inf"], "exit": 2, "err": "--logit-bias"},
    {"args": ["generate", "-p", "a", "--logit-bias", "12+x"], "exit": 2, "err": "--logit-bias"},
    {"args": ["generate", "-p", "a", "--stop", ""], "exit": 2, "err": "--stop: the text is empty"},
    {"args": ["generate", "-p", "a", "--system", "b"], "exit": 2, "err": "--system goes with --chat"},
    {"args": ["generate", "-p", "a", "--grammar", "root ::= \"a\"", "--json-schema", "{}"], "exit": 2, "err": "exclude each other"},
    {"args": ["generate", "-p", "a", "--session", "-"], "exit": 2, "err": "not the name of a file"},
    {"args": ["generate", "-p", "a", "--json", "--echo"], "exit": 2, "err": "exclude each other"},
    {"args": ["generate", "-p", "a", "-ctk", "q4_0"], "exit": 2, "err": "one of: auto f16 f32 bf16 q8_0"},
    {"args": ["generate", "-p", "a", "-ng", "-dev", "reference"], "exit": 2, "err": "exclude each other"},
    {"args": ["generate", "-p", "a", "-m", "no-such-model"], "exit": 1, "err": 'no model "no-such-model"'},
    {"args": ["generate", "-p", "a", "-m", "./no/such"], "exit": 1, "err": "no/such"},
    {"args": ["generate", "-p", "a", "-m", "smollm2-135m"], "exit": 1, "err": "sotto get smollm2-135m"},
    {"args": ["generate", "-f", "missing.txt"], "exit": 1, "err": "missing.txt"},
    {"args": ["generate", "-p", "a", "-m", "./bad.gguf"], "files": {"bad.gguf": b"GGUF" + b"\xff" * 40}, "exit": 1, "err": "bad.gguf"},
    {"args": ["chat", "extra"], "exit": 2, "err": "unexpected argument"},
    {"args": ["chat", "--template", "dance"], "exit": 2, "err": '"dance" is not one of: chatml .*command-r'},
    {"args": ["generate", "--chat", "-p", "a", "--template", "dance"], "exit": 2, "err": '"dance" is not one of: chatml .*command-r'},
    {"args": ["generate", "-p", "a", "--device", "nosuch"], "exit": 2, "err": 'device "nosuch": expected auto or one of cpu'},
    {"args": ["generate", "-p", "a", "--device", "cpu,nosuch:1"], "exit": 2, "err": 'device "nosuch:1": expected'},
    {"args": ["bench", "--device", "nosuch"], "exit": 2, "err": 'device "nosuch": expected'},
    {"args": ["chat", "--load", ""], "exit": 2, "err": "--load: the name is empty"},
    {"args": ["tokenize", "a", "-f", "b"], "exit": 2, "err": "exclude each other"},
    {"args": ["tokenize", "a", "--special"], "exit": 2, "err": "--special goes with --decode"},
    {"args": ["tokenize", "--decode", "1", "--ids"], "exit": 2, "err": "exclude each other"},
    {"args": ["perplexity"], "exit": 2, "err": "--file FILE is missing"},
    {"args": ["perplexity", "-f", "a", "--chunks", "0"], "exit": 2, "err": "nothing to measure"},
    {"args": ["perplexity", "-f", "a", "--stride", "512"], "exit": 2, "err": "not less than the context"},
    {"args": ["perplexity", "-f", "missing.txt"], "exit": 1, "err": "missing.txt"},
    {"args": ["generate", "-p", "a", "--logprobs", "3"], "exit": 2, "err": "--logprobs goes with --json"},
    {"args": ["imatrix"], "exit": 2, "err": "--file FILE is missing"},
    {"args": ["imatrix", "-f", "a", "-o", "-"], "exit": 2, "err": "not the name of a file"},
    {"args": ["bench", "--prompt", "12,"], "exit": 2, "err": "--prompt.*list"},
    {"args": ["bench", "--depth", "x"], "exit": 2, "err": "--depth.*list"},
    {"args": ["get", "http://127.0.0.1:1/x.gguf"], "exit": 2, "err": "--sha256 HEX is missing"},
    {"args": ["get", "http://127.0.0.1:1/x.gguf", "base", "--sha256", "0" * 64], "exit": 2, "err": "one URL at a time"},
]


# ---- models ----

_folder = None


def small(name="llama"):
    """Path of a model of tools/make_gguf.py, written once."""
    global _folder
    if _folder is None:
        _folder = tempfile.mkdtemp(prefix="sotto-small-")
        atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    path = os.path.join(_folder, name + ".gguf")
    if not os.path.exists(path):
        subprocess.run([sys.executable, os.path.join(ROOT, "tools", "make_gguf.py"), name, path], check=True,
                       env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    return path


def real():
    folder = os.path.join(ROOT, "models", "smollm2-135m")
    if not os.path.isdir(folder) or not any(f.endswith(".gguf") for f in os.listdir(folder)):
        raise run_cli.Skip("no model: run sotto get smollm2-135m")
    return folder


def write(c, *args, model=None, code=0, **more):
    r = c.run("generate", "-m", model or small(), *CPU, *args, **more)
    c.equal(r.code, code, "exit of generate %s: %s" % (args, r.err))
    return r


def text_of(c, *args, **more):
    return json.loads(write(c, "--json", "-q", *args, **more).out)


# ---- generate ----

def seeds(c):
    """Same seed, same text; another one, another text; without one it is told and gives the text again."""
    a, b, other = (text_of(c, "-p", "the quick", "-n", "24", "--ignore-eos", "--seed", s) for s in ("7", "7", "8"))
    c.equal(a["text"], b["text"], "text of the same seed")
    c.equal(a["tokens"], b["tokens"], "tokens of the same seed")
    c.check(a["tokens"] != other["tokens"], "another seed gave the same tokens")
    r = write(c, "-p", "the quick", "-n", "24", "--ignore-eos")
    c.match(r.err, r"seed \d+", "stderr")
    seed = r.err.split("seed ")[1].split(";")[0]
    c.equal(write(c, "-p", "the quick", "-n", "24", "--ignore-eos", "--seed", seed).out, r.out, "text of the seed that was told")


def only_the_text(c):
    r = write(c, "-p", "over the", "-n", "12", "--temperature", "0", "--quiet")
    c.equal(r.err, "", "stderr with --quiet")
    c.check("over the" not in r.out[:8], "the prompt is printed: %r" % r.out)
    echo = write(c, "-p", "over the", "-n", "12", "--temperature", "0", "--quiet", "--echo")
    c.equal(echo.out, "over the" + r.out, "text with --echo")
    told = write(c, "-p", "over the", "-n", "12", "--temperature", "0")
    c.equal(told.out, r.out, "text without --quiet")
    c.match(write(c, "-p", "the", "-n", "1", "--ignore-eos").err, r"prompt 1 token \(1 computed\).*text 1 token,", "stderr of one token")
    c.match(told.err, r"prompt \d+ tokens.*text 12 tokens.*ended by: length", "stderr")
    again = write(c, "-f", "-", "-n", "12", "--temperature", "0", "--quiet", stdin=b"over the\n")
    c.equal(again.out, r.out, "text of the same prompt from standard input")


def as_json(c):
    o = text_of(c, "-p", "the \"quick\"", "-n", "9", "--ignore-eos", "--seed", "1")
    c.equal(o["prompt"], "the \"quick\"", "prompt")
    c.equal([o["n_tokens"], len(o["tokens"]), o["stop_reason"], o["seed"]], [9, 9, "length", 1], "what came")
    greedy = text_of(c, "-p", "the", "-n", "5", "--ignore-eos", "--temperature", "0", "--logprobs", "3")
    c.equal([len(p) for p in greedy["logprobs"]], [3] * 5, "places")
    for token, place in zip(greedy["tokens"], greedy["logprobs"]):
        values = [p["logprob"] for p in place]
        c.check(token in [p["id"] for p in place] and values == sorted(values, reverse=True) and values[0] < 0, "place: %s" % place)
    for key in ("prompt_tps", "generation_tps", "peak_rss_mb", "load_s"):
        c.check(o["timings"][key] >= 0, key)


def valid_characters(c):
    """At a high temperature bytes come that are no characters: what is printed is UTF-8 all the same (checked by run)."""
    for seed in range(4):
        for name in ("llama", "llama-spm"):
            write(c, "-p", "a", "-n", "60", "--ignore-eos", "--temp", "9", "--top-k", "0", "--top-p", "1", "--min-p", "0",
                  "-s", str(seed), model=small(name))


def stop_strings(c):
    plain = text_of(c, "-p", "the", "-n", "40", "--temperature", "0", "--ignore-eos")["text"]
    word = plain[len(plain) // 2:len(plain) // 2 + 4]
    o = text_of(c, "-p", "the", "-n", "40", "--temperature", "0", "--ignore-eos", "--stop", word, "--stop", "@@@@")
    c.equal(o["text"], plain[:plain.index(word)], "text before %r" % word)
    c.equal(o["stop_reason"], "stop", "reason")


def biased(c):
    o = text_of(c, "-p", "the", "-n", "5", "--logit-bias", "65+1000000", "--ignore-eos", "--temperature", "0")
    c.equal(o["tokens"], [65] * 5, "tokens when one is wanted")
    r = write(c, "-p", "the", "--logit-bias", "99999+1", code=2)
    c.match(r.err, "token 99999 is not one of the model's 320", "stderr")


def contexts(c):
    long = "the quick brown fox jumps over the lazy dog " * 12
    n = int(c.run("tokenize", "-m", small(), "--count", long).out)
    r = write(c, "-p", long, "-c", "32", code=1)
    c.match(r.err, "the prompt has %d tokens, but the context holds 32: give --ctx %d$" % (n, n + 256), "stderr")
    c.equal(r.out, "", "stdout")
    r = write(c, "-p", "the", "-c", "32", "-n", "100", "--ignore-eos", code=1)
    c.match(r.err, "context full: it holds 32 tokens.*of 100 were written.*--context-shift", "stderr")
    c.check(len(r.out) > 0, "what fits is not printed")
    o = text_of(c, "-p", "the", "-c", "32", "--ignore-eos")
    c.equal(o["stop_reason"], "context", "reason without -n")
    o = text_of(c, "-p", "the", "-c", "32", "-n", "100", "--ignore-eos", "--context-shift", "--keep", "4")
    c.equal([o["n_tokens"], o["stop_reason"]], [100, "length"], "with --context-shift")


def what_helps(c):
    """What is proposed when the context is full helps."""
    r = write(c, "-p", "the", "-c", "32", "-n", "1000", "--ignore-eos", code=1)
    c.match(r.err, r"give --ctx 1001 \(more than the 512 that the model was trained for.*or --context-shift$", "stderr")
    r = write(c, "-p", "the quick brown", "-c", "4", "-n", "50", "--ignore-eos", "--context-shift", "--keep", "-1", code=1)
    c.match(r.err, "context full: it holds 4 tokens, 3 of the prompt.*of 50 were.*--ctx 53 or a smaller --keep: it keeps 3 tokens", "stderr")
    write(c, "-p", "the quick brown", "-c", "53", "-n", "50", "--ignore-eos")
    write(c, "-p", "the quick brown", "-c", "4", "-n", "50", "--ignore-eos", "--context-shift", "--keep", "0")
    r = write(c, "-p", "the quick brown", "-c", "4", "-n", "50", "--ignore-eos", "--keep", "-1", code=1)
    c.match(r.err, "or --context-shift with a smaller --keep", "stderr")
    for more in ((), ("--context-shift",)):  # nothing but a larger one: nothing is kept that need not be
        r = write(c, "-p", "a", "-c", "1", "-n", "9", "--ignore-eos", *more, code=1)
        c.match(r.err, "so only 1 of 9 were written: give --ctx 10$", "stderr")
    write(c, "-p", "the quick brown", "-c", "40", "-n", "30", "--ignore-eos", "--session", "s.bin")
    r = write(c, "-p", "the quick", "-c", "16", "--session", "s.bin", code=1)
    c.match(r.err, r"s.bin: context full: the state has 33 tokens, the context holds 16.*a larger --ctx is needed", "stderr")


def answering_models(c):
    """Whoever gives a plain prompt to a model that answers is told of --chat, once and not with --quiet."""
    for hinted, *args in ((1, "-p", "hi"), (0, "-p", "hi", "-q"), (0, "--chat", "-p", "hi"), (0, "-p", "<|im_start|>user\nhi<|im_end|>")):
        r = write(c, *args, "-n", "4")
        c.equal(r.err.count("--chat asks it"), hinted, "hints with %s" % args)
    c.check("--chat" not in write(c, "-p", "hi", "-n", "4", model=small("llama-spm")).err, "a hint for a model that does not answer")


def nothing_to_start_from(c):
    r = write(c, "-p", "", "--no-bos", code=2)
    c.match(r.err, "the prompt is empty, and with --no-bos no token is left", "stderr")


def caches_and_batches(c):
    prompt = "the quick brown fox jumps over the lazy dog and then"
    want = text_of(c, "-p", prompt, "-n", "16", "--temperature", "0", "--compute", "f32", "-ctk", "f32", "-ctv", "f32")
    for args in (("-b", "3"), ("--no-mmap",), ("-t", "2")):
        o = text_of(c, "-p", prompt, "-n", "16", "--temperature", "0", "--compute", "f32", "-ctk", "f32", "-ctv", "f32", *args)
        c.equal(o["text"], want["text"], "text with %s" % (args,))
    for option in ("-ctk", "-ctv"):
        o = text_of(c, "-p", prompt, "-n", "16", "--ignore-eos", option, "q8_0")
        c.equal(o["n_tokens"], 16, "tokens with %s q8_0 alone" % option)
    for kind in ("f16", "bf16", "q8_0"):
        o = text_of(c, "-p", prompt, "-n", "16", "--ignore-eos", "-ctk", kind, "-ctv", kind)
        c.equal(o["n_tokens"], 16, "tokens with a cache of " + kind)


def sessions(c):
    """A session changes how much is computed, and no text."""
    args = ("-p", "the quick brown fox jumps over", "-n", "8", "--temperature", "0", "--ignore-eos")
    plain = text_of(c, *args)
    first, second = text_of(c, *args, "--session", "s.bin"), text_of(c, *args, "--session", "s.bin")
    c.equal([first["text"], second["text"]], [plain["text"]] * 2, "texts")
    c.equal(first["timings"]["n_prompt_computed"], plain["n_prompt"], "computed at first")
    c.equal(second["timings"]["n_prompt_computed"], 1, "computed with the session")
    longer = text_of(c, *args[:2], "-n", "12", *args[4:])
    more = text_of(c, "-n", "4", *args[4:], "--session", "s.bin")
    c.equal(more["text"], longer["text"][len(plain["text"]):], "text that goes on")
    data = c.read("s.bin")
    for broken in (data[:100], data[:-1], data[:200] + bytes([data[200] ^ 1]) + data[201:], b""):
        c.write("broken.bin", broken)
        r = write(c, *args, "--session", "broken.bin", code=1)
        c.match(r.err, "broken.bin", "stderr")
    c.match(write(c, "--session", "none.bin", code=1).err, "none.bin.*a prompt is needed", "stderr")


def grammars(c):
    c.write("yes.gbnf", 'root ::= ("yes" | "no") "!"\n')
    for args in (("--grammar", 'root ::= ("yes" | "no") "!"'), ("--grammar", "yes.gbnf"), ("--grammar-file", "yes.gbnf")):
        for seed in range(3):
            o = text_of(c, "-p", "a", "-n", "30", "-s", str(seed), *args)
            c.check(o["text"] in ("yes!", "no!"), "%s gave %r" % (args, o["text"]))
    r = write(c, "-p", "a", "--grammar", "/none/x.gbnf", code=1)
    c.match(r.err, "^sotto: cannot open /none/x.gbnf: No such file", "stderr of a grammar's name")
    c.match(write(c, "-p", "a", "--grammar", " ", code=1).err, "at least one rule", "stderr of an empty grammar")
    r = write(c, "-p", "a", "--grammar", "root ::= (", code=1)
    c.check(r.out == "" and r.err, "a bad grammar: %r" % r.err)
    c.match(write(c, "-p", "a", "--grammar-file", "none.gbnf", code=1).err, "none.gbnf", "stderr")
    c.write("bad.gbnf", "root ::= nobody\n")
    c.match(write(c, "-p", "a", "--grammar-file", "bad.gbnf", code=1).err, "bad.gbnf.*nobody", "stderr")


def complete_grammars(c):
    """A text that the grammar lets go no further has ended, also when the model may not end it."""
    args = ("-p", "a", "-n", "30", "--grammar", 'root ::= "yes"', "--ignore-eos")
    r = write(c, *args)
    c.equal(r.out, "yes\n", "text")
    c.match(r.err, "the grammar allows nothing more.*ended by: grammar", "stderr")
    c.equal(write(c, *args, "-q").err, "", "stderr with --quiet")
    c.equal(text_of(c, *args)["stop_reason"], "grammar", "reason")
    c.equal(text_of(c, *args[:-1])["stop_reason"], "end", "reason where the model may end the text")


def schemas(c):
    schema = '{"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": false}'
    c.write("schema.json", schema)
    for args in (schema, "schema.json"):
        o = text_of(c, "-p", "a", "-n", "200", "-s", "3", "--json-schema", args)
        c.equal(list(json.loads(o["text"])), ["a"], "keys")
    c.check(write(c, "-p", "a", "--json-schema", "{", code=1).err, "a bad schema")


def memory(c):
    r = write(c, "--memory", "-c", "64")
    c.match(r.out, r"MB +weights +caches +compute +total.*%s .*all " % CPU[1], "stdout")
    more = write(c, "--memory", "-c", "512")
    caches = [float(x.out.strip().split("\n")[-1].split()[2]) for x in (r, more)]
    c.check(caches[1] > caches[0], "caches of 64 and 512: %s" % caches)


def traces(c):
    r = write(c, "-p", "a", "-n", "1", "--trace")
    c.match(r.err, r"linear .* ms .*logits", "stderr")


def outputs_that_cannot_be_written(c):
    """They are noticed before anything is computed, and what is there already stays as it is."""
    c.write("text.txt", "the quick brown fox jumps over the lazy dog " * 40)
    c.write("file", "a file")
    os.mkdir(c.path("folder"))
    for path, why in (("none/x", "No such file or directory"), ("file/x", "Not a directory"), ("folder", "folder"), ("n" * 300, "too long")):
        for args in (("generate", "-p", "a", "-n", "4", "--session", path), ("imatrix", "-f", "text.txt", "-c", "32", "-o", path)):
            r = c.run(*args, "-m", small(), *CPU)
            c.equal([r.code, r.out], [1, ""], "exit and text of %s: %s" % (args, r.err))
            c.match(r.err, "^sotto: (cannot write )?%s.*%s" % (path, why), "stderr of %s" % (args,))
            c.check("chunk" not in r.err and r.err.count("\n") == 1, "something was computed: " + r.err)
    c.equal(c.read("file"), b"a file", "a file that is no session")
    r = write(c, "-p", "a", "--session", "file", code=1)
    c.match(r.err, "file: ", "stderr of a file that is no session")
    c.equal(c.read("file"), b"a file", "a file that is no session")
    c.equal(sorted(os.listdir(c.dir)), ["file", "folder", "text.txt"], "what is in the folder")


# ---- signals and pipes ----

ENDLESS = ("-p", "the", "--ignore-eos", "-n", "1000000", "-c", "64", "--context-shift")


def interrupted(c):
    p = c.start("generate", "-m", small(), *CPU, *ENDLESS)
    first, more = b"", b" "
    while len(first) < 5 and more:  # not p.stdout.read: what that keeps in its buffer communicate() does not give
        more = os.read(p.stdout.fileno(), 5 - len(first))
        first += more
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    c.equal(p.returncode, 130, "exit: %s" % err)
    c.check(len(first) == 5, "nothing came")
    (first + out).decode("utf-8")
    p = c.start("generate", "-m", small(), *CPU, *ENDLESS, "--json", "-q")
    time.sleep(1)
    p.send_signal(signal.SIGTERM)
    out, err = p.communicate(timeout=60)
    c.check(p.returncode in (143, -15), "exit %d: %s" % (p.returncode, err))
    if out:
        c.equal(json.loads(out)["stop_reason"], "interrupted", "reason")


def interrupted_session(c):
    """Ctrl-C ends a text as its end does: the session is kept, seed and speed are told."""
    p = c.start("generate", "-m", small(), *CPU, "-p", "the quick", "--ignore-eos", "-c", "100000", "--session", "s.bin")
    first = b""
    while len(first) < 50:
        first += os.read(p.stdout.fileno(), 50)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    c.equal(p.returncode, 130, "exit: %s" % err)
    c.match(err.decode(), r"text \d+ tokens.*ended by: interrupted; seed \d+", "stderr")
    text = (first + out).decode("utf-8")
    n = int(re.search(r"text (\d+) tokens", err.decode())[1])
    o = text_of(c, "-n", "4", "--ignore-eos", "--session", "s.bin", "-c", "100000")
    c.equal([o["n_prompt"], o["n_tokens"]], [2 + n, 4], "tokens of the session, and new ones (after %r)" % text[-20:])
    p = c.start("generate", "-m", small(), *CPU, "-p", "the quick", "--ignore-eos", "-c", "100000", "-n", "90000", "--json")
    time.sleep(1)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    c.equal(p.returncode, 130, "exit: %s" % err)
    if out:  # not interrupted while the model was loaded
        c.match(err.decode(), r"seed \d+", "stderr with --json")


def closed_pipe(c):
    """Who reads no more is not written to for ever."""
    for restore in (True, False):
        p = c.start("generate", "-m", small(), *CPU, *ENDLESS, restore_signals=restore)
        p.stdout.read(5)
        p.stdout.close()
        err = p.stderr.read()
        p.wait(timeout=60)
        p.stderr.close()
        c.check(p.returncode in (-13, 1), "exit %d: %s" % (p.returncode, err))


# ---- chat ----

def chat(c, lines, *args, code=0, model=None):
    r = c.run("chat", "-m", model or small(), *CPU, *([] if model else ["--template", "chatml"]), "-n", "6", "--seed", "1",
              *args, stdin=lines.encode())
    c.equal(r.code, code, "exit of chat: %s" % r.err)
    return r


def chat_from_a_pipe(c):
    a, b = chat(c, "hello\nand then\n"), chat(c, "hello\nand then\n")
    c.equal(a.out, b.out, "answers of the same seed")
    c.check(a.out.endswith("\n"), "no line break at the end")
    c.equal(chat(c, "").out, "", "answers to nothing")
    c.equal(chat(c, "\n  \n").out, "", "answers to empty lines")
    c.match(chat(c, "one \\\ntwo\n/tokens\n").out, r"\d+ of 512 tokens, 2 messages", "tokens")
    c.match(chat(c, "hello\n", "--context-shift", "-c", "128", "-n", "300").err, "", "stderr")


def chat_commands(c):
    r = chat(c, "/help\n/tokens\nhello\n/tokens\n/undo\n/tokens\n/system be brief\n/tokens\n/clear\n/quit\nnever\n")
    c.match(r.out, r"/regen.*0 of 512 tokens, 0 messages.*2 messages.*0 messages.*1 message$", "stdout")
    chat(c, "hello\n/regen\n/save talk.json\n")
    talk = json.loads(c.read("talk.json"))
    c.equal([m["role"] for m in talk], ["user", "assistant"], "roles")
    c.equal(talk[0]["content"], "hello", "question")
    c.match(chat(c, "/load talk.json\n/tokens\n").out, "2 messages", "tokens")
    c.match(chat(c, "/tokens\n", "--load", "talk.json").out, "2 messages", "tokens")
    for line, why in (("/dance", "unknown command /dance"), ("/regen", "no answer"), ("/undo", "nothing to undo"),
                      ("/save", "needs a value: FILE"), ("/load none.json", "none.json"), ("/clear now", "takes no value")):
        c.match(chat(c, line + "\nhello\n", code=1).err, why, "stderr of " + line)
    for broken in ("{", "{}", "[1]", '[{"role": "user"}]', '[{"role": "assistant", "content": "a"}]',
                   '[{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]'):
        c.write("broken.json", broken)
        c.match(chat(c, "/load broken.json\n", code=1).err, "broken.json", "stderr of %s" % broken)


def chat_context(c):
    long = "the quick brown fox jumps over the lazy dog " * 12
    r = chat(c, long + "\n", "-c", "64", code=1)
    c.match(r.err, "context full: with this question the conversation has \\d+ tokens, and the context holds 64; what helps: a shorter question or --ctx \\d+$", "stderr")
    r = chat(c, "hello there\n" + long + "\n", "-c", "160", code=1)
    c.match(r.err, "and the context holds 160; what helps: /undo, /clear, --ctx \\d+ or --context-shift$", "stderr")
    lines, more = "hello there\n" * 8, ("-c", "128", "-n", "20", "--ignore-eos")
    c.match(chat(c, lines, *more, code=1).err, "context full", "stderr")
    c.match(chat(c, lines, *more, "--context-shift").err, "oldest questions and answers were forgotten", "stderr")


def chat_format(c):
    r = c.run("chat", "-m", small("phi3"), *CPU, stdin=b"hello\n")
    c.equal(r.code, 1, "exit without a template")
    c.match(r.err, "template", "stderr")
    known = r.err.split("one of ")[1].replace(",", "").split()  # of the library; help has the same
    for command in ("chat", "generate"):
        c.match(" ".join(c.run(command, "--help").out.split()), r"not known \(%s\)" % " ".join(known), "help of " + command)
    for name in known:
        r = c.run("chat", "-m", small("phi3"), *CPU, "--template", name, stdin=b"")
        c.equal(r.code, 0, "exit with --template %s: %s" % (name, r.err))
    r = write(c, "--chat", "-p", "hello", "--template", "chatml", "-n", "3", "--ignore-eos")
    c.match(r.err, "text 3 tokens", "stderr")


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, c, *args):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen([c.sotto, *args], stdin=slave, stdout=slave, stderr=slave, cwd=c.dir, env=c.env,
                                        start_new_session=True)
        os.close(slave)
        self.text = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def read(self):
        """False when the other end is closed."""
        if select.select([self.master], [], [], 0.2)[0]:
            try:
                self.text += os.read(self.master, 65536)
            except OSError:
                return False
        return True

    def expect(self, wanted, seconds=120):
        end = time.time() + seconds
        while wanted not in self.text:
            if time.time() > end or not self.read():
                raise run_cli.Failure("waited for %r, got %r" % (wanted, self.text))
        self.text = self.text[self.text.index(wanted) + len(wanted):]

    def exit_code(self, seconds=120):
        end = time.time() + seconds
        while self.process.poll() is None and time.time() < end:
            self.read()
        return self.process.poll()


def chat_on_a_terminal(c):
    """Ctrl-C ends an answer and not the program; at the prompt it ends the program."""
    with Terminal(c, "chat", "-m", small(), *CPU, "--template", "chatml", "--ignore-eos", "-c", "64", "--context-shift") as t:
        t.expect(b"> ")
        os.write(t.master, b"hello\n")
        t.expect(b"hello\r\n")
        end = time.time() + 120
        while not t.text and time.time() < end:  # the answer has begun
            t.read()
        t.process.send_signal(signal.SIGINT)
        t.expect(b"\n> ")
        c.check(t.process.poll() is None, "Ctrl-C in an answer ended the program")
        os.write(t.master, b"/tokens\n")
        t.expect(b"messages")
        t.expect(b"> ")
        t.process.send_signal(signal.SIGINT)
        c.equal(t.exit_code(), 130, "exit at the prompt")
    with Terminal(c, "chat", "-m", small(), *CPU, "--template", "chatml") as t:
        t.expect(b"> ")
        os.write(t.master, b"/dance\n")  # a mistake is told, and the next question awaited
        t.expect(b"unknown command /dance")
        t.expect(b"> ")
        os.write(t.master, b"/quit\n")
        c.equal(t.exit_code(), 0, "exit of /quit")


def chat_interrupted_in_a_pipe(c):
    p = c.start("chat", "-m", small(), *CPU, "--template", "chatml", "--ignore-eos", "-c", "64", "--context-shift",
                stdin=subprocess.PIPE)
    p.stdin.write(b"hello\n")
    p.stdin.flush()
    p.stdout.read(5)
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=60)
    c.equal(p.returncode, 130, "exit")


# ---- tokenize, perplexity, bench ----

def tokenizing(c):
    for name in ("llama", "llama-spm", "gemma3", "qwen2"):
        m = small(name)
        for text in ("the quick brown fox", " two  spaces\n\nand lines ", "caf\u00e9 \u4f60\u597d \U0001f642", ""):
            o = json.loads(c.run("tokenize", "-m", m, "--json", "--no-special", "-p", text).out)
            c.equal(o["count"], len(o["ids"]), "count")
            c.equal([t["id"] for t in o["tokens"]], o["ids"], "ids")
            r = c.run("tokenize", "-m", m, "--no-special", "--ids", "-f", "-", stdin=text.encode())
            c.equal(json.loads(r.out), o["ids"], "ids from standard input")
            c.equal(c.run("tokenize", "-m", m, "--no-special", "--count", "-p", text).out, "%d\n" % o["count"], "count")
            back = c.run("tokenize", "-m", m, "--decode", r.out.strip()).out[:-1]
            if name in ("llama", "qwen2"):  # the others put a space before a text
                c.equal(back, text, "text of the ids")
            else:
                c.equal(back.strip(), text.strip(), "text of the ids")
    r = c.run("tokenize", "-m", small(), "-p", "a\nb")
    c.match(r.out, r"^ *\d+ -> '.*\\n", "stdout")
    for ids in ("1,2", "[1]", "[]", " [ ] ", "1 2\n", " 1 ,2 ", "[1,2]\n", "[ 1 ,\t2 ]", "007"):
        c.equal(c.run("tokenize", "-m", small(), "--decode", ids).code, 0, "exit of --decode " + ids)
    for ids, why in (("1x", '"x" at character 2, where a space or , is expected'), ("-1", '"-1" at character 1, where the id'),
                     ("320", "token 320 is not one of the model's 320"), ("9" * 20, "token 9+ is not one"), ("", "ends where the id of a token"),
                     (" ", "ends where the id of a token"), ("[1, 2", "the list ends where , or ] is expected"), ("[", "ends where the id"),
                     ("1, 2]", '"]" at character 5'), ("[1 2]", '"2]" at character 4, where , or ]'), ("[1,,2]", '",2]" at character 4'),
                     ("[1,]", '"]" at character 4, where the id'), ("1,", "ends where the id"), ("[1] 2", '"2" at character 5, where the end'),
                     ("[[1]]", r'"\[1\]\]" at character 2'), (",1", '",1" at character 1')):
        r = c.run("tokenize", "-m", small(), "--decode", ids)
        c.equal([r.code, r.out], [2, ""], "exit and text of --decode " + ids)
        c.match(r.err, why, "stderr of --decode " + ids)
    c.equal(c.run("tokenize", "-m", small(), "--decode", "-", stdin=b"1 \x002").code, 2, "exit with a zero byte")
    c.equal(json.loads(c.run("tokenize", "-m", small(), "-d", "-", "--json", stdin=b"[70, 71]").out).keys(), {"text"}, "keys")


def perplexities(c):
    c.write("text.txt", "the quick brown fox jumps over the lazy dog while the rain in the plain stays. " * 12)
    args = ("perplexity", "-m", small(), *CPU, "-f", "text.txt", "-c", "64", "--compute", "f32", "-ctk", "f32", "-ctv", "f32")
    r = c.run(*args, "--json")
    c.equal(r.code, 0, "exit: " + r.err)
    o = json.loads(r.out)
    c.equal(o["chunks"], o["tokens"] // 64, "chunks")
    c.equal(o["scored"], o["chunks"] * 31, "scored tokens")
    c.equal(r.err.count("perplexity"), o["chunks"], "lines of progress")
    # llama-perplexity -c 64 -ctk f32 -ctv f32 of the same text and model
    c.check(abs(o["perplexity"] / 634.2965 - 1) < 1e-3 and abs(o["standard_error"] / 69.78403 - 1) < 1e-2, "value: %s" % o)
    one = json.loads(c.run(*args, "--json", "-q", "-b", "7", "--chunks", "1").out)
    c.equal([one["chunks"], one["scored"]], [1, 31], "one chunk")
    c.match(c.run(*args, "-q", "--chunks", "1").out, "over 31 tokens in 1 chunk of 64$", "one chunk as text")
    stride = json.loads(c.run(*args, "--json", "-q", "--stride", "16").out)
    c.check(stride["scored"] == 16 * stride["chunks"] and stride["chunks"] > o["chunks"], "with a stride: %s" % stride)
    c.write("long.txt", "the quick brown fox jumps over the lazy dog while the rain in the plain stays. " * 120)
    long = json.loads(c.run(*args, "-f", "long.txt", "-c", "256", "--stride", "16", "--json", "-q").out)
    # llama-perplexity -c 64 -b 72 --ppl-stride 16 of it, which makes chunks of 256
    c.equal([long["chunks"], long["scored"]], [112, 1792], "chunks with a stride")
    c.check(abs(long["perplexity"] / 608.3108 - 1) < 1e-3, "value with a stride: %s" % long)
    c.match(c.run(*args).out, r"^perplexity [0-9.]+ \+/- [0-9.]+ over \d+ tokens", "stdout")
    c.write("short.txt", "the quick")
    r = c.run("perplexity", "-m", small(), *CPU, "-f", "short.txt", "-c", "64")
    c.equal(r.code, 1, "exit of a short text")
    c.match(r.err, r"the text has \d+ tokens, but with a context of 64 at least 128", "stderr")


def importance(c):
    c.write("text.txt", "the quick brown fox jumps over the lazy dog while the rain in the plain stays. " * 6)
    args = ("imatrix", "-m", small(), *CPU, "-f", "text.txt", "-c", "32")
    r = c.run(*args, "-o", "a.gguf")
    c.equal(r.code, 0, "exit: " + r.err)
    c.match(r.err, r"chunk 1 of \d+.*wrote a.gguf: 14 matrices", "stderr")  # seven in each of two layers
    c.check(c.read("a.gguf")[:4] == b"GGUF", "no GGUF was written")
    r = c.run(*args, "-o", "a.gguf")
    c.equal(r.code, 1, "exit when the file exists")
    c.match(r.err, "a.gguf exists; --force", "stderr")
    c.equal(c.run(*args, "-o", "b.gguf", "--in", "a.gguf", "-q").err, "", "stderr with --quiet")
    c.equal(c.run(*args, "-o", "c.gguf", "--in", "text.txt").code, 1, "exit with a file that is none")
    c.check(not c.exists("c.gguf"), "a file is left")


def benchmarks(c):
    r = c.run("bench", "-m", small(), "--json", "-r", "2", "-p", "16,32", "-n", "4", "-d", "0,8", *CPU)
    c.equal(r.code, 0, "exit: " + r.err)
    o = json.loads(r.out)
    c.equal([t["test"] for t in o["tests"]], ["pp16", "pp32", "tg4", "pp16 @ d8", "pp32 @ d8", "tg4 @ d8"], "tests")
    c.check(all(len(t["samples"]) == 2 and min(t["samples"]) > 0 for t in o["tests"]), "samples")
    for key in ("prompt_tps", "generation_tps", "peak_rss_mb", "bytes_per_token", "read_bandwidth", "memory_bandwidth", "bandwidth_used"):
        c.check(o[key] > 0, key)
    r = c.run("bench", "-m", small(), "-r", "1", "-p", "0", "-n", "4", *CPU)
    c.match(r.out, r", 1 run\n.*tg4 +[0-9.]+ \+/- 0.00 tokens/s\n  load +[0-9.]+ ms\n  peak rss +[0-9.]+ MB\n.*read +[0-9.]+ GB/s", "stdout")
    c.check("warning" not in r.err, r.err)
    r = c.run("bench", "-m", small(), "-r", "1", "-p", "16,520", "-n", "4", *CPU)
    c.match(r.err, "warning: pp520 takes 520 tokens, more than the 512 that the model was trained for", "stderr")
    c.match(c.run("bench", "-m", small(), "--memory", *CPU).out, "weights", "stdout")


def wrong_kind(c):
    """A model that hears is told from one that writes."""
    path = os.path.join(ROOT, "models", "tiny.en")
    if not os.path.isdir(path):
        raise run_cli.Skip("no model: run sotto get tiny.en")
    r = c.run("generate", "-m", path, "-p", "a", *CPU)
    c.equal(r.code, 1, "exit")
    c.check(r.err, "nothing is said")
    r = c.run("transcribe", "-m", small(), "a.wav", *CPU)
    c.equal(r.code, 1, "exit")
    c.check(r.err, "nothing is said")


# ---- a real model ----

def real_text(c):
    r = write(c, "-p", "The capital of France is", "-n", "8", "--temperature", "0", "-q", model=real())
    c.match(r.out, "Paris", "text")


def real_chat(c):
    r = c.run("chat", "-m", real(), "-q", "--temperature", "0", "-n", "40", stdin=b"What is the capital of France?\n")
    c.equal(r.code, 0, "exit: " + r.err)
    c.match(r.out, "Paris", "answer")
    c.check("<|im_" not in r.out, "control tokens are shown: %r" % r.out)
    o = text_of(c, "--chat", "-p", "What is the capital of France?", "-n", "40", "--temperature", "0", model=real())
    c.equal(o["text"] + "\n", r.out, "the same by generate --chat")
    c.match(write(c, "--chat", "-p", "Say hi.", "-n", "60", "--temperature", "0", "-q", "--special", model=real()).out, "<\\|im_end\\|>",
            "text with control tokens")


CASES = [seeds, only_the_text, as_json, valid_characters, stop_strings, biased, contexts, what_helps, answering_models, nothing_to_start_from, caches_and_batches, sessions, grammars, complete_grammars, schemas,
         memory, traces, outputs_that_cannot_be_written, interrupted, interrupted_session, closed_pipe, chat_from_a_pipe, chat_commands, chat_context, chat_format, chat_on_a_terminal,
         chat_interrupted_in_a_pipe, tokenizing, perplexities, importance, benchmarks, wrong_kind, real_text, real_chat]


if __name__ == "__main__":
    sys.exit(run_cli.main(ROWS, CASES))
