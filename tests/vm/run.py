#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the end-to-end tests on other kernels: Debian's 6.1, 6.12 and its newest, in QEMU without KVM.

run.py [--kernel NAME]... [-k PATTERN]... [--everything] [--refresh] [--shell] [--list]

One line a test, named KERNEL/TEST, the details of failures below it. An emulated machine on a busy one has pauses of its own:
what has failed in a whole run is made once more in a machine of its own, if it was little, and has failed if it does so
again; both times are shown. When the newest kernel cannot be fetched, that is
a skipped test; when 6.1 or 6.12 cannot, or there is no QEMU, a failed one.
Closing line: N passed, N failed, N skipped. What a kernel has said is kept in build/vm/KERNEL/.
"""

import argparse
import concurrent.futures
import json
import os
import platform
import sys
import threading
import time
import traceback

import image
import machine
import packages

ROOT = image.ROOT
BUILD = os.environ.get("XPUTRACE_BUILD", os.path.join(ROOT, "build"))
FOLDER = os.path.join(BUILD, "vm")
KERNEL_SECONDS = 3200  # that the tests on one kernel may take; with perf uprobes they take twice as long as else
MACHINES = 8  # that may be started for one kernel, when they die
# The kernel switches tracepoints on by changing code under a breakpoint, and waits until no processor can meet that any
# more. One of several emulated processors may still have it, translated, and run into it when nobody knows of it.
EMULATORS_MARK = "Oops: int3"
EMULATORS_FAULT = "an emulated processor has run into a breakpoint that the kernel had already taken away"
FAULTS = 3  # that are believed for one kernel
AGAIN = 4  # tests of one kernel that are made once more when they have failed; more are no accident
REQUIRED = ("6.1", "6.12")  # in stable Debians: there is no day on which they cannot be had
# How many times longer than on a real machine something may take. On a real one 30 perf uprobes are placed in 2 to 4
# ms, on 6.1 in here in 70 to 110 ms.
SLOW = {"6.1": 15, "6.12": 5, "newest": 5}

# Tests that are not made in the machines: kernels (none: all), pattern of their names, and why. --everything makes them
# all the same.
BEFORE_6_13 = ("6.1", "6.12")
READ = "code objects are read without the kernel; codeobj.sizes and others look at what it does"
FILES = "clients and files of the collector, without the kernel; continuous.* and stream.* look at what it does"
OPTIONS = "options are refused before the kernel is asked"
REPORTS = "what is made of the records does not ask the kernel; recording.same_trace, stream.* and profile.* look at the records"
MANY = "takes minutes here; codeobj.sizes and others look at what the kernel does"
BETWEEN = "looked at on the oldest and on the newest kernel: what it asks of the kernel does not depend on the kind of links"
FAULTS_OF_CALLS = "allocations and calls that fail do not depend on the kernel"
STACKS = "this kernel has no session links: targets that switch stacks are not traced safely"
LEFT_OUT = (
    (BEFORE_6_13, "*[[]session]", "this kernel has no session links"),
    (("6.1",), "*[[]multi]", "this kernel has no multi links"),
    (("newest",), "devices.*_trace", "this kernel skips events of system calls, and reports do not tell how many"),
    (("6.12",), "continuous_hostile.*", BETWEEN),
    (("6.12",), "counters.*", BETWEEN),
    (("6.12",), "inspect.*", BETWEEN),
    (("6.12",), "libraries.*", BETWEEN),
    (("6.12",), "messages.*", BETWEEN),
    (("6.12",), "process_names.*", BETWEEN),
    (("6.12",), "record_counters.*", BETWEEN),
    (("6.12",), "region_header.*", BETWEEN),
    (BEFORE_6_13, "harm_stacks.*", STACKS),
    ((), "harm_stacks.limitation*", FILES),
    ((), "harm_kill.*and writers*", MANY),
    ((), "harm_kill.killed[[]record --codeobj*", MANY),
    ((), "harm_kill.killed[[]stream*", MANY),
    ((), "harm_kill.killed[[]profile*", MANY),
    ((), "harm_kill.killed[[]continuous*", MANY),
    (("6.12",), "harm_kill.*", BETWEEN),
    ((), "harm.strace_of_record*", MANY),
    ((), "harm_storm.storm[[]attach*", MANY),
    ((), "blocked_outputs.*", FILES),
    ((), "faults.*", FAULTS_OF_CALLS),
    ((), "opencl.*", "PoCL is not in the image: it is ten times as large as all else"),
    ((), "onnx.*", "ONNX Runtime is not in the image"),
    ((), "continuous_soak.*", "ONNX Runtime is not in the image"),
    ((), "onnx_models.*", "ONNX Runtime is not in the image"),
    ((), "*.onnx", "ONNX Runtime is not in the image"),
    ((), "*.onnx_*", "ONNX Runtime is not in the image"),
    ((), "ops.*", "ONNX Runtime is not in the image"),
    ((), "continuous_hostile_clients.*", FILES),
    ((), "stream_files.*", FILES),
    ((), "continuous_saves.*", FILES),
    ((), "continuous_hostile.bad_*", FILES),
    ((), "continuous_hostile.clock_jumps", FILES),
    ((), "continuous_hostile.collector_watches_itself", FILES),
    ((), "continuous_hostile.collectors_side_by_side", FILES),
    ((), "continuous_hostile.directory_*", FILES),
    ((), "continuous_hostile.file_size_limit", FILES),
    ((), "continuous_hostile.hostile_names", FILES),
    ((), "continuous_hostile.one_collector_*", FILES),
    ((), "continuous_hostile.path_is_absolute", FILES),
    ((), "endings.file_size_limit*", FILES),
    ((), "endings.reader_of_pipe_goes*", FILES),
    ((), "*.full_disk*", FILES),
    ((), "*.unwritable_output*", FILES),
    ((), "*.earlier_*_survives*", FILES),
    ((), "counters.full_standard_output*", FILES),
    ((), "counters.hostile_*", FILES),
    ((), "counters.reader_of_pipe_goes*", FILES),
    ((), "counters.output_once*", FILES),
    ((), "counters.quiet*", FILES),
    ((), "counters.terminal*", FILES),
    ((), "counters.command_prints_as_well*", FILES),
    ((), "inspect.folder*", FILES),
    ((), "inspect.no_room*", FILES),
    ((), "codeobj_processes.*_limit*", FILES),
    ((), "hostile.*", REPORTS),
    ((), "recording.report*", REPORTS),
    ((), "region_profiles.*", REPORTS),
    ((), "stream.expressions*", REPORTS),
    ((), "stream.hostile_expression*", REPORTS),
    ((), "stream.programs_by_name*", REPORTS),
    ((), "stream.summary*", REPORTS),
    ((), "formats.*", REPORTS),
    ((), "operators.*", "operators are found in files, without the kernel"),
    ((), "*.usage*", OPTIONS),
    ((), "*.bad_option*", OPTIONS),
    ((), "*.bad_expression*", OPTIONS),
    ((), "function_regions.wrong_usage*", OPTIONS),
    ((), "inspect.refused*", OPTIONS),
    ((), "inspect.environment*", OPTIONS),
    ((), "messages.bad_*", OPTIONS),
    ((), "messages.nothing_to_do*", OPTIONS),
    ((), "messages.own_runtime_file*", OPTIONS),
    ((), "messages.pid_and_command*", OPTIONS),
    ((), "profile.name_like_a_handle*", OPTIONS),
    ((), "counters.alias_*", OPTIONS),
    ((), "counters.no_such_*", OPTIONS),
    ((), "counters.nothing_to_count*", OPTIONS),
    ((), "counters.command_of_nothing*", OPTIONS),
    ((), "counters.command_does_not_start*", OPTIONS),
    ((), "counters.unknown*", OPTIONS),
    ((), "counters.nearest_names*", OPTIONS),
    ((), "counters.malformed*", OPTIONS),
    ((), "merge.*", "traces are merged without the kernel"),
    ((), "codeobj_elf.*", READ),
    ((), "codeobj_formats.*", READ),
    ((), "codeobj_show.*", READ),
    ((), "codeobj_files.*", READ),
    ((), "codeobj_command.*", READ),
    ((), "code_report.*", READ),
    ((), "codeobj.often*", MANY),
    ((), "codeobj.unload*", MANY),
    ((), "codeobj_processes.killed*", MANY),
    ((), "codeobj_hostile.many_*", MANY),
    ((), "codeobj.very_large", "200 MB are too much for the memory of the machines"),
    ((), "codeobj.large*", MANY),
    ((), "codeobj_real.*", "PoCL and ONNX Runtime are not in the image"),
    ((), "codeobj_record.opencl", "PoCL is not in the image"),
)


class Totals:
    """Counts and prints; several kernels are tested at once."""

    def __init__(self):
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self._lock = threading.Lock()

    def say(self, text):
        with self._lock:
            print(text, flush=True)

    def tell(self, name, result, seconds, details):
        text = "%-7s %s (%.1f s)" % (result, name.encode("unicode_escape").decode("ascii"), seconds)
        if result == "skipped":
            text += ": " + details
        else:
            text += "".join("\n        " + line.rstrip() for line in details.splitlines() if line.strip())
        self.say(text)

    def add(self, name, result, seconds=0.0, details=""):
        self.tell(name, result, seconds, details)
        with self._lock:
            self.counts[result] += 1


def timed(kernel, step, function, *arguments):
    start = time.monotonic()
    result = function(*arguments)
    kernel.seconds[step] = time.monotonic() - start
    return result


class Run:
    """All tests on one kernel, in as many machines as it takes: one that dies is started again for what is left."""

    def __init__(self, kernel, options, totals):
        self.kernel = kernel
        self.options = options
        self.totals = totals
        self.folder = os.path.join(FOLDER, kernel.name)
        self.finished = []
        self.faults = 0
        self.patterns = options.k
        self.failed = {}  # at the first time: what is said of them, as the arguments of Totals.add()
        self.again = bool(options.k)  # there is no other time

    def prepare(self):
        """Fetches the kernel and makes the image of its drivers."""
        timed(self.kernel, "fetch", packages.fetch, self.kernel, os.path.join(self.folder, "package"),
              self.options.refresh)
        self.modules, self.needed = timed(self.kernel, "image", image.make_modules, self.kernel, self.folder)
        self.totals.say("== %s: Linux %s (%s)" % (self.kernel.name, self.kernel.release, self.kernel.version))

    def machine(self, root, console=None):
        left_out = [] if self.options.everything else [
            (pattern, why) for kernels, pattern, why in LEFT_OUT if not kernels or self.kernel.name in kernels]
        inside = {"kernel": self.kernel.name, "patterns": self.patterns, "left_out": left_out,
                  "finished": self.finished, "environment": {"XPUTRACE_E2E_SLOW": str(SLOW[self.kernel.name])}}
        initial = image.make_initial(self.needed, inside, os.path.join(self.folder, "initial.cpio"))
        return machine.Machine(self.kernel, initial, root, self.modules, console)

    def tests(self, root):
        start = time.monotonic()
        boots = []
        for name in os.listdir(self.folder):
            if name.startswith("console-"):
                os.unlink(os.path.join(self.folder, name))
        with open(os.path.join(self.folder, "results.jsonl"), "w", encoding="utf-8") as kept:
            done = False
            while not done or self.make_again():
                if len(boots) == MACHINES:
                    self.totals.add("%s/machine" % self.kernel.name, "failed", 0,
                                    "%d machines have died: what is left was not tested" % MACHINES)
                    break
                console = os.path.join(self.folder, "console-%d.log" % (len(boots) + 1))
                one = self.machine(root, console)
                done = self.listen(one, start + KERNEL_SECONDS, kept)
                boots.append(one.booted_after or 0.0)
        for result in self.failed.values():
            self.totals.add(*result)
        if not self.finished:
            self.totals.add("%s/machine" % self.kernel.name, "failed", 0, "no test was made")
        self.kernel.seconds["boot"] = boots[0]
        self.kernel.seconds["tests"] = time.monotonic() - start - sum(boots)
        self.totals.say("   %s: %s" % (
            self.kernel.name, ", ".join("%s %.1f s" % pair for pair in self.kernel.seconds.items())))

    def make_again(self):
        """Whether failed tests get another time; those that do not have failed."""
        failed, self.failed = self.failed, {}
        if self.again or not failed:
            return False
        if len(failed) > AGAIN:
            for result in failed.values():
                self.totals.add(*result)
            return False
        for name, result, seconds, details in failed.values():
            self.totals.tell(name, result, seconds, details + "\nmade again")
        self.again = True
        self.patterns = list(failed)
        self.finished = [test for test in self.finished if test not in failed]
        return True

    def is_emulators_fault(self, one):
        """Whether the machine has died of what only an emulated processor does; not believed too often."""
        fault = one.has_said(EMULATORS_MARK)
        self.faults += fault
        return fault and self.faults <= FAULTS

    def listen(self, one, until, kept):
        """Takes the results of one machine; whether there is nothing left to do."""
        begun, start = None, time.monotonic()
        for event in one.events(until - time.monotonic()):
            kept.write(json.dumps(event) + "\n")
            kept.flush()
            kind = event["event"]
            if kind == "done":
                return True
            if kind == "begin":
                begun, start = event["test"], time.monotonic()
            elif kind == "end":
                self.finished.append(event["test"])
                result = "%s/%s" % (self.kernel.name, event["test"]), event["result"], event["seconds"], event["details"]
                if event["result"] == "failed" and not self.again:
                    self.failed[event["test"]] = result
                else:
                    self.totals.add(*result)
                begun = None
            elif kind == "gone":
                if begun and self.is_emulators_fault(one):
                    self.totals.say("   %s/%s: made again: %s" % (self.kernel.name, begun, EMULATORS_FAULT))
                    return False
                self.finished += [begun] if begun else []
                self.totals.add("%s/%s" % (self.kernel.name, begun or "machine"), "failed", time.monotonic() - start,
                                "the machine: %s; the end of %s:\n%s" % (
                                    event["reason"], os.path.relpath(one.console), one.last_words()))
        return begun is None or time.monotonic() >= until


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


def not_there(kernel, totals, reason):
    totals.add("%s/machine" % kernel.name, "failed" if kernel.name in REQUIRED else "skipped", 0, reason)


def one_kernel(kernel, root, options, totals):
    try:
        run = Run(kernel, options, totals)
        run.prepare()
        if options.shell:
            run.machine(root).interact()
        else:
            run.tests(root)
    except packages.Unavailable as reason:
        not_there(kernel, totals, str(reason))
    except Exception:  # the other kernels go on
        totals.add("%s/machine" % kernel.name, "failed", 0, traceback.format_exc())


def main():
    options = parse()
    start = time.monotonic()
    kernels = [kernel for kernel in packages.KERNELS if not options.kernel or kernel.name in options.kernel]
    totals = Totals()
    missing = machine.missing_emulator()
    if platform.machine() != "x86_64":
        for kernel in kernels:
            totals.add("%s/machine" % kernel.name, "skipped", 0, "only made on x86-64")
    elif missing:
        for kernel in kernels:
            not_there(kernel, totals, missing)
    else:
        for kernel in kernels:
            os.makedirs(os.path.join(FOLDER, kernel.name), exist_ok=True)
        try:
            root = image.make_root(BUILD, FOLDER)
        except image.Missing as reason:
            sys.exit("tests/vm: %s" % reason)
        totals.say("   root file system: %.1f s" % (time.monotonic() - start))
        # A machine waits about half of its time.
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            list(pool.map(lambda kernel: one_kernel(kernel, root, options, totals), kernels))
    if not options.shell:
        print("   all: %.1f s" % (time.monotonic() - start))
        print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % totals.counts)
    return 1 if totals.counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
