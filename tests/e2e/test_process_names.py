# SPDX-License-Identifier: BSD-2-Clause
"""--process NAME: processes that run, and those that start later under the name, in every command that watches."""

import os
import re
import shutil
import signal
import sys
import time
import uuid

from saved_files import Collector
from harness import SLOW, Process, Recorder, Workload, compare, scratch, standin, wait_until, workload_path
from recordings import Recording
from reports import Stream, check_totals, made_by

PAIRED = "expects probes in time"


class Named:
    """A program, of the stand-ins unless another one is named, under a name of its own; it can be started several times."""

    def __init__(self, program=None):
        self.name = "e2e-" + uuid.uuid4().hex[:8]
        self.path = os.path.join(scratch(), self.name)
        os.symlink(program or workload_path("workload"), self.path)

    def start(self):
        return Workload([self.path, "qaic", "--wait-for-go", "--calls", 30, "--fail-every", 7])

    def runs(self, watcher):
        """Results of one that runs already, of two at a time that start later, and of one more after these."""
        first = self.start()
        process = watcher(self.name)
        results = attached_run(process, [first])
        results += attached_run(process, [self.start(), self.start()])
        other = standin("qaic", "--calls", "30")
        results += attached_run(process, [self.start()])
        other.go()
        other.results()
        return process, results


def attached_run(watcher, workloads):
    for workload in workloads:
        wait_until(lambda workload=workload: re.search(r"attached to PID %d .*: [1-9]\d* probes in" % workload.pid, watcher.stderr), "its probes")
    for workload in workloads:
        workload.go()
    return [result for workload in workloads for result in workload.results()]


def check(results, trace, **how):
    """Every call of each of these processes, and of no other one."""
    assert len({result["pid"] for result in results}) == 4
    compare("qaic", results, trace, **how)
    assert {call.pid for call in trace.calls} == {result["pid"] for result in results}


def test_continuous():
    """A target that ends and starts again is picked up; the window has all of them."""
    watcher, results = Named().runs(lambda name: Collector("--process", name, "--window-time", "0"))
    check(results, watcher.save().trace, totals_in="recorded")
    assert watcher.status()["processes"] == 0, watcher.status()
    watcher.stop()


def test_record():
    """A recording goes on when the target has ended, until it is stopped."""
    recorder, results = Named().runs(lambda name: Recorder("--process", name, wait=False))
    check(results, recorder.stop())


def test_stream():
    """The same for reports."""
    stream, results = Named().runs(lambda name: Stream("--process", name, "--report-every", "100ms", wait=False))
    check_totals(stream.stop(), made_by(results))


# Lives of 1 to 29 ms: a process ends before it is attached to, meanwhile, and afterwards.
SHORT_LIVED = """
import subprocess, sys
for _ in range(20):
    for child in [subprocess.Popen([sys.argv[1], "%.3f" % (milliseconds / 1e3)]) for milliseconds in range(1, 31, 2)]:
        child.wait()
"""


def test_end_while_attached():
    """Processes that end while they are attached to are followed no longer, and their end is recorded behind what describes them."""
    named, path = Named(shutil.which("sleep")), os.path.join(scratch(), "short.xpt")
    watcher = Collector("--process", named.name, "--window-time", "0")
    recorder = Recorder("--process", named.name, output=path, wait=False)
    starter = Process([sys.executable, "-c", SHORT_LIVED, named.path])
    assert starter.wait() == 0, starter.stderr
    wait_until(lambda: not watcher.status()["processes"], "all have ended")
    # Since Linux 7.0 a thread is preempted inside BPF programs, which others on that CPU then do not run.
    watcher.stop(lost=0 if SLOW == 1 else 3)
    time.sleep(3)  # a recorder looks for ends that were not reported once a second
    recorder.signal(signal.SIGINT)
    recorder.wait()
    recording = Recording(path)
    assert recording.processes > 20, "only %d were attached to in time" % recording.processes
    assert not recording.running, "%d of %d have no end" % (len(recording.running), recording.processes)


def test_becomes_the_runtime():
    """A shell that waits, and then executes the program: that it has no runtime is reported of it, and then its probes."""
    shell = 'echo "{\\"ready\\": true, \\"pid\\": $$}"; read line; exec "$@"'
    workload = Workload(["sh", "-c", shell, "sh", workload_path("workload"), "nrt", "--wait-for-go", "--calls", "30"])
    recorder = Recorder("-p", workload.pid)
    recorder.wait_line("stderr", "PID %d uses no described runtime yet" % workload.pid)
    workload.go()
    workload.wait_line("stdout", '"ready"', 2)
    wait_until(lambda: re.search(r"attached to PID %d .*: [1-9]\d* probes in" % workload.pid, recorder.stderr), "its probes")
    workload.go()
    compare("nrt", workload.results(), recorder.finish())
    assert recorder.stderr.count("attached to PID %d" % workload.pid) == 2, recorder.stderr
