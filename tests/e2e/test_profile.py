# SPDX-License-Identifier: BSD-2-Clause
"""xputrace profile: N inferences of one program."""

import collections
import os
import re
import signal
import time

from harness import (SLOW, XPUTRACE, Trace, Workload, alone, cases, check_flows, check_nesting, need, process_state,
                     results_in, run, scratch, standin, workload_path)
from reports import (Profile, Stream, check_executions, made_by, read_file, read_samples, read_summary, wall_clock)
from test_endings import small_file_system
from test_onnx import library, native, node_command

MS = 1000 * 1000  # ns


def first_program(number):
    """The nrt workload runs its two programs in turn, each twice: synchronous, then asynchronous."""
    return number // 2 % 2 == 0


def test_samples():
    """Several handles at once on one process, each exact: N samples, --skip, --delay, a summary, by handle."""
    workload = standin("nrt", "--calls", 0, "--rate", 400, "--log-times")
    offset = wall_clock()
    begun = time.time_ns()
    target = ("-p", workload.pid, "--program")
    plain = Profile(*target, "neuron-0.0", "--samples", 50)
    other = Profile(*target, "neuron-0.1", "--samples", 70)
    skipping = Profile(*target, "neuron-0.0", "--samples", 40, "--skip", 30)
    waiting = Profile(*target, "neuron-0.0", "--samples", 20, "--delay", 1500)
    summary = Profile(*target, "neuron-0.1", "--samples", 60, "--summary")
    attached = time.time_ns()
    workload.go()
    block = plain.block()
    late = Profile("-p", workload.pid, "--program", "0x%x" % block.handle, "--samples", 25)
    blocks = {"plain": block, "other": other.block(), "skipping": skipping.block(), "waiting": waiting.block(),
              "late": late.block()}
    rows = read_summary(summary.end().stdout)
    assert process_state(workload.pid) in ("S", "R")
    result, = workload.stop()
    for name, count in (("plain", 50), ("other", 70), ("skipping", 40), ("waiting", 20), ("late", 25)):
        one = blocks[name]
        assert (one.taken, one.requested, one.inferences, one.lost) == (count, count, count, 0), "%s: %s" % (
            name, (one.taken, one.requested, one.inferences, one.lost))
        assert one.ended == "complete" and not one.released and one.every == 1
        assert one.pid == workload.pid and one.runtime == "nrt" and one.process == "workload"
    check_executions(block.samples, result, offset, first_program, 0)
    check_executions(blocks["other"].samples, result, offset, lambda number: not first_program(number), 0)
    check_executions(blocks["skipping"].samples, result, offset, first_program, 30)
    assert blocks["skipping"].skipped == 30 and block.skipped == 0
    check_executions(blocks["waiting"].samples, result, offset, first_program)
    assert begun + 1500 * MS <= blocks["waiting"].samples[0].start <= attached + 2500 * MS, "the delay was %d ms" % (
        (blocks["waiting"].samples[0].start - attached) / MS)
    assert check_executions(blocks["late"].samples, result, offset, first_program) >= 50
    assert blocks["late"].handle == block.handle
    row, = rows
    assert row["name"] == "neuron-0.1"
    assert row["samples"] == row["requested"] == row["totalRoundtripTime(Us)_count"] == "60"


def test_columns():
    """What can be seen of a synchronous and of an asynchronous inference; all else is not available."""
    workload = standin("nrt", "--calls", 40, "--programs", 1)
    profile = Profile("-p", workload.pid, "--program", "neuron-0.0", "--samples", 40)
    workload.go()
    workload.results()
    block = profile.block()
    synchronous = [one.row for one in block.samples if one.row["enqTime(Us)"] == "N/A"]
    asynchronous = [one.row for one in block.samples if one.row["enqTime(Us)"] != "N/A"]
    assert len(synchronous) == len(asynchronous) == 20
    for row in synchronous + asynchronous:
        for column in ("queueDepth", "devInWaitTime(Us)", "devOutWaitTime(Us)"):
            assert row[column] == "N/A", "%s is %s" % (column, row[column])
        assert re.fullmatch(r"\d+\.\d{3}", row["totalRoundtripTime(Us)"]), row["totalRoundtripTime(Us)"]
        assert float(row["totalRoundtripTime(Us)"]) >= 20, "shorter than the device's job"
        assert row["status"] == "NRT_SUCCESS"
    for row in asynchronous:
        assert row["numInfInQueue"] in ("0", "N/A")
        assert 0 < float(row["enqTime(Us)"]) <= float(row["totalRoundtripTime(Us)"])


def test_queue():
    """Inferences in the queue: one of each other thread. Where not all of them are recorded, it is not known."""
    workload = standin("qaic", "--calls", 200, "--threads", 4, "--programs", 1, "--duration-us", 500)
    everything = Stream("-p", workload.pid)
    sampled = Stream("-p", workload.pid, "--sample-every", 4)
    alone = Profile("-p", workload.pid, "--program", "cloud-0.0", "--samples", 200)  # one thread's execution object
    workload.go()
    workload.results()
    for command in (everything, sampled, alone):
        rows = sorted((one.start, one.row["numInfInQueue"]) for block in command.blocks() for one in block.samples)
        queued = [depth for _, depth in rows]
        known = [depth for depth in queued if depth != "N/A"]
        if command is everything or len(known) > 10:
            assert known.count("3") > len(queued) * 0.8, "%s: there were 3 others, seen are %s" % (
                " ".join(command.arguments[1:]), dict(collections.Counter(queued)))
        else:  # at the beginning everything is recorded
            assert "N/A" not in queued[:len(known)], "known, not known, known: %s" % queued[:20]


@cases("nrt", "qaic")
def test_released_before(runtime):
    """Fewer inferences than asked for: the report has them, and says why there are no more."""
    workload = standin(runtime, "--calls", 45, "--programs", 1, "--linger")
    name = {"nrt": "neuron-0.0", "qaic": "cloud-0.0"}[runtime]
    profile = Profile("-p", workload.pid, "--program", name, "--samples", 1000)
    workload.go()
    block = profile.block()  # the process still runs
    assert block.released and block.ended == "released", "released %s, ended %s" % (block.released, block.ended)
    assert (block.taken, block.requested, block.inferences) == (45, 1000, 45)
    assert "released" in profile.stderr, profile.stderr
    workload.go()
    workload.results()


def test_released_at_once():
    """A program that is released without having run: nothing to report."""
    workload = standin("nrt", "--calls", 1, "--programs", 2, "--linger")
    profile = Profile("-p", workload.pid, "--program", "neuron-0.1", "--samples", 10, "-d", "10s")
    workload.go()
    workload.wait_line("stdout", '{"runtime"')
    workload.go()
    workload.results()
    assert profile.wait() == 1, profile.stderr
    assert profile.stdout == ""
    assert "neuron-0.1" in profile.stderr


def test_handle_used_again():
    """The program that was asked for goes, another one gets its handle: that is not sampled."""
    workload = standin("nrt", "--calls", 30, "--programs", 1, "--reload")
    profile = Profile("-p", workload.pid, "--program", "neuron-0.0", "--samples", 100)
    workload.go()
    workload.results()
    block = profile.block()
    assert block.name == "neuron-0.0" and block.taken == 30 and block.released


@cases("SIGINT", "SIGTERM")
def test_stopped_early(name):
    """Ctrl-C before N: the report comes with what there is."""
    workload = standin("nrt", "--calls", 60, "--programs", 1, "--linger", "--load-first")
    profile = Profile("-p", workload.pid, "--program", "neuron-0.0", "--samples", 1000, wait=False)
    profile.wait_line("stderr", "attached")
    profile.signal(getattr(signal, name))
    assert profile.wait() == 1, "there was nothing to report:\n" + profile.stderr
    assert profile.stdout == ""
    workload.go()
    workload.wait_line("stdout", '{"runtime"')
    workload.go()
    workload.results()


def test_stopped_with_some():
    """-d and Ctrl-C end it with what there is."""
    workload = standin("nrt", "--calls", 0, "--programs", 1, "--rate", 500, "--log-times")
    offset = wall_clock()
    interrupted = Profile("-p", workload.pid, "--program", "neuron-0.0", "--samples", 100000)
    # the last to attach: its time runs from then on
    timed = Profile("-p", workload.pid, "--program", "neuron-0.0", "--samples", 100000, "-d",
                    "%dms" % (700 * SLOW))
    workload.go()
    blocks = [timed.block()]
    interrupted.signal(signal.SIGINT)
    blocks.append(interrupted.block())
    result, = workload.stop()
    for block in blocks:
        assert block.ended == "stopped" and not block.released and block.taken > 50, (block.ended, block.taken)
        check_executions(block.samples, result, offset, first=0)


def test_unknown_program():
    """Said, with the programs that there are."""
    workload = standin("nrt", "--calls", 0, "--rate", 500, "--programs", 3)
    profile = Profile("-p", workload.pid, "--program", "neuron", "--samples", 10, "-d", "1s")
    workload.go()
    assert profile.wait() == 1, profile.stderr
    for name in ("neuron-0.0", "neuron-0.1", "neuron-0.2"):
        assert name in profile.stderr, profile.stderr
    assert profile.stdout == ""
    workload.stop()


@cases(("--samples", "0"), ("--samples", "1000000001"), ("--samples", "-1"), ("--samples", "many"),
       ("--type", "speed"), ("--skip", "-1"), ("--delay", "soon"), ("--type", "trace", "--summary"),
       ("--program", "another"))
def test_usage(options):
    """Refused before anything is attached."""
    result = run([need(XPUTRACE, "collector"), "profile", "-p", str(os.getpid()), "--program", "one"] + list(options))
    assert result.status == 2, "status %d:\n%s" % (result.status, result.stderr)
    assert result.stderr.strip(), "no reason"
    assert "attached" not in result.stderr


def test_no_program():
    result = run([need(XPUTRACE, "collector"), "profile", "-p", str(os.getpid())])
    assert result.status == 2 and "--program" in result.stderr, result.stderr


def test_command():
    """profile -- COMMAND: from the first inference on; the program runs on when the samples are there."""
    output = os.path.join(scratch(), "profile.csv")
    profile = Profile("--program", "neuron-0.1", "--samples", 5, "--", workload_path("linked-nrt"), "nrt", "--calls",
                      300, "--rate", 1000, output=output, wait=False)
    block = profile.block()
    assert block.taken == 5 and block.ended == "complete"


def test_two_processes():
    """A profile for each of two processes that run programs of the same name."""
    workloads = [standin("nrt", "--calls", 100, "--programs", 1) for _ in range(2)]
    profiles = [Profile("-p", workload.pid, "--program", "neuron-0.0", "--samples", 60) for workload in workloads]
    for workload in workloads:
        workload.go()
    for workload in workloads:
        workload.results()
    for workload, profile in zip(workloads, profiles):
        block = profile.block()
        assert block.pid == workload.pid and block.taken == 60


def test_name_like_a_handle():
    """name=0x12 is the name 0x12; any other name works that way, too."""
    workload = standin("nrt", "--calls", 20, "--programs", 1)
    profile = Profile("-p", workload.pid, "--program", "name=neuron-0.0", "--samples", 10)
    workload.go()
    workload.results()
    assert profile.block().taken == 10


# ---- traces ----

def test_trace():
    """Spans of that program and what is nested in them; nothing of the other one."""
    workload = standin("cudart", "--calls", 100, "--programs", 2)
    output = os.path.join(scratch(), "profile.json")
    profile = Profile("-p", workload.pid, "--program", "cudart_kernel-0.0", "--samples", 30, "--type", "trace",
                      output=output)
    whole = Profile("-p", workload.pid, "--program", "cudart_kernel-0.0", "--samples", 50, "--type", "trace",
                    output=os.path.join(scratch(), "whole.json"))
    workload.go()
    made = made_by(workload.results())
    assert sum(count for key, count in made.items() if key[1] == "cudart_kernel-0.0") == 50
    for one, count in ((profile, 30), (whole, 50)):
        one.end()
        trace = Trace(one.output)
        runs = trace.runs()
        assert len(runs) == count and {call.program for call in runs} == {"cudart_kernel-0.0"}, "%d runs of %s" % (
            len(runs), {call.program for call in runs})
        check_nesting(trace.events)
        check_flows(trace)
        check_only(trace, runs)
        check_nested(trace, runs)


def check_nested(trace, runs):
    """The driver's launch is in each of the runtime's, once its address was handed out and a probe is there."""
    nested = [sum(1 for call in trace.of("cuLaunchKernel") if call.tid == one.tid and call.layer
                  and one.start <= call.start and call.end <= one.end)
              for one in sorted(runs, key=lambda call: call.start)]
    assert 1 in nested[:round(10 * SLOW)], "nothing is nested in the first runs"
    assert set(nested[nested.index(1):]) == {1}, "what is nested is missing: %s" % nested


def check_only(trace, runs):
    """Every call is one of the runs, lies inside one, or loads or releases a program."""
    for call in trace.calls:
        inside = any(call.tid == one.tid and one.start <= call.start and call.end <= one.end for one in runs)
        assert inside or call.role in ("program.load", "program.unload", "program.name"), (
            "not asked for: %s" % call.event)


def test_trace_of_asynchronous_program():
    """Each inference with its span, its wait, and the arrow between them."""
    workload = standin("nrt", "--calls", 120)
    profile = Profile("-p", workload.pid, "--program", "neuron-0.0", "--samples", 40, "--type", "trace",
                      output=os.path.join(scratch(), "profile.json"))
    workload.go()
    workload.results()
    profile.end()
    trace = Trace(profile.output)
    check_nesting(trace.events)
    check_flows(trace)
    counts = collections.Counter(call.function for call in trace.runs())
    assert sum(counts.values()) == 40 and {call.program for call in trace.runs()} == {"neuron-0.0"}, dict(counts)
    asynchronous = counts["nrta_execute_schedule"]
    assert asynchronous == 20, dict(counts)
    assert len(trace.inferences) == len([event for event in trace.events if event["ph"] == "f"]) == asynchronous
    ends = [event for event in trace.events if event["ph"] == "e" and event["cat"].startswith("inference")]
    assert len(ends) == asynchronous
    assert len([call for call in trace.calls if call.role == "wait"]) >= asynchronous, "waits are missing"
    assert not trace.of("nrt_tensor_write"), "calls that belong to no inference"


def test_trace_by_default():
    """Without -o a trace gets a name of its own in the working folder; -o - is a pipe."""
    folder = scratch()
    result = run([need(XPUTRACE, "collector"), "profile", "--program", "neuron-0.0", "--samples", "5", "--type",
                  "trace", "--", workload_path("linked-nrt"), "nrt", "--calls", "20"], cwd=folder)
    assert result.status == 0, result.stderr
    name, = os.listdir(folder)
    assert len(Trace(os.path.join(folder, name)).runs()) == 5
    result = run([need(XPUTRACE, "collector"), "profile", "--program", "neuron-0.0", "--samples", "5", "--type",
                  "trace", "-o", "-", "--", "sh", "-c", workload_path("linked-nrt") + " nrt --calls 20 >&2"])
    assert result.status == 0, result.stderr
    path = os.path.join(scratch(), "trace.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(result.stdout)
    assert len(Trace(path).runs()) == 5


# ---- ONNX Runtime ----

def test_onnx():
    """A server with a session that was there before: its handle is said, and with that its samples come."""
    server = Workload(node_command("--seconds", 0, "--rate", 50))
    unknown = Profile("-p", server.pid, "--program", "no such", "-d", "1s")
    assert unknown.wait() == 1, unknown.stderr
    handle = re.search(r"0x[0-9a-f]+", unknown.stderr).group(0)
    profiles = [Profile("-p", server.pid, "--program", handle, "--samples", count) for count in (20, 30)]
    for profile, count in zip(profiles, (20, 30)):
        block = profile.block()
        assert block.taken == block.inferences == count and not block.lost and block.runtime == "onnxruntime"
    server.stop()


@alone("measures time")
def test_onnx_by_name():
    """A session from the start, by the name of its model: the mean agrees with the application's own."""
    library()
    command = native("--runs", 60)
    output = os.path.join(scratch(), "onnx.csv")
    profile = Profile("--program", command[2], "--samples", 1000, "--", *command, output=output, wait=False)
    block = profile.block()
    result, = results_in(profile.stdout)
    entry, = [entry for entry in result["libraries"][0]["calls"] if entry["function"] == "Run"]
    assert block.taken == block.inferences == entry["count"] == 60 and block.released
    mean = sum(sample.duration for sample in block.samples) / block.taken
    measured = entry["total_ns"] / entry["count"]
    assert abs(mean - measured) < measured * 0.1, "measured %.1f us, sampled %.1f us" % (measured / 1e3, mean / 1e3)


# ---- attacks ----

def test_killed():
    """SIGKILL of the collector in the middle: the target goes on, the next profile is exact."""
    workload = standin("nrt", "--calls", 0, "--rate", 500, "--programs", 1, "--log-times")
    offset = wall_clock()
    first = Profile("-p", workload.pid, "--program", "neuron-0.0", "--samples", 100000)
    workload.go()
    time.sleep(0.3)
    first.signal(signal.SIGKILL)
    first.wait()
    # its name was seen by the one that was killed only
    seen = Profile("-p", workload.pid, "--program", "neuron-0.0", "-d", "500ms")
    assert seen.wait() == 1
    handle = re.search(r"^ +nrt model 1 .*(0x[0-9a-f]+)$", seen.stderr, re.M).group(1)
    block = Profile("-p", workload.pid, "--program", handle, "--samples", 50).block()
    result, = workload.stop()
    assert block.taken == block.inferences == 50 and not block.lost
    check_executions(block.samples, result, offset)


def test_target_is_killed():
    """What was there is reported."""
    workload = standin("nrt", "--calls", 0, "--rate", 500, "--programs", 1)
    profile = Profile("-p", workload.pid, "--program", "neuron-0.0", "--samples", 100000)
    workload.go()
    time.sleep(0.3)
    workload.signal(signal.SIGKILL)
    workload.wait()
    block = profile.block()
    assert block.released and block.ended == "released" and block.taken > 20, (block.released, block.taken)


def test_full_disk():
    """Nowhere to write to: said, status 1."""
    with small_file_system("4k") as folder:
        workload = standin("nrt", "--calls", 3000, "--programs", 1)
        output = os.path.join(folder, "profile.csv")
        profile = Profile("-p", workload.pid, "--program", "neuron-0.0", "--samples", 2000, output=output)
        workload.go()
        assert profile.wait() == 1, profile.stderr
        assert "no space left" in profile.stderr.lower(), profile.stderr
        workload.results()
        if os.path.exists(output):
            read_samples(read_file(output))
