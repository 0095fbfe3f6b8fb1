#!/usr/bin/env python3
"""`sotto convert` and `sotto inspect` with small models that tools/make_gguf.py writes."""
import json
import os
import struct
import subprocess
import sys

import run_cli


def make(c, name):
    path = c.path(name + ".gguf")
    subprocess.run([sys.executable, os.path.join(c.source, "tools", "make_gguf.py"), name, path], check=True)
    return path


def types(c, path):
    parsed = json.loads(c.run("inspect", "--json", path).out)
    return {t["name"]: t["type"] for t in parsed["tensors"]}, parsed["metadata"]


def mixes(c):
    source = make(c, "llama")
    for mix, value, down, file_type in (("q4_k_m", "q4_k", "q4_k", 15), ("q2_k", "q3_k", "q3_k", 10),
                                        ("iq4_nl", "iq4_nl", "iq4_nl", 25), ("q8_0", "q8_0", "q8_0", 7)):
        r = c.run("convert", source, mix + ".gguf", "--type", mix)
        c.equal(r.code, 0, "%s: %s" % (mix, r.err))
        have, meta = types(c, mix + ".gguf")
        c.equal((have["blk.0.attn_v.weight"], have["blk.0.ffn_down.weight"], meta["general.file_type"]),
                (value, down, file_type), mix)
        c.equal(have["output.weight"], "q8_0" if mix == "q8_0" else "q6_k", mix)
        c.equal(have["blk.0.attn_norm.weight"], "f32", mix)
    r = c.run("convert", source, "x.gguf", "-t", "q4_k_m", "--output-type", "q8_0", "--token-embedding-type", "f16", "--pure")
    c.equal(r.code, 0, r.err)
    have, _ = types(c, "x.gguf")
    c.equal((have["output.weight"], have["token_embd.weight"], have["blk.1.ffn_down.weight"]), ("q8_0", "f16", "q4_k"), "types")


def told_that_it_is_gguf(c):
    source = make(c, "llama")
    r = c.run("convert", source, "x.bin")
    c.equal((r.code, c.read("x.bin")[:4]), (0, b"GGUF"), r.err)
    c.match(r.err, "wrote x.bin, which is GGUF", "stderr")
    c.check("GGUF" not in c.run("convert", source, "x.gguf").err, "said of a file of that name")


def dry_run(c):
    source = make(c, "llama-288")
    r = c.run("convert", source, "x.gguf", "--type", "q4_k_m", "--dry-run")
    c.equal((r.code, c.exists("x.gguf")), (0, False), r.err)
    c.match(r.out, r"(?m)^  blk\.0\.attn_q\.weight +f32 +-> q5_0 +\[288, 288\]$", "stdout")
    c.match(r.out, r"tensors of 1\.6 MB, now 8\.5 MB; nothing was written", "stdout")
    c.match(r.err, r"\d+ matrices get another type", "stderr")


def parts(c):
    """Two parts by hand: the metadata and no tensor, then one tensor."""
    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()

    def short(key, n):
        return text(key) + struct.pack("<IH", 2, n)

    arch = text("general.architecture") + struct.pack("<I", 8) + text("strange")
    first = b"GGUF" + struct.pack("<IQQ", 3, 0, 3) + arch + short("split.no", 0) + short("split.count", 2)
    second = b"GGUF" + struct.pack("<IQQ", 3, 1, 2) + short("split.no", 1) + short("split.count", 2)
    second += text("x") + struct.pack("<IQIQ", 1, 256, 16, 0)
    second += bytes(-len(second) % 32) + bytes(range(66))
    c.write("m-00001-of-00002.gguf", first)
    c.write("m-00002-of-00002.gguf", second)
    r = c.run("inspect", "m-00001-of-00002.gguf")
    c.equal(r.code, 0, r.err)
    c.match(r.out, r"(?m)^  x +iq2_xxs +\[256\]$", "stdout")
    r = c.run("convert", "m-00001-of-00002.gguf", "one.gguf")
    c.equal(r.code, 0, r.err)
    _, meta = types(c, "one.gguf")
    c.equal(("split.count" in meta, meta["general.architecture"]), (False, "strange"), "metadata")
    r = c.run("inspect", "m-00002-of-00002.gguf")
    c.equal(r.code, 1, "the second part")
    c.match(r.err, "part 2 of 2: open the first, m-00001-of-00002.gguf", "stderr")
    r = c.run("convert", "m-00001-of-00002.gguf", "two.gguf", "--type", "q8_0", "--force")
    c.equal((r.code, c.exists("two.gguf")), (1, False), "an architecture that is not known")
    c.match(r.err, "strange", "stderr")


def bad(c):
    source = make(c, "llama-narrow")
    for args, message in (
        (["--imatrix", source, "-t", "q4_k_m"], "general.type"),
        (["--imatrix", "none.gguf", "-t", "q4_k_m"], "none.gguf"),
        (["-f", "ggml", "-t", "q4_0"], "speech models only"),
        (["--pure"], "without a type for all"),
    ):
        r = c.run("convert", source, "x.gguf", *args)
        c.equal((r.code, c.exists("x.gguf")), (1, False), " ".join(args))
        c.match(r.err, message, "stderr")


CASES = [mixes, told_that_it_is_gguf, dry_run, parts, bad]

if __name__ == "__main__":
    sys.exit(run_cli.main([], CASES))
