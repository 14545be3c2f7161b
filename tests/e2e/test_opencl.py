# SPDX-License-Identifier: BSD-2-Clause
"""OpenCL on PoCL: every kernel that is enqueued, with its name, counted exactly."""

import collections
import csv
import json
import os

from harness import (ROOT, WORKLOADS, XPUTRACE, Recorder, Skip, Workload, alone, compare_calls, compare_programs,
                     record_command, results_in, run, scratch)

LONG = ("--wait-limit", "30s")  # for probes, on a machine with other work
REQUIRED = {"clEnqueueNDRangeKernel", "clEnqueueReadBuffer", "clFinish"}


def program():
    path = os.path.join(WORKLOADS, "opencl")
    if not os.path.exists(path):
        raise Skip("the OpenCL workload could not be built here")
    if run([path, "1"]).status != 0:
        raise Skip("there is no OpenCL device (PoCL) here")
    return path


def check(results, trace, names):
    trace.check()
    compare_calls(results, trace, REQUIRED)
    compare_programs(results, trace, names)
    assert not [call for call in trace.of("clEnqueueNDRangeKernel") if call.failed]


def test_from_the_start():
    """record -- CMD: kernels by name, 500 of each, blocking reads, waits for events."""
    results, trace, _ = record_command([program(), "500"])
    check(results, trace, True)
    counts = collections.Counter(call.program for call in trace.of("clEnqueueNDRangeKernel"))
    assert counts == {"vector_add": 500, "vector_scale": 500}, counts


def test_late_attach():
    """Attached after the kernels were made: their names are in the objects that the handles point to."""
    workload = Workload([program(), "--wait-for-go", "20000"])  # long enough that the objects can be read
    recorder = Recorder("-p", workload.pid)
    workload.go()
    results = workload.results()
    check(results, recorder.finish(), True)


def without_pocl():
    """Options for OpenCL as another implementation has it, in which nothing says when a command has ended."""
    path = os.path.join(scratch(), "opencl.json")
    with open(os.path.join(ROOT, "user", "runtimes", "opencl.json"), encoding="utf-8") as file:
        description = json.load(file)
    description["calls"] = [call for call in description["calls"] if not call.get("symbol", "").startswith("pocl_")]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(description, file)
    return ["--runtime", path]


def ends_of(trace):
    """When each launch began and ended in the trace, in the order in which they began; ns."""
    ends = {event["id"]: event["ts"] for event in trace.events
            if event["ph"] == "e" and event.get("cat", "").startswith("inference,")}
    spans = [(event["ts"], ends[event["id"]]) for event in trace.inferences]
    return [(round(start * 1000), round(end * 1000)) for start, end in sorted(spans)]


def test_ends():
    """Every launch ends when its wait returns, or its callback is called; never before the device has ended it."""
    results, trace, recorder = record_command([program(), "--ends"], *LONG, *without_pocl())
    launches = results[0]["launches"]
    ends = ends_of(trace)
    assert not trace.losses(), trace.losses()
    assert len(ends) == len(launches), "%d of %d launches have an end" % (len(ends), len(launches))
    for number, (launch, (start, end)) in enumerate(zip(launches, ends)):
        device = launch["queued"] + launch["ran"]
        what = "launch %d (%s)" % (number, launch["way"])
        assert launch["start"] <= start, what + " begins before its call"
        assert end <= launch["end"], "%s ends %d ns behind its wait" % (what, end - launch["end"])
        assert end - start >= device - 2000, "%s took %d ns on the device, %d in the trace" % (what, device, end - start)
    own = next(entry for entry in trace.programs() if entry["name"] == "spin")
    assert own["latency_ns"]["count"] == len(launches) and "unended" not in own, own
    assert own["latency_ns"]["max"] == max(end - start for start, end in ends)
    assert own["call_ns"]["count"] == len(launches)
    assert own["call_ns"]["max"] < own["latency_ns"]["max"]


def test_list_too_long():
    """The events of a list that is longer than what is read are counted, and the others end."""
    results, trace, recorder = record_command([program(), "--long-list", "1100"], *LONG, *without_pocl())
    assert len(results[0]["launches"]) == 1100
    assert trace.losses() == {"keys": 1100 - 1024}, trace.losses()
    own = next(entry for entry in trace.programs() if entry["name"] == "spin")
    assert own["latency_ns"]["count"] == 1024 and own["unended"] == 1100 - 1024, own


@alone("measures time, by a clock that is read later")
def test_pocl_ends():
    """PoCL says when each has ended: as clGetEventProfilingInfo() has it, within 5 % or 50 us, however many one wait ends."""
    results, trace, recorder = record_command([program(), "--ends"], *LONG)
    launches = results[0]["launches"]
    ends = ends_of(trace)
    assert not trace.losses(), trace.losses()
    assert len(ends) == len(launches), "%d of %d launches have an end" % (len(ends), len(launches))
    late, made = collections.Counter(), collections.Counter(launch["way"] for launch in launches)
    for launch, (start, end) in zip(launches, ends):
        tolerance = max(50000, launch["ran"] * 0.05)
        assert launch["start"] <= start and end <= min(launch["end"], launch["ended"] + tolerance), launch
        late[launch["way"]] += end < launch["ended"] - tolerance
    # PoCL reads its clock some us later: the thread, or the machine, may lose its CPU in between.
    assert sum(late.values()) <= len(launches) // 20 and all(late[way] <= made[way] * 0.4 for way in made), (late, made)


def test_hostile_callbacks():
    """However many callbacks a process hands over, it gets a bounded number of probes, and the others are counted."""
    many = 100000
    results, trace, recorder = record_command([program(), "--callbacks", str(many)], *LONG)
    assert results[0]["refused"] == many
    losses = trace.losses()
    assert list(losses) == ["callbacks"] and many - 256 <= losses["callbacks"] <= many, losses


def test_profile_ends():
    """So has a profile: no row takes longer than from its call to the return of what waited for it, or its callback."""
    output = os.path.join(scratch(), "spin.csv")
    result = run([XPUTRACE, "profile", "-P", "spin", "--samples", "100000", *LONG, *without_pocl(), "-o", output, "--",
                  program(), "--ends"])
    assert result.status == 0, result.stderr
    launches = results_in(result.stdout)[0]["launches"]
    with open(output, encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["start"])
    assert len(rows) == len(launches), "%d of %d launches are there" % (len(rows), len(launches))
    for launch, row in zip(launches, rows):
        took, most = float(row["duration_us"]), (launch["end"] - launch["start"]) / 1000
        assert launch["ran"] / 1000 <= took + 2 and took <= most + 1, (launch, row)
