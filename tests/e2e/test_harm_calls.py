# SPDX-License-Identifier: BSD-2-Clause
"""Calls that are left in other ways than by their return, and crowds of threads and libraries: as untraced, and all in the
trace."""

import collections
import json

from harm import COUNTED, LONG, command_status, compare_calls, compare_outcome, note, program, record
from harness import SLOW, Process, Recorder, cases, run
from operator_toy import description, toy

LIBRARIES = 10000 if LONG else round(2000 / SLOW)
THREADS = round(2000 / SLOW)
BOTH = ("command", "attach")


def only(outcome, trace, pid):
    """Children of a process that is attached to are traced a little later."""
    outcome.children = []
    trace.calls = [call for call in trace.calls if call.pid == pid]


def left(scenario, number, how):
    """Outcome and trace of calls that are left; such calls have no end, and are the only ones that may be lost."""
    words = program("leave", scenario, number)
    outcome, trace = record(how, words) if how in BOTH else record("command", words, "--link", how)
    compare_outcome(outcome, words)
    if how == "attach":
        only(outcome, trace, outcome.pid)
    return outcome, trace


@cases(*BOTH, "multi", "perf")
def test_longjmp(how):
    """longjmp() out of up to three calls, again and again: every call is in the trace; those that are recorded without their
    end, because what was left may be another stack's, are counted."""
    outcome, trace = left("longjmp", 200, how)
    made, loads = outcome.made()[outcome.pid], trace.of("nrt_load")
    assert made["nrt_load"] <= len(loads) <= made["nrt_load"] + outcome.result["left"], (made, len(loads))
    compare_calls(outcome, trace, ("nrt_unload", "nrt_tensor_write"))
    without = len([call for call in trace.calls if call.entry_only])
    note("%s: %d of %d calls have no end" % (how, without, len(trace.calls)))
    assert without <= trace.losses().get("stacks", 0), trace.losses()


@cases(*BOTH)
def test_cancel(how):
    """Threads that are cancelled in a call, deferred and at once, or end themselves there: their cleanup is made."""
    outcome, trace = left("cancel", 60, how)
    compare_calls(outcome, trace)


@cases(*BOTH)
def test_fork(how):
    """fork() in a call: it returns in parent and child, and both go on."""
    outcome, trace = left("fork", 30, how)
    # The load that returns in a child has begun in its parent.
    compare_calls(outcome, trace, ("nrt_execute", "nrt_unload", "nrt_tensor_write") if how == "command" else COUNTED)
    assert len(trace.of("nrt_load", pid=outcome.pid)) == 30
    if how == "command":
        for pid, calls in outcome.children:
            assert calls["nrt_load"] <= len(trace.of("nrt_load", pid=pid)) <= calls["nrt_load"] + 1, pid


@cases(*BOTH)
def test_vfork(how):
    """vfork() in a call, and a program that is executed, a call of the child, or its end."""
    outcome, trace = left("vfork", 30, how)
    compare_calls(outcome, trace)


@cases(*BOTH)
def test_exit(how):
    """exit() in a call, in children and at last in the program: what is registered for it still calls."""
    outcome, trace = left("exit", 5, how)
    compare_calls(outcome, trace, ("nrt_tensor_write",))


@cases(*BOTH)
def test_execute(how):
    """A program executes itself in a call."""
    words = program("leave", "execute", 50)
    outcome, trace = record(how, words)
    compare_outcome(outcome, words)
    made = len(trace.of("nrt_tensor_write"))
    assert 3 <= made <= 53 if how == "attach" else made == 53, made


@cases(*BOTH)
def test_threads(how):
    """2,000 threads at once that call: every call of each is in the trace."""
    words = program("leave", "threads", THREADS)
    outcome, trace = record(how, words)
    compare_outcome(outcome, words)
    assert not trace.losses(), trace.losses()
    compare_calls(outcome, trace)
    calls = collections.Counter(call.tid for call in trace.of("nrt_tensor_write"))
    assert len(calls) == THREADS and set(calls.values()) == {20}, calls.most_common(3)


@cases(*BOTH)
def test_libraries(how):
    """A library is loaded, called and unloaded thousands of times; the probes are there from its first call on."""
    words = program("leave", "dlopen", LIBRARIES if how == "command" else 4 * LIBRARIES)
    outcome, trace = record(how, words)
    compare_outcome(outcome, words)
    made, traced, losses = outcome.result["results"]["dlopen"], len(trace.of("qaicCloseQpc")), trace.losses()
    if how == "command":
        assert traced == made and not losses, "made %d, traced %d, lost %s" % (made, traced, losses)
    else:  # the first ones come before the collector has seen the file, which is mapped for a moment each time
        assert made / 2 <= traced <= made and losses in ({}, {"late_probes": 1}), "made %d, traced %d, lost %s" % (made, traced, losses)


# ---- exceptions ----

def operators_of(text):
    """What each thread of the toy runtime has executed, by names, and how many exceptions it has caught."""
    result = json.loads([line for line in text.splitlines() if line.startswith('{"runtime"')][0])
    return [(thread["caught"], [name for name, _ in thread["done"]]) for thread in result["threads"]]


@cases(*BOTH)
def test_exceptions(how):
    """C++ exceptions and longjmp() through traced operators: the program catches them as untraced."""
    words = toy("grtslj(tg2t(jr", 300, 4)
    alone = run(words)
    assert alone.status == 0 and all(caught >= 2 * 300 for caught, _ in operators_of(alone.stdout)), alone.stdout[:200]
    options = ("--ops", "-r", description())
    if how == "command":
        recorder = Recorder(*options, "--", *words, wait=False)
        trace, text, status = recorder.finish(), recorder.stdout, command_status(recorder)
        assert trace.of("toy_run")
    else:  # probes come while it runs
        target = Process(["sh", "-c", "read line; exec \"$@\"", "sh", *words])
        recorder = Recorder("-p", target.pid, *options)
        target.send("\n")
        status = target.wait()
        text = target.stdout
        recorder.finish()
    assert status == 0, "ended with %d" % status
    assert operators_of(text) == operators_of(alone.stdout)
