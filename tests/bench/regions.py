# SPDX-License-Identifier: BSD-2-Clause
"""What a region costs the program that marks it, beside other tools that see such marks."""

import json
import os
import re
import shutil
import statistics
import subprocess
import time

from cost import ratios
from tools import (BUILD, DESCRIPTION, HERE, LOOP, SETTLE_SECONDS, Loop, Process, Recorder, Tracer,
                   wait_until)

PROGRAM = os.path.join(BUILD, "bench", "regions")
DISABLED_PAIRS, KEPT_PAIRS = 1000, 20  # for each microsecond of the time that a cost is measured for
REGION, SPAN, LTTNG_PAIR = "bench_region", "bench_plain", "bench_lttng"
RECORDED, SPAN_RECORDED = "xputrace record", "a call of a function, entry and return"
SPAN_LIMIT = 1.2  # of what a span of a function costs
SEEN = 50  # ns that a pair takes at least which somebody looks at, and never otherwise


def cost(pairs, **environment):
    """ns of CPU time for a start and its stop."""
    result = subprocess.run([PROGRAM, str(pairs)], stdout=subprocess.PIPE, check=True,
                            env=dict(os.environ, **environment))
    reported = json.loads(result.stdout)
    assert reported["kept"] == (pairs + 1 if environment else 0), reported
    return reported["cpu_ns"] / reported["pairs"]


class Watcher(Tracer):
    """One way to watch the loop from outside: start() returns when marks are seen, and stop() when no longer."""
    function = REGION

    def watched(self, loop):
        return loop.cost(self.function, 2)[0] > SEEN

    def wait(self, loop, watched):
        wait_until(lambda: self.watched(loop) == watched, "marks %s" % ("seen" if watched else "no longer seen"))


class Recording(Watcher):
    """Regions and spans of a function in one session."""
    name = RECORDED

    def __init__(self, folder):
        self.output = os.path.join(folder, "regions.json")

    def start(self, loop):
        self.process = Recorder(loop.pid, self.output, "-r", DESCRIPTION, "--only", "bench,region", "-b", "64M")

    def stop(self, made):
        metadata = self.process.finish()
        os.unlink(self.output)
        seen = [region["duration_ns"]["count"] for region in metadata["regions"]]
        return min(1, (sum(seen) + sum(program["recorded"] for program in metadata["programs"])) / made)


class Usdt(Watcher):
    """bpftrace on both probes."""

    def __init__(self, name, action):
        self.name = "bpftrace, " + name
        self.script = " ".join("usdt:%s:xputrace:region_%s %s" % (LOOP, end, action) for end in ("begin", "end"))

    def missing(self):
        return None if shutil.which("bpftrace") else "not installed"

    def start(self, loop):
        self.process = Process(["bpftrace", "-p", str(loop.pid), "-e", self.script])
        self.wait(loop, True)
        time.sleep(SETTLE_SECONDS)  # the second probe

    def stop(self, made):
        self.process.signal(2)
        self.process.wait()
        found = re.search(r"^@: (\d+)", self.process.stdout, re.M)
        return min(1, int(found.group(1)) / 2 / made) if found else None


class Lttng(Watcher):
    """A pair of tracepoints in a live session, in a build of the loop that has them; its daemon is our own."""
    name = "LTTng-UST, two tracepoints"
    function = LTTNG_PAIR
    session = "xputrace-bench"
    daemon = loop = None

    def __init__(self, folder):
        self.folder = folder
        self.program = os.path.join(folder, "loop-lttng")

    def missing(self):
        if not shutil.which("lttng-sessiond"):
            return "lttng-tools is not installed"
        source = os.path.join(HERE, "target")
        built = subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-DBENCH_LTTNG", "-I", source, "-I", os.path.join(
            HERE, "..", "..", "include"), os.path.join(source, "loop.c"), "-o", self.program, "-llttng-ust", "-ldl",
            "-lpthread"], stderr=subprocess.PIPE, check=False)
        if built.returncode:
            return "liblttng-ust-dev is not installed"
        if not self.control("list"):
            self.daemon = Process(["lttng-sessiond", "--no-kernel"])
            wait_until(lambda: self.control("list") or self.daemon.child.poll() is not None, "session daemon")
            if self.daemon.child.poll() is not None:
                return "lttng-sessiond does not run here"
        self.loop = Loop(self.program)
        return None

    @staticmethod
    def control(*words):
        result = subprocess.run(["lttng", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return result.stdout.decode() if not result.returncode else None

    def start(self, loop):
        self.control("create", self.session, "--output=" + os.path.join(self.folder, "lttng"))
        self.control("enable-channel", "-u", "--subbuf-size=16M", "--num-subbuf=8", "channel")
        self.control("enable-event", "-u", "bench:*", "-c", "channel")
        self.control("start")
        self.wait(loop, True)

    def stop(self, made):
        self.control("stop")
        lost = re.search(r"Discarded events: (\d+)", self.control("list", self.session) or "")
        self.control("destroy", self.session)
        shutil.rmtree(os.path.join(self.folder, "lttng"), ignore_errors=True)
        return 1 - int(lost.group(1)) / 2 / made if lost else None

    def close(self):
        if self.loop:
            self.loop.close()
        if self.daemon and self.daemon.child.poll() is None:
            self.daemon.signal(15)
            self.daemon.wait()


def watch(watcher, loop, milliseconds, functions):
    """ns of each of the functions while somebody looks, and the share that was seen, or None."""
    watcher.start(loop)
    measured = [loop.cost(function, milliseconds) for function in functions]
    share = watcher.stop(sum(calls for _, calls in measured))
    watcher.wait(loop, False)
    return [ns for ns, _ in measured], share


def watched_section(results, settings, folder):
    results.section("regions: CPU time of a start and its stop, watched from outside; the tools take turns")
    lttng = Lttng(folder)
    watchers = [Recording(folder), Usdt("empty actions", "{ }"), Usdt("which counts", "{ @ = count(); }"), lttng]
    missing = {watcher.name: watcher.missing() for watcher in watchers}
    costs = {(watcher.name, watcher.function): [] for watcher in watchers}
    costs[RECORDED, SPAN] = []
    seen = {watcher.name: [] for watcher in watchers}
    loop = Loop()
    try:
        for _ in range(settings.repetitions):
            for watcher in watchers:
                if missing[watcher.name]:
                    continue
                functions = (REGION, SPAN) if watcher.name == RECORDED else (watcher.function,)
                try:
                    measured, share = watch(watcher, lttng.loop if watcher is lttng else loop,
                                            settings.cost_milliseconds, functions)
                except (AssertionError, OSError) as error:
                    if watcher.name == RECORDED:
                        raise
                    missing[watcher.name] = "failed: " + str(error).strip().splitlines()[-1]
                    watcher.abandon()
                    continue
                for function, value in zip(functions, measured):
                    costs[watcher.name, function].append(value)
                seen[watcher.name] += [share * 100] if share is not None else []
    finally:
        loop.close()
        lttng.close()
    for watcher in watchers:
        share = "%.0f %% seen" % statistics.median(seen[watcher.name]) if seen[watcher.name] else ""
        results.add(watcher.name, costs[watcher.name, watcher.function], "ns", note=missing[watcher.name] or share)
    results.add("%s, %s" % (RECORDED, SPAN_RECORDED), costs[RECORDED, SPAN], "ns")
    results.add("a region / a span, recorded in the same session", ratios(costs, (RECORDED, REGION), (RECORDED, SPAN)),
                "times", SPAN_LIMIT)


def regions_section(results, settings, folder):
    results.section("regions: CPU time of a start and its stop, by one thread")
    microseconds = settings.cost_milliseconds * 1000
    repetitions = range(settings.repetitions)
    results.add("nobody looks", [cost(DISABLED_PAIRS * microseconds) for _ in repetitions], "ns", 2)
    results.add("kept in the process", [cost(KEPT_PAIRS * microseconds, XPUTRACE_REGIONS="enabled")
                                        for _ in repetitions], "ns", 80)
    watched_section(results, settings, folder)
