#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the end-to-end tests: every function test_* of every file test_*.py in this folder.

run.py [-j N] [-k PATTERN] [--cases N] [--list] [--alone-after PID]

One line a test with its time and the processor time of its processes, the details of failures below it. Tests run side by
side, more than two for each CPU, as most of a test is waiting. Each worker has a copy of the workloads: probes are placed in
files, and so in whatever else runs them. After them come those that need a processor when they ask for it, two at once, of which
each has another reason for that (harness.paired), and those that measure something or look at the whole machine, alone (harness.alone); with --alone-after those
of both kinds whose reason begins with "measures" come when that process has ended. What has failed
in a whole run is made once more at its end, alone, if it was little, and has failed if it does so again: other programs use
the machine, too, and if they do meanwhile, up to twice more.
Closing line: N passed, N failed, N skipped.
XPUTRACE_E2E_LONG=1 makes the numbers of test_harm*.py larger, XPUTRACE_E2E_KILLS=N those of killed collectors (28).
"""

import argparse
import concurrent.futures
import contextlib
import fnmatch
import importlib
import io
import json
import os
import random
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback

import harness

SEED = os.environ.get("XPUTRACE_E2E_SEED", "0")
AGAIN = 24  # tests that are made once more when they have failed; more are no accident
BUSY = 0.02  # of the processors is used by others: what is measured meanwhile may be wrong


def discover():
    """Name, function and arguments of every test, in the order of files and lines."""
    folder = os.path.dirname(os.path.abspath(__file__))
    for file in sorted(os.listdir(folder)):
        if not fnmatch.fnmatch(file, "test_*.py"):
            continue
        module = importlib.import_module(file[:-3])
        functions = [value for name, value in vars(module).items()
                     if name.startswith("test_") and getattr(value, "__module__", None) == module.__name__]
        for function in sorted(functions, key=lambda one: one.__code__.co_firstlineno):
            name = "%s.%s" % (file[5:-3], function.__name__[5:])
            for case in getattr(function, "cases", (None,)):
                if case is None:
                    yield name, function, ()
                else:
                    yield "%s[%s]" % (name, case), function, (case,)


def selected(name, pattern):
    return not pattern or pattern in name or fnmatch.fnmatch(name, pattern)


def sample(tests, count, seed):
    """Of each function so many cases at most, the same ones for one seed."""
    of_function = {}
    for test in tests:
        of_function.setdefault(test[1], []).append(test[0])
    chance, names = random.Random(seed), set()
    for function, cases in of_function.items():
        names.update(cases if hasattr(function, "every_case") else chance.sample(cases, min(count, len(cases))))
    return [test for test in tests if test[0] in names]


def reason_for(test):
    """"alone" or "paired", and why a test is run so; (None, ""): it may be run beside any others."""
    function, module = test[1], sys.modules[test[1].__module__]
    for where, names in ((function, ("alone", "paired")), (module, ("ALONE", "PAIRED"))):
        for name in names:
            if hasattr(where, name):
                return name.lower(), getattr(where, name)
    return None, ""


def run_one(name, function, arguments, busy=None):
    """"passed", "failed" or "skipped"; prints the line of the test. busy: who used the processors is a detail of a failure."""
    start, used = time.monotonic(), processor_seconds()
    result, reason, details = "passed", "", ""
    try:
        function(*arguments)
    except harness.Skip as skip:
        result, reason = "skipped", ": %s" % skip
    except AssertionError as error:
        result, details = "failed", "%s\n%s" % (error, where(error))
    except Exception:  # a bug of a test must not end the others
        result, details = "failed", traceback.format_exc()
    finally:
        harness.clean_up()
    print("%-7s %s (%.1f s, CPU %.1f s)%s" % (result, printable(name), time.monotonic() - start, processor_seconds() - used, reason),
          flush=True)
    if result == "failed" and busy:
        details = "%s\nbeside it: %s" % (details.rstrip(), busy.text())
    for line in details.splitlines():
        print("        " + line, flush=True)
    return result


def processor_seconds():
    """Of this process and of its children that have ended: what a test costs, whatever runs beside it."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class Busy:
    """Processor time that others use from now on: processes that run now and still at the end, and what the host takes."""

    def __init__(self):
        self.start, self.before = time.monotonic(), self.now()

    @staticmethod
    def now():
        """Name and seconds by PID; kernel threads change their names."""
        with open("/proc/stat", encoding="ascii") as file:
            found = {0: ("the host", int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK"))}
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with contextlib.suppress(OSError), open("/proc/%d/comm" % pid, encoding="utf-8", errors="replace") as file:
                found[pid] = printable(file.read().rstrip("\n")), harness.cpu_seconds(pid)
        del found[os.getpid()]
        return found

    def used(self):
        """Seconds and names, the largest first."""
        now = {pid: (seconds - self.before.get(pid, ("", 0))[1], name) for pid, (name, seconds) in self.now().items()}
        return sorted((one for one in now.values() if one[0] > 0), reverse=True)

    def much(self):
        return sum(seconds for seconds, _ in self.used()) > BUSY * (time.monotonic() - self.start) * os.cpu_count()

    def text(self):
        return ", ".join("%s %.2f s" % (name, seconds) for seconds, name in self.used()[:8]) or "nothing"


def printable(name):
    return name.encode("unicode_escape").decode("ascii")


def where(error):
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if os.path.basename(frame.filename).startswith("test_")]
    return "\n".join("at %s:%d: %s" % (os.path.basename(frame.filename), frame.lineno, frame.line) for frame in frames)


# ---- side by side ----

class Queue:
    """Names of tests that are still to be made. reasons: by name; of several with the same reason one is made at a time."""

    def __init__(self, names, reasons):
        self.names, self.reasons, self.running = list(names), reasons, set()
        self.changed = threading.Condition()

    def take(self):
        """The next one that can be made now; None: there are no more."""
        with self.changed:
            while self.names:
                for name in self.names:
                    if self.reasons.get(name) not in self.running:
                        self.names.remove(name)
                        self.running |= {self.reasons[name]} if name in self.reasons else set()
                        return name
                self.changed.wait()
        return None

    def end(self, name):
        with self.changed:
            self.running.discard(self.reasons.get(name))
            self.changed.notify_all()


class Worker:
    """Another process that makes tests, one after the other, by their names."""

    def __init__(self, patient):
        self.environment = {"XPUTRACE_E2E_BESIDE": "1"} if patient else {}
        self.workloads = os.path.join(harness.scratch(), "workload")
        shutil.copytree(harness.WORKLOADS, self.workloads, symlinks=True)
        self.start()

    def start(self):
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), "--worker", str(theirs.fileno())], pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL, env={**os.environ, **self.environment, "XPUTRACE_WORKLOADS": self.workloads})
        self.lines = ours.makefile("rw", encoding="utf-8")
        ours.close()

    def make(self, name):
        """The result, and the text to be printed."""
        with contextlib.suppress(OSError):
            self.lines.write(json.dumps(name) + "\n")
            self.lines.flush()
            answer = self.lines.readline()
            if answer:
                return json.loads(answer)
        text = "failed  %s\n        its worker has ended with %d\n" % (printable(name), self.process.wait())
        self.start()
        return "failed", text

    def make_all(self, queue, outcomes):
        """Until there are no more names."""
        while True:
            name = queue.take()
            if name is None:
                break
            outcomes[name].set_result(self.make(name))
            queue.end(name)
        self.lines.close()
        self.process.wait()


def work(descriptor):
    """What a worker does."""
    tests = {test[0]: test for test in discover()}
    with socket.socket(fileno=descriptor) as connection, connection.makefile("rw", encoding="utf-8") as lines:
        connection.set_inheritable(False)
        for line in lines:
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                result = run_one(*tests[json.loads(line)], None if harness.BESIDE else Busy())
            lines.write(json.dumps((result, output.getvalue())) + "\n")
            lines.flush()


def run_beside(names, jobs, reasons=None):
    """Results by name; printed in the order of names. Without reasons threads may wait for probes for longer than by default."""
    results = {}
    outcomes = {name: concurrent.futures.Future() for name in names}
    queue = Queue(names, reasons or {})
    threads = [threading.Thread(target=Worker(not reasons).make_all, args=(queue, outcomes), daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for name in names:
        results[name], text = outcomes[name].result()
        print(text, end="", flush=True)
    for thread in threads:
        thread.join()
    return results


def wait_for_end(pid):
    """Of a process that need not be a child of this one."""
    with contextlib.suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        select.select([process], [], [])
        os.close(process)


def main():
    # A shell ignores Ctrl-C for what it starts in the background, and programs inherit that; a handler ends with exec.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description="Runs the end-to-end tests; most need root.")
    parser.add_argument("-j", metavar="N", type=int, default=3 * os.cpu_count(), help="how many side by side (3 * CPUs)")
    parser.add_argument("-k", metavar="PATTERN", help="only tests whose name contains or matches it")
    parser.add_argument("--cases", metavar="N", type=int, help="of a test with more cases only N; XPUTRACE_E2E_SEED=WORD chooses others")
    parser.add_argument("--list", action="store_true", help="only show the tests")
    parser.add_argument("--alone-after", metavar="PID", type=int, help="what measures something comes when this process has ended")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        work(options.worker)
        return 0
    tests = [test for test in discover() if selected(test[0], options.k)]
    if options.cases:
        every, tests = len(tests), sample(tests, options.cases, SEED)
        print("%d of %d tests: %d cases of each at most (XPUTRACE_E2E_SEED=%s)" % (len(tests), every, options.cases, SEED), flush=True)
    if options.list:
        for test in tests:
            kind, reason = reason_for(test)
            print("%-50s %s%s" % (printable(test[0]), (test[1].__doc__ or "").strip().split("\n")[0],
                                  " (%s: %s)" % (kind, reason) if kind else ""))
        return 0
    beside = [test[0] for test in tests if options.j > 1 and not reason_for(test)[0]]
    results = run_beside(beside, min(options.j, len(beside)))
    for measuring in (False, True):
        if measuring and options.alone_after:
            wait_for_end(options.alone_after)
        left = [test for test in tests if test[0] not in results and reason_for(test)[1].startswith("measures") == measuring]
        pairs = {test[0]: reason_for(test)[1] for test in left if options.j > 1 and reason_for(test)[0] == "paired"}
        results.update(run_beside(list(pairs), min(2, len(pairs)), pairs))
        for test in left:
            if test[0] not in results:
                results[test[0]] = run_one(*test, Busy())
    failed = [test for test in tests if results[test[0]] == "failed"]
    if not options.k and len(failed) <= AGAIN:
        for test in failed:
            for _ in range(3):
                print("again   %s" % printable(test[0]), flush=True)
                for value in vars(sys.modules[test[1].__module__]).values():
                    if hasattr(value, "cache_clear"):
                        value.cache_clear()  # a recording that is kept for several tests
                busy = Busy()
                results[test[0]] = run_one(*test, busy)
                if results[test[0]] != "failed" or not busy.much():
                    break
    counts = {kind: list(results.values()).count(kind) for kind in ("passed", "failed", "skipped")}
    for name, result in results.items():
        if result == "failed":
            print("failed  %s" % printable(name))
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
