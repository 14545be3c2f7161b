# SPDX-License-Identifier: BSD-2-Clause
"""Processes that do what they are told (tests/workload/machine), collectors that attach to them at any time, and the model: which
calls of which process each collector must have recorded, and which it may have."""

import collections
import contextlib
import itertools
import mmap
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

import collectors
from harm import command_status, held_by
from harness import (SLOW, TIMEOUT, WAITING, XPUTRACE, Process, Trace, need, process_state, scratch, wait_end, wait_until,
                     workload_path)

SLOTS, LIBRARIES, LANES = 512, 4, 2
NUMBER = 0xffffffff  # the part of a size that counts
LIBRARIES_MAPPED = 8  # what each process has room for
SETTLED = 0.3 * SLOW  # seconds until late probes are there: 50 ms are promised on a machine that does nothing else
ENDED_LATE = 5 * SLOW  # seconds in which a collector ends when all of its targets have
UNNAMED = re.compile(r"nrt model \d+$")
REFUSED = 3  # what writing to no tensor answers


class Late(Exception):
    """Probes came late, and the collector says so: the machine is busy, nothing is known."""


class Span:
    """Calls of one thread through one library from when a collector could see them: numbers from 1 on.

    may: it may have recorded these; must: these too; None for must_from: its probes need not be there yet."""

    def __init__(self, counters, program, exact, settle):
        begun, ended = counters
        self.program, self.named = program, False  # named: its load must be in the recording
        self.may_from, self.must_from, self.settle = ended + 1, begun + 1 if exact else None, settle
        self.must_to = self.may_to = None

    def settled(self, counters):
        if self.must_from is None and self.settle is not None and time.monotonic() >= self.settle:
            self.must_from = counters[0] + 1

    def must(self):
        return range(self.must_from, self.must_to + 1) if self.must_from is not None else range(0)

    def may(self):
        return range(self.may_from, self.may_to + 1)

    def ended(self, before, after):
        """The same with an end: before is what had ended when that was asked for, after what had begun when it was done."""
        span = Span((0, 0), self.program, False, None)
        span.may_from, span.must_from, span.named = self.may_from, self.must_from, self.named
        span.must_to, span.may_to = (before, after) if self.must_to is None else (self.must_to, self.may_to)
        return span


class Program:
    """One process. libraries: number to name of the program that was loaded; spinning: those with a thread that calls."""

    def __init__(self, slot, pid, connection, parent=None, child=None):
        self.slot, self.pid, self.connection, self.parent, self.child = slot, pid, connection, parent, child
        self.libraries, self.spinning = {}, set()
        self.family = parent.family if parent else self

    def tracks(self):
        return [(self.slot, library, lane) for library in self.libraries for lane in range(LANES)]


class Collector:
    """One that traces programs. exact_loads: no call of a library that is loaded later is missed.

    shared: the time from which children have all probes from their first call on; None: they are of one process alone, which has not
    forked yet. early: children of before, and libraries for which nobody waits, each of which may be counted as late."""

    def __init__(self, kind, process, targets, shared, exact_loads):
        self.kind, self.process = kind, process
        self.targets, self.traced = targets, set(targets)
        self.pids = {program.pid: program for program in targets}
        self.shared, self.early, self.exact_loads = shared, 0, exact_loads
        self.spans = collections.defaultdict(list)  # (slot, library, lane) to what it has seen, the last one open
        self.torn = False  # a thread has ended within a call, or may have

    def follow(self, program):
        self.traced.add(program)
        self.pids[program.pid] = program

    def open_spans(self):
        return [(track, spans[-1]) for track, spans in self.spans.items() if spans and spans[-1].must_to is None]


class World:
    """All programs and collectors of one sequence, and the files that they use."""

    def __init__(self):
        self.folder = scratch(passing=True)
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listening.bind(os.path.join(self.folder, "socket"))
        self.listening.listen(8)
        self.listening.settimeout(TIMEOUT)
        self.ledger_path = os.path.join(self.folder, "ledger")
        with open(self.ledger_path, "w+b") as file:
            file.truncate(SLOTS * LIBRARIES_MAPPED * LANES * 16)
            self.ledger = mmap.mmap(file.fileno(), 0)
        self.log = open(os.path.join(self.folder, "stderr"), "w+b")
        self.slots, self.names = itertools.count(), itertools.count()
        self.programs, self.collectors, self.children, self.held = [], [], [], set()
        self.settled = SETTLED
        self.paths = [os.path.join(self.folder, name) for name in ("libnrt.so.1", "plain\u00fc.so", "other.so", "addon.node")]
        for number in (0, 1, 3):
            self.replace(number)
        os.link(self.paths[0], self.paths[2])

    def close(self):
        """Ends what is left of it."""
        for collector in self.collectors:
            collector.process.kill()
        for program in self.programs:
            with contextlib.suppress(ProcessLookupError):
                os.kill(program.pid, signal.SIGKILL)
            program.connection.close()
        for child in self.children:
            child.kill()
            child.wait()
        self.listening.close()
        self.log.close()
        self.ledger.close()

    def replace(self, number):
        """Another file takes the place of a library; who has loaded that keeps it."""
        new = self.paths[number] + ".new"
        shutil.copy(workload_path("machine/plain.so" if number % 2 else "machine/marked.so"), new)
        os.rename(new, self.paths[number])

    def counters(self, track):
        """What has begun and what has ended on a track; read in this order there is no call that has ended and not begun."""
        slot, library, lane = track
        at = ((slot * LIBRARIES_MAPPED + library) * LANES + lane) * 16
        ended, = struct.unpack_from("<Q", self.ledger, at + 8)
        begun, = struct.unpack_from("<Q", self.ledger, at)
        return begun, ended

    # ---- programs ----

    def words(self):
        slot = next(self.slots)
        return slot, [workload_path("machine/machine"), os.path.join(self.folder, "socket"), self.ledger_path, str(slot)]

    def hello(self, connection, slot):
        word, its, pid = connection.recv(512).split()
        assert (word, int(its)) == (b"hello", slot), "slot %s instead of %d" % (its, slot)
        return int(pid)

    def accept(self, slot, parent=None, child=None):
        connection = self.listening.accept()[0]
        connection.settimeout(TIMEOUT)
        program = Program(slot, self.hello(connection, slot), connection, parent, child)
        self.programs.append(program)
        for collector in self.collectors:
            if collector.kind == "all" and not parent:
                collector.follow(program)
        return program

    def start(self):
        slot, words = self.words()
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log, start_new_session=True)
        self.children.append(child)
        return self.accept(slot, child=child)

    def tell(self, program, *words):
        """Its answer; what was settled meanwhile is noted before, as the command may be to make calls."""
        self.note_settled()
        program.connection.send(" ".join(str(word) for word in words).encode())
        answer = program.connection.recv(512)
        assert answer.startswith(b"ok"), "process %d answered %s to %s: %s" % (program.pid, answer, words, self.said())
        return answer[2:].strip()

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    # ---- the model ----

    def note_settled(self):
        for collector in self.collectors:
            for track, span in collector.open_spans():
                span.settled(self.counters(track))

    def observers(self, program):
        return [collector for collector in self.collectors if program in collector.traced]

    def begin_span(self, collector, track, program_name, exact, settle=None):
        span = Span(self.counters(track), program_name, exact, settle)
        collector.spans[track].append(span)
        return span

    def end_spans(self, program, libraries, collector=None):
        """What has ended on these tracks by now is all that there is to be recorded of them."""
        self.note_settled()
        for one in [collector] if collector else self.observers(program):
            for track, span in one.open_spans():
                if track[0] == program.slot and track[1] in libraries:
                    begun, ended = self.counters(track)
                    one.torn |= begun != ended
                    span.must_to, span.may_to = ended, begun

    def load(self, program, library):
        name = "%d-%d-%d" % (program.slot, library, next(self.names))
        program.libraries[library] = name
        for collector in self.observers(program):
            collector.early += not collector.exact_loads
            for lane in range(LANES):
                track = (program.slot, library, lane)
                span = self.begin_span(collector, track, name, collector.exact_loads, time.monotonic() + self.settled)
                span.named = collector.exact_loads
        self.tell(program, "open", library, self.paths[library], name)

    def unload(self, program, library):
        if library in program.spinning:
            self.still(program, library)
        self.end_spans(program, [library])
        del program.libraries[library]
        self.tell(program, "close", library)

    def call(self, program, library, count):
        self.tell(program, "call", library, count)

    def spin(self, program, library):
        program.spinning.add(library)
        self.tell(program, "spin", library)
        wait_until(lambda: self.counters((program.slot, library, 1))[1], "the thread calls")

    def still(self, program, library):
        program.spinning.discard(library)
        self.tell(program, "still", library)

    def fork(self, parent):
        slot, forked = next(self.slots), time.monotonic()
        observers = self.observers(parent)
        pid = int(self.tell(parent, "fork", slot))
        child = self.accept(slot, parent)
        assert child.pid == pid, "the child says %d, its parent %d" % (child.pid, pid)
        child.libraries = dict(parent.libraries)
        for collector in observers:
            collector.follow(child)
            if collector.shared is None:
                collector.shared = time.monotonic() + self.settled
            early = forked < collector.shared
            collector.early += early
            for track in child.tracks():
                above = collector.spans[parent.slot, track[1], track[2]][-1]
                exact = not early and above.must_from is not None
                # The probes of a library are there in all of the family, or come.
                self.begin_span(collector, track, child.libraries[track[1]], exact, time.monotonic() + self.settled).named = above.named

    def execute(self, program):
        self.note_settled()
        program.connection.send(b"execute")
        assert self.hello(program.connection, program.slot) == program.pid
        self.end_spans(program, list(program.libraries))
        program.libraries, program.spinning = {}, set()

    def end(self, program, how, status):
        """how: "exit", "abort" or "kill". It ends as it would untraced."""
        self.note_settled()
        if how == "kill":
            os.kill(program.pid, signal.SIGKILL)
        else:
            program.connection.send((how if how == "abort" else "exit %d" % status).encode())
        expected = {"exit": status << 8, "abort": signal.SIGABRT, "kill": signal.SIGKILL}[how]
        assert not program.connection.recv(512), "it has answered"
        if program.child:
            found = program.child.wait(TIMEOUT)
            found = found << 8 if found >= 0 else -found
            assert found == expected, "process %d ended with %d instead of %d" % (program.pid, found, expected)
        elif program.parent in self.programs:
            found = int(self.tell(program.parent, "wait", program.pid)) & ~0x80  # a core is no matter here
            assert found == expected, "process %d ended with %d instead of %d" % (program.pid, found, expected)
        else:
            wait_until(lambda: not os.path.exists("/proc/%d" % program.pid) or process_state(program.pid) == "Z",
                       "process %d has ended" % program.pid)
        self.programs.remove(program)
        program.connection.close()
        self.end_spans(program, list(program.libraries))
        for collector in self.observers(program):
            collector.traced.discard(program)
            if collector.kind == "command" and program is collector.root:
                collector.status = expected
            if not collector.traced and collector.kind in ("record", "command"):
                assert wait_end(collector.process.child, ENDED_LATE), "%s goes on without targets" % collector.kind
                self.finish(collector)

    # ---- collectors ----

    def attach(self, kind, targets, options):
        """kind: "record", "continuous" or "all". Returns when it says that it has attached."""
        self.note_settled()
        before = {track: self.counters(track) for program in targets for track in program.tracks()}
        if kind == "continuous" and any(program in one.traced for one in self.collectors if one.kind == kind for program in targets):
            self.refuse(targets)
            return
        pids = ",".join(str(program.pid) for program in targets)
        output = os.path.join(self.folder, "out-%d" % next(self.names))
        start = time.monotonic()
        if kind == "continuous":
            process = collectors.Collector("-p", pids, "--window-time", "0", *WAITING, *options, output=output)
        else:
            process = Process([need(XPUTRACE, "collector"), "record", "-o", output + ".json", *WAITING, *options,
                               *(["-a"] if kind == "all" else ["-p", pids])])
            process.output = output + ".json"
            process.wait_line("stderr", "attached", 1 if kind == "all" else len(targets))
        # A kernel that needs seconds for these probes, as others place theirs, needs them for those of libraries that are loaded later, too.
        taken = time.monotonic() - start
        self.settled = max(self.settled, taken if taken > SLOW else 0)
        shared = 0 if kind == "all" or len(targets) > 1 else None
        collector = Collector(kind, process, targets, shared, False)
        self.collectors.append(collector)
        for program in targets:
            for track in program.tracks():
                span = self.begin_span(collector, track, program.libraries[track[1]], True)
                span.may_from = before[track][1] + 1

    def refuse(self, targets):
        """A process has one continuous collector, which is named when it is a target of that."""
        claimed = [program for program in targets if any(program in one.targets for one in self.collectors if one.kind == "continuous")]
        if claimed:
            refused = collectors.continuous("start", "-p", claimed[0].pid, "-o", os.path.join(self.folder, "refused"))
            assert refused.status == 1 and "profiled continuously already" in refused.stderr, refused.stderr

    def begin_command(self, options):
        slot, words = self.words()
        output = os.path.join(self.folder, "out-%d.json" % next(self.names))
        shell = ["sh", "-c", "exec \"$@\" </dev/null >/dev/null 2>>%s" % self.log.name, "sh"]
        process = Process([need(XPUTRACE, "collector"), "record", "-o", output, *WAITING, *options, "--exit-status", "own", "--",
                           *shell, *words], start_new_session=True)
        process.output = output
        root = self.accept(slot)
        collector = Collector("command", process, [root], 0, True)
        collector.root, collector.status = root, None
        self.collectors.append(collector)

    def save(self, collector):
        """What is saved of the window is all of it."""
        before = {track: self.counters(track)[1] for track, _ in collector.open_spans()}
        path = collector.process.save()
        after = {track: self.counters(track)[0] for track, _ in collector.open_spans()}
        check(collector, collectors.report(path), self.ended_spans(collector, before, after))

    def ended_spans(self, collector, before, after):
        return {track: [span.ended(before.get(track), after.get(track)) for span in spans]
                for track, spans in collector.spans.items()}

    def detach(self, collector, number):
        """By a signal; killed, what it has written has no call that was not made."""
        self.note_settled()
        self.held |= held_by(collector.process.pid)
        before = {track: self.counters(track)[1] for track, _ in collector.open_spans()}
        collector.process.signal(number)
        self.finish(collector, before, killed=number == signal.SIGKILL)

    def finish(self, collector, before=None, killed=False):
        """It has ended, or is about to."""
        status = collector.process.wait()
        assert status == (-signal.SIGKILL if killed else 0), "%s ended with %d: %s" % (
            collector.kind, status, collector.process.stderr)
        self.collectors.remove(collector)
        after = {track: self.counters(track)[0] for track, _ in collector.open_spans()}
        if killed:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(collectors.socket_path(getattr(collector.process, "name", "")))
            return
        if collector.kind == "command" and collector.status is not None:
            said = command_status(collector.process)
            assert (said << 8 if said >= 0 else -said) == collector.status, "the command: %d, %s" % (
                collector.status, collector.process.stderr)
        if collector.kind != "continuous":
            check(collector, Trace(collector.process.output), self.ended_spans(collector, before or {}, after))


# ---- what was recorded ----

def joined(ranges):
    return sum(len(one) for one in ranges)


def check(collector, trace, spans):
    """The recording has what it must have and nothing that it may not have; spans: all have ended."""
    trace.check()
    losses = trace.losses()
    if collector.torn or any(span.must_to != span.may_to for ones in spans.values() for span in ones):
        losses.pop("open", None)
    if losses.get("late_probes", 0) <= collector.early:
        losses.pop("late_probes", None)
    if set(losses) == {"late_probes"}:
        raise Late()
    assert not losses or collector.kind == "all", "%s: lost: %s" % (collector.kind, losses)
    others = {call.pid for call in trace.calls} - set(collector.pids)
    assert not others or collector.kind == "all", "%s: calls of processes %s" % (collector.kind, others)
    check_writes(collector, trace, spans)
    check_pairs(collector, trace, spans)
    check_runs(collector, trace, spans)


def track_of(call):
    return call.size >> 40, call.size >> 36 & 15, call.size >> 35 & 1


def check_writes(collector, trace, spans):
    """Each of these calls is known by its number."""
    found = collections.defaultdict(list)
    for call in trace.of("nrt_tensor_write"):
        if call.pid in collector.pids:
            assert call.status == REFUSED and call.size >> 40 == collector.pids[call.pid].slot, call.event
            found[track_of(call)].append((call.start, call.size & NUMBER))
    for track in set(found) | set(spans):
        numbers = [number for _, number in sorted(found[track])]
        where = "%s, process %d, library %d, thread %d: " % ((collector.kind,) + track)
        assert all(one < other for one, other in zip(numbers, numbers[1:])), where + "not in order: %s" % numbers
        left = set(numbers)
        for span in spans.get(track, ()):
            seen = sorted(left.intersection(span.may()))
            left.difference_update(seen)
            missing = set(span.must()).difference(seen)
            assert not missing, where + "%d calls of %s are missing, from %d to %d; recorded %d of %s" % (
                len(missing), span.must(), min(missing), max(missing), len(seen), span.may())
            assert not seen or seen[-1] - seen[0] + 1 == len(seen), where + "there are holes: %s" % seen
            assert not seen or seen[-1] >= span.must_to, where + "it ends with %d instead of %d" % (seen[-1], span.must_to)
        assert not left, where + "calls that it cannot have seen: %s of %s" % (sorted(left), [one.may() for one in spans.get(track, ())])


def check_pairs(collector, trace, spans):
    """After each write one execution, of the program that the library has, by its name or, where its load need not be known, by its order."""
    threads = collections.defaultdict(list)
    for call in trace.of("nrt_tensor_write", "nrt_execute"):
        if call.pid in collector.pids:
            threads[call.pid, call.tid].append(call)
    for thread, calls in threads.items():
        calls.sort(key=lambda call: call.start)
        for call, run, after in zip(calls, calls[1:], calls[2:]):
            if call.function == "nrt_tensor_write":
                span, = [span for span in spans[track_of(call)] if call.size & NUMBER in span.may()]
                if call.size & NUMBER in span.must():
                    assert (run.function, after.function) == ("nrt_execute", "nrt_tensor_write"), "%s: thread %s: %s" % (
                        collector.kind, thread, [call.event, run.event, after.event])
                    assert run.status == 0 and (run.program == span.program or not span.named and UNNAMED.match(run.program)), (
                        "%s: thread %s executes %s instead of %s" % (collector.kind, thread, run.program, span.program))


def check_runs(collector, trace, spans):
    """Executions by process, as recorded and as the kernel has counted them; and by program, where its name must be known."""
    by_slot = {program.slot: pid for pid, program in collector.pids.items()}
    bounds = collections.defaultdict(lambda: [0, 0])
    for track, ones in spans.items():
        pid = by_slot[track[0]]
        for span in ones:
            keys = [pid] + ([(pid, span.program)] if span.named else [])
            for key in keys:
                bounds[key][0] += len(span.must())
                bounds[key][1] += len(span.may())
    recorded = collections.Counter()
    for call in trace.runs():
        if call.pid in collector.pids:
            recorded[call.pid] += 1
            recorded[call.pid, call.program] += 1
    for key, (least, most) in bounds.items():
        assert least <= recorded[key] <= most, "%s: %s: %d executions, not %d to %d" % (collector.kind, key, recorded[key], least, most)
    totals = collections.Counter()
    for program in trace.programs():
        totals[program["pid"]] += program.get("recorded" if collector.kind == "continuous" else "calls", 0)
    for pid in collector.pids:
        # one that is open at the end is counted
        assert recorded[pid] <= totals[pid] <= recorded[pid] + LANES * LIBRARIES, "%s: process %d: %d executions, counted %d" % (
            collector.kind, pid, recorded[pid], totals[pid])
        assert totals[pid] <= bounds[pid][1], "%s: process %d: counted %d of at most %d" % (collector.kind, pid, totals[pid], bounds[pid][1])
