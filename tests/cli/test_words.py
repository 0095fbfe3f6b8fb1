#!/usr/bin/env python3
"""Words that `--compute` costs: with bf16 and int8 at most two more are wrong than with f32, in all languages together, and a
recording without words stays without. Hears the recordings of ../shared/speech (refs.tsv: file, language, text); skipped
where they or the model base are not."""
import os
import sys
import unicodedata

import run_cli

MORE = 2


def words(text, language):
    plain = "".join(c if c.isalnum() or c == "'" else " " for c in unicodedata.normalize("NFKC", text).lower())
    return list(plain.replace(" ", "")) if language in ("ja", "zh") else plain.split()


def distance(have, want):
    row = list(range(len(want) + 1))
    for i, word in enumerate(have, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(want, 1):
            diagonal, row[j] = row[j], min(diagonal + (word != other), row[j] + 1, row[j - 1] + 1)
    return row[-1]


def recordings(c):
    folder = os.path.join(os.path.dirname(c.source), "shared", "speech")
    if not os.path.exists(os.path.join(folder, "refs.tsv")):
        raise run_cli.Skip("no recordings at " + folder)
    with open(os.path.join(folder, "refs.tsv"), encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]
    return [(os.path.join(folder, "audio", name), language, "" if text == "-" and "empty" in name else text)
            for name, language, text in rows if text != "-" or "empty" in name]


def wrong(c, compute, rows):
    """Number of wrong words in all recordings."""
    r = c.run("transcribe", "-m", c.base_model(), "--compute", compute, "-f", "txt", "-o", compute,
              *(path for path, _, _ in rows), timeout=1500)
    c.equal(r.code, 0, compute + ": " + r.err)
    total = 0
    for path, language, text in rows:
        name = os.path.splitext(os.path.basename(path))[0]
        have, want = words(c.read("%s/%s.txt" % (compute, name)).decode(), language), words(text, language)
        if not want:
            c.equal(have, [], "%s with %s" % (name, compute))
        total += distance(have, want)
    return total


def at_most_two_more(c):
    rows = recordings(c)
    base = wrong(c, "f32", rows)
    for compute in ("bf16", "int8"):
        errors = wrong(c, compute, rows)
        print("%s: %d words wrong, f32: %d" % (compute, errors, base))
        c.check(errors <= base + MORE, "%s: %d words wrong, with f32 %d" % (compute, errors, base))


CASES = [at_most_two_more]

if __name__ == "__main__":
    sys.exit(run_cli.main([], CASES))
