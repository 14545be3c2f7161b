#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Continuous profiling of an inference server for a long time: soak.py [--minutes N] [--every SECONDS]

ONNX Runtime's npm package in 4 workers, 2,000 inferences a second together, into a window of 64 MiB; the window is saved again
and again. Every file must be complete, with no inference missing between its first and its last of each worker; nothing may be
lost; and the collector's memory must not grow once the window is full.
"""

import argparse
import collections
import json
import os
import signal
import subprocess
import sys
import time

import harness
from harness import XPUTRACE, Workload, need, scratch
from onnx_models import model, serve
from recordings import Recording

WORKERS = 4
RATE = 2000  # inferences a second, of all workers together
WINDOW = 64 << 20
GROWTH = 1.10  # of resident memory, from the time when the window has been full on
NAME = "soak-%d" % os.getpid()


def ask(*words):
    """What `xputrace continuous` answers, as JSON."""
    answer = subprocess.run([XPUTRACE, "continuous", *words, "--instance", NAME, "--format", "json"],
                            stdout=subprocess.PIPE, check=True)
    return json.loads(answer.stdout)


def resident(pid):
    with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS"))


def start_collector(pids, window, output):
    need(XPUTRACE, "collector")
    collector = harness.Process([XPUTRACE, "continuous", "start", "-p", ",".join(map(str, pids)), "-o", output,
                                 "--instance", NAME, "-w", str(window), "--window-time", "0", "--budget", "none"])
    collector.wait_line("stderr", "recording into memory")
    return collector


def check_file(saved, until):
    """The inferences of each worker are numbered by the kernel: none is missing, and the last ones are there."""
    recording = Recording(saved["path"])
    assert recording.end and recording.end["stopped_by"].startswith("saved"), "%s has no end" % saved["path"]
    assert recording.lost == 0 and saved["lost"] == 0, "%d records are lost" % saved["lost"]
    workers = collections.defaultdict(list)
    for call in recording.of_role("execute"):
        if call.number is not None:
            workers[call.tgid, call.program].append(call)
    for calls in workers.values():
        calls.sort(key=lambda call: call.number)
        numbers = [call.number for call in calls]
        assert numbers == list(range(numbers[0], numbers[-1] + 1)), "inferences are missing in %s" % saved["path"]
        assert calls[-1].end > until - 1000000000, "the last second is missing in %s" % saved["path"]
    assert len(workers) == WORKERS, "%d workers are in %s" % (len(workers), saved["path"])
    return sum(map(len, workers.values()))


def soak(seconds, every, window=WINDOW, tell=lambda text: None):
    """Runs it, and returns what was measured."""
    workers = [Workload(serve(model("small"), "--wait", "--seconds", 0, "--rate", RATE // WORKERS))
               for _ in range(WORKERS)]
    output = os.path.join(scratch(), "saved")
    collector = start_collector([worker.inside_pid for worker in workers], window, output)
    for worker in workers:
        worker.go()
    end = time.monotonic() + seconds
    memory, saves, full = [], [], None
    while time.monotonic() < end:
        time.sleep(max(0, min(every, end - time.monotonic())))
        before = time.monotonic_ns()
        saved = ask("save")
        status = ask("status")
        inferences = check_file(saved, before)
        os.unlink(saved["path"])
        saves.append(saved["duration_ns"] / 1e6)
        memory.append(resident(collector.pid))
        if full is None and status["evicted_records"]:
            full = len(memory) - 1
        tell("%4d s: %d inferences in %.1f s, saved in %.0f ms, resident %.1f MiB, lost %d" % (
            seconds - (end - time.monotonic()), inferences, (int(saved["end_ns"]) - int(saved["begin_ns"])) / 1e9,
            saves[-1], memory[-1] / 2**20, status["lost"]))
    status = ask("status")
    made = sum(worker_runs(worker) for worker in workers)
    collector.signal(signal.SIGTERM)
    assert collector.wait() == 0, collector.stderr
    assert status["lost"] == 0, "%d records were lost" % status["lost"]
    assert os.listdir(output) == [], "something is left: %s" % os.listdir(output)
    assert full is not None and full + 1 < len(memory), "the window was never full: %s" % status
    assert max(memory[full + 1:]) <= memory[full + 1] * GROWTH, "resident memory grew: %s" % memory
    return {"inferences": made, "rate": made / seconds, "saves": saves, "memory": memory[full:],
            "cpu": status["cpu_ns"] / status["elapsed_ns"]}


def worker_runs(worker):
    results, = [json.loads(line) for line in run_to_end(worker).splitlines() if line.startswith('{"runtime"')]
    return results["runs"]


def run_to_end(worker):
    worker.signal(signal.SIGTERM)
    worker.wait()
    return worker.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--every", type=float, default=60, metavar="SECONDS", help="between two saves")
    arguments = parser.parse_args()
    result = soak(arguments.minutes * 60, arguments.every, tell=lambda text: print(text, flush=True))
    saves, memory = sorted(result["saves"]), result["memory"]
    print("%d inferences, %.0f a second; %d saves, median %.0f ms, longest %.0f ms; resident memory %.1f to %.1f MiB; "
          "collector %.1f %% of a core" % (
              result["inferences"], result["rate"], len(saves), saves[len(saves) // 2], saves[-1],
              min(memory) / 2**20, max(memory) / 2**20, result["cpu"] * 100))


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit("soak: %s" % error)
    finally:
        harness.kill_all()
