# SPDX-License-Identifier: BSD-2-Clause
"""xputrace record --counters: tracks of counters beside the calls, against what a program was asked to do and when."""

import json
import os
import statistics
import sys

from harness import SLOW, XPUTRACE, Process, Skip, cases, need, results_in, run, scratch, workload_path
from test_counters import NEVER, expect

ALONE = "measures time"

COUNTERS_PID = 1 << 30
CALL = "syscalls:sys_enter_getpriority"  # that nobody else makes by the thousand
# Waits, makes as many system calls as it is asked, waits; says when it made them.
WORKER = r"""
import json, os, sys, time
time.sleep(0.1)
begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
for _ in range(int(sys.argv[1])):
    os.getpriority(os.PRIO_PROCESS, 0)
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


def steps(times):
    """Between each and the next one."""
    return [after - before for before, after in zip(times, times[1:])]


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
    if SLOW == 1:  # an emulated machine does not keep up
        assert same(statistics.median(steps(times)), step, 0.2), statistics.quantiles(steps(times), n=10)
    summed = sum(rate * (after - time) / 1e6 for (time, rate), after in zip(track, times[1:]))
    # The last value holds until the last reading, whose time is not in the track; the program has ended by then.
    assert same(summed, counter["total"], 0.01), (summed, counter)
    assert same(counter["total"], 20000, 0.01), counter
    # There the reader may also wait for a while between looking at the clock and at the counter.
    slack = 0 if SLOW == 1 else 50000
    within = sum(rate * (after - time) / 1e6 for (time, rate), after in zip(track, times[1:])
                 if after >= begun - slack and time <= ended + slack)
    assert same(within, 20000, 0.01), (within, begun, ended, [point for point in track if point[1] > 1000])
    assert counter["min"] <= counter["mean"] <= counter["max"]
    assert counter["kind"] == "sum" and counter["source"] == "tracepoint"


def need_msr():
    if not os.path.isdir("/sys/bus/event_source/devices/msr"):
        raise Skip("no msr PMU")


def test_default_interval():
    """10 ms when nothing else is said; the tracks are in a process of their own, which is named once."""
    need_msr()
    result, path = record("--counters", "context-switches,msr/tsc/")
    assert result.status == 0, result.stderr
    trace = load(path)
    times = [time for time, _ in points(trace, "msr/tsc/")]
    if SLOW == 1:
        assert same(statistics.median(steps(times)), 10000, 0.1), statistics.quantiles(steps(times), n=10)
    named = [event["args"] for event in trace["traceEvents"] if event["pid"] == COUNTERS_PID and
             event["name"] == "process_name"]
    assert named == [{"name": "counters"}]
    # A clock: its rate is the same at all times, but for a reading that has waited for its turn.
    rates = [rate for _, rate in points(trace, "msr/tsc/")]
    assert same(statistics.median(rates), totals(trace, "msr/tsc/")["mean"], 0.01 * SLOW), statistics.quantiles(rates, n=10)


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
            (["--counters", "pagefaults"], 125, ["pagefaults", "page-faults"]),
            (["--counters", NEVER], 125, [NEVER]),
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


# ---- around inferences ----

def per_inference(link, runtime, *options):
    """What a stand-in printed, its calls and inferences with counts, with the clock of the machine and what its threads do."""
    path = os.path.join(scratch(), "trace.json")
    result = run([XPUTRACE, "record", "-q", "-o", path, "--link", link, "--counters",
                  "msr/tsc/,page-faults,syscalls:sys_enter_getpriority", "--counters-per-inference", "--",
                  workload_path("linked-" + runtime), runtime] + list(options))
    if "do not work here" in result.stderr or "lacks" in result.stderr:
        raise Skip("no %s links" % link)
    assert result.status == 0, result.stderr
    trace = load(path)
    return results_in(result.stdout), [event for event in trace["traceEvents"] if event.get("args", {}).get("counters")]


def tsc_rate():
    """Counts of the time stamp counter in a microsecond, to 1 %: over the time that it was counted for."""
    need_msr()
    result = run([XPUTRACE, "counters", "-e", "msr/tsc/", "--cpu", "0", "-d", "200ms"])
    assert result.status == 0, result.stderr
    row = next(line.split() for line in result.stdout.splitlines() if line.startswith("msr/tsc/"))
    return float(row[2]) / 1e6


@cases("session", "multi", "perf")
def test_clock_around_executions(link):
    """A clock that each CPU has counts as long as the inference took, and a little of the reading; whatever kind of link."""
    rate = tsc_rate()
    results, calls = per_inference(link, "nrt", "--calls", "200", "--duration-us", "300")
    executions = [call for call in calls if call["ph"] == "X" and call["args"]["role"] == "execute"]
    assert len(executions) == sum(entry["count"] for result in results for library in result["libraries"]
                                  for entry in library["calls"] if entry["function"] == "nrt_execute")
    known = [call for call in executions if call["args"]["counters"]["msr/tsc/"] is not None]
    # Those that ended on another CPU are not known.
    assert len(known) > 0.5 * len(executions), len(known)
    over = [call["args"]["counters"]["msr/tsc/"] / rate - call["dur"] for call in known]
    if SLOW == 1:  # an emulated processor's counter is not as even
        assert all(more > -2 - 0.01 * call["dur"] for more, call in zip(over, known)), (min(over), rate)
    assert statistics.median(over) < 20 * SLOW, statistics.quantiles(over, n=10)
    for call in executions:
        assert call["args"]["counters"]["syscalls:sys_enter_getpriority"] in (0, None)


def test_asynchronous_inferences():
    """From the begin of the enqueue to the end of the wait."""
    rate = tsc_rate()
    _, calls = per_inference("auto", "qaic", "--calls", "200", "--duration-us", "300")
    spans = [call for call in calls if call["ph"] == "b"]
    assert len(spans) == 200 and not [call for call in calls if call["ph"] == "X"]
    known = [span["args"]["counters"]["msr/tsc/"] / rate for span in spans
             if span["args"]["counters"]["msr/tsc/"] is not None]
    assert len(known) > 50, len(known)
    assert min(known) > 250, min(known)


@cases("profile qaic", "stream qaic", "profile flat", "stream flat")
def test_latency_columns(words):
    """The counters are the last columns of the latency report, by their names."""
    need_msr()
    command, layout = words.split()
    path = os.path.join(scratch(), "latency.csv")
    choice = ["--program", "neuron-0.0", "--samples", "50"] if command == "profile" else ["--append"]
    result = run([need(XPUTRACE, "collector"), command] + choice +
                 ["--counters", "page-faults,msr/tsc/", "--layout", layout, "-o", path, "--", workload_path("linked-nrt"), "nrt",
                  "--calls", "200", "--programs", "1"])
    assert result.status == 0, result.stderr
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split(",") for line in file]
    heading = next(line for line in lines if line[0] == ("Sample" if layout == "qaic" else "host"))
    assert heading[-2:] == ["page-faults", "msr/tsc/(of CPU)"], heading
    rows = [line for line in lines if line[0].isdigit()] if layout == "qaic" else lines[1:]
    assert len(rows) >= 50 and all(len(row) == len(heading) for row in rows)
    known = [row for row in rows if row[-1] not in ("N/A", "")]
    assert len(known) > 0.5 * len(rows) and all(float(row[-1]) > 0 for row in known)
    assert all(float(row[-2]) >= 0 for row in rows), "what a thread does is known wherever it runs"


DESCRIPTION = {"schema": 1, "runtime": "search", "title": "Search", "identify": ["bsearch"],
               "calls": [{"symbol": "bsearch", "role": "execute", "fetch": {"program": "arg0"}}]}
# Each call of bsearch() calls back once, and what is done there is what the call did: it runs, meets pages, sleeps, and changes the CPU.
SEARCHER = r"""
import ctypes, json, mmap, os, resource, time
libc, cpus = ctypes.CDLL(None), sorted(os.sched_getaffinity(0))
def usage():
    now = resource.getrusage(resource.RUSAGE_THREAD)
    return [(now.ru_utime + now.ru_stime) * 1e9, now.ru_minflt + now.ru_majflt, now.ru_nvcsw + now.ru_nivcsw, time.thread_time_ns()]
def work(*_):
    begun = usage()
    for turn in range(20):
        os.sched_setaffinity(0, {cpus[turn % len(cpus)]})
        with mmap.mmap(-1, 1 << 20) as room:
            room.madvise(mmap.MADV_NOHUGEPAGE)
            for page in range(0, 1 << 20, 4096):
                room[page] = 1
        until = time.thread_time_ns() + 2000000
        while time.thread_time_ns() < until:
            pass
        time.sleep(0.0005)
    made.append([after - before for before, after in zip(begun, usage())])
    return 0
made, one = [], ctypes.create_string_buffer(8)
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(work)
first = usage()
for _ in range(8):
    libc.bsearch(one, one, 1, 1, compare)
print(json.dumps({"calls": made, "all": [after - before for before, after in zip(first, usage())]}))
"""
# A switch to a thread counts for it here, and only in part in its own clock: 12 to 20 us less on a virtual machine.
SWITCH = 30000 * SLOW  # ns
NOISE = "import mmap\nwhile True:\n with mmap.mmap(-1, 1 << 20) as room:\n  for page in range(0, 1 << 20, 4096): room[page] = 1\n"


@cases("auto", "multi", "perf")
def test_what_the_thread_did(link):
    """The counts of a thread are what getrusage() has of it, whatever others do on its CPUs, and when it changes them."""
    path, description = (os.path.join(scratch(), name) for name in ("trace.json", "search.json"))
    with open(description, "w", encoding="utf-8") as file:
        json.dump(DESCRIPTION, file)
    noise = [Process([sys.executable, "-c", NOISE]) for _ in os.sched_getaffinity(0)]
    result = run([need(XPUTRACE, "collector"), "record", "-q", "-o", path, "--link", link, "--runtime", description, "--only", "search",
                  "--drivers", "none", "--counters", "task-clock,page-faults,context-switches,cpu-clock",
                  "--counters-per-inference", "--", sys.executable, "-c", SEARCHER])
    for one in noise:
        one.kill()
    if "do not work here" in result.stderr or "lacks" in result.stderr:
        raise Skip("no %s links" % link)
    assert result.status == 0, result.stderr
    reported, trace = json.loads(result.stdout), load(path)
    calls = [event["args"]["counters"] for event in trace["traceEvents"] if event.get("args", {}).get("counters")]
    assert len(calls) == len(reported["calls"]) == 8, len(calls)
    for call, (_, faults, switches, nanoseconds) in zip(calls, reported["calls"]):
        assert abs(call["task-clock"] - nanoseconds) <= 0.01 * nanoseconds + SWITCH * switches, (call, nanoseconds)
        assert same(call["page-faults"], faults, 0.01) and faults > 5000, (call, faults)
        assert switches <= call["context-switches"] and switches > 19, (call, switches)
    nanoseconds, faults, switches, _ = reported["all"]
    assert abs(sum(call["task-clock"] for call in calls) - nanoseconds) <= 0.01 * nanoseconds + SWITCH * switches, (calls, reported)
    assert same(sum(call["page-faults"] for call in calls), faults, 0.01), (calls, reported)
    assert sum(call["context-switches"] for call in calls) <= switches, (calls, reported)
    kinds = {counter["name"]: counter["per_inference"] for counter in trace["metadata"]["counters"]}
    assert kinds == {"task-clock": "thread", "page-faults": "thread", "context-switches": "thread", "cpu-clock": "CPU"}, kinds


def test_bad_around_inferences():
    """What cannot be read there is refused before the command is started."""
    five = "page-faults,minor-faults,major-faults,cpu-clock,task-clock"
    for arguments, words in (
            (["record", "--format", "none", "--counters", five, "--counters-per-inference"], ["task-clock", "at most 4"]),
            (["profile", "-P", "x", "--counters", five], ["task-clock", "at most 4"]),
            (["stream", "--counters", NEVER], [NEVER])):
        result = run([XPUTRACE] + arguments + ["--", sys.executable, "-c", "print('ran')"])
        expect(result, 2 if "at most 4" in words else 1, *words)
        assert "ran" not in result.stdout
    result, _ = record("--counters-per-inference")
    expect(result, 2, "--counters")
