#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Builds packages, installs them into fresh systems, and compares builds: run.py [-k PATTERN] [--list]. As root.

Names are FILE.FUNCTION, without test_. One line a test; the closing line counts them. The environment has MAKE.
"""

import argparse
import fnmatch
import glob
import importlib
import inspect
import os
import shutil
import subprocess
import sys
import time
import traceback

from support import SCRATCH, Skip

HERE = os.path.dirname(os.path.abspath(__file__))


def tests():
    for path in sorted(glob.glob(os.path.join(HERE, "test_*.py"))):
        module = importlib.import_module(os.path.basename(path)[:-3])
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("test_") and function.__module__ == module.__name__:
                yield "%s.%s" % (module.__name__[5:], name[5:]), function


def details(error):
    """What a failed command has written, else where it has failed."""
    if isinstance(error, subprocess.CalledProcessError):
        return "%s: status %d\n%s" % (" ".join(map(str, error.cmd)), error.returncode, (error.output or "")[-3000:])
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def run_one(name, function):
    start, text = time.monotonic(), ""
    try:
        function()
        result = "passed"
    except Skip as reason:
        result, text = "skipped", str(reason)
    except Exception as error:  # pylint: disable=broad-except
        result, text = "failed", "\n    " + details(error).rstrip().replace("\n", "\n    ")
    print("%s %s (%.1f s)%s" % (result, name, time.monotonic() - start, ": " + text if text else ""), flush=True)
    return result


def remove_scratch():
    """With what podman leaves mounted in it."""
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
        mounted = [line.split()[1] for line in file]
    for path in reversed(mounted):
        if path.startswith(SCRATCH + "/"):
            subprocess.run(["umount", path], check=True)
    if os.path.exists(SCRATCH):
        shutil.rmtree(SCRATCH)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="*", help="only tests whose name contains this, or is matched by it")
    parser.add_argument("--list", action="store_true", help="print the names")
    options = parser.parse_args()
    chosen = [(name, function) for name, function in tests() if options.k in name or fnmatch.fnmatch(name, options.k)]
    if options.list:
        print("\n".join(name for name, _ in chosen))
        return 0
    remove_scratch()
    os.makedirs(SCRATCH)
    results = [run_one(name, function) for name, function in chosen]
    counts = [results.count(kind) for kind in ("passed", "failed", "skipped")]
    if not counts[1]:
        remove_scratch()
    print("%d passed, %d failed, %d skipped" % tuple(counts))
    return 0 if results and not counts[1] else 1


if __name__ == "__main__":
    sys.exit(main())
