# SPDX-License-Identifier: BSD-2-Clause
"""What does not fit on a small machine: the records of many processors, many processes and programs, and a long time."""

import glob
import os
import re
import time

from load import last_json, memory_peak
from tools import DESCRIPTION, Loop, Recorder, process_cpu

FUNCTION = "bench_plain"
OPTIONS = ("-r", DESCRIPTION, "--only", "bench")
PRODUCERS = (2, 8, 32, 128)  # processors, which write into at most 32 rings
CONSTANT = 1.2  # times, a record of many at most
FLAT_PROGRAMS, FLAT_RATE = 100, 2000
FLAT_SAMPLES = 60  # of memory and CPU time; of each tenth of them the mean counts
FLAT = 1.1  # times, at the end as at the beginning


def resident(pid):
    """VmRSS in MiB."""
    with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as file:
        return int(re.search(r"VmRSS:\s*(\d+)", file.read()).group(1)) / 1024


def recorder_cpu(recorder):
    """CPU time of the threads that it has now, and of those of the processes that it has forked: ns."""
    children = [str(recorder.pid)]
    for path in glob.glob("/proc/%d/task/*/children" % recorder.pid):
        with open(path, encoding="ascii") as file:
            children += file.read().split()
    used = 0
    for path in [path for child in children for path in glob.glob("/proc/%s/task/*/schedstat" % child)]:
        with open(path, encoding="ascii") as file:
            used += int(file.read().split()[0])
    return used


def traced_calls(metadata):
    return sum(program["calls"] for program in metadata["programs"]), sum(program["lost"] for program in metadata["programs"])


def flat(results, settings, folder):
    seconds = settings.flat_seconds
    output = os.path.join(folder, "flat.json")
    memory, used = [], []
    loop = Loop()
    try:
        recorder = Recorder(loop.pid, output, *OPTIONS)
        loop.begin("crowd", FUNCTION, FLAT_PROGRAMS, int(seconds * 1000), FLAT_RATE)
        started = time.monotonic()
        for sample in range(FLAT_SAMPLES):
            time.sleep(max(0, started + sample * seconds / FLAT_SAMPLES - time.monotonic()))
            memory.append(resident(recorder.pid))
            used.append(recorder_cpu(recorder))
        made = loop.answer(seconds)["calls"]
        calls, lost = traced_calls(recorder.finish())
        os.unlink(output)
    finally:
        loop.close()
    tenth = FLAT_SAMPLES // 10
    records = seconds / FLAT_SAMPLES * tenth * FLAT_RATE
    first, last = ((used[at + tenth] - used[at]) / records for at in (tenth, FLAT_SAMPLES - 1 - tenth))
    title = "%s calls/s for %g min, " % ("{:,}".format(FLAT_RATE), seconds / 60)
    results.add(title + "|made - recorded - lost|", [abs(made - calls)], "calls", 0, note="%s made" % "{:,}".format(made))
    results.add(title + "lost", [lost], "calls", 0)
    results.add(title + "resident memory in the second tenth", memory[tenth:2 * tenth], "MiB")
    results.add(title + "resident memory in the last tenth", memory[-tenth:], "MiB")
    results.add(title + "memory, last tenth / second tenth", [sum(memory[-tenth:]) / sum(memory[tenth:2 * tenth])], "times", FLAT)
    results.add(title + "CPU time a record in the second tenth", [first], "ns")
    results.add(title + "CPU time a record in the last tenth", [last], "ns")
    results.add(title + "CPU time, last tenth / second tenth", [last / first], "times", FLAT)


def producers(results, settings):
    costs = {count: [] for count in PRODUCERS}
    for _ in range(settings.repetitions):
        for count in PRODUCERS:
            costs[count].append(last_json((), "model_feed", settings.convert_events, count)["ns_per_call"])
    for count in PRODUCERS:
        results.add("a record of %d processors" % count, costs[count], "ns")
    for count in PRODUCERS[1:]:
        results.add("of %d / of %d" % (count, PRODUCERS[0]), [many / few for many, few in zip(costs[count], costs[PRODUCERS[0]])],
                    "times", CONSTANT)


def scale_section(results, settings, folder):
    results.section("records of many processors: put in order and modelled, CPU time")
    producers(results, settings)
    results.section("for a long time, to a Chrome trace")
    flat(results, settings, folder)
