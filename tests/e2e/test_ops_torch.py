# SPDX-License-Identifier: BSD-2-Clause
"""record --ops on PyTorch without a program: its operators against its own profiler, which watches the same ones."""

import collections
import os
import shutil
import subprocess
import sys

import python_root
from harness import ROOT, Skip, cases, paired, record_command
from operator_checks import check_sums, difference, parents, spans

EAGER = os.path.join(ROOT, "tests", "workload", "operators", "eager.py")
ROUNDS = 20
THROWN = ("matmul", "mm")  # what each round leaves by an exception, from the outside to the inside
ERROR = "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"
RELEASES = ("distribution", "next release")
_python = []


def python(release):
    """The command that is Python with PyTorch: the tests' own need not be the distribution's."""
    if release == RELEASES[1]:
        return python_root.direct()
    if not _python:
        candidates = [sys.executable, "/usr/bin/python3", shutil.which("python3")]
        _python.extend(path for path in candidates if path and not subprocess.run(
            [path, "-c", "import torch"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode)
    if not _python:
        raise Skip("PyTorch is not installed (tests/deps.sh torch)")
    return _python[:1]


def traced(release, threads):
    """What the program says, the trace, and its operators by thread."""
    (result,), trace, _ = record_command([*python(release), EAGER, str(ROUNDS), str(threads)], "--ops",
                                         "--wait-limit", "30s")
    trace.check()
    assert not trace.losses(), trace.losses()
    assert result["error"] == ERROR, result["error"]
    operators = spans(trace, pid=result["pid"])
    check_sums(trace, operators, result["pid"])
    by_thread = collections.defaultdict(list)
    for span in operators:
        by_thread[span.tid].append(span)
    return result, by_thread


def short(result, span):
    """What the profiler calls it: all overloads are one to it."""
    return result["names"][span.label]


def counted(result, operators):
    return collections.Counter(short(result, span) for span in operators)


def expected(result):
    """Those that throw are in the profile, and have no end in the trace."""
    made = collections.Counter(name for name, _, _ in result["seen"])
    made.subtract({name: ROUNDS for name in THROWN})
    return made


def check_times(result, operators):
    """With one difference of the clocks, every execution in the profile lies inside its span: the probes are around it.

    Those that throw are not asked for, nor what has the name of one. The profiler cuts times to whole us."""
    seen, least, most = collections.defaultdict(list), -float("inf"), float("inf")
    for name, start, duration in sorted(result["seen"], key=lambda one: (one[1], -one[2])):
        seen[name].append((start * 1000, (start + duration) * 1000))
    for span in operators:
        if short(result, span) not in THROWN:
            start, end = seen[short(result, span)].pop(0)
            most = min(most, start + 1000 - span.start)
            least = max(least, end - 1000 - span.end)
    assert not [name for name, left in seen.items() if left and name not in THROWN]
    assert least <= most, "no difference of the clocks fits: at least %d and at most %d ns" % (least, most)


@paired("threads wait while many probes are placed, which others at the same time slow down")
@cases(*RELEASES)
def test_profiler(release):
    """Every operator as often as PyTorch's profiler says, and around what it has measured; the same exception."""
    result, by_thread = traced(release, 1)
    (operators,) = by_thread.values()
    made, found = expected(result), counted(result, operators)
    assert +made == +found, difference(+made, +found)
    check_times(result, operators)


@paired("threads wait while many probes are placed, which others at the same time slow down")
@cases(*RELEASES)
def test_nesting(release):
    """Operators lie inside those that call them, on their threads."""
    _, by_thread = traced(release, 1)
    (operators,) = by_thread.values()
    counts = collections.Counter(span.label for span in operators)
    inside = collections.Counter((parent.label if parent else None, span.label) for span, parent in parents(operators))
    assert inside["linear", "addmm"] == inside["linear", "t"] == 2 * ROUNDS, inside
    assert inside["t", "transpose_int"] == counts["t"] == counts["transpose_int"], inside
    assert inside["conv2d", "convolution"] == inside["convolution", "_convolution"] == ROUNDS, inside
    assert inside[None, "cat"] == ROUNDS, inside


@paired("threads wait while many probes are placed, which others at the same time slow down")
@cases(*RELEASES)
def test_threads(release):
    """Each thread has what it executes, as often as the profiler says of the one that it watches."""
    result, by_thread = traced(release, 3)
    assert len(result["tids"]) == 2
    made = +expected(result)
    for tid in result["tids"]:
        found = counted(result, by_thread[tid])
        assert made == found, "thread %d:\n%s" % (tid, difference(made, found))
