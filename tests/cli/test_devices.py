#!/usr/bin/env python3
"""Where things are computed, from outside: names and lists of devices, shares, memory, traces. On the CPU and, where it is
in the build, the simulated GPU, with the small seeded models."""
import json
import os
import re
import signal
import sys
import time

import run_cli
from test_cases import good, model, refused


def simulated(c):
    if not re.search(r"^sim:1 ", c.run("devices").out, re.M):
        raise run_cli.Skip("no simulated GPU in this build")


def devices_that_are_not_there(c):
    refused(c, r'^sotto: --device "cuda:77": .*expected auto or one of .*cpu', "noise.wav", "--device", "cuda:77", code=1)
    refused(c, r'--device "gpu0": expected auto or one of .*cpu', "noise.wav", "--device", "cpu,gpu0")
    refused(c, '^sotto: --device "cpu" is named twice', "noise.wav", "--device", "cpu,cpu")
    refused(c, '^sotto: --device "cpu" is named twice', "noise.wav", "--device", "cpu:0,cpu")
    c.equal(c.run("transcribe", "-m", model(c), "--device", "cpu:0", "--memory").code, 0, "cpu:0, the only one of its kind")
    refused(c, "--no-gpu and --device exclude each other", "noise.wav", "--no-gpu", "--device", "reference")
    refused(c, '^sotto: --kv-device "cuda:0": expected one of the devices in use, cpu', "noise.wav", "--device", "cpu", "--kv-device", "cuda:0")
    refused(c, "--split: \"column\" is not one of: layer row", "noise.wav", "--split", "column")


def why_there_is_no_device(c):
    """What is missing is named: a library that was not found, or an option of the build."""
    known = c.run("devices").out
    told = {"cuda": r"libcuda\.so\.1 (was not found: it comes with NVIDIA's driver|has no cu|does not start|finds no device)",
            "opencl": r"libOpenCL\.so\.1 (was not found: install the loader|finds no device)", "metal": r"there is no Metal on this system"}
    for name, why in told.items():
        if not re.search("^%s:0 " % name, known, re.M):
            built_out = r"not built in \(option of CMake: SOTTO_%s" % name.upper()
            refused(c, r'^sotto: --device "%s(:0)?": (%s|%s).*; expected auto or one of .*cpu' % (name, why, built_out), "noise.wav", "--device", name, code=1)


def options_without_effect(c):
    loud = ("--no-fallback", "--beam-size", "1")
    r = good(c, "noise.wav", "--device", "cpu", "--gpu-layers", "2", "--no-offload", "--device-split", "1,2", quick=loud)
    for name in ("gpu-layers", "no-offload", "device-split"):
        c.match(r.err, "warning: --%s has no effect" % name, "stderr")
    r = good(c, "noise.wav", "--no-gpu", quick=loud)
    c.check("warning" not in r.err, "warned of nothing: " + r.err)
    r = good(c, "noise.wav", "--no-vad", "--no-gpu", quick=loud)
    c.match(r.err, "warning: --no-vad has no effect without --batch", "stderr")
    r = good(c, "noise.wav", "--no-vad", "--batch", "2", "--no-gpu", quick=loud)
    c.check("warning" not in r.err, "warned of --no-vad: " + r.err)
    r = good(c, "noise.wav", "--no-mmap", "--mlock", "--no-gpu", quick=loud)
    c.match(r.err, "warning: --mlock has no effect: the file is read into memory", "stderr")


def memory(c):
    text = c.run("transcribe", "-m", model(c), "--device", "cpu", "--memory").out
    c.match(text, r"^MB +weights +caches +compute +total +in file\ncpu +\d", "the table")
    c.match(c.run("bench", "-m", model(c), "--device", "cpu", "--memory").out, r"\nall +\d+\.\d +\d", "the table of bench")
    simulated(c)
    text = c.run("transcribe", "-m", model(c), "--device", "sim:0,sim:1", "--gpu-layers", "3", "--memory").out
    rows = {line.split()[0]: [float(x) for x in line.split()[1:]] for line in text.split("\n")[1:] if line}
    c.equal(list(rows), ["sim:0", "sim:1", "cpu", "all"], "devices")
    for i in range(4):
        c.check(abs(sum(rows[d][i] for d in ("sim:0", "sim:1", "cpu")) - rows["all"][i]) < 0.3, "sums in " + text)
        c.check(i == 1 or rows["sim:0"][i] > 0, "nothing on sim:0 in " + text)


def no_driver_without_a_gpu(c):
    """auto never takes a processor through OpenCL: without a GPU's device file the library is not even loaded."""
    if any(os.path.exists("/dev/" + name) for name in ("dri", "kfd", "nvidiactl", "dxg", "mali0", "kgsl-3d0")):
        raise run_cli.Skip("there may be a GPU")
    told = {"LD_DEBUG": "files"}
    if "libOpenCL" not in c.run("devices", env=told).err:
        raise run_cli.Skip("no OpenCL in this build, or a loader that does not tell")
    r = c.run("transcribe", "-m", model(c), "--memory", env=told)
    c.equal(r.code, 0, "exit code")
    c.check("libOpenCL" not in r.err, "auto loads libOpenCL")


def what_the_scheduler_did(c):
    r = good(c, "noise.wav", "--device", "cpu", "--trace", "sched", quick=("--no-fallback", "--beam-size", "1"))
    c.match(r.err, r'plan of graph "encode": \d+ nodes in 1 splits on cpu', "stderr")
    c.match(r.err, r"\nencode +split 0 +cpu +\d+ nodes +[0-9.]+ ms, +0 copies of +0 bytes", "stderr")
    simulated(c)
    text = c.run("transcribe", "-m", model(c), "--device", "sim:0", "--gpu-layers", "3", "--memory", "--trace", "sched").err
    c.match(text, r"linear .* sim:0 +its weights", "the dump")
    c.match(text, r"before: .*: \d+ bytes, sim:0 to cpu", "the dump")


def however_the_file_is_read(c):
    quick = ("--no-fallback", "--beam-size", "1", "--no-gpu")
    told = good(c, "noise.wav", quick=quick).out
    for option in ("--no-mmap", "--mlock"):
        c.equal(good(c, "noise.wav", option, quick=quick).out, told, "the text with " + option)


def largest_buffer(c):
    simulated(c)
    text = c.run("devices").out
    c.match(text, r"\nsim:3 .*, buffers up to 0\.001 GB", "the list")
    text = c.run("devices", "--json").out
    c.match(text, r'"id": "sim:3".*"max_buffer": 1048576,.*"reads_in_place": false', "the list as JSON")
    c.match(text, r'"id": "cpu".*"reads_in_place": true', "the list as JSON")
    sim = next(d for d in json.loads(text) if d["id"] == "sim:3")
    c.equal([sim["memory_total"], sim["memory_free"]], [None, None], "memory that nobody knows")


def what_devices_have(c):
    text = c.run("devices", "--ops").out
    c.match(text, r"(^|\n)cpu .*\n  linear +f32 +f16 +bf16", "the table")


def every_device_tried(c):
    simulated(c)
    r = c.run("devices", "--try", env={"OCL_ICD_VENDORS": "/nowhere"})
    c.equal(r.code, 0, "exit code")
    c.match(r.out, r"\nsim:0 .*\n  works\nsim:1 .*\n  works\n", "the list")
    c.check("works" not in r.out.split("sim:0")[0].split("\ncpu")[-1], "the CPU is not tried: " + r.out)
    text = c.run("devices", "--try", "--json", env={"OCL_ICD_VENDORS": "/nowhere"}).out
    c.match(text, r'"id": "sim:2".*"works": true}', "the list as JSON")


def interrupted(c):
    """Whoever stops waiting gets a whole list or none."""
    for i in range(6):
        p = c.start("devices", "--try", "--json", start_new_session=True)
        time.sleep(0.03 * i)
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=300)
        c.check(p.returncode in (0, -signal.SIGINT, 128 + signal.SIGINT), "exit code %d" % p.returncode)
        c.check(not out or json.loads(out), "half a list")


def weights_on_a_visit(c):
    """Products with weights at home on the CPU, in splits of their own on the stand-in for a GPU with matrix units."""
    folder = os.path.join(os.path.dirname(c.sotto), "cuda_mock")
    if not os.path.exists(folder):
        raise run_cli.Skip("no stand-in for CUDA in this build")
    c.env["LD_LIBRARY_PATH"] = os.pathsep.join([folder, c.env.get("LD_LIBRARY_PATH", "")])
    quick = ("--no-fallback", "--beam-size", "1", "--duration", "500")
    r = good(c, "noise.wav", "--device", "cuda:0", "--gpu-layers", "1", "--compute", "f16", "--trace", "sched", quick=quick)
    c.match(r.err, r"linear .* cuda:0 +many rows", "the dump")


CASES = [devices_that_are_not_there, why_there_is_no_device, however_the_file_is_read, largest_buffer, options_without_effect, memory, no_driver_without_a_gpu, what_the_scheduler_did, what_devices_have, every_device_tried, interrupted, weights_on_a_visit]

if __name__ == "__main__":
    sys.exit(run_cli.main([], CASES))
