# SPDX-License-Identifier: BSD-2-Clause
"""xputrace continuous: operators, regions, jobs of drivers and counters in what is saved."""

import json
import os
import sys

from saved_files import MS, Collector, executions, executions_in, nanoseconds
from harness import BUILD, ROOT, Workload, alone, need, results_in, scratch
from onnx_models import model, serve
from operator_checks import check_operators, profile_counts, spans, traced_counts
from ort_profile import profiles
from region_programs import spans as regions_in
from test_devices import CROWD, EMULATED, check_all, command
from test_record_counters import CALL, points, same

ALL = ("--window-time", "0")


# ---- operators ----

def test_onnx_operators():
    """The latest inferences of ONNX Runtime have their operators, as its own profiler counts them, and no others."""
    runs, last = 25, 3
    prefix = os.path.join(scratch(), "profile")
    workload = Workload(serve(model("mlp"), "--runs", runs, "--rate", 100, "--wait", "--profile", prefix))
    watcher = Collector("-p", workload.pid, *ALL, "--level", "detailed")
    workload.go()
    result, = workload.results()
    watcher.wait_inferences(runs)
    profile, = profiles(prefix)
    once = {node: count // runs for node, count in profile_counts(profile).items()}
    assert once and all(count * runs == profile_counts(profile)[node] for node, count in once.items())
    times = [tuple(map(int, span)) for span in result["times"]][-last:]
    for number in (1, last):
        trace = watcher.save("--last", str(number)).trace
        operators = check_operators(trace, workload.inside_pid)
        found = spans(trace, "execute", workload.inside_pid)
        assert len(found) == number and all(
            begin <= run.start < run.end <= end for run, (begin, end) in zip(found, times[-number:])), (found, times)
        wanted = {node: count * number for node, count in once.items()}
        traced = traced_counts(operators)
        assert traced == wanted, (traced, wanted)
        assert {span.run.start for span in operators} == {run.start for run in found}, "an inference has none"
        assert all(any(span.inside(run) for run in found) for span in operators), "operators of others are there"
    watcher.stop()


# ---- regions ----

# Marks regions, a turn after the other; the clock before and after each turn.
MARKED = """
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
from regions import Regions

regions = Regions(sys.argv[2])
outer, inner, other = (regions.region(name) for name in ("outer", "inner", "other"))
print(json.dumps({"ready": True, "pid": os.getpid()}), flush=True)
sys.stdin.readline()
turns = []
for turn in range(30):
    begin = time.monotonic_ns()
    with outer:
        for _ in range(turn % 3 + 1):
            with inner:
                pass
    turns.append([begin, time.monotonic_ns()])
    with other:
        pass
print(json.dumps(turns), flush=True)
sys.stdin.readline()
"""


def test_regions():
    """The latest regions of a name, with what lies inside of them."""
    workload = Workload([sys.executable, "-B", "-c", MARKED, os.path.join(ROOT, "tests", "workload"),
                         need(os.path.realpath(os.path.join(BUILD, "libxputrace.so")), "library")])
    watcher = Collector("-p", workload.pid, *ALL)
    workload.go()
    turns = json.loads(workload.wait_line("stdout", "[["))
    watcher.wait_inferences(len(turns) * 4)
    for number in (1, 2):
        saved = watcher.save("-P", "region:outer", "-n", str(number))
        found = regions_in(saved.trace)
        wanted = [name for turn in range(30 - number, 30) for name in ["inner"] * (turn % 3 + 1) + ["outer"]]
        assert [name for name, *_ in found] == wanted and saved.inferences == number, (found, wanted)
        for _, tid, begin, end in found:
            assert tid == workload.inside_pid
            assert any(first <= begin < end <= last for first, last in turns[-number:]), (begin, end, turns[-number:])
        assert turns[-number][0] <= saved.begin + MS and saved.begin <= found[0][2] + MS
    name, _, begin, _ = regions_in(watcher.save("-P", "region:other").trace)[0]
    assert name == "other" and begin > turns[-1][1]
    workload.go()
    assert workload.wait() == 0, workload.stderr
    watcher.stop()


# ---- drivers ----

def test_jobs():
    """The jobs of a driver, each in the call that submitted it; of the latest inference only its own are its own."""
    workload = Workload(command("nrt", *CROWD, "--log-times", "--linger", "--wait-for-go", device="slots=2"))
    watcher = Collector("-p", workload.pid, *ALL, *EMULATED)
    workload.go()
    results = results_in(workload.wait_line("stdout", '{"runtime"'))
    log = executions(results[0])
    watcher.wait_inferences(len(log))
    check_all(watcher.save().trace, results)
    saved = watcher.save("--last", "1")
    one, = executions_in(saved.trace, log)
    reported, = [execution for execution in results[0]["executions"] if execution["tid"] == one.tid and
             one.begin <= execution["start"] <= one.end]
    run, = saved.trace.runs()
    assert run.event["args"]["device"]["jobs"] == len(reported["jobs"]), (run.event, reported)
    workload.go()
    workload.results()
    watcher.stop()


# ---- counters ----

# As often as it is asked, says when.
CALLER = """
import json, os, sys, time
print(json.dumps({"ready": True, "pid": os.getpid()}), flush=True)
sys.stdin.readline()
time.sleep(0.1)
begun = time.monotonic_ns()
for _ in range(20000):
    os.getpriority(os.PRIO_PROCESS, 0)
ended = time.monotonic_ns()
time.sleep(0.1)
print(json.dumps([begun, ended]), flush=True)
sys.stdin.readline()
"""


@alone("measures time")
def test_counters():
    """Counters over the time of the window, as many as the program has made; of a part of it, only there."""
    workload = Workload([sys.executable, "-c", CALLER])
    watcher = Collector("-p", workload.pid, *ALL, "--counters", CALL, "--counters-every", "5ms")
    workload.go()
    begun, ended = json.loads(workload.wait_line("stdout", "["))
    saved = watcher.save()
    track = points(saved.trace.document, CALL)
    counted = [(nanoseconds(time), nanoseconds(after), rate * (after - time) / 1e6)
               for (time, rate), (after, _) in zip(track, track[1:])]
    assert same(sum(count for _, _, count in counted), 20000, 0.02), track
    within = sum(count for time, after, count in counted if after > begun and time < ended)
    assert same(within, 20000, 0.02), (within, begun, ended)
    late = watcher.save("--time", "50ms")
    times = [nanoseconds(time) for time, _ in points(late.trace.document, CALL)]
    assert times and min(times) >= late.begin - 10 * MS > ended - 10 * MS, (times[:3], late.begin, ended)
    workload.go()
    assert workload.wait() == 0, workload.stderr
    watcher.stop()
