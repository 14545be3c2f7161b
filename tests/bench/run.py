#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what tracing costs and what it manages, beside other tools. As root.

run.py [--quick] [--only SECTION[,SECTION...]] [--flat-minutes N]

Prints one table and writes build/bench.json. Nothing is judged: a limit that is missed is marked, and the exit status
is 0 all the same. --quick: everything once and briefly, to see that the benchmarks themselves work.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import time

from agent import agent_section
from attach import attach_section, model_section
from budget import budget_section
from code_objects import codeobj_section
from continuous import continuous_section
from cost import cost_section
from counters import counters_section
from drivers import drivers_section
from explain import explain_section
from families import families_section
from load import conversion_section, exactness_section, memory_section
from operators import operators_section
from page import page_section
from profiling import profile_section
from regions import regions_section
from results import Results
from scale import scale_section
from thread import thread_section
from tools import BUILD, kill_all, make_folder

SECTIONS = {
    "cost": cost_section,
    "exactness": exactness_section,
    "conversion": conversion_section,
    "memory": memory_section,
    "attach": attach_section,
    "families": families_section,
    "model": model_section,
    "profile": profile_section,
    "drivers": drivers_section,
    "counters": counters_section,
    "operators": operators_section,
    "regions": regions_section,
    "continuous": continuous_section,
    "codeobj": codeobj_section,
    "budget": budget_section,
    "scale": scale_section,
    "thread": thread_section,
    "explain": explain_section,
    "page": page_section,
    "agent": agent_section,
}


class Settings:
    """How much of everything."""

    def __init__(self, quick, flat_minutes):
        self.repetitions = 1 if quick else 5
        self.cost_milliseconds = 20 if quick else 300
        self.load_seconds = 1 if quick else 10
        self.convert_events = 100000 if quick else 3000000
        self.memory_seconds = (1, 3) if quick else (10, 60)
        self.model_seconds = 0.3 if quick else 2
        self.budget_seconds = 2 if quick else 12
        self.agent_seconds = 6 if quick else 60
        self.page_inferences = 10000 if quick else 1000000
        self.programs_seconds = 1 if quick else 4
        self.explain_inferences = (10000,) if quick else (1000000, 10000000)
        self.flat_seconds = 6 if quick else 60 * flat_minutes


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"^(?:model name|CPU part)\s*: (.*)$", file.read(), re.M)
    return found.group(1) if found else platform.machine()


def virtual_machine():
    tool = shutil.which("systemd-detect-virt")
    if not tool:
        return "unknown"
    return subprocess.run([tool, "--vm"], stdout=subprocess.PIPE, check=False).stdout.decode().strip()


def main():
    parser = argparse.ArgumentParser(description="Benchmarks of xputrace; see docs/performance.md for their results.")
    parser.add_argument("--quick", action="store_true", help="only see that the benchmarks work (under a minute)")
    parser.add_argument("--only", default=",".join(SECTIONS),
                        help="sections, separated by commas: " + ", ".join(SECTIONS))
    parser.add_argument("--flat-minutes", type=float, default=1, metavar="N",
                        help="how long memory and CPU time are watched in the section scale (default: 1)")
    options = parser.parse_args()
    wanted = options.only.split(",")
    unknown = set(wanted) - set(SECTIONS)
    if unknown:
        parser.error("no such section: " + ", ".join(sorted(unknown)))
    if os.geteuid():
        print("bench: tracing needs root", file=sys.stderr)
        return 1
    results = Results(options.quick)
    results.tell(kernel="%s %s" % (platform.release(), platform.machine()), processor=processor(), cpus=os.cpu_count(),
                 virtualised=virtual_machine(), load="%.2f" % os.getloadavg()[0], date=time.strftime("%Y-%m-%d"))
    settings = Settings(options.quick, options.flat_minutes)
    folder = make_folder()
    try:
        for name in wanted:
            SECTIONS[name](results, settings, folder)
    finally:
        kill_all()
        shutil.rmtree(folder, ignore_errors=True)
        results.write(os.path.join(BUILD, "bench.json"))
    results.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
