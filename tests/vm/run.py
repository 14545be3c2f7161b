#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the end-to-end tests on other kernels: Debian's 6.1, 6.12 and its newest, in QEMU without KVM.

run.py [--kernel NAME]... [-k PATTERN]... [--everything] [--refresh] [--shell] [--list]

One line a test, named KERNEL/TEST, the details of failures below it. A kernel that cannot be fetched is a skipped test.
Closing line: N passed, N failed, N skipped. What a kernel has said is kept in build/vm/KERNEL/.
"""

import argparse
import json
import os
import platform
import sys
import time

import image
import machine
import packages

ROOT = image.ROOT
BUILD = os.environ.get("XPUTRACE_BUILD", os.path.join(ROOT, "build"))
FOLDER = os.path.join(BUILD, "vm")
MACHINE_SECONDS = 900  # that one machine may take for its tests
SLOW = 4  # how many times longer than on a real machine something may take before a test is given up

# Tests that are not made in the machines: kernels (none: all), pattern of their names, and why. --everything makes them
# all the same.
BEFORE_6_13 = ("6.1", "6.12")
NOT_HELD = "this kernel cannot hold forked children; kernel.children_are_counted looks at what it does instead"
LEFT_OUT = (
    (BEFORE_6_13, "*[[]session]", "this kernel has no session links"),
    (("6.1",), "*[[]multi]", "this kernel has no multi links"),
    (("6.1",), "processes.two_collectors", "one of the two asks for multi links, which this kernel does not have"),
    (BEFORE_6_13, "command.forked_children*", NOT_HELD),
    (BEFORE_6_13, "command.children_that_dlopen", NOT_HELD),
    (BEFORE_6_13, "command.output_to_pipe", NOT_HELD),
    ((), "opencl.*", "PoCL is not in the image: it is ten times as large as all else"),
    ((), "onnx.*", "ONNX Runtime is not in the image"),
    ((), "endings.trace_loads_while_recording", "the trace grows faster than an emulated processor can read it"),
    ((), "endings.collector_is_killed", "takes two minutes, and no kernel does it differently"),
    ((), "endings.full_disk[[]recording.xpt]", "takes half a minute, and no kernel does it differently"),
)


class Totals:
    def __init__(self):
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}

    def add(self, name, result, seconds=0.0, details=""):
        self.counts[result] += 1
        short = details if result == "skipped" else ""
        print("%-7s %s (%.1f s)%s" % (result, name.encode("unicode_escape").decode("ascii"), seconds,
                                      ": " + short if short else ""), flush=True)
        if not short:
            for line in details.splitlines():
                print("        " + line.strip("\n"), flush=True)


def timed(kernel, step, function, *arguments):
    start = time.monotonic()
    result = function(*arguments)
    kernel.seconds[step] = time.monotonic() - start
    return result


def prepare(kernel, options):
    """Fetches a kernel and makes its images: what a machine is made of."""
    folder = os.path.join(FOLDER, kernel.name)
    timed(kernel, "fetch", packages.fetch, kernel, os.path.join(folder, "package"), options.refresh)
    modules, needed = timed(kernel, "image", image.make_modules, kernel, folder)
    left_out = [] if options.everything else [
        (pattern, why) for kernels, pattern, why in LEFT_OUT if not kernels or kernel.name in kernels]
    inside = {"kernel": kernel.name, "patterns": options.k, "left_out": left_out,
              "environment": {"XPUTRACE_E2E_SLOW": str(SLOW)}}
    return image.make_initial(needed, inside, os.path.join(folder, "initial.cpio")), modules


def run_kernel(kernel, root, options, totals):
    """All tests on one kernel."""
    initial, modules = prepare(kernel, options)
    folder = os.path.join(FOLDER, kernel.name)
    console = None if options.shell else os.path.join(folder, "console.log")
    one = machine.Machine(kernel, initial, root, modules, console)
    print("== %s: Linux %s (%s)" % (kernel.name, kernel.release, kernel.version), flush=True)
    if options.shell:
        one.interact()
        return
    start = time.monotonic()
    begun, ended = None, 0
    with open(os.path.join(folder, "results.jsonl"), "w", encoding="utf-8") as kept:
        for event in one.events(MACHINE_SECONDS):
            kept.write(json.dumps(event) + "\n")
            kept.flush()
            kind = event["event"]
            if kind == "begin":
                begun = event["test"]
            elif kind == "end":
                totals.add("%s/%s" % (kernel.name, event["test"]), event["result"], event["seconds"], event["details"])
                begun, ended = None, ended + 1
            elif kind == "gone":
                totals.add("%s/%s" % (kernel.name, begun or "machine"), "failed", time.monotonic() - start,
                           "the machine: %s; the end of its console:\n%s" % (event["reason"], one.last_words()))
            elif kind == "done" and not ended:
                totals.add("%s/machine" % kernel.name, "failed", 0, "no test was made")
    kernel.seconds["boot"] = one.booted_after or 0.0
    kernel.seconds["tests"] = time.monotonic() - start - kernel.seconds["boot"]
    print("   %s: %s" % (kernel.name, ", ".join("%s %.1f s" % pair for pair in kernel.seconds.items())), flush=True)


def parse():
    names = [kernel.name for kernel in packages.KERNELS]
    parser = argparse.ArgumentParser(description="Runs the end-to-end tests on other kernels, in QEMU.")
    parser.add_argument("--kernel", action="append", choices=names, help="only this one; may be repeated")
    parser.add_argument("-k", metavar="PATTERN", action="append", default=[],
                        help="only tests whose name contains or matches it; may be repeated")
    parser.add_argument("--everything", action="store_true", help="also the tests that are left out here")
    parser.add_argument("--refresh", action="store_true", help="look for newer packages of the kernels")
    parser.add_argument("--shell", action="store_true", help="no tests: a shell in the machine on this terminal")
    options = parser.parse_args()
    if options.shell and len(options.kernel or names) != 1:
        parser.error("--shell needs one --kernel")
    return options


def main():
    options = parse()
    kernels = [kernel for kernel in packages.KERNELS if not options.kernel or kernel.name in options.kernel]
    totals = Totals()
    why_not = machine.missing_emulator()
    if platform.machine() != "x86_64":
        why_not = "only made on x86-64"
    root = None
    for kernel in kernels:
        os.makedirs(os.path.join(FOLDER, kernel.name), exist_ok=True)
        if why_not:
            totals.add("%s/machine" % kernel.name, "skipped", 0, why_not)
            continue
        try:
            if root is None:
                start = time.monotonic()
                root = image.make_root(BUILD, FOLDER)
                print("   root file system: %.1f s" % (time.monotonic() - start), flush=True)
            run_kernel(kernel, root, options, totals)
        except packages.Unavailable as reason:
            totals.add("%s/machine" % kernel.name, "skipped", 0, str(reason))
        except image.Missing as reason:
            sys.exit("tests/vm: %s" % reason)
    if not options.shell:
        print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % totals.counts)
    return 1 if totals.counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
