# SPDX-License-Identifier: BSD-2-Clause
"""Targets that fork, execute, crash, are killed or exit; several targets, several collectors."""

import os
import signal
import subprocess
import time

from harness import (LATE_RATE, SLOW, XPUTRACE, Process, Recorder, Trace, alone, cases, compare, compare_calls,
                     compare_late, compare_programs, need, paired, process_state, record_command, record_late, run, scratch, standin,
                     workload_path)


@paired("expects probes in time")
def test_forks_after_attach():
    """The target itself is traced exactly, its children from 50 ms after their first call on at the latest."""
    workload = standin("nrt", "--fork", 3, "--rate", LATE_RATE, "--calls", 300, "--log-times")
    results, trace = record_late(workload)
    assert len(results) == 4
    trace.check()
    for result in results:
        if result["pid"] == workload.pid:
            compare_calls([result], trace)
            compare_programs([result], trace)
        else:
            compare_late(result, trace, result["times"][0])


@cases("command", "attach")
@paired("expects probes in time")
def test_children_have_the_table(how):
    """Functions that are found only in the table that the parent was given are traced in its children, too, which do not ask for it."""
    words = ["--fork", "2", "--rate", str(LATE_RATE), "--calls", "300", "--log-times", "--programs", "1"]
    if how == "command":
        results, trace, _ = record_command([workload_path("workload"), "pjrt", *words])
        assert trace.losses() == {"late_probes": 2}, trace.losses()
    else:
        results, trace = record_late(standin("pjrt", *words))
    assert len(results) == 3
    trace.check()
    for result in results:
        compare_late(result, trace, result["times"][0])


@paired("expects probes in time")
def test_executes_after_attach():
    """The target replaces itself; the new program is traced once its library is there."""
    workload = standin("nrt", "--exec", "--rate", LATE_RATE, "--calls", 300, "--log-times", "--programs", 1)
    results, trace = record_late(workload)
    trace.check()
    compare_late(results[0], trace, results[0]["libraries"][0]["mapped"])


def test_several_targets():
    """-p with several PIDs, of different runtimes."""
    workloads = [standin("nrt", "--calls", 50), standin("cuda", "--calls", 50), standin("nrt", "--calls", 30)]
    recorder = Recorder("-p", ",".join(str(one.pid) for one in workloads))
    for workload in workloads:
        workload.go()
    results = [workload.results() for workload in workloads]
    trace = recorder.finish()
    for runtime, result in zip(("nrt", "cuda", "nrt"), results):
        compare(runtime, result, trace)


def test_one_of_several_ends():
    """The recording goes on until the last target has ended."""
    first, second = standin("nrt", "--calls", 20), standin("nrt", "--calls", 20)
    recorder = Recorder("-p", "%d,%d" % (first.pid, second.pid))
    first.go()
    results = first.results()
    assert recorder.child.poll() is None
    second.go()
    results += second.results()
    compare("nrt", results, recorder.finish())


def test_others_are_not_traced():
    """Another process with the same library does not appear."""
    target, other = standin("nrt", "--calls", 30), standin("nrt", "--calls", 30)
    recorder = Recorder("-p", target.pid)
    other.go()
    other.results()
    target.go()
    results = target.results()
    trace = recorder.finish()
    compare("nrt", results, trace)
    assert {call.pid for call in trace.calls} == {target.pid}


@alone("looks at all processes")
def test_all_processes():
    """--all-processes: those that run, and those that come later (from 50 ms after the mapping on)."""
    running = standin("nrt", "--calls", 50)
    recorder = Recorder("--all-processes")
    running.go()
    results = running.results()
    later = standin("qaic", "--calls", 50)
    time.sleep(0.2 * SLOW)  # 50 ms are allowed from the mapping, which happened before the ready line
    later.go()
    late_results = later.results()
    trace = recorder.stop()
    # others may run on this machine and be traced too, so no statement about losses
    compare("nrt", results, trace, lossless=False)
    compare("qaic", late_results, trace, lossless=False)


@alone("looks at all processes")
def test_many_processes():
    """--all-processes with 200 of them: every call of each; the collector stays small, started by one that is large."""
    large = bytearray(os.urandom(4096)) * (256 << 8)
    workloads = [standin("nrt", "--calls", 5, "--threads", 2) for _ in range(200)]
    recorder = Recorder("--all-processes")
    assert len(large) == 256 << 20
    for workload in workloads:
        workload.go()
    results = [result for workload in workloads for result in workload.results()]
    trace = recorder.stop()
    assert len({result["pid"] for result in results}) == 200
    trace.check()
    compare_calls(results, trace, required={"nrt_load", "nrt_unload"})
    compare_programs(results, trace)
    peak = trace.metadata["tracing"]["collector"]["max_rss_bytes"]
    assert 1 << 20 < peak < 128 << 20, "the collector has had %d bytes" % peak


@cases("multi", "perf")
def test_two_collectors(link):
    """Two collectors on one target, one with its choice of links and one with these: both have everything."""
    workload = standin("nrt", "--calls", 80, "--threads", 2)
    recorders = [Recorder("-p", workload.pid), Recorder("-p", workload.pid, "--link", link)]
    workload.go()
    results = workload.results()
    for recorder in recorders:
        compare("nrt", results, recorder.finish())


def test_one_of_two_collectors_ends():
    """The other one goes on."""
    workload = standin("nrt", "--calls", 80)
    first, second = Recorder("-p", workload.pid), Recorder("-p", workload.pid)
    first.stop()
    workload.go()
    results = workload.results()
    compare("nrt", results, second.finish())


def test_attach_again():
    """Attached, detached, attached: the second recording has everything."""
    workload = standin("cuda", "--calls", 60)
    for _ in range(3):
        Recorder("-p", workload.pid).stop()
    results, trace = record_late(workload)
    compare("cuda", results, trace)


def test_target_crashes():
    """The recording ends in order, with the calls up to the crash."""
    workload = standin("nrt", "--calls", 40, "--crash")
    recorder = Recorder("-p", workload.pid)
    workload.go()
    assert workload.wait() == -signal.SIGSEGV
    trace = recorder.finish()
    trace.check()
    assert len(trace.runs()) == 40, "made 40 runs, traced %d" % len(trace.runs())


def test_target_is_killed():
    """The same for SIGKILL; calls that never returned are counted as such."""
    workload = standin("qaic", "--calls", 0, "--threads", 2)
    recorder = Recorder("-p", workload.pid)
    workload.go()
    time.sleep(0.3)
    workload.signal(signal.SIGKILL)
    workload.wait()
    trace = recorder.finish()
    trace.check()
    assert trace.runs()
    assert set(trace.losses()) <= {"open", "unpaired"}, trace.losses()


def test_open_call():
    """A call that has not returned when the recording ends is counted as open."""
    workload = standin("nrt", "--calls", 1, "--duration-us", 3000000, "--programs", 1)
    recorder = Recorder("-p", workload.pid)
    workload.go()
    time.sleep(1)
    trace = recorder.stop()
    assert trace.losses().get("open") == 1, trace.losses()
    assert not trace.runs()
    workload.results()


def test_dies_during_attach():
    """A target that dies while it is attached to: an end in order, whatever the moment."""
    need(XPUTRACE, "collector")
    for i in range(20):
        target = Process([workload_path("workload"), "nrt", "--wait-for-go"])
        target.wait_line("stdout", "ready")
        output = os.path.join(scratch(), "trace.json")
        recorder = Recorder("-p", target.pid, output=output, wait=False)
        time.sleep(i * 0.01)
        target.signal(signal.SIGKILL)
        target.wait()
        status = recorder.wait()
        assert status in (0, 1), "ended with %d:\n%s" % (status, recorder.stderr)
        if status == 1:
            assert recorder.stderr.strip(), "failed without a message"
        if os.path.exists(output):
            Trace(output)


@cases("SIGINT", "SIGTERM")
def test_stopped_by_signal(name):
    """Ctrl-C and SIGTERM end the recording in order; the target goes on."""
    workload = standin("nrt", "--calls", 0, "--rate", 2000)
    recorder = Recorder("-p", workload.pid)
    workload.go()
    time.sleep(0.3)
    trace = recorder.stop(getattr(signal, name))
    trace.check()
    assert trace.runs()
    assert "neuron-0.0" in recorder.stdout, "no summary:\n" + recorder.stdout
    assert process_state(workload.pid) in ("S", "R")
    workload.signal(signal.SIGTERM)
    workload.results()


@paired("measures time")
def test_duration():
    """-d ends the recording after the time given."""
    workload = standin("nrt", "--calls", 0, "--rate", 2000)
    workload.go()
    start = time.monotonic()
    recorder = Recorder("-p", workload.pid, "-d", "1s")
    trace = recorder.finish()
    assert 1 <= time.monotonic() - start < 6 * SLOW, time.monotonic() - start
    trace.check()
    times = [call.end for call in trace.calls]
    assert 0.5e6 < max(times) - min(times) < 2.5e6
    workload.signal(signal.SIGTERM)
    workload.results()


def test_stopped_target():
    """A target that somebody has stopped stays stopped, and can be attached to."""
    workload = standin("nrt", "--calls", 30)
    workload.signal(signal.SIGSTOP)
    recorder = Recorder("-p", workload.pid)
    assert process_state(workload.pid) == "T", "the collector has continued a process that it did not stop"
    workload.signal(signal.SIGCONT)
    workload.go()
    results = workload.results()
    compare("nrt", results, recorder.finish())


def test_thread_id():
    """-p of a thread means its process."""
    workload = standin("nrt", "--calls", 0, "--rate", 2000)
    workload.go()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        threads = [int(name) for name in os.listdir("/proc/%d/task" % workload.pid)]
        others = [thread for thread in threads if thread != workload.pid]
        if others:
            break
    trace = Recorder("-p", others[0], "-d", "1s").finish()
    assert {call.pid for call in trace.runs()} == {workload.pid}
    workload.signal(signal.SIGTERM)
    workload.results()


def test_terminal_status_line():
    """On a terminal there is a status line while it records."""
    import pty
    workload = standin("nrt", "--calls", 0, "--rate", 2000)
    workload.go()
    master, slave = pty.openpty()
    recorder = subprocess.Popen([need(XPUTRACE, "collector"), "record", "-p", str(workload.pid), "-d", "2s", "-o",
                                 os.path.join(scratch(), "trace.json")], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # a terminal that nobody has open any more
            break
        if not part:
            break
        shown += part
    os.close(master)
    assert recorder.wait() == 0
    text = shown.decode("utf-8", "replace")
    assert "calls/s" in text and "lost" in text, text
    workload.signal(signal.SIGTERM)
    workload.results()


def test_summary():
    """The summary has each program with its exact count, and says what was lost."""
    workload = standin("nrt", "--calls", 123, "--programs", 2)
    recorder = Recorder("-p", workload.pid)
    workload.go()
    results = workload.results()
    compare("nrt", results, recorder.finish())
    made = {}
    for library in results[0]["libraries"]:
        for entry in library["calls"]:
            if entry["function"] in ("nrt_execute", "nrta_execute_schedule"):
                made[entry["program"]] = made.get(entry["program"], 0) + entry["count"]
    for name, count in made.items():
        line = [line for line in recorder.stdout.splitlines() if name in line]
        assert line and str(count) in line[0].split(), "%s made %d calls:\n%s" % (name, count, recorder.stdout)
    assert "lost" in recorder.stdout


def test_list_and_check():
    """list and check answer, and find the functions of a running process."""
    import json
    need(XPUTRACE, "collector")
    result = run([XPUTRACE, "list", "runtimes"])
    assert result.status == 0
    for runtime in ("onnxruntime", "opencl", "cuda", "cudart", "hip", "hsa", "nrt", "qaic", "vaccel", "level_zero",
                    "ggml", "llama", "pjrt"):
        assert runtime in result.stdout, "%s is not listed" % runtime
    workload = standin("nrt", "--calls", 1)
    result = run([XPUTRACE, "list", "sites", "-p", str(workload.pid), "--format", "json"])
    assert result.status == 0, result.stderr
    sites = json.loads(result.stdout)
    sites = sites if isinstance(sites, list) else sites["sites"]
    found = {site["function"]: site for site in sites}
    symbols = run(["nm", "-D", "--defined-only", os.path.join(os.path.dirname(workload_path("workload")),
                                                              "lib/libnrt.so.1")]).stdout
    addresses = {line.split()[2]: int(line.split()[0], 16) for line in symbols.splitlines() if " T " in line}
    assert "nrt_execute" in found, sorted(found)
    for name, site in found.items():
        offset = site["offset"] if isinstance(site["offset"], int) else int(site["offset"], 16)
        # .text of such a small library is mapped at its own offset
        assert addresses[name] <= offset < addresses[name] + 64, "%s at %x, probe at %x" % (
            name, addresses[name], offset)
        assert site["class"] in ("optimised", "emulated", "stepped"), site
    assert run([XPUTRACE, "check"]).stdout.strip()
    workload.go()
    workload.results()
