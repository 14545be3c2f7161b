# SPDX-License-Identifier: BSD-2-Clause
"""What a region costs the program that marks it."""

import json
import os
import subprocess

from tools import BUILD

PROGRAM = os.path.join(BUILD, "bench", "regions")
DISABLED_PAIRS, KEPT_PAIRS = 1000, 20  # for each microsecond of the time that a cost is measured for


def cost(pairs, **environment):
    """ns of CPU time for a start and its stop."""
    result = subprocess.run([PROGRAM, str(pairs)], stdout=subprocess.PIPE, check=True,
                            env=dict(os.environ, **environment))
    told = json.loads(result.stdout)
    assert told["kept"] == (pairs + 1 if environment else 0), told
    return told["cpu_ns"] / told["pairs"]


def regions_section(results, settings, folder):
    del folder
    results.section("regions: CPU time of a start and its stop, by one thread")
    microseconds = settings.cost_milliseconds * 1000
    repetitions = range(settings.repetitions)
    results.add("nobody looks", [cost(DISABLED_PAIRS * microseconds) for _ in repetitions], "ns", 2)
    results.add("kept in the process", [cost(KEPT_PAIRS * microseconds, XPUTRACE_REGIONS="enabled")
                                        for _ in repetitions], "ns", 80)
