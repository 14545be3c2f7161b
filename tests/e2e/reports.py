# SPDX-License-Identifier: BSD-2-Clause
"""xputrace profile and stream, and their reports as an independent reader sees them: Python's csv and json modules."""

import collections
import csv
import decimal
import glob
import io
import os
import re
import time

from harness import RUNNING, SLOW, XPUTRACE, Process, Trace, entries_of, file_name, need, plain_name, scratch

# In the order of the Cloud AI 100 runtime's report; then those that only this report has.
DERIVED = """queueDepth numInfInQueue devInfPerSec devExec(Us) devInWaitTime(Us) devOutWaitTime(Us) hostRoundTrip(Us)
    enqTime(Us) preProcTime(Us) submitTime(Us) execTotal(Us) exectoVc(Us) execToComplete(Us) postProc(Us)
    totalRoundtripTime(Us) prefillTokens decodeTokens tokensPerSec firstTokenTime(Us) outputTokenTime(Us) cpuTime(Us)
    waitedTime(Us) blockedTime(Us)""".split()
COLUMNS = ["Sample"] + DERIVED + ["startTime(S)", "thread", "core", "bytes", "status", "jobs", "deviceTime(Us)",
                                   "queueTime(Us)"]
SUMMARY = """reportStart reportEnd program name process pid runtime handle samples requested inferences lost failed
    rate""".split()
FIGURES = "count min mean p50 p90 p95 p99 max stddev".split()

# Seconds on the wall clock are made from CLOCK_MONOTONIC, each with the difference of the clocks at its own moment: a
# clock that is being adjusted changes that by this much in a short time.
ADJUSTMENT = 20000  # ns
# A thread may have to wait between the end of its call and the record of it: a slow machine does so that the report is closed.
LATE = 0 if SLOW == 1 else 500 * 1000 * 1000  # ns
# The workload's own clock readings are compared through one such difference for the whole test.
DRIFT = round(1000 * 1000 * SLOW)  # ns


def nanoseconds(seconds):
    """Of decimal seconds; exact."""
    value = decimal.Decimal(seconds).scaleb(9)
    assert value == int(value), "more than nine decimals: " + seconds
    return int(value)


def wall_clock():
    """What a time of CLOCK_MONOTONIC lacks to be one of CLOCK_REALTIME, ns."""
    def read():
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        return after - before, wall - (before + after) // 2
    return min(read() for _ in range(10))[1]  # whoever is interrupted between two readings is off by as much


class Sample:
    """One row."""

    def __init__(self, row):
        assert len(row) == len(COLUMNS), "a row of %d fields: %s" % (len(row), row)
        self.row = dict(zip(COLUMNS, row))
        self.number = int(row[0])
        self.start = nanoseconds(self.row["startTime(S)"])
        known = self.row["totalRoundtripTime(Us)"] != "N/A"  # not of a launch whose end was not seen
        self.duration = int(decimal.Decimal(self.row["totalRoundtripTime(Us)"]).scaleb(3)) if known else None
        self.end = self.start + self.duration if known else None
        self.thread = int(self.row["thread"])
        self.status = self.row["status"]

    @property
    def key(self):
        return self.thread, self.start


def fields(row, *names):
    """The values of a line of names and values in turn; names are given for what follows the first pair's name."""
    assert len(row) == 2 * len(names), "not a line of %s: %s" % (names, row)
    assert tuple(row[::2]) == names, "not a line of %s: %s" % (names, row)
    return row[1::2]


class Block:
    """What one report says of one program."""

    def __init__(self, rows, arrived=None):
        self.arrived = arrived
        number, self.name, generation = fields(rows[0], "program", "name", "generation")
        pid, self.process, self.runtime, handle = fields(rows[1], "process", "name", "runtime", "handle")
        taken, requested, every, skipped = fields(rows[2], "samples", "requested", "sampleEvery", "skipped")
        seen, lost, start, end, self.ended, released = fields(rows[3], "inferences", "lost", "start", "end", "ended",
                                                              "released")
        self.id, self.generation, self.pid, self.handle = int(number), int(generation), int(pid), int(handle, 16)
        self.taken, self.every, self.skipped = int(taken), int(every), int(skipped)
        self.requested = None if requested == "N/A" else int(requested)
        self.inferences, self.lost = int(seen), int(lost)
        self.start, self.end = nanoseconds(start), nanoseconds(end)
        assert released in ("yes", "no"), rows[3]
        self.released = released == "yes"
        assert rows[4] == COLUMNS, "heading: %s" % rows[4]
        self.samples = [Sample(row) for row in rows[5:]]
        self.check()

    def check(self):
        """What must be true of each."""
        assert self.taken == len(self.samples), "%d samples, but %d rows" % (self.taken, len(self.samples))
        assert [one.number for one in self.samples] == list(range(1, self.taken + 1)), "samples are not numbered"
        assert self.ended in ("interval", "complete", "stopped", "released"), self.ended
        assert self.start < self.end, "interval from %d to %d" % (self.start, self.end)
        assert self.taken + self.lost <= self.inferences, "%d samples and %d lost of %d inferences" % (
            self.taken, self.lost, self.inferences)
        for sample in self.samples:
            assert sample.end is None or self.start - ADJUSTMENT - LATE < sample.end <= self.end + ADJUSTMENT, (
                "%s: sample that ended at %d in the report from %d to %d" % (
                    self.name, sample.end, self.start, self.end))


def read_rows(text):
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def read_samples(text, arrived=None):
    """Blocks of a CSV of samples. arrived: when each of its lines came; then no field may contain a line end."""
    rows = read_rows(text)
    assert arrived is None or len(arrived) == len(rows)
    starts = [i for i, row in enumerate(rows) if row[0] == "program"]
    assert not rows or starts and starts[0] == 0, "does not begin with a program: %s" % rows[:1]
    return [Block(rows[start:end], arrived and arrived[start])
            for start, end in zip(starts, starts[1:] + [len(rows)])]


def read_summary(text):
    """One dictionary a row, after the heading."""
    rows = read_rows(text)
    heading = SUMMARY + ["%s_%s" % (column, figure) for column in DERIVED for figure in FIGURES]
    assert rows and rows[0] == heading, "heading: %s" % rows[:1]
    assert all(len(row) == len(heading) for row in rows), "rows of other lengths"
    assert heading not in rows[1:], "a second heading"
    return [dict(zip(heading, row)) for row in rows[1:]]


def read_file(path):
    """As it is; bytes that are no UTF-8 stay what they are."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


class Command(Process):
    """xputrace profile or stream, in the Cloud AI 100 layout. output None: standard output.

    wait: until it has attached. layout: another one; of traces there is none."""

    def __init__(self, name, *arguments, output=None, wait=True, prefix=(), layout="qaic", **options):
        self.output = output
        need(XPUTRACE, "collector")
        words = list(prefix) + [XPUTRACE, name] + (["-o", output] if output else [])
        words += [] if "trace" in arguments else ["--layout", layout]
        super().__init__(words + [str(word) for word in arguments], **options)
        if wait:
            self.wait_line("stderr", "attached")

    def end(self, status=0):
        result = self.wait()
        assert result == status, "xputrace ended with %d instead of %d:\n%s" % (result, status, self.stderr)
        return self

    def text(self):
        return read_file(self.output) if self.output else self.stdout

    def blocks(self, status=0):
        """Waits for its end; what it has reported."""
        self.end(status)
        return read_samples(self.text(), None if self.output else self.arrived["stdout"])

    def stop(self, number=2):
        self.signal(number)
        return self.blocks()


class Stream(Command):
    def __init__(self, *arguments, **options):
        super().__init__("stream", *arguments, **options)


class Profile(Command):
    def __init__(self, *arguments, **options):
        super().__init__("profile", *arguments, **options)

    def block(self):
        """Waits for its end; the one program of its report."""
        found = self.blocks()
        assert len(found) == 1, "%d programs in a profile" % len(found)
        return found[0]


def report_files(path):
    """Files of a stream that writes one a report to path, in their order. Empty reports have a number, but no file."""
    name, extension = os.path.splitext(path)
    found = sorted(glob.glob(glob.escape(name) + "-*" + extension))
    numbers = [one[len(name) + 1:len(one) - len(extension)] for one in found]
    assert all(len(number) >= 6 and number.isdecimal() for number in numbers), found
    return found


def traces_of(path):
    return [Trace(one) for one in report_files(path)]


def trace_output():
    return os.path.join(scratch(), "stream.json")


# ---- comparing with what the workload says ----

def made_by(results, names=True):
    """Executions by process, name of the program (None: unknown to the collector) and handle."""
    made = collections.Counter()
    for result in results:
        for entry in entries_of([result]):
            if plain_name(entry["function"]) in RUNNING:
                name = entry["program"] if names else "0x%x" % int(entry["handle"], 16)
                made[result["pid"], name, int(entry["handle"], 16)] += entry["count"]
    return made


def check_totals(blocks, made, every=1):
    """Inferences and samples of every program, over all reports; nothing lost, nothing twice, nothing else."""
    inferences, samples = collections.Counter(), collections.Counter()
    for block in blocks:
        # of one without a name: its handle
        name = "0x%x" % block.handle if re.fullmatch(r"\w+ (model|kernel) \d+", block.name) else file_name(block.name)
        key = block.pid, name, block.handle
        inferences[key] += block.inferences
        samples[key] += block.taken
        assert not block.lost, "%d of %s are lost" % (block.lost, block.name)
        assert block.every == every, "one in %d instead of %d" % (block.every, every)
    assert +inferences == made, "inferences: made %s, reported %s" % (dict(made), dict(+inferences))
    wanted = {key: -(-count // every) for key, count in made.items()}
    assert dict(+samples) == wanted, "samples at one in %d: wanted %s, taken %s" % (every, wanted, dict(+samples))
    check_unique(blocks)


def check_unique(blocks):
    """No sample is in two reports."""
    keys = [sample.key + (block.handle,) for block in blocks for sample in block.samples]
    assert len(set(keys)) == len(keys), "%d samples are there twice" % (len(keys) - len(set(keys)))


def check_continuous(blocks, every=None):
    """The reports of one program. every: it always runs, so that each begins where the one before has ended."""
    for before, after in zip(blocks, blocks[1:]):
        right = before.end == after.start if every else before.end <= after.start
        assert right, "a report ends at %d, the next one begins at %d" % (before.end, after.start)
        assert before.ended == "interval", "a report that ended by \"%s\" is not the last one" % before.ended
        if every:
            assert not before.end % every, "a boundary at %d" % before.end
            assert after.end - after.start <= every, "a report over %d ns" % (after.end - after.start)


def check_intervals(blocks, result, offset, since=0):
    """Each execution (one inference each, one program) that the workload has logged is in the report of its interval.

    offset: of CLOCK_REALTIME. Executions that were under way at a boundary may be in either report. since: executions
    that began before may be missing."""
    spans = [(begun + offset, ended + offset) for begun, ended in zip(result["times"], result["ends"])]
    for block in blocks:
        start = max(block.start + DRIFT, since)
        certain = sum(1 for begun, ended in spans if begun > start and ended < block.end - DRIFT)
        possible = sum(1 for begun, ended in spans if ended > block.start - DRIFT and begun < block.end + DRIFT)
        assert certain <= block.inferences <= possible, "%d inferences in the report from %d to %d, made were %d%s" % (
            block.inferences, block.start, block.end, certain, " to %d" % possible if possible > certain else "")


def check_executions(samples, result, offset, chosen=lambda number: True, first=None):
    """Samples are consecutive executions of the workload (one thread), of those that are chosen by their number.

    first: which of the chosen ones it begins with; None: found by their times. Returns it."""
    spans = [(begun + offset, ended + offset)
             for number, (begun, ended) in enumerate(zip(result["times"], result["ends"])) if chosen(number)]
    if first is None:
        # Where all fit best: after a pause of the machine executions follow one another closely.
        first = min(range(max(1, len(spans) - len(samples) + 1)), key=lambda i: sum(
            abs(begun - sample.start) + abs(ended - sample.end) for sample, (begun, ended) in zip(samples, spans[i:])))
    assert first + len(samples) <= len(spans), "%d samples from %d on, made were %d" % (
        len(samples), first, len(spans))
    for sample, (begun, ended) in zip(samples, spans[first:]):
        assert begun - DRIFT < sample.start and sample.end < ended + DRIFT, (
            "sample from %d to %d, execution from %d to %d" % (sample.start, sample.end, begun, ended))
    return first


def name_of(field):
    """The name that stands in a field, when it was no more than kept from being calculated (SCHEMA.md)."""
    found = re.match("([' ]*)'([' ]*[=+@\uff1d\uff0b\uff0d\uff20\r\n-].*)", field, re.S)
    return found.group(1) + found.group(2) if found else field


def churn_made(result, names=None):
    """Runs by name, as the workload has printed them; names: what it was given with --names."""
    made = collections.Counter()
    for number, runs in enumerate(result["churn"]["runs"]):
        made[names[number % len(names)] if names else "churn-%06d" % number] += runs
    return made


def reported_by_name(blocks):
    inferences = collections.Counter()
    for block in blocks:
        inferences[file_name(block.name)] += block.inferences
    return +inferences


def write_names(names):
    """A file for --names."""
    path = os.path.join(scratch(), "names")
    with open(path, "wb") as file:
        for name in names:
            file.write(name if isinstance(name, bytes) else name.encode())
            file.write(b"\0")
    return path
