#!/usr/bin/env python3
"""Writes a Whisper model of any published size with seeded random weights, as GGUF in q4_0 (numpy only; large-v3 takes 0.9 GB).

    make_sized_model.py SIZE OUT.gguf

Its text means nothing. It shows that a size loads, fits and runs where the real weights cannot be fetched.
"""

import argparse
import struct

import numpy as np
from make_tiny_models import GGUF_ARRAY, GGUF_F32, GGUF_STRING, GGUF_U32, base_tokens, gguf_string, mel_filters

SIZES = {  # state, heads, audio layers, text layers, mel bands, vocabulary
    "tiny": (384, 6, 4, 4, 80, 51865),
    "tiny.en": (384, 6, 4, 4, 80, 51864),
    "base": (512, 8, 6, 6, 80, 51865),
    "base.en": (512, 8, 6, 6, 80, 51864),
    "small": (768, 12, 12, 12, 80, 51865),
    "small.en": (768, 12, 12, 12, 80, 51864),
    "medium": (1024, 16, 24, 24, 80, 51865),
    "medium.en": (1024, 16, 24, 24, 80, 51864),
    "large-v2": (1280, 20, 32, 32, 80, 51865),
    "large-v3": (1280, 20, 32, 32, 128, 51866),
    "large-v3-turbo": (1280, 20, 32, 4, 128, 51866),
}
F32, F16, Q4_0 = 0, 1, 2
PIECE = 1 << 16  # blocks made at a time


def tensors(n, n_audio, n_text, n_mels, n_vocab):
    """Name, shape (outermost first) and type of every tensor."""

    def linear(name, rows, columns, bias=True):
        yield name + ".weight", (rows, columns), Q4_0
        if bias:
            yield name + ".bias", (rows,), F32

    def norm(name):
        yield name + ".weight", (n,), F32
        yield name + ".bias", (n,), F32

    def attention(name):
        yield from linear(name + ".query", n, n)
        yield from linear(name + ".key", n, n, bias=False)
        yield from linear(name + ".value", n, n)
        yield from linear(name + ".out", n, n)

    def block(name, cross):
        yield from norm(name + "attn_ln")
        yield from attention(name + "attn")
        if cross:
            yield from norm(name + "cross_attn_ln")
            yield from attention(name + "cross_attn")
        yield from norm(name + "mlp_ln")
        yield from linear(name + "mlp.0", 4 * n, n)
        yield from linear(name + "mlp.2", n, 4 * n)

    yield "encoder.conv1.weight", (n, n_mels, 3), F16
    yield "encoder.conv1.bias", (n,), F32
    yield "encoder.conv2.weight", (n, n, 3), F16
    yield "encoder.conv2.bias", (n,), F32
    yield "encoder.positional_embedding", (1500, n), F32
    for i in range(n_audio):
        yield from block(f"encoder.blocks.{i}.", False)
    yield from norm("encoder.ln_post")
    yield "decoder.token_embedding.weight", (n_vocab, n), Q4_0
    yield "decoder.positional_embedding", (448, n), F32
    for i in range(n_text):
        yield from block(f"decoder.blocks.{i}.", True)
    yield from norm("decoder.ln")


def byte_count(shape, kind):
    count = int(np.prod(shape))
    return {F32: count * 4, F16: count * 2, Q4_0: count // 32 * 18}[kind]


def write_data(file, name, shape, kind, rng):
    if kind == Q4_0:  # values of -8..7 times a scale that keeps the sums of a row near one
        scale = np.float16(1 / (4.6 * shape[1] ** 0.5)).tobytes()
        left = int(np.prod(shape)) // 32
        while left > 0:
            blocks = np.empty((min(left, PIECE), 18), np.uint8)
            blocks[:, :2] = np.frombuffer(scale, np.uint8)
            blocks[:, 2:] = rng.integers(0, 256, (len(blocks), 16), np.uint8)
            file.write(blocks.tobytes())
            left -= len(blocks)
        return
    fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 1
    value = rng.standard_normal(shape, np.float32) * (0.02 if kind == F32 else fan_in**-0.5)
    if name.endswith(("ln.weight", "ln_post.weight")):
        value += 1
    file.write(value.astype("<f2" if kind == F16 else "<f4").tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    n, heads, n_audio, n_text, n_mels, n_vocab = SIZES[args.size]
    dims = dict(n_vocab=n_vocab, n_audio_ctx=1500, n_audio_state=n, n_audio_head=heads, n_audio_layer=n_audio, n_text_ctx=448, n_text_state=n,
                n_text_head=heads, n_text_layer=n_text, n_mels=n_mels)
    tokens, _ = base_tokens(n_vocab)
    filters = mel_filters(n_mels)
    entries = [("general.architecture", GGUF_STRING, gguf_string("whisper"))]
    entries += [("whisper." + key, GGUF_U32, struct.pack("<I", value)) for key, value in dims.items()]
    entries.append(("whisper.mel_filters", GGUF_ARRAY, struct.pack("<IQ", GGUF_F32, filters.size) + filters.tobytes()))
    entries.append(("tokenizer.ggml.tokens", GGUF_ARRAY, struct.pack("<IQ", GGUF_STRING, len(tokens)) + b"".join(gguf_string(t) for t in tokens)))
    layout = list(tensors(n, n_audio, n_text, n_mels, n_vocab))
    rng = np.random.default_rng(args.seed)
    with open(args.out, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(layout), len(entries)))
        for key, kind, data in entries:
            file.write(gguf_string(key) + struct.pack("<I", kind) + data)
        offset = 0
        for name, shape, kind in layout:
            file.write(gguf_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, offset))
            offset += -(-byte_count(shape, kind) // 32) * 32
        file.write(b"\0" * (-file.tell() % 32))
        for name, shape, kind in layout:
            write_data(file, name, shape, kind, rng)
            file.write(b"\0" * (-byte_count(shape, kind) % 32))


if __name__ == "__main__":
    main()
