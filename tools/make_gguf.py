#!/usr/bin/env python3
"""Writes small seeded GGUF models of the LLaMA family for tests: f32, width 256, 2 layers, 320 tokens, about 5 MB each.

    python3 tools/make_gguf.py --list
    python3 tools/make_gguf.py qwen2 out.gguf
    python3 tools/make_gguf.py --all folder        (folder/NAME.gguf)

Same name and seed, same bytes. llama.cpp loads every one of them. What it insists on, beyond the sizes:
    general.architecture, and NAME.context_length, embedding_length, block_count, attention.head_count, rms epsilon;
    llama: rope.dimension_count, where given, must be the head's size; q, k and v may have biases, also attn_output and ffn_*;
    qwen2: q and v must be embedding_length and the group's width (no key_length of its own);
    gemma3: norms are stored with the 1 added; a window of every layer but each 6th, or each n-th by sliding_window_pattern;
    phi3: no general.name with "phi3" unless there is a token <|endoftext|>; q, k and v in attn_qkv, gate and up in ffn_up
        (gate first); long rope by rope_factors_long and _short, of which the long ones are used when the context made is
        longer than rope.scaling.original_context_length;
    gpt2 vocabularies: tokenizer.ggml.pre and merges; llama vocabularies: scores and token types, bytes as <0x00>.
"""
import argparse
import array
import os
import random
import statistics
import struct
import sys

CONTEXT = 512
VOCAB = 320
LETTERS = "the quick brown fox jumps over the lazy dog while the rain in the plain stays and the sun sets over the hills and then "
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9


# ---- metadata ----

def text(s):
    raw = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(raw)) + raw


PACK = {
    U32: lambda v: struct.pack("<I", v),
    I32: lambda v: struct.pack("<i", v),
    F32: lambda v: struct.pack("<f", v),
    BOOL: lambda v: struct.pack("<?", v),
    STRING: text,
}


def pair(key, kind, value):
    if isinstance(value, list):
        head = struct.pack("<IIQ", ARRAY, kind, len(value))
        return text(key) + head + b"".join(PACK[kind](v) for v in value)
    return text(key) + struct.pack("<I", kind) + PACK[kind](value)


# ---- vocabularies ----

def learn_merges(words, n):
    """The n most frequent pairs, one after another; ties by the pair itself."""
    words = [list(w) for w in words]
    merges = []
    while len(merges) < n:
        counts = {}
        for w in words:
            for p in zip(w, w[1:]):
                counts[p] = counts.get(p, 0) + 1
        best = min(counts, key=lambda p: (-counts[p], p))
        merges.append(best)
        for w in words:
            i = 0
            while i + 1 < len(w):
                if (w[i], w[i + 1]) == best:
                    w[i : i + 2] = [best[0] + best[1]]
                i += 1
    return merges


def byte_letters():
    """The printable letter that stands for each byte in a byte-level vocabulary."""
    keep = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    extra = [b for b in range(256) if b not in keep]
    return {**{b: chr(b) for b in keep}, **{b: chr(256 + i) for i, b in enumerate(extra)}}


def gpt2_vocabulary(pre):
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    letters = byte_letters()
    space = letters[ord(" ")]
    merges = learn_merges([space + w for w in LETTERS.split()], VOCAB - 256 - len(special))
    tokens = [letters[b] for b in sorted(letters, key=lambda b: ord(letters[b]))] + [a + b for a, b in merges] + special
    return [
        pair("tokenizer.ggml.model", STRING, "gpt2"),
        pair("tokenizer.ggml.pre", STRING, pre),
        pair("tokenizer.ggml.tokens", STRING, tokens),
        pair("tokenizer.ggml.token_type", I32, [1] * (VOCAB - len(special)) + [3] * len(special)),
        pair("tokenizer.ggml.merges", STRING, [a + " " + b for a, b in merges]),
        pair("tokenizer.ggml.bos_token_id", U32, VOCAB - 3),
        pair("tokenizer.ggml.eos_token_id", U32, VOCAB - 1),
        pair("tokenizer.ggml.add_bos_token", BOOL, False),
    ]


def llama_vocabulary(_):
    special = ["<unk>", "<s>", "</s>"]
    bytes_ = ["<0x%02X>" % b for b in range(256)]
    words = ["\u2581" + w for w in LETTERS.split()]
    letters = sorted(set("".join(words)))
    merges = learn_merges(words, VOCAB - 3 - 256 - len(letters))
    pieces = [a + b for a, b in merges]
    scores = [0.0] * 259 + [-float(i) for i in range(len(pieces))] + [-1000.0 - i for i in range(len(letters))]
    return [
        pair("tokenizer.ggml.model", STRING, "llama"),
        pair("tokenizer.ggml.pre", STRING, "default"),
        pair("tokenizer.ggml.tokens", STRING, special + bytes_ + pieces + letters),
        pair("tokenizer.ggml.scores", F32, scores),
        pair("tokenizer.ggml.token_type", I32, [2, 3, 3] + [6] * 256 + [1] * (VOCAB - 259)),
        pair("tokenizer.ggml.bos_token_id", U32, 1),
        pair("tokenizer.ggml.eos_token_id", U32, 2),
        pair("tokenizer.ggml.unknown_token_id", U32, 0),
        pair("tokenizer.ggml.add_bos_token", BOOL, True),
        pair("tokenizer.ggml.add_space_prefix", BOOL, True),
    ]


# ---- tensors ----

class Numbers:
    """Seeded numbers, near to normal: 16 random bits choose one of 65536 quantiles."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        normal = statistics.NormalDist()
        half = [normal.inv_cdf((i + 0.5) / 65536) for i in range(32768, 65536)]
        self.table = [-x for x in reversed(half)] + half

    def take(self, n, scale, offset=0.0):
        bits = array.array("H", self.random.randbytes(2 * n))
        if sys.byteorder == "big":
            bits.byteswap()
        table = [t * scale + offset for t in self.table]
        return array.array("f", map(table.__getitem__, bits))


class Model:
    def __init__(self, arch, seed, **options):
        self.o = {"layers": 2, "width": 256, "ff": 512, "heads": 4, "kv_heads": 2, "head": 64, "tied": False, "bias": (),
                  "qk_norm": False, "post_norm": False, "fused": False, "vocabulary": gpt2_vocabulary, "pre": "gpt-2",
                  "norm_scale": 0.1, "embedding": 1.0, "keys": [], "rope_factors": {}, **options}
        if self.o["tied"]:
            self.o["embedding"] = self.o["width"] ** -0.5
        self.arch = arch
        self.numbers = Numbers(seed)
        self.tensors = []

    def add(self, name, *shape):
        """shape: innermost first; matrices keep the size of what goes through."""
        n = 1
        for d in shape:
            n *= d
        if len(shape) == 1:
            bias = name.endswith(".bias")
            values = self.numbers.take(n, 0.1 if bias else self.o["norm_scale"], 0.0 if bias else 1.0)
        else:
            values = self.numbers.take(n, self.o["embedding"] if name.startswith("token") else shape[0] ** -0.5)
        self.tensors.append((name, shape, values))

    def linear(self, name, n_in, n_out):
        self.add(name + ".weight", n_in, n_out)
        if name.split(".")[-1] in self.o["bias"]:
            self.add(name + ".bias", n_out)

    def layer(self, i):
        o, p = self.o, "blk.%d." % i
        width, ff = o["width"], o["ff"]
        q, kv = o["heads"] * o["head"], o["kv_heads"] * o["head"]
        self.add(p + "attn_norm.weight", width)
        if o["fused"]:
            self.linear(p + "attn_qkv", width, q + 2 * kv)
        else:
            self.linear(p + "attn_q", width, q)
            self.linear(p + "attn_k", width, kv)
            self.linear(p + "attn_v", width, kv)
        if o["qk_norm"]:
            self.add(p + "attn_q_norm.weight", o["head"])
            self.add(p + "attn_k_norm.weight", o["head"])
        self.linear(p + "attn_output", q, width)
        if o["post_norm"]:
            self.add(p + "post_attention_norm.weight", width)
        self.add(p + "ffn_norm.weight", width)
        if not o["fused"]:
            self.linear(p + "ffn_gate", width, ff)
        self.linear(p + "ffn_up", width, 2 * ff if o["fused"] else ff)
        self.linear(p + "ffn_down", ff, width)
        if o["post_norm"]:
            self.add(p + "post_ffw_norm.weight", width)

    def metadata(self):
        o, a = self.o, self.arch + "."
        out = [
            pair("general.architecture", STRING, self.arch),
            pair("general.name", STRING, "small and seeded"),
            pair("general.file_type", U32, 0),
            pair(a + "context_length", U32, CONTEXT),
            pair(a + "embedding_length", U32, o["width"]),
            pair(a + "block_count", U32, o["layers"]),
            pair(a + "feed_forward_length", U32, o["ff"]),
            pair(a + "attention.head_count", U32, o["heads"]),
            pair(a + "attention.head_count_kv", U32, o["kv_heads"]),
            pair(a + "attention.layer_norm_rms_epsilon", F32, 1e-6 if self.arch == "gemma3" else 1e-5),
        ]
        if o["head"] * o["heads"] != o["width"]:
            out += [pair(a + "attention.key_length", U32, o["head"]), pair(a + "attention.value_length", U32, o["head"])]
        out += [pair(a + key, kind, value) for key, kind, value in o["keys"]]
        return out + o["vocabulary"](o["pre"])

    def write(self, path):
        o = self.o
        self.add("token_embd.weight", o["width"], VOCAB)
        for i in range(o["layers"]):
            self.layer(i)
        self.add("output_norm.weight", o["width"])
        if not o["tied"]:
            self.add("output.weight", o["width"], VOCAB)
        for key, factors in o["rope_factors"].items():
            self.tensors.append((key + ".weight", (len(factors),), array.array("f", factors)))
        meta = self.metadata()
        out = [b"GGUF", struct.pack("<IQQ", 3, len(self.tensors), len(meta)), *meta]
        offset = 0
        for key, shape, values in self.tensors:
            out.append(text(key) + struct.pack("<I%dQIQ" % len(shape), len(shape), *shape, 0, offset))
            offset += (4 * len(values) + 31) // 32 * 32
        start = sum(map(len, out))
        out.append(bytes(-start % 32))
        for _, _, values in self.tensors:
            if sys.byteorder == "big":
                values.byteswap()
            out.append(values.tobytes())
            out.append(bytes(-len(out[-1]) % 32))
        temporary = "%s.%d.tmp" % (path, os.getpid())
        with open(temporary, "wb") as f:
            f.write(b"".join(out))
        os.replace(temporary, path)


# ---- the models ----

def llama3_factors(n_rot, base, factor=8.0, low=1.0, high=4.0, original=128):
    """What converters of Llama 3.1 write as rope_freqs: 1 for short waves, `factor` for long ones, between them smooth."""
    out = []
    for i in range(n_rot // 2):
        wave = 2 * 3.141592653589793 * base ** (2 * i / n_rot)
        if wave < original / high:
            out.append(1.0)
        elif wave > original / low:
            out.append(factor)
        else:
            smooth = (original / wave - low) / (high - low)
            out.append(1 / ((1 - smooth) / factor + smooth))
    return out


def scaling(kind, factor, original=None):
    keys = [("rope.scaling.type", STRING, kind), ("rope.scaling.factor", F32, factor)]
    return keys + ([("rope.scaling.original_context_length", U32, original)] if original else [])


def base(value):
    return [("rope.freq_base", F32, value)]


GEMMA = {"vocabulary": llama_vocabulary, "tied": True, "qk_norm": True, "post_norm": True,
         "head": 128, "heads": 4, "kv_heads": 1}
WINDOW = [("attention.sliding_window", U32, 16)]
PHI = {"fused": True, "vocabulary": llama_vocabulary}
LONG = scaling("longrope", 4.0, 256) + [("rope.scaling.attn_factor", F32, 1.19)]
EVERY_BIAS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")

MODELS = {
    "llama": ("llama", {"keys": [("rope.dimension_count", U32, 64)]}),
    "llama-tied": ("llama", {"tied": True, "pre": "smollm", "keys": base(100000.0)}),
    "llama-spm": ("llama", {"vocabulary": llama_vocabulary, "kv_heads": 4}),
    "llama-bias": ("llama", {"bias": EVERY_BIAS}),
    "llama-linear": ("llama", {"keys": scaling("linear", 4.0)}),
    "llama-yarn": ("llama", {"keys": scaling("yarn", 4.0, 128)}),
    "llama3": ("llama", {"pre": "llama-bpe", "keys": base(500000.0),
                         "rope_factors": {"rope_freqs": llama3_factors(64, 500000.0)}}),
    # heads that are not as wide together as the model, and a matrix whose rows are no multiple of 256
    "llama-narrow": ("llama", {"head": 32, "heads": 5, "kv_heads": 1}),
    # rows of 288 and 864 everywhere: only types of 32 fit
    "llama-288": ("llama", {"width": 288, "ff": 864, "heads": 9, "kv_heads": 3, "head": 32}),
    "qwen2": ("qwen2", {"bias": ("attn_q", "attn_k", "attn_v"), "pre": "qwen2", "keys": base(1000000.0)}),
    "qwen2-tied": ("qwen2", {"bias": ("attn_q", "attn_k", "attn_v"), "pre": "qwen2", "tied": True}),
    "qwen2-yarn": ("qwen2", {"bias": ("attn_q", "attn_k", "attn_v"), "pre": "qwen2", "keys": scaling("yarn", 4.0, 128)}),
    "qwen3": ("qwen3", {"head": 128, "heads": 4, "kv_heads": 2, "qk_norm": True, "pre": "qwen2",
                        "keys": base(1000000.0)}),
    "gemma3": ("gemma3", {**GEMMA, "keys": WINDOW + base(1000000.0) + [("attention.sliding_window_pattern", U32, 2)]}),
    "gemma3-linear": ("gemma3", {**GEMMA, "keys": WINDOW + base(1000000.0) + scaling("linear", 8.0) +
                                 [("attention.sliding_window_pattern", U32, 2)]}),
    "gemma3-six": ("gemma3", {**GEMMA, "layers": 6, "ff": 256, "heads": 2, "keys": WINDOW + base(1000000.0)}),
    "gemma3-plain": ("gemma3", {**GEMMA, "keys": base(10000.0)}),
    "phi3": ("phi3", {**PHI, "keys": [("rope.dimension_count", U32, 64)]}),
    "phi3-part": ("phi3", {**PHI, "keys": [("rope.dimension_count", U32, 32)]}),
    "phi3-long": ("phi3", {**PHI, "keys": LONG, "rope_factors": {
        "rope_factors_long": [1 + i / 8 for i in range(32)], "rope_factors_short": [1 + i / 64 for i in range(32)]}}),
}


def main():
    parser = argparse.ArgumentParser(description="Write small seeded GGUF models.")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--all", metavar="FOLDER", help="write all of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("name", nargs="?", choices=MODELS, metavar="NAME")
    parser.add_argument("path", nargs="?")
    args = parser.parse_args()
    if args.list:
        print("\n".join(MODELS))
        return
    if args.all:
        os.makedirs(args.all, exist_ok=True)
        jobs = [(name, os.path.join(args.all, name + ".gguf")) for name in MODELS]
    elif args.name and args.path:
        jobs = [(args.name, args.path)]
    else:
        parser.error("expected NAME PATH, --all FOLDER or --list")
    for name, path in jobs:
        arch, options = MODELS[name]
        Model(arch, "%s/%d" % (name, args.seed), **options).write(path)


if __name__ == "__main__":
    main()
