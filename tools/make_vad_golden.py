#!/usr/bin/env python3
"""Makes tests/golden/data/silero.json: probabilities and spans of the package silero-vad 6.2.3 (PyTorch) for the sample recordings.

    make_vad_golden.py --samples DIR

The network is the package's own TorchScript model with the weights of its file silero_vad_16k.safetensors, which differ from those inside
the TorchScript file; spans are those of its get_speech_timestamps_from_probs(). Needs `pip install silero-vad==6.2.3 torch numpy`.
"""

import argparse
import json
import os
import struct
import wave

import numpy as np
import torch
import silero_vad
from silero_vad import utils_vad

HERE = os.path.dirname(os.path.abspath(__file__))
CLIP = "sense_and_sensibility_01_austen_64kb-%s.wav"
RECORDINGS = {
    "librivox-0870": [CLIP % "0870"],
    "librivox-0880": [CLIP % "0880"],
    "librivox-all": [CLIP % "0870", 8000, CLIP % "0880", 24000, CLIP % "0890", 8000, CLIP % "0920", 24000, CLIP % "0930"],
}
OPTIONS = {
    "defaults": {},
    "long_pauses": {"min_speech_duration_ms": 0, "min_silence_duration_ms": 2000, "speech_pad_ms": 400},
    "short_spans": {"max_speech_duration_s": 3},
    "very_short_spans": {"max_speech_duration_s": 1, "min_silence_duration_ms": 300},
    "strict": {"threshold": 0.8, "speech_pad_ms": 200},
    "lenient": {"threshold": 0.2, "neg_threshold": 0.1, "min_silence_duration_ms": 30, "min_speech_duration_ms": 50},
}
NAMES = {"stft_conv.weight": "stft.forward_basis_buffer", "final_conv.weight": "decoder.decoder.2.weight",
         "final_conv.bias": "decoder.decoder.2.bias"}
NAMES.update({f"conv{i + 1}.{k}": f"encoder.{i}.reparam_conv.{k}" for i in range(4) for k in ("weight", "bias")})
NAMES.update({f"lstm_cell.{k}": f"decoder.rnn.{k}" for k in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")})


def network():
    folder = os.path.join(os.path.dirname(silero_vad.__file__), "data")
    with open(os.path.join(folder, "silero_vad_16k.safetensors"), "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    model = torch.jit.load(os.path.join(folder, "silero_vad.jit"))
    weights = model.state_dict()
    for name, about in header.items():
        start, end = about["data_offsets"]
        values = torch.from_numpy(np.frombuffer(data[start:end], np.float32).reshape(about["shape"]).copy())
        weights["_model." + NAMES[name]].copy_(values)
    model.load_state_dict(weights)
    return model


def samples(folder, parts):
    pieces = []
    for part in parts:
        if isinstance(part, int):
            pieces.append(np.zeros(part, np.float32))
            continue
        with wave.open(os.path.join(folder, part)) as w:
            assert (w.getframerate(), w.getnchannels(), w.getsampwidth()) == (16000, 1, 2)
            pieces.append(np.frombuffer(w.readframes(w.getnframes()), np.int16).astype(np.float32) / 32768)
    return np.concatenate(pieces)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--samples", required=True, help="folder of the sample recordings")
    folder = arguments.parse_args().samples
    model, out = network(), {}
    for name, parts in RECORDINGS.items():
        pcm = torch.from_numpy(samples(folder, parts))
        model.reset_states()
        with torch.no_grad():
            chunks = torch.nn.functional.pad(pcm, (0, -len(pcm) % 512)).split(512)
            p = [model(chunk, 16000).item() for chunk in chunks]
        spans = {key: [[s["start"], s["end"]] for s in utils_vad.get_speech_timestamps_from_probs(p, audio_length_samples=len(pcm), **more)]
                 for key, more in OPTIONS.items()}
        out[name] = {"parts": parts, "samples": len(pcm), "probabilities": [round(v, 6) for v in p], "spans": spans}
    with open(os.path.join(os.path.dirname(HERE), "tests", "golden", "data", "silero.json"), "w") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")


main()
