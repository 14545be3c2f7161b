# SPDX-License-Identifier: BSD-2-Clause
"""Reports of parts of a recording: what they have is computed again from the trace of all of it."""

import collections
import os
import re
import subprocess

from harness import ROOT, XPUTRACE, Recorder, Skip, Trace, cases, compare_programs, need, run, scratch, standin
from recordings import BUDGET_FIGURES, with_budget
from strict_csv import strict_rows
from test_flat import start_of

Span = collections.namedtuple("Span", "pid tid program start end")

_recorded = {}


def recording():
    """Two processes: of asynchronous inferences, and of calls with others inside. Its trace, and the recording."""
    if not _recorded:
        path = os.path.join(scratch(), "all.xpt")
        workloads = [standin("nrt", "--calls", 120, "--rate", 400), standin("llama", "--calls", 40, "--rate", 200)]
        recorder = Recorder("-p", ",".join(str(workload.pid) for workload in workloads), output=path)
        for workload in workloads:
            workload.go()
        for workload in workloads:
            workload.results()
        assert recorder.wait() == 0, recorder.stderr
        _recorded.update(path=path, trace=report("-o", os.path.join(scratch(), "all.json"), path=path),
                         pids=[workload.pid for workload in workloads])
    return _recorded["trace"], _recorded["path"], _recorded["pids"]


def report(*options, path=None, status=0, **keywords):
    """Its trace, when it writes one; else what it printed."""
    done = run([need(XPUTRACE, "collector"), "report", path or recording()[1]] + [str(one) for one in options], **keywords)
    assert done.status == status, done.stderr
    outputs = [one for one in options if str(one).endswith(".json")]
    return Trace(outputs[0]) if outputs and not status else done


def spans_of(trace):
    """Inferences, in ns; executions that nothing waits for, and from each enqueue to the end of its wait."""
    ends = {event["id"]: event["ts"] for event in trace.events if event["ph"] == "e"}
    spans = [Span(call.pid, call.tid, call.program, round(call.start * 1000), round(call.end * 1000))
             for call in trace.runs() if call.role == "execute"]
    return spans + [Span(event["pid"], event["tid"], event["name"], round(event["ts"] * 1000), round(ends[event["id"]] * 1000))
                    for event in trace.inferences]


def table(*options):
    """Rows of the table as inferences, by the pair of clocks in the trace."""
    trace, _, _ = recording()
    clock = trace.document["otherData"]["clock"]
    header, *rows = strict_rows(report("-q", "-o", "-", "--format", "csv", *options).stdout)
    assert not [name for index, name in enumerate(header) if rows and not any(row[index] for row in rows)], header
    result = []
    for row in (dict(zip(header, fields)) for fields in rows):
        start = start_of(row) - int(clock["realtime_ns"]) + int(clock["monotonic_ns"])
        result.append(Span(int(row["pid"]), int(row["thread"]), row["program"], start,
                           start + round(float(row["duration_us"]) * 1000)))
    return result


def begun(trace):
    return int(trace.document["otherData"]["clock"]["monotonic_ns"])


def identity(call):
    """Programs without a name are numbered as they are seen: in a part by others than in all."""
    program = call.handle if re.fullmatch(r"\w+ (model|kernel) \d+", call.program or "") else call.program
    return call.pid, call.tid, call.start, call.end, call.function, program


def check_parts(part, whole, spans, exact):
    """The trace has these inferences with the calls in them; exact: and no other call but those that tell of programs."""
    part.check()
    assert sorted(spans_of(part)) == sorted(spans)
    inside = [(span.pid, span.tid, span.start, span.end) for span in spans]
    there = {identity(call) for call in part.calls}
    for call in whole.calls:
        start, end = round(call.start * 1000), round(call.end * 1000)
        if call.role == "execute" or call.layer:
            wanted = any((call.pid, call.tid) == one[:2] and one[2] <= start and end <= one[3] for one in inside)
            assert identity(call) in there if wanted else not exact or identity(call) not in there, call.event
    asynchronous = {event["id"] for event in part.inferences}
    assert len(asynchronous) == sum(1 for call in part.calls if call.role == "enqueue")
    assert len(asynchronous) == sum(1 for event in part.events if event["ph"] == "f"), "a wait is missing"


def selected(name):
    """The options, and which inferences of all they mean."""
    trace, _, pids = recording()
    spans = spans_of(trace)
    middle = sorted(span.start for span in spans)[len(spans) // 2]
    first, last = middle - 50 * 10 ** 6, middle + 20 * 10 ** 6
    slowest = sorted(spans, key=lambda span: (span.start - span.end, span.start))
    return {
        "program": (["--program", "neuron-0.1"], [span for span in spans if span.program == "neuron-0.1"]),
        "match": (["--match", "[.]1$"], [span for span in spans if span.program.endswith(".1")]),
        "pid": (["--pid", pids[1]], [span for span in spans if span.pid == pids[1]]),
        "window": (["--from", "%dns" % (first - begun(trace)), "--to", "%dns" % (last - begun(trace))],
                   [span for span in spans if first <= span.start < last]),
        "slowest": (["--slowest", 7], slowest[:7]),
        "all together": (["--pid", pids[0], "--match", "neuron-0", "--from", "%dns" % (first - begun(trace)), "--slowest", 3],
                         [span for span in slowest if span.pid == pids[0] and span.start >= first][:3]),
    }[name]


def test_a_row_an_inference():
    """Without a choice every inference is a row, with the times of the trace."""
    trace, _, _ = recording()
    spans = spans_of(trace)
    assert len(spans) > 100 and sorted(table()) == sorted(spans)


@cases("program", "match", "pid", "window", "slowest", "all together")
def test_parts(name):
    """Table, trace and summary have what was asked for and nothing else."""
    options, spans = selected(name)
    assert 0 < len(spans) < len(spans_of(recording()[0]))
    assert sorted(table(*options)) == sorted(spans)
    part = report("-q", "-o", os.path.join(scratch(), "part.json"), *options)
    if name == "pid":
        assert sorted(spans_of(part)) == sorted(spans) and {call.pid for call in part.calls} == {recording()[2][1]}
    else:
        check_parts(part, recording()[0], spans, name != "window")
    done = report(*options)
    counts = collections.Counter(span.program for span in spans)
    for line in done.stdout.split("\n\n")[0].splitlines()[1:]:
        if line.split()[0] in counts:
            assert int(line.split()[3]) == counts.pop(line.split()[0]), line
    assert not counts, done.stdout
    assert "%d of %d inferences" % (len(spans), len(spans_of(recording()[0]))) in done.stderr, done.stderr


def test_standard_input():
    """A pipe is read as a file is, also where it takes two times."""
    _, path, _ = recording()
    for options in (["-q", "-o", "-"], ["-q", "-o", "-", "--format", "csv", "--slowest", "5"]):
        piped = run(["sh", "-c", 'cat "$1" | { shift; exec "$@"; }', "sh", path, XPUTRACE, "report", "-"] + options)
        assert piped.status == 0 and piped.stdout == report(*options).stdout, piped.stderr


def test_what_is_not_there():
    """Names that nothing has are refused with the name, before an output is made."""
    output = os.path.join(scratch(), "never.json")
    for options, name in ((["--program", "nobody"], "nobody"), (["--match", "^no.body$"], "^no.body$"),
                          (["--program", "0xdead"], "0xdead")):
        done = report("--pid", recording()[2][0], *options, "-o", output, status=1)
        assert name in done.stderr and not os.path.exists(output), done.stderr


@cases("--from x", "--from 2s --to 1s", "--to 0", "--slowest 0", "--format csv", "--match (", "--pid 0")
def test_wrong_usage(words):
    """Refused before anything is read."""
    done = run([need(XPUTRACE, "collector"), "report", "/no/such/file"] + words.split())
    assert done.status == 2 and words.split()[0] in done.stderr, done.stderr


def budget(*options):
    """
    Of a report of a recording with a budget: its changes and their events by ms from the begin, and the metadata. Options that are
    numbers are such times.
    """
    path, output = os.path.join(scratch(), "budget.xpt"), os.path.join(scratch(), "budget.json")
    begin = with_budget(os.path.join(ROOT, "tests/e2e/kept/counted.xpt"), path)
    words = [one if isinstance(one, str) else "%.6fms" % ((begin - 10**9) / 1e6 + one) for one in options]
    trace = report("-o", output, *words, path=path)

    def moment(microseconds):
        return round((microseconds * 1000 - begin) / 1e6, 3)

    events = {moment(event["ts"]): event for event in trace.events if event["pid"] == (1 << 30) + 1026 and event["ph"] == "i"}
    return {moment(one["time_us"]): one for one in trace.metadata["budget_changes"]}, events, trace.metadata


BUDGETS = {
    "whole": ([], [13, 14, 15, 16, 17, 18], 6),
    "process": (["-p", "31023"], [13, 14, 16, 17, 18], 5),
    "begin": (["--from", 14.5], [13, 14, 15, 16, 17, 18], 4),
    "part": (["--from", 16.5, "--to", 17.5], [13, 15, 17], 1),
    "end": (["--from", 18.5], [13, 15], 0),
}


@cases(*BUDGETS)
def test_budget(name):
    """Changes that keep the budget: of the process, with those before the part that are in force when it begins."""
    options, changes, shown = BUDGETS[name]
    found, events, metadata = budget(*options)
    assert sorted(found) == changes and sorted(events) == changes[len(changes) - shown:], (sorted(found), sorted(events))
    assert metadata["budget"] == BUDGET_FIGURES
    assert (found[13]["program"], found[13]["every"], found[13]["cost"]) == ("neuron-0.0", 8, 4.1)
    for time, event in events.items():
        assert {**found[time], "time_us": None} == {**event["args"], "time_us": None}, event


def test_budget_summary():
    """Lines of changes and estimates."""
    path = os.path.join(scratch(), "budget.xpt")
    with_budget(os.path.join(ROOT, "tests/e2e/kept/counted.xpt"), path)
    lines = [line[8:] for line in report(path=path).stdout.splitlines() if line.startswith("budget: ")]
    assert lines == ["2 %; tracing took about 1.7 % of the CPU time of the targets (1.4 % in them, 0.3 % collector)",
                     "at 13.0ms, 4.1 %: 1 inference in 8 of neuron-0.0 and of 1 more program or function is recorded",
                     "nrt_execute of process 31023 was not traced or counted from 14.0ms to 16.0ms",
                     "other of process 7 was not traced or counted from 15.0ms on",
                     "at 17.0ms, 4.1 %: operators are not traced", "at 18.0ms, 4.1 %: operators are traced again",
                     "counts lack the calls of functions while they were not traced",
                     "about 1.6 % of the CPU time of process 31023",
                     "about 1.7 % of that for nrt_execute of process 31023: 2 hits of 1.20us, emulated",
                     "measured: hits times the cost of a probe of its kind on this machine, with caches 40 % cold (0 %: warm; "
                     "100 %: 2 MB displaced before each)"], lines


def test_written_beside():
    """What is long is written by a process of its own, although the one that reads may start none."""
    if len(os.sched_getaffinity(0)) == 1:
        raise Skip("one CPU: one process writes and reads")
    path, output = os.path.join(scratch(), "long.xpt"), os.path.join(scratch(), "long.json")
    workload = standin("nrt", "--calls", 60000, "--duration-us", 0)
    recorder = Recorder("-p", workload.pid, "-b", "64M", output=path)
    workload.go()
    results = workload.results()
    assert recorder.wait() == 0, recorder.stderr
    assert os.stat(path).st_size > 8 << 20, "the recording is written by one process"
    child = subprocess.Popen([XPUTRACE, "report", "-q", "--warn-size", "4G", path, "-o", output])  # no estimate before
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    with open("/proc/%d/io" % child.pid, encoding="ascii") as file:
        written = int(re.search(r"wchar: (\d+)", file.read()).group(1))
    assert child.wait() == 0
    assert written < os.stat(output).st_size / 20, "%d of %d bytes" % (written, os.stat(output).st_size)
    trace = Trace(output)
    trace.check()
    assert not trace.losses(), trace.losses()
    compare_programs(results, trace)
