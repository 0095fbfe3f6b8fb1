#!/usr/bin/env python3
"""Reported faults reproduced as a user would meet them, with the small seeded models of the build folder (their text is
gibberish, which does not matter here). tests/cases.tsv says which fault is tested where."""
import json
import os
import resource
import stat
import subprocess
import sys
import time

import run_cli
from test_speech import wav

NOISE = [((i * 7919 % 4001) - 2000) * (i // 400 % 5) for i in range(8000)]  # half a second
QUICK = ("--quiet", "--no-fallback", "--beam-size", "1")


def model(c, variant="multilingual", kind="ggml-f16.bin"):
    path = os.path.join(os.environ.get("SOTTO_BUILD_DIR", os.path.dirname(c.sotto)), "tiny", "tiny-%s-%s" % (variant, kind))
    if not os.path.exists(path):
        raise run_cli.Skip("no small models: ctest makes them (golden.make_tiny)")
    return path


def hear(c, *args, variant="multilingual", quick=QUICK, **more):
    c.write("noise.wav", wav(NOISE))
    return c.run("transcribe", "-m", model(c, variant), *quick, *args, **more)


def good(c, *args, **more):
    r = hear(c, *args, **more)
    c.equal(r.code, 0, "exit of %s: %s" % (args, r.err[-500:]))
    return r


def refused(c, pattern, *args, code=2, **more):
    r = hear(c, *args, **more)
    c.equal((r.code, r.out), (code, ""), "exit of %s" % (args,))
    c.match(r.err, pattern, "stderr")


def any_number_of_threads(c):
    want = good(c, "-t", "1", "noise.wav").out
    c.check(want, "no text")
    for n in (0, 2, os.cpu_count() + 1, 4 * os.cpu_count(), 1000):
        c.equal(good(c, "-t", str(n), "noise.wav", timeout=120).out, want, "%d threads" % n)
    for n in ("-1", "1025", "10000"):
        refused(c, "from 0 to 1024", "-t", n, "noise.wav")


def any_number_of_beams(c):
    for n in ("2", "7", "16"):
        good(c, "noise.wav", quick=("-q", "-nf", "-d", "200", "--beam-size", n))
        good(c, "noise.wav", quick=("-q", "-nf", "-d", "200", "-tp", "0.5", "--best-of", n))
    for option in ("--beam-size", "--best-of"):
        refused(c, "%s: \"17\" is not" % option, option, "17", "missing.wav")


def any_encoder_context(c):
    for n in (1, 2, 3, 100, 750, 1490, 1499, 1500):
        duration = str(min(500, n * 40))
        for s in json.loads(good(c, "-ac", str(n), "-d", duration, "-f", "json", "noise.wav").out)["segments"]:
            c.check(0 <= s["start"] <= s["end"] <= 0.5, "times of %s" % s)
    for n in ("-1", "1501", "99999999999"):
        refused(c, "from 0 to 1500", "-ac", n, "noise.wav")


def any_prompt(c):
    for prompt in ("", "     ", "a", "word " * 20000, "x" * 100000, b"a\xff\xfeb\xc3", "\u2028\"\\\x01"):
        good(c, "--prompt", prompt, "noise.wav")
    r = good(c, "--prompt", "word " * 2000, "noise.wav", quick=("-nf", "-bs", "1"))
    c.match(r.err, r"initial_prompt: \d+ tokens, the last 223 are used", "stderr")


def one_rule_for_languages(c):
    want = good(c, "noise.wav").out
    for given in ("auto", ""):
        c.equal(good(c, "-l", given, "noise.wav").out, want, "language %r" % given)
    c.equal(good(c, "-l", "EN", "noise.wav").out, good(c, "-l", "english", "noise.wav").out, "EN and english")
    for given in ("xx", "e", "en ", b"e\xff"):
        refused(c, "is not a language", "-l", given, "missing.wav")
    want = good(c, "noise.wav", variant="english").out
    for given in ("auto", "", "en", "English"):
        c.equal(good(c, "-l", given, "noise.wav", variant="english").out, want, "English only, %r" % given)
    refused(c, "knows English only", "-l", "de", "missing.wav", variant="english")
    c.write("empty.wav", wav([]))
    refused(c, "no sound", "--detect-language", "empty.wav", code=1)


def what_a_model_refuses_comes_before_audio(c):
    refused(c, "60000, expected 0 to", "--suppress-tokens", "60000", "missing.wav")
    refused(c, "max_tokens|from 0 to 224", "--max-tokens", "225", "missing.wav")


def a_limit_of_tokens_loses_nothing(c):
    for n in ("1", "8", "32"):
        segments = json.loads(good(c, "--max-tokens", n, "-f", "json", "noise.wav").out)["segments"]
        c.check(segments, "no segments")
        for s in segments:
            c.check(sum(t < 50257 for t in s["tokens"]) <= int(n), "more than %s tokens in %s" % (n, s))


def windows_of_time(c):
    for args in (["-ot", "100"], ["-ot", "499"], ["-ot", "500"], ["-ot", "99000"], ["-ot", "100", "-d", "100"], ["-d", "1"],
                 ["-ot", "100", "-d", "2147483647"], ["-ot", "32000000000", "-d", "32000000000"]):
        given = dict(zip(args[::2], map(int, args[1::2])))
        start, length = given.get("-ot", 0) / 1000, given.get("-d", 0) / 1000
        end = min(0.5, start + length) if length else 0.5
        for s in json.loads(good(c, *args, "-f", "json", "noise.wav").out)["segments"]:
            c.check(start - 1e-3 <= s["start"] <= s["end"] <= end + 1e-3, "%s: %s" % (args, s))
    for args in (["-ot", "-1"], ["-d", "-1"], ["-ot", "99999999999"], ["-d", "9223372036854775808"]):
        refused(c, "is not a whole number", *args, "noise.wav")


def several_inputs_are_as_alone(c):
    c.write("other.wav", wav([-s for s in reversed(NOISE)]))
    c.write("silence.wav", wav([0] * 8000))
    alone = [good(c, name).out for name in ("noise.wav", "silence.wav", "other.wav", "noise.wav")]
    c.equal(good(c, "noise.wav", "silence.wav", "other.wav", "noise.wav").out, "".join(alone), "four in one run")


def names_of_any_bytes(c):
    for name in ('quote".wav', "back\\slash.wav", "line\nbreak.wav", "tab\t.wav", "\x01\x7f.wav", "\u2028.wav", "-dash.wav"):
        c.write(name, wav(NOISE))
        given = "./" + name
        parsed = json.loads(good(c, "-f", "json", given).out)
        c.equal(parsed["audio"], given, "the name in JSON")
    with open(os.path.join(c.dir.encode(), b"b\xffd.wav"), "wb") as f:
        f.write(wav(NOISE))
    json.loads(good(c, "-f", "json-full", b"b\xffd.wav").out)
    for args in ([b"gone\xff.wav"], ["-m", b"m\xff", "noise.wav"], [b"--\xff"], ["-f", b"\xff", "noise.wav"], ["-o", b"noise.wav/\xff", "noise.wav"]):
        r = hear(c, *args)  # reading the outputs checks that they are UTF-8
        c.check(r.code in (1, 2) and r.err.count("gone") <= 1, "%s: exit %d: %s" % (args, r.code, r.err))


def what_is_no_recording(c):
    c.write("text.wav", "a letter, no sound\n" * 9)
    c.write("zero.wav", b"")
    c.write("cut.wav", wav(NOISE)[:30])
    os.mkdir(c.path("folder.wav"))
    for name, part in (("text.wav", "looks like text"), ("zero.wav", "is empty"), ("cut.wav", "cut.wav"), ("folder.wav", "is a folder"),
                       ("missing.wav", "No such file"), (model(c), "looks like a ggml model"), ("/dev/null", "is empty"), ("/", "is a folder")):
        refused(c, part, name, code=1)
    refused(c, "standard input: is empty", "-", code=1)
    r = hear(c, "text.wav", "missing.wav", "noise.wav", "zero.wav")
    c.equal((r.code, r.out), (1, good(c, "noise.wav").out), "the good one of four")


def what_is_no_model(c):
    c.write("noise.wav", wav(NOISE))
    c.write("eight.bin", b"lmgg\0\0\0\0")
    c.write("page.bin", b"<!DOCTYPE html><html>404</html>")
    c.write("zero.bin", b"")
    os.mkdir(c.path("folder"))
    for name, part in (("noise.wav", "RIFF file"), ("eight.bin", "eight.bin"), ("page.bin", "web page"), ("zero.bin", "empty"),
                       ("folder", "none of model.bin"), ("gone.bin", "gone.bin"), ("/dev/null", "/dev/null")):
        r = c.run("transcribe", "-m", "./" + name if name[0] != "/" else name, "noise.wav")
        c.equal((r.code, r.out), (1, ""), "exit with %s: %s" % (name, r.err))
        c.match(r.err, part, "stderr")


def numbers_that_are_none_are_an_error(c):
    """Weights of NaN: no text of token 0, but an error."""
    data = bytearray(open(model(c, kind="ggml-f32.bin"), "rb").read())
    at = len(data) // 2  # inside the table of tokens, which is most of the file; NaN at any alignment
    data[at:at + 400000] = b"\xff" * 400000
    c.write("nan.bin", bytes(data))
    c.write("noise.wav", wav(NOISE))
    r = c.run("transcribe", "-m", "./nan.bin", *QUICK, "noise.wav")
    c.equal((r.code, r.out), (1, ""), "exit: " + r.err)
    c.match(r.err, "(?i)nan|not a number|no number|not finite", "stderr")


def slow_pipes(c):
    want, data = good(c, "noise.wav").out, wav(NOISE, size=0xFFFFFFFF)
    os.mkfifo(c.path("pipe"))
    for name in ("pipe", "-"):
        p = subprocess.Popen([c.sotto, "transcribe", "-m", model(c), *QUICK, name], cwd=c.dir, env=c.env, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with p.stdin if name == "-" else open(c.path("pipe"), "wb") as f:
            for at in range(0, len(data), 3001):
                f.write(data[at:at + 3001])
                f.flush()
                time.sleep(0.01)
        p.stdin = None
        out, err = p.communicate(timeout=120)
        c.equal((p.returncode, out.decode()), (0, want), "%s: %s" % (name, err.decode()))


def outputs_that_cannot_be_written(c):
    c.write("file", "")
    for args in (["-o", "file"], ["-o", "file/sub"], ["-o", "/proc/none"], ["-of", "no/such/name"]):
        refused(c, "file|/proc/none|no/such", *args, "noise.wav", code=1)
    command = [c.sotto, "transcribe", "-m", model(c), *QUICK]
    p = subprocess.run([*command, "-o", "out", "noise.wav"], cwd=c.dir, env=c.env, stderr=subprocess.PIPE, restore_signals=False,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    c.equal((p.returncode, os.listdir(c.path("out"))), (1, []), "no room for the file: %s" % p.stderr.decode())
    for more in ([], ["-f", "srt"]):
        with open("/dev/full", "wb") as full:
            p = subprocess.run([*command, *more, "noise.wav"], cwd=c.dir, env=c.env, stdout=full, stderr=subprocess.PIPE)
        c.equal(p.returncode, 1, "a full disk %s" % more)
        p = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command, *more, "noise.wav"], cwd=c.dir, env=c.env, stderr=subprocess.PIPE)
        c.equal(p.returncode, 1, "standard output closed %s" % more)
    p = subprocess.run(["sh", "-c", '"$@" | true', "sh", *command, "noise.wav", "noise.wav"], cwd=c.dir, env=c.env,
                       stderr=subprocess.PIPE, timeout=120)
    c.check(b"Sanitizer" not in p.stderr, "a reader that left: %s" % p.stderr.decode())


def what_is_no_file_is_written_in_place(c):
    """A pipe, a device, a link as the output: none of them is replaced."""
    want = good(c, "-otxt", "noise.wav").out
    os.mkfifo(c.path("pipe.txt"))
    os.symlink("pipe.txt", c.path("link.txt"))
    for name in ("pipe", "link"):
        p = c.start("transcribe", "-m", model(c), *QUICK, "-of", name, "noise.wav")
        with open(c.path("pipe.txt")) as f:
            c.equal(f.read(), want, "what came through the pipe")
        p.communicate(timeout=60)
        c.equal((p.returncode, stat.S_ISFIFO(os.lstat(c.path("pipe.txt")).st_mode)), (0, True), name)
    c.check(os.path.islink(c.path("link.txt")), "the link to a pipe was replaced")
    c.write("sub/old.txt", "old")
    os.symlink("sub/old.txt", c.path("text.txt"))
    good(c, "-of", "text", "noise.wav")
    c.check(os.path.islink(c.path("text.txt")), "the link to a file was replaced")
    c.equal((c.read("sub/old.txt").decode(), os.listdir(c.path("sub"))), (want, ["old.txt"]), "behind the link")
    try:
        os.mknod(c.path("null.txt"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        open(c.path("null.txt"), "wb").close()
    except OSError as e:
        print("no device can be made here, so none is written to: %s" % e)
        return
    good(c, "-of", "null", "noise.wav")
    c.check(stat.S_ISCHR(os.lstat(c.path("null.txt")).st_mode), "the device was replaced")


def output_to_a_dash(c):
    """As a folder's name it is standard output, as everywhere."""
    want = good(c, "-f", "srt", "noise.wav").out
    c.equal(good(c, "-f", "srt", "-o", "-", "noise.wav").out, want, "-o -")
    c.check(not c.exists("-"), "a folder called -")


def said_once(c):
    r = good(c, "-tr", "-t", "1000", "--debug-mode", "noise.wav", "noise.wav", variant="english", quick=("-nf", "-bs", "1"))
    for text in ("knows English only", "are used"):
        c.equal(r.err.count(text), 1, "times of %r" % text)


def temperatures_up_to_two(c):
    good(c, "-tp", "2", "noise.wav")


def memory_of_long_recordings(c):
    """Ten minutes from a pipe take as much memory as one; their samples alone would be 38 MB."""
    peak = []
    for minutes in (1, 10):
        r = good(c, "--raw", "u8", "--timings", "--max-tokens", "1", "-nt", "-", stdin=b"\x80" * (minutes * 60 * 16000), timeout=600)
        peak.append(float(r.err.split("peak of the process ")[1].split()[0]))
    c.check(peak[1] < peak[0] + 20, "peak memory of 1 and 10 minutes: %s MB" % peak)


def table_of_the_benchmark(c):
    r = c.run("bench", "-m", model(c), "--device", "cpu", "--runs", "1", "--steps", "4", "--rows", "1")
    c.equal(r.code, 0, "exit: " + r.err)
    c.match(r.out, r"\n  encoder +[0-9.]+ ms\n.*\n  step +[0-9.]+ MB\n  step +[0-9.]+ GB/s\n.*\n  bandwidth used +[0-9.]+\n  peak rss +[0-9.]+ MB", "the table")


CASES = [table_of_the_benchmark, any_number_of_threads, any_number_of_beams, any_encoder_context, any_prompt, one_rule_for_languages,
         what_a_model_refuses_comes_before_audio, a_limit_of_tokens_loses_nothing, windows_of_time, several_inputs_are_as_alone,
         names_of_any_bytes, what_is_no_recording, what_is_no_model, numbers_that_are_none_are_an_error, slow_pipes,
         outputs_that_cannot_be_written, what_is_no_file_is_written_in_place, output_to_a_dash, said_once, temperatures_up_to_two,
         memory_of_long_recordings]

if __name__ == "__main__":
    sys.exit(run_cli.main([], CASES))
