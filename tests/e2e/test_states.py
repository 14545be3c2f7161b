# SPDX-License-Identifier: BSD-2-Clause
"""What threads do during inferences, against what a program measures of itself: clocks of its thread, getrusage, schedstat."""

import collections
import os

from harness import XPUTRACE, Trace, alone, cases, need, run, scratch, workload_path
from strict_csv import strict_rows

TIME = "measures time"
HERE = os.path.dirname(os.path.abspath(__file__))
DESCRIPTION = os.path.join(HERE, "..", "workload", "states.json")
ROUNDS = 3

Truth = collections.namedtuple("Truth", "start wall outer cpu waited voluntary involuntary minor major")
BLOCKS = {"sleep", "futex", "poll"}  # for how long is known
RUNS = {"spin", "compete", "touch"}  # never blocks


def truths(text):
    """What the program printed: its inferences by name, in order."""
    found = collections.defaultdict(list)
    for line in text.splitlines():
        name, *numbers = line.split() or [""]
        if len(numbers) == len(Truth._fields) and all(number.isdigit() for number in numbers):
            found[name].append(Truth(*map(int, numbers)))
    assert set(found) >= BLOCKS | RUNS, text
    return found


def record(*options):
    """The program under record: what it measured, the path of the recording, and what record printed."""
    folder = scratch()
    path = os.path.join(folder, "states.xpt")
    done = run([need(XPUTRACE, "collector"), "record", "--runtime", DESCRIPTION, "-o", path, *options, "--",
                workload_path("states"), str(ROUNDS)], cwd=folder)
    assert done.status == 0, done.stderr
    return truths(done.stdout), path, done


def rows(path):
    """The inferences of the recording as rows of CSV, by program, in order."""
    output = path + ".csv"
    done = run([XPUTRACE, "report", path, "--format", "csv", "-o", output])
    assert done.status == 0, done.stderr
    with open(output, encoding="utf-8", newline="") as file:
        header, *lines = strict_rows(file.read())
    found = collections.defaultdict(list)
    for line in lines:
        row = dict(zip(header, line))
        found[row["program"]].append(row)
    return found


def close(measured, expected, truth, what):
    """Within 2 % or 50 us, in ns, beside what the program's own measuring took around the inference."""
    tolerance = max(50000, expected * 0.02) + truth.outer - truth.wall
    assert abs(measured - expected) <= tolerance, "%s: %d ns, expected %d; %s" % (what, measured, expected, truth)


def nanoseconds(row, column):
    return round(float(row[column]) * 1000)


@alone(TIME)
@cases("session", "multi", "perf")
def test_states(link):
    """Times on the CPU, waiting for it and blocked, switches and faults of each inference are those that the thread measured."""
    made, path, _ = record("--link", link)
    found = rows(path)
    assert set(found) == set(made), (sorted(found), sorted(made))
    for name, inferences in made.items():
        assert len(found[name]) == len(inferences) == ROUNDS, name
        for truth, row in zip(inferences, found[name]):
            cpu, waited, blocked = (nanoseconds(row, column) for column in ("cpu_us", "waited_us", "blocked_us"))
            what = "%s %s" % (name, row)
            assert abs(cpu + waited + blocked - nanoseconds(row, "duration_us")) <= 1000, what
            close(cpu, truth.cpu, truth, what)
            close(waited, truth.waited, truth, what)
            close(blocked, truth.wall - truth.cpu - truth.waited, truth, what)
            if name in RUNS:
                assert blocked == 0, what
            assert int(row["minor_faults"]) == truth.minor and int(row["major_faults"]) == truth.major, what
            assert abs(int(row["voluntary_switches"]) - truth.voluntary) <= 1, what
            assert abs(int(row["involuntary_switches"]) - truth.involuntary) <= 2, what
    assert all(int(row["minor_faults"]) >= 2000 for row in found["touch"]), found["touch"]
    assert all(int(row["involuntary_switches"]) > 3 for row in found["compete"]), found["compete"]


@alone(TIME)
def test_outputs():
    """The same in the trace, the summary and the handle's report; nothing where nothing happened."""
    made, path, _ = record()
    output = path + ".json"
    done = run([XPUTRACE, "report", path, "-o", output])
    assert done.status == 0, done.stderr
    slices = collections.defaultdict(list)
    for event in Trace(output).events:
        if event["ph"] == "X" and event["name"] in made:
            slices[event["name"]].append(event)
    for name, inferences in made.items():
        assert len(slices[name]) == ROUNDS
        for event, truth in zip(slices[name], inferences):
            spent = event["args"]["cpu_us"] + event["args"].get("waited_us", 0) + event["args"].get("blocked_us", 0)
            assert abs(spent - event["dur"]) <= 1, event
            close(event["args"]["cpu_us"] * 1000, truth.cpu, truth, name)
    assert "blocked_us" not in slices["spin"][0]["args"] and "minor_faults" not in slices["sleep"][0]["args"]
    table = done.stdout.split("PROGRAM ON THREADS")[1].split("\n\n")[0].splitlines()
    assert [title for title in table[0].split() if title.isupper()] == [
        "RUNTIME", "PID", "CPU", "WAITED", "BLOCKED", "BLOCKS", "PREEMPTED", "FAULTS", "MAJOR"], table[0]
    faults = {line.split()[0]: line.split()[-2] for line in table[1:]}
    assert faults["touch"] == str(sum(truth.minor for truth in made["touch"])), table
