# SPDX-License-Identifier: BSD-2-Clause
"""record --ops on a toy runtime: classes of all kinds, launches inside operators, and operators left in other ways."""

import collections

from harness import Recorder, cases, record_command, results_in
from operator_toy import description, toy
from operator_checks import check_operators, check_places, parents, spans

NUMBERED = {"rt::Gemm<float>": "Gemm", "rt::Relu": "Relu", "rt::Leaky": "Leaky", "rt::Second": "Second"}
DEPTH_MAX = 16  # calls of a thread that are open at once


def traced(*arguments):
    """What the threads say that they did, by their numbers, and the trace."""
    (result,), trace, _ = record_command(toy(*arguments), "--ops", "-r", description())
    return {thread["tid"]: thread for thread in result["threads"]}, trace, result["pid"]


def done(operators, tid):
    """In the order of their ends, as the program tells it."""
    ended = sorted((span for span in operators if span.tid == tid), key=lambda span: span.end)
    return [[span.label.split("#")[0], int(span.object, 16)] for span in ended]


def check_done(threads, operators):
    """All that was executed, by each thread: where a place is called from that was not known, all wait for its probe."""
    for tid, thread in threads.items():
        made = [[NUMBERED[name], int(address, 16)] for name, address in thread["done"]]
        found = done(operators, tid)
        assert found == made, (len(found), len(made), found[:20], made[:20])


def test_classes():
    """A method that two classes share, a base that is not the first: the object's own table tells."""
    threads, trace, pid = traced("grlsrlg", 50)
    operators = check_operators(trace, pid)
    check_done(threads, operators)
    assert collections.Counter(span.label for span in operators) == {
        name: 50 for name in ("Gemm#1", "Relu#1", "Leaky#1", "Second#1", "Relu#2", "Leaky#2", "Gemm#2")}


def test_launches():
    """Launches lie inside their operator, in the order of the calls, with the kernels' names."""
    threads, trace, pid = traced("2gr3gl", 20)
    check_done(threads, check_operators(trace, pid))
    inside = collections.defaultdict(list)
    launches = spans(trace, "launch", pid)
    for span, around in parents(sorted(spans(trace, pid=pid) + launches, key=lambda one: (one.start, -one.end))):
        if span in launches:
            assert around and around.tid == span.tid, span
            inside[around.label, around.start].append(span.label)
    assert len(inside) == 40
    assert all(labels == ["multiply", "add_bias", "multiply"][:2 if name == "Gemm#1" else 3]
               for (name, _), labels in inside.items()), inside
    counts = {one["name"]: one["calls"] for one in trace.programs(runtime="cuda")}
    assert counts == {"multiply": 60, "add_bias": 40}, counts


def test_threads():
    """Eight at once, each with a program of its own."""
    threads, trace, pid = traced("gr(glsr", 100, 8)
    operators = check_operators(trace, pid)
    assert len(threads) == 8
    check_done(threads, operators)
    assert len({(span.tid, span.program) for span in operators}) == 8
    assert not [span for span in operators if span.unassigned]


def test_nested_too_deep():
    """What lies deeper than is kept is counted as lost; the others are right."""
    threads, trace, pid = traced("g" + 17 * "(g" + "r", 10)
    trace.check()
    assert trace.losses() == {"depth": 10 * (18 - (DEPTH_MAX - 1))}, trace.losses()  # the inference is one of them
    operators = spans(trace, pid=pid)
    (tid, thread), = threads.items()
    kept = [span for span in operators if span.label != "Relu#1"]
    assert len(kept) == 10 * (DEPTH_MAX - 1) and len(operators) - len(kept) == 10
    order = [int(address, 16) for name, address in thread["done"][:18]][::-1]  # outermost first
    for start in range(0, len(kept), DEPTH_MAX - 1):
        assert [int(span.object, 16) for span in kept[start:start + DEPTH_MAX - 1]] == order[:DEPTH_MAX - 1], tid


def jumped(text):
    threads, trace, pid = traced(text, 50)
    (_, thread), = threads.items()
    assert thread["caught"] == 50
    check_done(threads, spans(trace, pid=pid))
    return trace, pid


@cases("gjr", "2gg(gjrs", "g(g(jrl")
def test_left_by_longjmp(text):
    """An operator that is jumped out of has no end: it is not in the trace, and later ones are as they were."""
    check_operators(*jumped(text))


@cases("gj_g_rs", "j_gg(lr", "g(j_g(g_rl")
def test_left_by_longjmp_deeper(text):
    """Later ones are called from deeper on the stack, where the one that was left may still be open."""
    trace, pid = jumped(text)
    trace.check()
    check_places(spans(trace, "execute", pid), spans(trace, pid=pid))


@cases("gtr", "2gg(gtrs", "g(g(trl", "gt_g_rs")
def test_left_by_exception(text):
    """One that throws does what it does untraced: the exception is caught around it; later operators are right."""
    trace, pid = jumped(text)
    trace.check()
    check_places(spans(trace, "execute", pid), spans(trace, pid=pid))


def test_two_collectors():
    """Each traces a program of its own, with the same library: what one places behind calls changes nothing in the other."""
    recorders = [Recorder("--ops", "-r", description(), "--", *toy("gtr", 4000), wait=False) for _ in range(3)]
    traces = [recorder.finish() for recorder in recorders]
    for recorder, trace in zip(recorders, traces):
        (result,) = results_in(recorder.stdout)
        (thread,) = result["threads"]
        assert thread["caught"] == 4000, thread["caught"]
        trace.check()
        check_places(spans(trace, "execute", result["pid"]), spans(trace, pid=result["pid"]))
