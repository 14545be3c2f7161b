#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Inside a machine: runs the tests of tests/e2e and of this folder, and reports each on the port of the results.

What is asked for stands in the options (see machine.py). One JSON object a line goes out:
  {"event": "booted", "release": ...}, {"event": "chosen", "tests": N, "of": N}, {"event": "begin", "test": ...},
  {"event": "end", "test": ..., "result": "passed" | "failed" | "skipped", "seconds": ..., "details": ...},
  {"event": "done"}
"""

import contextlib
import fnmatch
import io
import json
import os
import platform
import sys
import time
import traceback

OPTIONS = "/run/options.json"
PORT = "/dev/virtio-ports/xputrace.results"
HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(os.path.dirname(os.path.dirname(HERE)), "e2e")


class Report:
    """The port, or standard output when this is called by hand in a machine's shell."""

    def __init__(self):
        self._path = port_path()

    def send(self, event, **fields):
        data = json.dumps(dict(fields, event=event)).encode() + b"\n"
        # Opened each time: a test may take the port away meanwhile (system.suspended).
        with open(self._path, "wb", buffering=0) if self._path else contextlib.nullcontext(sys.stdout.buffer.raw) as file:
            while data:
                data = data[file.write(data):]


def port_path():
    """Named by a rule of udev elsewhere: here the name is found in sysfs."""
    folder = "/sys/class/virtio-ports"
    for port in os.listdir(folder) if os.path.isdir(folder) else ():
        with open(os.path.join(folder, port, "name"), encoding="ascii") as file:
            if file.read().strip() == os.path.basename(PORT):
                return "/dev/" + port
    return None


def in_order(options, chosen):
    """All tests, or those that match a chosen pattern. Drivers are loaded late and stay: every recording follows the events of
    all that are there, which takes three times as long in here."""
    import run  # tests/e2e/run.py
    import counters_tests
    import device_tests
    import driver_tests
    import gpu_tests
    import kernel_tests
    import lockdown_tests
    import pmu_tests
    import setup_tests
    import system_tests
    import unit_tests
    kernel = options["kernel"]
    first, loading, last = kernel_tests.discover(kernel)
    loading += device_tests.discover(kernel) + pmu_tests.discover(kernel) + gpu_tests.discover(kernel)
    loading += counters_tests.discover(kernel) + driver_tests.discover(kernel)
    everywhere = list(run.discover())
    if options["cases"]:
        everywhere = run.sample([test for test in everywhere if not left_out(test[0], options)], options["cases"], options["seed"])
    of_drivers = [test for test in everywhere if test[0].startswith("drivers.")]
    tests = setup_tests.discover(options) + unit_tests.discover() + first + system_tests.discover(kernel)
    tests += [test for test in everywhere if test not in of_drivers] + loading + of_drivers + last + lockdown_tests.discover()
    for pattern in chosen:
        assert any(fnmatch.fnmatchcase(test[0], pattern) for test in tests), "no test matches %s" % pattern
    return [test for test in tests if matches(test[0], chosen)]


def left_out(name, options):
    """Why a test is not made here; "": it is."""
    return next((reason for pattern, reason in options["left_out"] if fnmatch.fnmatchcase(name, pattern)), "")


def matches(name, chosen):
    return not chosen or any(fnmatch.fnmatchcase(name, pattern) for pattern in chosen)


def run_all(report, options):
    import run
    tests = in_order(options, options["chosen"])
    if options["chosen"] and not options["finished"]:
        report.send("chosen", tests=len(tests), of=len(in_order(options, [])))
    for name, function, arguments in tests:
        if not any(run.selected(name, pattern) for pattern in options["patterns"] or [""]):
            continue
        if name in options["finished"]:
            continue
        report.send("begin", test=name)
        start = time.monotonic()
        output = io.StringIO()
        reason = left_out(name, options)
        if reason and not name.startswith("kernel."):
            report.send("end", test=name, result="skipped", seconds=0, details="left out: " + reason)
            continue
        with contextlib.redirect_stdout(output):
            result = run.run_one(name, function, arguments)
        lines = output.getvalue().splitlines()
        details = "\n".join(lines[1:]) if result != "skipped" else lines[0].partition("): ")[2]
        report.send("end", test=name, result=result, seconds=round(time.monotonic() - start, 1), details=details)


def hurry():
    """Half of the time on a kernel with perf uprobes goes into grace periods, one after the other for each probe."""
    with open("/sys/kernel/rcu_expedited", "w", encoding="ascii") as file:
        file.write("1")


def main():
    report = Report()
    report.send("booted", release=platform.release(), uptime=time.clock_gettime(time.CLOCK_BOOTTIME))
    try:
        with open(OPTIONS, encoding="utf-8") as file:
            options = json.load(file)
        os.environ.update(options["environment"])
        hurry()
        sys.path[:0] = [E2E, HERE]
        run_all(report, options)
        report.send("done")
    except Exception:  # nobody else would tell
        report.send("end", test="tests.py", result="failed", seconds=0, details=traceback.format_exc())


if __name__ == "__main__":
    main()
