# SPDX-License-Identifier: BSD-2-Clause
"""Flame graphs of recordings with made-up stacks: the sums of each format are those of the records, as other readers see them."""

import collections
import json
import os
import re
import xml.etree.ElementTree

from harness import ROOT, XPUTRACE, cases, need, run, scratch
from recordings import (AT_CALL, ENQUEUE, EXECUTE, FRAME, INSIDE, MODULE, OFF_CPU, ON_CPU, WAIT, call_record, sample_record,
                        stack_record, text_record, with_records)

KEPT = os.path.join(ROOT, "tests/e2e/kept/counted.xpt")
START = 4273237000000  # ns, within its duration
RANKER, ENCODER = 0x1000, 0x2000
NAMES = {RANKER: "ranker; v2", ENCODER: "encoder"}
MODULES = {1: {"path": "/usr/lib/libruntime.so", "build_id": "00ff17"}, 2: {"path": "/usr/bin/python3.11"}}
FRAMES = {
    1: {"kind": "native", "function": "run_model<float>(int)", "module": 1, "offset": 4096, "file": "run.cc", "line": 7},
    2: {"kind": "python", "function": "décode", "file": "/srv/app/model.py", "line": 12},
    3: {"kind": "python", "function": "décode", "file": "/srv/app/model.py", "line": 20},
    4: {"kind": "python", "function": "main", "file": "/srv/app/serve.py", "line": 3},
    5: {"kind": "native", "function": "_start", "module": 2, "offset": 64},
    6: {"kind": "unknown", "module": 1, "offset": 8192},
    7: {"kind": "kernel", "function": "futex_wait", "module": 3},
    8: {"kind": "javascript"},
}
STACKS = {1: [1, 2, 4, 5], 2: [1, 3, 4, 5], 3: [7, 6, 4, 5], 4: [8, 99]}
LABELS = {1: "run_model<float>(int)", 2: "décode (model.py:12)", 3: "décode (model.py:20)", 4: "main (serve.py:3)", 5: "_start",
          6: "[unknown] (libruntime.so+0x2000)", 7: "futex_wait", 8: "[javascript]", 99: "[unknown]"}


def definitions():
    records = [text_record(MODULE, 0, 0, module, number) for number, module in MODULES.items()]
    records += [text_record(FRAME, 0, 0, frame, number) for number, frame in FRAMES.items()]
    return records + [stack_record(number, frames, number == 4) for number, frames in STACKS.items()]


class Made:
    """A recording, and what its graphs have to be: {WHAT: {(stack, program): [count, ns]}}."""

    def __init__(self, slow=1, runs=200):
        self.path = os.path.join(scratch(), "made.xpt")
        self.expected = {what: collections.defaultdict(lambda: [0, 0]) for what in ("inference", "offcpu", "cpu")}
        self.durations = []
        records, at = definitions(), START
        for i in range(runs):
            # Every other stack comes before its call, as every other call does before its stack.
            duration = 10000 + 10 * i * (slow if i % 2 else 1)
            stack, program = 1 + i % 2, RANKER if i % 5 else ENCODER
            call = call_record(EXECUTE, at, at + duration, [program, 0])
            inner = call_record(EXECUTE, at + 5, at + 50, [ENCODER, 0], depth=1, flags=INSIDE)
            samples = [sample_record(stack, AT_CALL, at, at, 4), sample_record(2, AT_CALL, at + 5, at + 5, 1),
                       sample_record(3, OFF_CPU, at + 60, at, 777), sample_record(stack, ON_CPU, at + 70, at, 1000)]
            records += samples + [inner, call] if i % 3 else [inner, call] + samples
            self.add("inference", stack, program, 4, 4 * duration)
            self.add("offcpu", 3, program, 1, 777)
            self.add("cpu", stack, program, 1, 1000)
            self.durations.append((duration, stack, program))
            at += duration + 100
        # Asynchronous: from the enqueue to the end of the wait.
        records += [sample_record(4, AT_CALL, at, at, 3), call_record(ENQUEUE, at, at + 50, [RANKER, 17, 0, 0]),
                    call_record(WAIT, at + 100, at + 5000, [17, 1, 0])]
        self.add("inference", 4, RANKER, 3, 3 * 5000)
        with_records(KEPT, self.path, NAMES, records)

    def add(self, what, stack, program, count, value):
        entry = self.expected[what][stack, program]
        entry[0] += count
        entry[1] += value

    def folded(self, what):
        return {";".join(path_of(*key)).replace("ranker; v2", "ranker: v2").replace("futex_wait", "futex_wait_[k]"): value
                for key, (_, value) in self.expected[what].items()}


def path_of(stack, program):
    partial = ["[partial]"] if stack == 4 else []
    return partial + [LABELS[frame] for frame in reversed(STACKS[stack])] + [NAMES[program]]


def report(path, *options, status=0):
    result = run([need(XPUTRACE, "collector"), "report", path, "-q", *options])
    assert result.status == status, (result.status, result.stderr)
    return result.stdout if not status else result.stderr


def folded(text, columns=1):
    lines = {}
    for line in text.splitlines():
        name, *values = line.rsplit(" ", columns)
        assert name not in lines, line
        lines[name] = int(values[0]) if columns == 1 else tuple(map(int, values))
    return lines


@cases("inference", "offcpu", "cpu")
def test_folded(what):
    made = Made()
    assert folded(report(made.path, "--flame", what)) == made.folded(what)


def test_device_unknown():
    """No driver's events: nothing has device time, which is said."""
    made = Made()
    result = run([need(XPUTRACE, "collector"), "report", made.path, "-q", "--flame", "device"])
    assert result.status == 0 and not result.stdout and "device time of inferences is 0" in result.stderr, result
