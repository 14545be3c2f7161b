# SPDX-License-Identifier: BSD-2-Clause
"""Coroutines and signal stacks: calls that are open on one stack of a thread while others are made on another one.

A schedule is what tests/workload/harm/stacks does: stacks 0 to 4 lie above each other, 2 is the thread's own."""

import os

from harm import Target, compare_outcome, program, record, untraced
from harness import ROOT, XPUTRACE, Recorder, cases, need, run

SCHEDULES = {
    "coroutine above": ("0(2.0)", "0(3.0)", "2(3.2)", "3(4.3)", "0(1(2(3(4.3)2)1)0)", "0(2(2.2.2)0)", "0(4.4.4(4.4)0)"),
    "coroutine below": ("2(0.2)", "3(2.3)", "4(0.4)", "4(3(2(1(0.1)2)3)4)", "2(0(0.0)2.2)"),
    "coroutines above and below": ("2(0(4.0)2)", "2(4(0.4)2)", "1(3(0(4(2.4)0)3)1)", "0(3.3.0.1.2.4.0)2."),
    "coroutines in turn": ("0(3(0)3)", "2(4(2)4)", "0(1(2(0)1)2)", "0(2(3.0)2.2)"),
    "abandoned coroutine": ("0(2.2(2.2)2.", "4(2.2(2.2)2.", "0(4(2.2(2.2)2."),
    "signal stack above": ("2h", "2(2h2)", "2(2(2h2)2h2)", "0(0h0)", "0(2(2h2)0)2."),
    "signal stack below": ("2l", "2(2l2)", "2(2(2l2)2l2)", "4(4l4)", "4(2(2l2)4)2."),
    "siglongjmp": ("2H2.", "2L2.", "2(2H2.2)2.", "2(2L2.2)2.", "2(2(2H2.2)2L2)2."),
    "signals at any time": ("2a", "2b", "2(2a2)", "2(2b2)", "0(2a0)"),
}
MAIN = {  # stacks below that of the main thread
    "coroutine above": ("0(2.0)", "0(3.0)", "0(1(2.1)0)", "0(2(2.2)0)"),
    "coroutine below": ("2(0.2)", "2(4(0.4)2)", "2(2(3.2)2)"),
    "coroutines in turn": ("0(2(0)2)", "0(3(0)3)"),
    "signal stack below": ("2h", "2(2h2)", "2(2(2l2)2h2)", "2(2H2.2)2."),
    "signals at any time": ("2a", "2(2b2)"),
}
# Not here, because such a program dies: in turn and downwards, as "4(0(4)0)". The manual says so.


def check_schedules(how, words):
    """The same as untraced; of each call at least its begin is in the trace, and those without an end are counted."""
    assert untraced(words).status == 0, untraced(words).compared
    outcome, trace = record(how, words)
    compare_outcome(outcome, words)
    for name, made in outcome.made()[outcome.pid].items():
        left = outcome.result["left"] if name == "nrt_load" else 0
        traced = len(trace.of(name, pid=outcome.pid))
        # A signal has come between a call's return and its record, or the calls were faster than the collector.
        lost = trace.losses().get("open", 0) - left + trace.losses().get("ring_full", 0)
        assert made - lost <= traced <= made + left, "%s: made %d, left %d, traced %d, lost %s" % (
            name, made, left, traced, trace.losses())
    without = len([call for call in trace.calls if call.entry_only])
    assert without <= trace.losses().get("stacks", 0), "%d have no end: %s" % (without, trace.losses())


@cases(*["%s/%s" % (name, how) for name in SCHEDULES for how in ("command", "attach")])
def test_stacks(case):
    """On a thread, with stacks above and below its own."""
    name, how = case.split("/")
    check_schedules(how, program("stacks", *SCHEDULES[name]))


@cases(*MAIN)
def test_main_thread(name):
    """On the main thread, whose stack lies above all others."""
    check_schedules("command", program("stacks", "--main", *MAIN[name]))


def check_several(collectors, targets):
    words = program("stacks", "0(2.0)", "0(3(0)3)", "2(2h2)", "2(4(0.4)2)")
    running = [Target(words) for _ in range(targets)]
    parts = [running] if collectors == 1 else [[running[i % targets]] for i in range(collectors)]
    recorders = [Recorder("-p", ",".join(str(target.pid) for target in part)) for part in parts]
    for target in running:
        target.go()
    for target in running:
        compare_outcome(target.outcome(), words)
    for recorder in recorders:
        recorder.finish()


@cases("2 targets", "3 targets")
def test_several_targets(case):
    """Other processes that are traced do not change what happens to returns."""
    check_several(1, int(case[0]))


def test_several_collectors():
    """The same for another collector of the same program."""
    check_several(2, 1)


@cases("multi", "perf")
def test_limitation(link):
    """These links cannot leave out a return: the manual and the check say so."""
    with open(os.path.join(ROOT, "user/cli/man/xputrace-record.1"), encoding="utf-8") as file:
        manual = file.read()
    at = manual.find("coroutines")
    assert at >= 0 and link in manual[max(0, at - 1000):at + 1000], "the manual does not name the limitation"
    assert "A call that is still open on a coroutine's stack when the call around it returns is not safe" in manual
    assert "coroutines" in run([need(XPUTRACE, "collector"), "check"]).stdout, "the check does not name the limitation"
