#!/usr/bin/env python3
"""Makes the golden values in tests/golden/data with the original implementation (openai-whisper, PyTorch, float32).

    make_golden.py recordings --model DIR --samples DIR [--extra DIR] [--only NAME]
    make_golden.py tokenizer                 (needs nothing but openai-whisper)
    make_golden.py filters
    make_golden.py tiny                      (small seeded models, made by make_tiny_models.py; no files needed)
    make_golden.py thin                      (the same with windows whose padding is thin)

tests/golden/data/README.md describes what is written. `script/bootstrap --golden` installs what this needs.
"""

import argparse
import hashlib
import json
import os
import sys
import wave

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(HERE), "tests", "golden", "data")
sys.path.insert(0, HERE)

LIBRIVOX = "sense_and_sensibility_01_austen_64kb-%s.wav"
HALF_SECOND, SECOND = 8000, 16000
# name -> (language, parts); a part is a file name or a number of zero samples. Joined in this order.
RECORDINGS = {
    "librivox-0870": ("en", [LIBRIVOX % "0870"]),
    "librivox-0880": ("en", [LIBRIVOX % "0880"]),
    "librivox-0890": ("en", [LIBRIVOX % "0890"]),
    "librivox-0920": ("en", [LIBRIVOX % "0920"]),
    "librivox-0930": ("en", [LIBRIVOX % "0930"]),
    "librivox-pair": ("en", [LIBRIVOX % "0880", HALF_SECOND, LIBRIVOX % "0890"]),
    "librivox-all": (
        "en",
        [LIBRIVOX % "0870", HALF_SECOND, LIBRIVOX % "0880", HALF_SECOND, LIBRIVOX % "0890", HALF_SECOND, LIBRIVOX % "0920", HALF_SECOND, LIBRIVOX % "0930"],
    ),
    "librivox-long": ("en", []),
}
for turn in (("0870", "0880", "0890", "0920", "0930"), ("0930", "0890", "0870", "0920", "0880"), ("0920", "0870", "0930", "0890", "0880")):
    for clip in turn:
        RECORDINGS["librivox-long"][1].extend([LIBRIVOX % clip, SECOND])
# Recordings that are not fetched with the project: their tests skip where the files are not there.
EXTRA = {
    "jfk": ("en", ["jfk.wav"]),
    "pico-test": ("en", ["pico-test.wav"]),
    "pico-test-de": ("de", ["pico-test_de.wav"]),
    "pico-test-es": ("es", ["pico-test_es.wav"]),
    "pico-test-ja": ("ja", ["pico-test_ja.wav"]),
    "pico-empty": ("en", ["pico-empty.wav"]),
}
MEL_FRAMES = [0, 1, 2, 3, 50, 101, 150, 223, 298, 299, 300, 301, 407, 512, 700, 1000, 1499, 2000, 2998, 2999]
ENCODER_ROWS = [0, 1, 77, 149, 150, 260, 700, 1499]
N_LOGITS = 500


class Arrays:
    """Float arrays behind each other in one little-endian .f32 file; the JSON says where each begins."""

    def __init__(self):
        self.parts, self.size = [], 0

    def add(self, array):
        array = np.ascontiguousarray(array, dtype="<f4")
        entry = {"offset": self.size, "shape": list(array.shape)}
        self.parts.append(array.reshape(-1))
        self.size += array.size
        return entry

    def write(self, path):
        np.concatenate(self.parts).tofile(path)


def write_json(path, value):
    """One line a top-level key, so that a change shows as a small diff."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in value.items())
    with open(path, "w", encoding="utf-8") as file:
        file.write("{\n" + lines + "\n}\n")


def read_wav(path):
    with wave.open(path) as file:
        if (file.getnchannels(), file.getsampwidth(), file.getframerate()) != (1, 2, 16000):
            raise ValueError(f"{path}: not 16 bit, mono, 16 kHz")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


def assemble(folder, parts):
    return np.concatenate([np.zeros(p, "<i2") if isinstance(p, int) else read_wav(os.path.join(folder, p)) for p in parts])


def load_original(dims, weights):
    import torch
    from whisper.model import ModelDimensions, Whisper

    model = Whisper(ModelDimensions(**dims))
    state = {name: torch.from_numpy(np.array(value, np.float32)) for name, value in weights.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    if missing or unexpected:
        raise ValueError(f"weights do not match the original: missing {missing}, unexpected {unexpected}")
    return model.eval()


def sampled_logits(arrays, logits):
    n_vocab = logits.shape[-1]
    ids = [(i * 103 + 7) % n_vocab for i in range(N_LOGITS)]
    top = np.argsort(-logits, kind="stable")[:20]
    return {"ids": ids, "values": arrays.add(logits[ids]), "top_ids": top.tolist(), "top_values": arrays.add(logits[top])}


def decoded(result):
    return {
        "tokens": list(result.tokens),
        "avg_logprob": result.avg_logprob,
        "no_speech_prob": result.no_speech_prob,
        "compression_ratio": result.compression_ratio,
    }


def transcribed(model, audio, **options):
    import torch
    import whisper

    torch.manual_seed(0)
    result = whisper.transcribe(model, audio, fp16=False, verbose=None, **options)
    keys = ("seek", "start", "end", "tokens", "temperature", "avg_logprob", "compression_ratio", "no_speech_prob")
    return [{key: segment[key] for key in keys} for segment in result["segments"]]


def make_recording(model, out_folder, name, language, folder, parts):
    import torch
    import whisper

    pcm = assemble(folder, parts)
    audio = pcm.astype(np.float32) / 32768.0
    arrays = Arrays()
    out = {
        "name": name,
        "parts": parts,
        "samples": len(pcm),
        "pcm_sha256": hashlib.sha256(pcm.tobytes()).hexdigest(),
        "language": language,
    }
    whole = whisper.log_mel_spectrogram(audio, 80, padding=480000)
    out["transcribe_mel_frames"] = whole.shape[1]
    mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(audio), 80)
    out["mel"] = {"frames": MEL_FRAMES, "values": arrays.add(mel.numpy().T[MEL_FRAMES]), "norm": float(mel.double().norm()), "sum": float(mel.double().sum())}
    if name == "librivox-0870":
        mel128 = whisper.log_mel_spectrogram(whisper.pad_or_trim(audio), 128)
        out["mel128"] = {"frames": MEL_FRAMES, "values": arrays.add(mel128.numpy().T[MEL_FRAMES]), "norm": float(mel128.double().norm()), "sum": float(mel128.double().sum())}
    with torch.no_grad():
        encoded = model.encoder(mel[None])
        out["encoder"] = {"rows": ENCODER_ROWS, "values": arrays.add(encoded[0].numpy()[ENCODER_ROWS]), "norm": float(encoded.double().norm())}
        tokenizer = whisper.tokenizer.get_tokenizer(model.is_multilingual, num_languages=model.num_languages, language=language, task="transcribe")
        prompt = list(tokenizer.sot_sequence)
        logits = model.decoder(torch.tensor([prompt]), encoded)[0]
        out["first_logits"] = {"prompt": prompt, **sampled_logits(arrays, logits[-1].numpy())}
        out["no_speech_prob"] = float(logits[0].softmax(-1)[tokenizer.no_speech])
        if model.is_multilingual:
            _, probabilities = model.detect_language(encoded)
            out["language_probabilities"] = {code: round(p, 7) for code, p in probabilities[0].items()}

    def decode(**options):
        return decoded(whisper.decode(model, encoded[0], whisper.DecodingOptions(language=language, fp16=False, **options)))

    out["greedy_timestamps"] = decode()
    out["greedy_no_timestamps"] = decode(without_timestamps=True)
    out["beam5_timestamps"] = decode(beam_size=5)
    out["beam5_no_timestamps"] = decode(beam_size=5, without_timestamps=True)
    if name in ("librivox-0870", "jfk", "pico-test-de"):
        if model.is_multilingual:
            out["translate_greedy"] = decode(task="translate")
        out["prompt_greedy"] = {"prompt_text": "Sense and Sensibility, by Jane Austen.", **decode(prompt="Sense and Sensibility, by Jane Austen.")}
        out["prefix_greedy"] = {"prefix_text": "And Mister", **decode(prefix="And Mister", without_timestamps=True)}
        out["beam3_patience2"] = decode(beam_size=3, patience=2.0)
        out["beam5_length_penalty_0.2"] = decode(beam_size=5, length_penalty=0.2)
        out["greedy_suppress_nothing"] = decode(suppress_tokens="", suppress_blank=False)
        out["greedy_max_initial_timestamp_none"] = decode(max_initial_timestamp=None)
        out["greedy_sample_len_8"] = decode(sample_len=8)
    out["transcribe_greedy"] = transcribed(model, audio, language=language)
    out["transcribe_beam5"] = transcribed(model, audio, language=language, beam_size=5)
    if name == "librivox-long":
        out["transcribe_beam5_no_context"] = transcribed(model, audio, language=language, beam_size=5, condition_on_previous_text=False)
        out["transcribe_beam5_prompt"] = {
            "prompt_text": "Sense and Sensibility, by Jane Austen.",
            "segments": transcribed(model, audio, language=language, beam_size=5, initial_prompt="Sense and Sensibility, by Jane Austen."),
        }
    base = os.path.join(DATA, out_folder, name)
    write_json(base + ".json", out)
    arrays.write(base + ".f32")
    text = tokenizer.decode([t for s in out["transcribe_beam5"] for t in s["tokens"]])
    print(f"{name}: {len(pcm) / 16000:.2f} s, {len(out['transcribe_beam5'])} segments, temperatures {sorted({s['temperature'] for s in out['transcribe_beam5'] + out['transcribe_greedy']})}\n  {text[:150]}", flush=True)


def make_recordings(args):
    import ct2_model

    dims, weights = ct2_model.original_weights(args.model)
    model = load_original(dims, weights)
    for table, folder in ((RECORDINGS, args.samples), (EXTRA, args.extra)):
        for name, (language, parts) in table.items():
            if folder and (not args.only or args.only == name):
                make_recording(model, os.path.basename(os.path.normpath(args.model)), name, language, folder, parts)


def make_filters(_args):
    import whisper

    out = {}
    for bands in (80, 128):
        filters = whisper.audio.mel_filters("cpu", bands).numpy()
        rows = sorted({0, 1, 2, 10, bands // 2, bands - 2, bands - 1})
        out[str(bands)] = {
            "shape": list(filters.shape),
            "sum": float(filters.astype(np.float64).sum()),
            "sum_of_squares": float((filters.astype(np.float64) ** 2).sum()),
            "row_sums": [float(x) for x in filters.astype(np.float64).sum(1)],
            # Only the numbers that are not zero: [row, [[column, value], ...]].
            "rows": [[row, [[int(c), float(filters[row, c])] for c in np.flatnonzero(filters[row])]] for row in rows],
        }
    write_json(os.path.join(DATA, "filters.json"), out)


def make_tokenizer(_args):
    from golden_texts import texts
    from whisper.tokenizer import LANGUAGES, TO_LANGUAGE_CODE, get_tokenizer
    from whisper.utils import compression_ratio

    kinds = {"multilingual": (True, 99), "english": (False, 99), "large_v3": (True, 100)}
    out = {"languages": list(LANGUAGES.items()), "language_names": TO_LANGUAGE_CODE}
    for kind, (multilingual, languages) in kinds.items():
        t = get_tokenizer(multilingual, num_languages=languages)
        out[kind] = {
            "n_vocab": t.encoding.n_vocab,
            "eot": t.eot,
            "sot": t.sot,
            "translate": t.translate,
            "transcribe": t.transcribe,
            "sot_lm": t.sot_lm,
            "sot_prev": t.sot_prev,
            "no_speech": t.no_speech,
            "no_timestamps": t.no_timestamps,
            "timestamp_begin": t.timestamp_begin,
            "languages": {code: t.sot + 1 + i for i, code in enumerate(list(LANGUAGES)[:languages])},
            "non_speech_tokens": list(t.non_speech_tokens),
            "sot_sequence": list(t.sot_sequence),
            "blank": t.encode(" "),
        }
    multilingual = get_tokenizer(True).encoding
    english = get_tokenizer(False).encoding
    out["texts"] = [{"text": text, "multilingual": multilingual.encode_ordinary(text), "english": english.encode_ordinary(text)} for text in texts()]
    # Single tokens whose bytes are no whole UTF-8 sequence, as hex.
    partial = [i for i in range(50256) if not_utf8(multilingual.decode_single_token_bytes(i))][::29]
    out["partial_tokens"] = [[i, multilingual.decode_single_token_bytes(i).hex()] for i in partial]
    samples = [" he was not an ill disposed young man" * n for n in (1, 2, 5, 20)] + ["a", "ab" * 100, "客観的実在の判断的知識が成立するのである", "0" * 1000, ". . . . . . ."]
    out["compression_ratios"] = [[text, compression_ratio(text)] for text in samples]
    write_json(os.path.join(DATA, "tokenizer.json"), out)
    print(len(out["texts"]), "texts")


def not_utf8(data):
    try:
        data.decode("utf-8")
        return False
    except UnicodeDecodeError:
        return True


THIN_FRAMES = 701


def thin_encoder(encoder, mel):
    """The original's encoder on a window with THIN_FRAMES of sound, but behind the convolutions of the padding only some positions
    are kept: those of its first 4 s, then every eighth. The decoder sees each once for every position up to the next."""
    import torch.nn.functional as functional

    x = functional.gelu(encoder.conv2(functional.gelu(encoder.conv1(mel)))).permute(0, 2, 1)
    x = x + encoder.positional_embedding
    whole = (THIN_FRAMES + 1) // 2 + 200
    kept = list(range(whole)) + list(range(whole, x.shape[1], 8))
    x = x[:, kept]
    for block in encoder.blocks:
        x = block(x)
    stands = [max(k for k, at in enumerate(kept) if at <= i) for i in range(encoder.positional_embedding.shape[0])]
    return encoder.ln_post(x)[:, stands], len(kept)


def make_thin(_args):
    import make_tiny_models
    import torch

    for name, spec in make_tiny_models.VARIANTS.items():
        dims, weights = make_tiny_models.make_weights(spec)
        model = load_original(dims, weights)
        mel = torch.from_numpy(make_tiny_models.make_mel(dims["n_mels"]))
        mel[:, THIN_FRAMES:] = 0
        arrays = Arrays()
        tokens = list(make_tiny_models.PROMPTS[name]) + [(i * 7919 + 13) % 50000 for i in range(40)]
        with torch.no_grad():
            thin, n_kept = thin_encoder(model.encoder, mel[None])
            out = {"name": name, "mel_seed": make_tiny_models.MEL_SEED, "n_frames": THIN_FRAMES, "n_kept": n_kept, "tokens": tokens}
            for key, encoded in (("thin_logits", thin), ("whole_logits", model.encoder(mel[None]))):
                out[key] = sampled_logits(arrays, model.decoder(torch.tensor([tokens]), encoded)[0, -1].numpy())
        base = os.path.join(DATA, "thin", name)
        write_json(base + ".json", out)
        arrays.write(base + ".f32")
        print(name, n_kept, flush=True)


def make_tiny(_args):
    import make_tiny_models
    import torch

    for name, spec in make_tiny_models.VARIANTS.items():
        dims, weights = make_tiny_models.make_weights(spec)
        model = load_original(dims, weights)
        mel = torch.from_numpy(make_tiny_models.make_mel(dims["n_mels"]))
        arrays = Arrays()
        out = {"name": name, "dims": dims, "seed": spec["seed"], "mel_seed": make_tiny_models.MEL_SEED}
        out["mel"] = {"first": [float(x) for x in mel.reshape(-1)[:8]], "sum": float(mel.double().sum())}
        out["weights"] = {key: {"first": [float(x) for x in value.reshape(-1)[:3]], "sum": float(value.astype(np.float64).sum())} for key, value in weights.items()}
        with torch.no_grad():
            encoded = model.encoder(mel[None])
            out["encoder"] = {"rows": ENCODER_ROWS, "values": arrays.add(encoded[0].numpy()[ENCODER_ROWS]), "norm": float(encoded.double().norm())}
            tokens = list(make_tiny_models.PROMPTS[name])
            out["prompt"] = list(tokens)
            first, chosen, margins = None, [], []
            for _ in range(32):
                logits = model.decoder(torch.tensor([tokens]), encoded)[0, -1].numpy()
                if first is None:
                    first = logits
                order = np.argsort(-logits, kind="stable")[:2]
                chosen.append(int(order[0]))
                margins.append(float(logits[order[0]] - logits[order[1]]))
                tokens.append(chosen[-1])
            out["first_logits"] = sampled_logits(arrays, first)
            out["argmax_tokens"] = chosen
            out["argmax_margins"] = [round(m, 4) for m in margins]
            forced = [(i * 7919 + 13) % 50000 for i in range(40)]
            logits = model.decoder(torch.tensor([out["prompt"] + forced]), encoded)[0, -1].numpy()
            out["forced_tokens"] = forced
            out["forced_logits"] = sampled_logits(arrays, logits)
        base = os.path.join(DATA, "tiny", name)
        write_json(base + ".json", out)
        arrays.write(base + ".f32")
        print(name, "distinct tokens", len(set(chosen)), "smallest margin", min(margins), chosen[:12], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recordings = commands.add_parser("recordings")
    recordings.add_argument("--model", required=True, help="CTranslate2 folder; its name is that of the folder of results")
    recordings.add_argument("--samples", required=True, help="folder of the LibriVox clips")
    recordings.add_argument("--extra", help="folder of the recordings that are not fetched with the project")
    recordings.add_argument("--only")
    recordings.set_defaults(run=make_recordings)
    for name, run in (("tokenizer", make_tokenizer), ("filters", make_filters), ("tiny", make_tiny), ("thin", make_thin)):
        commands.add_parser(name).set_defaults(run=run)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
