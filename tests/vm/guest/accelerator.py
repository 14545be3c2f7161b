# SPDX-License-Identifier: BSD-2-Clause
"""The tests' accelerator inside a machine: its module, programs that use it, and what these must have printed.

The device tells for each job when it was queued, began and ended, on the clock of everything else. It does so through
the ioctl by which one waits for the job, so that it is known without tracing anything.
"""

import contextlib
import os
import platform

from harness import ROOT, SLOW, Skip, results_in, run, wait_until, workload_path

NAME = "xptaccel"
NODE = "/dev/xptaccel0"
DESCRIPTION = os.path.join(ROOT, "tests", "vm", "driver", NAME + ".json")
WHY_NOT = "/lib/modules/%s/updates/%s.txt" % (platform.release(), NAME)
TRACE = "/sys/kernel/tracing/instances/accelerator"
STATUS_FAILED = {"nrt": 1002, "qaic": 300, "cuda": 719}  # of the call that waits for a job that has failed
TIMEOUT_MS = 500


# ---- the module ----

def need_module():
    """The first test says why there is no module; the others are skipped."""
    if os.path.exists(WHY_NOT):
        raise Skip("the module was not built: see driver.module")
    with contextlib.suppress(FileNotFoundError), open("/sys/kernel/security/lockdown", encoding="ascii") as file:
        if "[none]" not in file.read() and not loaded():
            raise Skip("the kernel is locked down, and the module is not signed")


def loaded():
    return os.path.isdir("/sys/module/" + NAME)


def jobs_left():
    """How many jobs the device still knows, by its own count."""
    with open("/sys/module/%s/parameters/jobs" % NAME, encoding="ascii") as file:
        return int(file.read())


def unload(leaked=False):
    """All jobs must have been given back; leaked: unless the kernel itself is known to have kept some."""
    if loaded():
        if not leaked:
            wait_until(lambda: jobs_left() == 0, "all jobs are gone", timeout=5 * SLOW)
        result = run(["rmmod", NAME])
        assert result.status == 0 and not loaded(), result.stderr
        assert not os.path.exists(NODE), "%s has outlived its module" % NODE


def load(**parameters):
    """Afresh, with other parameters: devices, engines, slots, timeout_ms."""
    need_module()
    unload()
    result = run(["modprobe", NAME] + ["%s=%d" % pair for pair in parameters.items()])
    assert result.status == 0, result.stderr
    assert os.path.exists(NODE), "no %s" % NODE


# ---- programs that use it ----

def command(runtime, *options, duration_us=2000):
    """A stand-in runtime that executes on the accelerator: the words of the command."""
    return [workload_path("workload"), runtime, "--device", NODE, "--duration-us", str(duration_us)] + [
        str(option) for option in options]


def execute(runtime, *options, **keywords):
    """Runs it to its end; the results, one a process."""
    result = run(command(runtime, *options, **keywords))
    assert result.status == 0, "the workload ended with %d: %s" % (result.status, result.stderr)
    return results_in(result.stdout)


# ---- the kernel's own trace, without any tool ----

class Event:
    """One line of it: name, thread, time in ns, fields as text."""

    def __init__(self, line):
        task, rest = line[:line.index("[")], line[line.index("["):]
        words = rest.split(None, 4)
        self.tid = int(task.strip().rpartition("-")[2])
        self.time = round(float(words[2].rstrip(":")) * 1e9)  # microseconds are printed
        self.name = words[3].rstrip(":")
        self.text = words[4].strip()
        self.fields = dict(part.split("=", 1) for part in self.text.replace(", ", " ").split() if "=" in part)


def trace_lines():
    with open(os.path.join(TRACE, "trace"), encoding="utf-8") as file:
        return file.read().splitlines()


@contextlib.contextmanager
def traced(*systems):
    """Traces all events of some systems meanwhile; afterwards the list that it yields has them."""
    os.mkdir(TRACE)
    try:
        for name, value in [("trace_clock", "mono"), ("buffer_size_kb", "4096")] + [
                ("events/%s/enable" % system, "1") for system in systems]:
            with open(os.path.join(TRACE, name), "w", encoding="ascii") as file:
                file.write(value)
        events = []
        yield events
        lines = trace_lines()
        written = next(line for line in lines if "entries-in-buffer/entries-written" in line)
        kept, made = written.split(":")[1].split()[0].split("/")
        assert kept == made, "the trace has lost events: %s" % written
        events += [Event(line) for line in lines if line and not line.startswith("#")]
    finally:
        for system in systems:
            with open(os.path.join(TRACE, "events", system, "enable"), "w", encoding="ascii") as file:
                file.write("0")
        os.rmdir(TRACE)
