# SPDX-License-Identifier: BSD-2-Clause
"""kill -9 at random moments, in every mode: a second later nobody is stopped and nothing is left in the kernel, another
collector can attach, and the target ends as untraced."""

import concurrent.futures
import contextlib
import json
import os
import random
import secrets
import signal
import time

from collectors import socket_path
from harm import (Outcome, Target, compare_outcome, end_session, held_by, in_kernel, members, program,
                  stopped_members, untraced, writers_of)
from harness import SLOW, XPUTRACE, Process, Recorder, Trace, cases, need, process_state, scratch, wait_until

SEED = 20262
COMMAND = "echo begun; \"$@\"; echo \"{\\\"status\\\":$?}\""  # says by itself how it has ended
MODES = {  # options; -p: of a program that runs
    "record -p": ("record", "-o", "trace.json"),
    "record --": ("record", "-o", "trace.json"),
    "record --codeobj --": ("record", "--codeobj", "-o", "recording.xpt"),
    "codeobj -p": ("codeobj", "-o", "objects"),
    "stream -p": ("stream", "--match", "harm", "-o", "stream.csv"),
    "profile --": ("profile", "--program", "small", "--samples", "1000000", "-o", "latency.csv"),
    "continuous -p": ("continuous", "start", "-o", "saved"),
}
AT_ONCE = 4 if SLOW == 1 else 1
ROUNDS = int(os.environ.get("XPUTRACE_E2E_KILLS", "28"))  # of all modes together
MOMENT = 2 * SLOW  # seconds from the collector's start, within which it is killed
AFTER = 1 * SLOW  # seconds from then on, after which nothing is left


def checks(*words):
    """A program that works for longer than that."""
    return program("checks", "--size", 400 << 10, "--loads", round(200 * SLOW), "--pause", 20, "--churn", 60, "--forks", 20,
                   "--late", round(2000 * SLOW), *words)


class Victim:
    """A collector that is killed, and what it traces."""

    def __init__(self, mode):
        words = [need(XPUTRACE, "collector"), *MODES[mode]]
        self.instance, self.target = "e2e-" + secrets.token_hex(6), None
        self.folder = scratch(passing=True)
        self.end = os.path.join(self.folder, "end")
        traced = checks("--until", self.end)
        if "continuous" in words:
            words += ["--instance", self.instance]
        if mode.endswith("-p"):
            self.target = Target(traced)
            self.target.go()
            words += ["-p", str(self.target.pid)]
        else:
            words += ["--", "sh", "-c", COMMAND, "sh", *traced]
        self.collector = Process(words, start_new_session=True, cwd=self.folder)
        self.session = self.target.pid if self.target else self.collector.pid

    def kill(self, with_writers):
        """It is stopped for a moment, so that one can see what it has."""
        pid = self.collector.pid
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: process_state(pid) in ("T", "Z"), "the collector is stopped")
        assert process_state(pid) == "T", "the collector has ended: " + self.collector.stderr
        self.held = held_by(pid)
        for one in (writers_of(pid) if with_writers else []) + [pid]:
            os.kill(one, signal.SIGKILL)

    def traced(self):
        """PID of the program that was traced; None: it was not begun."""
        return min(members(self.session, "checks"), default=None)

    def outcome(self):
        """Of the program, which ends now. None: it was not begun."""
        with open(self.end, "x", encoding="ascii"):
            pass
        if self.target:
            return self.target.outcome()
        self.collector.wait()
        text = self.collector.stdout
        if not text:
            return None
        assert text.startswith("begun\n") and text.endswith("}\n"), "the command has not come to its end: " + text
        return Outcome(text, json.loads(text.splitlines()[-1])["status"])

    def remove(self):
        end_session(self.session)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(socket_path(self.instance))


def check_gone(victim):
    """A second after kill -9; the kernel removes probes when others that end and begin here leave it time for that."""
    stopped = stopped_members(victim.session)
    assert not stopped, "stopped: %s" % stopped
    wait_until(lambda: not victim.held & in_kernel(), "no link and no program left in the kernel", AT_ONCE * AFTER)


def check_restart(victim):
    """Another collector records the program; False: it was not begun."""
    pid = victim.traced()
    if not pid:
        return False
    recorder = Recorder("-p", pid, "-d", "300ms", wait=False)
    status = recorder.wait()
    assert status == 0, "ended with %d: %s" % (status, recorder.stderr)
    trace = Trace(recorder.output)
    assert trace.complete and trace.of("nrt_execute", pid=pid), "nothing was recorded: " + recorder.stderr
    return True


def check_killed(mode, with_writers, wait, moment, late):
    """One collector, from its start on, or, late, from that of its command; whether another one was tried."""
    time.sleep(wait)
    victim = Victim(mode)
    try:
        if late:
            wait_until(victim.traced, "the program has begun")
        time.sleep(moment)
        victim.kill(with_writers)
        time.sleep(AFTER)
        check_gone(victim)
        restarted = check_restart(victim)
        outcome = victim.outcome()
        if outcome:
            compare_outcome(outcome, checks())
    finally:
        victim.remove()
    return restarted


@cases(*[mode + others for others in ("", " and writers") for mode in MODES])
def test_killed(case):
    """The collector alone, and together with the processes that write for it; at a moment in each part of the time."""
    mode, _, others = case.partition(" and ")
    chance = random.Random("%d %s" % (SEED, case))
    rounds = max(AT_ONCE, ROUNDS // (len(MODES) * (6 if others else 1)))
    untraced(checks())
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:  # one after the other, nearly: each end costs the kernel time
        begun = [pool.submit(check_killed, mode, bool(others), i * AFTER if i < AT_ONCE else 0,
                             ((i if i < rounds - 1 else 0) + chance.random()) / rounds * MOMENT, i == rounds - 1)
                 for i in range(rounds)]
    assert sum(one.result() for one in begun), "no restart was tried"
