# SPDX-License-Identifier: BSD-2-Clause
"""That a machine is set up as its name says (SETUPS of run.py); and CPUs that go and come while something is recorded."""

import os
import re
import time

from harness import (SLOW, XPUTRACE, Recorder, Skip, Trace, compare, run, run_entries, scratch, standin)
from recordings import Recording

CPU = 1  # the one that goes
SWITCH = "/sys/devices/system/cpu/cpu%d/online" % CPU
TURNS = 4


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


# ---- the machine ----

def test_machine(options):
    """The machine is as it was asked for; "not possible": the kernel cannot be set up so."""
    setup = options["setup"] or ""
    assert os.cpu_count() == options["processors"], os.cpu_count()
    kind, _, value = setup.partition("-")
    if kind == "preempt":
        modes = read("/sys/kernel/debug/sched/preempt").split()
        assert value in modes or "(%s)" % value in modes, "not possible: this kernel has %s" % modes
        assert "(%s)" % value in modes, modes
    elif kind == "cgroup":
        assert re.search(r"^\d+:pids:/", read("/proc/self/cgroup"), re.M), read("/proc/self/cgroup")
    elif kind in ("integrity", "confidentiality"):
        assert "[%s]" % kind in read("/sys/kernel/security/lockdown"), read("/sys/kernel/security/lockdown")
    elif kind in ("apparmor", "selinux"):
        assert kind in read("/sys/kernel/security/lsm").split(","), read("/sys/kernel/security/lsm")


# ---- CPUs that go and come ----

def switch(online):
    with open(SWITCH, "w", encoding="ascii") as file:
        file.write("%d" % online)
    assert int(read(SWITCH)) == online


def need_switch():
    if not os.path.exists(SWITCH):
        raise Skip("CPU %d cannot be switched off" % CPU)


def test_counts(options):
    """Every call is counted and recorded, whichever CPUs there are; before the recording began one was missing, too."""
    del options
    need_switch()
    path = os.path.join(scratch(), "trace.json")
    workload = standin("nrt", "--calls", "0", "--threads", "3", "--rate", "100")
    switch(0)
    try:
        recorder = Recorder("-p", workload.pid, "--why", "--samples", "--counters", "page-faults,task-clock", "--counters-per-inference",
                            "--budget", "100", output=path)
        workload.go()
        for _ in range(TURNS):
            switch(1)
            time.sleep(0.3)
            switch(0)
            time.sleep(0.3)
    finally:
        switch(1)
    compare("nrt", workload.stop(), recorder.finish())


def test_back(options):
    """After it has come back what is read on each CPU is read there again: stacks, counters, mapped libraries."""
    del options
    need_switch()
    folder = scratch()
    path, trace = os.path.join(folder, "back.xpt"), os.path.join(folder, "trace.json")
    workload = standin("nrt", "--calls", "0", "--duration-us", "90")
    late = standin("cuda", "--calls", "200", "--dlopen", "--rate", str(round(500 / SLOW)))
    recorder = Recorder("-p", "%d,%d" % (workload.pid, late.pid), "--samples=500", "--counters", "cpu-clock,page-faults",
                        "--counters-per-inference", output=path)
    workload.go()
    switch(0)
    time.sleep(1)
    switch(1)
    time.sleep(3)  # longer than is waited between two looks at the CPUs
    begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    for task in os.listdir("/proc/%d/task" % workload.pid):
        os.sched_setaffinity(int(task), {CPU})
    os.sched_setaffinity(late.pid, {CPU})
    late.go()
    time.sleep(3)
    results, other = workload.stop(), late.results()
    assert recorder.wait() == 0, recorder.stderr
    result = run([XPUTRACE, "report", path, "-o", trace])
    assert result.status == 0, result.stderr
    executions = [call for call in Trace(trace).calls if call.role == "execute" and call.start * 1000 > begun]
    assert executions
    known = [call for call in executions if (call.event["args"].get("counters") or {}).get("cpu-clock")]
    samples = [sample for sample in Recording(path).stack_samples if sample.time > begun]
    seen = len([call for call in Trace(trace).calls if call.pid == other[0]["pid"] and call.role == "launch"])
    made = sum(entry["count"] for entry in run_entries(other))
    problems = []
    if len(known) < 0.9 * len(executions):
        problems.append("%d of %d executions have a counter of their CPU" % (len(known), len(executions)))
    if not samples:
        problems.append("no stacks of threads that ran there")
    if seen < made / 2:
        problems.append("%d of %d calls of a library that was opened there" % (seen, made))
    assert results and not problems, "; ".join(problems)


def discover(options):
    """None in a machine that is set up as usual: they take longer than others."""
    if not options["setup"]:
        return []
    tests = [("hotplug." + function.__name__[5:], function, (options,)) for function in (test_counts, test_back)]
    return [("setup.machine", test_machine, (options,))] + tests
