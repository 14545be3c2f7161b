# SPDX-License-Identifier: BSD-2-Clause
"""xputrace continuous, what it saves, and what a workload has logged of its executions."""

import bisect
import collections
import functools
import json
import os
import time
import uuid

from harness import RUNS, XPUTRACE, Process, Trace, need, run, scratch, wait_until
from reports import wall_clock

MS = 1000 * 1000
SECOND = 1000 * MS
CLOCKS = 20000  # ns: the wall clock, which a file's begin and end are reported in, is adjusted all the time


def collector(*words):
    return run([need(XPUTRACE, "collector")] + [str(word) for word in words])


class Saved:
    """A file, and what was reported of it; times in ns of CLOCK_MONOTONIC."""

    def __init__(self, path, reported=None):
        self.path = path
        if reported:
            self.bytes, self.records, self.inferences, self.lost, self.duration = (
                reported[name] for name in ("bytes", "records", "inferences", "lost", "duration_ns"))
            apart = wall_clock()
            self.begin, self.end = (int(reported[name]) - apart for name in ("begin_ns", "end_ns"))

    @functools.cached_property
    def trace(self):
        output = os.path.join(scratch(), "saved.json")
        result = collector("report", self.path, "-o", output)
        assert result.status == 0, result.stderr
        return Trace(output)


class Collector(Process):
    """xputrace continuous start under a name of its own; returns when it records."""

    def __init__(self, *arguments, wait=True, **options):
        self.name = "e2e-" + uuid.uuid4().hex[:12]
        self.folder = os.path.join(scratch(), "saved")
        words = [need(XPUTRACE, "collector"), "continuous", "start", "--instance", self.name, "-o", self.folder,
                 "--budget", "none"]  # all that the workload does is to be recorded
        super().__init__(words + [str(word) for word in arguments], **options)
        if wait:
            self.wait_line("stderr", "recording into memory")

    def ask(self, word, *options, status=0):
        """The other words of the command; the finished process."""
        result = collector("continuous", word, "--instance", self.name, *options)
        assert result.status == status, "%s ended with %d instead of %d: %s" % (
            word, result.status, status, result.stderr)
        return result

    def save(self, *options):
        reported = json.loads(self.ask("save", "--format", "json", *options).stdout)
        saved = Saved(reported["path"], reported)
        assert os.path.dirname(saved.path) == self.folder and os.path.getsize(saved.path) == saved.bytes, reported
        return saved

    def status(self):
        return json.loads(self.ask("status", "--format", "json").stdout)

    def wait_status(self, reached, what):
        """The first status of which that is true."""
        seen = []
        wait_until(lambda: seen.append(self.status()) or reached(seen[-1]), what)
        return seen[-1]

    def wait_inferences(self, count):
        """The status, when the collector has seen so many."""
        return self.wait_status(lambda now: now["window_inferences"] + now["evicted_inferences"] >= count,
                                "%d inferences are seen" % count)

    def files(self):
        """What has been saved, in the order in which it was."""
        return [Saved(os.path.join(self.folder, name)) for name in sorted(os.listdir(self.folder))]

    def stop(self, lost=0):
        """No more was lost, and it ends in order."""
        status = self.status()
        assert status["lost"] <= lost and status["failed_saves"] == 0, status
        self.ask("stop")
        assert self.wait() == 0, self.stderr
        return status


# ---- what a workload has logged, by --log-times ----

class Execution(collections.namedtuple("Execution", "begin end pid tid number")):
    """One of a workload: what it called for it lies in between, ns; number: on its thread, from 0."""


def executions(result):
    """All of a process, in the order of their ends."""
    by_thread = [[]]
    for span in zip(result["times"], result["ends"]):
        if by_thread[-1] and span[0] < by_thread[-1][-1][0]:  # the next thread's, which has begun at the same time
            by_thread.append([])
        by_thread[-1].append(span)
    assert len(by_thread) == len(result["threads"]), "threads have not run at the same time"
    found = [Execution(begin, end, result["pid"], tid, number)
             for tid, spans in zip(result["threads"], by_thread) for number, (begin, end) in enumerate(spans)]
    return sorted(found, key=lambda one: one.end)


def clock_now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def calls_by_execution(trace, log):
    """Those of the log that have calls in the trace, with them, in the order of their begins."""
    threads = collections.defaultdict(list)
    for one in sorted(log, key=lambda one: one.begin):
        threads[one.pid, one.tid].append(one)
    begins = {thread: [one.begin for one in known] for thread, known in threads.items()}
    found = collections.defaultdict(list)
    for call in sorted(trace.calls, key=lambda call: call.start):
        thread = call.pid, call.tid
        index = bisect.bisect_right(begins.get(thread, ()), nanoseconds(call.start)) - 1
        if index >= 0 and nanoseconds(call.end) <= threads[thread][index].end:
            found[threads[thread][index]].append(call)
    return found


def executions_in(trace, log):
    """Those of the log that have a run in the trace; each run is of one of them."""
    runs = {one: [call for call in calls if call.role in RUNS and not call.layer]
            for one, calls in calls_by_execution(trace, log).items()}
    found = {one for one, calls in runs.items() if calls}
    assert all(len(runs[one]) == 1 for one in found), "an execution is there twice"
    assert len(found) == len(trace.runs()), "%d runs are of no execution" % (len(trace.runs()) - len(found))
    return found


def check_suffix(saved, log):
    """In the file are exactly those of the log that began in its time; those that it has."""
    found = executions_in(saved.trace, log)
    # an execution begins a little before its run: one of each thread may lie around the begin
    for one in log:
        if one.begin >= saved.begin + CLOCKS and one.end <= saved.end - CLOCKS:
            assert one in found, "%s began within [%d, %d] and is not in the file" % (one, saved.begin, saved.end)
        elif one.end < saved.begin - CLOCKS:
            assert one not in found, "%s ended before %d and is in the file" % (one, saved.begin)
    return sorted(found, key=lambda one: one.end)
