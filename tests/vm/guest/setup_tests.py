# SPDX-License-Identifier: BSD-2-Clause
"""That a machine is set up as its name says (SETUPS of run.py); and CPUs that go and come while something is recorded."""

import csv
import os
import re
import shutil
import signal
import time

import accelerator
from devices import check
from harness import (SLOW, XPUTRACE, Process, Recorder, Skip, Trace, Workload, compare, run, run_entries, scratch, standin,
                     wait_until, workload_path)
from recordings import Recording

CPU = 1  # the one that goes
SWITCH = "/sys/devices/system/cpu/cpu%d/online" % CPU
TURNS = 4


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


# ---- the machine ----

def test_machine(options):
    """The machine is as it was asked for, if the kernel can be set up so."""
    setup = options["setup"] or ""
    assert os.cpu_count() == options["processors"], os.cpu_count()
    kind, _, value = setup.partition("-")
    if kind == "preempt":
        modes = read("/sys/kernel/debug/sched/preempt").split()
        if value not in modes and "(%s)" % value not in modes:
            raise Skip("this kernel has %s" % " ".join(modes))
        assert "(%s)" % value in modes, modes
    elif kind == "cgroup":
        assert re.search(r"^\d+:pids:/", read("/proc/self/cgroup"), re.M), read("/proc/self/cgroup")
    elif kind in ("integrity", "confidentiality"):
        assert "[%s]" % kind in read("/sys/kernel/security/lockdown"), read("/sys/kernel/security/lockdown")
    elif kind in ("apparmor", "selinux"):
        assert kind in read("/sys/kernel/security/lsm").split(","), read("/sys/kernel/security/lsm")


# ---- policies ----

# "container" is what container runtimes have for all that they start: programs with one profile may look at each other.
PROFILES = """
profile target { file, signal, network, deny ptrace, deny /proc/*/mem rw, }
profile container flags=(attach_disconnected, mediate_deleted) { file, signal, network, mount, umount, unix, capability, ptrace peer=container, }
profile strict { file, signal, network, mount, umount, unix, capability, ptrace peer=strict, }
profile no-ptrace { file, signal, network, mount, umount, unix, capability, }
profile no-bpf { file, signal, network, mount, umount, unix, ptrace, capability, deny capability bpf, deny capability sys_admin, }
"""


def confined(profile):
    """The beginning of a command that the profile is enforced on. "": none."""
    path = os.path.join(scratch(), "profiles")
    with open(path, "w", encoding="ascii") as file:
        file.write(PROFILES)
    if not shutil.which("apparmor_parser"):
        raise Skip("there is no apparmor_parser")
    result = run(["apparmor_parser", "--replace", "--skip-cache", path])
    assert result.status == 0, result.stderr
    return ["sh", "-c", 'echo "exec %s" >/proc/self/attr/exec && exec "$@"' % profile, "sh"] if profile else []


def profile_of(pid):
    return read("/proc/%d/attr/current" % pid).strip()


def test_target(target, collector):
    """A target with a profile is traced as others are: by a collector without one, though it may be traced by nobody, and in a container by
    one in another container."""
    workload = Workload(confined(target) + [workload_path("workload"), "nrt", "--wait-for-go", "--calls", "40", "--threads", "2"])
    assert profile_of(workload.pid) == target + " (enforce)", profile_of(workload.pid)
    recorder = Recorder("--why", "--stacks", "-p", workload.pid, prefix=confined(collector))
    assert profile_of(recorder.pid) == (collector + " (enforce)" if collector else "unconfined"), profile_of(recorder.pid)
    workload.go()
    compare("nrt", workload.results(), recorder.finish())


def test_collector(profile, reason):
    """A collector that a profile keeps from something says so, and the target is as it was."""
    workload = standin("nrt", "--calls", "40")
    recorder = Recorder("-p", workload.pid, wait=False, prefix=confined(profile))
    assert recorder.wait() == 1, recorder.stderr
    assert reason in recorder.stderr, recorder.stderr
    workload.go()
    assert workload.results(), "the target has come to harm"


# ---- CPUs that go and come ----

def switch(online, cpu=CPU):
    path = SWITCH.replace("cpu%d" % CPU, "cpu%d" % cpu)
    with open(path, "w", encoding="ascii") as file:
        file.write("%d" % online)
    assert int(read(path)) == online


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
                            "--budget", "none", output=path)
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


def executions_on(cpu, path, begun):
    """Executions of the recording from then on, and those of them that have a counter of their CPU."""
    trace = os.path.join(scratch(), "trace.json")
    result = run([XPUTRACE, "report", path, "-o", trace])
    assert result.status == 0, result.stderr
    executions = [call for call in Trace(trace).calls if call.role == "execute" and call.start * 1000 > begun]
    assert executions, "none on CPU %d" % cpu
    return executions, [call for call in executions if (call.event["args"].get("counters") or {}).get("cpu-clock")]


def test_first(options):
    """A CPU with a higher number than any other one comes online for the first time while something is recorded."""
    need_switch()
    highest = options["processors"] - 1
    path = os.path.join(scratch(), "first.xpt")
    workload = standin("nrt", "--calls", "0", "--duration-us", "90")
    switch(0, highest)
    try:
        recorder = Recorder("-p", workload.pid, "--counters", "cpu-clock,page-faults", "--counters-per-inference", output=path)
        workload.go()
    finally:
        switch(1, highest)
    time.sleep(2)
    for task in os.listdir("/proc/%d/task" % workload.pid):
        os.sched_setaffinity(int(task), {highest})
    begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 10**8
    time.sleep(2)
    workload.stop()
    assert recorder.wait() == 0, recorder.stderr
    executions, known = executions_on(highest, path, begun)
    assert len(known) >= 0.9 * len(executions), "%d of %d executions have a counter of their CPU" % (len(known), len(executions))


# ---- counters that are read at intervals ----

EVERY = 0.2  # s


class Counters:
    """xputrace counters, at an interval."""

    def __init__(self, *words):
        self.path = os.path.join(scratch(), "counters-%d.csv" % time.monotonic_ns())
        self.process = Process([XPUTRACE, "counters", "--every", "%dms" % (EVERY * 1000), "-o", self.path, *map(str, words)])
        wait_until(lambda: len(self.rows()) >= 2, "counters are read")

    def rows(self):
        """Moments, on CLOCK_REALTIME, and values; None: not known."""
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file))[1:]
        return [(float(line[0]), [None if value == "N/A" else float(value) for value in line[1:-1]]) for line in lines]

    def stop(self):
        self.process.signal(signal.SIGINT)
        assert self.process.wait() == 0, self.process.stderr
        return self.rows()


def rates(rows, index, begin, end):
    """Growth per second of the intervals that lie in the stretch; None: not known."""
    found = [None if now[1][index] is None else now[1][index] / (now[0] - before[0])
             for before, now in zip(rows, rows[1:]) if begin <= before[0] and now[0] <= end]
    assert len(found) >= 3, "only %d readings of %d from %f to %f" % (len(found), len(rows), begin, end)
    return found


def test_interval(options):
    """The clock of a CPU runs as fast as time; while it is offline that is not counted, and afterwards it runs on. All CPUs
    together: one second less a second. Two events are a group, which the kernel dissolves."""
    need_switch()
    one, pair, every = (Counters("-e", "cpu-clock", "--cpu", CPU), Counters("-e", "cpu-clock,page-faults", "--cpu", CPU),
                        Counters("-e", "cpu-clock,page-faults"))
    begun = time.time()
    time.sleep(1 + 5 * EVERY)
    switch(0)
    away = time.time()
    time.sleep(1 + 5 * EVERY)
    returns = time.time()
    switch(1)
    time.sleep(1)  # until they look again
    back = time.time()
    time.sleep(1 + 5 * EVERY)
    end = time.time()
    problems = []
    for name, counters, cpus in (("one", one, 1), ("pair", pair, 1), ("every", every, options["processors"])):
        rows = counters.stop()
        everything = [values[0] for _, values in rows if values[0] is not None]
        before, after = rates(rows, 0, begun, away), rates(rows, 0, back, end)
        # Between two readings it is not known that the CPU has gone: one that is before it is seen is 0.
        gone = rates(rows, 0, away + 2 * EVERY, returns)
        expected = [None] if name != "every" else [(cpus - 1) * 1e9]
        if name == "every":
            wrong = [rate for rate in gone if rate is None or not 0.8 <= rate / expected[0] <= 1.2]
        else:
            wrong = [rate for rate in gone if rate is not None]
        if wrong:
            problems.append("%s: while it was offline %s a second, not %s" % (name, gone, expected))
        for when, found in (("before", before), ("after", after)):
            middle = sorted(rate or 0 for rate in found)[len(found) // 2]
            if not 0.8 <= middle / (cpus * 1e9) <= 1.2:
                problems.append("%s: %s it was offline %s a second" % (name, when, found))
        if min(everything) < 0 or max(everything) > 3 * cpus * (EVERY * SLOW + 1) * 1e9:
            problems.append("%s: %s" % (name, everything))
        if "offline" not in counters.process.stdout:
            problems.append("%s: the table does not say so: %s" % (name, counters.process.stdout))
    assert not problems, "; ".join(problems)


def test_readings(options):
    """The same in a recording, which is told of a CPU that is back."""
    need_switch()
    path, trace = (os.path.join(scratch(), "readings." + ending) for ending in ("xpt", "json"))
    workload = standin("nrt", "--calls", "0", "--rate", "20")
    recorder = Recorder("-p", workload.pid, "--counters", "cpu-clock,page-faults", "--counters-every", "100ms", output=path)
    workload.go()
    time.sleep(1)
    switch(0)
    away = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    time.sleep(2)
    switch(1)
    back = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    time.sleep(2)
    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    workload.stop()
    assert recorder.wait() == 0, recorder.stderr
    result = run([XPUTRACE, "report", path, "-o", trace])
    assert result.status == 0, result.stderr
    points = [(event["ts"] * 1000, list(event["args"].values())[0]) for event in Trace(trace).events
              if event["ph"] == "C" and event["name"] == "cpu-clock"]
    middle = {}
    for name, first, last in (("offline", away, back), ("after", back, end)):
        found = sorted(rate for moment, rate in points if first + 5e8 < moment < last - 2e8)
        assert found, (name, points)
        middle[name] = found[len(found) // 2] / 1e9
    assert abs(middle["offline"] - (options["processors"] - 1)) < 0.2 and abs(middle["after"] - options["processors"]) < 0.2, middle
    assert min(rate for _, rate in points) >= 0, points


def test_device(options):
    """A device that counts on the CPU that goes: its jobs are counted before and after, and on the other CPU once its driver
    has chosen that."""
    need_switch()
    accelerator.load(pmu_cpu=CPU)
    counting = Counters("-e", "xptaccel_0/jobs/")

    def total(rows):
        return sum(values[0] for _, values in rows if values[0] is not None)

    def made(calls):
        return len(check(accelerator.execute("nrt", "--calls", calls)))

    def known():
        rows = counting.rows()
        return rows[-1][1][0] is not None

    expected = made(5)
    wait_until(lambda: total(counting.rows()) == expected, "all jobs are counted")
    switch(0)
    wait_until(lambda: not known(), "the CPU that counts has gone")
    made(7)  # nobody counts them
    switch(1)
    wait_until(known, "it counts again")
    expected += made(11)
    wait_until(lambda: total(counting.rows()) == expected, "all jobs are counted, but for those between")
    switch(0)
    try:
        with open("/sys/module/%s/parameters/pmu_cpu" % accelerator.NAME, "w", encoding="ascii") as file:
            file.write("0")
        time.sleep(5 * EVERY)
        wait_until(known, "another CPU counts")
        expected += made(13)
        wait_until(lambda: total(counting.rows()) == expected, "they are counted on the other CPU")
    finally:
        switch(1)
    expected += made(3)
    time.sleep(2)
    assert total(counting.stop()) == expected, (counting.rows(), expected)
    accelerator.unload()


def discover(options):
    """None in a machine that is set up as usual: they take longer than others."""
    if not options["setup"]:
        return []
    tests = [("hotplug." + function.__name__[5:], function, (options,)) for function in (
        test_counts, test_back, test_first, test_interval, test_readings, test_device)]
    if options["setup"] == "apparmor":
        tests += [("policy.target[%s/%s]" % each, test_target, each)
                  for each in (("target", ""), ("container", "container"), ("strict", "strict"))]
        tests += [("policy.collector[%s]" % each[0], test_collector, each)
                  for each in (("no-ptrace", "security module"), ("no-bpf", "missing CAP_BPF"))]
    return [("setup.machine", test_machine, (options,))] + tests
