# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to read counters."""

import json
import os
import subprocess

from tools import BUILD

POLL = os.path.join(BUILD, "bench", "poll")
COUNTERS = ("page-faults", "minor-faults", "major-faults", "context-switches", "cpu-migrations", "task-clock", "cpu-clock",
            "syscalls:sys_enter_kcmp")


def counters_section(results, settings, folder):
    """One reading, and a thousand a second; each CPU of the machine is asked in each."""
    del folder
    results.section("counters: reading %d of them" % len(COUNTERS))
    answers = [json.loads(subprocess.run([POLL, *COUNTERS], stdout=subprocess.PIPE, check=True).stdout)
               for _ in range(settings.repetitions)]
    results.add("one reading", [answer["poll_ns"] / 1e3 for answer in answers], "us", 20)
    results.add("its reads lie within", [answer["spread_ns"] / 1e3 for answer in answers], "us")
    results.add("1,000 readings a second: share of a core", [answer["share"] * 100 for answer in answers], "%", 1)
