# SPDX-License-Identifier: BSD-2-Clause
"""What an event of a driver costs whoever makes it, and how many jobs a second the collector follows."""

import json
import os
import shutil
import statistics
import tempfile

from results import AT_LEAST
from tools import BUILD, HERE, Process, Recorder, Tracer, metadata_of, wait_until

JOBS = os.path.join(BUILD, "bench", "jobs")
EMPTY_EVENT = os.path.join(BUILD, "bench", "empty_event")
DESCRIPTION = os.path.join(HERE, "jobs.json")
EVENT = ("syscalls", "sys_enter_kcmp")
STEPS = 3  # events of a job
RATE = 200000  # jobs a second
SHORT = 20  # ms
WINDOW = 4  # ms: what else the machine does is in few of them


class Jobs(Process):
    """build/bench/jobs: makes events on demand and says what they have cost."""

    def __init__(self):
        super().__init__([JOBS])
        self.wait_line("stdout", '"ready"')

    def ask(self, *words, timeout=0):
        answered = len(self.lines["stdout"])
        self.send(" ".join(map(str, words)) + "\n")
        wait_until(lambda: len(self.lines["stdout"]) > answered or self.child.poll() is not None,
                   "answer to %s" % words[0], 60 + timeout)
        return json.loads(self.lines["stdout"][answered])

    def cost(self, milliseconds):
        """CPU time of one event in ns, with the system call that makes it: the median of short windows."""
        answers = [self.ask("time", WINDOW) for _ in range(max(1, milliseconds // WINDOW))]
        return statistics.median(answer["cpu_ns"] / answer["jobs"] / STEPS for answer in answers)

    def close(self):
        self.child.stdin.close()
        self.child.wait()


class EmptyEvent(Tracer):
    name = "empty program on the tracepoint"

    def start(self, loop):
        self.process = Process([EMPTY_EVENT, *EVENT])
        self.process.wait_line("stderr", "attached")

    def stop(self, made):
        self.process.child.stdin.close()
        self.process.child.wait()


class Followed(Tracer):
    name = "xputrace, every event recorded"

    def __init__(self, folder):
        self.output = os.path.join(folder, "events.xpt")

    def start(self, loop):
        self.process = Recorder(loop.pid, self.output, "--driver", DESCRIPTION, "--drivers", "jobs")

    def stop(self, made):
        self.process.finish()
        os.unlink(self.output)


class OtherDevice(Followed):
    """Another process makes the events, on a device that the target does not use."""
    name = "xputrace, events of another device"

    def start(self, loop):
        self.process = Recorder(os.getpid(), self.output, "--driver", DESCRIPTION, "--drivers", "jobs")


class Bpftrace(Tracer):
    """The same three values of each event, printed nowhere: counted by them."""
    name = "bpftrace, counted by key"

    def missing(self):
        return None if shutil.which("bpftrace") else "not installed"

    def start(self, loop):
        self.process = Process(["bpftrace", "-e", "BEGIN { printf(\"begun\\n\"); } tracepoint:%s:%s "
                                "{ @[args->pid1, args->pid2, args->type] = count(); }" % EVENT])
        self.process.wait_line("stdout", "begun")
        wait_until(lambda: loop.cost(SHORT) > self.untraced * 1.2, "bpftrace attached")

    def stop(self, made):
        self.process.signal(2)
        self.process.wait()


def drivers_section(results, settings, folder):
    results.section("events of drivers: CPU time of the thread that makes them, which is pinned")
    empty, followed = EmptyEvent(), Followed(folder)
    tracers = [Tracer(), empty, OtherDevice(folder), followed, Bpftrace()]
    costs = {tracer: [] for tracer in tracers}
    missing = {tracer: tracer.missing() for tracer in tracers}
    jobs = Jobs()
    try:
        for _ in range(settings.repetitions):
            for tracer in tracers:
                if missing[tracer]:
                    continue
                if costs[tracers[0]]:
                    tracer.untraced = costs[tracers[0]][-1]
                tracer.start(jobs)
                jobs.cost(SHORT)
                costs[tracer].append(jobs.cost(settings.cost_milliseconds))
                tracer.stop(None)
    finally:
        jobs.close()
    for tracer in tracers:
        results.add(tracer.name, costs[tracer], "ns", note=missing[tracer] or "")
    results.add("xputrace over an empty program", [a - b for a, b in zip(costs[followed], costs[empty])], "ns", 150)
    check_load(results, settings, folder)


def check_load(results, settings, folder):
    """Jobs made against jobs in the trace and losses."""
    output = os.path.join(tempfile.mkdtemp(dir=folder), "jobs.json")
    jobs = Jobs()
    try:
        recorder = Recorder(jobs.pid, output, "--driver", DESCRIPTION, "--drivers", "jobs")
        made = jobs.ask("load", settings.load_seconds * 1000, RATE, timeout=settings.load_seconds)
        recorder.finish()
    finally:
        jobs.close()
    metadata = metadata_of(output)
    os.unlink(output)
    (queue,) = metadata["queues"]
    name = "%s jobs a second for %d s" % ("{:,}".format(RATE), settings.load_seconds)
    results.add(name + ": made", [made["jobs"] * 1e9 / made["ns"]], "jobs/s", RATE * 0.98, AT_LEAST)
    results.add(name + ": not in the trace", [made["jobs"] - queue["jobs"]], "jobs", 0)
    results.add(name + ": lost", [sum(metadata["lost"].values())], "records", 0)
    results.add(name + ": CPU of the collector", [metadata["tracing"]["collector"]["cpu_ns"] / made["ns"] * 100], "%")
