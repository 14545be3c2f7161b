# SPDX-License-Identifier: BSD-2-Clause
"""Calls of a runtime from Python, and what they cost the thread: stack.py LIBRARY; LIBRARY: libnrt.so.1.

Takes lines with the number of functions around each call and the number of calls, which are more than a millisecond apart, and
answers each with the median, in ns of the thread's CPU time. Runs in real time where it may, on one CPU.
"""

import ctypes
import json
import os
import statistics
import sys
import time

PAUSE_NS = 1100000  # more than 1/1000 s
execute = ctypes.CDLL(sys.argv[1]).nrt_execute
took = []


def run(deep):
    if deep > 1:
        return run(deep - 1)
    end = time.monotonic_ns() + PAUSE_NS
    while time.monotonic_ns() < end:
        pass
    start = time.thread_time_ns()
    execute(None, None, None)  # returns at once: there is no such program
    return took.append(time.thread_time_ns() - start)


os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except PermissionError:
    pass
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    depth, calls = map(int, line.split())
    for _ in range(calls):
        run(depth - 1)  # and the module
    print(json.dumps({"calls": len(took), "ns": statistics.median(took)}), flush=True)
    took.clear()
