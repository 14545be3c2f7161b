# SPDX-License-Identifier: BSD-2-Clause
"""Many processes that use one file: what a call costs in one of them and in one that is not traced, and attaching to all."""

import os

from tools import DESCRIPTION, Loop, Recorder

COUNTS = (1, 10, 100, 1000)
FUNCTION = "bench_plain"
FLAT, ATTACH_LIMIT, DETACH_LIMIT = 1.1, 300, 300  # times, ms, ms


def measure(loops, other, milliseconds, output):
    """ns a call: of the first, and of the untraced one; ms: placing probes in all, removing them."""
    recorder = Recorder(",".join(str(loop.pid) for loop in loops), output, "-r", DESCRIPTION, "--only", "bench")
    traced, untraced = loops[0].cost(FUNCTION, milliseconds)[0], other.cost(FUNCTION, milliseconds)[0]
    tracing = recorder.finish()["tracing"]
    os.unlink(output)
    return traced, untraced, tracing["attach_ns"] / 1e6, tracing["detach_ns"] / 1e6


def families_section(results, settings, folder):
    results.section("traced processes that use one file")
    other = Loop()
    loops = [Loop() for _ in range(max(COUNTS))]
    output = os.path.join(folder, "families.json")
    measured = {count: [] for count in COUNTS}
    try:
        alone = [other.cost(FUNCTION, settings.cost_milliseconds)[0] for _ in range(settings.repetitions)]
        for _ in range(settings.repetitions):
            for count in COUNTS:
                measured[count].append(measure(loops[:count], other, settings.cost_milliseconds, output))
    finally:
        for loop in loops + [other]:
            loop.kill()
    results.add("a call without any tracing", alone, "ns")
    columns = {count: list(zip(*rows)) for count, rows in measured.items()}
    for count in COUNTS:
        results.add("a recorded call, with %d traced" % count, columns[count][0], "ns")
        results.add("a call of an untraced process, with %d traced" % count, columns[count][1], "ns")
    results.add("a recorded call, with %d traced / with %d" % (COUNTS[-1], COUNTS[1]),
                [one / few for one, few in zip(columns[COUNTS[-1]][0], columns[COUNTS[1]][0])], "times", FLAT)
    results.add("placing the probes in %d processes" % COUNTS[-1], columns[COUNTS[-1]][2], "ms", ATTACH_LIMIT)
    results.add("removing them", columns[COUNTS[-1]][3], "ms", DETACH_LIMIT)
