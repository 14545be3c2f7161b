# SPDX-License-Identifier: BSD-2-Clause
"""A trace does no harm: programs that check themselves say the same as untraced, and nobody sees them stopped."""

import os
import shutil

from codeobj_loads import Capture
from harm import Outcome, States, Target, command_status, compare_calls, compare_outcome, program, record, record_command
from harness import (SLOW, XPUTRACE, Process, Recorder, Skip, Trace, cases, compare, need, results_in, run, scratch,
                     workload_path)

KB, MB = 1 << 10, 1 << 20
LATE = ("--late", round(500 * SLOW))


# ---- threads that wait ----

@cases("command", "attach")
def test_checks(how):
    """No wait of another thread is interrupted, early or late, while libraries are loaded and children forked."""
    forks = 10
    words = program("checks", "--loads", 60, "--churn", 40, "--forks", forks, *LATE)
    outcome, trace = record(how, words)
    compare_outcome(outcome, words)
    losses = trace.losses()
    late = losses.pop("late_probes", 0)
    assert not losses and late <= (forks if how == "attach" else 0), (losses, late)
    if how == "attach":
        outcome.children = []  # traced from their first call on, or a little later
        trace.calls = [call for call in trace.calls if call.pid == outcome.pid]
    compare_calls(outcome, trace)


WAIT = ("--code-wait-limit", "10s")  # other programs may use the machine, too: all bytes are expected here


def capture_of(how, words):
    """Outcome of a program that loads code objects, and the capture of these."""
    if how == "command":
        capture = Capture(*WAIT, "--", *words, wait=False, start_new_session=True)
        with States(capture.pid) as states:
            captured = capture.finish()
        outcome = Outcome(capture.stdout, command_status(capture))
        outcome.states = states.seen
        return outcome, captured
    target = Target(words)
    capture = Capture(*WAIT, "-p", target.pid)
    with States(target.pid) as states:
        target.go()
        outcome = target.outcome()
        captured = capture.finish()
    outcome.states = states.seen
    return outcome, captured


@cases("command/500 KB", "attach/500 KB", "command/20 MB", "attach/20 MB")
def test_checks_code_objects(case):
    """The same while large code objects are loaded and read; the bytes of all of them are captured."""
    how, size = case.split("/")
    large = size == "20 MB"
    words = program("checks", "--size", 20 * MB if large else 500 * KB, "--loads", 8 if large else 50, *LATE)
    outcome, captured = capture_of(how, words)
    compare_outcome(outcome, words)
    captured.check()
    loads = captured.loads("nrt_load")
    assert len(loads) == outcome.result["calls"]["nrt_load"], (len(loads), outcome.result)
    missing = [load for load in loads if load.get("missing") or not captured.object_of(load).get("file")]
    assert not missing, "of %d loads %d have bytes missing: %s" % (len(loads), len(missing), missing[0])


def test_checks_recorded_code_objects():
    """record --codeobj of a command with large objects."""
    words = program("checks", "--size", 4 * MB, "--loads", 20, *LATE)
    outcome, trace = record_command(words, "--codeobj")
    compare_outcome(outcome, words)
    compare_calls(outcome, trace)


# ---- parents ----

@cases("command", "attach")
def test_parent_of_family(how):
    """A parent sees no stop of its children, and as many SIGCHLD as untraced."""
    words = program("parent", "family", 8)
    outcome, trace = record(how, words)
    compare_outcome(outcome, words)
    if how == "command":
        compare_calls(outcome, trace)


@cases("command", "attach")
def test_parent_stops_children(how):
    """Parents and children that synchronise by SIGSTOP and SIGCONT: who is stopped stays so until the parent says."""
    words = program("parent", "sync", 3)
    outcome, trace = record(how, words)
    compare_outcome(outcome, words, may_stop=True)
    if how == "command":
        compare_calls(outcome, trace)


# ---- debuggers ----

def tool(name):
    if not shutil.which(name):
        raise Skip("%s is not installed" % name)
    return name


WORKLOAD = ("nrt", "--calls", "50", "--threads", "2")
GDB = ("-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "set print thread-events off", "-ex", "run")


def made_by(process):
    """What the workload says: calls whose number does not depend on time, and the whole."""
    results = results_in(process.stdout)
    assert len(results) == 1, "%s%s" % (process.stdout, process.stderr)
    return sorted((entry["function"], entry.get("program", ""), entry.get("status", 0), entry["count"])
                  for entry in results[0]["libraries"][0]["calls"] if entry["function"] != "nrta_is_completed"), results


def compare_debugged(words):
    """record -- DEBUGGER ... PROGRAM."""
    alone = run(list(words))
    recorder = Recorder("--", *words, wait=False)
    trace = recorder.finish(alone.status)
    assert command_status(recorder) == alone.status, recorder.stdout + recorder.stderr
    calls, results = made_by(recorder)
    assert calls == made_by(alone)[0]
    compare("nrt", results, trace)


def test_record_gdb():
    """gdb as the command: it gets to the end of its program, all calls of which are in the trace."""
    compare_debugged([tool("gdb"), *GDB, "-ex", "bt", "--args", workload_path("linked-nrt"), *WORKLOAD])


def test_record_strace():
    """The same with strace."""
    compare_debugged([tool("strace"), "-f", "-o", os.path.join(scratch(), "calls"), workload_path("linked-nrt"),
                      *WORKLOAD])


def compare_inside(debugger, text=""):
    """DEBUGGER ... xputrace record -- PROGRAM."""
    output = os.path.join(scratch(), "trace.json")
    words = [workload_path("linked-nrt"), *WORKLOAD]
    process = run([*debugger, need(XPUTRACE, "collector"), "record", "-o", output, "--", *words])
    assert process.status == 0 and text in process.stdout, "ended with %d:\n%s%s" % (
        process.status, process.stdout, process.stderr)
    calls, results = made_by(process)
    assert calls == made_by(run(words))[0]
    compare("nrt", results, Trace(output))


def test_gdb_of_record():
    """gdb runs the collector, which runs a program."""
    compare_inside([tool("gdb"), *GDB, "--args"],
                   text="exited normally")


def test_strace_of_record():
    """strace follows the collector and its command."""
    compare_inside([tool("strace"), "-f", "-o", os.path.join(scratch(), "calls")])


@cases("gdb", "strace")
def test_attach_to_debugged(name):
    """record -p of a program that a debugger runs: both have what they have without the other."""
    words = [workload_path("linked-nrt"), "nrt", "--wait-for-go", "--calls", "50"]
    start = [tool("gdb"), *GDB, "--args"] \
        if name == "gdb" else [tool("strace"), "-f", "-o", os.path.join(scratch(), "calls")]
    process = Process([*start, *words])
    pid = int(process.wait_line("stdout", '"ready"').partition('"pid":')[2].partition("}")[0].partition(",")[0])
    recorder = Recorder("-p", pid)
    process.send("\n")
    assert process.wait() == 0, process.stdout + process.stderr
    compare("nrt", made_by(process)[1], recorder.finish())
