# SPDX-License-Identifier: BSD-2-Clause
"""An output that takes nothing: the rings are emptied all the same, the target keeps its pace, and Ctrl-C ends the recording."""

import contextlib
import fcntl
import os
import re
import select
import signal
import statistics
import subprocess
import threading
import time

from harness import (REQUIRED, SLOW, TIMEOUT, XPUTRACE, Process, Recorder, Trace, cases, entries_of, need, paired, plain_name,
                     process_state, scratch, standin, wait_end, wait_until)
from hung_file_system import HungFileSystem

END = 2 * SLOW  # seconds from Ctrl-C to the end
RATE = round(500 / SLOW)
LOST = re.compile(r"(\d+) records could not be written")


class Collector:
    """xputrace with a standard output, and standard error, that are no pipes of the harness."""

    def __init__(self, *words, stdout=subprocess.DEVNULL, stderr=None):
        self.messages = os.path.join(scratch(), "messages")
        with open(self.messages, "wb") as file:
            self.child = subprocess.Popen([need(XPUTRACE, "collector")] + [str(word) for word in words],
                                          stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr or file)
        Process.running.append(self)  # ended with the test

    @property
    def stderr(self):
        with open(self.messages, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_message(self, text):
        wait_until(lambda: text in self.stderr or self.child.poll() is not None, "message \"%s\"" % text)
        assert text in self.stderr, "no message \"%s\": %s" % (text, self.stderr)

    def kill(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        if self in Process.running:
            Process.running.remove(self)

    def wait(self, timeout=TIMEOUT):
        ended = wait_end(self.child, timeout)
        self.kill()
        assert ended, "it has not ended after %.1f s: %s" % (timeout, self.stderr)
        return self.child.returncode

    def interrupt(self):
        """Ctrl-C: the exit status, which must come soon."""
        self.child.send_signal(signal.SIGINT)
        return self.wait(END)


@contextlib.contextmanager
def blocked_output(kind):
    """What -o is, what standard output is, and the end of the pipe that nobody reads."""
    if kind.startswith("fifo"):
        path = os.path.join(scratch(), kind)
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        yield path, subprocess.DEVNULL, reader
    else:
        reader, writer = os.pipe()
        fcntl.fcntl(reader, fcntl.F_SETFL, os.O_NONBLOCK)
        yield kind, writer, reader
        os.close(writer)
    os.close(reader)


def fill(descriptor):
    """A pipe that has room for nothing more."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(descriptor, b"x")
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)


def paced(*options):
    return standin("nrt", "--calls", 0, "--threads", 2, "--rate", RATE, "--log-times", *options)


def durations(results):
    return [end - begin for result in results for begin, end in zip(result["times"], result["ends"])]


def stop(workload):
    assert process_state(workload.pid) in ("S", "R"), "the target is in state " + process_state(workload.pid)
    return workload.stop()


TRACED = set(REQUIRED["nrt"].split())
INSIDE = "nrta_tensor_copy"  # the library does it with nrt_tensor_copy, which is traced, too


def made_by(results):
    """Calls of functions that are traced."""
    return sum(entry["count"] * (2 if entry["function"] == INSIDE else 1) for entry in entries_of(results)
               if plain_name(entry["function"]) in TRACED)


def calls_in(trace):
    return sum(call.function in TRACED for call in trace.calls)


class Reference:
    """The same program, recorded into a file at the same time, from before the go to the end of the other one."""

    def __init__(self):
        self.workload = paced()
        self.recorder = Recorder("-p", self.workload.pid)

    def go(self):
        self.workload.go()

    def check_pace(self, results, seconds):
        """As many executions as without anybody who looks, none of which has waited for the collector."""
        spans, normal = durations(results), durations(stop(self.workload))
        self.recorder.wait()
        assert len(spans) > RATE * 2 * seconds * 0.5, "only %d executions in %.1f s" % (len(spans), seconds)
        assert statistics.median(spans) < 3 * statistics.median(normal), "an execution takes %d ns, to a file %d" % (
            statistics.median(spans), statistics.median(normal))


@paired("measures how long the end takes")
@cases("fifo", "/dev/stdout", "-")
def test_pipe_that_nobody_reads(kind):
    """-o PIPE: nothing is lost in the rings, the target keeps its pace, Ctrl-C ends it with the number of what is missing."""
    workload, reference = paced(), Reference()
    with blocked_output(kind) as (output, stdout, reader):
        collector = Collector("record", "-p", workload.pid, "-o", output, stdout=stdout)
        collector.wait_message("attached")
        workload.go()
        reference.go()
        begin = time.monotonic()
        time.sleep(4)
        status = collector.interrupt()
        seconds = time.monotonic() - begin
        results = stop(workload)
        assert status == 1, "ended with %d:\n%s" % (status, collector.stderr)
        assert "is blocked and was given up" in collector.stderr, collector.stderr
        assert int(LOST.search(collector.stderr).group(1)) > 0
        assert "ring_full" not in collector.stderr, collector.stderr
        assert os.read(reader, 100).startswith(b'{"displayTimeUnit"')
    reference.check_pace(results, seconds)


def test_pipe_that_is_read_again():
    """The reader of a pipe stops for long and goes on: the trace is whole, and has what was lost as a number."""
    workload = standin("nrt", "--calls", 0, "--threads", 2)
    parts = []

    def read_all():
        while True:
            select.select([reader], [], [])
            data = os.read(reader, 1 << 20)
            if not data:
                return
            parts.append(data)

    with blocked_output("fifo") as (output, _, reader):
        collector = Collector("record", "-p", workload.pid, "-o", output, "-b", "64M")
        collector.wait_message("attached")
        workload.go()
        collector.wait_message("does not take what is recorded")
        time.sleep(1)
        thread = threading.Thread(target=read_all)
        thread.start()
        time.sleep(1)
        results = stop(workload)
        status = collector.wait()
        thread.join(TIMEOUT)
        assert status == 0, "ended with %d:\n%s" % (status, collector.stderr)
    path = os.path.join(scratch(), "trace.json")
    with open(path, "wb") as file:
        file.write(b"".join(parts))
    trace = Trace(path)
    trace.check()
    losses, written, made = trace.losses(), calls_in(trace), made_by(results)
    assert losses.get("output", 0) > 1000, "nothing was lost: nothing is tested: %s" % losses
    assert written + losses["output"] + losses.get("ring_full", 0) == made, "%d made, %d in the trace, lost %s" % (
        made, written, losses)


@cases("trace.json", "recording.xpt")
def test_hung_file_system(name):
    """A file system that does not answer any more: the same, and what was written before is whole."""
    workload, reference = paced(), Reference()
    with HungFileSystem() as system:
        collector = Collector("record", "-p", workload.pid, "-o", os.path.join(system.path, name))
        collector.wait_message("attached")
        workload.go()
        reference.go()
        time.sleep(1.5)
        system.hang()
        begin = time.monotonic()
        time.sleep(2)
        status = collector.interrupt()
        seconds = time.monotonic() - begin
        assert status == 1, "ended with %d:\n%s" % (status, collector.stderr)
        assert "is blocked and was given up" in collector.stderr, collector.stderr
        assert int(LOST.search(collector.stderr).group(1)) > 0
        assert "ring_full" not in collector.stderr, collector.stderr
        content = system.read(name)
    results = stop(workload)
    path = os.path.join(scratch(), name)
    with open(path, "wb") as file:
        file.write(content)
    if name.endswith(".xpt"):
        report = Process([XPUTRACE, "report", path, "-o", path + ".json"])
        assert report.wait() == 0, report.stderr
        path += ".json"
    trace = Trace(path)
    assert len(trace.calls) > RATE, "only %d calls before it hung" % len(trace.calls)
    assert not trace.complete
    reference.check_pace(results, seconds)


def test_messages_that_nobody_reads():
    """Standard error is a full pipe: the trace has everything, and Ctrl-C ends it."""
    workload = paced()
    output = os.path.join(scratch(), "trace.json")
    reader, writer = os.pipe()
    fill(writer)
    collector = Collector("record", "-v", "-p", workload.pid, "-o", output, stderr=writer)

    def calls():
        with contextlib.suppress(OSError, ValueError):
            return len(Trace(output).calls)
        return 0
    wait_until(lambda: os.path.exists(output), "the trace is there")
    time.sleep(1)  # no message says when the probes are placed
    workload.go()
    wait_until(lambda: calls() > RATE, "calls are recorded")
    status = collector.interrupt()
    assert status == 0, "ended with %d" % status
    trace = Trace(output)
    trace.check()
    assert not trace.losses().get("ring_full"), trace.losses()
    stop(workload)
    os.close(reader)
    os.close(writer)


def test_summary_that_nobody_reads():
    """Standard output is a full pipe: the trace is complete, the summary is given up."""
    workload = paced()
    output = os.path.join(scratch(), "trace.json")
    reader, writer = os.pipe()
    fill(writer)
    collector = Collector("record", "-p", workload.pid, "-o", output, stdout=writer)
    collector.wait_message("attached")
    workload.go()
    time.sleep(1)
    status = collector.interrupt()
    assert status == 1, "ended with %d:\n%s" % (status, collector.stderr)
    assert "the output is blocked and was given up" in collector.stderr, collector.stderr
    Trace(output).check()
    stop(workload)
    os.close(reader)
    os.close(writer)


@paired("measures how long the end takes")
@cases("stdout", "fifo")
def test_stream_that_nobody_reads(kind):
    """Latencies into a full pipe: all inferences are counted, the reports that were not written, too."""
    workload, reference = paced(), Reference()
    with blocked_output("-" if kind == "stdout" else "fifo") as (output, stdout, _):
        full = os.dup(stdout) if kind == "stdout" else os.open(output, os.O_WRONLY | os.O_CLOEXEC)
        fill(full)
        os.close(full)
        collector = Collector("stream", "-p", workload.pid, "--report-every", "100ms", "-o", output, stdout=stdout)
        collector.wait_message("attached")
        workload.go()
        reference.go()
        begin = time.monotonic()
        time.sleep(3)
        status = collector.interrupt()
        seconds = time.monotonic() - begin
        results = stop(workload)
        assert status == 1, "ended with %d:\n%s" % (status, collector.stderr)
        assert re.search(r"\d+ reports could not be written", collector.stderr), collector.stderr
        inferences, lost = map(int, re.search(r"(\d+) inferences, \d+ samples, (\d+) lost", collector.stderr).groups())
        executions = sum(end < (begin + seconds) * 1e9 for result in results for end in result["ends"])
        assert inferences >= 0.8 * RATE * 2 * 3 and lost == 0, collector.stderr
        assert inferences <= 2 * executions, "%d inferences of %d executions" % (inferences, executions)
    reference.check_pace(results, seconds)


@cases("fifo.json", "-")
def test_counters_that_nobody_reads(kind):
    """The same of counters: what is missing is said, and Ctrl-C ends it."""
    with blocked_output(kind) as (output, stdout, _):
        collector = Collector("counters", "-e", "page-faults,context-switches", "--every", "100us", "-o", output,
                              stdout=stdout)
        time.sleep(3)
        status = collector.interrupt()
        assert status == 1, "ended with %d:\n%s" % (status, collector.stderr)
        assert re.search(r"\d+ readings could not be written", collector.stderr), collector.stderr
        assert "the output is blocked and was given up" in collector.stderr, collector.stderr


def test_collector_is_stopped():
    """SIGSTOP of the collector for 2 s, longer where processors are slow: the target goes on at its pace, and what is lost is counted."""
    workload = standin("nrt", "--calls", 0, "--threads", 2, "--log-times")
    recorder = Recorder("-b", "1M", "-p", workload.pid)
    workload.go()
    time.sleep(1)
    recorder.signal(signal.SIGSTOP)
    stopped = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e9
    time.sleep(2 * SLOW)
    continued = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e9
    recorder.signal(signal.SIGCONT)
    time.sleep(1)
    results = stop(workload)
    trace = recorder.finish()
    trace.check()
    losses, written, made, left = trace.losses(), calls_in(trace), made_by(results), 0
    assert losses.get("ring_full", 0) > 0, "nothing was lost: nothing is tested"
    for program in trace.programs():
        left += program["calls"] - program["recorded"] - program["lost"]
        assert program["lost"] > 0, program
    assert left <= losses.get("open", 0), "%d calls are in no number: %s" % (left, losses)
    assert written + losses["ring_full"] == made, "%d made, %d in the trace, lost %s" % (made, written, losses)
    spans = [(begin, end) for result in results for begin, end in zip(result["times"], result["ends"])]
    meanwhile = [end - begin for begin, end in spans if begin >= stopped and end <= continued]
    others = [end - begin for begin, end in spans if end < stopped or begin > continued]
    assert len(meanwhile) > 1000 and len(others) > 1000
    assert statistics.median(meanwhile) < 1.5 * statistics.median(others), "%d ns while it is stopped, else %d ns" % (
        statistics.median(meanwhile), statistics.median(others))
    assert max(meanwhile) < 1e9, "an execution has taken %.1f s" % (max(meanwhile) / 1e9)
