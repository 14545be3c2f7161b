# SPDX-License-Identifier: BSD-2-Clause
"""record --ops where operators launch kernels on a device (tests/workload/emulated.c): whose they are."""

import collections
import os
import re

from devices import nanoseconds
from harness import SLOW, XPUTRACE, Recorder, Trace, cases, need, results_in, run, scratch
from operator_toy import description, toy
from operator_checks import difference, parents, spans
from test_devices import EMULATED, command, jobs_in, table, time_of
from test_formats import events_of

KERNELS = ("multiply", "add_bias")  # each operator launches them in turn
DURATION_US = 400


def recorded(text, runs, threads=1, *options, output=None):
    """What the program says, and the recorder."""
    command("cuda")  # where the device's events are missing, so is the test
    environment = dict(os.environ, STANDIN_DEVICE="emulated:device=%d" % os.getpid(),
                       STANDIN_DURATION_US=str(round(DURATION_US * min(SLOW, 3))))
    recorder = Recorder("--ops", "-r", description(), *EMULATED, *options, "--", *toy(text, runs, threads), wait=False,
                        output=output, env=environment)
    assert recorder.wait() == 0, recorder.stderr
    (result,) = results_in(recorder.stdout)
    return result, recorder


def owners(result, operators):
    """By the device's number, the label of the operator that launched the job; None: it has no end."""
    labels = collections.defaultdict(set)
    for span in operators:
        labels[int(span.object, 16)].add(span.label)
    assert all(len(names) == 1 for names in labels.values()), labels
    return {number: min(labels.get(int(address, 16), [None]))
            for thread in result["threads"] for number, address in thread["launched"]}


def sums_by_operator(jobs):
    """Jobs and their ns, by label, of those that have an operator."""
    counts, times = collections.Counter(), collections.Counter()
    for job in jobs:
        if "operator" in job.arguments:
            counts[job.arguments["operator"]] += 1
            times[job.arguments["operator"]] += job.ended - job.began
    return counts, times


def check_metadata(trace, jobs, launches):
    """The sums of each operator are those of its jobs' events, and it has launched what lies in its spans."""
    reported = [collections.Counter() for _ in range(3)]
    for row in trace.metadata["operators"]:
        for counts, name in zip(reported, ("jobs", "device_ns", "launches")):
            assert row.get(name) != 0, "what is not known is not 0: %s" % row
            counts[row["name"]] += row.get(name, 0)
        assert row.get("failed_jobs", 0) == 0, row
    for made, counts in zip((*sums_by_operator(jobs), launches), reported):
        assert +made == +counts, difference(made, counts)


def launches_in(trace, operators):
    """Launches by the innermost operator around each; those outside of any are under None."""
    counts, launches = collections.Counter(), spans(trace, "launch")
    for span, around in parents(sorted(operators + launches, key=lambda one: (one.start, -one.end))):
        if span in launches:
            assert span.label in KERNELS and (not around or around.tid == span.tid), span
            counts[around.label if around else None] += 1
    return counts


def check_table(text, trace, jobs):
    """The table has what the jobs' events add up to: in all, and for each execution."""
    counts, times = sums_by_operator(jobs)
    executions = {row["name"]: row["recorded"] for row in trace.metadata["operators"]}
    rows = [row for row in table(re.sub(r"\(in no operator\) ", "(in_no_operator) -", text), "OPERATOR ")
            if row["OPERATOR"] != "(in_no_operator)"]
    assert {row["OPERATOR"] for row in rows} == set(executions), rows
    for row in rows:
        name = row["OPERATOR"]
        if not counts[name]:
            assert (row["DEVICE"], row["DEVICE/RUN"]) == ("-", "-"), row
            continue
        assert abs(time_of(row["DEVICE"]) - times[name]) <= times[name] / 1000, (row, times[name])
        mean = times[name] / executions[name]
        assert abs(time_of(row["DEVICE/RUN"]) - mean) <= mean / 1000, (row, mean)


@cases("2gr", "1g(2g(3gr2g", "g2g")
def test_jobs(text):
    """Each job is the innermost operator's that launched it, by the device's own numbers, though most end behind it."""
    result, recorder = recorded(text, 10)
    trace = Trace(recorder.output)
    operators, jobs = spans(trace, pid=result["pid"]), jobs_in(trace)
    trace.check()
    assert not trace.losses(), trace.losses()
    made = owners(result, operators)
    assert len(made) == len(jobs) == 10 * sum(int(digit) for digit in text if digit.isdigit()), (made, len(jobs))
    ends = collections.defaultdict(int)
    for span in operators:
        ends[span.label] = max(ends[span.label], span.end)
    for job in jobs:
        assert job.arguments["operator"] == made[job.arguments["value"]], job.arguments
        assert job.arguments["op_name"] == job.arguments["operator"].split("#")[0], job.arguments
        assert job.arguments["program"] in KERNELS and job.ended - job.began >= DURATION_US * 1000, job.arguments
    assert any(job.ended > ends[job.arguments["operator"]] for job in jobs), "all have ended in their operators"
    launches = launches_in(trace, operators)
    assert launches == collections.Counter(made.values()), (launches, made)
    check_metadata(trace, jobs, launches)
    check_table(recorder.stdout, trace, jobs)


def test_threads():
    """Four at once on one engine: each has its own jobs."""
    result, recorder = recorded("2gr1g", 10, 4)
    trace = Trace(recorder.output)
    operators, jobs = spans(trace, pid=result["pid"]), jobs_in(trace)
    threads = {number: thread["tid"] for thread in result["threads"] for number, _ in thread["launched"]}
    made = owners(result, operators)
    assert len(jobs) == len(made) == 4 * 10 * 3
    known = [job for job in jobs if "operator" in job.arguments]
    assert len(known) > len(jobs) / 2, "%d of %d" % (len(known), len(jobs))  # the first ones may have no end
    for job in jobs:
        assert job.tid == threads[job.arguments["value"]], job.arguments
    for job in known:
        assert job.arguments["operator"] == made[job.arguments["value"]], job.arguments
    launches = launches_in(trace, operators)
    del launches[None]
    check_metadata(trace, jobs, launches)


OWNED = {"2g3tr1g": 3, "1g(2t2g": 2, "2g3j1g": 3}  # launches of a run that lie in an operator with an end


@cases(*OWNED)
def test_operators_without_an_end(text):
    """What one has launched that was left by an exception or longjmp is no later operator's."""
    result, recorder = recorded(text, 10)
    trace = Trace(recorder.output)
    operators, jobs = spans(trace, pid=result["pid"]), jobs_in(trace)
    made = owners(result, operators)
    for job in jobs:
        assert job.arguments.get("operator") == made[job.arguments["value"]], job.arguments
    launches = launches_in(trace, operators)
    del launches[None]
    check_metadata(trace, jobs, launches)
    found = sum("operator" in job.arguments for job in jobs)
    assert found == 10 * OWNED[text] < len(jobs), (found, len(jobs))


# ---- ONNX Runtime's format ----

def test_ort():
    """Kernels and launches have the type and the event of their operator, the same as in the trace of the recording."""
    folder = scratch()
    recording, trace, ort = (os.path.join(folder, name) for name in ("recording.xpt", "trace.json", "ort.json"))
    result, _ = recorded("2gr3g(1g3tl", 10, output=recording)
    for path, options in ((trace, ()), (ort, ("--format", "ort"))):
        status = run([need(XPUTRACE, "collector"), "report", recording, "-q", "-o", path, *options])
        assert status.status == 0, status.stderr
    trace, events = Trace(trace), events_of(ort)
    operators, jobs = spans(trace, pid=result["pid"]), jobs_in(trace)
    made, numbered = owners(result, operators), sorted(jobs, key=lambda job: job.queued)

    kernels = sorted((event for event in events if event["cat"] == "Kernel"), key=lambda event: event["ts"])
    assert len(kernels) == len(numbered) == len(made) == 10 * 9
    for kernel, job in zip(kernels, numbered):
        owner = made[job.arguments["value"]]
        check_arguments(kernel, owner)
        assert kernel["name"] == job.arguments["program"] and kernel["args"]["stream"] == "0", kernel
        assert abs(kernel["dur"] * 1000 - (job.ended - job.began)) <= 1000, (kernel, job.arguments)

    launches = sorted((event for event in events if event["cat"] == "Api"), key=lambda event: event["ts"])
    assert [event["args"]["kernel"] for event in launches] == [event["name"] for event in kernels]
    for launch, job in zip(launches, numbered):
        check_arguments(launch, made[job.arguments["value"]])
    check_order(events)
    # As the page of ONNX Runtime adds up: by type, on the device.
    by_type = collections.Counter()
    for event in kernels:
        by_type[event["args"].get("op_name", "")] += event["dur"]
    reported = collections.Counter()
    for row in trace.metadata["operators"]:
        reported[row["op_name"]] += row.get("device_ns", 0)
    assert set(by_type) == {"Gemm", ""} and abs(by_type["Gemm"] * 1000 - reported["Gemm"]) <= 1000 * len(kernels), by_type


def check_arguments(event, owner):
    names = (owner.split("#")[0], owner + "_kernel_time") if owner else (None, None)
    assert (event["args"].get("op_name"), event["args"].get("parent_name")) == names, (event, owner)


def check_order(events):
    """A launch stands behind its operator's own event and before the thread's next one."""
    latest = None
    for event in events:
        if event["cat"] == "Node":
            latest = event
        elif event["cat"] == "Api" and "parent_name" in event["args"]:
            assert latest["name"] == event["args"]["parent_name"], (latest, event)
            assert latest["ts"] <= event["ts"] <= event["ts"] + event["dur"] <= latest["ts"] + latest["dur"], event


def test_no_driver():
    """Operators have their launches, and no device time."""
    recorder = Recorder("--ops", "-r", description(), "--", *toy("2gr", 10), wait=False)
    assert recorder.wait() == 0, recorder.stderr
    assert "LAUNCHES" in recorder.stdout and "DEVICE" not in recorder.stdout, recorder.stdout
    rows = Trace(recorder.output).metadata["operators"]
    assert [(row["name"], row.get("launches")) for row in rows] == [("Gemm#1", 20), ("Relu#1", None)], rows
    assert not [row for row in rows if "jobs" in row or "device_ns" in row], rows
