# SPDX-License-Identifier: BSD-2-Clause
"""Continuous profiling: what a server loses while it is watched, and how long a save takes."""

import json
import os
import shutil
import subprocess
import tempfile
import time

from attach import NPM, ROOT, library, make_model
from harness import process_state, wait_until
from tools import BUILD, XPUTRACE, Process

WORKERS = 4
WINDOW = 64 << 20
BASIC, DEFAULT = "with --level basic", "with the default level"
LOSS_LIMIT, SAVE_LIMIT = 2, 200  # %, ms
FULL = 0.9  # of the window, before it is saved
FULL_SECONDS = 120
SHORT_HIDDEN = 16  # neurons: inferences that fill the window soon


class Server(Process):
    """ONNX Runtime's npm package with four sessions, each run without a pause."""

    def __init__(self, model, *options):
        super().__init__([shutil.which("node"), os.path.join(ROOT, "tests", "workload", "onnx", "serve.mjs"), model,
                          "--sessions", str(WORKERS), *options], env=dict(os.environ, XPUTRACE_NPM=NPM))
        self.wait_line("stdout", '"ready"')

    def served(self):
        """The number of runs, once all are made."""
        return json.loads(self.wait_line("stdout", '"runs"'))["runs"]


    def cpu(self):
        """us of CPU time so far; of a process that has ended until it is waited for."""
        with open("/proc/%d/stat" % self.pid, encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")


class Collector(Process):
    """`xputrace continuous start` on a process, under a name of its own."""

    def __init__(self, pid, folder, *options):
        self.instance = "bench-%d-%d" % (os.getpid(), pid)
        super().__init__([XPUTRACE, "continuous", "start", "-p", str(pid), "--instance", self.instance, "-o",
                          os.path.join(folder, "saved"), "--window-time", "0", "--budget", "none", *options])
        self.wait_line("stderr", "recording into memory")

    def ask(self, word, *options):
        asked = subprocess.run([XPUTRACE, "continuous", word, "--instance", self.instance, *options], check=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return json.loads(asked.stdout) if asked.stdout else None

    def status(self):
        return self.ask("status", "--format", "json")

    def save(self, *options):
        """What it answers, and ms that the command took."""
        start = time.monotonic()
        saved = self.ask("save", "--format", "json", *options)
        return saved, (time.monotonic() - start) * 1e3

    def end(self):
        self.ask("stop")
        self.wait()


def measure(model, folder, seconds, options):
    """Runs a second, us of CPU time a run; of a collector: its share of a core in %, and records lost."""
    server = Server(model, "--seconds", str(seconds), "--wait")
    collector = Collector(server.pid, folder, *options) if options is not None else None
    before = collector.status() if collector else None
    cpu = server.cpu()
    server.child.stdin.write(b"\n")
    server.child.stdin.close()
    runs = server.served()
    after = collector.status() if collector else None
    wait_until(lambda: process_state(server.pid) == "Z", "end of the server")
    cpu = (server.cpu() - cpu) / runs
    server.wait()
    if not collector:
        return runs / seconds, cpu, 0, 0
    collector.end()
    share = (after["cpu_ns"] - before["cpu_ns"]) / (after["elapsed_ns"] - before["elapsed_ns"]) * 100
    return runs / seconds, cpu, share, after["lost"]


def sync_again(path):
    """ms that fsync() takes of another file with the same bytes; the file is gone then."""
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        start = time.monotonic()
        os.fsync(file.fileno())
        took = (time.monotonic() - start) * 1e3
    os.unlink(path)
    return took


def throughput(results, settings, folder):
    model = make_model(folder)
    kinds = {"untraced": None, BASIC: ("--level", "basic"), DEFAULT: ()}
    measured = {kind: [] for kind in kinds}
    seconds = max(1, settings.model_seconds * 3)
    for _ in range(settings.repetitions):
        for kind, options in kinds.items():
            measured[kind].append(measure(model, folder, seconds, options))
    for kind, values in measured.items():
        results.add("throughput, %s" % kind, [one[0] for one in values], "runs/s", note="%g s" % seconds)
        results.add("CPU time of a run, %s" % kind, [one[1] for one in values], "us")
    for kind, limit in ((BASIC, LOSS_LIMIT), (DEFAULT, None)):
        pairs = list(zip(measured[kind], measured["untraced"]))
        results.add("throughput lost, %s" % kind, [(1 - one[0] / plain[0]) * 100 for one, plain in pairs], "%", limit)
        results.add("added to the CPU time of a run, %s" % kind,
                    [(one[1] / plain[1] - 1) * 100 for one, plain in pairs], "%")
        results.add("CPU time of the collector, %s" % kind, [one[2] for one in measured[kind]], "% of one",
                    note="%d records lost" % sum(one[3] for one in measured[kind]))


def saves(results, settings, folder, disk):
    """Of a window that is full, while the server goes on."""
    server = Server(make_model(folder, SHORT_HIDDEN), "--seconds", "0")
    collector = Collector(server.pid, disk, "-w", str(WINDOW), "--level", "detailed")
    end = time.monotonic() + (1 if settings.repetitions == 1 else FULL_SECONDS)
    try:
        while collector.status()["window_bytes"] < WINDOW * FULL and time.monotonic() < end:
            time.sleep(0.2)
        whole = [collector.save() for _ in range(settings.repetitions)]
        syncs = [sync_again(saved["path"]) for saved, _ in whole]
        latest = [collector.save("--last", "1") for _ in range(settings.repetitions)]
        status = collector.status()
        collector.end()
    finally:
        server.kill()
    note = "%.0f MiB of memory, %.1f MB of file" % (status["window_bytes"] / (1 << 20), whole[-1][0]["bytes"] / 1e6)
    results.add("save of the whole window, written and on the disk", [saved["duration_ns"] / 1e6 for saved, _ in whole],
                "ms", SAVE_LIMIT, note=note)
    results.add("the same, the command from start to end", [took for _, took in whole], "ms")
    results.add("fsync() of as many bytes, by itself", syncs, "ms")
    results.add("save of the latest inference, written and on the disk",
                [saved["duration_ns"] / 1e6 for saved, _ in latest], "ms", note="%d records" % latest[-1][0]["records"])
    results.add("the same, the command from start to end", [took for _, took in latest], "ms")


def continuous_section(results, settings, folder):
    results.section("continuous: a server with %d workers, run without a pause (onnxruntime-node)" % WORKERS)
    if not library() or not shutil.which("node"):
        results.add("throughput lost, %s" % BASIC, [], "%", LOSS_LIMIT,
                    note="node or onnxruntime-node is not installed")
        return
    throughput(results, settings, folder)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as disk:
        saves(results, settings, folder, disk)
