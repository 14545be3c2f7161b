# SPDX-License-Identifier: BSD-2-Clause
"""Whether a budget is kept: what a server's requests take untraced and under a budget, in turn, by its own CPU clock."""

import os
import statistics
import time

from tools import DESCRIPTION, Loop, Recorder, process_cpu

BUDGET = 2.0  # percent
LIMIT = 2.5  # percent, after SETTLED seconds
FIRST_LIMIT = 3 * BUDGET  # percent, in the first second
ESTIMATE = (0.75, 1.25)  # of what was measured
SETTLED = 5  # s
IDLE_LIMIT = 0.3  # percent of a core

# Name, command for the loop (%d: milliseconds), seconds. The work of 15,000 steps takes about 15 us.
SCENARIOS = (
    ("15 us calls, full load", "serve bench_plain 1 %d 0 15000 0 0"),
    ("15 us calls, 30 % load", "serve bench_plain 1 %d 20000 15000 0 0"),
    ("60 us calls, full load", "serve bench_plain 1 %d 0 60000 0 0"),
    ("60 us calls, 30 % load", "serve bench_plain 1 %d 5000 60000 0 0"),
    ("2 ms calls, full load", "serve bench_plain 1 %d 0 2000000 0 0"),
    ("single-stepped site, 100,000 calls/s", "serve bench_stepped 1 %d 0 9000 0 0"),
    ("bursts, 1 s on, 5 s off", "serve bench_plain 1 %d 0 60000 1000 5000"),
    ("1,000 programs", "serve bench_plain 1000 %d 0 60000 0 0"),
    ("a process that forks workers", "fork bench_plain 2 %d 60000"),
)


def per_request(seconds):
    """CPU ns a request, of seconds in which there were any."""
    requests = sum(second["requests"] for second in seconds)
    return sum(second["cpu_ns"] for second in seconds) / requests if requests else None


class Run:
    """One run of a scenario, traced or not."""

    def __init__(self, loop, command, milliseconds, folder, traced):
        output = os.path.join(folder, "budget.json")
        recorder = Recorder(loop.pid, output, "-r", DESCRIPTION, "--only", "bench", "--budget", str(BUDGET)) \
            if traced else None
        collector = 0
        if recorder:
            time.sleep(1)
            begun = process_cpu(recorder.pid)
        started = time.monotonic()
        self.seconds = loop.serve(command % milliseconds)
        self.duration = time.monotonic() - started
        if recorder:
            collector = process_cpu(recorder.pid) - begun
            self.closing = recorder.finish()["budget"]
            os.unlink(output)
        self.busy = [second for second in self.seconds if second["requests"] > 10]
        self.collector = collector / self.duration  # cores
        self.cores = sum(second["cpu_ns"] for second in self.seconds) / 1e9 / self.duration

    def first(self):
        return per_request(self.busy[:1])

    def settled(self):
        return per_request(self.busy[SETTLED:] or self.busy[-1:])

    def p99(self):
        return statistics.median(second["p99_ns"] for second in self.busy[SETTLED:] or self.busy[-1:])


def budget_section(results, settings, folder):
    results.section("a budget of %g %%: CPU time that tracing adds to a request and takes beside it, by the server's clock"
                    % BUDGET)
    milliseconds = settings.budget_seconds * 1000
    for name, command in SCENARIOS:
        loop = Loop()
        added, first, latency, estimated = [], [], [], []
        try:
            for _ in range(settings.repetitions):
                before = Run(loop, command, milliseconds, folder, False)
                traced = Run(loop, command, milliseconds, folder, True)
                after = Run(loop, command, milliseconds, folder, False)
                plain = (before.settled() + after.settled()) / 2
                beside = traced.collector / traced.cores
                added.append(100 * (traced.settled() / plain - 1 + beside))
                first.append(100 * (traced.first() / ((before.first() + after.first()) / 2) - 1 + beside))
                if traced.p99():
                    latency.append(100 * (traced.p99() / ((before.p99() + after.p99()) / 2) - 1))
                closing = traced.closing
                estimated.append(100 * (closing["added_ns"] + closing["collector_ns"]) /
                                 (closing["targets_ns"] - closing["added_ns"]))
        finally:
            loop.close()
        results.add("%s: added after %d s" % (name, SETTLED), added, "%", LIMIT)
        results.add("%s: added in the first second" % name, first, "%", FIRST_LIMIT)
        results.add("%s: estimate, whole run" % name, estimated, "%")
        if latency:
            results.add("%s: 99th percentile, longer by" % name, latency, "%")
    idle_rows(results, settings, folder)


def idle_rows(results, settings, folder):
    loop = Loop()
    shares = []
    try:
        for _ in range(settings.repetitions):
            recorder = Recorder(loop.pid, os.path.join(folder, "idle.xpt"), "-r", DESCRIPTION, "--budget", str(BUDGET))
            time.sleep(1)
            begun, started = process_cpu(recorder.pid), time.monotonic()
            time.sleep(settings.budget_seconds)
            shares.append(100 * (process_cpu(recorder.pid) - begun) / (time.monotonic() - started))
            recorder.finish()
    finally:
        loop.close()
    results.add("the collector alone, nothing runs", shares, "% of a core", IDLE_LIMIT)
