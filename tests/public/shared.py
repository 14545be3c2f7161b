#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Captures of code objects that share a session, with loads that wait: shared.py PREFIX, where shared.c was built."""

import os
import pathlib
import sys

import tests

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import codeobj_loads  # noqa: E402 (found only now)
import harness  # noqa: E402

MB = codeobj_loads.MB
OBJECTS = {"hip": ("hipModuleLoadData", codeobj_loads.elf), "nrt": ("nrt_load", codeobj_loads.neff)}


def waiting_loads():
    """20 MB and 500 KB from memory that is overwritten after the call: both captures have every byte, the trace each load."""
    tests.need_root()
    folders = [os.path.join(harness.scratch(), name) for name in ("one", "other")]
    trace = os.path.join(harness.scratch(), "trace.json")
    loads = codeobj_loads.Loads(*OBJECTS)
    program = harness.Process(["./shared-shared", str(loads.pid), *folders, trace])
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


sys.exit(1 if tests.run("shared", [("waiting_loads", waiting_loads)]) else 0)
