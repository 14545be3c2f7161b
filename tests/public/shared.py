#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Captures of code objects, and recordings of samples, that share a session: shared.py PREFIX, where shared.c was built."""

import os
import pathlib
import sys

import tests

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import codeobj_loads  # noqa: E402 (found only now)
import harness  # noqa: E402
import operator_checks  # noqa: E402
import operator_toy  # noqa: E402

MB = codeobj_loads.MB
OBJECTS = {"hip": ("hipModuleLoadData", codeobj_loads.elf), "nrt": ("nrt_load", codeobj_loads.neff)}


def waiting_loads():
    """20 MB and 500 KB from memory that is overwritten after the call: both captures have every byte, the trace each load."""
    tests.need_root()
    folders = [os.path.join(harness.scratch(), name) for name in ("one", "other")]
    trace = os.path.join(harness.scratch(), "trace.json")
    loads = codeobj_loads.Loads(*OBJECTS)
    program = harness.Process(["./shared-shared", "codes", str(loads.pid), *folders, trace])
    program.wait_line("stdout", "started")
    made = []
    for function, form in OBJECTS.values():
        for seed, size in enumerate((20 * MB, 500 << 10)):
            given = codeobj_loads.make(form, size, seed)
            line, = loads.load(function, given, spoil="inside")
            made.append((line, given))
    loads.quit()
    assert program.wait() == 0, program.stderr
    for folder in folders:
        captured = codeobj_loads.Captured(folder)
        for function, _ in OBJECTS.values():
            assert len(captured.loads(function)) == len(made) / len(OBJECTS), captured.index
        for line, given in made:
            codeobj_loads.check_whole(captured, line, given, True)
    functions = [function for function, _ in OBJECTS.values()]
    found = [event for event in harness.Trace(trace).events if event.get("cat") == "codeobj"
             and event["name"].startswith("load ") and event["args"].get("function") in functions]
    assert sorted(event["args"]["sha256"] for event in found) == sorted(given.sha256 for _, given in made), found


def traces(runtime, *command):
    """What all, a sample and a choice of one session are, and what the stream beside them counted: inferences, samples."""
    folder = harness.scratch()
    program = harness.Process(["./shared-shared", "samples", folder, runtime, *command])
    assert program.wait() == 0, program.stderr
    made = [harness.Trace(os.path.join(folder, name + ".json")) for name in ("all", "samples", "chosen")]
    for trace in made:
        trace.check()
        assert not trace.losses(), trace.losses()
    return made, [int(word) for word in program.lines["stdout"][-1].split()]


def counts(trace):
    return {one["name"]: (one["calls"], one["recorded"], one["left_out"]) for one in trace.programs()}


def samples():
    """One inference in four, and one of two programs, beside a recording of all and a stream of every third."""
    tests.need_root()
    (whole, some, chosen), (inferences, taken) = traces(
        "", harness.workload_path("workload"), "nrt", "--programs", "2", "--calls", "401")
    made = {name: calls for name, (calls, _, _) in counts(whole).items()}
    assert len(made) == 2 and inferences == sum(made.values()) > 400, (made, inferences)
    assert taken == sum(-(-calls // 3) for calls in made.values()), taken
    assert counts(whole) == {name: (calls, calls, 0) for name, calls in made.items()}, counts(whole)
    assert counts(some) == {name: (calls, -(-calls // 4), calls - -(-calls // 4)) for name, calls in made.items()}
    wanted, = (name for name in made if name.endswith("0"))
    assert counts(chosen) == {name: (calls, calls, 0) if name == wanted else (calls, 0, calls)
                              for name, calls in made.items()}, counts(chosen)


def operators():
    """Operators are with the samples that they lie in, and with no others."""
    tests.need_root()
    (whole, some, _), _ = traces(operator_toy.description(), *operator_toy.toy("gr(glsr", 101, 3))

    def found(trace):
        return {(span.tid, span.start, span.end, span.label) for span in operator_checks.spans(trace)}

    runs = {}
    for run in operator_checks.spans(whole, "execute"):
        runs.setdefault(run.tid, []).append(run)
    assert len(runs) == 3 and all(len(one) == 101 for one in runs.values()), runs
    taken = {(run.tid, run.start, run.end) for one in runs.values() for run in one[::4]}
    assert {(run.tid, run.start, run.end) for run in operator_checks.spans(some, "execute")} == taken
    inside = {one for one in found(whole)
              if any(tid == one[0] and start <= one[1] and one[2] <= end for tid, start, end in taken)}
    assert found(some) == inside and len(inside) > 380, (len(found(some)), len(inside), len(found(whole)))


sys.exit(1 if tests.run("shared", [("waiting_loads", waiting_loads), ("samples", samples),
                                  ("operators", operators)]) else 0)
