#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the end-to-end tests on other kernels: Debian's 6.1, 6.12 and its newest, on x86-64 and AArch64, in QEMU without KVM.

run.py [--kernel NAME]... [-k PATTERN]... [--all] [--cases N] [--one-in N] [--matrix | --setup NAME...] [--refresh] [--shell]

Made are the tests that depend on the kernel (CHOSEN); --all makes every one that can be made here, on AArch64 the unit tests, too,
which takes hours for each kernel.
--matrix makes a few (MATRIX) in machines that are set up in other ways
(SETUPS): the number of CPUs, how the kernel preempts, control groups, what it locks down, security modules; with --all after
the others, else alone. --setup: only in those that are set up so.
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
import random
import shutil
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
KERNEL_SECONDS = 2100  # that the chosen tests on one kernel may take
ALL_SECONDS = 8 * 3600  # that all tests may
MACHINES = 8  # that may be started for one kernel, when they die
# The kernel switches tracepoints on by changing code under a breakpoint, and waits until no processor can meet that any
# more. One of several emulated processors may still have it, translated: it runs into it when the kernel does not expect it any
# more, or again and again, with interrupts off, while another processor waits for it or does the same.
EMULATORS_MARK = r"Oops: int3|RIP: 0010:(asm_)?exc_int3\+|asm_exc_int3\+.*\n.*RIP: 0010:"
EMULATORS_FAULT = "an emulated processor has run into a breakpoint that the kernel had already taken away"
FAULTS = 3  # that are believed for one kernel
AGAIN = 4  # tests of one kernel that are made once more when they have failed; more are no accident
REQUIRED = ("6.1", "6.12", "arm64-6.1", "arm64-6.12")  # in stable Debians: there is no day on which they cannot be had
# How many times longer than on a real machine something may take. On a real one 30 perf uprobes are placed in 2 to 4
# ms, on 6.1 in here in 70 to 110 ms.
SLOW = {"6.1": 15, "6.12": 5, "newest": 5, "arm64-6.1": 15, "arm64-6.12": 10, "arm64-newest": 10}

# Tests that cannot be run in the machines: kernels (none: all), pattern of their names, and why.
IMAGE = "PoCL and ONNX Runtime are not in the image: they are ten times as large as all else"
PAGE_FAULTS = "page faults take an emulated processor longer than what counts as one"
LEFT_OUT = (
    (("6.1", "6.12"), "*[[]session]", "this kernel has no session links"),
    (("6.1",), "*[[]multi]", "this kernel has no multi links"),
    (("6.1", "6.12"), "harm_stacks.*", "this kernel has no session links: targets that switch stacks are not traced safely"),
    (("newest",), "devices.*_trace", "this kernel skips events of system calls, and reports do not tell how many"),
    ((), "opencl.*", IMAGE),
    ((), "python.*", IMAGE),
    ((), "names.loaded_again_in_python", IMAGE),
    ((), "tracing.*", IMAGE),
    ((), "onnx.*", IMAGE),
    ((), "stacks.python*", IMAGE),
    ((), "stacks.node*", IMAGE),
    ((), "continuous_soak.*", IMAGE),
    ((), "onnx_models.*", IMAGE),
    ((), "*.onnx", IMAGE),
    ((), "*.onnx_*", IMAGE),
    ((), "ops.*", IMAGE),
    ((), "codeobj_real.*", IMAGE),
    ((), "codeobj_record.opencl", IMAGE),
    ((), "sites.standins", "an emulated processor takes minutes to disassemble the libraries, which depends on no kernel"),
    ((), "diff.slower_operator", "an operator of some hundred us takes an emulated processor longer than what it is made to take"),
    ((), "diff.unchanged_and_noisier", "an emulated processor is noisier than what the workload is made to be"),
    ((), "explain.reasons", PAGE_FAULTS),
    ((), "explain.less_recorded", PAGE_FAULTS),
    ((), "top.where_it_runs", PAGE_FAULTS),
    ((), "states.where_they_compute_and_wait", "an emulated processor cannot unwind a thousand stacks a second beside the workload"),
    ((), "harm.strace_of_record", "a collector that strace follows takes longer than processes wait for their probes"),
    ((), "faults.calls[[]check]", "it reads the kernel's type information in 12,000 calls, and a tracer stops each of them twice: minutes"),
    ((), "codeobj.very_large", "200 MB are too much for the memory of the machines"),
)

# Of the tests those that ask the kernel for something that differs between kernels, each where it may differ: kinds of links,
# what the verifier takes, reading a process's memory, waiting, events of the scheduler, fork, exit and drivers, perf counters.
# make test has made all the end-to-end tests on the kernel that runs there. --all runs every test on every kernel.
EVERY = ()
OLDEST = ("6.1",)  # perf links, one for each probe and process
MIDDLE = ("6.12",)  # multi links; the tests of the tests' own driver and of its counters are made here
NEWEST = ("newest",)  # session links
ENDS = OLDEST + NEWEST
LINKS = {"6.1": "perf", "6.12": "multi", "newest": "session"}  # the best ones of each kernel: LINK in a name
CHOSEN = (
    (EVERY, "kernel.link_is_the_best"),
    (EVERY, "kernel.link_is_told[[]LINK]"),
    (EVERY, "loads.everything"),
    (EVERY, "kernel.children"),
    (EVERY, "kernel.driver[[]*"),
    (EVERY, "kernel.unharmed"),
    (EVERY, "standins.link_types[[]LINK]"),
    (EVERY, "standins.threads[[]cuda]"),
    (EVERY, "standins.stack_arguments"),
    (EVERY, "standins.late_attach[[]cuda]"),
    (EVERY, "states.states[[]LINK]"),
    (EVERY, "states.why[[]LINK]"),
    (EVERY, "stacks.chain[[]LINK]"),
    (EVERY, "command.late_dlopen_link[[]LINK]"),
    (EVERY, "processes.forks_after_attach"),
    (EVERY, "regions.links[[]LINK]"),
    (EVERY, "ops_functions.links[[]LINK]"),
    (EVERY, "record_counters.clock_around_executions[[]LINK]"),
    (EVERY, "harm.checks[[]command]"),
    (EVERY, "drivers.table"),
    (EVERY, "driver.module"),
    (EVERY, "lockdown.*"),
    (ENDS, "budget.room[[]LINK]"),
    (ENDS, "codeobj.sizes[[]cuda]"),
    (ENDS, "continuous.whole[[]cuda]"),
    (ENDS, "devices.ioctls"),
    (ENDS, "device.crowd[[]cuda]"),
    (ENDS, "device_counters.around_inferences"),
    (ENDS, "harm_storm.storm[[]command/exit]"),
    (ENDS, "processes.target_is_killed"),
    (ENDS, "counters.known_numbers*"),
    (ENDS, "counters.system_wide"),
    (ENDS, "drivers.against_the_formats"),
    (ENDS, "inspect.driver_types[[]all]"),
    (OLDEST, "system.process_numbers"),
    (OLDEST, "drivers.tracefs[[]own]"),
    (OLDEST, "kernel.driver_followed[[]gpu_scheduler]"),
    (OLDEST, "kernel.driver_followed[[]amdgpu]"),
    (OLDEST, "kernel.driver_followed[[]i915]"),
    (OLDEST, "choice.kernel"),
    (OLDEST, "command.exec"),
    (OLDEST, "command.children_that_dlopen"),
    (OLDEST, "command.forked_children[[]hip]"),
    (OLDEST, "command.holding_is_counted"),
    (OLDEST, "processes.all_processes"),
    (OLDEST, "processes.two_collectors*"),
    (OLDEST, "counters.process_on_one_cpu[[]0]"),
    (OLDEST, "counters.children"),
    (OLDEST, "counters.many[[]100]"),
    (OLDEST, "record_counters.rates_and_clock[[]10ms]"),
    (OLDEST, "continuous_parts.counters*"),
    (OLDEST, "codeobj_hostile.pages_never_come[[]nrt_load below 0]"),
    (OLDEST, "codeobj_record.waits"),
    (OLDEST, "standins.plain_entries[[]cuda]"),
    (OLDEST, "profile.samples"),
    (OLDEST, "regions.fork"),
    (OLDEST, "regions.exec"),
    (OLDEST, "function_regions.counts_and_times[[]perf]"),
    (OLDEST, "ops_toy.left_by_exception[[]gtr]"),
    (OLDEST, "ops_toy.left_by_longjmp[[]gjr]"),
    (OLDEST, "messages.32_bit"),
    (OLDEST, "hostile_process.capabilities[[]record]"),
    (OLDEST, "hostile_process.file_system_that_does_not_answer[[]read]"),
    (OLDEST, "hostile_process.process_number_is_used_again"),
    (OLDEST, "hostile_process.report_has_no_rights"),
    (OLDEST, "harm_storm.interrupted[[]command]"),
    (OLDEST, "harm_calls.cancel[[]command]"),
    (OLDEST, "harm_calls.vfork[[]attach]"),
    (OLDEST, "harm_calls.longjmp[[]command]"),
    (MIDDLE, "driver.*"),
    (MIDDLE, "pmu.*"),
    (MIDDLE, "device_counters.*"),
    (MIDDLE, "device.*"),
    (MIDDLE, "gpu.*"),
    (MIDDLE, "libraries.linked_into_the_program*"),
    (MIDDLE, "libraries.pid_namespace"),
    (MIDDLE, "harm_calls.exceptions[[]attach]"),
    (MIDDLE, "regions.semaphore[[]2]"),
    (MIDDLE, "hostile_process.exec_all_the_time"),
    (NEWEST, "system.full_memory*"),
    (NEWEST, "system.suspended"),
    (NEWEST, "kernel.driver_followed*"),
    (NEWEST, "harm_stacks.stacks[[]signals at any time/*"),
    (NEWEST, "harm_stacks.main_thread[[]coroutines in turn]"),
    (NEWEST, "harm_stacks.several_collectors"),
)


# On AArch64: what differs between architectures. Sites and their first instructions, arguments and results, the reasons of waits,
# unwinding, type information, links, system calls by number; and that drivers are followed.
ARM64_ALWAYS = """kernel.link* kernel.children kernel.driver[[]* kernel.driver_followed[[]gpu_scheduler] kernel.unharmed
    standins.stack_arguments standins.late_attach[[]nrt] driver.module driver.crowd[[]cuda] harm.checks[[]command]
    devices.ioctls""".split()
ARM64 = ARM64_ALWAYS + """standins.plain_entries[[]cuda] standins.threads[[]cuda] standins.layers[[]hip]
    states.why* stacks.chain* harm_calls.exceptions[[]attach] harm_calls.longjmp[[]command]
    harm_stacks.stacks[[]signals*attach] ops_toy.left_by_exception[[]gtr]
    ops_functions.links[[]session] regions.links[[]session] codeobj.sizes[[]cuda] codeobj_record.waits
    hostile_process.address_inside_an_instruction[[]3] processes.forks_after_attach
    driver.time driver.events driver.killed inspect.driver_types[[]all]""".split()


# What is tested in machines that are set up in other ways.
MATRIX = ["setup.*", "loads.pairs", "standins.threads[[]cuda]", "agent.container", "drivers.table", "continuous.whole[[]cuda]", "hotplug.*",
          "kernel.unharmed"]

# How machines may be set up: CPUs, words of the kernel's command line; tests that are made in place of MATRIX.
SETUPS = {
    "cpus-1": (1, (), None),
    "cpus-4": (4, (), None),
    "cpus-8": (8, (), None),
    "preempt-none": (2, ("preempt=none",), None),
    "preempt-voluntary": (2, ("preempt=voluntary",), None),
    "preempt-full": (2, ("preempt=full",), MATRIX + ["system.starved_writer"]),
    "cgroup-1": (2, ("xputrace.cgroup=1",), None),
    "integrity": (2, ("lockdown=integrity",), None),
    "confidentiality": (2, ("lockdown=confidentiality",), ["setup.*", "lockdown.confidentiality"]),
    "apparmor": (2, ("security=apparmor", "apparmor=1"), MATRIX + ["policy.*"]),
    "selinux": (2, ("security=selinux", "selinux=1", "enforcing=1"), None),
}


# What is tested on each kernel always, also where only a part of the others is.
ALWAYS = ("kernel.", "loads.everything", "standins.threads", "states.why", "drivers.table", "harm.checks", "driver.module")
SEED = os.environ.get("XPUTRACE_E2E_SEED", "0")


def one_in(patterns, count):
    """What is always tested, and of the other patterns one in so many, the same ones for one seed."""
    others = [pattern for pattern in patterns if not pattern.startswith(ALWAYS)]
    left = set(random.Random(SEED).sample(others, -(-len(others) // count)))
    return [pattern for pattern in patterns if pattern not in others or pattern in left]


class Totals:
    """Counts and prints; several kernels are tested at once."""

    def __init__(self):
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.failed = []
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
            self.failed += [name] if result == "failed" else []


def timed(kernel, step, function, *arguments):
    start = time.monotonic()
    result = function(*arguments)
    kernel.seconds[step] = time.monotonic() - start
    return result


class Run:
    """All tests on one kernel, in as many machines as it takes: one that dies is started again for what is left."""

    def __init__(self, kernel, options, totals, setup=None):
        """setup: one of SETUPS; None: the usual one."""
        self.kernel = kernel
        self.options = options
        self.totals = totals
        self.folder = os.path.join(FOLDER, kernel.name)
        self.setup = setup
        self.name = "%s+%s" % (kernel.name, setup) if setup else kernel.name
        self.processors, self.words, patterns = SETUPS.get(setup, (machine.PROCESSORS, (), None))
        self.finished = []
        self.faults = 0
        self.patterns = options.k or (patterns or MATRIX if setup else self.chosen_on_arm64())
        self.silent = set()  # tests in which a machine has stopped for good
        self.failed = {}  # at the first time: what is said of them, as the arguments of Totals.add()
        self.again = bool(options.k)  # there is no other time

    def chosen_on_arm64(self):
        """Patterns of all tests that are made on another architecture."""
        if self.options.all or self.kernel.architecture == "amd64":
            return []
        return one_in(ARM64 if self.kernel.like == "newest" else ARM64_ALWAYS, self.options.one_in)

    def prepare(self):
        """Fetches the kernel and makes the image of its drivers."""
        timed(self.kernel, "fetch", packages.fetch, self.kernel, os.path.join(self.folder, "package"),
              self.options.refresh)
        self.modules, self.needed = timed(self.kernel, "image", image.make_modules, self.kernel, self.folder)
        self.totals.say("== %s: Linux %s (%s)" % (self.kernel.name, self.kernel.release, self.kernel.version))

    def machine(self, root, console=None):
        def ours(table):
            return [row[1:] for row in table if not row[0] or self.kernel.like in row[0]]

        chosen = [] if self.options.all or self.patterns else one_in([
            pattern.replace("LINK", LINKS[self.kernel.like]) for pattern, in ours(CHOSEN)], self.options.one_in)
        environment = {"XPUTRACE_E2E_SLOW": str(SLOW[self.kernel.name]), "XPUTRACE_E2E_KILLS": "1",
                       "XPUTRACE_E2E_LOADS": "all" if self.options.all and not self.options.cases else "pairs"}
        if self.options.cases:
            environment.update(XPUTRACE_TRUTH="0-19", XPUTRACE_MACHINE="0-3")
        inside = {"kernel": self.kernel.like, "patterns": self.patterns, "left_out": ours(LEFT_OUT), "chosen": chosen,
                  "finished": self.finished, "cases": self.options.cases, "seed": SEED, "setup": self.setup,
                  "processors": self.processors, "environment": environment}
        busybox = shutil.which("busybox") if self.kernel.architecture == "amd64" else os.path.join(
            FOLDER, "packages-arm64", "bin", "busybox")
        initial = image.make_initial(self.needed, inside, os.path.join(self.folder, "initial.cpio"), busybox)
        return machine.Machine(self.kernel, initial, root, self.modules, console, self.processors, self.words)

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
                    self.totals.add("%s/machine" % self.name, "failed", 0,
                                    "%d machines have died: what is left was not tested" % MACHINES)
                    break
                console = os.path.join(self.folder, "console-%d.log" % (len(boots) + 1))
                one = self.machine(root, console)
                done = self.listen(one, start + (ALL_SECONDS if self.options.all or self.options.cases else KERNEL_SECONDS), kept)
                boots.append(one.booted_after or 0.0)
        for result in self.failed.values():
            self.totals.add(*result)
        if not self.finished:
            self.totals.add("%s/machine" % self.name, "failed", 0, "no test was made")
        self.kernel.seconds["boot"] = boots[0]
        self.kernel.seconds["tests"] = time.monotonic() - start - sum(boots)
        self.totals.say("   %s: %s" % (
            self.name, ", ".join("%s %.1f s" % pair for pair in self.kernel.seconds.items())))

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
        fault = one.stuck or one.has_said(EMULATORS_MARK)
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
            if kind == "chosen":
                part = "one in %d (XPUTRACE_E2E_SEED=%s) of " % (self.options.one_in, SEED) if self.options.one_in > 1 else ""
                self.totals.say("   %s: %d of %d tests: %sthose that depend on the kernel; make test-vm-all makes the others" % (
                    self.name, event["tests"], event["of"], part))
            if kind == "begin":
                begun, start = event["test"], time.monotonic()
            elif kind == "end":
                self.finished.append(event["test"])
                result = "%s/%s" % (self.name, event["test"]), event["result"], event["seconds"], event["details"]
                if event["result"] == "failed" and not self.again:
                    self.failed[event["test"]] = result
                else:
                    self.totals.add(*result)
                begun = None
            elif kind == "gone":
                if self.is_emulators_fault(one):
                    self.totals.say("   %s/%s: made again: %s" % (self.name, begun or "machine", EMULATORS_FAULT))
                    return False
                # Emulated processors also stop for good; a kernel that does so would do it again.
                if begun and event["silent"] and begun not in self.silent:
                    self.totals.say("   %s/%s: made again: %s" % (self.name, begun, event["reason"]))
                    self.silent.add(begun)
                    return False
                self.finished += [begun] if begun else []
                self.totals.add("%s/%s" % (self.name, begun or "machine"), "failed", time.monotonic() - start,
                                "the machine: %s; the end of %s:\n%s" % (
                                    event["reason"], os.path.relpath(one.console), one.last_words()))
        return begun is None or time.monotonic() >= until


def parse():
    names = [kernel.name for kernel in packages.KERNELS]
    parser = argparse.ArgumentParser(description="Runs the end-to-end tests on other kernels, in QEMU.")
    parser.add_argument("--kernel", action="append", choices=names, help="only this one; may be repeated")
    parser.add_argument("-k", metavar="PATTERN", action="append", default=[],
                        help="only tests whose name contains or matches it; may be repeated")
    parser.add_argument("--all", action="store_true", help="also the tests that do not depend on the kernel")
    parser.add_argument("--cases", metavar="N", type=int, help="with --all or -k: of an end-to-end test with more cases only N, and 20"
                        " random workloads; XPUTRACE_E2E_SEED=WORD chooses others")
    parser.add_argument("--one-in", metavar="N", type=int, default=1, help="of the tests that depend on the kernel one in N and a few that"
                        " are always made; XPUTRACE_E2E_SEED=WORD chooses others")
    parser.add_argument("--matrix", action="store_true", help="a few tests in machines that are set up in other ways")
    parser.add_argument("--setup", action="append", choices=list(SETUPS), help="the same, only so; may be repeated")
    parser.add_argument("--refresh", action="store_true", help="look for newer packages of the kernels")
    parser.add_argument("--shell", action="store_true", help="no tests: a shell in the machine on this terminal")
    options = parser.parse_args()
    if options.shell and (len(options.kernel or names) != 1 or options.matrix or len(options.setup or ()) > 1):
        parser.error("--shell needs one --kernel, and one --setup at most")
    if (options.matrix and not options.all or options.setup) and not options.kernel:
        options.kernel = [kernel.name for kernel in packages.KERNELS if kernel.architecture == "amd64"]
    if options.matrix and not options.all and any(name.startswith("arm64") for name in options.kernel):
        parser.error("--matrix is for x86-64 only")
    return options


def not_there(kernel, totals, reason):
    totals.add("%s/machine" % kernel.name, "failed" if kernel.name in REQUIRED else "skipped", 0, reason)


def setups_of(kernel, options):
    """None: the usual one."""
    if options.setup:
        return options.setup
    return [None] * (options.all or not options.matrix) + list(SETUPS) * (options.matrix and kernel.architecture == "amd64")


def one_kernel(kernel, roots, options, totals):
    try:
        missing = machine.missing_emulator(kernel.architecture)
        if missing:
            raise packages.Unavailable(missing)
        root = roots[kernel.architecture]
        runs = [Run(kernel, options, totals, setup) for setup in setups_of(kernel, options)]
        runs[0].prepare()
        for run in runs:
            run.modules, run.needed = runs[0].modules, runs[0].needed
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
    if platform.machine() != "x86_64":
        for kernel in kernels:
            totals.add("%s/machine" % kernel.name, "skipped", 0, "only made on x86-64")
    else:
        for kernel in kernels:
            os.makedirs(os.path.join(FOLDER, kernel.name), exist_ok=True)
        try:
            units = options.all or any(pattern.startswith("unit") for pattern in options.k)
            roots = {architecture: image.make_root(BUILD, FOLDER) if architecture == "amd64" else
                     image.make_root_arm64(BUILD, FOLDER, options.refresh, units)
                     for architecture in {kernel.architecture for kernel in kernels}}
        except (image.Missing, packages.Unavailable) as reason:
            sys.exit("tests/vm: %s" % reason)
        totals.say("   root file system: %.1f s" % (time.monotonic() - start))
        # A machine waits about half of its time.
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            list(pool.map(lambda kernel: one_kernel(kernel, roots, options, totals), kernels))
    if not options.shell:
        print("   all: %.1f s" % (time.monotonic() - start))
        for name in totals.failed:
            print("failed  %s" % name.encode("unicode_escape").decode("ascii"))
        print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % totals.counts)
    return 1 if totals.counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
