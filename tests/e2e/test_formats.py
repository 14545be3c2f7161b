# SPDX-License-Identifier: BSD-2-Clause
"""Formats of other profilers: read by readers of their own, compared with what ONNX Runtime's own profiler says."""

import collections
import csv
import glob
import json
import os
import signal

from harness import (XPUTRACE, Recorder, Trace, Workload, alone, cases, compare, need, paired, results_in, run, scratch, standin,
                     wait_until)
from onnx_models import model, serve
from ort_profile import profiles
from test_onnx import RUN, large, node_command, result_of

HEADER = "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier"
NODES = 3  # what ONNX Runtime makes of the model's five
RUNS = 40


def recorded(command, path, *options):
    """What the workload printed."""
    recorder = Recorder(*options, "--", *command, wait=False, output=path)
    status = recorder.wait()
    assert status == 0, recorder.stderr
    return results_in(recorder.stdout), recorder


def report(recording, path, *options):
    result = run([need(XPUTRACE, "collector"), "report", recording, "-q", "-o", path, *options])
    assert result.status == 0, result.stderr
    return path


def rows_of(path, timestamps=True):
    """The rows of a QNN profiling CSV as dictionaries, with numbers where they have to be."""
    with open(path, encoding="utf-8", errors="strict", newline="") as file:
        text = file.read()
    assert text.splitlines()[0] == HEADER and text.count(HEADER) == 1 and text.endswith("\n"), text[:200]
    rows = list(csv.DictReader(text.splitlines(), strict=True))
    assert len(rows) == text.count("\n") - 1
    for row in rows:
        assert None not in row and None not in row.values(), row
        assert (row["Unit of Measurement"], row["Timing Source"]) == ("US", "BACKEND"), row
        row["Time"] = int(row["Time"])
        assert row["Msg Timestamp"].isdigit() if timestamps else row["Msg Timestamp"] == "UNKNOWN", row
    return rows


def of(rows, message):
    return [row for row in rows if row["Message"] == message]


def check_levels(rows):
    """A root before its sub-events, which lie inside it and come in order."""
    root = latest = None
    for row in rows:
        start = int(row["Msg Timestamp"])
        if row["Event Level"] == "ROOT":
            root, latest = row, 0
            continue
        assert row["Event Level"] == "SUB-EVENT" and root["Message"] == "EXECUTE", row
        assert int(root["Msg Timestamp"]) <= max(start, latest) == start, (root, row)
        assert start + row["Time"] <= int(root["Msg Timestamp"]) + root["Time"], (root, row)
        latest = start


def events_of(path):
    with open(path, encoding="utf-8", errors="strict") as file:
        events = json.load(file)
    for event in events:
        assert list(event) == ["cat", "pid", "tid", "dur", "ts", "ph", "name", "args"], event
        assert event["ph"] == "X" and isinstance(event["ts"], int) and isinstance(event["dur"], int), event
        assert all(isinstance(value, str) for value in event["args"].values()), event
    return events


def nodes(events):
    return sorted((event for event in events if event["cat"] == "Node"), key=lambda event: event["ts"])


def runs(events):
    return sorted((event for event in events if event["name"] == "model_run"), key=lambda event: event["ts"])


def compare_own(ours, own):
    """Ours with what ONNX Runtime's own profiler wrote of the same process at the same time."""
    assert {event["cat"] for event in ours} == {"Node", "Session"}
    assert len(runs(ours)) == len(runs(own)) == RUNS
    assert len(nodes(ours)) == len(nodes(own)) == RUNS * NODES
    assert [(event["pid"], event["args"]["op_name"]) for event in nodes(ours)] == [
        (event["pid"], event["args"]["op_name"]) for event in nodes(own)]
    # A node's function is called inside of what the profiler measures; a run is called around it.
    for inner, outer in list(zip(nodes(ours), nodes(own))) + list(zip(runs(own), runs(ours))):
        assert inner["dur"] <= outer["dur"] + 2, (inner, outer)
    for mine, theirs in zip(nodes(ours), nodes(own)):
        assert mine["name"] == theirs["name"] and mine["name"].endswith("_kernel_time"), (mine, theirs)
    # One program, from which the others have to differ.
    assert len({(event["args"]["program"], event["args"]["program_id"]) for event in ours}) == 1
    # The same clock: what lies between two runs is the same, but for what is around a run.
    apart = [runs(events)[-1]["ts"] - runs(events)[0]["ts"] for events in (ours, own)]
    assert abs(apart[0] - apart[1]) < 0.1 * apart[0] + 1000, apart


def near(sums, count, what):
    """Each of count times was rounded at both ends."""
    assert max(sums) - min(sums) <= count, "%s: %s us in the formats" % (what, sums)


@paired("threads wait while many probes are placed, which others at the same time slow down")
def test_onnx_recording_in_all_formats():
    """Recorded once: the formats say the same, as ONNX Runtime's profiler does, which runs meanwhile."""
    folder = scratch()
    recording, own = os.path.join(folder, "trace.xpt"), os.path.join(folder, "own")
    results, _ = recorded(node_command("--runs", RUNS, "--profile", own), recording, "--ops")
    assert result_of(results)["runs"] == RUNS
    trace = Trace(report(recording, os.path.join(folder, "trace.json")))
    ort = events_of(report(recording, os.path.join(folder, "ort.json"), "--format", "ort"))
    table = report(recording, os.path.join(folder, "qnn.csv"), "--format", "qnn-csv")
    rows = rows_of(table)
    check_levels(rows)
    trace.check()
    operators = [call for call in trace.calls if call.role == "operator"]
    near([sum(call.duration for call in trace.of(RUN)), sum(event["dur"] for event in runs(ort)),
          sum(row["Time"] for row in of(rows, "EXECUTE"))], RUNS, "runs")
    near([sum(call.duration for call in operators), sum(event["dur"] for event in nodes(ort)),
          sum(row["Time"] for row in of(rows, "NODE"))], RUNS * NODES, "operators")
    assert collections.Counter(row["Message"] for row in rows) == {"INIT": 1, "EXECUTE": RUNS, "NODE": RUNS * NODES}
    assert {row["Event Identifier"] for row in rows if row["Message"] != "NODE"} == {large()}
    assert [row["Event Identifier"] + "_kernel_time" for row in of(rows, "NODE")] == [
        event["name"] for event in nodes(ort)]
    # The same clock as the Chrome trace.
    for row, call in zip(of(rows, "EXECUTE"), sorted(trace.of(RUN), key=lambda call: call.start)):
        assert abs(int(row["Msg Timestamp"]) - call.start) <= 0.5, (row, call.start)
    with open(glob.glob(own + "*.json")[0], encoding="utf-8") as file:
        compare_own(ort, json.load(file))
    basic = rows_of(report(recording, os.path.join(folder, "basic.csv"), "--format", "qnn-csv", "--level", "basic"),
                    timestamps=False)
    assert [(row["Message"], row["Time"]) for row in basic] == [
        (row["Message"], row["Time"]) for row in rows if row["Event Level"] == "ROOT"]
    # Appended once more; the trace in the other format is made anew.
    report(recording, table, "--format", "qnn-csv")
    assert rows_of(table) == rows + rows
    assert events_of(report(recording, os.path.join(folder, "ort.json"), "--format", "ort")) == ort


@paired("threads wait while many probes are placed, which others at the same time slow down")
def test_onnx_programs_and_nodes_without_names():
    """Two models at once, whose nodes have no names: each program's are called as in the profile that ONNX Runtime writes of it."""
    path, models = os.path.join(scratch(), "profile"), (model("unnamed"), model("unnamed", hidden=32))
    prefix = path + "-own"
    recorder = Recorder("--ops", "--format", "ort", "--", *serve(*models, "--runs", RUNS, "--rate", 100, "--profile", prefix),
                        wait=False, output=path)
    assert recorder.wait() == 0, recorder.stderr
    ours, own = collections.defaultdict(collections.Counter), profiles(prefix)
    for event in events_of(path):
        assert event["cat"] in ("Node", "Session") and event["args"]["program_id"].isdigit(), event
        ours[event["args"]["program"]][event["name"]] += 1
    for name, profile in zip(models, own):
        counts = collections.Counter({node + "_kernel_time": count for (node, _), count in profile.counts().items()})
        assert "MatMul_0_kernel_time" in counts and ours[name] == counts + collections.Counter(model_run=len(profile.runs)), (
            ours, counts)
    assert len(ours) == len(own) == 2


@paired("threads wait while many probes are placed, which others at the same time slow down")
@cases("ort --ops", "ort", "qnn-csv --ops", "qnn-csv", "qnn-csv --level=basic")
def test_onnx_recorded_into(words):
    """While recording, twice into one file: every run, its operators only where they are asked for."""
    form, *options = words.split()
    path = os.path.join(scratch(), "profile")
    count = RUNS * NODES if "--ops" in options else 0
    for times in (1, 2):
        results, recorder = recorded(node_command("--runs", RUNS), path, "--format", form, *options)
        assert result_of(results)["runs"] == RUNS
        assert "lost: nothing" in recorder.stdout, recorder.stdout
        if form == "ort":
            events = events_of(path)
            assert len(runs(events)) == RUNS and len(nodes(events)) == count
            continue
        rows = rows_of(path, timestamps="--level=basic" not in options)
        assert len(of(rows, "EXECUTE")) == times * RUNS and len(of(rows, "NODE")) == times * count
        assert len(of(rows, "INIT")) == times


@cases("nrt", "qaic")
def test_other_runtimes(runtime):
    """Loads, runs, asynchronous ones and unloads of other runtimes are in the CSV, each with its program."""
    path = os.path.join(scratch(), "trace.xpt")
    workload = standin(runtime)
    recorder = Recorder("-p", workload.pid, output=path)
    workload.go()
    results = workload.results()
    assert recorder.wait() == 0, recorder.stderr
    trace = Trace(report(path, path + ".json"))
    compare(runtime, results, trace)
    rows = rows_of(report(path, path + ".csv", "--format", "qnn-csv"))
    made = collections.Counter(call.program for call in trace.calls if call.role == "execute" and not call.layer)
    made.update(event["name"] for event in trace.inferences if event["args"]["function"] not in launches(trace))
    assert made and collections.Counter(row["Event Identifier"] for row in of(rows, "EXECUTE")) == made
    for message, role in (("INIT", "program.load"), ("DE-INIT", "program.unload")):
        calls = [call for call in trace.calls if call.role == role and not call.failed and not call.entry_only
                 and not call.layer and call.program]
        assert len(of(rows, message)) == len(calls), (message, len(of(rows, message)), len(calls))
        near([sum(row["Time"] for row in of(rows, message)), sum(call.duration for call in calls)], len(calls), message)
    assert of(rows, "INIT")


def launches(trace):
    return {call.event["args"]["function"] for call in trace.calls if call.role == "launch"}


@alone("measures time")
@cases("ort", "qnn-csv")
def test_onnx_killed(form):
    """After SIGKILL the file is whole; the next recording goes on behind its rows."""
    path = os.path.join(scratch(), "profile")
    server = Workload(node_command("--seconds", 0, "--rate", 50))
    recorder = Recorder("-p", server.pid, "--ops", "--format", form, output=path)
    read = (lambda: runs(events_of(path))) if form == "ort" else (lambda: of(rows_of(path), "EXECUTE"))
    wait_until(lambda: os.path.getsize(path) > 5000, "rows are written")
    recorder.signal(signal.SIGKILL)
    assert recorder.wait() == -signal.SIGKILL
    before = read()
    assert before
    recorder = Recorder("-p", server.pid, "--ops", "--format", form, "-d", "500ms", output=path)
    assert recorder.wait() == 0, recorder.stderr
    after = read()
    server.stop()
    assert len(after) > len(before) and after[:len(before)] == before if form == "qnn-csv" else after


def test_onnx_through_a_pipe():
    """On standard output, and the summary beside it."""
    recorder = Recorder("--ops", "--format", "qnn-csv", "--", *node_command("--runs", RUNS), wait=False, output="-")
    assert recorder.wait() == 0, recorder.stderr
    lines = recorder.stdout.splitlines()
    rows = [line for line in csv.reader(lines[lines.index(HEADER) + 1:]) if len(line) == 7 and line[4] == "BACKEND"]
    assert len([row for row in rows if row[1] == "NODE"]) == RUNS * NODES
    assert "operators of" in recorder.stderr


def test_onnx_something_else_is_left_alone():
    """Rows do not go behind what is no such CSV; a level is for the CSV only."""
    folder = scratch()
    recording, other = os.path.join(folder, "trace.xpt"), os.path.join(folder, "other.json")
    recorded(node_command("--runs", 2), recording)
    report(recording, other)
    with open(other, encoding="utf-8") as file:
        before = file.read()
    result = run([XPUTRACE, "report", recording, "-q", "-o", other, "--format", "qnn-csv"])
    assert result.status == 1 and "not of this format" in result.stderr, result.stderr
    with open(other, encoding="utf-8") as file:
        assert file.read() == before
    result = run([XPUTRACE, "report", recording, "-o", other, "--level", "basic"])
    assert result.status == 2 and "--level" in result.stderr, result.stderr
