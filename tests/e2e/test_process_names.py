# SPDX-License-Identifier: BSD-2-Clause
"""--process NAME: processes that run, and those that start later under the name, in every command that watches."""

import os
import re
import uuid

from saved_files import Collector
from harness import Recorder, Workload, compare, scratch, standin, wait_until, workload_path
from reports import Stream, check_totals, made_by

PAIRED = "expects probes in time"


class Named:
    """A stand-in under a name of its own, which can be started several times."""

    def __init__(self):
        self.name = "e2e-" + uuid.uuid4().hex[:8]
        self.path = os.path.join(scratch(), self.name)
        os.symlink(workload_path("workload"), self.path)

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
