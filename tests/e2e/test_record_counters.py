# SPDX-License-Identifier: BSD-2-Clause
"""xputrace record --counters: tracks of counters beside the calls, against what a program was told to do and when."""

import json
import os
import statistics
import sys

from harness import XPUTRACE, cases, need, run, scratch
from test_counters import CALL, NEVER, expect

COUNTERS_PID = 1 << 30
# Waits, makes as many system calls as it is told, waits; says when it made them.
WORKER = r"""
import json, os, sys, time
time.sleep(0.1)
begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
for _ in range(int(sys.argv[1])):
    os.getppid()
ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
time.sleep(0.1)
print(json.dumps([begun, ended]))
"""


def record(*arguments, output=None, calls=20000, **options):
    """The finished command; its trace; when the calls were made, in us."""
    path = output or os.path.join(scratch(), "trace.json")
    result = run([need(XPUTRACE, "collector"), "record", "-q", "-o", path] + list(arguments) +
                 ["--", sys.executable, "-c", WORKER, str(calls)], **options)
    return result, path


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def same(value, wanted, share):
    """The value is the wanted one, but for such a share of it."""
    return abs(value - wanted) <= share * abs(wanted)


def points(trace, name):
    """(time in us, value) of a counter's track."""
    return [(event["ts"], *event["args"].values()) for event in trace["traceEvents"]
            if event["ph"] == "C" and event["pid"] == COUNTERS_PID and event["name"] == name]


def totals(trace, name):
    return next(counter for counter in trace["metadata"]["counters"] if counter["name"] == name)


@cases("1ms", "10ms", "50ms")
def test_rates_and_clock(every):
    """Rates add up to what was counted, which is what the program did, at the time at which it did it."""
    result, path = record("--counters", CALL + ",page-faults", "--counters-every", every)
    assert result.status == 0, result.stderr
    trace = load(path)
    begun, ended = (time / 1000 for time in json.loads(result.stdout))
    step = int(every[:-2]) * 1000
    track, counter = points(trace, CALL), totals(trace, CALL)
    times = [time for time, _ in track]
    assert times == sorted(times) and len(track) == counter["values"]
    if len(times) > 3:
        assert same(statistics.median(b - a for a, b in zip(times, times[1:])), step, 0.2), times
    last = trace["metadata"]["tracing"]["duration_ns"] / 1000
    summed = sum(rate * (after - time) / 1e6 for (time, rate), after in zip(track, times[1:]))
    # The last value holds until the last reading, whose time is not in the track.
    assert same(summed + track[-1][1] * step / 1e6, counter["total"], 0.01), (summed, counter, last)
    assert same(counter["total"], 20000, 0.01), counter
    within = sum(rate * (after - time) / 1e6 for (time, rate), after in zip(track, times[1:])
                 if after >= begun - step and time <= ended + step)
    assert same(within, 20000, 0.01), (within, begun, ended, track)
    assert counter["min"] <= counter["mean"] <= counter["max"]
    assert counter["kind"] == "sum" and counter["source"] == "tracepoint"


def test_default_interval():
    """10 ms when nothing else is said; the tracks are in a process of their own, which is named once."""
    result, path = record("--counters", "context-switches,msr/tsc/")
    assert result.status == 0, result.stderr
    trace = load(path)
    times = [time for time, _ in points(trace, "msr/tsc/")]
    assert same(statistics.median(b - a for a, b in zip(times, times[1:])), 10000, 0.1), times
    named = [event["args"] for event in trace["traceEvents"] if event["pid"] == COUNTERS_PID and
             event["name"] == "process_name"]
    assert named == [{"name": "counters"}]
    # A clock: its rate is the same at all times.
    rates = [rate for _, rate in points(trace, "msr/tsc/")]
    assert same(max(rates), statistics.median(rates), 0.2), rates


def test_recording_has_the_same():
    """A recording file gives the same tracks and totals as a trace that was written at once."""
    folder = scratch()
    raw, again = os.path.join(folder, "a.xpt"), os.path.join(folder, "b.json")
    result, _ = record("--counters", CALL, output=raw)
    assert result.status == 0, result.stderr
    report = run([XPUTRACE, "report", raw, "-o", again])
    assert report.status == 0, report.stderr
    assert "COUNTER" in report.stdout and CALL in report.stdout
    trace = load(again)
    assert same(totals(trace, CALL)["total"], 20000, 0.01)
    assert len(points(trace, CALL)) == totals(trace, CALL)["values"]


def test_none_asked_for():
    """Without --counters nothing of them is in the trace."""
    result, path = record()
    assert result.status == 0, result.stderr
    trace = load(path)
    assert trace["metadata"]["counters"] == []
    assert not [event for event in trace["traceEvents"] if event["pid"] == COUNTERS_PID]


def test_bad_options():
    """What cannot be meant is refused before the command is started."""
    for arguments, status, words in (
            (["--counters", "pagefaults"], 1, ["pagefaults", "page-faults"]),
            (["--counters", NEVER], 1, [NEVER]),
            (["--counters", ""], 2, ["names of counters"]),
            (["--counters", "page-faults,,cpu-clock"], 2, ["names of counters"]),
            (["--counters", "msr/tsc"], 2, ["pmu/event/"]),
            (["--counters", "page-faults", "--counters-every", "10us"], 2, ["100us"]),
            (["--counters", "page-faults", "--counters-every", "x"], 2, ["100us"]),
            (["--counters-every", "10ms"], 2, ["--counters"]),
            (["--counters", ",".join(["page-faults"] * 257)], 2, ["too many"])):
        result, path = record(*arguments)
        expect(result, status, *words)
        assert not result.stdout, "the command ran: " + result.stdout
