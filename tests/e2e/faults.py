#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes allocations and system calls of the collector fail, and its writes short, one in each run, and judges what becomes of it.

faults.py [-k PATTERN] [--kind memory|call|short] [--each] [--task NAME] [--every N] [--first N] [--last N] [--seconds S] [--keep]
[--leave LIBRARIES] [--list]
runs whole series and prints what is wrong, with the place that asked. tests/workload/faults.c makes them fail; what is right is said at judge().
"""

import argparse
import collections
import contextlib
import ctypes
import errno
import json
import os
import random
import re
import sqlite3
import stat
import subprocess
import sys
import time

import harm
import harness

LIBRARY = "faults.so"
KINDS = ("memory", "call", "short")
# Libraries that xputrace loads much through: what fails in them is sampled, and not all their own errors are right.
OTHERS = "libbpf,libelf,libz,libcrypto,libtraceevent"
NOT_TRACED = 77  # exit status where system calls cannot be made to fail
TIME_LIMIT = 40 * harness.SLOW  # seconds for one run
ENDING = 5 * harness.SLOW  # seconds that helpers of a collector may need to end behind it, on a machine that is busy
PR_SET_CHILD_SUBREAPER = 36

# status: exit status, negative for a signal, None when it did not end; made: what it wrote, to be compared
Outcome = collections.namedtuple("Outcome", "status stderr made")
# task: name of the thread or process of a system call
Fault = collections.namedtuple("Fault", "kind number what error task frames")


class Incomplete(Exception):
    """It ended with 0, but what it made is not whole."""


def environment(kind, number, log, leave=OTHERS, keep=False, calls="", error=0, task=""):
    """number: the how manieth fails, 0 for none; or the chain of callers whose first allocation does, a text."""
    at = {"FAULTS_PLACE": number} if isinstance(number, str) else {"FAULTS_AT": str(number)}
    return dict(os.environ, LD_PRELOAD=harness.workload_path(LIBRARY), FAULTS_KIND=kind, FAULTS_LOG=log, **at,
                FAULTS_LEAVE=leave, FAULTS_KEEP=str(int(keep)), FAULTS_CALLS=calls, FAULTS_ERROR=str(error), FAULTS_TASK=task)


def read_count(log):
    """How many there were without a fault; of system calls, how many of each thread or process by its name; chains of callers."""
    def lines():
        with open(log, encoding="ascii") as file:
            return file.read().splitlines()
    harness.wait_until(lambda: lines() and lines()[0].startswith("count "), "the end of what was traced")
    found = [line.split(" ", 2) for line in lines()]
    os.unlink(log)
    return (int(found[0][1]), {name: int(number) for kind, number, *rest in found[1:] for name in rest},
            [line[1] for line in found if line[0] == "place"])


def read_fault(kind, number, log):
    """What failed; None: there were fewer."""
    if not os.path.exists(log):
        return None
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    os.unlink(log)
    if not lines:
        return None
    _, what, error, task = lines[0].split(" ", 3)
    return Fault(kind, number, what, int(error), task, lines[1:])


def lines_of(fault):
    """The collector's own lines that led to it, innermost first."""
    offsets = [match.group(1) for match in (re.search(r"/xputrace\(\+(0x[0-9a-f]+)\)", frame) for frame in fault.frames) if match]
    if not offsets:
        return "?"
    # A return address: one byte before it is the call.
    words = ["addr2line", "-f", "-s", "-e", harness.XPUTRACE] + ["%#x" % (int(offset, 16) - 1) for offset in offsets]
    lines = subprocess.run(words, capture_output=True, text=True, check=False).stdout.splitlines()
    return " < ".join("%s (%s)" % pair for pair in zip(lines[0::2], (line.split(" ")[0] for line in lines[1::2])))


# ---- processes that are left ----

def adopt(on=True):
    """From now on what the collector leaves behind becomes a child of this process."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


def children():
    with open("/proc/self/task/%d/children" % os.getpid(), encoding="ascii") as file:
        return {int(pid) for pid in file.read().split()}


def left_behind(before):
    """Names of children that have come since and do not end by themselves soon. They are ended."""
    deadline = time.monotonic() + ENDING
    while True:
        for pid in children() - before:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
        found = children() - before
        if not found or time.monotonic() > deadline:
            break
        time.sleep(0.005)
    names = []
    for pid in found:
        with open("/proc/%d/comm" % pid, encoding="ascii", errors="replace") as file:
            names.append(file.read().strip())
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    return names


# ---- judging ----

def warnings_in(text):
    """What says that something is missing: warnings, and losses in the figures at the end."""
    return [line for line in re.split(r"[\n\r]", text) if "xputrace: warning: " in line or line.startswith("lost: ")]


COMMAND_FAILS, CANNOT_RUN = 125, 126  # exit statuses of a collector that runs a command


def judge(outcome, good, fault, failure=1):
    """What is wrong; "": nothing.

    The status is 0, and what was made is the same as without a fault, or a warning says what is missing; or it is that of a
    failure, and an error says why.
    """
    last = outcome.stderr.strip().splitlines()[-3:]
    if outcome.status is None:
        return "it did not end: %s" % last
    if fault.kind == "short" and outcome.status:
        return "status %d, as if it had failed: %s" % (outcome.status, last)
    if outcome.status == 0:
        made = outcome.made
        if isinstance(made, dict) and not made.get("figures", True) and (fault.what, fault.task) == ("write", "xputrace-write"):
            made = {**good.made, **made, "figures": True}
        if isinstance(made, Incomplete) or made != good.made:
            said = fault.error and os.strerror(fault.error) in outcome.stderr and os.strerror(fault.error) not in good.stderr
            if said or fault.kind != "short" and set(warnings_in(outcome.stderr)) - set(warnings_in(good.stderr)):
                return ""
            return "status 0, no warning, but: %s" % (made if isinstance(made, Incomplete) else difference(made, good.made))
        return ""
    # Where the collector cannot write to the command that waits, it is the collector that has failed.
    if failure == COMMAND_FAILS and ": cannot run " in outcome.stderr and (fault.what, fault.task) != ("write", "xputrace"):
        failure = CANNOT_RUN
    if outcome.status != failure:
        return "status %d: %s" % (outcome.status, last)
    errors = [line for line in outcome.stderr.splitlines() if line.startswith("xputrace") and "xputrace: warning: " not in line]
    if not errors:
        return "status %d without a message: %s" % (failure, last)
    reasons = [os.strerror(fault.error)] + (["memory", os.strerror(errno.EAGAIN)] if fault.error == errno.ENOMEM else [])
    if fault.error == errno.EPERM:  # with all capabilities that is what it means
        reasons.append("not permitted by a security module or a seccomp filter")
    if fault.task not in ("-", "xputrace") and not fault.task.startswith("xpt-"):
        return ""  # a process that only serves the collector ends, or answers that it could not
    if not any(reason in outcome.stderr for reason in reasons):
        return "status %d without the reason: %s" % (failure, last)
    return ""


def difference(made, good):
    if isinstance(made, dict) and isinstance(good, dict):
        keys = [key for key in sorted(set(made) | set(good)) if made.get(key) != good.get(key)]
        return "; ".join("%s: %s" % (key, difference(made.get(key), good.get(key))) for key in keys)
    if isinstance(made, (str, bytes)) and isinstance(good, type(made)):
        at = len(os.path.commonprefix([made, good]))
        return "...%r instead of ...%r" % (made[max(0, at - 20):at + 40], good[max(0, at - 20):at + 40])
    return "%r instead of %r" % (made, good)


# ---- what is left in folders and in the kernel ----

def check_file(path):
    """Raises an error if a file that the collector has left does not load."""
    name = os.path.basename(path)
    if name.startswith(".") or name.endswith(".part"):
        raise ValueError("a temporary file")
    if not os.path.getsize(path):
        return
    if path.endswith(".json"):
        with open(path, encoding="utf-8") as file:
            json.load(file)
    elif path.endswith(".xpt"):
        subprocess.run([harness.XPUTRACE, "report", "-q", path], check=True, capture_output=True)
    elif path.endswith(".db"):
        with contextlib.closing(sqlite3.connect(path)) as database:
            assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    elif path.endswith(".html"):
        with open(path, encoding="utf-8") as file:
            assert file.read().rstrip().endswith("</html>"), "half a page"


def wrong_files():
    """What is wrong with what a test has written into its folders; "": nothing."""
    for folder in harness.passing():
        for place, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(place, name)
                try:
                    if not stat.S_ISSOCK(os.lstat(path).st_mode):
                        check_file(path)
                except (AssertionError, OSError, ValueError, subprocess.CalledProcessError, sqlite3.Error) as error:
                    return " %s: %s: %s" % (name, type(error).__name__, error)
    return ""


held = set()  # links and programs of collectors since it was cleared, as (kind, id)


def left_in_kernel():
    """Those of them that there still are, when the kernel has had time."""
    with contextlib.suppress(AssertionError):
        harness.wait_until(lambda: not held or not held & harm.in_kernel(), "nothing is left", ENDING)
    return held & harm.in_kernel() if held else set()


class Series:
    """One command, of which one thing after the other fails."""

    def __init__(self, case, kind, leave=OTHERS, keep=False, calls="", error=0, task=""):
        self.case, self.kind = case, kind
        self.options = {"leave": leave, "keep": keep, "calls": calls or case.calls, "error": error, "task": task}
        self.log = os.path.join(harness.scratch(), "log")
        self.good = case.run(environment(kind, 0, self.log, **self.options))
        if self.good.status == NOT_TRACED:
            raise harness.Skip(self.good.stderr.strip())
        assert self.good.status == 0, "without a fault: status %s: %s" % (self.good.status, self.good.stderr)
        assert not isinstance(self.good.made, Incomplete), self.good.made
        assert not isinstance(self.good.made, dict) or self.good.made.get("figures", True), "no figures: %s" % self.good.stderr
        self.count, self.tasks, self.places = read_count(self.log)

    def _attempt(self, number):
        before = children()
        outcome = self.case.run(environment(self.kind, number, self.log, **self.options))
        left = left_behind(before)
        return read_fault(self.kind, number, self.log), left, outcome

    def run(self, number):
        """What failed, and what is wrong; None: nothing was left to fail."""
        fault, left, outcome = self._attempt(number)
        if fault and outcome.status is None and self.kind != "memory":
            # On a busy machine the tracer has lost a stop now and then: a collector that waits for ever does so again.
            harness.clean_up()
            fault, left, outcome = self._attempt(number)
        if not fault:
            return None, "", outcome
        wrong = judge(outcome, self.good, fault, self.case.failure) + wrong_files()
        if left:
            wrong += " left behind: %s" % ", ".join(left)
        return fault, wrong, outcome


def of_places(series, places):
    """Each with the fault and what is wrong, for chains of callers, as far as a run has them."""
    for place in places:
        fault, wrong, outcome = series.run(place)
        if fault:
            yield fault, wrong, outcome


def in_steps(series, first=1, every=1, last=None):
    """Each with the fault and what is wrong. A run may have a few less than were counted, or more."""
    number = first
    while last is None or number <= last:
        fault, wrong, outcome = series.run(number)
        if fault:
            yield fault, wrong, outcome
        elif number >= series.count:
            return
        number += every


# ---- commands ----

def finished(words, env, made=None, said=None):
    """Runs to the end; made: a function that gives what it has written, from its standard output, which said gets in any case."""
    process = subprocess.Popen([harness.XPUTRACE] + [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=env)
    try:
        stdout, stderr = process.communicate(timeout=TIME_LIMIT)
        status = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, stderr = process.communicate()
        status = None
    if said is not None:
        said.append(stdout)
    return outcome_of(status, stderr.decode("utf-8", "replace"), (lambda: made(stdout)) if made else lambda: stdout)


def outcome_of(status, stderr, made):
    result = None
    if status == 0:
        try:
            result = made()
        except (AssertionError, OSError, ValueError, KeyError, IndexError) as error:
            result = Incomplete("%s: %s" % (type(error).__name__, error))
    return Outcome(status, stderr, result)


class Case:
    """A command: run(environment) gives its outcome."""

    all = {}

    def __init__(self, name, run, root=True, calls="", failure=1):
        self.name, self.run, self.root, self.calls = name, run, root, calls  # calls: only these can fail
        self.failure = failure  # exit status
        Case.all[name] = self


def main():
    parser = argparse.ArgumentParser(description="Makes allocations and system calls of the collector fail, one in each run.")
    parser.add_argument("-k", metavar="PATTERN", default="", help="only the command with this name, or those whose names contain it")
    parser.add_argument("--kind", choices=KINDS, help="only these")
    parser.add_argument("--first", type=int, default=1, metavar="N")
    parser.add_argument("--last", type=int, metavar="N")
    parser.add_argument("--task", default="", metavar="NAME", help="only system calls of the thread or process with this name")
    parser.add_argument("--seconds", type=float, metavar="S", help="for each series, which is then in steps that are as small as fits")
    parser.add_argument("--each", action="store_true",
                        help="each allocation, in place of the first one of each chain of callers that no command before has")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth")
    parser.add_argument("--keep", action="store_true", help="what follows fails, too")
    parser.add_argument("--leave", default=OTHERS, metavar="LIBRARIES", help="what these ask for does not fail (%s)" % OTHERS)
    parser.add_argument("--calls", default="", help="only these system calls")
    parser.add_argument("--error", type=int, default=0, help="number of the error of system calls")
    parser.add_argument("-v", action="store_true", help="print every run")
    parser.add_argument("--list", action="store_true", help="only show the commands")
    options = parser.parse_args()
    import fault_cases  # noqa: F401
    failures, runs = 0, 0
    adopt()
    for case in [Case.all[options.k]] if options.k in Case.all else [case for name, case in Case.all.items() if options.k in name]:
        if options.list:
            print(case.name)
            continue
        for kind in [kind for kind in KINDS if options.kind in (None, kind)]:
            results, seen = run_series(case, kind, options)
            failures += sum(seen.values())
            runs += sum(results.values())
    print("%d runs, %d wrong" % (runs, failures))
    return 1 if failures else 0


known_places = set()  # chains of callers of the commands before


def run_series(case, kind, options):
    """Counts of exit statuses, and of what was wrong by place."""
    begun = time.monotonic()
    held.clear()
    series = Series(case, kind, options.leave, options.keep, options.calls, options.error, options.task)
    places = [] if options.each else [place for place in series.places if place not in known_places]
    known_places.update(places)
    every, first = options.every, options.first
    if options.seconds:
        begun_again = time.monotonic()  # the first time may have made what it reads
        case.run(environment(kind, 0, series.log, **series.options))
        read_count(series.log)
        every = max(every, int((len(places) or series.count) * (time.monotonic() - begun_again) / options.seconds))
        first += random.randrange(every)
    steps = (in_steps(series, first, every, options.last) if options.each or not series.places else
             of_places(series, places[first - 1:options.last:every]))
    seen, results = collections.Counter(), collections.Counter()
    for fault, wrong, outcome in steps:
        harness.clean_up()
        results[outcome.status] += 1
        if options.v:
            print("%s %s %s %s of %s: %s: %s\n    %s\n    %s" % (case.name, kind, fault.number, fault.what, fault.task, outcome.status,
                  wrong or "right", outcome.stderr.strip()[-300:], lines_of(fault)), flush=True)
        if wrong:
            place = lines_of(fault)
            short = " < ".join(place.split(" < ")[:3])
            seen[short] += 1
            if seen[short] == 1:
                print("%s %s %s %s of %s: %s\n    %s" % (case.name, kind, fault.number, fault.what, fault.task, wrong[:700], place), flush=True)
    left = left_in_kernel()
    if left:
        seen["left in the kernel"] += 1
        print("%s %s: left in the kernel: %s" % (case.name, kind, sorted(left)))
    print("%s %s: %d in all%s%s, %d runs in %.1f s, %d wrong at %d places; status: %s" % (
        case.name, kind, series.count, " (%s)" % ", ".join("%s %d" % one for one in series.tasks.items()) if series.tasks else "",
        " from %d chains of callers" % len(series.places) if series.places else "",
        sum(results.values()), time.monotonic() - begun, sum(seen.values()), len(seen), dict(results)), flush=True)
    return results, seen


if __name__ == "__main__":
    sys.modules["faults"] = sys.modules["__main__"]
    sys.exit(main())
