# SPDX-License-Identifier: BSD-2-Clause
"""What only a machine of one's own can do to a collector: its process numbers are used again at once, its memory is full, it
sleeps."""

import contextlib
import os
import signal
import sys
import time

from collectors import unharmed
from harm import program, record_command
from harness import (TIMEOUT, XPUTRACE, Process, Recorder, Skip, compare, compare_calls, results_in, scratch, standin,
                     wait_until)
from reports import Stream, churn_made, reported_by_name
from saved_files import SECOND, Collector, clock_now
from test_stream import difference

CHILDREN, PARALLEL, NUMBERS = 900, 30, 450  # those from 300 on are given again: each is used six times


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


@contextlib.contextmanager
def few_numbers():
    path = "/proc/sys/kernel/pid_max"
    before = read(path)
    write(path, str(NUMBERS))
    try:
        yield
    finally:
        write(path, before)


def test_process_numbers(kernel):
    """Numbers of children that have ended are those of new ones at once: each call of each child is there, and nothing else is lost."""
    del kernel
    with few_numbers():
        outcome, trace = record_command(program("storm", "call", CHILDREN, PARALLEL))
    losses, calls = trace.losses(), trace.of("nrt_tensor_write")
    made = outcome.result["family"]["nrt_tensor_write"]
    assert set(losses) <= {"thread", "nested"} and made >= CHILDREN, (losses, made)
    assert len(calls) <= made <= len(calls) + losses.get("thread", 0) + 3 * losses.get("nested", 0), (len(calls), made, losses)
    assert len({call.pid for call in calls}) <= NUMBERS


FREE = 2  # MiB that are left to all others: less than the programs and libraries that run
PAGES = 500  # of files, that the kernel reads again at least

HOG = """
import sys, time
with open("/proc/self/oom_score_adj", "w") as file:
    file.write("1000")
kept, full = [], False
while True:
    with open("/proc/meminfo") as file:
        available = int(next(line for line in file if line.startswith("MemAvailable")).split()[1]) >> 10
    if available > %d:
        kept.append(b"x" * (1 << 22))
        continue
    if not full:
        print("full", flush=True)
    full = True
    time.sleep(0.02)
""" % FREE


def read_again():
    """How many pages of files the kernel has read again that it had dropped."""
    return int(next(line for line in read("/proc/vmstat").splitlines() if line.startswith("workingset_refault_file")).split()[1])


@contextlib.contextmanager
def full_memory():
    """Somebody has all memory but FREE, and takes what becomes free: without swap, pages of programs are dropped and read again.
    What is given back reads files until that has been so, and tells whether it still is."""
    def used():
        end = time.monotonic() + TIMEOUT
        while read_again() - before <= PAGES:
            assert time.monotonic() < end, "only %d pages were read again: there was memory enough" % (read_again() - before)
            with open(XPUTRACE, "rb", buffering=0) as file:
                while file.read(1 << 16):
                    pass
        return hog.child.poll() is None

    hog = Process([sys.executable, "-c", HOG])
    try:
        hog.wait_line("stdout", "full")
        before = read_again()
        yield used
    finally:
        hog.signal(signal.SIGKILL)
        hog.wait()


def test_full_memory_recording(kernel):
    """While the machine has no memory left all calls are recorded, and a report of them is written."""
    del kernel
    workload = standin("nrt", "--calls", "0", "--rate", "100", "--threads", "2")
    recorder = Recorder("-p", workload.pid)
    with full_memory() as used:
        workload.go()
        used()
        results = workload.stop()
        trace = recorder.finish()
        assert used(), "the kernel has killed it: there was memory again"
    trace.check()
    assert trace.runs()
    compare("nrt", results, trace)


def test_full_memory_attaching(kernel):
    """A collector that starts then attaches, saves what was called since, and ends; the target goes on."""
    del kernel
    workload = standin("nrt", "--calls", "0", "--rate", "100")
    workload.go()
    with full_memory() as used:
        collector = Collector("-p", workload.pid, "--window", "8M", "-b", "1M")
        collector.wait_inferences(20)
        used()
        assert collector.save().trace.runs(pid=workload.pid)
        collector.stop()
    unharmed(workload)


SLEEP = 4  # s, that the machine sleeps at least


def time_asleep():
    """How long it has slept since it was booted, in ns: CLOCK_MONOTONIC stands still meanwhile."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - clock_now()


def suspend():
    """The machine is suspended to memory but for the last step, which switches it off: processes are frozen, all CPUs but one
    are offline, clocks stand still. ns."""
    path = "/sys/power/pm_test"
    if not os.path.exists(path) or "core" not in read(path):
        raise Skip("this kernel cannot test a suspend")
    if "[deep]" not in read("/sys/power/mem_sleep"):
        raise Skip("this machine cannot be suspended to memory, only: " + read("/sys/power/mem_sleep").strip())
    before = time_asleep()
    # The port of the results would take nothing any more.
    driver = "/sys/bus/virtio/drivers/virtio_console"
    ports = [name for name in os.listdir(driver) if name.startswith("virtio")]
    for name in ports:
        write(driver + "/unbind", name)
    write(path, "core")
    try:
        write("/sys/power/state", "mem")
    finally:
        write(path, "none")
        for name in ports:
            write(driver + "/bind", name)
    slept = time_asleep() - before
    assert slept > SLEEP * SECOND, slept
    return slept


def test_suspended(kernel):
    """Collectors that were there before the machine slept record on, one that starts after it records processes of before and
    after; no call has the time asleep in it, and what is saved ends now."""
    del kernel
    before = standin("nrt", "--calls", "0", "--threads", "2", "--rate", "20")
    after = standin("cuda", "--calls", "0", "--rate", "20")
    recorder = Recorder("-p", before.pid, "--why", "--samples", "--counters", "page-faults,task-clock",
                        "--counters-per-inference", output=os.path.join(scratch(), "before.json"))
    collector = Collector("-p", before.pid)
    before.go()
    seen = collector.wait_inferences(20)["window_inferences"]
    slept = suspend()
    collector.wait_inferences(seen + 20)
    late = Recorder("-p", "%d,%d" % (before.pid, after.pid), output=os.path.join(scratch(), "after.json"))
    after.go()
    collector.wait_inferences(seen + 40)
    asked = clock_now()
    saved = collector.save()
    assert asked - SECOND < saved.end < clock_now() + SECOND, (asked, saved.end, clock_now())
    collector.stop()
    results, others = before.stop(), after.stop()
    trace, later = recorder.finish(), late.finish()
    compare("nrt", results, trace)
    later.check()
    compare_calls(others, later)
    assert not later.losses() and later.runs(pid=before.pid), later.losses()
    for one in (trace, later, saved.trace):
        longest = max(call.duration for call in one.runs()) * 1000
        assert longest < slept / 2, "a call lasts %d ns of %d asleep" % (longest, slept)


def test_starved_writer(kernel):
    """A thread that gets little time is preempted wherever it is, also while it writes a record, and others' records wait behind that: what they
    load and run meanwhile counts for the right programs."""
    del kernel
    workload = standin("nrt", "--churn", "150", "--for", "12", "--threads", "3", "--linger")
    stream = Stream("-p", workload.pid, "--append", output=os.path.join(scratch(), "starved.csv"))
    hogs = [Process([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    for hog in hogs:
        os.sched_setaffinity(hog.pid, {0})
    workload.go()
    wait_until(lambda: len(os.listdir("/proc/%d/task" % workload.pid)) == 4, "its threads run")
    starved, *others = sorted(int(tid) for tid in os.listdir("/proc/%d/task" % workload.pid))[1:]
    os.sched_setaffinity(starved, {0})
    os.setpriority(os.PRIO_PROCESS, starved, 12)
    for thread in others:
        os.sched_setaffinity(thread, {1})
    result, = results_in(workload.wait_line("stdout", '{"runtime"'))
    blocks = stream.stop()
    for hog in hogs:
        hog.signal(signal.SIGKILL)
        hog.wait()
    workload.go()
    workload.results()
    made, reported = churn_made(result), reported_by_name(blocks)
    assert reported == made, difference(made, reported)


def discover(kernel):
    return [("system." + function.__name__[5:], function, (kernel,))
            for function in (test_process_numbers, test_full_memory_recording, test_full_memory_attaching, test_suspended,
                             test_starved_writer)]
