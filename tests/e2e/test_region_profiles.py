# SPDX-License-Identifier: BSD-2-Clause
"""Regions as programs "region:NAME": profile and stream, compared with what the programs print that mark them."""

import collections
import os
import re

from harness import Trace, alone, cases, check_nesting, scratch
from region_programs import PICTURES, Made, again, check_near, classifier, go, marks, printed, spans, started
from reports import Profile, Stream, check_continuous, read_summary, trace_output, traces_of
from test_regions import ENABLED, PLAIN

MANY = 2000


def total(block):
    return sum(sample.duration for sample in block.samples)


@alone("measures time")
@cases("pre", "run", "post")
@again
def test_latency(name):
    """A row for each time, which together are as long as the region says itself."""
    program = started(classifier(PICTURES), env=ENABLED)
    profile = Profile("-p", program.pid, "-P", "region:" + name, "--samples", PICTURES)
    go(program)
    block = profile.block()
    entries, nanoseconds = printed(program.stderr)[name]
    assert (block.name, block.runtime, block.pid) == ("region:" + name, "region", program.pid), block.name
    assert block.taken == block.inferences == entries == PICTURES and not block.lost, (block.taken, block.inferences)
    check_near(name, entries, nanoseconds, total(block), "the rows")
    assert {sample.thread for sample in block.samples} == {program.pid}


@alone("measures time")
@again
def test_summary():
    """One row, with the mean."""
    program = started(classifier(PICTURES), env=ENABLED)
    profile = Profile("-p", program.pid, "-P", "region:run", "--samples", PICTURES, "--summary")
    go(program)
    row, = read_summary(profile.end().stdout)
    entries, nanoseconds = printed(program.stderr)["run"]
    assert row["name"] == "region:run" and row["totalRoundtripTime(Us)_count"] == str(entries), row
    check_near("run", entries, nanoseconds, float(row["totalRoundtripTime(Us)_mean"]) * 1e3 * entries, "the summary")


def check_inside(trace):
    """In each region there is its inference, and there are no others. How many there are."""
    found, runs = spans(trace), trace.of("Run")
    assert {name for name, *_ in found} == {"run"}, found
    assert len(runs) == len(found), "%d inferences in %d regions" % (len(runs), len(found))
    for call, (_, _, start, end) in zip(runs, found):
        assert start <= round(call.start * 1000) and round(call.end * 1000) <= end, (call.start, call.end, start, end)
    return len(found)


@cases(4, 400)
def test_trace(count):
    """The first of them, each with the inference and the calls inside, and nothing of the others."""
    output = os.path.join(scratch(), "profile.json")
    program = started(classifier(count + PICTURES), env=PLAIN)
    profile = Profile("-p", program.pid, "-P", "region:run", "--samples", count, "--type", "trace", output=output)
    program.send("\n")
    profile.end()
    program.wait()
    trace = Trace(output)
    check_nesting(trace.events)
    assert check_inside(trace) == count, "%d regions" % len(spans(trace))


NAMES = ("outer", 'in "ner"', "other")
WORDS = ["+0", "+1", "-1", "+1", "-1", "-0", "+2", "-2"]
TIMES, THREADS = 5000, 3


def by_name(blocks, what):
    found = collections.Counter()
    for block in blocks:
        found[block.name] += what(block)
    return found


def test_stream():
    """Rows of all reports together are what was made, at every rate, and no others than match."""
    made = {"region:" + name: count * THREADS for name, count in Made(NAMES, WORDS, TIMES).ended.items()}
    command = marks(NAMES, *WORDS, threads=THREADS, times=TIMES)
    rates = (1, 4)

    def stream_of(match, *options):
        return Stream("--append", "--match", match, *options, "--", *command, wait=False, env=PLAIN,
                      output=os.path.join(scratch(), "stream.csv"))

    streams = [stream_of("^region:", "--sample-every", rate, "--report-every", "50ms") for rate in rates]
    some = stream_of('^region:in "')
    for stream, rate in zip(streams, rates):
        blocks = stream.blocks()
        assert by_name(blocks, lambda block: block.inferences) == made, by_name(blocks, lambda block: block.inferences)
        assert sum(block.lost for block in blocks) == 0
        for name, count in by_name(blocks, lambda block: block.taken).items():
            assert count == -(-made[name] // rate), (name, count, rate)
        for name in made:
            check_continuous([block for block in blocks if block.name == name])
    assert set(by_name(some.blocks(), total)) == {"region:" + NAMES[1]}


@alone("measures time")
@again
@again
def test_stream_times():
    """What the reports add up to is what the program prints of its regions."""
    program = started(classifier(PICTURES), env=ENABLED)
    stream = Stream("-p", program.pid, "--match", "^region:", "--report-every", "20ms")
    go(program)
    blocks = stream.blocks()
    reported = printed(program.stderr)
    assert by_name(blocks, lambda block: block.taken) == {"region:" + name: PICTURES for name in reported}
    for name, nanoseconds in by_name(blocks, total).items():
        entries, own = reported[re.sub("^region:", "", name)]
        check_near(name, entries, own, nanoseconds, "the reports")


def test_stream_trace():
    """Traces of the reports: each region in one of them. What lies inside is there from when the first one is known."""
    program = started(classifier(MANY), env=PLAIN)
    stream = Stream("-p", program.pid, "--match", "^region:run$", "--type", "trace", "--report-every", "20ms",
                    "-b", "64M", output=trace_output())
    go(program)
    stream.end()
    traces = traces_of(stream.output)
    assert sum(len(spans(trace)) for trace in traces) == MANY
    later = [trace for trace in traces if spans(trace)][len(traces) // 2:]
    assert sum(check_inside(trace) for trace in later) > MANY / 4, "nearly nothing is compared"
