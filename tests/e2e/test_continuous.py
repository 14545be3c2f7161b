# SPDX-License-Identifier: BSD-2-Clause
"""xputrace continuous: what is saved, against what the programs have printed that were watched."""

import json
import sys

from saved_files import (CLOCKS, Collector, calls_by_execution, check_suffix, clock_now, executions, executions_in,
                        nanoseconds)
from harness import RUNS, SLOW, Workload, cases, compare, entries_of, library_path, results_in, standin

ALL = ("--window-time", "0")


def finish(workload):
    """Runs it until it has printed its result; it stays. The result."""
    workload.go()
    return results_in(workload.wait_line("stdout", '{"runtime"'))


def end(workload):
    workload.go()
    return workload.results()


# ---- all of it ----

@cases("nrt", "qaic", "vaccel", "hip", "cuda", "cudart", "pjrt", "llama")
def test_whole(runtime):
    """The whole window is what a recording is: every call with its values, all inferences, all programs by name."""
    workload = standin(runtime, "--calls", "60", "--threads", "2", "--fail-every", "9", "--linger")
    attached = clock_now()
    watcher = Collector("-p", workload.pid, *ALL)
    results = finish(workload)
    saved = watcher.save()
    compare(runtime, results, saved.trace, totals_in="recorded")
    assert saved.lost == 0 and saved.inferences == 0, vars(saved)
    first, last = min(call.start for call in saved.trace.calls), max(call.end for call in saved.trace.calls)
    assert attached - CLOCKS < saved.begin < nanoseconds(first), (attached, saved.begin, first)
    assert nanoseconds(last) < saved.end < clock_now(), (last, saved.end)
    end(workload)
    watcher.stop()


# ---- what has left the window ----

SMALL = ("-w", "2M", "--window-time", "0")


def expected_calls(one):
    """The functions that an execution of the stand-in of AWS Neuron calls, but for how often it asks."""
    odd = ["nrta_execute_schedule", "nrta_is_completed"]
    more = ["nrta_tensor_write", "nrta_tensor_copy", "nrt_tensor_copy", "nrta_tensor_read"]  # one calls another
    runs = odd if one.number % 2 else ["nrt_execute"]
    return ["nrt_tensor_write"] + runs + (more if one.number % 8 == 7 else []) + ["nrt_tensor_read"]


def test_eviction():
    """The latest executions are there, whole, with names of programs loaded long before; others are counted."""
    programs, made = 3, 12000
    workload = standin("nrt", "--programs", str(programs), "--calls", str(made), "--duration-us", "1", "--log-times",
                       "--linger")
    watcher = Collector("-p", workload.pid, *SMALL)
    result, = finish(workload)
    status = watcher.wait_inferences(made)
    log = executions(result)
    saved = watcher.save()
    trace = saved.trace
    trace.check()
    found = check_suffix(saved, log)
    assert log[0].end < saved.begin and 100 < len(found) < made, "%d of %d are in the file" % (len(found), made)
    assert found == log[-len(found):], "what is in the file is not contiguous"
    calls = calls_by_execution(trace, log)
    for one in found[1:]:
        functions = list(dict.fromkeys(call.function for call in calls[one]))
        assert functions == expected_calls(one), (one, functions)
    for one in found:
        names = {call.program for call in calls[one] if call.role in RUNS}
        assert names == {"neuron-0.%d" % (one.number // 2 % programs)}, (one, names)
    assert not trace.losses(), trace.losses()
    check_status(status, made, found)
    end(workload)
    watcher.stop()


def check_status(status, made, found):
    assert status["evicted_inferences"] + status["window_inferences"] == made, status
    assert abs(status["window_inferences"] - len(found)) <= 1, (status, len(found))
    assert status["lost"] == 0 and status["window_bytes"] <= 2 << 20, status
    assert 0 < status["window_ns"] < status["elapsed_ns"], status
    assert status["window_records"] > len(found) and status["evicted_records"] > made - len(found), status


# ---- the latest inferences ----

PROGRAMS = 3  # each on a core of its own


def number_of(one):
    """Of the program that it runs."""
    return one.number // 2 % PROGRAMS


def check_latest(saved, log, wanted):
    """Exactly these executions are in the file, each once and as it was, and no others' calls."""
    trace = saved.trace
    trace.check()
    assert executions_in(trace, log) == set(wanted), (sorted(executions_in(trace, log)), wanted)
    assert saved.inferences == len(wanted) and not trace.losses(), (saved.inferences, trace.losses())
    for call in trace.calls:
        assert [one for one in wanted if one.begin <= nanoseconds(call.start) and nanoseconds(call.end) <= one.end] or (
            call.role.startswith("program.")), "%s is of none of them" % call.event
    asynchronous = [one for one in wanted if one.number % 2]
    spans = sorted(nanoseconds(event["ts"]) for event in trace.inferences)
    ends = sorted(nanoseconds(event["ts"]) for event in trace.events if event["ph"] == "e")
    assert len(spans) == len(ends) == len(asynchronous), (trace.inferences, asynchronous)
    for one, start, ended in zip(asynchronous, spans, ends):
        assert one.begin <= start < ended <= one.end, (one, start, ended)
    names = {call.program for call in trace.runs()}
    assert names == {"neuron-0.%d" % number_of(one) for one in wanted}, names
    begins = [one for one in wanted if one.begin - CLOCKS <= saved.begin <= one.end + CLOCKS]
    assert begins == wanted[:1], "it does not begin with its first inference: %d, %s" % (saved.begin, wanted)


def test_latest():
    """By core, program, handle, number and time: exactly those that the workload has logged last."""
    workload = standin("nrt", "--programs", str(PROGRAMS), "--calls", "121", "--rate", str(round(400 / SLOW)), "--log-times", "--linger")
    watcher = Collector("-p", workload.pid, *ALL)
    result, = finish(workload)
    log = executions(result)
    of = [[one for one in log if number_of(one) == number] for number in range(PROGRAMS)]
    handle, = {entry["handle"] for entry in entries_of([result]) if entry.get("program") == "neuron-0.1"
               and entry["function"] == "nrt_execute"}
    assert log[-1].number % 2 == 0 and of[1][-1].number % 2, "one kind of inference is not the latest one"
    for options, wanted in ((("--core", "0"), of[0][-1:]),
                            (("--core", "1"), of[1][-1:]),
                            (("--program", "neuron-0.2"), of[2][-1:]),
                            (("--program", handle), of[1][-1:]),
                            (("--last", "1"), log[-1:]),
                            (("--last", "9"), log[-9:]),
                            (("--last", "5", "--program", "neuron-0.0", "--core", "0"), of[0][-5:]),
                            (("--last", "1000", "-c", "2"), of[2])):
        check_latest(watcher.save(*options), log, wanted)
    check_times_asked_for(watcher, log, of[1])
    check_none(watcher)
    end(workload)
    watcher.stop()


def check_times_asked_for(watcher, log, of_program):
    """The last so much of time, of all and of a program."""
    for known, options in ((log, ()), (of_program, ("--core", "1"))):
        before = clock_now()
        span = before - known[len(known) // 2].begin
        saved = watcher.save("--time", "%dns" % span, *options)
        after = clock_now()
        if options:
            check_latest(saved, log, [one for one in known if one in executions_in(saved.trace, log)])
            assert 0 < saved.inferences <= len(known) / 2 + 1, saved.inferences
            assert {one for one in known if one.begin > after - span} <= executions_in(saved.trace, log)
        else:
            assert before - span - CLOCKS <= saved.begin <= after - span + CLOCKS, (before, after, span, saved.begin)
            found = check_suffix(saved, log)
            assert 3 < len(found) <= len(log) / 2 + 1
            names = {call.program for call in saved.trace.runs()}
            assert names == {"neuron-0.%d" % number_of(one) for one in found}, names


def check_none(watcher):
    """What is not there: said, and no file."""
    files = len(watcher.files())
    for options in (("--core", "77"), ("--core", "0", "-P", "neuron-0.1"), ("-P", "0x1234"), ("-P", "neuron-0"),
                    ("-p", "1", "-n", "1"), ("-n", "1", "-t", "1ns")):
        refused = watcher.ask("save", *options, status=1)
        assert "there is no such inference in the window" in refused.stderr and not refused.stdout, refused.stderr
    assert len(watcher.files()) == files


def test_process():
    """Of two processes, one: all that it did, and the latest inference of it."""
    workloads = [standin(runtime, "--calls", "20", "--log-times", "--linger") for runtime in ("nrt", "qaic")]
    watcher = Collector("-p", ",".join(str(one.pid) for one in workloads), *ALL)
    results = [finish(one) for one in workloads]
    watcher.wait_inferences(40)
    for workload, result, runtime in zip(workloads, results, ("nrt", "qaic")):
        saved = watcher.save("-p", str(workload.pid))
        compare(runtime, result, saved.trace, totals_in="recorded")
        assert {call.pid for call in saved.trace.calls} == {workload.pid}
        latest = watcher.save("--pid", str(workload.pid), "--last", "1")
        log = executions(result[0])
        assert executions_in(latest.trace, log) == {log[-1]} and latest.inferences == 1
    for workload in workloads:
        end(workload)
    watcher.stop()


# One thread enqueues inferences, another waits for them, in the other order; the times of each, and its object.
CROSSED = """
import ctypes, json, os, sys, threading, time

library = ctypes.CDLL(sys.argv[1])
handle, null = ctypes.c_void_p, None

def made(function, *arguments):
    result = handle()
    before, after = [(first, second) for first, second in [arguments]][0]
    assert not getattr(library, function)(*before, ctypes.byref(result), *after)
    return result

print(json.dumps({"ready": True, "pid": os.getpid()}), flush=True)
sys.stdin.readline()
context = made("qaicCreateContext", (), (null, 1, ctypes.byref(ctypes.c_int32(100)), null, null, null, null))
code = ctypes.create_string_buffer(4096)
qpc = made("qaicOpenQpc", (), (code, ctypes.c_size_t(4096), True))
program = made("qaicCreateProgram", (context,), (null, 100, b"crossed", qpc))
queue = made("qaicCreateQueue", (context,), (null, 100))
objects = [made("qaicCreateExecObj", (context,), (null, program, null)) for _ in range(int(sys.argv[2]))]
times = [[one.value] for one in objects]

def enqueue():
    for one, of_it in zip(objects, times):
        of_it += [threading.get_native_id(), time.monotonic_ns()]
        library.qaicEnqueueExecObj(queue, one, null)

def wait():
    for one, of_it in zip(reversed(objects), reversed(times)):
        library.qaicExecObjWaitForCompletion(one, 60000000)
        of_it += [threading.get_native_id(), time.monotonic_ns()]

for step in (enqueue, wait):
    thread = threading.Thread(target=step)
    thread.start()
    thread.join()
print(json.dumps(times), flush=True)
sys.stdin.readline()
"""


def test_latest_across_threads():
    """Inferences that one thread enqueues and another waits for: each with its calls on both threads."""
    count = 6
    workload = Workload([sys.executable, "-c", CROSSED, library_path("libQAic.so"), count])
    watcher = Collector("-p", workload.pid, *ALL)
    workload.go()
    times = json.loads(workload.wait_line("stdout", "[["))
    for last in (1, 2, 4):
        saved = watcher.save("--last", str(last), "--core", "100")  # which the program is on that they are made of
        trace = saved.trace
        trace.check()
        assert saved.inferences == last
        wanted = {(handle, role, tid) for handle, begin_tid, _, end_tid, _ in times[:last]
                  for role, tid in (("enqueue", begin_tid), ("wait", end_tid))}
        calls = {(call.key, call.role, call.tid) for call in trace.calls if call.role in ("enqueue", "wait")}
        assert calls == wanted, (calls, wanted)
        ends = {event["id"]: event["ts"] for event in trace.events if event["ph"] == "e"}
        spans = sorted((nanoseconds(event["ts"]), nanoseconds(ends[event["id"]])) for event in trace.inferences)
        assert len(spans) == last, spans
        for (begin, ended), (_, _, begun, _, waited) in zip(spans, times):
            assert begun <= begin < ended <= waited, (spans, times)
    workload.go()
    assert workload.wait() == 0, workload.stderr
    watcher.stop()
