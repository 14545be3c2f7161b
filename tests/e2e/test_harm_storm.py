# SPDX-License-Identifier: BSD-2-Clause
"""Thousands of forks while a collector traces: nobody is stopped, the collector costs little and can be ended at any time; what
children do is recorded, or may be missing and is counted."""

import collections
import os
import signal
import time

from harm import (LONG, Outcome, States, Target, command_status, compare_outcome, held_by, in_kernel, map_entries, members,
                  note, program, record_command, stopped_members, untraced)
from harness import SLOW, XPUTRACE, Process, Recorder, cases, cpu_seconds, wait_until

ALONE = "measures time"
SLEEPING = 12000 if LONG else round(3000 / SLOW)
LASTING = 12000 if LONG else 3000 if SLOW == 1 else 1200  # so many that it goes on while somebody looks for it
COUNTS = {"exit": 12000 if SLOW == 1 else 1000, "sleep": SLEEPING, "execute": SLEEPING // 4, "mixed": SLEEPING}
PARALLEL = 300
STORM_SECONDS = 30 * SLOW  # a storm ends in less
# Since Linux 7.0 threads are preempted inside BPF programs; others on that CPU may meet a lock or be passed over.
PREEMPTED = {"thread", "nested"} if SLOW > 1 else set()
END_SECONDS = 1 * SLOW  # from a signal to the collector's end, and from kill -9 until nothing of it is left


def storm(kind, count):
    return program("storm", kind, count, PARALLEL)


class Storm:
    """A storm under `record -- storm` or `record -p` of its parent; its processes have a session of their own."""

    def __init__(self, how, words):
        self.how, self.words = how, words
        if how == "command":
            self.recorder = Recorder("--", *words, wait=False, start_new_session=True)
            self.session = self.recorder.pid
        else:
            self.target = Target(words)
            self.session = self.target.pid
            self.recorder = Recorder("-p", self.target.pid)
            self.target.go()

    def outcome(self, died=False):
        """When all has ended. died: the collector has not waited for its command, whose status nobody knows."""
        if self.how == "attach":
            return self.target.outcome()
        wait_until(lambda: not members(self.session), "the end of the storm", STORM_SECONDS)
        self.recorder.wait()
        return Outcome(self.recorder.stdout, 0 if died else command_status(self.recorder))


def ended(process):
    """Whether it is a zombie, whose CPU time can still be read."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


@cases("command/exit", "attach/exit", "command/sleep", "attach/sleep", "command/execute", "attach/mixed")
def test_storm(case):
    """The storm ends as untraced; the collector's share of a CPU is printed."""
    how, kind = case.split("/")
    words = storm(kind, COUNTS[kind])
    alone = untraced(words)
    running = Storm(how, words)
    with States(running.session) as states:
        wait_until(lambda: members(running.session, "storm") or ended(running.recorder), "the storm")
        begun, before = time.monotonic(), cpu_seconds(running.recorder.pid)
        wait_until(lambda: ended(running.recorder), "the end of the recording", STORM_SECONDS)
        wall, busy = time.monotonic() - begun, cpu_seconds(running.recorder.pid) - before
        outcome = running.outcome()
        assert running.recorder.wait() == 0, running.recorder.stderr
    outcome.states = states.seen
    note("%s: %.2f s, untraced %.2f s; collector: %.2f s of CPU time in %.2f s (%.1f %%)" % (
        case, outcome.result["ns"] / 1e9, alone.result["ns"] / 1e9, busy, wall, 100 * busy / wall))
    compare_outcome(outcome, words)
    if kind in ("exit", "sleep") and SLOW == 1:  # nothing that is traced
        assert busy < 0.05 * wall, "the collector is too busy"


def test_calls_of_all():
    """Children that call the runtime at once: every call of every child is in the trace."""
    words = storm("call", SLEEPING // 2)
    outcome, trace = record_command(words)
    compare_outcome(outcome, words)
    losses, seen = trace.losses(), len(trace.of("nrt_tensor_write"))
    made = outcome.result["family"]["nrt_tensor_write"]
    assert set(losses) <= PREEMPTED, losses
    assert seen <= made <= seen + losses.get("thread", 0) + 3 * losses.get("nested", 0), (seen, made, losses)


@cases("call", "nested")
def test_first_children(kind):
    """Of a process that was traced alone, calls of children that are forked before its probes are shared may be missing: each of these is
    counted once. All calls of later ones are there, and of children of children."""
    first, later, calls = 40, 400, 3
    words = storm(kind, first) + [str(later)]
    target = Target(words)
    recorder = Recorder("-p", target.pid)
    target.go()
    target.wait_line("stdout", '"ready"', 2)
    recorder.wait_line("stderr", "(storm): ", 2)
    target.go()
    outcome, trace = target.outcome(), recorder.finish()
    assert outcome.result["results"]["right"] == first + later, outcome.result
    trace.check()
    made = collections.Counter(call.pid for call in trace.of("nrt_tensor_write"))
    assert set(made.values()) <= set(range(1, calls + 1)), made
    each = 2 if kind == "nested" else 1
    incomplete, losses = (first + later) * each - list(made.values()).count(calls), trace.losses()
    late, preempted = losses.pop("late_probes", 0), sum(losses.pop(what, 0) for what in PREEMPTED)
    note("%d of %d processes have calls missing, %d are counted" % (incomplete, (first + later) * each, late))
    assert not losses, losses
    assert incomplete <= late + 3 * preempted and late <= first * each, "%d processes have calls missing, %d are counted" % (incomplete, late)


@cases("spawn", "shell")
def test_children_without_calls(kind):
    """Nothing is counted of children that run in the memory of their parent until they execute a program, nor where nothing is traced."""
    if kind == "spawn":
        process = Target(storm(kind, 40))
    else:
        process = Process(["sh", "-c", "read go; for i in 1 2 3 4 5 6 7 8; do (exit 3); done; true"])
    recorder = Recorder("-p", process.pid)
    process.send("\n")
    assert process.wait() == 0
    trace = recorder.finish()
    trace.check()
    assert set(trace.losses()) <= PREEMPTED, trace.losses()


@cases("command", "attach")
def test_interrupted(how):
    """Ctrl-C in the middle ends the collector within a second; the storm ends as untraced."""
    words = storm("sleep", LASTING)
    running = Storm(how, words)
    with States(running.session, PARALLEL // 2) as states:
        states.wait_enough()
        begun = time.monotonic()
        running.recorder.signal(signal.SIGINT)
        wait_until(lambda: ended(running.recorder), "the end of the collector", STORM_SECONDS)
        lasted = time.monotonic() - begun
        outcome = running.outcome(died=True)
    outcome.states = states.seen
    note("%s: ended %.2f s after the signal" % (how, lasted))
    assert running.recorder.wait() == 0, running.recorder.stderr
    compare_outcome(outcome, words)
    assert lasted < END_SECONDS, "the collector needed %.2f s to end" % lasted


@cases("command", "attach")
def test_killed(how):
    """kill -9 in the middle: a second later nothing of the collector is left and nobody is stopped; the storm goes on."""
    words = storm("sleep", LASTING)
    running = Storm(how, words)
    with States(running.session, PARALLEL // 2) as states:
        states.wait_enough()
        held = held_by(running.recorder.pid)
        assert held & in_kernel(), "the collector has nothing in the kernel"
        running.recorder.signal(signal.SIGKILL)
        time.sleep(END_SECONDS)
        stopped, left = stopped_members(running.session), held & in_kernel()
        outcome = running.outcome(died=True)
    outcome.states = states.seen
    assert not stopped, "%d processes are stopped, such as %s" % (len(stopped), sorted(stopped.items())[0])
    assert not left, "left in the kernel: %s" % sorted(left)
    compare_outcome(outcome, words)


def test_nothing_is_left():
    """Children that end before they are followed leave no entry in the kernel's maps: these would be full some day."""
    target, other = Target(program("storm", "mixed", 100, 10)), Process(["sleep", "1000"])
    collector = Process([XPUTRACE, "stream", "-p", "%d,%d" % (target.pid, other.pid), "-o", "/dev/null", "--append", "--budget", "none"])
    collector.wait_line("stderr", "attached", 2)
    target.go()
    assert not target.outcome().status
    left = []

    def is_empty():
        entries = map_entries(collector.pid)
        left[:] = [entries["processes"], entries["programs"]]
        return left[0] <= 1 and not left[1]  # the other one, where it is not of the family
    try:
        wait_until(is_empty, "only the entry of the other process", 10 * SLOW)
    except AssertionError as error:
        raise AssertionError("entries of processes and programs: %s" % left) from error
    collector.signal(signal.SIGINT)
    assert collector.wait() == 0, collector.stderr
    other.kill()
