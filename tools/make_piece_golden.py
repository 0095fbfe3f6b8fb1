#!/usr/bin/env python3
"""Makes tests/unit/data/pieces.json and unigram.json, what other programs make of texts before and without a real vocabulary.

    make_piece_golden.py

pieces.json: where the patterns that the models were published with (tokenizer.json, tekken.json, tiktoken) cut texts, by Python's `regex`. unigram.json: a small
unigram model with a table of replacements, trained and used by sentencepiece. Needs `pip install regex sentencepiece protobuf`.
"""

import io
import json
import os
import tempfile

import regex
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "unit", "data")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
CASED = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s|" \
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
DEEPSEEK = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
ASIAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
KANA = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
PATTERNS = {
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "gpt-2": [GPT2],
    "llama-bpe": [LLAMA3],
    "qwen2": [QWEN2],
    "qwen35": [r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "smollm": [r"\p{N}", GPT2],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "tekken": [CASED % ("", "", "")],
    "gpt-4o": [CASED % (SHORT, SHORT, "{1,3}")],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", ASIAN, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", KANA, DEEPSEEK],
    "seed-coder": [r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "exaone-moe": [r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|"
                   r"\s+(?!\S)|\s+"],
    "jais-2": [r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
               r"\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"],
    "bloom": [" ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"],
    "viking": [" ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+", r"\p{N}"],
    "chameleon": ["<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2],
}
TEXTS = [
    "", " ", "  ", "\n", "\n\n", " \n", "\n ", " \n \n ", "\r\n", "\t\t\t", "a ", " a", "  a  b   c    d", "a\n\n\nb", "a \nb", "a\tb", "\n  a", "    indented",
    "trailing    ", "a" + " " * 31 + "b", " " * 70, " " * 9 + "\n" + " " * 7, "x\n" * 4, "Hello, world!", "HelloWorld", "helloWorld_foo-bar.baz",
    "I'll he'd we've they're it's can't won't I'm", "I'LL HE'D WE'VE THEY'RE IT'S CAN'T I'M", "'s't're've'm'll'd", "' s", "''s", "\u2019s don\u2019t", "rock'n'roll 'tis", "'x 'S",
    "0", "12", "1234", "1234567890", "3.14159", "1,000,000", "-1e-10", "0x1F", "v1.2.3", "a1b2c3", "\u0661\u0662\u0663", "\u00bd \u00be \u00b2\u00b3", "7 7 7", "12 345 6789",
    "!", "!!!", "?!", "...", "\u2026", "--", "\u2014", "(a)", "[b]", "<d>", "\"quoted\"", "#hash @at $5 %6 ^7 &8 *9", "a/b\\c|d", "~`", ";:,.", "=== ---", "$+<=>^~|`",
    "<html><body class=\"x\">", "http://example.com/a?b=c&d=e#f", "e.g. i.e. etc.", "int main(void)\n{\n    return 0;\n}\n", "a=b;c==d;e!=f;g->j;k::l;m&&n;o||p;",
    "//path//\n//x/\n\n", "!\n\n?\r\n", "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8", "\u4f60\u597d \u4e16\u754c\u3002\u4f60", "\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8", "\u0e44\u0e17\u0e22",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902", "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u0646\u0635", "\u0420\u0443\u0441\u0441\u043a\u0438\u0439 \u0422\u0415\u041a\u0421\u0422",
    "\u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac", "\u00dcn\u00efc\u00f6d\u00e9 \u00c9CLAIR \u00e9Clair", "\u01c5 \u01c5ungla", "e\u0301a\u0300 \u0301x", "A\u030a \u00c5", "\U0001f642\U0001f642", "a\U0001f642b", "\u2192\u2190 \u2200x",
    "CamelCaseHTTPServer2Go", "ALLCAPS\u0441\u043c\u0435\u0448\u0430\u043d\u043e", "XMLHttpRequest", "don'T we'LL", "\u00a0a\u00a0", "a\u3000b", "a\u200bb", "a\u2028b", "a\u0085b", "\u180ea", "\x1ca", "a\0b", "\x7f",
    "<sentinel:12>IMGIMGABZ", "IMGIMGABCDEZ", "a  \n  b", "no\u00a0break", "x  \t  y", "caf\u00e9 na\u00efve", "a b c d", "one two",
]


def cut(patterns, text):
    pieces = [text] if text else []
    for pattern in patterns:
        compiled, out = regex.compile(pattern), []
        for piece in pieces:
            at = 0
            for m in compiled.finditer(piece):
                out += [piece[at:m.start()], m.group()]
                at = m.end()
            out.append(piece[at:])
        pieces = [p for p in out if p]
    return pieces


def ends(pieces):
    out, at = [], 0
    for p in pieces:
        at += len(p.encode())
        out.append(at)
    return out


def write(name, value):
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    with open(os.path.join(DATA, name), "w", encoding="utf-8") as f:
        f.write(text.replace("]],", "]],\n") + "\n")
    print(name, len(text), "bytes")


def make_unigram():
    rules = [("ff", "\ufb00"), ("fi", "\ufb01"), ("A", "\uff21"), (" ", "\u3000"), (" ", "\t"), (" ", "\n"), ("...", "\u2026"), ("", "\u00ad"), ("a", "\u00c4"), ("ab", "\u00c4\u00d6")]
    words = ("the cat sat on the mat and the dog ate the cat while three hens laid ten eggs in the barn near a river that ran past an old mill "
             "where nobody had lived since the war ended but the wheel still turned").split()
    lines = [" ".join(words[(i * 7 + k * (1 + i % 5)) % len(words)] for k in range(9)) for i in range(200)]
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "rules.tsv")
        with open(table, "w", encoding="utf-8") as f:
            for to, what in rules:
                f.write(" ".join("%X" % ord(c) for c in what) + "\t" + " ".join("%X" % ord(c) for c in to) + "\n")
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, model_type="unigram", vocab_size=120, normalization_rule_tsv=table, pad_id=0, eos_id=1,
            unk_id=2, bos_id=-1, user_defined_symbols=["<x>"], hard_vocab_limit=False, minloglevel=2, num_threads=1)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    encoder = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    texts = ["", " ", "the cat", "  the   cat  ", "thecat", "The cat", "cat\u3000dog", "cat\tdog\nhen", "e\ufb01x o\ufb00", "\uff21 dog", "\u2026", "a\u00adb", "\u00c4\u00d6 \u00c4x", "zzz q zzz",
             "nobody lived where the wheel turned", "\u65e5\u672c \u65e5", "hen's eggs", "mill-wheel", "t", "tttttt", "\U0001f642\U0001f642 the", "wheelwheelwheel", "theandthe", "ended.", "  \t \n "]
    write("unigram.json", {"tokens": [p.piece for p in proto.pieces], "scores": [p.score for p in proto.pieces], "types": [int(p.type) for p in proto.pieces],
                           "charsmap": proto.normalizer_spec.precompiled_charsmap.hex(), "texts": texts, "ids": [encoder.encode(t) for t in texts]})


def main():
    write("pieces.json", {"texts": TEXTS, "ends": {name: [ends(cut(p, t)) for t in TEXTS] for name, p in PATTERNS.items()}})
    make_unigram()


main()
