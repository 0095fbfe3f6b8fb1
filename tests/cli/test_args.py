#!/usr/bin/env python3
"""Arguments, help, completions and everything else that needs no model. B55 and B57 of the reported faults."""
import re
import subprocess
import sys

import run_cli

BAD_NUMBERS = ["abc", "", "1e9x", "-1", "99999999999", " 5", "5 ", "0x10", "nan", "inf", "5.5"]

ROWS = [
    {"args": [], "exit": 2, "err": "^usage: sotto COMMAND"},
    {"args": ["--help"], "exit": 0, "out": "^usage: sotto COMMAND.*transcribe.*convert.*inspect.*get.*devices.*bench"},
    {"args": ["help"], "exit": 0, "out": "commands:"},
    {"args": ["--version"], "exit": 0, "out": r"^sotto \d+\.\d+\.\d+$"},
    {"args": ["version"], "exit": 0, "out": r"^sotto \d+\.\d+\.\d+$"},
    {"args": ["dance"], "exit": 2, "err": 'usage: .*unknown command "dance"'},
    {"args": ["help", "dance"], "exit": 2, "err": "unknown command"},
    {"args": ["transcribe"], "exit": 2, "err": "^usage: sotto transcribe .*FILE... is missing"},
    {"args": ["transcribe", "--help"], "exit": 0, "out": "--beam-size N.*examples:"},
    {"args": ["transcribe", "--bogus", "a.wav"], "exit": 2, "err": "^usage: .*unknown option --bogus"},
    {"args": ["transcribe", "--threads=4", "--quiet=1", "a.wav"], "exit": 2, "err": "--quiet takes no value"},
    {"args": ["transcribe", "-f", "doc", "a.wav"], "exit": 2, "err": '"doc" is not one of: txt srt'},
    {"args": ["transcribe", "-f", "srt,", "a.wav"], "exit": 2, "err": "is not one of"},
    {"args": ["transcribe", "-f", "srt,vtt", "a.wav"], "exit": 2, "err": "several formats need --output-dir"},
    {"args": ["transcribe", "-f", "srt", "a.wav", "b.wav"], "exit": 2, "err": "several inputs with --format"},
    {"args": ["transcribe", "-o", "out", "a.wav", "x/a.mp3"], "exit": 2, "err": "a.wav as txt and x/a.mp3 as txt would both"},
    {"args": ["transcribe", "-o", "out", "-f", "json,json-full", "a.wav"], "exit": 2, "err": "would both be written"},
    {"args": ["transcribe", "-o", "x", "-f", "txt", "x/a.txt"], "exit": 2, "err": "overwritten by its own transcript"},
    {"args": ["transcribe", "--raw", "s17le", "-"], "exit": 2, "err": "unknown encoding"},
    {"args": ["transcribe", "--raw", "s16le:0", "-"], "exit": 2, "err": "rate must be"},
    {"args": ["transcribe", "--language", "klingon", "a.wav"], "exit": 2, "err": "klingon"},
    {"args": ["transcribe", "--suppress-tokens", "1,x", "a.wav"], "exit": 2, "err": "list of token ids"},
    {"args": ["transcribe", "--task", "sing", "a.wav"], "exit": 2, "err": "one of: transcribe translate"},
    {"args": ["transcribe", "--condition-on-previous-text", "maybe", "a.wav"], "exit": 2, "err": "true or false"},
    {"args": ["transcribe", "-m", "no-such-model", "a.wav"], "exit": 1, "err": 'no model "no-such-model"'},
    {"args": ["transcribe", "-m", "./no/such", "a.wav"], "exit": 1, "err": "no/such"},
    {"args": ["transcribe", "-m", "", "a.wav"], "exit": 2, "err": "empty"},
    {"args": ["transcribe", "--entropy-thold", "2.4", "a.wav"], "exit": 2, "err": "--compression-ratio-threshold"},
    {"args": ["transcribe", "-et", "2.4", "a.wav"], "exit": 2, "err": "--compression-ratio-threshold"},
    {"args": ["transcribe", "--cpu", "zzz", "a.wav"], "exit": 2, "err": '"zzz" is not one of: auto portable'},
    {"args": ["transcribe", "-ng", "-dev", "cpu,reference", "a.wav"], "exit": 2, "err": "exclude each other"},
    {"args": ["bench", "-m", "/dev/null", "--device", "gpu0"], "exit": 2, "err": 'device "gpu0": expected'},
    {"args": ["transcribe", "-o", "", "a.wav"], "exit": 2, "err": "--output-dir is empty"},
    {"args": ["transcribe", "-of", "", "a.wav"], "exit": 2, "err": "--output-file is empty"},
    {"args": ["transcribe", "a.wav", ""], "exit": 2, "err": "name of an input is empty"},
    {"args": ["transcribe", "-o", "-", "-f", "srt,vtt", "a.wav"], "exit": 2, "err": "several formats need --output-dir"},
    {"args": ["transcribe", "--max-initial-timestamp", "31", "a.wav"], "exit": 2, "err": "number from 0 to 30, or off"},
    {"args": ["transcribe", "-tp", "2.1", "a.wav"], "exit": 2, "err": "number from 0 to 2"},
    {"args": ["convert", "base", "-"], "exit": 2, "err": "a model goes to a file"},
    {"args": ["convert", "base", ""], "exit": 2, "err": "a model goes to a file"},
    {"args": ["get", "base", "-o", "-"], "exit": 2, "err": "not the name of a folder"},
    {"args": ["convert", "a"], "exit": 2, "err": "IN OUT is missing"},
    {"args": ["convert", "a", "b", "c"], "exit": 2, "err": 'unexpected argument "c"'},
    {"args": ["convert", "a", "b", "--type", "q9_9"], "exit": 2, "err": "one of: f32"},
    {"args": ["inspect", "/no/such/file"], "exit": 1, "err": "/no/such/file"},
    {"args": ["get"], "exit": 2, "err": "NAME or --url is missing"},
    {"args": ["get", "no-such-model"], "exit": 2, "err": 'unknown name "no-such-model"'},
    {"args": ["get", "--list"], "exit": 0, "out": "^tiny .*^base .*^large-v3-turbo .*^sample "},
    {"args": ["get", "--url", "http://127.0.0.1:1/x", "--sha256", "12"], "exit": 2, "err": "64 hexadecimal"},
    {"args": ["get", "--url", "http://127.0.0.1:1/"], "exit": 2, "err": "does not end with the name"},
    {"args": ["vad"], "exit": 2, "err": "FILE... is missing"},
    {"args": ["vad", "--vad-threshold", "2", "a.wav"], "exit": 2, "err": "0 to 1"},
    {"args": ["vad", "-vsd", "-1", "a.wav"], "exit": 2, "err": "whole number from 0"},
    {"args": ["vad", "-f", "srt", "a.wav"], "exit": 2, "err": "one of: txt json labels"},
    {"args": ["vad", "-vm", "/no/such/model", "a.wav"], "exit": 1, "err": "/no/such/model"},
    {"args": ["transcribe", "-vo", "0.1", "a.wav"], "exit": 2, "err": "0.4 s of the pauses"},
    {"args": ["transcribe", "--grammar", "root ::= (", "a.wav"], "exit": 1, "err": "line 1, column 11: expected"},
    {"args": ["transcribe", "--grammar", "", "a.wav"], "exit": 1, "err": "at least one rule"},
    {"args": ["transcribe", "--grammar", "a ::= b\nb ::= a", "a.wav"], "exit": 1, "err": "no rule 'root'"},
    {"args": ["transcribe", "--grammar", "a ::= a", "--grammar-rule", "a", "a.wav"], "exit": 1, "err": "can begin with itself"},
    {"args": ["transcribe", "--grammar-penalty", "-1", "a.wav"], "exit": 2, "err": "from 0 to"},
    {"args": ["devices"], "exit": 0, "out": "cpu"},
    {"args": ["bench", "-m", "/dev/null", "--device", "cpu:1"], "exit": 2, "err": 'device "cpu:1": expected'},
    {"args": ["bench", "-m", "/dev/null", "--device", "cpu,sim:0x"], "exit": 2, "err": 'device "sim:0x": expected'},
    {"args": ["bench", "-m", "/dev/null", "--device", "cuda:00"], "exit": 2, "err": 'device "cuda:00": expected'},
    {"args": ["bench", "-m", "/dev/null", "--device", "auto:0"], "exit": 2, "err": 'device "auto:0": expected'},
    {"args": ["bench", "--runs", "0"], "exit": 2, "err": "whole number from 1"},
    {"args": ["bench", "--rows", "41"], "exit": 2, "err": "from 1 to 40"},
    {"args": ["bench", "--matmul", "--memcpy"], "exit": 2, "err": "give one"},
    {"args": ["bench", "--memcpy", "-t", "1"], "exit": 0, "out": "1 thread, .*262144 KiB +[0-9.]+ +[0-9.]+"},
    {"args": ["bench", "extra"], "exit": 2, "err": "unexpected argument"},
]

# Every option whose feature does not exist yet says so, under both its names.
for name in ("--dtw base", "--word_timestamps True", "-ml 10", "-sow", "--diarize", "-tdrz",
             "--highlight_words True", "--max_line_width 40", "--processors 2", "-owts", "--suppress-regex x"):
    ROWS.append({"args": ["transcribe", *name.split(), "a.wav"], "exit": 2, "err": "known but not available in this version"})


def options_of(c, command):
    """Long names and whether they take a value, from the help text."""
    text = c.run(command, "--help").out.split("known but not available")[0]
    return re.findall(r"^  (?:-\w+, )?--([a-z0-9-]+)( \S+)?", text, re.M)


def each_option_last(c):
    for command in ("transcribe", "generate", "chat", "tokenize", "perplexity", "imatrix", "vad", "convert", "get", "bench"):
        options = options_of(c, command)
        c.check(len(options) >= 4, "no options found in the help of " + command)
        for name, value in options:
            if not value or value.startswith(" ["):
                continue
            r = c.run(command, "--" + name)
            c.equal(r.code, 2, "%s --%s at the end" % (command, name))
            c.match(r.err, "^usage: .*--%s needs a value" % name, "stderr")


def bad_numbers(c):
    for option in ("threads", "beam-size", "best-of", "offset-t", "duration", "audio-ctx"):
        for number in BAD_NUMBERS:
            for form in (["--" + option, number], ["--%s=%s" % (option.replace("-", "_"), number)]):
                r = c.run("transcribe", *form, "a.wav")
                c.equal(r.code, 2, "--%s %r" % (option, number))
                c.match(r.err, "is not a whole number from", "stderr")
    for option in ("temperature", "patience", "no-speech-thold"):
        for number in ("abc", "", "1e9", "99999999999", "0x1", "nan", "inf", "1 "):
            r = c.run("transcribe", "--" + option, number, "a.wav")
            c.equal(r.code, 2, "--%s %r" % (option, number))


def names_with_either_dash(c):
    for name in ("--beam_size", "--beam-size", "-bs", "--best_of", "-bo", "--no_speech_threshold", "--initial_prompt",
                 "--temperature_increment_on_fallback", "--output_format", "--output_dir", "-l", "-t", "-m"):
        r = c.run("transcribe", name)
        c.equal(r.code, 2, name)
        c.match(r.err, "needs a value", name)


def full_disk(c):
    for args in (["help", "--man"], ["get", "--list"], ["version"], ["devices"], ["--help"], ["help", "--completion", "bash"],
                 ["transcribe", "--help"]):
        with open("/dev/full", "wb") as full:
            p = subprocess.run([c.sotto, *args], stdout=full, stderr=subprocess.PIPE, env=c.env)
        c.equal(p.returncode, 1, "%s to a full disk" % args)
        c.match(p.stderr.decode(), "cannot write to standard output", "%s to a full disk" % args)


def made_from_the_table(c):
    """Help, the committed man page and completions name the same options."""
    man = c.run("help", "--man").out
    with open(c.source + "/docs/man/sotto.1") as f:
        c.check(f.read() == man, "docs/man/sotto.1 is not what sotto help --man prints; make it again")
    for shell in ("bash", "zsh", "fish"):
        with open(c.source + "/docs/completion/sotto." + shell) as f:
            c.check(f.read() == c.run("help", "--completion", shell).out, "docs/completion/sotto.%s is old" % shell)
    commands = re.findall(r"^  ([a-z]+) ", c.run("--help").out.split("first steps")[0], re.M)
    c.check("transcribe" in commands and len(commands) >= 8, "commands: %s" % commands)
    for command in commands:
        c.match(man, "^\\.B sotto %s" % command, "man page")
        for name, _ in options_of(c, command):
            c.match(man, re.escape("--" + name).replace(r"\-", r"\\-"), "man page")
            for shell in ("bash", "zsh", "fish"):
                text = c.run("help", "--completion", shell).out
                c.match(text, ("-l %s" if shell == "fish" else "--%s") % name, shell)


def bash_completion_works(c):
    script = "source <(%s help --completion bash); COMP_WORDS=(sotto transcribe --beam); COMP_CWORD=2; _sotto; echo ${COMPREPLY[@]};" \
             "COMP_WORDS=(sotto tr); COMP_CWORD=1; _sotto; echo ${COMPREPLY[@]};" \
             "COMP_WORDS=(sotto convert --type bf); COMP_CWORD=3; _sotto; echo ${COMPREPLY[@]}" % c.sotto
    p = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=c.env)
    c.equal(p.stdout.decode().split("\n")[:3], ["--beam-size", "transcribe", "bf16"], "completions")


def devices_as_json(c):
    import json
    devices = json.loads(c.run("devices", "--json").out)
    c.check(any(d["kind"] == "cpu" for d in devices), "no cpu in %s" % devices)


CASES = [each_option_last, bad_numbers, names_with_either_dash, full_disk, made_from_the_table, bash_completion_works,
         devices_as_json]


if __name__ == "__main__":
    sys.exit(run_cli.main(ROWS, CASES))
