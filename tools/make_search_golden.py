#!/usr/bin/env python3
"""Makes tests/unit/data/search.json: what openai-whisper's decoding and transcription do with a network made of arithmetic.

    make_search_golden.py OUT.json          (needs openai-whisper and torch)

The network has no weights: the logits after a token history in the window that starts at frame `seek` come from splitmix64, so
that tests in C can make the same ones (test_search.c). The vocabulary is that of tests/unit/speech_support.h: the 256 bytes, " a" to
" z", "th", "the". Beam search, patience, penalties, filters, prompts and the seek loop are then the original's own code.
"""

import json
import sys

import numpy as np
import tiktoken
import torch
import whisper
import whisper.decoding
import whisper.tokenizer
import whisper.transcribe

N_TEXT, N_LANGUAGES, N_CTX = 284, 99, 64
GAMMA = 0x9E3779B97F4A7C15
M64 = (1 << 64) - 1


def mix(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def make_tokenizer(multilingual=True, num_languages=N_LANGUAGES, language="en", task="transcribe", **_):
    ranks = {bytes([i]): i for i in range(256)}
    for i in range(26):
        ranks[b" " + bytes([97 + i])] = 256 + i
    ranks[b"th"], ranks[b"the"] = 282, 283
    names = ["<|endoftext|>", "<|startoftranscript|>", *[f"<|{code}|>" for code in list(whisper.tokenizer.LANGUAGES)[:N_LANGUAGES]]]
    names += ["<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
    names += [f"<|{i * 0.02:.2f}|>" for i in range(1501)]
    special = {name: N_TEXT + i for i, name in enumerate(names)}
    pattern = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
    encoding = tiktoken.Encoding(name="fake", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    return whisper.tokenizer.Tokenizer(encoding=encoding, num_languages=N_LANGUAGES, language=language or "en", task=task or "transcribe")


T = make_tokenizer()
N_VOCAB = T.timestamp_begin + 1501


def logits_after(seek, history, quiet):
    """The network. All of it is exact in float32, step by step as in C."""
    with np.errstate(over="ignore"):
        seed = np.uint64(seek + 1) * np.uint64(GAMMA)
        for token in history:
            seed = mix(seed + np.uint64(token + 1))
        bits = mix(seed + np.arange(N_VOCAB, dtype=np.uint64) * np.uint64(GAMMA)) >> np.uint64(40)
    x = bits.astype(np.float32) * np.float32(2.0**-24)
    x = x * x
    x = x * x
    x = x * x
    out = x * np.float32(32.0)
    out[128:256] -= np.float32(40.0)
    out[T.eot + 1 : T.timestamp_begin] -= np.float32(20.0)
    out[T.timestamp_begin :] -= np.float32(6.0)
    sampled = len(history) - list(history).index(T.sot) - 3
    out[T.eot] += np.float32(max(sampled, 0))
    if quiet and history[-1] == T.sot:
        out[T.no_speech] += np.float32(60.0)
    return out


class Inference(whisper.decoding.Inference):
    def __init__(self, model, _):
        self.model = model

    def logits(self, tokens, audio_features):
        seek = int(audio_features[0, 0, 0])
        quiet = self.model.quiet_every > 0 and (seek // 100) % self.model.quiet_every == 1
        rows = [[logits_after(seek, row[: i + 1], quiet) if i in (row.index(T.sot), len(row) - 1) else np.zeros(N_VOCAB, np.float32) for i in range(len(row))] for row in tokens.tolist()]
        return torch.tensor(np.array(rows))

    def rearrange_kv_cache(self, source_indices):
        pass


class Model:
    def __init__(self, quiet_every=0):
        self.dims = whisper.model.ModelDimensions(2, 1500, 1, 1, 1, N_VOCAB, N_CTX, 1, 1, 1)
        self.is_multilingual, self.num_languages, self.device = True, N_LANGUAGES, torch.device("cpu")
        self.quiet_every = quiet_every

    def encoder(self, mel):
        return mel

    def decode(self, mel, options):
        return whisper.decoding.decode(self, mel, options)


def decode_cases():
    variants = [dict()]
    for beams in (2, 3, 5, 8):
        variants.append(dict(beam_size=beams))
    variants += [
        dict(beam_size=3, patience=2.0),
        dict(beam_size=4, patience=0.5),
        dict(beam_size=5, patience=1.5),
        dict(beam_size=5, length_penalty=0.2),
        dict(beam_size=5, length_penalty=1.0),
        dict(beam_size=5, length_penalty=0.0),
        dict(beam_size=5, without_timestamps=True),
        dict(without_timestamps=True),
        dict(beam_size=4, sample_len=4),
        dict(sample_len=3),
        dict(beam_size=3, max_initial_timestamp=None),
        dict(max_initial_timestamp=0.1),
        dict(suppress_tokens="", suppress_blank=False),
        dict(beam_size=5, suppress_tokens="-1,260,261"),
        dict(task="translate", language="de"),
        dict(prompt=[256 + i % 26 for i in range(5)]),
        dict(beam_size=5, prompt=[256 + i % 26 for i in range(40)]),
        dict(beam_size=3, prefix=[283, 270], without_timestamps=True),
    ]
    for number, options in enumerate(variants):
        for seek in range(number * 1000, number * 1000 + 4):
            yield seek, options


def transcribe_cases():
    yield 12345, 0, dict()
    yield 12345, 0, dict(beam_size=5)
    yield 20000, 3, dict(beam_size=2, no_speech_threshold=0.6, logprob_threshold=None)
    yield 20000, 3, dict(no_speech_threshold=0.6, logprob_threshold=-50.0)
    yield 12345, 0, dict(condition_on_previous_text=False)
    yield 9000, 0, dict(initial_prompt="the cat  ")
    yield 9000, 0, dict(initial_prompt="a b c d e f g h i j k l m n o p q r s t u v w x y z " * 2)
    yield 12345, 0, dict(initial_prompt=" q r s", carry_initial_prompt=True)
    yield 12345, 0, dict(initial_prompt=" q r s", condition_on_previous_text=False)
    yield 12345, 0, dict(clip_timestamps="12.5,61.25")
    yield 12345, 0, dict(clip_timestamps="100", task="translate", language="fr")
    yield 150, 0, dict()
    yield 1, 0, dict()
    yield 3000, 0, dict(beam_size=3)
    yield 12345, 0, dict(compression_ratio_threshold=0.5, beam_size=2)


def main():
    whisper.decoding.PyTorchInference = Inference
    whisper.decoding.get_tokenizer = whisper.transcribe.get_tokenizer = make_tokenizer
    sys.modules["whisper.decoding"].get_tokenizer = make_tokenizer
    transcribe_module = sys.modules["whisper.transcribe"]
    transcribe_module.get_tokenizer = make_tokenizer
    out = {"decode": [], "transcribe": []}
    for seek, options in decode_cases():
        mel = torch.full((2, 3000), float(seek))
        r = whisper.decoding.decode(Model(), mel, whisper.decoding.DecodingOptions(fp16=False, **{"language": "en", **options}))
        out["decode"].append({"seek": seek, "options": options, "tokens": r.tokens, "avg_logprob": r.avg_logprob, "no_speech_prob": r.no_speech_prob, "compression_ratio": r.compression_ratio})
    for frames, quiet_every, options in transcribe_cases():
        mel = torch.zeros(2, frames + 3000)
        mel[:, :frames] = torch.arange(frames, dtype=torch.float32)
        transcribe_module.log_mel_spectrogram = lambda *_, **__: mel
        given = {"language": "en", "logprob_threshold": None, "compression_ratio_threshold": None, "no_speech_threshold": None, **options}
        r = whisper.transcribe(Model(quiet_every), np.zeros(16), fp16=False, verbose=None, temperature=(0.0,), **given)
        segments = [{k: s[k] for k in ("seek", "start", "end", "tokens", "text", "avg_logprob")} for s in r["segments"]]
        out["transcribe"].append({"frames": frames, "quiet_every": quiet_every, "options": given, "segments": segments})
        print(frames, options, len(segments), len({s["seek"] for s in segments}), flush=True)
    lengths = [len(c["tokens"]) for c in out["decode"]]
    print("decode: lengths", min(lengths), max(lengths), sum(lengths) / len(lengths))
    with open(sys.argv[1], "w") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")


main()
