# SPDX-License-Identifier: BSD-2-Clause
"""What it costs a program that its code objects are captured: a large load, beside a copy of the same bytes."""

import os
import shutil
import statistics

from tools import wait_until  # it puts the end-to-end tests on the path
from codeobj_loads import MB, Capture, Loads, elf, make, neff

SIZE = 200 * MB
FUNCTIONS = (("hipModuleLoadData", "hip", elf, "its size in its header"),
             ("nrt_load", "nrt", neff, "its size an argument"))
COPIES, EXTRA = 2, 50  # of the object, and ms, that a load may take longer


def milliseconds(lines):
    return [(line["end_ns"] - line["begin_ns"]) / 1e6 for line in lines]


def load_in_turn(program, function, objects, output):
    """One after the other, the next one when the one before is written: the lines of the loads."""
    lines = []
    for one in objects:
        lines += program.load(function, one)
        wait_until(lambda: os.path.isdir(output) and any(name.startswith(one.sha256) for name in os.listdir(output)),
                   "the object is written")
    return lines


def codeobj_section(results, settings, folder):
    """
    Each repetition loads another object, so that each is kept; the copies are into memory that is there. So are the collector's,
    but for the first one.
    """
    results.section("codeobj: %d MB are loaded" % (SIZE / MB))
    for function, runtime, form, how in FUNCTIONS:
        objects = [make(form, SIZE, seed, name="object-%d" % seed, folder=folder)
                   for seed in range(settings.repetitions + 1)]
        program = Loads(runtime)
        copies = milliseconds(program.load("memcpy", objects[0], times=settings.repetitions + 1)[1:])
        untraced = milliseconds(line for one in objects for line in program.load(function, one))
        capture = Capture("-p", program.pid, output=os.path.join(folder, "objects"))
        first, *lines = load_in_turn(program, function, objects, capture.output)
        captured = capture.stop()
        program.quit()
        kept = sum("file" in captured.object_of(load) and not load.get("missing") for load in captured.loads(function))
        held = [load.get("waited_ns", 0) / 1e6 for load in captured.loads(function)[1:]]
        results.add("memcpy", copies, "ms")
        results.add("%s (%s), untraced" % (function, how), untraced, "ms")
        results.add("%s, the first that is captured" % function, milliseconds([first]), "ms")
        results.add("%s, captured" % function, milliseconds(lines), "ms",
                    statistics.median(untraced) + COPIES * statistics.median(copies) + EXTRA,
                    note="%d of %d whole" % (kept, len(lines) + 1))
        results.add("%s: the call waits" % function, held, "ms")
        shutil.rmtree(capture.output)
        for one in objects:
            os.unlink(one.path)
