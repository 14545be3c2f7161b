# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to read counters: all at once, and around inferences."""

import json
import os
import subprocess

from cost import FULL, measure_costs
from tools import BUILD, Tracer, Xputrace

POLL = os.path.join(BUILD, "bench", "poll")
COUNTERS = ("page-faults", "minor-faults", "major-faults", "context-switches", "cpu-migrations", "task-clock", "cpu-clock",
            "syscalls:sys_enter_kcmp")


def poll(*arguments):
    return json.loads(subprocess.run([POLL, *arguments], stdout=subprocess.PIPE, check=True).stdout)


def counters_section(results, settings, folder):
    """One reading, and a thousand a second; each CPU of the machine is asked in each. Around a call: on its CPU alone."""
    results.section("counters: reading %d of them" % len(COUNTERS))
    answers, local = zip(*[(poll(*COUNTERS), poll("--cpu", "0", *COUNTERS)) for _ in range(settings.repetitions)])
    results.add("one reading", [answer["poll_ns"] / 1e3 for answer in answers], "us", 20)
    results.add("its reads lie within", [answer["spread_ns"] / 1e3 for answer in answers], "us")
    results.add("1,000 readings a second: share of a core", [answer["share"] * 100 for answer in answers], "%", 1)
    results.add("one reading, of one CPU and on it", [answer["poll_ns"] / 1e3 for answer in local], "us", 20)
    results.add("1,000 readings a second of one CPU: share of a core", [answer["share"] * 100 for answer in local], "%", 1)
    around(results, settings, folder)


def around(results, settings, folder):
    """What a recorded call costs in addition when counters are read before and after it."""
    function = "bench_plain"
    one, four = "with 1 counter around it", "with 4 counters around it"
    options = ("--counters-per-inference", "--counters-every", "1h", "--counters")
    measured = measure_costs([Tracer(), Xputrace(folder, FULL), Xputrace(folder, one, *options, COUNTERS[0]),
                              Xputrace(folder, four, *options, ",".join(COUNTERS[:4]))], settings, (function,))
    for name in (FULL, one, four):
        results.add("a recorded call%s" % ("" if name == FULL else ", " + name), measured.costs[name, function], "ns")
