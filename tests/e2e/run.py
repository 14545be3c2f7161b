#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the end-to-end tests: every function test_* of every file test_*.py in this folder.

run.py [-k PATTERN] [--list]

One line a test, the details of failures below it. What has failed in a whole run is made once more at its end, alone, if it was
little, and has failed if it does so again: other programs use the machine, too. Closing line: N passed, N failed, N skipped.
XPUTRACE_E2E_LONG=1 makes the numbers of test_harm*.py larger, XPUTRACE_E2E_KILLS=N those of killed collectors (28).
"""

import argparse
import fnmatch
import importlib
import os
import sys
import time
import traceback

import harness

AGAIN = 4  # tests that are made once more when they have failed; more are no accident


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


def run_one(name, function, arguments):
    """"passed", "failed" or "skipped"; prints the line of the test."""
    start = time.monotonic()
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
    print("%-7s %s (%.1f s)%s" % (result, printable(name), time.monotonic() - start, reason), flush=True)
    for line in details.splitlines():
        print("        " + line, flush=True)
    return result


def printable(name):
    return name.encode("unicode_escape").decode("ascii")


def where(error):
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if os.path.basename(frame.filename).startswith("test_")]
    return "\n".join("at %s:%d: %s" % (os.path.basename(frame.filename), frame.lineno, frame.line) for frame in frames)


def main():
    parser = argparse.ArgumentParser(description="Runs the end-to-end tests; most need root.")
    parser.add_argument("-k", metavar="PATTERN", help="only tests whose name contains or matches it")
    parser.add_argument("--list", action="store_true", help="only show the tests")
    options = parser.parse_args()
    tests = [test for test in discover() if selected(test[0], options.k)]
    if options.list:
        for name, function, _ in tests:
            print("%-50s %s" % (printable(name), (function.__doc__ or "").strip().split("\n")[0]))
        return 0
    results = {test[0]: run_one(*test) for test in tests}
    failed = [test for test in tests if results[test[0]] == "failed"]
    if not options.k and len(failed) <= AGAIN:
        for test in failed:
            print("again   %s" % printable(test[0]), flush=True)
            results[test[0]] = run_one(*test)
    counts = {kind: list(results.values()).count(kind) for kind in ("passed", "failed", "skipped")}
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
