# SPDX-License-Identifier: BSD-2-Clause
"""Random sequences of attach, fork, exec, dlopen, dlclose, exit, kill, save and detach, against a model of what each collector must
have recorded (machine.py).

A sequence is made of its number alone, which the name of a failed assertion has: XPUTRACE_MACHINE=NUMBER makes that one only and,
if it fails, looks for fewer steps that do, XPUTRACE_MACHINE=FROM-TO all of these (`make test-truth`)."""

import os
import random
import re
import signal
import threading
import time

from harm import in_kernel, note
from harness import SLOW, alone, cases, paired, wait_until
from machine import LIBRARIES, Late, World
from test_loads import links

CHOSEN = os.environ.get("XPUTRACE_MACHINE", "")
GROUPS, EACH, STEPS = 4, 1, 80
KNOWN = (120, 232)  # they have found faults
ALL_PROCESSES = range(1)  # these and no others: they disturb what else runs
PROGRAMS, COLLECTORS = 7, 3  # at the same time
WEIGHTS = {"call": 36, "fork": 10, "open": 12, "close": 6, "execute": 4, "spin": 6, "still": 4, "end": 7, "start": 4, "attach": 6,
           "command": 2, "save": 4, "detach": 4, "replace": 2, "pause": 4}
LINKS = ((), (), ("--link", "session"), ("--link", "multi"), ("--link", "perf"))


def link_options(number):
    """The best kind of link where this kernel has not the one that the number stands for."""
    options = LINKS[number % len(LINKS)]
    return options if not options or options[1] in links() else ()


def script(number):
    """Steps: a name, and numbers that choose among what is possible when their turn comes."""
    chance = random.Random(number)
    names = chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS)
    return [("start", 0, 0, 0), ("open", 0, 0, 0)] + [(name, *(chance.randrange(1 << 16) for _ in range(3))) for name in names]


class Sequence:
    """Makes steps; one that is not possible is left out. all_processes: a collector may trace all of the machine."""

    def __init__(self, world, all_processes):
        self.world, self.all_processes, self.made = world, all_processes, 0

    def make(self, step):
        name, *numbers = step
        self.made += getattr(self, "make_" + name)(*numbers) is not False
        for collector in self.world.collectors:
            assert collector.process.child.poll() is None, "%s has ended: %s" % (collector.kind, collector.process.stderr)

    def program(self, number):
        return self.world.programs[number % len(self.world.programs)] if self.world.programs else None

    def library(self, first, second, usable):
        """A program and one of its libraries that is usable; (None, None): there is none."""
        found = [(program, library) for program in self.world.programs for library in range(LIBRARIES) if usable(program, library)]
        return found[(first * 65536 + second) % len(found)] if found else (None, None)

    def make_start(self, *_):
        if len(self.world.programs) >= PROGRAMS:
            return False
        return self.world.start()

    def make_open(self, first, second, _):
        program, library = self.library(first, second, lambda program, library: library not in program.libraries)
        return self.world.load(program, library) if program else False

    def make_close(self, first, second, _):
        program, library = self.library(first, second, lambda program, library: library in program.libraries)
        return self.world.unload(program, library) if program else False

    def make_call(self, first, second, third):
        program, library = self.library(first, second, lambda program, library: library in program.libraries)
        return self.world.call(program, library, third % 30 + 1) if program else False

    def make_spin(self, first, second, _):
        program, library = self.library(
            first, second, lambda program, library: library in program.libraries and library not in program.spinning)
        return self.world.spin(program, library) if program else False

    def make_still(self, first, second, _):
        program, library = self.library(first, second, lambda program, library: library in program.spinning)
        return self.world.still(program, library) if program else False

    def make_fork(self, first, *_):
        if not self.world.programs or len(self.world.programs) >= PROGRAMS:
            return False
        return self.world.fork(self.program(first))

    def make_execute(self, first, *_):
        return self.world.execute(self.program(first)) if self.world.programs else False

    def make_end(self, first, second, third):
        if not self.world.programs:
            return False
        return self.world.end(self.program(first), ("exit", "exit", "kill", "abort")[second % 4], third % 100)

    def make_replace(self, first, *_):
        return self.world.replace((0, 1, 3)[first % 3])

    def make_attach(self, first, second, third):
        programs = self.world.programs
        if not programs or len(self.world.collectors) >= COLLECTORS:
            return False
        options = link_options(third)
        if self.all_processes and second % 3 == 0:
            return self.world.attach("all", programs, options)
        targets = [programs[(first + i) % len(programs)] for i in range(min(len(programs), (1, 1, 2, 3)[second % 4]))]
        return self.world.attach("continuous" if third // 8 % 3 == 0 else "record", targets, options)

    def make_command(self, first, *_):
        if len(self.world.programs) >= PROGRAMS or len(self.world.collectors) >= COLLECTORS:
            return False
        return self.world.begin_command(link_options(first))

    def make_save(self, first, *_):
        saving = [one for one in self.world.collectors if one.kind == "continuous"]
        return self.world.save(saving[first % len(saving)]) if saving else False

    def make_detach(self, first, second, _):
        if not self.world.collectors:
            return False
        number = (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[second % 4]
        return self.world.detach(self.world.collectors[first % len(self.world.collectors)], number)

    def make_pause(self, first, *_):
        return time.sleep(first % 400 / 1000)

    def finish(self):
        """All detach, all end, nothing is left."""
        world = self.world
        while world.collectors:
            if world.collectors[0].kind == "continuous":
                world.save(world.collectors[0])
            world.detach(world.collectors[0], signal.SIGINT)
        while world.programs:
            world.end(world.programs[-1], "exit", 7)
        wait_until(lambda: not world.held & in_kernel(), "nothing of the collectors is left in the kernel", 10)


def run_steps(steps, all_processes):
    """How many were made."""
    world = World()
    sequence = Sequence(world, all_processes)
    try:
        for number, step in enumerate(steps):
            try:
                sequence.make(step)
            except AssertionError as error:
                raise AssertionError("step %d, %s: %s" % (number, step[0], error)) from error
        sequence.finish()
    finally:
        world.close()
    return sequence.made


def try_steps(steps, all_processes):
    """Where the collector says that probes came late, they are made again: other programs use the machine, too."""
    for _ in range(3):
        try:
            return run_steps(steps, all_processes)
        except Late:
            pass
    raise AssertionError("probes came late three times")


def failure(steps, all_processes):
    """What is wrong, without the numbers; None: nothing is."""
    try:
        try_steps(steps, all_processes)
    except (AssertionError, OSError) as error:
        return re.sub(r"\d+", "", str(error).rpartition(": ")[2])[:40]
    return None


def shrink(steps, all_processes, seconds=120):
    """Fewer steps that fail in the same way."""
    expected = failure(steps, all_processes)
    until, size = time.monotonic() + seconds, len(steps) // 2 if expected else 0
    while size and time.monotonic() < until:
        at = 0
        while at < len(steps) and time.monotonic() < until:
            fewer = steps[:at] + steps[at + size:]
            if failure(fewer, all_processes) == expected:
                steps = fewer
            else:
                at += size
        size //= 2
    return steps


def check(number, all_processes):
    steps = script(number)
    try:
        return try_steps(steps, all_processes)
    except (AssertionError, OSError) as error:
        fewer = shrink(steps, all_processes) if CHOSEN.isdigit() else []
        raise AssertionError("XPUTRACE_MACHINE=%d: %s%s" % (number, error, "".join("\n  %s %d %d %d" % step for step in fewer))) from error


def numbers(group):
    if not CHOSEN:
        return [*range(group * EACH, (group + 1) * EACH), *KNOWN[group::GROUPS]]
    first, _, last = CHOSEN.partition("-")
    return range(int(first), int(last or first) + 1)[group::GROUPS]


@paired("expects probes in time")
def test_links_to_a_library():
    """While probes are placed in a library that is called all the time, links to it come and go, as when packages are installed, which
    changes its status: from the first call that is recorded on none is missing."""
    world, stop = World(), threading.Event()
    link = world.paths[0] + ".link"

    def change():
        while not stop.wait(0.02 * SLOW):  # longer than it takes to see that the file is the same
            os.link(world.paths[0], link)
            os.unlink(link)

    changing = threading.Thread(target=change)
    try:
        world.start()
        program, = world.programs
        world.attach("record", [program], ())
        changing.start()
        world.load(program, 0)
        world.spin(program, 0)
        time.sleep(1)
        stop.set()
        changing.join()
        time.sleep(world.settled)
        world.detach(world.collectors[0], signal.SIGINT)
        world.still(program, 0)
        world.end(program, "exit", 7)
    finally:
        stop.set()
        world.close()


@cases(*range(GROUPS))
@paired("expects probes in time")
def test_sequences(group):
    """A few sequences, or those that are asked for."""
    note("%d steps" % sum(check(number, False) for number in numbers(group)))


@alone("looks at all processes")
def test_all_processes():
    """The same, where some collectors trace all of the machine."""
    note("%d steps" % sum(check(number, True) for number in ALL_PROCESSES))
