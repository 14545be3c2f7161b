# SPDX-License-Identifier: BSD-2-Clause
"""OpenCL on PoCL: every kernel that is enqueued, with its name, counted exactly."""

import collections
import os

from harness import WORKLOADS, Recorder, Skip, Workload, compare_calls, compare_programs, record_command, run

REQUIRED = {"clEnqueueNDRangeKernel", "clEnqueueReadBuffer", "clFinish"}


def program():
    path = os.path.join(WORKLOADS, "opencl")
    if not os.path.exists(path):
        raise Skip("the OpenCL workload could not be built here")
    if run([path, "1"]).status != 0:
        raise Skip("there is no OpenCL device (PoCL) here")
    return path


def check(results, trace, names):
    trace.check()
    compare_calls(results, trace, REQUIRED)
    compare_programs(results, trace, names)
    assert not [call for call in trace.of("clEnqueueNDRangeKernel") if call.failed]


def test_from_the_start():
    """record -- CMD: kernels by name, 500 of each, blocking reads, waits for events."""
    results, trace, _ = record_command([program(), "500"])
    check(results, trace, True)
    counts = collections.Counter(call.program for call in trace.of("clEnqueueNDRangeKernel"))
    assert counts == {"vector_add": 500, "vector_scale": 500}, counts


def test_late_attach():
    """Attached after the kernels were made: their names are in the objects that the handles point to."""
    workload = Workload([program(), "--wait-for-go", "500"])
    recorder = Recorder("-p", workload.pid)
    workload.go()
    results = workload.results()
    check(results, recorder.finish(), True)
