# SPDX-License-Identifier: BSD-2-Clause
"""What does not fit on a small machine: the records of many processors, many processes and programs, and a long time."""

import collections
import glob
import json
import os
import re
import time

from load import last_json, memory_peak
from tools import DESCRIPTION, XPUTRACE, Loop, Process, Recorder

FUNCTION = "bench_plain"
OPTIONS = ("-r", DESCRIPTION, "--only", "bench")
PRODUCERS = (2, 8, 32, 128)  # processors, which write into at most 32 rings
CONSTANT = 1.2  # times, a record of many at most
PROCESSES = 1000
PROCESS_CALLS = {"milliseconds": 50, "rate": 1000}  # of each process
ATTACH_LIMIT, MEMORY_LIMIT, DESCRIPTORS_LIMIT = 1000, 64, 128  # ms, MiB, of all processes together
PROGRAMS = (100, 1000, 10000)
PROGRAMS_RATE = 50000  # calls a second of all programs together
PROGRAM_LIMIT = 8  # KiB
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


def spans_by(trace, key):
    """Calls of each: key makes it from an event."""
    return collections.Counter(key(event) for event in trace["traceEvents"]
                               if event["ph"] == "X" and event["args"].get("function") == FUNCTION)


def read_trace(path):
    """All of it: what closes it is longer than what is read elsewhere."""
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    os.unlink(path)
    return trace


def attach_all(loops, output):
    """What attaching to all processes took, and how many of the loops' calls are not in the trace."""
    started = time.monotonic()
    recorder = Process([XPUTRACE, "record", "--all-processes", "-o", output] + list(OPTIONS))
    recorder.wait_line("stderr", "attached")
    attached = (time.monotonic() - started) * 1e3
    memory, descriptors = memory_peak(recorder.pid), len(os.listdir("/proc/%d/fd" % recorder.pid))
    for loop in loops:
        loop.begin("load", FUNCTION, 1, PROCESS_CALLS["milliseconds"], PROCESS_CALLS["rate"])
    made = {loop.pid: loop.answer()["calls"] for loop in loops}
    called = memory_peak(recorder.pid)
    recorder.signal(2)
    if recorder.wait():
        raise RuntimeError("xputrace record failed:\n" + recorder.stderr)
    spans = spans_by(read_trace(output), lambda event: event["pid"])
    return attached, memory, called, descriptors, sum(abs(made[pid] - spans[pid]) for pid in made), sum(made.values())


def processes(results, settings, folder):
    loops, rows = [], []
    try:
        loops = [Loop() for _ in range(PROCESSES)]
        for _ in range(settings.repetitions):
            rows.append(attach_all(loops, os.path.join(folder, "all.json")))
    finally:
        for loop in loops:
            loop.kill()
    attached, memory, called, descriptors, differences, made = map(list, zip(*rows))
    results.add("from the start to attached", attached, "ms", ATTACH_LIMIT)
    results.add("peak resident memory of the collector, attached", memory, "MiB", MEMORY_LIMIT)
    results.add("the same, after calls of each process", called, "MiB", MEMORY_LIMIT)
    results.add("of this for each process that has called", [(after - before) * 1024 / PROCESSES for before, after in
                                                             zip(memory, called)], "KiB")
    results.add("file descriptors", descriptors, "", DESCRIPTORS_LIMIT)
    results.add("|made - spans| of each process, summed", differences, "calls", 0, note="{:,} made".format(made[0]))


def run_programs(count, seconds, output):
    """ns a record while programs are new and later; MiB; calls that are in the trace or counted otherwise than they were made."""
    loop = Loop()
    try:
        recorder = Recorder(loop.pid, output, *OPTIONS)
        made, costs = 0, []
        for _ in range(2):
            used = recorder_cpu(recorder)
            calls = loop.ask("crowd", FUNCTION, count, int(seconds * 1000), PROGRAMS_RATE, timeout=seconds)["calls"]
            time.sleep(0.2)
            costs.append((recorder_cpu(recorder) - used) / calls)
            made += calls
        memory = memory_peak(recorder.pid)
        recorder.signal(2)
        recorder.wait()
    finally:
        loop.close()
    trace = read_trace(output)
    spans = spans_by(trace, lambda event: event["args"]["handle"])
    counted = {program["handle"]: program["calls"] for program in trace["metadata"]["programs"]}
    differing = sum(counted.get(handle) != number for handle, number in spans.items()) + abs(len(spans) - count)
    return costs[0], costs[1], memory, differing, abs(made - sum(spans.values()))


def programs(results, settings, folder):
    rows = {count: [] for count in PROGRAMS}
    for _ in range(min(3, settings.repetitions)):
        for count in PROGRAMS:
            rows[count].append(run_programs(count, settings.programs_seconds, os.path.join(folder, "programs.json")))
    for count in PROGRAMS:
        new, later, memory, differing, missing = map(list, zip(*rows[count]))
        title = "{:,} programs: ".format(count)
        results.add(title + "CPU time a record, programs new", new, "ns")
        results.add(title + "CPU time a record, later", later, "ns")
        results.add(title + "peak resident memory", memory, "MiB", MEMORY_LIMIT if count == PROGRAMS[0] else None)
        results.add(title + "whose spans are not as many as were counted", differing, "programs", 0)
        results.add(title + "|made - spans|", missing, "calls", 0)
    few, many = PROGRAMS[0], PROGRAMS[-1]
    results.add("memory a program", [(more[2] - less[2]) * 1024 / (many - few) for less, more in zip(rows[few], rows[many])],
                "KiB", PROGRAM_LIMIT)


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
    results.section("--all-processes: {:,} processes that use one library".format(PROCESSES))
    processes(results, settings, folder)
    results.section("many programs of one process, {:,} calls/s, to a Chrome trace".format(PROGRAMS_RATE))
    programs(results, settings, folder)
    results.section("for a long time, to a Chrome trace")
    flat(results, settings, folder)
