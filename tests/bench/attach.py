# SPDX-License-Identifier: BSD-2-Clause
"""ONNX Runtime as npm ships it: how fast xputrace attaches to it and detaches, and what its users notice."""

import glob
import json
import os
import shutil
import subprocess
import sys
import time

from tools import BUILD, HERE, Process, Recorder

ROOT = os.path.dirname(os.path.dirname(HERE))
NPM = os.path.join(BUILD, "npm")
WORKLOAD = os.path.join(BUILD, "workload", "onnx")
MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
LINKS = ("session", "multi", "perf")
ATTACH_LIMIT, DETACH_LIMIT = 300, 200  # ms
HIDDEN = 1024  # neurons of the model
SAMPLE = 16


def library():
    found = glob.glob(os.path.join(NPM, "node_modules", "onnxruntime-node", "bin", "napi-v*", "linux",
                                   MACHINES.get(os.uname().machine, "none"), "libonnxruntime.so.1"))
    return found[0] if found else None


def make_model(folder, hidden=HIDDEN):
    path = os.path.join(folder, "model-%d.onnx" % hidden)
    script = os.path.join(ROOT, "tests", "workload", "onnx", "make_model.py")
    subprocess.run([sys.executable, script, "small", path, "hidden=%d" % hidden], check=True)
    return path


def serve(model):
    """A server that runs the model 200 times a second until it is asked to stop."""
    node = shutil.which("node")
    if not node or not library():
        return None
    environment = dict(os.environ, XPUTRACE_NPM=NPM)
    server = Process([node, os.path.join(ROOT, "tests", "workload", "onnx", "serve.mjs"), model, "--rate", "200",
                      "--seconds", "0"], env=environment)
    server.wait_line("stdout", '"ready"')
    return server


def attach_once(pid, output, link):
    """Milliseconds: from start to attached; placing the probes; removing them; from the interrupt to the end."""
    start = time.monotonic()
    recorder = Recorder(pid, output, "--link", link)
    attached = time.monotonic()
    time.sleep(0.2)  # so that there is something to record
    stopped = time.monotonic()
    tracing = recorder.finish()["tracing"]
    ended = time.monotonic()
    return ((attached - start) * 1e3, tracing["attach_ns"] / 1e6, tracing["detach_ns"] / 1e6, (ended - stopped) * 1e3)


def attach_section(results, settings, folder):
    results.section("attaching to ONNX Runtime while it runs (onnxruntime-node, stripped)")
    server = serve(make_model(folder))
    if not server:
        results.add("from start to attached", [], "ms", ATTACH_LIMIT, note="node or onnxruntime-node is not installed")
        return
    times = {link: [] for link in LINKS}
    problems = {}
    try:
        for _ in range(settings.repetitions):
            for link in LINKS:
                try:
                    times[link].append(attach_once(server.pid, os.path.join(folder, "attach.json"), link))
                except (AssertionError, RuntimeError) as error:
                    problems[link] = str(error).strip().splitlines()[-1]
    finally:
        server.kill()
    megabytes = "library of %.0f MB" % (os.stat(library()).st_size / 1e6)
    for link in LINKS:
        columns = list(zip(*times[link])) or [[], [], [], []]
        note = problems.get(link, "")
        results.add("%s links: from start to attached" % link, list(columns[0]), "ms", ATTACH_LIMIT,
                    note=note or megabytes)
        results.add("%s links: of this, placing probes" % link, list(columns[1]), "ms", note=note)
        results.add("%s links: removing probes" % link, list(columns[2]), "ms",
                    DETACH_LIMIT if link != "perf" else None, note=note)
        results.add("%s links: from the interrupt to the end" % link, list(columns[3]), "ms", note=note)


def run_model(model, runs, trace):
    """One process of its own. Mean time of a run as the program measures it in us, runs a second.

    trace: makes what traces it from its PID, a Process that ends with it; or None.
    """
    program = Process([WORKLOAD, library(), model, "--wait-for-go", "--runs", str(runs)])
    program.wait_line("stdout", '"ready"')
    tracer = trace(program.pid) if trace else None
    start = time.monotonic()
    program.send("\n")
    line = program.wait_line("stdout", '{"runtime"')
    took = time.monotonic() - start
    program.wait()
    if tracer:
        tracer.wait()
    calls = [entry for one in json.loads(line)["libraries"] for entry in one["calls"] if entry["function"] == "Run"]
    made = sum(entry["count"] for entry in calls)
    return sum(entry["total_ns"] for entry in calls) / made / 1e3, made / took


def model_section(results, settings, folder):
    results.section("a model in ONNX Runtime: perceptron, %d neurons a layer, one thread" % HIDDEN)
    if not library() or not os.path.exists(WORKLOAD):
        results.add("mean time of a run", [], "us", note="onnxruntime-node is not installed")
        return
    model = make_model(folder)
    output = os.path.join(folder, "model.json")
    kinds = {"untraced": None, "traced": lambda pid: Recorder(pid, output),
             "traced, 1 in %d" % SAMPLE: lambda pid: Recorder(pid, output, "-s", SAMPLE)}
    rate = run_model(model, 200, None)[1]
    runs = max(100, int(rate * settings.model_seconds))
    measured = {kind: [] for kind in kinds}
    for _ in range(settings.repetitions):
        for kind, trace in kinds.items():
            measured[kind].append(run_model(model, runs, trace))
    for kind in kinds:
        results.add("mean time of a run, %s" % kind, [one[0] for one in measured[kind]], "us", note="%d runs" % runs)
    for kind in kinds:
        results.add("throughput, %s" % kind, [one[1] for one in measured[kind]], "runs/s")
    for kind in list(kinds)[1:]:
        added = [(traced[0] / plain[0] - 1) * 100 for traced, plain in zip(measured[kind], measured["untraced"])]
        results.add("added to the mean time, %s" % kind, added, "%")
