"""Reads a CTranslate2 Whisper folder (numpy only) and names its weights as the original implementation does."""

import json
import os
import struct

import numpy as np

DTYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
ITEM_SIZE = {"float32": 4, "int8": 1, "int16": 2, "int32": 4, "float16": 2, "bfloat16": 2}
# Before version 4 a file stored the width of an item, not its type.
TYPE_OF_WIDTH = {4: "float32", 2: "int16", 1: "int8"}


def to_float32(raw, dtype, shape):
    """Gives the stored numbers as they are, in float32 (integers stay integers)."""
    if dtype == "bfloat16":
        data = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
    elif dtype in ("float32", "float16"):
        data = np.frombuffer(raw, "<f4" if dtype == "float32" else "<f2").astype(np.float32)
    else:
        data = np.frombuffer(raw, {"int8": "<i1", "int16": "<i2", "int32": "<i4"}[dtype])
    return data.reshape(shape)


def read_variables(path):
    """{name: array}: weights in float32, dequantised; scalars as integers. Aliases are resolved."""
    with open(path, "rb") as file:
        blob = file.read()
    at = 0

    def number(code):
        nonlocal at
        value = struct.unpack_from("<" + code, blob, at)[0]
        at += struct.calcsize("<" + code)
        return value

    def string():
        nonlocal at
        length = number("H")
        value = blob[at : at + length]
        at += length
        return value[:-1].decode("utf-8")

    version = number("I")
    if not 3 <= version <= 6:
        raise ValueError(f"{path}: binary version {version}, expected 3 to 6")
    string()
    number("I")
    stored = {}
    for _ in range(number("I")):
        name = string()
        shape = [number("I") for _ in range(number("B"))]
        if version >= 4:
            dtype = DTYPES[number("B")]
            size = number("I")
        else:
            dtype = TYPE_OF_WIDTH[number("B")]
            size = number("I") * ITEM_SIZE[dtype]
        stored[name] = to_float32(blob[at : at + size], dtype, shape)
        at += size
    for _ in range(number("I")):
        alias, target = string(), string()
        stored[alias] = stored[target]
        if target + "_scale" in stored:
            stored[alias + "_scale"] = stored[target + "_scale"]

    variables = {}
    for name, value in stored.items():
        scale = stored.get(name + "_scale")
        if scale is not None:
            scale = np.asarray(scale, np.float32)
            value = value.astype(np.float32) / scale.reshape(scale.shape + (1,) * (value.ndim - scale.ndim))
        if not name.endswith("_scale"):
            variables[name] = value
    return variables


def original_weights(folder):
    """(dimensions, {original name: float32 array}) of a CTranslate2 Whisper folder."""
    variables = read_variables(os.path.join(folder, "model.bin"))
    out = {}

    def put(name, source):
        out[name + ".weight"] = variables[source + "/weight"]
        out[name + ".bias"] = variables[source + "/bias"]

    def put_norm(name, source):
        out[name + ".weight"] = variables[source + "/gamma"]
        out[name + ".bias"] = variables[source + "/beta"]

    def put_split(prefix, parts, source):
        weights = np.split(variables[source + "/weight"], len(parts))
        biases = np.split(variables[source + "/bias"], len(parts))
        for part, weight, bias in zip(parts, weights, biases):
            out[f"{prefix}.{part}.weight"] = weight
            if part != "key":
                out[f"{prefix}.{part}.bias"] = bias

    def layers(side):
        return sorted({int(name.split("/")[1][6:]) for name in variables if name.startswith(side + "/layer_") and name.split("/")[1][6:].isdigit()})

    put("encoder.conv1", "encoder/conv1")
    put("encoder.conv2", "encoder/conv2")
    put_norm("encoder.ln_post", "encoder/layer_norm")
    put_norm("decoder.ln", "decoder/layer_norm")
    out["encoder.positional_embedding"] = variables["encoder/position_encodings/encodings"]
    out["decoder.positional_embedding"] = variables["decoder/position_encodings/encodings"]
    out["decoder.token_embedding.weight"] = variables["decoder/embeddings/weight"]
    for side in ("encoder", "decoder"):
        for i in layers(side):
            block, source = f"{side}.blocks.{i}", f"{side}/layer_{i}"
            put_norm(block + ".attn_ln", source + "/self_attention/layer_norm")
            put_split(block + ".attn", ("query", "key", "value"), source + "/self_attention/linear_0")
            put(block + ".attn.out", source + "/self_attention/linear_1")
            if side == "decoder":
                put_norm(block + ".cross_attn_ln", source + "/attention/layer_norm")
                put(block + ".cross_attn.query", source + "/attention/linear_0")
                put_split(block + ".cross_attn", ("key", "value"), source + "/attention/linear_1")
                put(block + ".cross_attn.out", source + "/attention/linear_2")
            put_norm(block + ".mlp_ln", source + "/ffn/layer_norm")
            put(block + ".mlp.0", source + "/ffn/linear_0")
            put(block + ".mlp.2", source + "/ffn/linear_1")

    vocab, text_state = out["decoder.token_embedding.weight"].shape
    dims = dict(
        n_mels=out["encoder.conv1.weight"].shape[1],
        n_audio_ctx=out["encoder.positional_embedding"].shape[0],
        n_audio_state=out["encoder.positional_embedding"].shape[1],
        n_audio_head=int(variables["encoder/num_heads"]),
        n_audio_layer=len(layers("encoder")),
        n_vocab=vocab,
        n_text_ctx=out["decoder.positional_embedding"].shape[0],
        n_text_state=text_state,
        n_text_head=int(variables["decoder/num_heads"]),
        n_text_layer=len(layers("decoder")),
    )
    return dims, out


def config(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        return json.load(file)
