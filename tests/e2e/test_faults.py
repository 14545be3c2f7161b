# SPDX-License-Identifier: BSD-2-Clause
"""Allocations and system calls that fail, and writes that are short, one in each run: the command is right all the same, or says why not.

Here some of them, evenly spaced from a random one on; tests/e2e/faults.py makes whole series. XPUTRACE_FAULTS_SEED repeats a run.
"""

import itertools
import os
import random
import resource
import subprocess

import fault_cases
import faults
from harness import SLOW, XPUTRACE, Skip, cases, clean_up, scratch, standin

SEED = int(os.environ.get("XPUTRACE_FAULTS_SEED", random.randrange(1000000)))
# How many runs of each command; without root they take milliseconds. `make test-faults` makes all.
RUNS = {"explain": 15, "diff": 15, "report": 25, "merge": 25, "report_ort": 8, "report_csv": 8, "report_html": 10, "report_perfetto": 8,
        "report_sqlite": 8, "report_inferences": 8, "report_json": 8, "explain_text": 8, "diff_html": 8, "list_runtimes": 12,
        "list_drivers": 10, "list_counters": 10, "list_operators": 10, "list_runtimes_pid": 10, "list_sites_pid": 10, "check": 2}
RUNS_TRACING = {"memory": 3, "call": 4, "short": 1}
WRITING = [name for name in fault_cases.NAMES if not name.startswith(("list_", "check", "explain_text"))]  # more than a pipe takes at once
PLACES_SHOWN = 5


def few(name, kind):
    return int(RUNS.get(name, RUNS_TRACING[kind]) / SLOW) or 1


def some_of(series, count):
    """So many of the series, evenly spaced; of allocations, of so many chains of callers: most are of a few."""
    chance = random.Random(SEED)
    if series.places:
        yield from itertools.islice(faults.of_places(series, chance.sample(sorted(series.places), len(series.places))), count)
        return
    every, found = max(1, series.count // count), False
    for start in (1 + chance.randrange(every), 1):  # there may be fewer than were counted before
        for one in faults.in_steps(series, start, every):
            found = True
            yield one
        if found:
            return


def check(case, kind, **options):
    if case.root and os.geteuid():
        raise Skip("needs root")
    series = faults.Series(case, kind, **options)
    wrong, runs = [], 0
    faults.held.clear()
    faults.adopt()
    try:
        for fault, reason, _ in some_of(series, few(case.name, kind)):
            runs += 1
            if reason:
                wrong.append("%s %s, %s: %s\n    %s" % (kind, fault.number, fault.what, reason, faults.lines_of(fault)))
            clean_up()
    finally:
        faults.adopt(False)
    assert runs, "nothing has failed"
    left = faults.left_in_kernel()
    assert not left, "left in the kernel: %s" % sorted(left)
    assert not wrong, "XPUTRACE_FAULTS_SEED=%d: %d of %d runs are wrong:\n%s" % (
        SEED, len(wrong), runs, "\n".join(wrong[:PLACES_SHOWN]))


@cases(*fault_cases.NAMES)
def test_memory(name):
    """Allocations."""
    # What tracing parses and loads is what the other commands do, too: the rest is looked at more closely.
    tracing = name not in RUNS
    check(faults.Case.all[name], "memory", leave=faults.OTHERS + (",libcjson" if tracing else ""))


@cases("record_ops", "agent")
def test_memory_at_start(name):
    """Each of the first allocations: where options are parsed, whose command gives the status; before there is anything to trace."""
    first, last = {"record_ops": (1, 1), "agent": (10, 20)}[name]
    faults.adopt()
    try:
        series = faults.Series(faults.Case.all[name], "memory", leave=faults.OTHERS + ",libcjson")
        wrong = ["%s: %s" % (faults.lines_of(fault), reason) for fault, reason, _ in faults.in_steps(series, first, last=last) if reason]
    finally:
        faults.adopt(False)
    assert not wrong, wrong


@cases(*fault_cases.NAMES)
def test_calls(name):
    """System calls."""
    check(faults.Case.all[name], "call")


@cases(*WRITING)
def test_short(name):
    """Writes of which a part is taken: what is written is the same."""
    check(faults.Case.all[name], "short")


def test_memory_ends():
    """From one allocation on all fail: messages need none."""
    check(faults.Case.all["report_csv"], "memory", keep=True)
    check(faults.Case.all["record_pid"], "memory", keep=True)


# ---- limits ----

def record_limited(limit, value):
    """What is wrong with a start within a limit; "": nothing."""
    workload = standin("nrt", "--calls", "5")
    before = faults.children()
    words = [XPUTRACE, "record", "-p", str(workload.pid), "-d", "20ms", "-o", os.path.join(scratch(passing=True), "t.json")]
    result = subprocess.run(words, capture_output=True, text=True, timeout=faults.TIME_LIMIT, check=False,
                            preexec_fn=lambda: resource.setrlimit(limit, (value, value)))
    left = faults.left_behind(before)
    workload.go()
    workload.results()
    if left:
        return "left behind: %s" % left
    if result.returncode == 127 and "error while loading shared libraries" in result.stderr:
        return ""
    said = [line for line in result.stderr.splitlines() if line.startswith("xputrace: error: ")]
    if result.returncode == 0 and not said or result.returncode == 1 and said:
        return ""
    return "status %d: %s" % (result.returncode, result.stderr.splitlines()[-3:])


def check_limits(limit, values):
    if os.geteuid():
        raise Skip("needs root")
    faults.adopt()
    try:
        wrong = {value: record_limited(limit, value) for value in values}
    finally:
        faults.adopt(False)
    wrong = {value: reason for value, reason in wrong.items() if reason}
    assert not wrong, wrong


def test_descriptors():
    """prlimit --nofile=N: as few as there may be."""
    check_limits(resource.RLIMIT_NOFILE, range(3 + random.Random(SEED).randrange(3), 61, 3))


def test_address_space():
    """prlimit --as=N."""
    check_limits(resource.RLIMIT_AS, [size << 20 for size in (16, 20, 24, 28, 32, 40, 64, 128)])
