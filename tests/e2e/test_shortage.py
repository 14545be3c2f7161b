# SPDX-License-Identifier: BSD-2-Clause
"""A collector without memory, disk or folder, with a clock that jumps, and targets that have very much: the target is unharmed, what
was saved can be read, nothing is left in the kernel."""

import contextlib
import os
import shutil
import signal
import sys
import time

from collectors import Collector, endless, report, unharmed
from harm import held_by, in_kernel
from harness import (SLOW, XPUTRACE, Process, Recorder, Skip, Workload, alone, cases, compare, need, scratch,
                     standin, wait_until, workload_path)
from test_blocked_outputs import blocked_output
from test_endings import small_file_system

LIMIT = 64 << 20  # bytes
MAPPINGS = 60000  # a process may have 65,530


# ---- memory ----

class ControlGroup:
    """with ControlGroup() as group: its processes may have 64 MB of memory; group.enter: the beginning of a command in it."""

    def __enter__(self):
        name = "xputrace-e2e-%d" % os.getpid()
        for root, limit, events in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"),
                                    ("/sys/fs/cgroup", "memory.max", "memory.events")):
            self.path, self._events = os.path.join(root, name), events
            with contextlib.suppress(OSError):
                os.mkdir(self.path)
                with open(os.path.join(self.path, limit), "w", encoding="ascii") as file:
                    file.write(str(LIMIT))
                break
        else:
            with contextlib.suppress(OSError):
                os.rmdir(self.path)
            raise Skip("memory cannot be limited by a control group here")
        self.enter = ["sh", "-c", "echo $$ >%s/cgroup.procs && exec \"$@\"" % self.path, "sh"]
        return self

    def __exit__(self, *_):
        wait_until(self._remove, "the control group is empty")

    def _remove(self):
        with contextlib.suppress(OSError):
            os.rmdir(self.path)
        return not os.path.exists(self.path)

    def kills(self):
        with open(os.path.join(self.path, self._events), encoding="ascii") as file:
            return int(dict(line.split() for line in file)["oom_kill"])


def check_killed(collector, held):
    """Killed itself, or one of its processes, which it then says; either way nothing of it is left."""
    status = collector.wait()
    assert status == -signal.SIGKILL or status == 1 and "xputrace: error: " in collector.stderr, (status, collector.stderr)
    wait_until(lambda: not held & in_kernel(), "no link and no program is left in the kernel")


def test_memory_of_continuous():
    """Killed for want of memory while its window fills: what was saved before can be read, and another collector can begin."""
    with ControlGroup() as group:
        workload = endless("--threads", 2, rate=0)
        collector = Collector("-p", workload.pid, "--window", "512M", "-b", "1M", prefix=group.enter)
        collector.wait_calls()
        saved = collector.save()
        held = held_by(collector.pid)
        assert held & in_kernel()
        wait_until(group.kills, "the kernel has killed somebody", 60 * SLOW)
        check_killed(collector, held)
        assert report(saved).runs(pid=workload.pid)
    recorder = Recorder("-p", workload.pid, "-d", "300ms")
    assert recorder.finish().runs(pid=workload.pid)
    unharmed(workload)


def test_memory_of_record():
    """The same while its output is blocked, whose queue is of that size."""
    with ControlGroup() as group, blocked_output("fifo") as (output, _, _):
        workload = endless("--threads", 2, rate=0)
        recorder = Recorder("-p", workload.pid, "-b", "1M", output=output, prefix=group.enter)
        held = held_by(recorder.pid)
        wait_until(group.kills, "the kernel has killed somebody", 60 * SLOW)
        check_killed(recorder, held)
    unharmed(workload)


# ---- disks and folders ----

@cases("trace.pftrace", "page.html")
def test_full_disk(name):
    """As test_endings.test_full_disk, of what cannot be read as long as it is not whole: nothing hidden is left, and no half page."""
    with small_file_system("100k") as folder:
        workload = standin("nrt", "--calls", "4000", "--threads", "2")
        recorder = Recorder("-p", workload.pid, output=os.path.join(folder, name))
        workload.go()
        workload.results()
        status = recorder.wait()
        assert status == 1 and "no space left" in recorder.stderr.lower(), (status, recorder.stderr)
        assert os.listdir(folder) == [name], os.listdir(folder)
        assert name == "trace.pftrace" or not os.path.getsize(recorder.output), "half a page"


@cases("record", "record -q -d 2s", "stream --append", "codeobj", "inspect")
def test_folder_goes(command):
    """The folder of the output is removed meanwhile: status 1 and a message, or it is made again and all is there."""
    folder = os.path.join(scratch(), "folder")
    os.mkdir(folder)
    command, *options = command.split()
    output = os.path.join(folder, {"record": "trace.json", "stream": "reports.csv"}.get(command, "output"))
    workload = standin("nrt", "--calls", "20", "--linger")
    collector = Process([need(XPUTRACE, "collector"), command, "-p", str(workload.pid), "-o", output, *options])
    if "-q" in options:
        wait_until(lambda: os.path.exists(output), "the output has been opened")
    else:
        collector.wait_line("stderr", "recording into memory" if command == "inspect" else "attached")
    shutil.rmtree(folder)
    workload.go()
    workload.wait_line("stdout", '"runtime"')
    if "-d" not in options:
        collector.signal(signal.SIGINT)
    status = collector.wait()
    there = os.path.exists(output)
    assert status == 0 and there or status == 1 and "xputrace: error: " in collector.stderr, (status, there, collector.stderr)
    workload.send("\n")
    assert workload.wait() == 0, workload.stderr


# ---- clocks ----

def test_clock_jumps():
    """The wall clock is set back and forth by an hour: calls, their order and their durations do not mind."""
    workload = standin("nrt", "--calls", "100", "--rate", "100")
    recorder = Recorder("-p", workload.pid, env={**os.environ, "LD_PRELOAD": workload_path("clock_jumps.so")})
    begun = time.monotonic()
    workload.go()
    results = workload.results()
    trace = recorder.finish()
    lasted = time.monotonic() - begun
    trace.check()
    compare("nrt", results, trace)
    starts = [call.start for call in trace.calls]
    assert 0 < (max(starts) - min(starts)) / 1e6 < lasted, (min(starts), max(starts), lasted)


# ---- processors ----

BURNER = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
end = time.monotonic() + 3
print("burns", flush=True)
while time.monotonic() < end:
    pass
"""


def burn():
    """For 3 s a real-time thread runs on each CPU: all else has what the kernel leaves it, 5 % of the time."""
    burners = [Process([sys.executable, "-c", BURNER, str(cpu)]) for cpu in os.sched_getaffinity(0)]
    for burner in burners:
        wait_until(lambda burner=burner: burner.stdout or burner.child.poll() is not None, "a real-time thread runs")
        if "PermissionError" in burner.stderr:
            raise Skip("threads of this control group may not be real-time ones")
    return burners


@alone("takes all processors")
@cases("recording", "attaching")
def test_real_time(when):
    """Real-time threads on each CPU: every call is recorded, with the duration that the workload has measured, and the target goes on."""
    workload = standin("nrt", "--calls", "200", "--rate", "100", "--threads", "2")
    if when == "attaching":
        burners = burn()
    recorder = Recorder("-p", workload.pid)
    if when == "recording":
        burners = burn()
    workload.go()
    results = workload.results()
    trace = recorder.finish()
    assert [burner.wait() for burner in burners] == [0] * len(burners), [burner.stderr for burner in burners]
    trace.check()
    compare("nrt", results, trace)


# ---- very much of something ----

def test_mappings():
    """A target with 60,000 mappings: it is traced whole, and the collector's processes need seconds, not minutes."""
    workload = Workload([workload_path("workload"), "nrt", "--wait-for-go", "--calls", "50", "--threads", "2"],
                        env={**os.environ, "LD_PRELOAD": workload_path("mappings.so"), "MAPPINGS": str(MAPPINGS)})
    with open("/proc/%d/maps" % workload.pid, encoding="utf-8") as file:
        assert sum(1 for _ in file) > MAPPINGS
    begun = time.monotonic()
    recorder = Recorder("-p", workload.pid)
    lasted = time.monotonic() - begun
    workload.go()
    results = workload.results()
    trace = recorder.finish()
    trace.check()
    compare("nrt", results, trace)
    assert lasted < 20 * SLOW, "attached after %.1f s" % lasted
