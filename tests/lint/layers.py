"""Every #include is an allowed edge between layers, and third-party headers stay in the layers that may use them.

The rule in one line: base <- tensor, quant, reference <- runtime, formats <- models <- programs; a backend sees base,
tensor, quant and runtime/backend_impl.h, never a model or a sibling."""
import re
import common

PUBLIC_LOW = {"base.h", "tensor.h"}
# layer: (folders of src/ it may include, public headers it may include)
LAYERS = {
    "base": ({"base"}, {"base.h"}),
    "tensor": ({"base", "tensor"}, PUBLIC_LOW | {"graph.h"}),
    "quant": ({"base", "tensor", "quant"}, PUBLIC_LOW | {"quant.h"}),
    "reference": ({"base", "tensor", "quant", "reference", "runtime/backend_impl.h"},
                  PUBLIC_LOW | {"graph.h", "quant.h", "backend.h"}),
    "runtime": ({"base", "tensor", "quant", "reference", "runtime"}, PUBLIC_LOW | {"graph.h", "quant.h", "backend.h"}),
    "formats": ({"base", "tensor", "quant", "formats"}, PUBLIC_LOW | {"quant.h", "model.h"}),
    "models": ({"base", "tensor", "quant", "runtime", "formats", "models"},
               PUBLIC_LOW | {"graph.h", "quant.h", "backend.h", "model.h", "vad.h", "whisper.h", "grammar.h", "sampler.h",
                             "llama.h"}),
    "audio": ({"base", "audio"}, {"base.h"}),
    "programs": ({"audio", "programs"}, None),
    "examples": (set(), None),
    "include": (set(), None),
}
BACKEND = ({"base", "tensor", "quant", "runtime/backend_impl.h"}, PUBLIC_LOW | {"graph.h", "quant.h", "backend.h"})

STANDARD = set("""assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype""".split())
SYSTEM = re.compile(r"^(unistd|fcntl|pthread|sched|dlfcn|dirent|poll|termios|strings|libgen|malloc|windows|io|direct|"
                    r"process|share|psapi|shlobj|shellapi|conio|intrin|cpuid|sys/\w+|mach/\w+|asm/\w+|linux/\w+|netdb|"
                    r"netinet/\w+|arpa/\w+|getopt|glob|fnmatch|ucontext)\.h$")
SIMD = re.compile(r"^(\w*mmintrin|immintrin|x86intrin|arm_neon|arm_acle|arm_bf16|arm_fp16)\.h$")
DATA = {"zlib.h", "pcre2.h", "jansson.h"}
THIRD_PARTY = {
    "formats": DATA,
    "models": DATA,
    "programs": {"jansson.h", "curl/curl.h", "archive.h", "archive_entry.h"},
}
FFMPEG = re.compile(r"^lib(avformat|avcodec|avutil|swresample)/\w+\.h$")
FFMPEG_LAYERS = {"audio", "programs"}
SYSTEM_LAYERS = {"base", "backends", "audio", "programs"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.M)


def layer_of(path):
    parts = path.split("/")
    if parts[0] == "src":
        return parts[1]
    return parts[0]


def target_of(top_files, path, name):
    """The repository path that a quoted include means, or None."""
    here = path.rsplit("/", 1)[0]
    for candidate in (f"{here}/{name}", f"src/{name}", f"include/{name}", f"programs/{name}"):
        parts = []
        for part in candidate.split("/"):
            if part == "..":
                if parts:
                    parts.pop()
            elif part != ".":
                parts.append(part)
        joined = "/".join(parts)
        if joined in top_files:
            return joined
    return None


def check_own(path, layer, target):
    folders, public = LAYERS.get(layer, (None, None))
    if layer == "backends":
        own = "/".join(path.split("/")[:3])
        if target.startswith(own + "/"):
            return True
        folders, public = BACKEND
    if target.startswith("include/sotto/"):
        return layer == "include" or public is None or target[len("include/sotto/"):] in public
    inside = target[4:] if target.startswith("src/") else target
    if layer == "models" and inside == "runtime/backend_impl.h":
        return False
    if inside == "runtime/backend_impl.h" and inside in folders:
        return True
    return inside.split("/")[0] in folders


def check_system(layer, name):
    stem = name[:-2] if name.endswith(".h") else name
    if stem in STANDARD:
        return True
    if SIMD.match(name) or name == "metal_stdlib":  # the latter in the text that Metal compiles
        return layer == "backends"
    if FFMPEG.match(name):
        return layer in FFMPEG_LAYERS
    if name in THIRD_PARTY.get(layer, ()):
        return True
    if SYSTEM.match(name):
        return layer in SYSTEM_LAYERS
    return False


def main():
    top = common.root()
    every = set(common.files(top, ".c", ".h", ".inc", ".krn"))
    problems, checked = [], 0
    for path in sorted(every):
        layer = layer_of(path)
        if layer in ("tests", "bench", "tools"):
            continue
        if layer not in LAYERS and layer != "backends":
            problems.append(f"{path}: no such layer: {layer}")
            continue
        for quoted, system in INCLUDE.findall(common.text(top, path)):
            checked += 1
            name = quoted or system
            if quoted:
                target = target_of(every, path, name)
                if target is None:
                    problems.append(f"{path}: includes {name}, which is not in the repository")
                elif not check_own(path, layer, target):
                    problems.append(f"{path}: {layer} may not include {name}")
            elif name.startswith("sotto/") and layer in ("programs", "examples"):
                if f"include/{name}" not in every:
                    problems.append(f"{path}: includes {name}, which is not in the repository")
            elif not check_system(layer, name):
                problems.append(f"{path}: {layer} may not include <{name}>")
    common.finish("layers", problems, checked)


main()
