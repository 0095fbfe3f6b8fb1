#!/usr/bin/env python3
"""Writes small seeded Whisper models in every layout that Sotto reads (numpy only).

    make_tiny_models.py OUT [--variant NAME ...] [--layout NAME ...]

Every weight is an integer of -127..127 times a power of two, and each row of a matrix reaches 127 (in absolute value): float32,
float16, bfloat16 and row-wise int8 hold it without loss, so one set of golden values serves every layout of a variant.
The vocabulary is made up (256 bytes, then pairs, then triples of characters), so that no asset is needed.
The numbers come from splitmix64, so that a test in C can make the same input.
"""

import argparse
import json
import os
import struct
import zlib

import numpy as np

MEL_SEED = 20260001
N_FFT_BINS = 201
SOT, EN, TRANSCRIBE = 50258, 50259, 50359
# 64 wide with two heads of 32; large-v3's layout has 128 mel bands, one language more and, as turbo, fewer decoder layers.
VARIANTS = {
    "tiny-multilingual": dict(seed=1, n_mels=80, n_vocab=51865, n_audio_layer=2, n_text_layer=2),
    "tiny-english": dict(seed=2, n_mels=80, n_vocab=51864, n_audio_layer=2, n_text_layer=2),
    "tiny-large-v3": dict(seed=3, n_mels=128, n_vocab=51866, n_audio_layer=3, n_text_layer=1),
}
# A few kilobytes in the same layouts, for readers (truncation, fuzzing); no Whisper model has this vocabulary. Only made when named.
MICRO = {"micro": dict(seed=4, n_mels=4, n_vocab=272, n_audio_layer=1, n_text_layer=1, n_state=4, n_head=1, n_audio_ctx=8, n_text_ctx=8)}
MICRO_SPECIALS = ("endoftext", "startoftranscript", "en", "translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps")
SMALLEST_VOCABULARY = 51864
# Up to <|notimestamps|>, so that plain argmax is what a greedy decoder without suppression does.
PROMPTS = {
    "tiny-multilingual": (SOT, EN, TRANSCRIBE, 50363),
    "tiny-english": (50257, 50362),
    "tiny-large-v3": (SOT, EN, TRANSCRIBE + 1, 50364),
}
LAYOUTS = (
    "ggml-f32", "ggml-f16", "gguf-f32", "gguf-f16", "ct2-float32", "ct2-float16", "ct2-bfloat16", "ct2-int8", "ct2-int8_float16", "ct2-v3", "hf", "hf-f16", "hf-sharded",
)
LANGUAGES = (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk "
    "sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue"
).split()


# ---- numbers ----


def splitmix64(seed, count):
    """The first `count` outputs of splitmix64 started at `seed`."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def integers(seed, shape, limit):
    """Integers of -limit..limit: (splitmix64 >> 33) mod (2 limit + 1) - limit."""
    count = int(np.prod(shape))
    return ((splitmix64(seed, count) >> np.uint64(33)).astype(np.int64) % (2 * limit + 1) - limit).reshape(shape)


def make_mel(n_mels):
    """The input of the golden values, [n_mels, 3000]: integers of -128..128 by 1/128."""
    return (integers(MEL_SEED, (n_mels, 3000), 128) / 128.0).astype(np.float32)


def make_weights(spec):
    """(dimensions, {original name: float32 array}) of a variant."""
    d = spec.get("n_state", 64)
    heads = spec.get("n_head", 2)
    dims = dict(
        n_mels=spec["n_mels"], n_audio_ctx=spec.get("n_audio_ctx", 1500), n_audio_state=d, n_audio_head=heads, n_audio_layer=spec["n_audio_layer"],
        n_vocab=spec["n_vocab"], n_text_ctx=spec.get("n_text_ctx", 448), n_text_state=d, n_text_head=heads, n_text_layer=spec["n_text_layer"],
    )
    out = {}

    def add(name, shape, step, limit=127):
        value = integers(spec["seed"] * 1000003 + zlib.crc32(name.encode()), shape, limit)
        if len(shape) == 2 and limit == 127:
            # A row's first number gives the row its largest magnitude: int8 by rows is then exact.
            value[:, 0] = np.where(value[:, 0] < 0, -127, 127)
        out[name] = (value * step).astype(np.float32)

    def linear(name, rows, columns, step, bias=True):
        add(name + ".weight", (rows, columns), step)
        if bias:
            add(name + ".bias", (rows,), 2.0**-9, 63)

    def norm(name):
        add(name + ".weight", (d,), 2.0**-6, 31)
        out[name + ".weight"] += np.float32(1.0)
        add(name + ".bias", (d,), 2.0**-9, 63)

    def attention(name):
        linear(name + ".query", d, d, 2.0**-8)
        linear(name + ".key", d, d, 2.0**-8, bias=False)
        linear(name + ".value", d, d, 2.0**-8)
        linear(name + ".out", d, d, 2.0**-8)

    def block(name, cross):
        attention(name + ".attn")
        norm(name + ".attn_ln")
        if cross:
            attention(name + ".cross_attn")
            norm(name + ".cross_attn_ln")
        linear(name + ".mlp.0", 4 * d, d, 2.0**-9)
        linear(name + ".mlp.2", d, 4 * d, 2.0**-9)
        norm(name + ".mlp_ln")

    add("encoder.conv1.weight", (d, dims["n_mels"], 3), 2.0**-10)
    add("encoder.conv1.bias", (d,), 2.0**-9, 63)
    add("encoder.conv2.weight", (d, d, 3), 2.0**-10)
    add("encoder.conv2.bias", (d,), 2.0**-9, 63)
    add("encoder.positional_embedding", (dims["n_audio_ctx"], d), 2.0**-7)
    for i in range(dims["n_audio_layer"]):
        block(f"encoder.blocks.{i}", cross=False)
    norm("encoder.ln_post")
    add("decoder.token_embedding.weight", (dims["n_vocab"], d), 2.0**-9)
    add("decoder.positional_embedding", (dims["n_text_ctx"], d), 2.0**-6)
    for i in range(dims["n_text_layer"]):
        block(f"decoder.blocks.{i}", cross=True)
    norm("decoder.ln")
    return dims, out


# ---- vocabulary ----


def byte_spelling():
    """{byte: character} of GPT-2's printable spelling, in the order of its first 256 tokens."""
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table = {b: chr(b) for b in printable}
    for b in range(256):
        if b not in table:
            table[b] = chr(256 + len(table) - len(printable))
    return table


def base_tokens(n_vocab):
    """Byte strings of the text tokens, 50257 (an empty one last) or, in the English vocabulary, 50256; and the merges."""
    singles = [bytes([b]) for b in byte_spelling()]
    ascii_characters = [bytes([b]) for b in range(32, 127)]
    pairs = [(a, b) for a in ascii_characters for b in ascii_characters]
    letters = [bytes([b]) for b in range(97, 123)]
    triples = [(a + b, c) for a in letters for b in letters for c in ascii_characters]
    if n_vocab < SMALLEST_VOCABULARY:
        return singles, []
    merges = (pairs + triples)[: 50256 - 256]
    tokens = singles + [a + b for a, b in merges]
    return tokens + ([] if n_vocab == 51864 else [b""]), merges


def special_tokens(n_vocab):
    if n_vocab < SMALLEST_VOCABULARY:
        times = n_vocab - 256 - len(MICRO_SPECIALS)
        return [f"<|{name}|>" for name in MICRO_SPECIALS] + [f"<|{i * 0.02:.2f}|>" for i in range(times)]
    languages = LANGUAGES[: 100 if n_vocab == 51866 else 99]
    names = ["endoftext", "startoftranscript", *languages, "translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps"]
    return [f"<|{name}|>" for name in names] + [f"<|{i * 0.02:.2f}|>" for i in range(1501)]


def spelled_vocabulary(n_vocab):
    table = byte_spelling()
    tokens, _ = base_tokens(n_vocab)
    words = ["".join(table[b] for b in token) for token in tokens] + special_tokens(n_vocab)
    if len(words) != n_vocab:
        raise ValueError(f"{len(words)} tokens, expected {n_vocab}")
    return words


def mel_filters(n_mels):
    """Slaney's triangles for 16 kHz and a 400-point transform, as librosa makes them."""
    def to_mel(hz):
        hz = np.asarray(hz, np.float64)
        return np.where(hz >= 1000.0, 15.0 + np.log(np.maximum(hz, 1e-9) / 1000.0) / (np.log(6.4) / 27.0), hz / (200.0 / 3.0))

    def to_hz(mel):
        return np.where(mel >= 15.0, 1000.0 * np.exp((np.log(6.4) / 27.0) * (mel - 15.0)), mel * (200.0 / 3.0))

    edges = to_hz(np.linspace(to_mel(0.0), to_mel(8000.0), n_mels + 2))
    bins = np.linspace(0.0, 8000.0, N_FFT_BINS)
    rising = (bins[None] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins[None]) / (edges[2:] - edges[1:-1])[:, None]
    return (np.maximum(0.0, np.minimum(rising, falling)) * (2.0 / (edges[2:] - edges[:-2]))[:, None]).astype(np.float32)


# ---- writers ----


def bfloat16_bits(value):
    bits = np.ascontiguousarray(value, "<f4").view("<u4")
    if np.any(bits & np.uint32(0xFFFF)):
        raise ValueError("a weight is not exact in bfloat16")
    return (bits >> np.uint32(16)).astype("<u2")


def exact(value, dtype):
    out = value.astype(dtype)
    if not np.array_equal(out.astype(np.float32), value):
        raise ValueError(f"a weight is not exact in {dtype}")
    return out


def stays_float32(name, value):
    return value.ndim < 2 or name in ("encoder.conv1.bias", "encoder.conv2.bias", "encoder.positional_embedding", "decoder.positional_embedding")


def write_ggml(path, dims, weights, half):
    order = ("n_vocab", "n_audio_ctx", "n_audio_state", "n_audio_head", "n_audio_layer", "n_text_ctx", "n_text_state", "n_text_head", "n_text_layer", "n_mels")
    tokens, _ = base_tokens(dims["n_vocab"])
    with open(path, "wb") as file:
        file.write(struct.pack("<I11i", 0x67676D6C, *(dims[key] for key in order), int(half)))
        file.write(struct.pack("<2i", dims["n_mels"], N_FFT_BINS) + mel_filters(dims["n_mels"]).tobytes())
        file.write(struct.pack("<i", len(tokens)))
        for token in tokens:
            file.write(struct.pack("<I", len(token)) + token)
        for name, value in weights.items():
            is_half = half and not stays_float32(name, value)
            # The two convolution biases are stored as columns.
            shape = (value.shape[0], 1) if name in ("encoder.conv1.bias", "encoder.conv2.bias") else value.shape
            label = name.encode()
            file.write(struct.pack("<3i", len(shape), len(label), int(is_half)) + struct.pack(f"<{len(shape)}i", *reversed(shape)) + label)
            file.write(exact(value, "<f2" if is_half else "<f4").tobytes())


GGUF_U32, GGUF_F32, GGUF_STRING, GGUF_ARRAY = 4, 6, 8, 9


def gguf_string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def write_gguf(path, dims, weights, half):
    tokens, _ = base_tokens(dims["n_vocab"])
    filters = mel_filters(dims["n_mels"])
    entries = [("general.architecture", GGUF_STRING, gguf_string("whisper")), ("general.alignment", GGUF_U32, struct.pack("<I", 32))]
    entries += [("whisper." + key, GGUF_U32, struct.pack("<I", value)) for key, value in dims.items()]
    entries.append(("whisper.mel_filters", GGUF_ARRAY, struct.pack("<IQ", GGUF_F32, filters.size) + filters.tobytes()))
    entries.append(("tokenizer.ggml.tokens", GGUF_ARRAY, struct.pack("<IQ", GGUF_STRING, len(tokens)) + b"".join(gguf_string(t) for t in tokens)))
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(weights), len(entries)))
        for key, kind, data in entries:
            file.write(gguf_string(key) + struct.pack("<I", kind) + data)
        offset, blobs = 0, []
        for name, value in weights.items():
            is_half = half and not stays_float32(name, value)
            data = exact(value, "<f2" if is_half else "<f4").tobytes()
            file.write(gguf_string(name) + struct.pack(f"<I{value.ndim}QIQ", value.ndim, *reversed(value.shape), int(is_half), offset))
            data += b"\0" * (-len(data) % 32)
            offset += len(data)
            blobs.append(data)
        file.write(b"\0" * (-file.tell() % 32))
        file.write(b"".join(blobs))


def ct2_variables(dims, weights):
    """CTranslate2's names: query, key and value of one input are one matrix; the key's missing bias is zeros."""
    out = {}

    def copy(target, source):
        out[target + "/weight"], out[target + "/bias"] = weights[source + ".weight"], weights[source + ".bias"]

    def norm(target, source):
        out[target + "/gamma"], out[target + "/beta"] = weights[source + ".weight"], weights[source + ".bias"]

    def fuse(target, source, parts):
        out[target + "/weight"] = np.concatenate([weights[f"{source}.{p}.weight"] for p in parts])
        zeros = np.zeros(out[target + "/weight"].shape[1], np.float32)
        out[target + "/bias"] = np.concatenate([weights.get(f"{source}.{p}.bias", zeros) for p in parts])

    for side in ("encoder", "decoder"):
        out[side + "/position_encodings/encodings"] = weights[side + ".positional_embedding"]
        out[side + "/num_heads"] = np.int16(dims["n_audio_head" if side == "encoder" else "n_text_head"])
        for i in range(dims["n_audio_layer" if side == "encoder" else "n_text_layer"]):
            target, source = f"{side}/layer_{i}", f"{side}.blocks.{i}"
            norm(target + "/self_attention/layer_norm", source + ".attn_ln")
            fuse(target + "/self_attention/linear_0", source + ".attn", ("query", "key", "value"))
            copy(target + "/self_attention/linear_1", source + ".attn.out")
            if side == "decoder":
                norm(target + "/attention/layer_norm", source + ".cross_attn_ln")
                copy(target + "/attention/linear_0", source + ".cross_attn.query")
                fuse(target + "/attention/linear_1", source + ".cross_attn", ("key", "value"))
                copy(target + "/attention/linear_2", source + ".cross_attn.out")
            norm(target + "/ffn/layer_norm", source + ".mlp_ln")
            copy(target + "/ffn/linear_0", source + ".mlp.0")
            copy(target + "/ffn/linear_1", source + ".mlp.2")
    copy("encoder/conv1", "encoder.conv1")
    copy("encoder/conv2", "encoder.conv2")
    norm("encoder/layer_norm", "encoder.ln_post")
    norm("decoder/layer_norm", "decoder.ln")
    out["decoder/embeddings/weight"] = weights["decoder.token_embedding.weight"]
    for name, value in (("activation", 3), ("alibi", 0), ("pre_norm", 1), ("scale_embeddings", 0), ("start_from_zero_embedding", 0)):
        out["decoder/" + name] = np.int8(value)
    out["decoder/alignment_heads"], out["decoder/alignment_layer"] = np.int16(1), np.int16(-1)
    return dict(sorted(out.items()))


CT2_TYPES = {"float32": 0, "int8": 1, "int16": 2, "float16": 4, "bfloat16": 5}


def write_ct2(folder, dims, weights, kind):
    os.makedirs(folder, exist_ok=True)
    quantised = kind.startswith("int8")
    rest = {"int8": "float32", "int8_float16": "float16", "v3": "float32"}.get(kind, kind)
    version = 3 if kind == "v3" else 6
    stored = []

    def put(name, value, dtype):
        data = bfloat16_bits(value) if dtype == "bfloat16" else exact(value, {"float32": "<f4", "float16": "<f2"}[dtype])
        stored.append((name, value.shape, dtype, data.tobytes()))

    for name, value in ct2_variables(dims, weights).items():
        if value.ndim == 0:
            stored.append((name, (), str(value.dtype), value.tobytes()))
        elif quantised and name.endswith("/weight") and "conv" not in name:
            scale = (127.0 / np.abs(value).max(axis=1)).astype(np.float32)
            stored.append((name, value.shape, "int8", exact(value * scale[:, None], np.int8).tobytes()))
            stored.append((name + "_scale", scale.shape, "float32", scale.tobytes()))
        else:
            put(name, value, rest)

    def string(text):
        return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"

    with open(os.path.join(folder, "model.bin"), "wb") as file:
        file.write(struct.pack("<I", version) + string("WhisperSpec") + struct.pack("<2I", 3, len(stored)))
        for name, shape, dtype, data in stored:
            file.write(string(name) + struct.pack(f"<B{len(shape)}I", len(shape), *shape))
            width = {"float32": 4, "int8": 1}.get(dtype, 2)
            # Version 3 stores the width of an item and their number instead of a type and a size.
            file.write(struct.pack("<BI", width, len(data) // width) if version == 3 else struct.pack("<BI", CT2_TYPES[dtype], len(data)))
            file.write(data)
        file.write(struct.pack("<I", 1) + string("decoder/projection/weight") + string("decoder/embeddings/weight"))
    words = spelled_vocabulary(dims["n_vocab"])
    eot = words.index("<|endoftext|>")
    languages = [i for i, word in enumerate(words) if word.strip("<|>") in LANGUAGES and i > eot]
    write_json(os.path.join(folder, "config.json"), {"alignment_heads": [[0, 0]], "lang_ids": languages, "suppress_ids": [1, 2, 7, words.index("<|startoftranscript|>")], "suppress_ids_begin": [220, eot]})
    # Old converters write a list of lines, new ones a JSON array.
    if kind == "float16":
        write_json(os.path.join(folder, "vocabulary.json"), words)
    else:
        with open(os.path.join(folder, "vocabulary.txt"), "w", encoding="utf-8", newline="\n") as file:
            file.write("".join(word + "\n" for word in words))


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False)


HF_PARTS = (
    ("attn.query", "self_attn.q_proj"), ("attn.key", "self_attn.k_proj"), ("attn.value", "self_attn.v_proj"), ("attn.out", "self_attn.out_proj"), ("attn_ln", "self_attn_layer_norm"),
    ("cross_attn.query", "encoder_attn.q_proj"), ("cross_attn.key", "encoder_attn.k_proj"), ("cross_attn.value", "encoder_attn.v_proj"), ("cross_attn.out", "encoder_attn.out_proj"),
    ("cross_attn_ln", "encoder_attn_layer_norm"), ("mlp.0", "fc1"), ("mlp.2", "fc2"), ("mlp_ln", "final_layer_norm"),
)
HF_WHOLE = {
    "encoder.positional_embedding": "model.encoder.embed_positions.weight",
    "decoder.positional_embedding": "model.decoder.embed_positions.weight",
    "decoder.token_embedding.weight": "model.decoder.embed_tokens.weight",
    "encoder.ln_post.weight": "model.encoder.layer_norm.weight",
    "encoder.ln_post.bias": "model.encoder.layer_norm.bias",
    "decoder.ln.weight": "model.decoder.layer_norm.weight",
    "decoder.ln.bias": "model.decoder.layer_norm.bias",
}


def hf_name(name):
    if name in HF_WHOLE:
        return HF_WHOLE[name]
    side, rest = name.split(".", 1)
    if not rest.startswith("blocks."):
        return f"model.{name}"
    _, index, part = rest.split(".", 2)
    module, leaf = part.rsplit(".", 1)
    return f"model.{side}.layers.{index}.{dict(HF_PARTS)[module]}.{leaf}"


def write_safetensors(path, tensors, half):
    header, blobs, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name, value in tensors.items():
        data = exact(value, "<f2" if half else "<f4").tobytes()
        header[name] = {"dtype": "F16" if half else "F32", "shape": list(value.shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
        blobs.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def write_hf(folder, dims, weights, half, shards):
    os.makedirs(folder, exist_ok=True)
    tensors = {hf_name(name): value for name, value in weights.items()}
    if shards == 1:
        write_safetensors(os.path.join(folder, "model.safetensors"), tensors, half)
    else:
        names, where = list(tensors), {}
        for i in range(shards):
            file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
            part = names[i * len(names) // shards : (i + 1) * len(names) // shards]
            write_safetensors(os.path.join(folder, file), {name: tensors[name] for name in part}, half)
            where.update((name, file) for name in part)
        total = sum(value.size for value in tensors.values()) * (2 if half else 4)
        write_json(os.path.join(folder, "model.safetensors.index.json"), {"metadata": {"total_size": total}, "weight_map": where})

    n_vocab, d = dims["n_vocab"], dims["n_text_state"]
    words = spelled_vocabulary(n_vocab)
    ids = {word: i for i, word in enumerate(words)}
    eot = ids["<|endoftext|>"]
    table = byte_spelling()
    spell = lambda data: "".join(table[b] for b in data)
    merges = [f"{spell(a)} {spell(b)}" for a, b in base_tokens(n_vocab)[1]]
    write_json(os.path.join(folder, "config.json"), {
        "architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "activation_function": "gelu", "d_model": d,
        "num_mel_bins": dims["n_mels"], "vocab_size": n_vocab, "max_source_positions": dims["n_audio_ctx"], "max_target_positions": dims["n_text_ctx"],
        "encoder_layers": dims["n_audio_layer"], "encoder_attention_heads": dims["n_audio_head"], "encoder_ffn_dim": 4 * d,
        "decoder_layers": dims["n_text_layer"], "decoder_attention_heads": dims["n_text_head"], "decoder_ffn_dim": 4 * d,
        "scale_embedding": False, "tie_word_embeddings": True, "eos_token_id": eot, "decoder_start_token_id": eot + 1, "torch_dtype": "float16" if half else "float32",
    })
    generation = {
        "begin_suppress_tokens": [220, eot], "suppress_tokens": [1, 2, 7, eot + 1], "decoder_start_token_id": eot + 1, "eos_token_id": eot,
        "is_multilingual": n_vocab != 51864, "max_initial_timestamp_index": 50, "max_length": dims["n_text_ctx"], "no_timestamps_token_id": ids["<|notimestamps|>"],
        "alignment_heads": [[0, 0]],
    }
    if n_vocab != 51864:
        generation["lang_to_id"] = {word: i for word, i in ids.items() if i > eot and word.strip("<|>") in LANGUAGES}
        generation["task_to_id"] = {"transcribe": ids["<|transcribe|>"], "translate": ids["<|translate|>"]}
    write_json(os.path.join(folder, "generation_config.json"), generation)
    # As in the real folders: the base vocabulary and, apart, the added tokens.
    write_json(os.path.join(folder, "vocab.json"), {word: i for word, i in ids.items() if i <= eot})
    write_json(os.path.join(folder, "added_tokens.json"), {word: i for word, i in ids.items() if i > eot})
    with open(os.path.join(folder, "merges.txt"), "w", encoding="utf-8", newline="\n") as file:
        file.write("#version: 0.2\n" + "".join(merge + "\n" for merge in merges))
    if shards == 1:
        added = [{"id": i, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": i < ids["<|0.00|>"]} for word, i in ids.items() if i >= eot]
        write_json(os.path.join(folder, "tokenizer.json"), {
            "version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}, "model": {"type": "BPE", "vocab": {word: i for word, i in ids.items() if i <= eot}, "merges": merges},
        })
    write_json(os.path.join(folder, "preprocessor_config.json"), {"feature_size": dims["n_mels"], "sampling_rate": 16000, "n_fft": 400, "hop_length": 160, "chunk_length": 30})


def write_layout(folder, variant, layout, dims, weights):
    """Writes one model and gives its path: NAME-LAYOUT.bin, .gguf or a folder NAME-LAYOUT."""
    path = os.path.join(folder, f"{variant}-{layout}")
    kind, _, rest = layout.partition("-")
    if kind == "ggml":
        path += ".bin"
        write_ggml(path, dims, weights, rest == "f16")
    elif kind == "gguf":
        path += ".gguf"
        write_gguf(path, dims, weights, rest == "f16")
    elif kind == "ct2":
        write_ct2(path, dims, weights, rest)
    else:
        write_hf(path, dims, weights, rest == "f16", 3 if rest == "sharded" else 1)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--variant", action="append", choices=[*VARIANTS, *MICRO])
    parser.add_argument("--layout", action="append", choices=LAYOUTS)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    for variant in args.variant or VARIANTS:
        dims, weights = make_weights({**VARIANTS, **MICRO}[variant])
        for layout in args.layout or LAYOUTS:
            print(write_layout(args.out, variant, layout, dims, weights))


if __name__ == "__main__":
    main()
