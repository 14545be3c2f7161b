# SPDX-License-Identifier: BSD-2-Clause
"""Traces in Perfetto's own format: its trace processor imports them without a complaint, with all that the Chrome trace has."""

import collections
import gzip
import json
import os
import random
import re
import signal
import struct
import subprocess
import time

from harness import ROOT, SLOW, WAITING, XPUTRACE, Recorder, cases, need, process_state, run, scratch, standin, workload_path
from onnx_models import model, serve
from perfetto import chrome, compare, equal, imported, query, report
from recordings import LOST, Recording, rewrite
from saved_files import Collector
from strict_csv import strict_rows
from test_flame import Made, FRAMES, MODULES, STACKS
from test_ops_device import recorded
from test_states import record as record_states

KEPT = os.path.join(ROOT, "tests/e2e/kept")
REASONS = {"calls": 1, "off CPU ns": 2, "CPU ns": 3}


@cases("codeobj", "counted", "counters", "jobs", "operators", "qaic", "regions", "window")
def test_kept(name):
    """Recordings of every kind: slices and how they lie in each other, instants, arrows, jobs, counters and names."""
    found, _ = compare(os.path.join(KEPT, name + ".xpt"))
    least = {"jobs": ("jobs", 4), "window": ("arrows", 1), "counters": ("values", 4)}.get(name)
    assert not least or found[least[0]] >= least[1], (least, found[least[0]])


def recording_of(command, *options):
    path = os.path.join(scratch(), "live.xpt")
    result = run([need(XPUTRACE, "collector"), "record", "-q", "-o", path, *WAITING, *options, "--", *command])
    assert result.status == 0, result.stderr
    return path


def test_onnx():
    """ONNX Runtime with its operators, which lie in their inferences."""
    found, document = compare(recording_of(serve(model("small"), "--runs", 20), "--ops"))
    runs = [one for one in found["slices"] if one["category"] == "onnxruntime,execute"]
    operators = [one for one in found["slices"] if one["category"] == "onnxruntime,operator"]
    assert len(runs) == 20 and len(operators) >= 40 and {one["parent_id"] for one in operators} <= {one["id"] for one in runs}
    programs = {one["id"]: one["name"] for one in document["metadata"]["programs"]}
    assert {programs[one["args"]["debug.program_id"]] for one in runs} == {one["name"] for one in runs}


@cases("qaic", "hip", "pjrt")
def test_asynchronous(runtime):
    """Several threads enqueue and wait: arrows, spans of inferences, depths of queues."""
    command = [workload_path("workload"), runtime, "--calls", 60, "--threads", 3, "--programs", 2, "--fail-every", 7]
    found, _ = compare(recording_of([str(word) for word in command]))
    assert runtime != "qaic" or found["arrows"] >= 40, found["arrows"]


def test_device():
    """Jobs of an emulated device are GPU slices with their kernel, below the process that submitted them."""
    path = os.path.join(scratch(), "device.xpt")
    result, _ = recorded("2gr3g(1g3tl", 10, output=path)
    found, _ = compare(path)
    assert found["jobs"] == found["arrows"] == 10 * 9
    sums = query(report(path, ".pftrace"), """select p.pid, count(*) jobs, sum(dur) ns from gpu_slice g
        join process p on p.upid = extract_arg(g.arg_set_id, 'upid') group by 1""")[0]
    assert len(sums) == 1 and sums[0]["pid"] == result["pid"] and sums[0]["jobs"] == 90, sums


def test_states():
    """Times off the CPU lie in their calls; stacks of all three kinds."""
    _, path, _ = record_states("--samples=1000", "--stacks=1000", "--why")
    found, document = compare(path)
    assert any(event.get("cat") == "off_cpu" for event in document["traceEvents"])
    check_samples(path, found)


def check_samples(path, found):
    recording = Recording(path)
    expected = collections.Counter((sample.reason, sample.time, sample.tid) for sample in recording.stack_samples)
    equal("samples", expected, [(REASONS[one["session"]], one["ts"], one["tid"]) for one in found["samples"]])


def test_stacks():
    """Frames, modules and build ids of made-up stacks, from the outermost frame on."""
    made = Made()
    found, _ = compare(made.path)
    assert collections.Counter(one["session"] for one in found["samples"]) == {"calls": 401, "off CPU ns": 200, "CPU ns": 200}
    frames = {one["id"]: one for one in found["frames"]}

    def chain(callsite):
        return chain(frames[callsite]["parent_id"]) + [frames[callsite]] if callsite is not None else []

    shown = {tuple(frame["name"] for frame in chain(one["callsite_id"])) for one in found["samples"]}
    assert shown == {tuple(FRAMES.get(number, {}).get("function", "[unknown]") for number in reversed(stack))
                     for stack in STACKS.values()}, shown
    assert len({one["callsite_id"] for one in found["samples"]}) == len(STACKS), "lines are not told apart"
    native = [one for one in frames.values() if one["name"] == FRAMES[1]["function"]]
    assert native and all(one["module"] == MODULES[1]["path"] and one["build_id"] == "00ff17" and one["rel_pc"] == 4096
                          for one in native), native


def test_losses():
    """Losses are instants at their time, and their sums stand at the end; no error of the importer's."""
    path = os.path.join(scratch(), "lost.xpt")

    def lose(records):
        at = next(i for i, one in enumerate(records) if one[0] == 1)
        _, tgid, when, _ = records[at]
        made = struct.pack("<HHIQQQII", LOST, 40, tgid, when, when - 1000, 3, 1, 0)
        return records[:at] + [(LOST, tgid, when, made)] + records[at:]

    rewrite(os.path.join(KEPT, "counted.xpt"), path, lose)
    found, _ = compare(path)
    lost = [one for one in found["slices"] if one["category"] == "lost"]
    assert [one["args"]["debug.count"] for one in lost] == [3], lost


SUMS = ("cpu_ns", "waited_ns", "blocked_ns", "voluntary_switches", "involuntary_switches", "minor_faults", "major_faults")
# An enqueue that has failed began no inference of its own.
INFERENCES = """select s.name program, p.pid, s.dur, s.category like '%%,enqueue' refused,
    coalesce(extract_arg(s.arg_set_id, 'debug.failed'), 0) failed, %s
    from slice s left join thread_track tt on tt.id = s.track_id left join thread t using (utid)
    left join process_track pt on pt.id = s.track_id join process p on p.upid = coalesce(t.upid, pt.upid)
    where (s.category like '%%,execute' or s.category like 'inference,%%'
        or s.category like '%%,enqueue' and extract_arg(s.arg_set_id, 'debug.inference') is null)
    and extract_arg(s.arg_set_id, 'debug.layer') is null""" % (
        ", ".join("coalesce(extract_arg(s.arg_set_id, 'debug.%s'), 0) %s" % (name, name) for name in SUMS))
FUNCTIONS = """select extract_arg(arg_set_id, 'source.function_name') name, extract_arg(arg_set_id, 'source.file_name') runtime,
    count(*) calls, sum(dur) total, min(dur) least, max(dur) most,
    coalesce(sum(extract_arg(arg_set_id, 'debug.failed')), 0) failed from slice
    where extract_arg(arg_set_id, 'source.function_name') is not null and category not like '%,execute' and category not like '%,enqueue'
    and extract_arg(arg_set_id, 'debug.layer') is null group by 1, 2"""
ENDS = "select s.name, s.arg_set_id from slice s where s.name = 'recording ends' and extract_arg(s.arg_set_id, 'debug.complete')"


def whole_ns(row, column):
    """Of a column in microseconds with three decimals."""
    whole, part = row[column].split(".")
    return int(whole) * 1000 + int(part)


def csv_inferences(path):
    """Of each row of the CSV: program, runtime, pid, duration, failed, and what its thread did."""
    with open(path, encoding="utf-8", newline="") as file:
        header, *lines = strict_rows(file.read())
    for line in lines:
        row = dict(zip(header, line))
        sums = [whole_ns(row, name[:-2] + "us") if name.endswith("_ns") else int(row[name]) for name in SUMS]
        yield (row["program"], row["runtime"], int(row["pid"]), whole_ns(row, "duration_us"), int(row["failed"]), *sums)


@cases("nrt", "qaic")
def test_totals(runtime):
    """What SQL counts and adds up in the trace is what the CSV of the recording has, row by row, and what its summary says."""
    command = [workload_path("workload"), runtime, "--calls", "60", "--threads", "2", "--programs", "2", "--fail-every", "7"]
    recording = recording_of(command)
    summary = os.path.join(scratch(), "summary.json")
    rows = list(csv_inferences(report(recording, ".csv", "--format", "csv", "--summary-json", summary)))
    with open(summary, encoding="utf-8") as file:
        summary = json.load(file)
    found, functions, ends = query(report(recording, ".pftrace"), INFERENCES, FUNCTIONS, ENDS)
    inferences = [(one["program"], runtime, one["pid"], one["dur"], one["failed"], *[one[name] for name in SUMS]) for one in found]
    equal("inferences", rows, inferences)
    assert len(rows) == 120 and any(one[4] for one in rows) and len(ends) == 1 and not summary["lost"], (len(rows), ends)
    assert {one["name"] for one in summary["programs"]} == {one["program"] for one in found}
    for program in summary["programs"]:
        own = [one for one in found if (one["program"], one["pid"]) == (program["name"], program["pid"])]
        begun = [one for one in own if not one["refused"]]
        latency, times = program["latency_ns"], [one["dur"] for one in begun]
        assert (program["inferences"], program["recorded"], program["failed"]) == (len(own), len(own), sum(one["failed"] for one in own))
        assert (latency["count"], latency["min"], latency["max"]) == (len(times), min(times), max(times)), latency
        assert abs(latency["mean"] - sum(times) / len(times)) <= 1, (latency, sum(times) / len(times))
        assert {name: program["states"][name] for name in SUMS} == {name: sum(one[name] for one in begun) for name in SUMS}, program
    equal("functions", [(one["name"], one["runtime"], one["calls"], one["failed"], one["duration_ns"]["min"], one["duration_ns"]["max"])
                        for one in summary["functions"]],
          [(one["name"], one["runtime"], one["calls"], one["failed"], one["least"], one["most"]) for one in functions])
    for one in summary["functions"]:
        total = next(row["total"] for row in functions if row["name"] == one["name"])
        assert abs(one["duration_ns"]["mean"] - total / one["calls"]) <= 1, (one, total)


def test_record():
    """Written while it is recorded, compressed and not: whole when the recorder is killed, up to a second before."""
    chance = random.Random(1)
    for suffix in (".pftrace", ".pftrace.gz"):
        workload = standin("nrt", "--calls", 0, "--threads", 2, "--rate", round(300 / SLOW))
        workload.go()
        recorder = Recorder("-p", workload.pid, output=os.path.join(scratch(), "trace" + suffix))
        time.sleep(0.6 + chance.random())
        killed = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        recorder.signal(signal.SIGKILL)
        recorder.wait()
        time.sleep(0.5)  # the process that writes ends
        found = imported(recorder.output)
        calls = [one for one in found["slices"] if one["tid"] >= 0 and one["args"].get("source.function_name")]
        assert len(calls) > 50 and all(one["dur"] >= 0 for one in calls)
        assert max(one["ts"] for one in calls) > killed - 1e9, killed
        assert not [one for one in found["slices"] if one["name"] == "recording ends"]
        clocks = {one["clock_id"]: one["clock_value"] for one in found["clocks"]}
        apart = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        assert abs(clocks[6] - clocks[3] - apart) < 1e6, (clocks, apart)
        assert process_state(workload.pid) in ("S", "R")
        workload.signal(signal.SIGTERM)
        workload.results()


def test_compressed():
    """A compressed trace, and one through a pipe, have the same bytes."""
    path = os.path.join(KEPT, "window.xpt")
    with open(report(path, ".pftrace"), "rb") as file:
        whole = file.read()
    with gzip.open(report(path, ".pftrace.gz")) as file:
        assert file.read() == whole
    done = subprocess.run([XPUTRACE, "report", path, "-q", "--format", "perfetto", "-o", "-"], stdout=subprocess.PIPE, check=True)
    assert done.stdout == whole


@cases("profile", "stream")
def test_reports(command):
    """profile and stream write the inferences that they report, and an event with the sums of each report."""
    path = os.path.join(scratch(), "reports.pftrace")
    options = ["--program", "cloud-0.0", "--samples", "20"] if command == "profile" else ["--report-every", "200ms", "--append"]
    words = [need(XPUTRACE, "collector"), command, *options, "--type", "perfetto", "-o", path, "--", workload_path("workload"),
             "qaic", "--calls", "120", "--threads", "2", "--rate", "400"]
    result = run(words)
    assert result.status == 0, result.stderr
    found = imported(path)
    spans = [one for one in found["slices"] if one["category"] == "inference,qaic"]
    ends = [one["args"] for one in found["slices"] if one["name"] == "report ends"]
    assert len(spans) == sum(one["debug.samples"] for one in ends) == (20 if command == "profile" else 240), ends
    numbers = [one["debug.sequence"] for one in ends]  # one without inferences is not written
    assert numbers == sorted(set(numbers)) and all(one["debug.complete"] for one in ends), ends
    assert len(ends) == 1 if command == "profile" else len(ends) > 1, ends
    assert len(found["flows"]) >= len(spans) - len(ends) and {one["tid"] for one in found["threads"]} >= {
        one["tid"] for one in found["slices"] if one["tid"] >= 0}


def test_inspect():
    """inspect --format perfetto: trace.pftrace in place of trace.json, and it has what the recording beside it has."""
    folder = os.path.join(scratch(), "inspected")
    result = run([need(XPUTRACE, "collector"), "inspect", "-o", folder, "--format", "perfetto", *WAITING, "--", workload_path("workload"), "qaic",
                  "--calls", "40", "--threads", "2", "--fail-every", "9"])
    assert result.status == 0, result.stderr
    (name,) = os.listdir(folder)
    path = os.path.join(folder, name)
    with open(os.path.join(path, "index.json"), encoding="utf-8") as file:
        index = json.load(file)
    assert set(index["files"]) == {"recording.xpt", "trace.pftrace", "report.txt", "usage.csv"}, index
    found, _ = compare(os.path.join(path, "recording.xpt"), path=os.path.join(path, "trace.pftrace"))
    assert found["arrows"] >= 40 and len([one for one in found["slices"] if one["category"] == "inference,qaic"]) >= 40


@cases(".pftrace", ".pftrace.gz", ".json")
def test_saved(suffix):
    """continuous save -o FILE: the trace of what was saved, and that is what its recording says."""
    path = os.path.join(scratch(), "window" + suffix)
    workload = standin("nrt", "--calls", "60", "--threads", "2", "--linger")
    collector = Collector("-p", workload.pid)
    workload.go()
    workload.wait_line("stdout", '{"runtime"')
    saved = collector.save("-o", path)
    if suffix == ".json":
        again = chrome(report(saved.path, ".json"))
        assert chrome(path)["traceEvents"] == again["traceEvents"]
    else:
        found, _ = compare(saved.path, path=path)
        calls = [one for one in found["slices"] if one["category"] in ("nrt,execute", "nrt,enqueue")]
        assert len(calls) == 120, len(calls)
    refused = run([XPUTRACE, "continuous", "save", "--instance", collector.name, "-o", "/dev/null/none" + suffix])
    assert refused.status == 1 and "/dev/null/none" in refused.stderr, refused.stderr
    workload.send("\n")
    workload.wait()
    collector.stop()


def merged(*arguments, status=0):
    path = os.path.join(scratch(), "merged.pftrace")
    result = run([need(XPUTRACE, "collector"), "merge", *arguments, "-o", path])
    assert result.status == status, result.stderr
    return path if not status else result.stderr


def shifted(found, offset):
    """Slices of threads with their times moved, and how many arrows there are."""
    return [(one["tid"], one["name"], one["ts"] + offset, one["dur"]) for one in found["slices"] if one["tid"] >= 0]


def wall(found):
    clocks = {one["clock_id"]: one["clock_value"] for one in found["clocks"]}
    return int(clocks[1]) - int(clocks[3])


def test_merge():
    """Traces of two hosts are one by their clocks on the wall, each with a machine of its own; two of one host share it."""
    command = [workload_path("workload"), "qaic", "--calls", "30", "--threads", "2"]
    paths = [report(recording_of(command), ".pftrace" + suffix) for suffix in ("", ".gz")]
    with gzip.open(paths[1]) as file:
        data = file.read()
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        boot = file.read().strip()
    assert data.count(boot) == 1
    other = os.path.join(scratch(), "other.pftrace")
    with open(other, "wb") as file:
        file.write(data.replace(boot, b"0" * len(boot)) + b"\n\x20cut")
    alone = [imported(path) for path in paths]
    for second, machines, offset in ((paths[1], {0}, 0), (other, {0, 1}, 1500000)):
        options = ["--offset", second + "=1500us"] if offset else []
        found = imported(merged(paths[0], second, *options))
        assert {one["machine"] for one in found["slices"] if one["tid"] >= 0} == machines
        equal("slices", shifted(alone[0], wall(alone[0])) + shifted(alone[1], wall(alone[1]) + offset), shifted(found, 0))
        assert len(found["flows"]) == sum(len(one["flows"]) for one in alone) > 40
        assert len([one for one in found["machines"] if one["release"] == os.uname().release]) == len(machines)


def test_merge_refuses():
    path = report(os.path.join(KEPT, "jobs.xpt"), ".pftrace")
    broken, json = os.path.join(scratch(), "broken.pftrace"), report(os.path.join(KEPT, "jobs.xpt"), ".json")
    with open(path, "rb") as file:
        data = file.read()
    with open(broken, "wb") as file:
        file.write(data[:2000] + b"\xff\xff" + data[2000:])
    for second, reason in ((broken, "no packet begins at|is malformed"), (json, "is no Perfetto trace"),
                           ("/dev/null", "is no file")):
        message = merged(path, second, status=1)
        assert re.search(reason, message), message
    assert "not a Chrome trace" in merged(json, path, status=1)
