# SPDX-License-Identifier: BSD-2-Clause
"""The program that is traced, and the tools that trace it, all with the same handles."""

import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

from harness import BUILD, TIMEOUT, XPUTRACE, Process, kill_all, wait_until  # noqa: E402 - the path comes first

FUNCTIONS = ("bench_plain", "bench_landing", "bench_nop", "bench_stepped")
DESCRIPTION = os.path.join(HERE, "loop.json")
LOOP = os.path.join(BUILD, "bench", "loop")
EMPTY_PROBE = os.path.join(BUILD, "bench", "empty_probe")
TRACED_NS = 100  # a call with the cheapest of probes takes longer, one without takes less
SETTLE_SECONDS = 0.2
TRACEFS = "/sys/kernel/tracing"
TRACE_GROUP = "xputrace_bench"
MEMORY_WANTED = 8 << 30  # that a folder in memory must have free for the largest traces


def make_folder():
    """For traces: in memory, so that no disk is measured, when there is room."""
    free = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
    with open("/proc/meminfo", encoding="ascii") as file:
        free = min(free, int(re.search(r"MemAvailable: *(\d+)", file.read()).group(1)) * 1024)
    return tempfile.mkdtemp(prefix="xputrace-bench-", dir="/dev/shm" if free >= MEMORY_WANTED else BUILD)


class Loop(Process):
    """build/bench/loop: makes calls on demand and says what they have cost."""

    def __init__(self, path=LOOP):
        super().__init__([path])
        self.answered = 0
        self.wait_line("stdout", '"ready"')

    def ask(self, command, *arguments, timeout=0):
        """Sends one command; its answer."""
        self.begin(command, *arguments)
        return self.answer(timeout)

    def begin(self, command, *arguments):
        """Sends one command, of which answer() waits for the end."""
        self.answered = len(self.lines["stdout"])
        self.send(" ".join([command] + [str(argument) for argument in arguments]) + "\n")

    def answer(self, timeout=0):
        wait_until(lambda: len(self.lines["stdout"]) > self.answered or self.child.poll() is not None, "answer", 60 + timeout)
        return json.loads(self.lines["stdout"][self.answered])

    def cost(self, function, milliseconds):
        """CPU time of one call in ns, and the number of calls made."""
        answer = self.ask("time", function, milliseconds)
        return answer["cpu_ns"] / answer["calls"], answer["calls"]

    def cold_cost(self, function, milliseconds):
        """The same with the caches displaced between calls: the median call, with one reading of the clock in it."""
        answer = self.ask("cold", function, milliseconds)
        return answer["ns"], answer["calls"]

    def load(self, function, threads, seconds, rate=0):
        return self.ask("load", function, threads, int(seconds * 1000), rate, timeout=seconds)

    def serve(self, command):
        """A command of several lines of answer; all but the last."""
        answered = len(self.lines["stdout"])
        self.send(command + "\n")
        wait_until(lambda: any('"done"' in line for line in self.lines["stdout"][answered:]) or
                   self.child.poll() is not None, "answer to " + command, 120)
        return [json.loads(line) for line in self.lines["stdout"][answered:-1]]

    def wait_traced(self, traced):
        """Tools do not say when they have attached; the calls do."""
        def all_are():
            return all((self.cost(function, 2)[0] > TRACED_NS) == traced for function in FUNCTIONS)
        wait_until(all_are, "functions %s" % ("traced" if traced else "no longer traced"))

    def close(self):
        self.child.stdin.close()
        self.child.wait()


def process_cpu(pid):
    """CPU time of a process and all its threads so far, in s: exact to a clock tick."""
    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def list_sites(path):
    """Where xputrace puts its probes, by function."""
    output = subprocess.run([XPUTRACE, "list", "sites", "-f", path, "-r", DESCRIPTION, "--only", "bench",
                             "--format", "json"], check=True, stdout=subprocess.PIPE).stdout
    return {site["function"]: site for site in json.loads(output)}


def metadata_of(trace):
    """The closing block of a Chrome trace, without reading all of it."""
    with open(trace, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - (1 << 20)))
        tail = file.read().decode("utf-8", "replace")
    return json.JSONDecoder().raw_decode(tail, tail.rindex('"metadata":') + len('"metadata":'))[0]


class Recorder(Process):
    """xputrace record on a running process."""

    def __init__(self, pid, output, *options):
        self.output = output
        super().__init__([XPUTRACE, "record", "-p", str(pid), "-o", output] + [str(option) for option in options])
        self.wait_line("stderr", "attached")

    def finish(self):
        """Interrupts it; the metadata when the trace has any."""
        self.signal(2)
        if self.wait():
            raise RuntimeError("xputrace record failed:\n" + self.stderr)
        return None if self.output.endswith(".xpt") else metadata_of(self.output)


class Tracer:
    """One way to trace the loop.

    start() returns when every call is traced. stop() gets the number of calls that were timed and gives the share that was
    seen; as calls are also made to see whether they are traced, a share that comes from a count is at most 1.
    """
    name = "untraced"
    process = None

    def missing(self):
        """Why it can't be used here, or None."""

    def start(self, loop):
        pass

    def stop(self, made):
        return None

    def abandon(self):
        """After a failure."""
        if self.process:
            self.process.kill()


class EmptyProbe(Tracer):
    """At the places that xputrace has chosen."""

    def __init__(self, kind, name):
        self.kind = kind
        self.name = name

    def _command(self, pid):
        offsets = [str(list_sites(LOOP)[function]["offset"]) for function in FUNCTIONS]
        return [EMPTY_PROBE, self.kind, str(pid), LOOP] + offsets

    def missing(self):
        tried = subprocess.run(self._command(os.getpid()), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               check=False)
        return "the kernel has no such links" if tried.returncode else None

    def start(self, loop):
        self.process = Process(self._command(loop.pid))
        self.process.wait_line("stderr", "attached")

    def stop(self, made):
        self.process.child.stdin.close()
        self.process.child.wait()


class Xputrace(Tracer):
    def __init__(self, folder, name, *options):
        self.name = name
        self.options = ("-r", DESCRIPTION, "--only", "bench") + options
        self.output = os.path.join(folder, "cost.json")

    def start(self, loop):
        self.process = Recorder(loop.pid, self.output, *self.options)

    def stop(self, made):
        programs = self.process.finish()["programs"]
        os.unlink(self.output)
        return 1 - sum(program["lost"] for program in programs) / sum(program["calls"] for program in programs)


class Bpftrace(Tracer):
    """The usual script: start times in a map, a histogram of durations."""
    name = "bpftrace, entry and return"

    def missing(self):
        return None if shutil.which("bpftrace") else "not installed"

    def start(self, loop):
        entries = ",".join("uprobe:%s:%s" % (LOOP, function) for function in FUNCTIONS)
        returns = ",".join("uretprobe:%s:%s" % (LOOP, function) for function in FUNCTIONS)
        script = ("%s { @start[tid] = nsecs; } "
                  "%s /@start[tid]/ { @ns = hist(nsecs - @start[tid]); delete(@start[tid]); }" % (entries, returns))
        self.process = Process(["bpftrace", "-p", str(loop.pid), "-e", script])
        loop.wait_traced(True)
        # It places one probe after the other: some may still lack their returns.
        opened = None
        while opened != (opened := len(os.listdir("/proc/%d/fd" % self.process.pid))):
            time.sleep(SETTLE_SECONDS)

    def stop(self, made):
        self.process.signal(2)
        self.process.wait()
        seen = sum(int(count) for count in re.findall(r"^[\[(].*?[)\]] +(\d+) \|", self.process.stdout, re.M))
        return min(1, seen / made)


class Perf(Tracer):
    """Events at entry and return, written to a file."""
    name = "perf record, entry and return"

    def __init__(self, folder):
        self.output = os.path.join(folder, "perf.data")

    def missing(self):
        if not shutil.which("perf"):
            return "not installed"
        if not os.path.exists(os.path.join(TRACEFS, "uprobe_events")):
            subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACEFS], stderr=subprocess.DEVNULL, check=False)
        return None if os.path.exists(os.path.join(TRACEFS, "uprobe_events")) else "tracefs has no uprobe_events"

    def _define(self, lines):
        # To append is to leave what others have defined; one line a write.
        events = os.open(os.path.join(TRACEFS, "uprobe_events"), os.O_WRONLY | os.O_APPEND)
        try:
            for line in lines:
                os.write(events, line.encode() + b"\n")
        finally:
            os.close(events)

    def _undefine(self):
        with open(os.path.join(TRACEFS, "uprobe_events"), encoding="ascii") as file:
            mine = re.findall(r"^\w+:(%s/\w+) " % TRACE_GROUP, file.read(), re.M)
        self._define("-:" + event for event in mine)

    def _enable(self, control, answer):
        """Its probes are there before it records: it is asked to begin and says when it has."""
        os.write(control, b"enable\n")
        if not select.select([answer], [], [], TIMEOUT)[0]:
            raise AssertionError("perf record does not begin:\n" + self.process.stderr)

    def start(self, loop):
        sites = list_sites(LOOP)
        self._undefine()
        self._define("%s:%s/%s%s %s:0x%x" % (kind, TRACE_GROUP, function, suffix, LOOP,
                                              sites[function]["function_offset"])
                     for function in FUNCTIONS for kind, suffix in (("p", ""), ("r", "_return")))
        pipes = [self.output + ".control", self.output + ".answer"]
        for path in pipes:
            os.mkfifo(path)
        opened = [os.open(path, os.O_RDWR) for path in pipes]
        try:
            self.process = Process(["perf", "record", "-B", "-N", "-D", "-1", "-p", str(loop.pid),
                                    "-e", TRACE_GROUP + ":*", "--control", "fifo:" + ",".join(pipes),
                                    "-o", self.output])
            self._enable(*opened)
        finally:
            for pipe, path in zip(opened, pipes):
                os.close(pipe)
                os.unlink(path)

    def abandon(self):
        super().abandon()
        self._undefine()

    def stop(self, made):
        self.process.signal(2)
        self.process.wait()
        self._undefine()
        output = subprocess.run(["perf", "report", "--stats", "-i", self.output], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout.decode()
        os.unlink(self.output)
        samples = re.search(r"SAMPLE events: *(\d+)", output)
        return min(1, int(samples.group(1)) / 2 / made) if samples else None
