# SPDX-License-Identifier: BSD-2-Clause
"""An NVIDIA GPU with its real driver: PyTorch, JAX and programs of nvcc, as their own profiler and the device count."""

import collections
import glob
import json
import os
import re
import shutil
import subprocess
import sys

from harness import ROOT, XPUTRACE, Recorder, Skip, Workload, cases, record_late, results_in, run, scratch

ALONE = "uses the whole device"
LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch", "cuGraphLaunch")


def need_device():
    if not glob.glob("/dev/nvidia[0-9]*"):
        raise Skip("there is no NVIDIA GPU here")


def python_command(module, what, steps):
    need_device()
    python = shutil.which("python3") or sys.executable
    found = subprocess.run([python, "-c", "import " + module], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if found.returncode:
        raise Skip("Python has no " + module)
    return [python, os.path.join(ROOT, "tests", "workload", "python", "cuda.py"), what, str(steps)]


def short(name):
    """The function of a kernel, without namespaces and arguments of templates, mangled or not."""
    if name.startswith("_Z"):
        name = run(["c++filt", "-p", name]).stdout.strip()
    name = re.sub(r"^void ", "", name.replace("(anonymous namespace)::", ""))
    return re.split(r"[<(]", name)[0].split("::")[-1]


def launched(trace, since=0):
    return [call for call in trace.of(*LAUNCHES) if not call.layer and call.start >= since]


def check_ends(trace, result):
    """Each is ended by the wait of its step: no latency is longer than the longest step."""
    spans = collections.defaultdict(dict)
    for event in trace.events:
        if event.get("cat", "").startswith("inference,"):
            spans[event["cat"], event["id"]][event["ph"]] = event["ts"]
    times = [span["e"] - span["b"] for span in spans.values() if "e" in span and "b" in span]
    for program in trace.metadata["programs"]:
        if program.get("latency_ns"):
            times.append(program["latency_ns"]["max"] / 1000)
    assert times, "no launch was seen to end"
    assert max(times) < result["longest_us"] + 100, (max(times), result)


@cases("layers", "graph")
def test_torch_late(what):
    """A process that has loaded everything: each kernel of each step, by its name."""
    (result,), trace = record_late(Workload(python_command("torch", what, 200)))
    trace.check()
    assert not trace.losses(), trace.losses()
    calls = launched(trace)
    if what == "graph":
        assert len(calls) == result["steps"], (len(calls), result["steps"])
        assert {call.event["args"]["program"] for call in calls} == {"cudart graph 1"}
    else:
        wanted = {short(name): count * result["steps"] for name, count in result["kernels"].items()}
        counts = collections.Counter(short(call.event["args"]["program"]) for call in calls)
        assert dict(counts) == wanted, (counts, wanted)
    check_ends(trace, result)


def test_torch_from_the_start():
    """PyTorch registers more than 20,000 kernels: those that are launched have their names, and nothing is lost."""
    command = python_command("torch", "layers", 100)
    recorder = Recorder("--wait-limit", "30s", "--", *command, wait=False)
    recorder.send("\n")
    trace = recorder.finish()
    (result,) = results_in(recorder.stdout)
    trace.check()
    assert not trace.losses(), trace.losses()
    registered = len(trace.of("__cudaRegisterFunction"))
    assert registered > 16384, registered
    counts = collections.Counter(short(call.event["args"]["program"]) for call in launched(trace))
    for name, count in result["kernels"].items():
        assert counts[short(name)] >= count * (result["steps"] + 5), (name, counts)
    assert not any("kernel " in name for name in counts), counts


def test_jax():
    """XLA waits by a callback on a stream of its own, which follows the one that computes."""
    (result,), trace = record_late(Workload(python_command("jax", "jax", 300)))
    trace.check()
    assert not trace.losses(), trace.losses()
    assert len(launched(trace)) >= result["steps"]
    check_ends(trace, result)


def compiled(flavour):
    need_device()
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        raise Skip("there is no nvcc here")
    program = os.path.join(scratch(), "steps")
    options = ["-cudart", "shared"] if flavour == "shared" else []
    made = run([nvcc, "-O2", *options, "-o", program, os.path.join(ROOT, "tests", "workload", "cuda", "steps.cu")])
    assert made.status == 0, made.stderr
    if flavour == "stripped":
        run(["strip", program])
    if flavour == "shared":
        libraries = glob.glob(os.path.join(os.path.dirname(os.path.dirname(nvcc)), "lib*", "libcudart.so.*"))
        os.environ["LD_LIBRARY_PATH"] = os.path.dirname(libraries[0]) if libraries else ""
    return [program, "500"]


@cases("shared", "static", "stripped")
def test_compiled(flavour):
    """With CUDA's runtime as a library, in the program, and there without symbols, where the driver's calls are seen."""
    (result,), trace = record_late(Workload(compiled(flavour)))
    trace.check()
    assert not trace.losses(), trace.losses()
    counts = collections.Counter(short(call.event["args"]["program"]) for call in launched(trace))
    assert dict(counts) == {"scale": result["steps"], "count": result["counted"] - 1}, (counts, result)
    check_ends(trace, result)


def test_device():
    """Listed, and its memory is what NVIDIA's own tool reads."""
    need_device()
    tool = run(["nvidia-smi", "--query-gpu=pci.bus_id,memory.used", "--format=csv,noheader,nounits"])
    if tool.status:
        raise Skip("nvidia-smi does not run")
    smi = {line.split(",")[0].strip().lower()[-12:]: int(line.split(",")[1]) for line in tool.stdout.splitlines()}
    listed = json.loads(run([XPUTRACE, "list", "devices", "--format", "json"]).stdout)
    assert {device["address"] for device in listed if device["driver"] == "nvidia"} == set(smi), (listed, smi)
    read = run([XPUTRACE, "counters", "-e", "memory_used", "--gpu", "0", "-d", "200ms"])
    value = int(re.search(r"^memory_used\s+(\d+) B", read.stdout, re.M).group(1))
    assert abs(value / 2**20 - smi[listed[0]["address"]]) < 64, (value, smi)
