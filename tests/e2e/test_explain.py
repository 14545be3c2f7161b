# SPDX-License-Identifier: BSD-2-Clause
"""xputrace explain: against a program that knows which of its inferences are slow, and why (tests/workload/slow)."""

import collections
import functools
import json
import os
import shlex
import statistics

from harness import XPUTRACE, Trace, alone, cases, need, run, scratch, workload_path

TIME = "measures time"
HERE = os.path.dirname(os.path.abspath(__file__))
DESCRIPTION = os.path.join(HERE, "slow.json")
COUNT = 300
SLOW = COUNT // 100
REASONS = {"preempted": ("waited", ""), "futex": ("blocked", "futex"), "sleep": ("blocked", "sleep"), "touch": ("faults", ""),
           "operator": ("operator", "step_second")}
EVIDENCE = {"preempted": "mostly by `rival`", "futex": "mostly woken by thread `holder`", "sleep": "woken by an interrupt",
            "touch": "4000 page faults without I/O (typical: 0)", "operator": "it ran 1 time (typical: 1)"}


@functools.cache
def recorded(*options):
    """The path of a recording, and the durations that the program measured: by name, of those that are slow and of all others."""
    folder = scratch()
    path = os.path.join(folder, "slow.xpt")
    done = run([need(XPUTRACE, "collector"), "record", "--runtime", DESCRIPTION, "-o", path, *options, "--",
                workload_path("slow"), str(COUNT)], cwd=folder)
    assert done.status == 0, done.stderr
    truths = collections.defaultdict(lambda: ([], []))
    for line in done.stdout.splitlines():
        words = line.split()
        if len(words) == 3 and words[2] in ("0", "1") and words[1].isdigit():
            truths[words[0]][words[2] == "0"].append(int(words[1]))
    assert set(truths) == set(REASONS) | {"noise", "warm-up"}, done.stdout
    return path, truths


def explain(path, *options):
    done = run([XPUTRACE, "explain", path, "--json", "-", *options])
    assert done.status == 0, done.stderr
    return {program["name"]: program for program in json.loads(done.stdout)["programs"]}


def check_sums(program):
    """Each partition adds up to the duration, and the causes to the difference."""
    for cohort in (program["typical"], program["slow"]):
        assert abs(sum(cohort["states_ns"].values()) - cohort["mean_ns"]) <= 1000, cohort
        if "operators" in cohort:
            operators = sum(operator["self_ns"] for operator in cohort["operators"])
            assert abs(operators + cohort["outside_ns"] - cohort["mean_ns"]) <= 1000, cohort
    difference = program["slow"]["mean_ns"] - program["typical"]["mean_ns"]
    assert abs(difference - program["difference_ns"]) <= 1
    assert abs(sum(cause["difference_ns"] for cause in program["causes"]) - difference) <= 1, program["causes"]
    rest = sum(cause["difference_ns"] for cause in program["causes"] if not cause["explained"])
    assert abs(1 - min(1, max(0, rest / difference)) - program["explained"]) < 1e-6, program


@alone(TIME)
def test_reasons():
    """What made one inference in a hundred slow comes first, with at least 90 % of the difference; noise is not explained."""
    path, truths = recorded("--why", "--ops")
    programs = explain(path, "-n", "10")
    assert set(programs) == set(truths)
    for name in sorted(set(truths) - {"warm-up"}):
        program, (slow, others) = programs[name], truths[name]
        assert program["recorded"] == COUNT and program["slow"]["inferences"] == len(slow) == SLOW, program
        expected = statistics.mean(slow) - statistics.median(others)
        assert abs(program["difference_ns"] - expected) <= 0.05 * expected, (name, program["difference_ns"], expected)
        check_sums(program)
        first = program["causes"][0]
        if name == "noise":
            assert program["explained"] < 0.1, program["causes"]
            continue
        assert (first["kind"], first["name"]) == REASONS[name] and first["explained"], (name, program["causes"])
        assert first["share"] >= 0.9 and program["explained"] >= 0.9, (name, program["causes"])
        assert EVIDENCE[name] in first["evidence"], (name, first)


@alone(TIME)
def test_words():
    """The text has the same in words; the command that it names shows the slow inferences."""
    path, _ = recorded("--why", "--ops")
    done = run([XPUTRACE, "explain", path, "-P", "preempted"])
    assert done.status == 0 and not done.stderr, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines[0] == "preempted: %d inferences" % COUNT, done.stdout
    number = lines.index(next(line for line in lines if line.startswith("The slowest 1 % (3 of ")))
    assert lines[number + 1].startswith("1. waiting for a CPU"), done.stdout
    assert "mostly by `rival`" in lines[number + 2], done.stdout
    assert "more than half of what 3 of them are slower" in lines[number + 3], done.stdout
    assert any(line.startswith("step_second ") for line in lines), done.stdout
    percent, = [line.split()[-2] for line in lines if line.startswith("not explained:")]
    assert percent == "<1" or int(percent) < 10, done.stdout
    command, = [line.partition(": ")[2] for line in lines if line.startswith("These inferences in a trace: ")]
    words = shlex.split(command)
    output = os.path.join(scratch(), "slow.json")
    assert words[0] == "xputrace" and words[-2:] == ["-o", "slow.json"], command
    assert run([XPUTRACE, *words[1:-1], output, "-q"]).status == 0
    shown = [event for event in Trace(output).events if event["ph"] == "X" and event["name"] == "preempted"]
    assert len(shown) == SLOW and min(event["dur"] for event in shown) > 7000, shown


@alone(TIME)
def test_less_recorded():
    """Without reasons and operators it says so, and claims less."""
    path, _ = recorded()
    programs = explain(path, "-n", "10")
    for name, reason in REASONS.items():
        program = programs[name]
        check_sums(program)
        assert "operators were not recorded: `xputrace record --ops`" in program["missing"], program
        if name in ("preempted", "touch"):
            assert program["explained"] >= 0.9 and program["causes"][0]["kind"] == reason[0], program["causes"]
        else:
            assert program["explained"] < 0.1, program["causes"]
        if name in ("futex", "sleep"):
            rest = max(program["causes"], key=lambda cause: cause["share"])
            assert (rest["kind"], rest["name"]) == ("blocked", "blocked") and "--why" in rest["command"], rest
            assert "--why" in program["missing"], program


def kept(name):
    return os.path.join(HERE, "kept", name + ".xpt")


def test_choices():
    """Which programs, how many, from which input."""
    whole = run([XPUTRACE, "explain", kept("window")])
    assert whole.status == 0 and whole.stdout.count(" in serve (10434)\n") == 2, whole.stdout + whole.stderr
    one = run([XPUTRACE, "explain", kept("window"), "-n", "1"])
    assert one.status == 0 and one.stdout.endswith("1 more program\n"), one.stdout
    piped = run(["sh", "-c", "cat %s | %s explain -" % (kept("window"), XPUTRACE)])
    assert piped.stdout == whole.stdout.replace(kept("window"), "FILE.xpt"), piped.stdout + piped.stderr
    chosen = explain(kept("window"), "--match", "1$", "-p", "10434")
    assert list(chosen) == ["neuron-0.1"], chosen
    quiet = run([XPUTRACE, "explain", kept("window"), "-q"])
    assert (quiet.status, quiet.stdout, quiet.stderr) == (0, "", "")
    region = explain(kept("regions"), "--match", "^region:")
    assert region and all(name.startswith("region:") for name in region), region


@cases("--program=nobody", "--from=2s --to=1s", "-n=0", "none", "two")
def test_refused(what):
    """Wrong usage is 2, what is not there 1; each with a reason."""
    options = {"none": [], "two": [kept("window"), kept("jobs")]}.get(what, [kept("window"), *what.split()])
    done = run([XPUTRACE, "explain", *options])
    assert done.status == (1 if "nobody" in what else 2) and done.stderr and not done.stdout, done.stderr


def test_cut_short():
    """What was complete is explained, and the exit status is 1."""
    path = os.path.join(scratch(), "cut.xpt")
    with open(kept("window"), "rb") as file:
        whole = file.read()
    with open(path, "wb") as file:
        file.write(whole[:-100])
    done = run([XPUTRACE, "explain", path])
    assert done.status == 1 and "the recording was cut short" in done.stderr, done.stderr
    with open(path, "wb") as file:
        file.write(b"nothing")
    done = run([XPUTRACE, "explain", path])
    assert done.status == 1 and done.stderr and not done.stdout, done.stderr


def test_json_file():
    """The same object in a file, with what all summaries have in common."""
    path = os.path.join(scratch(), "explain.json")
    done = run([XPUTRACE, "explain", kept("window"), "--json", path])
    assert done.status == 0 and "neuron-0.0" in done.stdout, done.stderr
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    assert document["command"] == "explain" and document["complete"] is True and document["status"] == 0, document
    assert document["recording"] == kept("window") and document["more_programs"] == 0
    assert [program["name"] for program in document["programs"]] == ["neuron-0.0", "neuron-0.1"]
