#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the end-to-end tests: every function test_* of every file test_*.py in this folder.

run.py [-j N] [-k PATTERN] [--list] [--alone-after PID]

One line a test with its time and the processor time of its processes, the details of failures below it. Tests run side by
side, more than two for each CPU, as most of a test is waiting. Each worker has a copy of the workloads: probes are placed in
files, and so in whatever else runs them. Tests that measure something or look at the whole machine run alone, after the others
(harness.alone); with --alone-after those whose reason begins with "measures" come when that process has ended. What has failed
in a whole run is made once more at its end, alone, if it was little, and has failed if it does so again: other programs use
the machine, too.
Closing line: N passed, N failed, N skipped.
XPUTRACE_E2E_LONG=1 makes the numbers of test_harm*.py larger, XPUTRACE_E2E_KILLS=N those of killed collectors (28).
"""

import argparse
import collections
import concurrent.futures
import contextlib
import fnmatch
import importlib
import io
import json
import os
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

AGAIN = 8  # tests that are made once more when they have failed; more are no accident


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


def alone_for(test):
    """Why a test is not run beside others; None: it may be."""
    function = test[1]
    return getattr(function, "alone", None) or getattr(sys.modules[function.__module__], "ALONE", None)


def run_one(name, function, arguments):
    """"passed", "failed" or "skipped"; prints the line of the test."""
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
    for line in details.splitlines():
        print("        " + line, flush=True)
    return result


def processor_seconds():
    """Of this process and of its children that have ended: what a test costs, whatever runs beside it."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def printable(name):
    return name.encode("unicode_escape").decode("ascii")


def where(error):
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if os.path.basename(frame.filename).startswith("test_")]
    return "\n".join("at %s:%d: %s" % (os.path.basename(frame.filename), frame.lineno, frame.line) for frame in frames)


# ---- side by side ----

class Worker:
    """Another process that makes tests, one after the other, by their names."""

    def __init__(self):
        self.workloads = os.path.join(harness.scratch(), "workload")
        shutil.copytree(harness.WORKLOADS, self.workloads, symlinks=True)
        self.start()

    def start(self):
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), "--worker", str(theirs.fileno())], pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL, env={**os.environ, "XPUTRACE_WORKLOADS": self.workloads, "XPUTRACE_E2E_BESIDE": "1"})
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

    def make_all(self, names, outcomes):
        """Until there are no more names."""
        with contextlib.suppress(IndexError):
            while True:
                name = names.popleft()
                outcomes[name].set_result(self.make(name))
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
                result = run_one(*tests[json.loads(line)])
            lines.write(json.dumps((result, output.getvalue())) + "\n")
            lines.flush()


def run_beside(names, jobs):
    """Results by name; printed in the order of names."""
    results = {}
    outcomes = {name: concurrent.futures.Future() for name in names}
    waiting = collections.deque(names)
    threads = [threading.Thread(target=Worker().make_all, args=(waiting, outcomes), daemon=True) for _ in range(jobs)]
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
    parser.add_argument("-j", metavar="N", type=int, default=2 * os.cpu_count() + 1, help="how many side by side (2 * CPUs + 1)")
    parser.add_argument("-k", metavar="PATTERN", help="only tests whose name contains or matches it")
    parser.add_argument("--list", action="store_true", help="only show the tests")
    parser.add_argument("--alone-after", metavar="PID", type=int, help="what measures something comes when this process has ended")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        work(options.worker)
        return 0
    tests = [test for test in discover() if selected(test[0], options.k)]
    if options.list:
        for test in tests:
            reason = alone_for(test)
            print("%-50s %s%s" % (printable(test[0]), (test[1].__doc__ or "").strip().split("\n")[0],
                                  " (alone: %s)" % reason if reason else ""))
        return 0
    beside = [test[0] for test in tests if options.j > 1 and not alone_for(test)]
    results = run_beside(beside, min(options.j, len(beside)))
    last = []
    for test in tests:
        if test[0] not in results and options.alone_after and (alone_for(test) or "").startswith("measures"):
            last.append(test)
        elif test[0] not in results:
            results[test[0]] = run_one(*test)
    if options.alone_after:
        wait_for_end(options.alone_after)
    for test in last:
        results[test[0]] = run_one(*test)
    failed = [test for test in tests if results[test[0]] == "failed"]
    if not options.k and len(failed) <= AGAIN:
        for test in failed:
            print("again   %s" % printable(test[0]), flush=True)
            results[test[0]] = run_one(*test)
    counts = {kind: list(results.values()).count(kind) for kind in ("passed", "failed", "skipped")}
    for name, result in results.items():
        if result == "failed":
            print("failed  %s" % printable(name))
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
