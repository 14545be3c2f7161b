# SPDX-License-Identifier: BSD-2-Clause
"""What the operators of a small model cost: it is the short ones that tracing is felt in."""

import json
import os
import subprocess
import sys
import time

from attach import ROOT, WORKLOAD, library, run_model
from tools import EMPTY_PROBE, XPUTRACE, Process, Recorder

OPERATORS, TARGET_US = 9, 70
HIDDEN = (320, 448, 512, 640, 768)  # the first that makes a run as long as wanted is taken
EMPTY, OPS, BASIC = "empty programs at the same places", "with --ops", "with --level basic, 1 in 16"
LIMITS = {EMPTY: None, OPS: 1.25, BASIC: 1.05}
ATTACH_LIMIT = 500  # ms


def make_model(folder, hidden):
    path = os.path.join(folder, "mlp-%d.onnx" % hidden)
    script = os.path.join(ROOT, "tests", "workload", "onnx", "make_model.py")
    subprocess.run([sys.executable, script, "mlp", path, "hidden=%d" % hidden], check=True)
    return path


def attach(model, folder):
    """ms from the start of xputrace to all operators probed; of this, what it says placing them took."""
    program = Process([WORKLOAD, library(), model, "--wait-for-go", "--runs", "1000"])
    program.wait_line("stdout", '"ready"')
    start = time.monotonic()
    recorder = Recorder(program.pid, os.path.join(folder, "attach.json"), "--ops")
    attached = time.monotonic()
    tracing = recorder.finish()["tracing"]
    program.kill()
    return (attached - start) * 1e3, tracing["attach_ns"] / 1e6, sum(tracing["sites"].values())


class Empty(Process):
    """Programs that do nothing, on the begin and return of all functions that --ops probes."""

    def __init__(self, pid):
        options = ["-p", str(pid), "--format", "json"]
        offsets = set()
        for what in ("operators", "sites"):
            reported = subprocess.run([XPUTRACE, "list", what, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
            offsets |= {str(row["offset"]) for row in json.loads(reported.stdout)}
        super().__init__([EMPTY_PROBE, "both", str(pid), library(), *sorted(offsets)])
        self.wait_line("stderr", "attached")

    def wait(self):
        self.child.stdin.close()
        return super().wait()


def operators_section(results, settings, folder):
    results.section("operators: a perceptron of %d operators, one thread, run without a pause" % OPERATORS)
    if not library() or not os.path.exists(WORKLOAD):
        results.add("mean time of a run", [], "us", note="onnxruntime-node is not installed")
        return
    output = os.path.join(folder, "operators.xpt")
    for hidden in HIDDEN:
        model = make_model(folder, hidden)
        mean, rate = run_model(model, 5000, None)
        if mean >= TARGET_US - 5:
            break
    runs = max(2000, int(rate * settings.model_seconds))
    kinds = {"untraced": None, EMPTY: Empty, OPS: lambda pid: Recorder(pid, output, "--ops"),
             BASIC: lambda pid: Recorder(pid, output, "--level", "basic", "-s", 16)}
    measured = {kind: [] for kind in kinds}
    for _ in range(settings.repetitions):
        for kind, trace in kinds.items():
            measured[kind].append(run_model(model, runs, trace)[0])
    for kind, values in measured.items():
        results.add("mean time of a run, %s" % kind, values, "us", note="%d runs" % runs)
    for kind, limit in LIMITS.items():
        ratios = [traced / plain for traced, plain in zip(measured[kind], measured["untraced"])]
        results.add("of the untraced one, %s" % kind, ratios, "times", limit)
    for kind in (EMPTY, OPS):
        added = [(traced - plain) / (OPERATORS + 1) * 1e3 for traced, plain in zip(measured[kind], measured["untraced"])]
        results.add("added for each operator and the run, %s" % kind, added, "ns")
    attached, placing, sites = zip(*[attach(model, folder) for _ in range(settings.repetitions)])
    results.add("from start to attached, with --ops", list(attached), "ms", ATTACH_LIMIT, note="%d probes" % sites[0])
    results.add("of this, finding classes and placing probes", list(placing), "ms")
