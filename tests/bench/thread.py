# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to know what threads do: states, reasons (--why), stacks (--stacks) and samples (--samples)."""

import glob
import json
import os
import shutil
import statistics
import sys
import time

from attach import NPM, ROOT, make_model
from attach import library as node_library
from cost import BOTH, FULL, UNTRACED, measure_costs
from drivers import EMPTY_EVENT
from recordings import PARTIAL, Recording
from results import AT_LEAST
from tools import BUILD, HERE, EmptyProbe, Process, Recorder, Tracer, Xputrace, wait_until

import python_root

TARGET = os.path.join(BUILD, "bench", "thread")
SCRIPT = os.path.join(HERE, "target", "stack.py")
STANDIN = os.path.join(BUILD, "workload", "lib", "libnrt.so.1")
DESCRIPTION = ("--runtime", os.path.join(HERE, "thread.json"), "--only", "thread")
WINDOW = 1000  # switches: what else the machine does is in few windows
CALLS = 100  # of a window
SHALLOW, FULL_STACK = 256, 16384  # bytes of stack
PYTHON_FRAMES = 20
SAMPLES = 999  # Hz: one at 99 Hz is too little to see
STATES_LIMIT, UNTRACED_LIMIT, TRACED_LIMIT = 100, 60, 250  # ns
NATIVE_LIMIT, PYTHON_LIMIT, COMPLETE_LIMIT = 4000, 8000, 98  # ns, ns, %
SETTLED, MEASURED = 1, 4  # s: until what the first stacks need is there; from then on


class Target(Process):
    """A program that answers each line with one of JSON."""

    def __init__(self, *command):
        super().__init__(list(command))
        self.wait_line("stdout", "ready")

    def ask(self, *words):
        answered = len(self.lines["stdout"])
        self.send(" ".join(map(str, words)) + "\n")
        wait_until(lambda: len(self.lines["stdout"]) > answered or self.child.poll() is not None, "answer")
        return json.loads(self.lines["stdout"][answered])

    def close(self):
        self.child.stdin.close()
        self.child.wait()


class Empty:
    """Programs that do nothing at both tracepoints of --why."""

    def __init__(self):
        self.process = Process([EMPTY_EVENT, "btf", "sched_switch", "sched_waking"])
        self.process.wait_line("stderr", "attached")

    def finish(self):
        self.process.child.stdin.close()
        self.process.child.wait()


def in_turn(settings, traces):
    """Values by name, one for each repetition. traces: by name, what starts the tracer or None, and what measures."""
    values = {name: [] for name in traces}
    for _ in range(settings.repetitions):
        for name, (trace, measure) in traces.items():
            tracer = trace() if trace else None
            values[name].append(measure())
            if tracer:
                tracer.finish()
    return values


def add_all(results, values, unit, note=""):
    for name, each in values.items():
        results.add(name, each, unit, note=note)


def differences(values, first, second):
    return [a - b for a, b in zip(values[first], values[second])]


def add_states(results, settings, folder):
    reads = "the same, reading what states are made of"
    function = "bench_plain"
    measured = measure_costs([Tracer(), EmptyProbe("both", BOTH), EmptyProbe("states", reads), Xputrace(folder, FULL)],
                             settings, (function,))
    costs = {name: measured.costs[name, function] for name in (UNTRACED, BOTH, reads, FULL)}
    for name, values in costs.items():
        results.add("a call: " + name, values, "ns", note=measured.missing[name] or "")
    results.add("states: the reads", differences(costs, reads, BOTH), "ns", STATES_LIMIT)


def add_switches(results, settings, folder):
    output = os.path.join(folder, "why.xpt")
    target, other = Target(TARGET), Target(TARGET)
    windows = max(3, settings.cost_milliseconds // 4)

    def cost(threads=1):
        answers = [target.ask("switch", WINDOW, threads) for _ in range(windows)]
        return statistics.median(answer["cpu_ns"] / answer["switches"] for answer in answers)

    def why(process, *options):
        return lambda: Recorder(process.pid, output, *DESCRIPTION, *options)

    untraced, empty, other_why = ("a switch: untraced", "a switch: empty programs at both tracepoints",
                                  "a switch: --why of another process")
    recorded, one, both = ("a switch: recorded, without --why", "a switch: --why, one of the threads in a call",
                           "a switch: --why, both in a call")
    try:
        values = in_turn(settings, {
            untraced: (None, cost), empty: (Empty, cost), other_why: (why(other, "--why"), cost),
            recorded: (why(target), cost), one: (why(target, "--why"), cost), both: (why(target, "--why"), lambda: cost(2))})
    finally:
        target.close()
        other.close()
    add_all(results, values, "ns", note="median of %d windows" % windows)
    results.add("--why: a switch of an untraced thread over the empty programs", differences(values, other_why, empty), "ns",
                UNTRACED_LIMIT)
    results.add("--why: a switch of a thread in a call, with waking it", differences(values, one, empty), "ns", TRACED_LIMIT)
    results.add("--why: a switch from one thread in a call to another", differences(values, both, empty), "ns")


def add_stacks(results, settings, folder, target, options, line, name, limit):
    """What one stack adds to the call that it is taken of."""
    output = os.path.join(folder, "stacks.xpt")
    windows = max(1, settings.cost_milliseconds // 60)
    made = windows * CALLS
    shares = []

    class Counted(Recorder):
        def finish(self):
            super().finish()
            shares.append(len(Recording(output).stack_samples) / made * 100)

    def cost():
        return statistics.median(target.ask(line, CALLS)["ns"] for _ in range(windows))

    plain, stacked = name + ": without", name + ": with"
    values = in_turn(settings, {
        plain: (lambda: Recorder(target.pid, output, *options), cost),
        stacked: (lambda: Counted(target.pid, output, *options, "--stacks=1000"), cost)})
    add_all(results, values, "ns", note="CPU time, with reading it; %d calls" % made)
    results.add(name + ": a stack adds", differences(values, stacked, plain), "ns", limit)
    results.add(name + ": calls with a stack", shares, "%")


def add_samples(results, settings, folder):
    output = os.path.join(folder, "samples.xpt")
    target, other = Target(TARGET), Target(TARGET)
    windows = max(2, settings.cost_milliseconds // 20)

    def kept():
        answers = [target.ask("spin", 50) for _ in range(windows)]
        return statistics.median(answer["kept_ns"] / answer["cpu_ns"] for answer in answers) * 1e9

    def record(process, *options):
        return lambda: Recorder(process.pid, output, *DESCRIPTION, *options), kept

    option = "--samples=%d" % SAMPLES
    plain = "ns of a second taken from a thread in a call"
    interrupted, sampled = ("the same with %s%s" % (option, of) for of in (" of another process", ""))
    try:
        values = in_turn(settings, {plain: record(target), interrupted: record(other, option), sampled: record(target, option)})
    finally:
        target.close()
        other.close()
    add_all(results, values, "ns")
    for name, kind in (("its interrupt", interrupted), ("with a stack", sampled)):
        one = [added / SAMPLES for added in differences(values, kind, plain)]
        results.add("--samples: one sample, %s" % name, one, "ns")
    results.add("--samples=99: of the CPU time of a thread in a call", [value * 99 / 1e9 * 100 for value in one], "%")


# ---- ONNX Runtime ----

def collector_ns(pid):
    """CPU time of all threads of a process."""
    total = 0
    for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
        with open(path, encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def node_server(folder):
    node = shutil.which("node")
    if not node or not node_library():
        return None
    command = [node, os.path.join(ROOT, "tests", "workload", "onnx", "serve.mjs"), make_model(folder), "--rate", "1000",
               "--seconds", "0"]
    server = Process(command, env=dict(os.environ, XPUTRACE_NPM=NPM))
    server.wait_line("stdout", '"ready"')
    return server


def python_server(folder):
    if not os.path.exists(os.path.join(python_root.FOLDER, "fetched.json")):
        return None
    server = Process(python_root.direct(os.path.join(ROOT, "tests", "workload", "python", "serve.py"), make_model(folder),
                                        "--rate", "1000", "--runs", "1000000", "--wait"))
    server.wait_line("stdout", '"ready"')
    server.send("\n")
    return server


def measure_collector(server, output, *options):
    """CPU time of the collector in ns a second, stacks a second, and the share that reach the thread's start, in %."""
    recorder = Recorder(server.pid, output, *options)
    time.sleep(SETTLED)
    start, used = time.monotonic_ns(), collector_ns(recorder.pid)
    time.sleep(MEASURED)
    end, used = time.monotonic_ns(), collector_ns(recorder.pid) - used
    recorder.finish()
    samples = Recording(output).stack_samples
    within = [sample for sample in samples if start <= sample.time < end]
    complete = [sample for sample in samples if not sample.stack.flags & PARTIAL]
    seconds = (end - start) / 1e9
    return used / seconds, len(within) / seconds, len(complete) / max(1, len(samples)) * 100


def add_runtime(results, settings, folder, name, start):
    output = os.path.join(folder, "runtime.xpt")
    server = start(folder)
    if not server:
        results.add(name + ": stacks that reach the thread's start", [], "%", COMPLETE_LIMIT, AT_LEAST, note="not installed")
        return
    try:
        pairs = [(measure_collector(server, output), measure_collector(server, output, "--stacks=500"))
                 for _ in range(settings.repetitions)]
    finally:
        server.kill()
    results.add(name + ": stacks that reach the thread's start", [stacked[2] for _, stacked in pairs], "%", COMPLETE_LIMIT, AT_LEAST)
    results.add(name + ": stacks", [stacked[1] for _, stacked in pairs], "1/s")
    results.add(name + ": CPU time of the collector a stack",
                [(stacked[0] - plain[0]) / max(1, stacked[1]) / 1e3 for plain, stacked in pairs], "us")


def thread_section(results, settings, folder):
    results.section("thread states and stacks: CPU time of threads that run in real time where they may; recordings take turns")
    add_states(results, settings, folder)
    add_switches(results, settings, folder)
    for size, name in ((SHALLOW, "stack of less than 1 KiB"), (FULL_STACK, "stack of 16 KiB")):
        target = Target(TARGET)
        try:
            add_stacks(results, settings, folder, target, DESCRIPTION, "stack %d" % size, name, NATIVE_LIMIT)
        finally:
            target.close()
    target = Target(os.path.realpath(shutil.which("python3", path="/usr/bin") or sys.executable), SCRIPT, STANDIN)
    try:
        add_stacks(results, settings, folder, target, (), PYTHON_FRAMES, "stack with %d Python frames" % PYTHON_FRAMES,
                   PYTHON_LIMIT)
    finally:
        target.close()
    add_samples(results, settings, folder)
    add_runtime(results, settings, folder, "ONNX Runtime in Node.js", node_server)
    add_runtime(results, settings, folder, "ONNX Runtime in Python", python_server)
