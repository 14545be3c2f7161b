# SPDX-License-Identifier: BSD-2-Clause
"""ONNX Runtime as its npm package ships it: every run counted, with the time that the application measures itself."""

import collections
import json
import os
import shutil
import signal
import time

from harness import (Recorder, Workload, alone, cases, compare_calls, compare_programs, entries_of, paired, record_command,
                     record_late, run, scratch, workload_path)
from onnx_models import RELEASES, library, model, serve
from operator_checks import check_runs
from ort_profile import profiles

RUN = "Run"
# Large enough that the time of a run (milliseconds) is not that of what JavaScript does around it.
HIDDEN, BATCH = 1024, 512


def large():
    return model("small", hidden=HIDDEN, batch=BATCH)


def node_command(*options):
    return serve(large(), *options)


def result_of(results):
    result, = results
    return result


def mean(calls):
    return sum(call.duration for call in calls) / len(calls)


def profile_prefix():
    return os.path.join(scratch(), "profile")


def check_node(result, trace, prefix):
    trace.check()
    assert not trace.losses(), trace.losses()
    runs = trace.of(RUN)
    assert len(runs) == result["runs"], "made %d runs, traced %d" % (result["runs"], len(runs))
    assert sum(program.get("calls", 0) for program in trace.programs(runtime="onnxruntime")) == result["runs"]
    check_runs(profiles(prefix), runs)


@paired("measures time")
def test_node_late_attach():
    """Attached to a server that runs: N runs are N inferences, as long as in its own profile."""
    prefix = profile_prefix()
    result, trace = record_late(Workload(node_command("--wait", "--runs", 100, "--profile", prefix)))
    check_node(result_of(result), trace, prefix)


def test_node_from_the_start():
    """record -- node: the session has the model's name."""
    prefix = profile_prefix()
    results, trace, _ = record_command(node_command("--runs", 100, "--profile", prefix))
    result = result_of(results)
    check_node(result, trace, prefix)
    assert {call.program for call in trace.of(RUN)} == {large()}
    assert len(trace.of("CreateSession", "CreateSessionFromArray")) == 1


@alone("measures time")
def test_node_under_load():
    """Attached in the middle of a load, detached in the middle: the rate is right and the server serves on."""
    server = Workload(node_command("--seconds", 0, "--rate", 20))
    time.sleep(0.5)
    trace = Recorder("-p", server.pid, "-d", "2s").finish()
    trace.check()
    runs = trace.of(RUN)
    assert 2 * 20 * 0.7 < len(runs) < 2 * 20 * 1.3, "%d runs in 2 s at 20/s" % len(runs)
    server.signal(signal.SIGTERM)
    result, = server.results()
    assert result["runs"] > len(runs)


def test_node_two_sessions_and_recreated():
    """Two sessions at once, released and made again, with several runs under way at a time."""
    results, trace = record_late(Workload(node_command("--wait", "--sessions", 2, "--runs", 25, "--concurrency", 2,
                                                       "--recreate")))
    result = result_of(results)
    trace.check()
    runs = trace.of(RUN)
    assert len(runs) == result["runs"] == 200, "made %d runs, traced %d" % (result["runs"], len(runs))
    programs = [program for program in trace.programs(runtime="onnxruntime") if program.get("calls")]
    assert sorted(program["calls"] for program in programs) == [50] * 4, programs


def native(*options, runtime=None):
    words = [workload_path("onnx"), runtime or library(), large(), "--batch", BATCH, *options]
    return [str(word) for word in words]


def check_native(results, trace, names):
    trace.check()
    assert not trace.losses(), trace.losses()
    compare_calls(results, trace, {RUN})
    compare_programs(results, trace, names)
    entries = [entry for entry in entries_of(results) if entry["function"] == RUN]
    measured = sum(entry["total_ns"] for entry in entries) / sum(entry["count"] for entry in entries) / 1000
    traced = mean(trace.of(RUN))
    assert abs(traced - measured) / measured < 0.1, "measured %.1f us, traced %.1f us" % (measured, traced)


def test_native_late_attach():
    """A C program with several threads on two sessions; the sessions were made before the attach."""
    results, trace = record_late(Workload(native("--wait-for-go", "--threads", 3, "--sessions", 2, "--runs", 100)))
    check_native(results, trace, False)


def test_native_from_the_start():
    """The library is opened by dlopen and used at once; sessions released and made again."""
    results, trace, _ = record_command(native("--threads", 2, "--sessions", 2, "--runs", 100, "--recreate"))
    check_native(results, trace, True)
    assert len(trace.of("CreateSession")) == 4 and len(trace.of("ReleaseSession")) == 4


def test_two_copies():
    """Two copies of the library in two programs, both attached at once."""
    copy = os.path.join(scratch(), "libonnxruntime.so.1")
    shutil.copy(library(), copy)
    workloads = [Workload(native("--wait-for-go", "--runs", 50, runtime=path)) for path in (library(), copy)]
    recorder = Recorder("-p", ",".join(str(one.pid) for one in workloads))
    for workload in workloads:
        workload.go()
    results = [result for workload in workloads for result in workload.results()]
    trace = recorder.finish()
    trace.check()
    traced = collections.Counter(call.pid for call in trace.of(RUN))
    assert traced == {one.pid: 50 for one in workloads}, "two programs with 50 runs each, traced %s" % dict(traced)
    assert len(results) == 2


def test_sites():
    """list sites finds the functions in the table of the stripped library, none of them single-stepped."""
    from harness import XPUTRACE, need
    result = run([need(XPUTRACE, "collector"), "list", "sites", "--file", library(), "--format", "json"])
    assert result.status == 0, result.stderr
    sites = json.loads(result.stdout)
    sites = {site["function"]: site for site in (sites if isinstance(sites, list) else sites["sites"])}
    for function in ("Run", "CreateSession", "CreateSessionFromArray", "ReleaseSession"):
        assert function in sites, "%s is missing in %s" % (function, sorted(sites))
    assert sites["Run"]["class"] != "stepped", sites["Run"]
    code = {function: site["code"] for function, site in sites.items() if "code" in site}
    assert code == {"CreateSession": "path", "CreateSessionFromArray": "bytes",
                    "CreateSessionWithPrepackedWeightsContainer": "path",
                    "CreateSessionFromArrayWithPrepackedWeightsContainer": "bytes"}, code


def asynchronous(release, *options):
    """The command that runs a model 64 times asynchronously, three at once, and every eighth in vain."""
    return [workload_path("onnx"), library(release), model("small"), "--async", "3", "--runs", "64", *options]


@cases(*RELEASES)
def test_async_runs(release):
    """RunAsync ends when its callback is called, by the program's own clock; the call itself is shorter. Failures, too."""
    results, trace, _ = record_command(asynchronous(release), "--wait-limit", "30s")
    runs = results[0]["runs"]
    trace.check()
    assert not trace.losses(), trace.losses()
    ends = {event["id"]: event["ts"] for event in trace.events
            if event["ph"] == "e" and event.get("cat", "").startswith("inference,")}
    spans = sorted((event["ts"] * 1000, ends[event["id"]] * 1000, "failed" in event["args"]) for event in trace.inferences)
    assert len(spans) == len(runs) == 64
    late = []
    for run_made, (start, end, failed) in zip(runs, spans):
        assert run_made["start"] <= start + 1 and end <= run_made["ended"] + 1, (run_made, start, end)
        assert failed == run_made["failed"], (run_made, start, end)
        late.append(run_made["ended"] - end)
    assert sorted(late)[len(late) // 2] < 20000, "callbacks begin %s ns before they read the clock" % late
    own, = trace.programs(runtime="onnxruntime")
    assert (own["recorded"], own["errors"], own["latency_ns"]["count"]) == (64, 8, 64), own
    calls = {call.start: call for call in trace.of("RunAsync")}
    assert len(calls) == 64 and own["call_ns"]["count"] == 64
    assert own["latency_ns"]["max"] == round(max(end - start for start, end, _ in spans)), own


def test_async_generated_callback():
    """A callback without a file has no probe: that is counted, and so is every inference without an end."""
    _, trace, _ = record_command(asynchronous(RELEASES[0], "--generated"), "--wait-limit", "30s")
    assert trace.losses() == {"callbacks": 1, "unpaired": 64}, trace.losses()
    own, = trace.programs(runtime="onnxruntime")
    assert own["recorded"] == 64 and "latency_ns" not in own, own
