# SPDX-License-Identifier: BSD-2-Clause
"""Recordings of 0.1.0 stay readable: one of each kind is kept in kept/, with what its report has to show.

They are recordings of the tests' programs, of which a few records of each kind were left, with nothing of the machine.
window.xpt is what `continuous save --time 85ms` of that version wrote, all its chunks as they were; only the header has other
names.
"""

import json
import os

from harness import ROOT, XPUTRACE, Trace, cases, need, run, scratch
from recordings import Recording
from strict_csv import strict_rows

KEPT = os.path.join(ROOT, "tests/e2e/kept")

# Of the summary: inferences of programs, calls of all functions, spans of regions. Of the trace: what is named in it.
FIGURES = {
    "operators": {"programs": {"multiply": 6, "add_bias": 4, "toy model 189c8cad": 2}, "calls": 5,
                  "operators": {"operator#1": 2, "Relu#1": 2, "operator#2": 2, "Leaky#1": 2}},
    "codeobj": {"calls": 2, "code": {"elf": 2, "cubin": 1}},
    "counters": {"programs": {"neuron-0.0": 2}, "calls": 14, "counters": {"task-clock": 2, "page-faults": 2}},
    "counted": {"programs": {"neuron-0.0": 2}, "calls": 14, "counters": {"page-faults": 2}},
    "regions": {"regions": {"decode": 2, "prefill": 1}},
    "jobs": {"programs": {"cloud-0.0": 1, "cloud-0.1": 1}, "calls": 16, "jobs": {"told": 4}},
    "qaic": {"programs": {"cloud-0.0": 2, "cloud-0.1": 1}, "calls": 22, "chosen": ["cloud-0.0"]},
    "window": {"programs": {"neuron-0.0": 7, "neuron-0.1": 6}, "calls": 44},  # of the flight recorder
}


def report(path, *options):
    result = run([need(XPUTRACE, "collector"), "report", path, *options])
    assert result.status == 0, result.stderr
    return result.stdout


@cases(*FIGURES)
def test_figures(name):
    """The summary, the trace's metadata and the table of inferences have the same figures as in 0.1.0."""
    path, folder = os.path.join(KEPT, name + ".xpt"), scratch()
    expected = FIGURES[name]
    assert Recording(path).info["version"] == "0.1.0"
    report(path, "-q", "-o", os.path.join(folder, "trace.json"), "--summary-json", os.path.join(folder, "summary.json"))
    with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
        summary = json.load(file)
    assert summary["complete"] and not summary["lost"]
    assert {one["name"]: one["inferences"] for one in summary["programs"]} == expected.get("programs", {})
    assert sum(one["calls"] for one in summary["functions"]) == expected.get("calls", 0)
    assert {one["name"]: one["calls"] for one in summary["regions"]} == expected.get("regions", {})
    trace = Trace(os.path.join(folder, "trace.json"))
    trace.check()
    metadata = trace.metadata
    assert {one["name"]: one["recorded"] for one in metadata["operators"]} == expected.get("operators", {})
    assert {one["name"]: one["values"] for one in metadata["counters"]} == expected.get("counters", {})
    assert {one["kind"]: one["loads"] for one in metadata["code_objects"]["kinds"]} == expected.get("code", {})
    assert {one["driver"]: one["jobs"] for one in metadata["queues"]} == expected.get("jobs", {})
    assert [one["name"] for one in metadata.get("chosen", [])] == expected.get("chosen", [])
    recorded = sum(one["recorded"] for one in summary["programs"])
    assert len(strict_rows(report(path, "-q", "-o", "-", "--format", "csv"))) == 1 + recorded
