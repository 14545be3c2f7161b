# SPDX-License-Identifier: BSD-2-Clause
"""xputrace continuous on a server, saved again and again: ONNX Runtime's npm package in 4 workers, 2,000 inferences a second together.
Every file must be complete, with no inference missing between its first and its last of each worker; nothing may be lost; and the
collector's memory must not grow once the window is full. Beside it, with everything else and for hours: tests/soak/soak.py."""

import collections
import json
import os
import signal
import subprocess
import time

import harness
from harness import XPUTRACE, Workload, need, scratch
from onnx_models import model, serve
from recordings import Recording

PAIRED = "measures memory and losses at full load"
WORKERS = 4
RATE = 2000  # inferences a second, of all workers together
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


def soak(seconds, every, window):
    """Runs it and checks what is saved."""
    workers = [Workload(serve(model("small"), "--wait", "--seconds", 0, "--rate", RATE // WORKERS))
               for _ in range(WORKERS)]
    output = os.path.join(scratch(), "saved")
    collector = start_collector([worker.inside_pid for worker in workers], window, output)
    for worker in workers:
        worker.go()
    end = time.monotonic() + seconds
    memory, full = [], None
    while time.monotonic() < end:
        time.sleep(max(0, min(every, end - time.monotonic())))
        before = time.monotonic_ns()
        saved = ask("save")
        status = ask("status")
        check_file(saved, before)
        os.unlink(saved["path"])
        memory.append(resident(collector.pid))
        if full is None and status["evicted_records"]:
            full = len(memory) - 1
    status = ask("status")
    for worker in workers:
        worker.signal(signal.SIGTERM)
        worker.wait()
    collector.signal(signal.SIGTERM)
    assert collector.wait() == 0, collector.stderr
    assert status["lost"] == 0, "%d records were lost" % status["lost"]
    assert os.listdir(output) == [], "something is left: %s" % os.listdir(output)
    assert full is not None and full + 1 < len(memory), "the window was never full: %s" % status
    assert max(memory[full + 1:]) <= memory[full + 1] * GROWTH, "resident memory grew: %s" % memory


def test_server():
    """Files complete, nothing lost, memory flat once the window is full."""
    soak(seconds=16, every=2, window=2 << 20)
