"""One recording of about five minutes with its text, composed of short clips, and how many words a transcript has wrong.

The clips are those of `sotto get sample` (LibriVox, public domain), again and again in a seeded order with short pauses, and the
English clips of the speech set in ../shared where that exists. Needs numpy; faster-whisper's decoder for clips that are no WAV.
"""

import os
import random
import re
import wave

try:
    import numpy as np
except ImportError:  # counting words needs none
    np = None

RATE = 16000


def read_wav(path):
    with wave.open(path) as w:
        assert w.getframerate() == RATE and w.getnchannels() == 1 and w.getsampwidth() == 2, path
        return np.frombuffer(w.readframes(w.getnframes()), np.int16).astype(np.float32) / 32768


def read_audio(path):
    try:
        return read_wav(path)
    except (wave.Error, AssertionError, EOFError):
        from faster_whisper.audio import decode_audio

        return decode_audio(path, sampling_rate=RATE)


def write_wav(path, pcm):
    with wave.open(path, "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(RATE)
        w.writeframes((np.clip(pcm, -1, 1) * 32767).astype(np.int16).tobytes())


def clips_of_sample(folder):
    """(audio, text) of the fetched clips."""
    lines = open(os.path.join(folder, "transcription"), encoding="utf-8").read().strip().split("\n")
    for line in lines:
        text, name = re.match(r"<s> (.*) </s> \((.*)\)", line).groups()
        yield read_wav(os.path.join(folder, name + ".wav")), text


def clips_of_shared(folder):
    for line in open(os.path.join(folder, "refs.tsv"), encoding="utf-8"):
        if line.startswith("#"):
            continue
        name, language, text = line.rstrip("\n").split("\t")
        if language == "en" and text != "-" and not name.startswith("librivox"):  # those are the sample's
            yield read_audio(os.path.join(folder, "audio", name)), text


def compose(root, seconds=295, words=800, seed=2):
    """(audio, text, description): whole rounds of all clips, each in an order of its own, until both are reached. In some orders
    programs skip passages that they have just heard (bench/orders.py); with this seed none does."""
    clips = list(clips_of_sample(os.path.join(root, "models", "samples", "librivox")))
    shared = os.path.join(root, "..", "shared", "speech")
    what = "LibriVox clips of `sotto get sample`"
    if os.path.exists(os.path.join(shared, "refs.tsv")):
        clips += clips_of_shared(shared)
        what += " and the English clips of the speech set"
    rng = random.Random(seed)
    pieces, texts, last, length, count = [], [], None, 0, 0
    while length < seconds * RATE or count < words:
        order = list(range(len(clips)))
        rng.shuffle(order)
        if order[0] == last:  # no clip twice in a row
            order[0], order[-1] = order[-1], order[0]
        for i in order:
            if length >= seconds * RATE and count >= words:
                break
            pause = np.zeros(int(rng.uniform(0.4, 1.2) * RATE), np.float32)
            pieces += [clips[i][0], pause]
            texts.append(clips[i][1])
            length += len(clips[i][0]) + len(pause)
            count += len(clips[i][1].split())
            last = i
    return np.concatenate(pieces), " ".join(texts), what


def normaliser():
    try:
        from whisper_normalizer.english import EnglishTextNormalizer

        return EnglishTextNormalizer()
    except ImportError:
        titles = {"mr": "mister", "mrs": "missus", "dr": "doctor"}
        return lambda text: " ".join(titles.get(w, w) for w in re.sub(r"[^a-z0-9' ]+", " ", text.lower()).split())


def word_errors(reference, transcript, normal):
    """(errors, words): the least number of words to change, leave out or put in."""
    a, b = normal(reference).split(), normal(transcript).split()
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return row[-1], len(a)
