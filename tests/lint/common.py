"""What the lint tests share: walking the tree and reporting."""
import os
import sys

SKIP = {".git", ".venv", "build", "models", "__pycache__", "shared", "node_modules"}


def root():
    return os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", ".."))


def files(top, *endings):
    """Paths relative to top with one of the endings, sorted; build folders and fetched data are left out."""
    out = []
    for folder, names, leaves in os.walk(top):
        rel = os.path.relpath(folder, top)
        if "CMakeCache.txt" in leaves:
            names[:] = []
            continue
        at_top = rel == "."
        names[:] = sorted(n for n in names if not (n in SKIP and (at_top or n in (".git", "__pycache__")))
                          and not (at_top and n.startswith("build")))
        for leaf in sorted(leaves):
            path = os.path.normpath(os.path.join(rel, leaf))
            if not endings or leaf.endswith(endings):
                out.append(path.replace(os.sep, "/"))
    return out


def read(top, path):
    with open(os.path.join(top, path), "rb") as f:
        return f.read()


def text(top, path):
    return read(top, path).decode("utf-8", "replace")


def strip_c(source):
    """C source with comments, strings and character constants blanked; line breaks stay where they are."""
    out, i, n = [], 0, len(source)
    while i < n:
        c, two = source[i], source[i:i + 2]
        if two == "/*":
            end = source.find("*/", i + 2)
            end = n if end < 0 else end + 2
            out.append("".join(ch if ch == "\n" else " " for ch in source[i:end]))
            i = end
        elif two == "//":
            end = source.find("\n", i)
            end = n if end < 0 else end
            out.append(" " * (end - i))
            i = end
        elif c in "\"'":
            j = i + 1
            while j < n and source[j] != c and source[j] != "\n":
                j += 2 if source[j] == "\\" else 1
            j = min(j + 1, n)
            out.append(c + "".join(ch if ch == "\n" else " " for ch in source[i + 1:j - 1]) + c)
            i = j
        else:
            out.append(c)
            i += 1
    return "".join(out)


def finish(name, problems, checked):
    """Print the findings and leave with the right exit code. Nothing to check is a failure, too."""
    for problem in problems:
        print(problem)
    if not checked:
        print(f"{name}: found nothing to check")
        sys.exit(1)
    print(f"{name}: {checked} checked, {len(problems)} problems")
    sys.exit(1 if problems else 0)
