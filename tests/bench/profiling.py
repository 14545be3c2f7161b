# SPDX-License-Identifier: BSD-2-Clause
"""Profiling handles: what streams cost the target, what many handles cost the collector, how punctual reports are."""

import json
import os
import re
import statistics

from cost import measure_costs
from tools import BUILD, DESCRIPTION, XPUTRACE, EmptyProbe, Loop, Process, Tracer, Xputrace

HANDLES = os.path.join(BUILD, "bench", "handles")
FUNCTION, TITLE = "bench_landing", "emulated instruction"
THREADS = 2
RATE = 100000  # inferences a second of all threads together
COUNTS = (1, 2, 10)
CROWD = 1000
CROWD_RATE = 50000
PUNCTUAL_RATE = 1000
REPORT_SECONDS = 0.5
DELAY_LIMIT = 20  # ms, on an idle machine


class Streamer(Xputrace):
    """xputrace stream, with its reports thrown away."""

    def __init__(self, name, *options):
        self.name = name
        self.options = [str(option) for option in options]

    def start(self, loop):
        self.process = Process(["sh", "-c", "exec \"$@\" >/dev/null", "sh", XPUTRACE, "stream", "-p", str(loop.pid),
                                "-r", DESCRIPTION, "--only", "bench"] + self.options)
        self.process.wait_line("stderr", "attached")

    def stop(self, made):
        self.process.signal(2)
        if self.process.wait():
            raise RuntimeError("xputrace stream failed:\n" + self.process.stderr)
        inferences, lost = map(int, re.search(r"(\d+) inferences, \d+ samples, (\d+) lost",
                                              self.process.stderr).groups())
        return 1 - lost / inferences


def target_cost(results, settings):
    tracers = [Tracer(), EmptyProbe("both", "empty probe at entry and return")]
    tracers += [Streamer("stream, latency, 1 in %d" % every, "--sample-every", every) for every in (1, 4, 16)]
    tracers += [Streamer("stream, latency, summary, 1 in 1", "--summary"),
                Streamer("stream, trace, 1 in 1", "--type", "trace"),
                Streamer("stream, trace, 1 in 16", "--type", "trace", "--sample-every", 16)]
    measured = measure_costs(tracers, settings, (FUNCTION,))
    for tracer in tracers:
        seen = measured.seen[tracer.name]
        results.add("%s: %s" % (TITLE, tracer.name), measured.costs[tracer.name, FUNCTION], "ns",
                    note=measured.missing[tracer.name] or ("%.0f %% seen" % statistics.median(seen) if seen else ""))


class Handles(Process):
    """build/bench/handles on a process."""

    def __init__(self, pid, *options):
        super().__init__([HANDLES, str(pid), DESCRIPTION] + [str(option) for option in options])
        self.wait_line("stdout", '"ready"')

    def finish(self):
        """Closes its input; its figures."""
        if self.wait():
            raise RuntimeError("handles failed:\n" + self.stderr)
        return json.loads(self.lines["stdout"][-1])

    def wait(self):
        self.child.stdin.close()
        return super().wait()


def run_handles(load, *options):
    """Handles on a loop while load(loop) goes on: figures, and what the loop says it has done."""
    loop = Loop()
    try:
        handles = Handles(loop.pid, *options)
        made = load(loop)
        return handles.finish(), made
    finally:
        loop.close()


def many_handles(results, settings):
    seconds = settings.load_seconds
    costs = {count: [] for count in COUNTS}
    difference = []
    lost = {count: 0 for count in COUNTS}
    for _ in range(min(3, settings.repetitions)):
        for count in COUNTS:
            figures, made = run_handles(lambda loop: loop.load(FUNCTION, THREADS, seconds, RATE), "--handles", count)
            costs[count].append(figures["cpu_ns"] / made["calls"])
            lost[count] += figures["lost"]
            difference.append(abs(count * made["calls"] - figures["samples"] - figures["lost"]))
    for count in COUNTS:
        results.add("collector's CPU time an inference, %d handle%s" % (count, "s" if count > 1 else ""), costs[count],
                    "ns", note="%s inferences/s, %d lost" % ("{:,}".format(RATE), lost[count]))
    results.add("10 handles / 1 handle", [ten / one for ten, one in zip(costs[10], costs[1])], "times")
    results.add("|made x handles - samples - lost|", difference, "samples", 0)


def milliseconds(delays):
    return [delay / 1e6 for delay in delays]


def crowd(results, settings):
    seconds = max(2, settings.load_seconds)
    figures, made = run_handles(lambda loop: loop.ask("crowd", FUNCTION, CROWD, int(seconds * 1000), CROWD_RATE,
                                                      timeout=seconds))
    title = "%s programs at %s inferences/s" % ("{:,}".format(CROWD), "{:,}".format(CROWD_RATE))
    results.add(title + ": in one report", [figures["programs"]], "programs")
    results.add(title + ": collector's CPU", [figures["cpu_ns"] / figures["ns"] * 100], "% of one")
    results.add(title + ": boundary to callback", milliseconds(figures["delays_ns"]), "ms")
    results.add(title + ": |made - reported|", [abs(made["calls"] - figures["inferences"])], "inferences", 0)
    results.add(title + ": lost", [figures["lost"]], "inferences", 0)


def punctuality(results, settings):
    reports = 2 if settings.repetitions == 1 else 20
    seconds = (reports + 1) * REPORT_SECONDS
    figures, _ = run_handles(lambda loop: loop.load(FUNCTION, 1, seconds, PUNCTUAL_RATE), "--report-every",
                             int(REPORT_SECONDS * 1000))
    delays = milliseconds(figures["delays_ns"])[:reports]
    results.add("boundary to callback, %d reports of 500 ms" % reports, delays, "ms")
    results.add("the worst of them", [max(delays)], "ms", DELAY_LIMIT)
    half = len(delays) // 2
    results.add("median of the last half less that of the first",
                [statistics.median(delays[half:]) - statistics.median(delays[:half])], "ms")


def profile_section(results, settings, folder):
    results.section("streams: cost of an inference to the target (CPU time of the calling thread, which is pinned)")
    target_cost(results, settings)
    results.section("profiling handles: cost to the collector")
    many_handles(results, settings)
    crowd(results, settings)
    results.section("profiling handles: punctuality")
    punctuality(results, settings)
