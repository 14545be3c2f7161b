# SPDX-License-Identifier: BSD-2-Clause
"""Traces in Perfetto's own format: its trace processor imports them without a complaint, with all that the Chrome trace has."""

import collections
import gzip
import os
import random
import re
import signal
import struct
import subprocess
import time

from harness import ROOT, SLOW, XPUTRACE, Recorder, cases, need, process_state, run, scratch, standin, workload_path
from onnx_models import model, serve
from perfetto import compare, equal, imported, query, report
from recordings import LOST, Recording, rewrite
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
    result = run([need(XPUTRACE, "collector"), "record", "-q", "-o", path, *options, "--", *command])
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
