"""What the library shows and needs, read from the built objects: symbols.py ROOT BUILD.

Exported symbols begin with sotto_; nothing that ends the process, prints, or depends on process-wide state is referenced;
there is no writable data at file scope."""
import os
import re
import subprocess
import sys
import common

FORBIDDEN = set("""abort exit _exit _Exit quick_exit atexit raise kill longjmp __assert_fail __assert_rtn
printf vprintf puts putchar fprintf vfprintf fputs fputc perror stdout stderr stdin dprintf syslog
setlocale uselocale newlocale rand srand random srandom drand48 rand_r strtok strerror localtime gmtime asctime ctime
getenv setenv putenv signal sigaction system popen fork
__printf_chk __fprintf_chk __vfprintf_chk __longjmp_chk""".split())
# (file, name): exceptions, with the reason.
ALLOWED = {("src/base/folders_posix.c.o", "getenv"): "where the user's caches go"}
# File-scope data that may change, with the reason.
MUTABLE = {"st_opencl_host": "the devices of the process, listed once",
           "cuda_driver": "the driver, opened once a process"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def objects(build):
    for folder, _, names in os.walk(os.path.join(build, "CMakeFiles", "sotto_objects.dir")):
        for name in sorted(names):
            if name.endswith(".o"):
                yield os.path.join(folder, name)


def main():
    build = os.path.abspath(sys.argv[2])
    problems, checked = [], 0
    shared = os.path.join(build, "libsotto.so")
    if os.path.exists(shared):
        for line in run("nm", "-D", "--defined-only", shared).splitlines():
            name = line.split()[-1].split("@")[0]
            checked += 1
            if not name.startswith("sotto_"):
                problems.append(f"libsotto.so exports {name}")
    paths = list(objects(build))
    checked += len(paths)
    short = {path: os.path.relpath(path, build).replace("CMakeFiles/sotto_objects.dir/", "") for path in paths}
    for line in run("nm", "-A", "-u", *paths).splitlines():
        path, _, rest = line.partition(":")
        name = re.sub(r"@.*", "", rest.split()[-1])
        if name in FORBIDDEN and (short[path], name) not in ALLOWED:
            problems.append(f"{short[path]}: refers to {name}")
    path = ""
    for line in run("objdump", "-t", *paths).splitlines():
        head = re.match(r"^(\S+):\s+file format", line)
        path = head[1] if head else path
        match = re.match(r"^[0-9a-f]+ .{7} (\.t?data|\.t?bss|\*COM\*)(\.\S+)?\s+([0-9a-f]+)\s+(\S+)$", line)
        if not match or int(match[3], 16) == 0 or (match[2] or "").startswith(".rel.ro"):
            continue
        if match[4] not in MUTABLE:
            problems.append(f"{short[path]}: {match[4]} is writable data at file scope")
    common.finish("symbols", problems, checked)


main()
