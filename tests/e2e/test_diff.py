# SPDX-License-Identifier: BSD-2-Clause
"""xputrace diff: recordings of a program whose operators take a known time (tests/workload/operators), and files that are damaged."""

import functools
import json
import os
import shutil
import statistics

from harness import WAITING, XPUTRACE, alone, need, run, scratch
from operator_toy import description, toy

RUNS = 1000
US = 1000


@functools.cache
def recorded(gemm, relu=50, noise=0, number=0, text="gr"):
    """A recording of operators that take so many microseconds of CPU time."""
    path = os.path.join(scratch(), "%s-%d-%d-%d-%d.xpt" % (text, gemm, relu, noise, number))
    environment = {**os.environ, "TOY_GEMM_US": str(gemm), "TOY_RELU_US": str(relu), "TOY_NOISE": str(noise)}
    done = run([need(XPUTRACE, "collector"), "record", "-q", "--ops", "--why", "-r", description(), "-o", path, *WAITING,
                "--", *toy(text, RUNS)],
               env=environment)
    assert done.status == 0, done.stderr
    return path


def compared(before, after, *options, status=0):
    done = run([XPUTRACE, "diff", before, after, "--json", "-", *options])
    assert done.status == status, done.stderr
    return json.loads(done.stdout)


def only(diff):
    program, = diff["programs"]
    return program, {row["name"]: row for row in program["rows"]}


def csv_durations(path):
    """ns, as `report` has them."""
    done = run([XPUTRACE, "report", path, "--format", "csv", "-q", "-o", "-"])
    lines = done.stdout.splitlines()
    column = lines[0].split(",").index("duration_us")
    return sorted(float(line.split(",")[column]) * US for line in lines[1:])


@alone("measures time")
def test_slower_operator():
    """An operator takes 200 us more than 100: the row, and what p50 consists of, say so; the other one is the same."""
    program, rows = only(compared(recorded(100), recorded(300), "--fail-if", "p50 > +50%", status=3))
    assert program["inferences_before"] == program["inferences_after"] == RUNS, program
    assert program["tested_by"] == "blocks" and program["matched_by"] == "name"
    for name in ("Gemm#1", "p50", "cpu"):
        assert rows[name]["significant"] and abs(rows[name]["change"] - 200 * US) < 20 * US, rows[name]
    assert not rows["Relu#1"]["significant"] and abs(rows["Relu#1"]["change"]) < 10 * US, rows["Relu#1"]
    cause = next(cause for cause in program["causes"] if cause["row"] == "p50")
    part = cause["parts"][0]
    assert part["kind"] == "operator" and part["name"] == "Gemm#1" and abs(part["change"] - 200 * US) < 20 * US, cause
    assert abs(sum(part["change"] for part in cause["parts"]) + cause["not_attributed"] - cause["change"]) < 1


@alone("measures time")
def test_figures():
    """They are those of `report` and the summary."""
    _, rows = only(compared(recorded(100), recorded(300)))
    for side, path in (("before", recorded(100)), ("after", recorded(300))):
        durations = csv_durations(path)
        assert len(durations) == RUNS
        for name, share in (("p50", 50), ("p90", 90), ("p99", 99)):
            assert abs(rows[name][side] - durations[(RUNS * share + 99) // 100 - 1]) <= 1, rows[name]
        assert abs(rows["mean"][side] - sum(durations) / RUNS) <= 1, rows["mean"]


@alone("measures time")
def test_unchanged_and_noisier():
    """In turns: nothing has changed between two sides that are alike; one that is only noisier has the same median of its operator."""
    paths = {name: [] for name in ("before", "after", "noisy")}
    for number in range(3):
        paths["before"].append(recorded(100, number=number))
        paths["after"].append(recorded(100, number=10 + number))
        paths["noisy"].append(recorded(100, noise=40, number=number))
    sets = {name: ",".join(each) for name, each in paths.items()}
    for before, after in ((paths["before"][0], paths["after"][0]), (sets["before"], sets["after"])):
        diff = compared(before, after, "--fail-if", "p50 > +0%", "--fail-if", "mean > +0%", "--fail-if", "p99 > +0%")
        assert diff["significant"] == 0, diff
    program, rows = only(compared(sets["before"], sets["noisy"]))
    assert program["tested_by"] == "recordings" and program["recordings_before"] == 3
    changes = [only(compared(*pair))[1]["p90"]["change"] for pair in zip(paths["before"], paths["noisy"])]
    assert statistics.median(changes) > 20 * US, changes
    assert not rows["p50"]["significant"] and not rows["mean"]["significant"] and not rows["Relu#1"]["significant"], rows


def test_other_model():
    """A model with other operators is the same program, if there is no other; what differs is which operators it has."""
    program, rows = only(compared(recorded(100), recorded(100, text="grl")))
    assert program["matched_by"] == "process" and program["model_changed"]
    assert rows["Leaky#1"]["before"] is None and rows["Leaky#1"]["after"] > 0
    done = run([XPUTRACE, "diff", recorded(100), recorded(100, text="grl")])
    assert done.status == 0 and "the model has changed" in done.stdout, done.stdout


def test_sets():
    """A folder, a list with commas, and options name the same recordings."""
    folder = os.path.join(scratch(), "set")
    os.makedirs(os.path.join(folder, "2", "deeper"))
    for name, path in (("1.xpt", recorded(100)), ("2/deeper/1.xpt", recorded(300))):
        shutil.copy(path, os.path.join(folder, name))
    with open(os.path.join(folder, "notes.txt"), "w", encoding="utf-8") as file:
        file.write("no recording\n")
    listed = ",".join((recorded(100), recorded(300)))
    expected = compared(listed, recorded(100))["programs"]
    assert expected[0]["recordings_before"] == 2
    assert compared(folder, recorded(100))["programs"] == expected
    done = run([XPUTRACE, "diff", "--before", recorded(100), "--before", recorded(300), "--after", recorded(100), "--json", "-"])
    assert json.loads(done.stdout)["programs"] == expected


def test_exit_status():
    """Of conditions that are met by noise, that no row has, and that are none."""
    path = recorded(100)
    status = {("--fail-if", "p50 > +0%"): 0, ("--fail-if", "p50 < -0%"): 0, ("--fail-if", "nothing > +1%"): 1,
              ("--fail-if", "p50 > 5% of nobody"): 1, ("--fail-if", "p50 > -5%"): 2, ("--level", "60%"): 2, ("--program", "nobody"): 1}
    for options, expected in status.items():
        done = run([XPUTRACE, "diff", path, path, "-q", *options])
        assert done.status == expected, (options, done.status, done.stderr)
        assert not done.stdout and bool(done.stderr) == bool(expected), (options, done.stderr)
    assert run([XPUTRACE, "diff", path]).status == 2
    assert run([XPUTRACE, "diff", path, os.path.join(scratch(), "none.xpt")]).status == 1
    done = run([XPUTRACE, "diff", path, scratch()])
    assert done.status == 1 and "no recordings" in done.stderr, done.stderr


def test_damaged():
    """One that was cut short is compared up to there, and a note says so; one that is none is an error."""
    cut = os.path.join(scratch(), "cut.xpt")
    whole = recorded(700)  # long enough for several parts of the file, which is written every quarter of a second
    with open(whole, "rb") as file:
        content = file.read()
    with open(cut, "wb") as file:
        file.write(content[:len(content) // 2])
    diff = compared(whole, cut)
    program, _ = only(diff)
    assert 0 < program["inferences_after"] < RUNS and "after: a recording was cut short" in diff["notes"], diff["notes"]
    with open(cut, "wb") as file:
        file.write(b"no recording")
    assert run([XPUTRACE, "diff", recorded(100), cut]).status == 1
