"""The documentation names things that exist: docs.py ROOT [SOTTO].

Relative links and `path/like.this` of the tree exist; scripts in sh blocks exist; the quick start of README is script/demo
and script/test; with the built command, every subcommand and long option in an sh block is one that its help knows. The C blocks compile."""
import os
import re
import shlex
import shutil
import subprocess
import sys
import common

LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#]+)")
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)
PATH = re.compile(r"`((?:src|include|tests|tools|script|docs|programs|examples|bench|cmake|bindings)/[\w./-]*[\w/])`")


def help_of(sotto, *words):
    result = subprocess.run([sotto, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return result.stdout + result.stderr


def check_command(sotto, line, known):
    """Problem with one `sotto ...` line, or None."""
    words = shlex.split(line, comments=True)
    words = words[:next((i for i, w in enumerate(words) if w in ("|", ">", "&&", ";", "<", "2>")), len(words))]
    if len(words) < 2:
        return None
    name = words[1]
    if not name.startswith("-") and not re.search(rf"(?m)^\s*(sotto )?{re.escape(name)}\b", known[""]):
        return f"no subcommand {name}"
    if name not in known:
        known[name] = help_of(sotto, name, "--help") + known[""]
    for word in words[2:] if not name.startswith("-") else words[1:]:
        option = word.split("=")[0]
        if re.match(r"^--[a-z]", option) and not re.search(rf"{re.escape(option)}\b", known[name]):
            return f"sotto {name} has no option {option}"
        if re.match(r"^-[a-zA-Z]$", option) and not re.search(rf"(?<![\w-]){re.escape(option)}\b", known[name]):
            return f"sotto {name} has no option {option}"
    return None


C_BLOCK = re.compile(r"^```c\n(.*?)^```", re.M | re.S)
C_UNIT = """#include <stdio.h>
#include <sotto/sotto.h>
int snippet(const float *pcm, int64_t n_samples);
int snippet(const float *pcm, int64_t n_samples)
{
%s
    return pcm == NULL && n_samples > 0;
}
"""


def compile_block(top, block):
    """What the compiler says about statements of a document, "" when it takes them or there is none."""
    cc = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if not cc:
        return ""
    result = subprocess.run([cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", os.path.join(top, "include"),
                             "-x", "c", "-"], input=C_UNIT % block, capture_output=True, text=True)
    return result.stderr if result.returncode else ""


def main():
    top = common.root()
    sotto = sys.argv[2] if len(sys.argv) > 2 else None
    known = {"": help_of(sotto, "--help") + help_of(sotto, "help")} if sotto else None
    problems, checked = [], 0
    for path in common.files(top, ".md"):
        if path.startswith("tests/"):
            continue
        source = common.text(top, path)
        for link in LINK.findall(source):
            checked += 1
            if not os.path.exists(os.path.join(top, os.path.dirname(path), link)):
                problems.append(f"{path}: link to {link}, which does not exist")
        for name in PATH.findall(source):
            checked += 1
            if path != "docs/roadmap.md" and not re.search(r"[A-Z]{3}", name.replace("README", "")) and not os.path.exists(os.path.join(top, name)):
                problems.append(f"{path}: names {name}, which does not exist")
        for block in C_BLOCK.findall(source):
            checked += 1
            report = compile_block(top, block)
            if report:
                problems.append(f"{path}: a C block does not compile:\n{report}")
        for block in BLOCK.findall(source):
            for line in block.replace("\\\n", " ").split("\n"):
                line = line.strip()
                if not line or line.startswith("#"):
                    continue
                checked += 1
                first = line.split()[0]
                if first.startswith(("script/", "tools/", "bench/")) and not os.path.exists(os.path.join(top, first)):
                    problems.append(f"{path}: runs {first}, which does not exist")
                if sotto and first in ("sotto", "build/sotto"):
                    problem = check_command(sotto, line, known)
                    if problem:
                        problems.append(f"{path}: `{line}`: {problem}")
    start = BLOCK.search(common.text(top, "README.md"))
    lines = [l.split("#")[0].strip() for l in start[1].split("\n")] if start else []
    if [l for l in lines if l and not l.startswith(("git ", "cd "))] != ["script/demo", "script/test"]:
        problems.append("README.md: the first sh block is the quick start and runs script/demo, then script/test, nothing else")
    common.finish("docs", problems, checked)


main()
