# SPDX-License-Identifier: BSD-2-Clause
"""Whatever ends the recording: the trace loads, at most a second is missing, the target is unharmed."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time

from harness import (SLOW, XPUTRACE, Recorder, Skip, Trace, cases, need, process_state, results_in, run, scratch,
                     standin, wait_until, workload_path)

SEED = 20261


def loads(path):
    try:
        return Trace(path)
    except (OSError, json.JSONDecodeError, UnicodeDecodeError):
        return None


def test_collector_is_killed():
    """SIGKILL at random times: the trace loads, the target goes on and ends as if nothing had been."""
    chance = random.Random(SEED)
    for _ in range(6 if SLOW == 1 else 3):
        workload = standin("nrt", "--calls", 0, "--threads", 2, "--rate", round(3000 / SLOW))
        workload.go()
        recorder = Recorder("-p", workload.pid)
        time.sleep(0.6 + chance.random() * 1.2)
        killed = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6
        recorder.signal(signal.SIGKILL)
        recorder.wait()
        traces = []
        wait_until(lambda: traces.append(loads(recorder.output)) or traces[-1], "the trace loads", 5)
        trace = traces[-1]
        assert not trace.complete, "a recording that was killed is called complete"
        last = max(call.end for call in trace.calls)
        assert last > killed - 1e6, "%.2f s are missing at the end" % ((killed - last) / 1e6)
        assert process_state(workload.pid) in ("S", "R"), "the target is in state " + process_state(workload.pid)
        workload.signal(signal.SIGTERM)
        workload.results()


def test_collector_is_killed_while_holding():
    """SIGKILL while programs are started and libraries loaded: nothing is left stopped."""
    chance = random.Random(SEED + 1)
    command = "for i in 1 2 3 4 5 6 7 8 9 10; do %s nrt --dlopen --calls 2 >/dev/null & done; wait" % workload_path(
        "workload")
    for _ in range(12):
        recorder = Recorder("--", "sh", "-c", command, wait=False, start_new_session=True)
        time.sleep(chance.random() * 0.8)
        recorder.signal(signal.SIGKILL)
        session = recorder.pid

        def members(state=None):
            listed = subprocess.run(["ps", "-e", "-o", "sid=,state=,comm="], capture_output=True, text=True,
                                    check=True).stdout
            return [line for line in listed.splitlines() if int(line.split()[0]) == session
                    and line.split()[1] != "Z" and (state is None or line.split()[1] == state)]
        recorder.wait()
        wait_until(lambda: not members(), "all programs have ended, left are %s" % members(), 5 if SLOW == 1 else 20)


def test_no_writer_remains():
    """Nothing of the collector is left when it has been killed."""
    workload = standin("nrt", "--calls", 0, "--rate", 1000)
    recorder = Recorder("-p", workload.pid)
    workload.go()
    recorder.signal(signal.SIGKILL)
    recorder.wait()

    def left():
        listed = subprocess.run(["ps", "-e", "-o", "args="], capture_output=True, text=True, check=True).stdout
        return [line for line in listed.splitlines() if recorder.output in line]
    wait_until(lambda: not left(), "its helpers have ended", 5)
    workload.signal(signal.SIGTERM)
    workload.results()


@contextlib.contextmanager
def small_file_system(size):
    folder = scratch()
    if run(["mount", "-t", "tmpfs", "-o", "size=" + size, "none", folder]).status != 0:
        raise Skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        run(["umount", "-l", folder])


@cases("trace.json", "recording.xpt")
def test_full_disk(name):
    """The disk is full: said so, what was written loads, the target is unharmed."""
    with small_file_system("6m") as folder:
        workload = standin("nrt", "--calls", 0, "--threads", 2, "--rate", 2000)
        recorder = Recorder("-p", workload.pid, output=os.path.join(folder, name))
        workload.go()
        status = recorder.wait()
        assert status == 1, "ended with %d:\n%s" % (status, recorder.stderr)
        assert "no space left" in recorder.stderr.lower(), recorder.stderr
        assert process_state(workload.pid) in ("S", "R")
        workload.signal(signal.SIGTERM)
        workload.results()
        path = recorder.output
        if name.endswith(".xpt"):
            path = os.path.join(scratch(), "trace.json")
            run([XPUTRACE, "report", recorder.output, "-o", path])
        trace = Trace(path)
        assert len(trace.calls) > 5000, "only %d calls on a disk of 6 MB" % len(trace.calls)
        if not name.endswith(".xpt"):
            assert not trace.complete or trace.losses().get("output"), "nothing says that something is missing"


def test_file_size_limit():
    """The same for a limit on the size of files."""
    command = ["sh", "-c", "ulimit -f 6000; exec \"$@\"", "sh"]
    workload = standin("nrt", "--calls", 0, "--threads", 2, "--rate", 2000)
    recorder = Recorder("-p", workload.pid, prefix=command)
    workload.go()
    status = recorder.wait()
    assert status == 1, "ended with %d:\n%s" % (status, recorder.stderr)
    assert len(Trace(recorder.output).calls) > 5000
    workload.signal(signal.SIGTERM)
    workload.results()


def test_reader_of_pipe_goes():
    """The program that reads the trace from a pipe ends: so does the recording, with a message or without."""
    workload = standin("nrt", "--calls", 0, "--duration-us", 0)
    workload.go()
    recorder = subprocess.Popen([need(XPUTRACE, "collector"), "record", "-o", "-", "-p", str(workload.pid)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert recorder.stdout.read(1000)
    recorder.stdout.close()
    assert recorder.wait(30) in (0, 1, -signal.SIGPIPE)
    recorder.stderr.close()
    assert process_state(workload.pid) in ("S", "R")
    workload.signal(signal.SIGTERM)
    workload.results()


def test_trace_loads_while_recording():
    """The file on disk can be opened at any moment of the recording."""
    workload = standin("nrt", "--calls", 0, "--threads", 2, "--rate", round(500 / SLOW))
    workload.go()
    recorder = Recorder("-p", workload.pid)
    sizes = []
    for _ in range(10):
        time.sleep(0.25)
        # a flush may be under way: what is read must be whole when read twice at most
        trace = loads(recorder.output) or loads(recorder.output)
        assert trace is not None, "the trace does not load while it is written"
        sizes.append(len(trace.calls))
    assert sizes[-1] > sizes[0], "the file does not grow: %s" % sizes
    recorder.stop().check()
    workload.signal(signal.SIGTERM)
    workload.results()


def test_command_is_interrupted():
    """Ctrl-C on a terminal reaches collector and program: both end, the trace is complete."""
    recorder = Recorder("--", workload_path("linked-nrt"), "nrt", "--calls", "0", "--rate", "1000", wait=False,
                        start_new_session=True)
    wait_until(lambda: (trace := loads(recorder.output)) and trace.runs(), "runs in the trace")
    os.killpg(recorder.pid, signal.SIGINT)
    trace = recorder.finish()
    trace.check()
    assert trace.runs()
    assert not results_in(recorder.stdout)  # SIGINT ends the workload before its result
