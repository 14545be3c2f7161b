# SPDX-License-Identifier: BSD-2-Clause
"""record --ops on operators that are functions without an object, in a stand-in for libtorch."""

import collections

from harness import cases, record_command, workload_path
from operator_checks import check_operators, difference, parents


def traced(text, runs=50, threads=1, *options):
    """What the threads say that they did, by their numbers, and the operators."""
    command = [workload_path("operators/functions"), text, str(runs), str(threads)]
    (result,), trace, _ = record_command(command, "--ops", *options)
    operators = check_operators(trace, result["pid"])
    assert all(span.unassigned and span.object is None for span in operators), operators
    return {thread["tid"]: thread for thread in result["threads"]}, operators, trace


def done(operators, tid):
    """In the order of their ends, as the program tells it."""
    return [span.label for span in sorted((span for span in operators if span.tid == tid), key=lambda span: span.end)]


def check_done(threads, operators):
    for tid, thread in threads.items():
        assert done(operators, tid) == thread["done"], (tid, thread["done"], done(operators, tid))


@cases("session", "multi", "perf")
def test_links(link):
    """Every operator with its name, whichever way probes are linked: its own place tells which one it is."""
    threads, operators, trace = traced("almz", 50, 1, "--link", link)
    check_done(threads, operators)
    classes = {call.event["args"]["class"] for call in trace.calls if call.role == "operator"}
    assert classes == {"at::_ops::" + name for name in ("add_Tensor", "mm", "linear", "zero_")}, classes


def test_nested():
    """They lie in those that called them."""
    threads, operators, _ = traced("lz")
    check_done(threads, operators)
    around = collections.Counter((span.label, parent.label if parent else None) for span, parent in parents(operators))
    expected = collections.Counter({("linear", None): 50, ("mm", "linear"): 50, ("add_Tensor", "mm"): 100,
                                    ("zero_", None): 50})
    assert around == expected, difference(expected, around)


@cases("t", "atlt", "mttz")
def test_exceptions(text):
    """What throws does so as it does untraced, and has no end; what it has called before is there."""
    threads, operators, _ = traced(text)
    assert all(thread["caught"] == 50 * text.count("t") for thread in threads.values())
    check_done(threads, operators)


def test_threads():
    """Eight at once: each has its own, from the first on."""
    threads, operators, _ = traced("lamt", 200, 8)
    assert len(threads) == 8
    for tid, thread in threads.items():
        assert done(operators, tid) == thread["done"], tid
