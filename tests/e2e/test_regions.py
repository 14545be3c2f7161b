# SPDX-License-Identifier: BSD-2-Clause
"""Regions as the collector sees them, compared with what the programs print that mark them."""

import os
import re
import signal

from harness import Recorder, alone, cases, process_state, record_command, wait_until
from region_probes import notes_of, semaphore_in
from region_programs import (NAME_MAX, PICTURES, Made, again, check_near, classifier, counted, go, kept, marks, printed,
                             shown, spans, started, times)
from test_region_header import build

ENABLED = dict(os.environ, XPUTRACE_REGIONS="enabled")
PLAIN = {name: value for name, value in os.environ.items() if name != "XPUTRACE_REGIONS"}


# ---- the classifier ----

def check_classifier(reported, trace):
    """As often and as long as the regions themselves say, in the trace, in its totals; inferences lie inside of run."""
    assert set(reported) == {"pre", "run", "post"} and {entries for entries, _ in reported.values()} == {PICTURES}, reported
    trace.check()
    assert not trace.losses(), trace.losses()
    assert counted(trace) == dict.fromkeys(reported, PICTURES), counted(trace)
    for what, found in zip(("the totals", "the events"), times(trace)):
        for name, (entries, total) in reported.items():
            check_near(name, entries, total, found[name], what)
    runs = trace.of("Run")
    assert len(runs) == PICTURES, "%d inferences" % len(runs)
    around = [(start, end) for name, _, start, end in spans(trace) if name == "run"]
    for call, (start, end) in zip(runs, around):
        assert start <= round(call.start * 1000) and round(call.end * 1000) <= end, (call.start, call.end, start, end)


def nanoseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(ns|us|ms|s)", text).groups()
    return float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


@alone("measures time")
@again
def test_classifier():
    """vAccel's lines, the trace, its totals and the summary agree within 1 % or 4 us."""
    program = started(classifier(PICTURES), env=ENABLED)
    recorder = Recorder("-p", program.pid)
    go(program)
    reported = printed(program.stderr)
    check_classifier(reported, recorder.finish())
    rows = {words[0]: words for words in map(str.split, recorder.stdout.split("REGION")[1].splitlines()) if words}
    for name, (entries, total) in reported.items():
        assert int(rows[name][3]) == entries, rows
        check_near(name, entries, total, nanoseconds(rows[name][4]), "the summary")


@alone("measures time")
@again
def test_classifier_from_the_start():
    """record -- COMMAND: the library comes by dlopen while the regions are there."""
    _, trace, recorder = record_command(["sh", "-c", 'echo | "$@"', "sh", *classifier(PICTURES)], env=ENABLED)
    check_classifier(printed(recorder.stderr), trace)


# ---- with nothing asked for inside ----

WORDS = ("wait", "+0", "+1", "-1", "-0")
NAMES = ("outer", "inner")


@cases("session", "multi", "perf")
def test_links(link):
    """Every way of linking sees every region of a process that runs already."""
    program = started(marks(NAMES, *WORDS[:1]) + list(WORDS[1:]) * 200, env=PLAIN)
    recorder = Recorder("-p", program.pid, "--link", link)
    reported = kept(go(program))
    trace = recorder.finish()
    trace.check()
    assert reported[program.pid] == [(0, 0, 0)] * 2, "nothing was to be kept inside: %s" % reported
    assert trace.metadata["tracing"]["link"] == link, trace.metadata["tracing"]
    assert counted(trace) == {"outer": 200, "inner": 200}, counted(trace)


def test_command():
    """A program that is started: its first region is there."""
    _, trace, recorder = record_command(marks(NAMES, *WORDS[1:], times=50), env=PLAIN)
    trace.check()
    assert counted(trace) == {"outer": 50, "inner": 50}, recorder.stderr


@alone("looks at all processes")
def test_all_processes():
    """-a: those that run and those that come, each with its own."""
    before = started(marks(NAMES, *WORDS), env=PLAIN)
    recorder = Recorder("-a", wait=False)
    recorder.wait_line("stderr", "attached")
    wait_until(lambda: semaphore_in(before.pid, before.arguments[0]), "the probes are there")
    later = started(marks(("later",), "wait", "+0", "-0"), env=PLAIN)
    wait_until(lambda: semaphore_in(later.pid, later.arguments[0]), "the probes are there")
    go(before)
    go(later)
    trace = recorder.stop()
    assert counted(trace, before.pid) == {"outer": 1, "inner": 1}
    assert counted(trace, later.pid) == {"later": 1}


@cases(signal.SIGINT, signal.SIGKILL)
def test_semaphore(number):
    """Raised while somebody looks; 0 again when the collector has gone, killed or not; the program goes on."""
    program = started(marks(NAMES, "wait", *WORDS), env=PLAIN)
    path = program.arguments[0]
    assert semaphore_in(program.pid, path) == 0
    recorder = Recorder("-p", program.pid)
    assert semaphore_in(program.pid, path) == len(notes_of(path))
    program.send("\n")
    program.wait_line("stdout", '"ready"', 2)
    recorder.signal(number)
    recorder.wait()
    wait_until(lambda: semaphore_in(program.pid, path) == 0, "semaphore is 0")
    assert process_state(program.pid) == "S"
    again = Recorder("-p", program.pid)
    go(program)
    assert counted(again.finish()) == {"outer": 1, "inner": 1}


def test_two_collectors():
    """At once on one process: both see everything, also when one has left."""
    program = started(marks(NAMES, *(WORDS + ("wait",) + WORDS[1:])), env=PLAIN)
    one, other = Recorder("-p", program.pid), Recorder("-p", program.pid)
    assert semaphore_in(program.pid, program.arguments[0]) == len(notes_of(program.arguments[0]))
    program.send("\n")
    program.wait_line("stdout", '"ready"', 2)
    assert counted(one.stop()) == {"outer": 1, "inner": 1}
    go(program)
    assert counted(other.finish()) == {"outer": 2, "inner": 2}


# ---- shapes ----

SHAPES = {
    "nested": ["+0", "+1", "+2", "-2", "-1", "-0"],
    "recursive": ["+0"] * 10 + ["-0"] * 10,
    "overlapping": ["+0", "+1", "-0", "-1"],
    "crossed": ["+0", "+1", "+0", "-1", "-0", "+2", "-0", "-2"],
    "deep": ["+0"] * 50 + ["+1"] * 50 + ["-1"] * 50 + ["-0"] * 50,
    "long around others": ["+0", "+1"] + ["+2", "-1", "+1", "-2"] * 50 + ["-1", "-0"],
    "unmatched": ["-0", "+1", "-0", "-1", "-1"],
    "left open": ["+2", "+1", "-1", "-2", "-2", "+1"],
}


@cases(*SHAPES)
def test_shapes(shape):
    """Each stop ends the latest start of its region on its thread, as the regions themselves say."""
    words, names, rounds = SHAPES[shape], ("a", "b", "c"), 7
    made = Made(names, words, rounds)
    results, trace, _ = record_command(marks(names, *words, times=rounds), env=ENABLED)
    result, = results
    assert [region["entries"] for region in result["regions"]] == [made.by_region[i] for i in range(3)], result
    assert sum(region["unmatched"] for region in result["regions"]) == made.unmatched, result
    assert counted(trace) == made.ended, "made %s, traced %s" % (made.ended, counted(trace))
    assert trace.losses() == ({"depth": made.forgotten} if made.forgotten else {}), trace.losses()
    assert bool(made.forgotten) == (shape == "deep"), made.forgotten
    if shape in ("nested", "recursive"):
        trace.check()


def test_overlap():
    """The spans of two regions that overlap do so in the trace."""
    _, trace, _ = record_command(marks(("a", "b"), "+0", "+1", "-0", "-1"), env=PLAIN)
    (first, _, begin_a, end_a), (second, _, begin_b, end_b) = spans(trace)
    assert (first, second) == ("a", "b") and begin_a < begin_b < end_a < end_b, spans(trace)


def test_threads():
    """Eight threads, half a million regions: each is in the trace, or among the losses."""
    program, _ = build()
    recorder = Recorder("-b", "64M", "--", program, "threads", "8", "62500", wait=False, env=PLAIN)
    trace = recorder.finish()
    seen, lost = sum(counted(trace).values()), trace.losses()
    assert set(lost) <= {"ring_full"}, lost
    assert seen + lost.get("ring_full", 0) == 500000, "traced %d, lost %s" % (seen, lost)
    assert len({tid for _, tid, _, _ in spans(trace)}) == 8
    assert seen > 50000, "nearly all is lost: %d" % seen


# ---- processes ----

def test_fork():
    """The parent's region is the parent's; the child has its own from then on."""
    results, trace, _ = record_command(marks(("a", "b"), "+0", "fork", "-0", "+1", "-1"), env=ENABLED)
    pids = {result["pid"] for result in results}
    parent = min(pids)
    assert counted(trace, parent) == {"a": 1, "b": 1}
    child, = pids - {parent}
    assert counted(trace, child)["b"] == 1, counted(trace, child)


def test_exec():
    """What was open before is no more."""
    results, trace, _ = record_command(marks(("a", "b"), "+0", "+1", "-1", "exec", "-0", "+1", "-1"), env=ENABLED)
    result, = results
    assert [(region["entries"], region["unmatched"]) for region in result["regions"]] == [(0, 1), (1, 0)]
    assert counted(trace) == {"b": 2}, counted(trace)


def test_exit():
    """What is open at the end is not counted."""
    _, trace, _ = record_command(marks(("a", "b"), "+0", "+1", "-1", "exit"), env=PLAIN)
    assert trace.complete and counted(trace) == {"b": 1}, counted(trace)


def test_objects():
    """Regions of an executable and of a shared object, each started and stopped from the other's code, too."""
    program, _ = build()
    recorder = Recorder("--", program, "objects", wait=False, env=PLAIN)
    trace = recorder.finish()
    trace.check()
    assert counted(trace) == {"the \"region\"\nof main": 9, "shared": 9}, counted(trace)


# ---- names ----

HOSTILE = ["plain", 'a "quote" and a \\', "two\nlines\tand a tab", b"\xff\xfe broken \xe2\x82",
           "\u00e4 \u6f22 \U0001f600", "</script><b>&amp;", "%s%n%x",
           "\x1b[31mred\x1b]0;title\x07", "0x1 of 2", "a" * 254, "a" * 255,
           "b" * 256, "c" * 4096, b"\xc3\xa4" * 127 + b"\xc3\xa4x", "", "NULL"]


def test_names():
    """Whatever bytes they are: the trace is JSON in UTF-8, each name is what it was, cut after 255 bytes."""
    words = [word % i for i in range(len(HOSTILE)) for word in ("+%d", "-%d") for _ in range(3)]
    _, trace, _ = record_command(marks(HOSTILE, *words), env=PLAIN)
    trace.check()
    made = Made(HOSTILE, words).ended
    assert counted(trace) == made, "made %s, traced %s" % (made, counted(trace))
    cut = {event["name"] for event in trace.events if event.get("args", {}).get("name_truncated")}
    # One that just fits cannot be distinguished from one that was cut.
    sizes = {shown(name): len(name if isinstance(name, bytes) else name.encode()) for name in HOSTILE}
    assert cut == {name for name, size in sizes.items() if size >= NAME_MAX - 1}, cut


def test_name_changes():
    """A buffer that a program writes another name into: each span has the name that it began with."""
    names, words = ("one", "two", "three"), ("+0", "0=1", "-0", "+0", "-0", "0=2", "+0", "-0", "+1", "-1")
    _, trace, _ = record_command(marks(names, *words), env=PLAIN)
    assert [name for name, *_ in spans(trace)] == ["one", "two", "three", "two"], spans(trace)
    assert counted(trace) == Made(names, words).ended


def test_many_names():
    """A hundred thousand: each is in the trace by its own name; the totals keep 4096 apart and the others together."""
    program, _ = build()
    recorder = Recorder("-b", "64M", "--", program, "names", "100000", "20", wait=False, env=PLAIN)
    trace = recorder.finish()
    found = spans(trace)
    lost = trace.losses().get("ring_full", 0)  # of regions and of names
    numbers = [match.group(1) for match in (re.fullmatch("([0-9]+)n+", name) for name, *_ in found) if match]
    assert len(set(numbers)) == len(numbers), "a name is there twice"
    assert len(found) - len(numbers) <= lost, "%d are there without their names" % (len(found) - len(numbers))
    assert len(found) + lost >= 100000 and lost < 50000, "%d in the trace, lost %s" % (len(found), trace.losses())
    totals = {region["name"]: region["duration_ns"]["count"] for region in trace.metadata["regions"]}
    assert sum(totals.values()) == len(found) and len(totals) <= 4097, (len(totals), sum(totals.values()))
    assert trace.losses()["names"] == totals["(others)"], (trace.losses(), totals["(others)"])
