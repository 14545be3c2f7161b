# SPDX-License-Identifier: BSD-2-Clause
"""What a stack costs the thread whose stack it is (record --stacks): from its begin to that of its call's time."""

import os
import subprocess

from tools import BUILD, XPUTRACE  # finds the modules of the end-to-end tests
from harness import ROOT
from recordings import Recording

WORKLOAD = os.path.join(BUILD, "workload")
SCRIPT = os.path.join(ROOT, "tests", "workload", "python", "stacks.py")
NATIVE_LIMIT, PYTHON_LIMIT = 4, 8  # us
PYTHON_FRAMES = 20  # of the stacks that the second limit is about


def costs(folder, command, frames=0):
    """us of each stack with so many Python frames."""
    path = os.path.join(folder, "stacks.xpt")
    subprocess.run([XPUTRACE, "record", "-q", "--stacks=1000", "-o", path, "--", *command], check=True,
                   stdout=subprocess.DEVNULL)
    return [(sample.call_start - sample.time) / 1000 for sample in Recording(path).stack_samples
            if sum(frame["kind"] == "python" for frame in sample.stack.frames) >= frames]


def stacks_section(results, _, folder):
    results.section("stacks of calls")
    seconds = 0.3 if results.quick else 3
    native = [os.path.join(WORKLOAD, "stacks"), str(int(seconds * 1000)), "500"]
    python = ["/usr/bin/python3", SCRIPT, os.path.join(WORKLOAD, "lib", "libnrt.so.1"), str(seconds)]
    results.add("a native stack, C", costs(folder, native), "us", NATIVE_LIMIT)
    results.add("a stack with %d Python frames and more" % PYTHON_FRAMES, costs(folder, python, PYTHON_FRAMES), "us",
                PYTHON_LIMIT)
