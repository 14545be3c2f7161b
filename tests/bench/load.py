# SPDX-License-Identifier: BSD-2-Clause
"""What the collector manages: calls without pause, none lost at a rate, conversion, memory."""

import contextlib
import ctypes
import json
import os
import re
import resource
import subprocess
import time

from results import AT_LEAST
from tools import BUILD, DESCRIPTION, XPUTRACE, Loop, Recorder, metadata_of

FUNCTION = "bench_landing"
THREADS = 2
RATE = 300000  # calls a second of all threads together
MEMORY_RATE = 200000
BUFFER_MIB = 8  # of records on their way, by default
READ_BYTES = 8 << 20
PR_SET_CHILD_SUBREAPER = 36
TWO_CORES = 4  # s, for a recording of 1 GB
OPTIONS = ("-r", DESCRIPTION, "--only", "bench")


def count_spans(path):
    """Calls in a Chrome trace, counted by nothing but their lines."""
    mark = b'"function":"%s"' % FUNCTION.encode()
    count, rest = 0, b""
    with open(path, "rb") as file:
        while True:
            block = file.read(READ_BYTES)
            if not block:
                return count
            block = rest + block
            end = block.rfind(b"\n") + 1
            rest = block[end:]
            count += sum(line.startswith(b'{"ph":"X"') for line in block[:end].split(b"\n") if mark in line)


def children_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def convert(recording, trace, prefix=()):
    """xputrace report: seconds of CPU time, with that of the process that writes, and of wall-clock time."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    start, used = time.monotonic(), children_cpu()
    subprocess.run(list(prefix) + [XPUTRACE, "report", "-q", recording, "-o", trace], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took = time.monotonic() - start
    with contextlib.suppress(ChildProcessError):  # it is nobody's child
        while True:
            os.waitpid(-1, 0)
    return children_cpu() - used, took


def run_load(output, seconds, rate):
    """Records one load; what the program says it has done."""
    loop = Loop()
    try:
        recorder = Recorder(loop.pid, output, *OPTIONS)
        answer = loop.load(FUNCTION, THREADS, seconds, rate)
        recorder.finish()
    finally:
        loop.close()
    return answer


def check_load(results, folder, title, kind, seconds, rate):
    """Calls made against spans and losses, of which the spans are counted in the trace."""
    output = os.path.join(folder, "load." + kind)
    made = run_load(output, seconds, rate)
    trace = output
    if kind == "xpt":
        trace = output + ".json"
        convert(output, trace)
        os.unlink(output)
    spans = count_spans(trace)
    lost = sum(program["lost"] for program in metadata_of(trace)["programs"])
    os.unlink(trace)
    name = "%s, to %s" % (title, "recording" if kind == "xpt" else "Chrome trace")
    results.add(name + ": calls made", [made["calls"]], "calls", note="%s a second" % "{:,.0f}".format(
        made["calls"] * 1e9 / made["ns"]))
    results.add(name + ": spans", [spans], "calls")
    results.add(name + ": lost", [lost], "calls", *((0,) if rate else ()))
    results.add(name + ": |made - spans - lost|", [abs(made["calls"] - spans - lost)], "calls", 0)


def exactness_section(results, settings, folder):
    seconds = settings.load_seconds
    results.section("exactness: %d threads for %d s" % (THREADS, seconds))
    for title, rate in (("without pause", 0), ("paced at %s/s" % "{:,}".format(RATE), RATE)):
        for kind in ("xpt", "json"):
            check_load(results, folder, title, kind, seconds, rate)


def last_json(prefix, program, *arguments):
    """What one of the programs of this folder has printed."""
    output = subprocess.run(list(prefix) + [os.path.join(BUILD, "bench", program)] + list(map(str, arguments)), check=True,
                            stdout=subprocess.PIPE).stdout
    return json.loads(output.splitlines()[-1])


def conversion_section(results, settings, folder):
    """report as a user calls it, and its two halves by themselves."""
    results.section("recording to Chrome trace, on one core where nothing else is said (the last CPU), files in memory")
    last = max(os.sched_getaffinity(0))
    prefix = ("taskset", "-c", str(last))
    recording = os.path.join(folder, "convert.xpt")
    trace = os.path.join(folder, "convert.json")
    made = run_load(recording, settings.convert_events / RATE, RATE)["calls"]
    size = os.stat(recording).st_size
    by_cpu, by_clock, feed, write, two, packets = [], [], [], [], [], []
    for _ in range(settings.repetitions):
        cpu, clock = convert(recording, trace, prefix)
        by_cpu.append(made / cpu)
        by_clock.append(made / clock)
        two.append(convert(recording, trace)[1] / size * 1e9)
        feed.append(last_json(prefix, "model_feed", made)["calls_per_second"])
        write.append(last_json(prefix, "trace_write", "chrome", made)["events_per_second"])
        packets.append(last_json(prefix, "trace_write", "perfetto", made))
    results.add("xputrace report, by CPU time (user and kernel)", by_cpu, "events/s", 2000000, AT_LEAST,
                "%s events, recording %.0f MB, trace %.0f MB" % (
                    "{:,}".format(made), size / 1e6, os.stat(trace).st_size / 1e6))
    results.add("xputrace report, by the clock", by_clock, "events/s")
    results.add("the same on all CPUs, of a recording of 1 GB: time", two, "s", TWO_CORES)
    database = os.path.join(folder, "convert.db")
    _, clock = convert(recording, database)
    results.add("recording to SQLite database, of 1 million inferences: time", [clock / made * 1e6], "s", 10)
    results.add("the same: size of each", [os.stat(database).st_size / made], "B", 150)
    os.unlink(database)
    results.add("of this, records to events", feed, "events/s", note="64 programs, sorted from 4 rings")
    results.add("of this, events to text", write, "events/s")
    results.add("events to Perfetto's packets instead", [one["events_per_second"] for one in packets], "events/s", 5000000, AT_LEAST)
    results.add("bytes of an inference there", [one["bytes"] / one["events"] for one in packets], "bytes", 40)
    os.unlink(recording)
    os.unlink(trace)


def memory_peak(pid):
    """VmHWM in MiB."""
    with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as file:
        return int(re.search(r"VmHWM:\s*(\d+)", file.read()).group(1)) / 1024


def memory_section(results, settings, folder):
    short, long = settings.memory_seconds
    results.section("memory of xputrace record at %s calls/s, to a Chrome trace" % "{:,}".format(MEMORY_RATE))
    output = os.path.join(folder, "memory.json")
    loop = Loop()
    try:
        recorder = Recorder(loop.pid, output, *OPTIONS)
        loop.load(FUNCTION, THREADS, short, MEMORY_RATE)
        early = memory_peak(recorder.pid)
        loop.load(FUNCTION, THREADS, long - short, MEMORY_RATE)
        late = memory_peak(recorder.pid)
        trace_size = os.stat(output).st_size
        recorder.finish()
    finally:
        loop.close()
    results.add("peak resident memory after %d s" % short, [early], "MiB", 64)
    results.add("peak resident memory after %d s" % long, [late], "MiB", 64, note="trace %.0f MB" % (trace_size / 1e6))
    results.add("growth from %d s to %d s" % (short, long), [late - early], "MiB", BUFFER_MIB,
                note="may hold one buffer of records that were late")
    os.unlink(output)
