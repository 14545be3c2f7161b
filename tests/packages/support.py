# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of packages share."""

import json
import os
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build")
SCRATCH = os.path.join(BUILD, "packages")
VERSION = "0.1.0"


class Skip(Exception):
    """The test cannot run here; the text says why."""


def output(*command, **options):
    """What a command prints, both streams; CalledProcessError with it where it fails."""
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True, text=True,
                          **options).stdout


def make(*words, **options):
    return output(os.environ.get("MAKE", "make"), "--no-print-directory", *words, **options)


_made = set()


def made(target):
    """`make TARGET`, once."""
    if target not in _made:
        make("-C", ROOT, target)
        _made.add(target)


def record_workload(machine, command):
    """The command records a stand-in of a runtime in there, and finds as many inferences as it has run."""
    made("workload")
    place = machine.path("/tmp/workload")
    os.makedirs(os.path.join(place, "lib"), exist_ok=True)
    for name in ("workload", "lib/libnrt.so.1"):
        shutil.copy(os.path.join(BUILD, "workload", name), os.path.join(place, name))
    shown = machine.run(command, "record", "-o", "/tmp/trace.json", "--summary-json", "/tmp/summary.json", "--wait-limit", "60s", "--",
                        "/tmp/workload/workload", "nrt", "--calls", "30", "--threads", "2")
    with open(machine.path("/tmp/summary.json"), encoding="utf-8") as file:
        summary = json.load(file)
    assert sum(each["inferences"] for each in summary["programs"]) == 60, (summary["programs"], shown)
    with open(machine.path("/tmp/trace.json"), encoding="utf-8") as file:
        assert json.load(file)["traceEvents"], shown
