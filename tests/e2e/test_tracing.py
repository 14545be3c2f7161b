# SPDX-License-Identifier: BSD-2-Clause
"""What tracing itself adds to an inference, as it says so, against the same runs without it."""

import json
import os
import statistics

from harness import XPUTRACE, Trace, cases, need, results_in, run, scratch, workload_path
from onnx_models import library, model

ALONE = "measures time"

RUNS, REPEATS = 300, 3
FACTOR = 2  # the estimate may be off by so much, either way
WARNING = "warning: tracing is more than a third of an inference of %s: leave out --ops\n"


def command(path):
    return [need(workload_path("onnx"), "workload"), library(), path, "--runs", str(RUNS)]


def untraced(path):
    """Its shortest run, by the program's own clock: the one that nothing else delayed."""
    done = run(command(path))
    assert done.status == 0, done.stderr
    return results_in(done.stdout)[0]["least_ns"]


def summarised(*words):
    """What the command prints, and the only program in its summary as JSON."""
    path = os.path.join(scratch(), "summary.json")
    done = run([need(XPUTRACE, "collector"), words[0], "--summary-json", path, *words[1:]])
    assert done.status == 0, done.stderr
    with open(path, encoding="utf-8") as file:
        program, = json.load(file)["programs"]
    return done.stdout, program


@cases("deep", "small")
def test_estimate(name):
    """600 operators, and a few: what is said that tracing took is what the shortest run took longer, in the median of some
    repetitions."""
    path = model(name, **({"nodes": 600, "width": 64} if name == "deep" else {}))
    ratios = []
    for _ in range(REPEATS):
        without = untraced(path)
        printed, program = summarised("record", "--ops", "--format", "none", "--", *command(path))
        added = results_in(printed)[0]["least_ns"] - without
        ratios.append(program["tracing_ns"]["p50"] / max(added, 1))
        assert program["tracing_ns"]["count"] == RUNS and program["tracing_ns"]["p50"] <= program["latency_ns"]["p50"], program
    assert 1 / FACTOR <= statistics.median(ratios) <= FACTOR, ratios


def test_many_small_operators():
    """The summary warns; a report of the recording has the same figures, and so has the trace made of it."""
    path, folder = model("deep", nodes=600, width=64), scratch()
    recording, trace = os.path.join(folder, "r.xpt"), os.path.join(folder, "t.json")
    for _ in range(REPEATS):
        printed, program = summarised("record", "--ops", "-o", recording, "--", *command(path))
        if program["latency_ns"]["p50"] < 2 * program["latency_ns"]["min"]:
            break  # else others had the processor most of the time
    again, reported = summarised("report", recording, "-o", trace)
    assert reported == program, (reported, program)
    lines = [line for line in printed.splitlines() if line.startswith(("tracing: ", "warning: "))]
    assert len(lines) == 2 and lines == [line for line in again.splitlines() if line in lines], lines
    assert WARNING % path in printed, printed
    metadata = Trace(trace).metadata
    made, = metadata["programs"]
    assert {name: made["tracing_ns"][name] for name in program["tracing_ns"] if name != "stddev"} == {
        name: value for name, value in program["tracing_ns"].items() if name != "stddev"}
    # Each operator's own part, between its times, is less than its probes take in all; in nothing else is there one.
    operators = metadata["operators"]
    probes = metadata["tracing"]["probes"]
    assert len(operators) == 600
    for one in operators:
        assert 0 < one["tracing_ns"] < one["recorded"] * 2 * probes["operator_ns"], (one, probes)
    assert made["operators"]["covered_tracing_ns"] == sum(one["tracing_ns"] for one in operators)
    assert made["operators"]["tracing_ns"] == made["tracing_ns"]["sum"]
    # NET is MEAN without it.
    rows = [line.split() for line in printed.splitlines()]
    heading = next(row for row in rows if row and row[0] == "OPERATOR")
    assert heading[:6] == ["OPERATOR", "TYPE", "COUNT", "SHARE", "MEAN", "NET"], heading
    row = rows[rows.index(heading) + 1]
    one = next(one for one in operators if one["name"] == row[0])
    wanted = max(0, one["duration_ns"]["mean"] - one["tracing_ns"] / one["recorded"])
    assert abs(nanoseconds(row[5]) - wanted) <= 0.002 * wanted + 1, (row, one)


def nanoseconds(text):
    unit = next(unit for unit in ("ns", "us", "ms", "s") if text.endswith(unit))
    return float(text[:-len(unit)]) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def test_large_operators():
    """No warning, with operators, where they take long."""
    path = model("mlp", hidden=1024)
    printed, program = summarised("record", "--ops", "--format", "none", "--", *command(path)[:-1], "50")
    assert "tracing: about " in printed and "warning: " not in printed, printed
    assert program["tracing_ns"]["count"] == 50
