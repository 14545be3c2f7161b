# SPDX-License-Identifier: BSD-2-Clause
"""What threads do during inferences, against what a program measures of itself: clocks of its thread, getrusage, schedstat."""

import collections
import math
import os

from harness import SLOW, XPUTRACE, Trace, alone, cases, need, run, scratch, workload_path
from strict_csv import strict_rows

TIME = "measures time"
HERE = os.path.dirname(os.path.abspath(__file__))
DESCRIPTION = os.path.join(HERE, "states.json")
ROUNDS = 3
SWITCH = 15000 if SLOW == 1 else 60000 * SLOW  # ns

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


def tolerance(expected, truth, duration):
    """2 % or 50 us, in ns, beside what lies in the program's measuring but not in the inference's duration."""
    return max(50000, expected * 0.02) + truth.outer - duration


def close(measured, expected, truth, duration, what):
    assert abs(measured - expected) <= tolerance(expected, truth, duration), "%s: %d ns, expected %d; %s" % (
        what, measured, expected, truth)


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
            duration, what = nanoseconds(row, "duration_us"), "%s %s" % (name, row)
            assert abs(cpu + waited + blocked - duration) <= 1000, what
            close(cpu, truth.cpu, truth, duration, what)
            if truth.voluntary:
                close(waited, truth.waited, truth, duration, what)
                close(blocked, truth.wall - truth.cpu - truth.waited, truth, duration, what)
            else:
                assert blocked == 0 and waited >= truth.waited - (truth.outer - duration) - 300 * truth.involuntary, what
            assert int(row["minor_faults"]) == truth.minor and int(row["major_faults"]) == truth.major, what
            assert abs(int(row["voluntary_switches"]) - truth.voluntary) <= 1, what
            ticks = 2 + (truth.outer - duration) // 1000000  # each may preempt once, outside of the inference
            assert abs(int(row["involuntary_switches"]) - truth.involuntary) <= ticks, what
    assert all(int(row["minor_faults"]) >= 2000 for row in found["touch"]), found["touch"]


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
            close(event["args"]["cpu_us"] * 1000, truth.cpu, truth, event["dur"] * 1000, name)
    assert "blocked_us" not in slices["spin"][0]["args"] and "minor_faults" not in slices["sleep"][0]["args"]
    table = done.stdout.split("PROGRAM ON THREADS")[1].split("\n\n")[0].splitlines()
    assert [title for title in table[0].split() if title.isupper()] == [
        "RUNTIME", "PID", "CPU", "WAITED", "BLOCKED", "BLOCKS", "PREEMPTED", "FAULTS", "MAJOR"], table[0]
    faults = {line.split()[0]: line.split()[-2] for line in table[1:]}
    assert faults["touch"] == str(sum(truth.minor for truth in made["touch"])), table


Span = collections.namedtuple("Span", "name start dur args")
REASONS = {"sleep": "sleep", "futex": "futex", "poll": "poll", "direct": "io", "fault": "fault", "ioctl": "ioctl"}


def off_cpu(trace, inference):
    """What the trace shows below the inference of times at which its thread did not run."""
    begin, end = inference["ts"], inference["ts"] + inference["dur"]
    spans = [Span(event["name"], event["ts"], event["dur"], event["args"]) for event in trace.events
             if event.get("cat") == "off_cpu" and event["tid"] == inference["tid"] and begin <= event["ts"] < end]
    assert all(span.start + span.dur <= end + 0.001 for span in spans), (inference, spans)
    return spans


@alone(TIME)
@cases("session", "multi", "perf")
def test_why(link):
    """Each time off the CPU has its reason, who ran instead and who woke the thread."""
    made, path, done = record("--why", "--link", link)
    output = path + ".json"
    report = run([XPUTRACE, "report", path, "-o", output])
    assert report.status == 0 and "lost: nothing" in done.stdout, report.stderr + done.stdout
    trace = Trace(output)
    found = collections.defaultdict(list)
    for event in trace.events:
        if event["ph"] == "X" and event["name"] in made and event.get("cat") != "off_cpu":
            found[event["name"]].append(event)
    for name, inferences in made.items():
        missing = []
        for truth, event in zip(inferences, found[name]):
            spans, duration = off_cpu(trace, event), event["dur"] * 1000
            waited = sum(span.dur for span in spans if span.name.startswith("waiting for a CPU")) * 1000
            blocked = sum(span.dur for span in spans if not span.name.startswith("waiting for a CPU")) * 1000
            what = "%s: %s" % (name, spans)
            # What the kernel takes of the thread's time to leave and resume it; what a hypervisor takes is no switch.
            allowed = tolerance(truth.wall - truth.cpu, truth, duration) + SWITCH * len(spans)
            missing.append(truth.wall - truth.cpu - waited - blocked - allowed)
            # Emulated processors have clocks that differ more than what is measured.
            assert missing[-1] >= -2 * allowed or SLOW > 1, (what, truth)
            assert truth.voluntary or name not in BLOCKS, truth
            if name in REASONS and truth.voluntary:
                longest = max(spans, key=lambda span: span.dur if span.name == REASONS[name] else 0)
                assert longest.args["reason"] == longest.name == REASONS[name], what
                same = sum(span.dur for span in spans if span.name == REASONS[name]) * 1000
                assert same >= 0.9 * blocked, what
            if name in ("sleep", "poll"):
                assert longest.args["woken_by"] == "interrupt", what
            if name == "stopped":
                stops = [span for span in spans if not span.name.startswith("waiting for a CPU")]
                assert {span.args["syscall"] for span in stops if span.name == "sleep"} <= {35, 101, 115, 230}, what
                assert {span.name for span in stops} <= {"sleep", "other"}, what
                # An emulated machine may be so slow that it has slept enough before it is stopped.
                assert SLOW > 1 or [span.name for span in stops if span.dur > 10000] == ["sleep", "other", "sleep"], what
            if name == "futex":
                waker = longest.args["woken_by"]
                assert waker["name"] == "states" and waker["pid"] == event["pid"] and waker["tid"] != event["tid"], what
        assert min(missing) <= 0, (name, missing, inferences)
    spans = [span for event in found["compete"] for span in off_cpu(trace, event)]
    taken = sum(span.dur for span in spans if span.name == "waiting for a CPU: states")
    assert taken > 2000, spans  # us: others may run, too
    table = done.stdout.split("PROGRAM BLOCKED BY")[1].split("\n\n")[0].splitlines()
    assert table[0].split() == ["RUNTIME", "PID", "FUTEX", "POLL", "IO", "IOCTL", "FAULT", "SLEEP", "OTHER"], table[0]
    beside = done.stdout.split("THREADS BESIDE")[1].split("\n\n")[0].splitlines()[1:]
    assert any(line.split()[:3:2] == ["states", "compete"] for line in beside), beside
    assert any(line.split()[:3:2] == ["states", "futex"] for line in beside), beside


def test_without_why():
    """No times off the CPU are recorded unless they are asked for."""
    _, path, done = record()
    output = path + ".json"
    assert run([XPUTRACE, "report", path, "-o", output]).status == 0
    assert not any(event.get("cat") == "off_cpu" for event in Trace(output).events)
    assert "BLOCKED BY" not in done.stdout and "THREADS BESIDE" not in done.stdout


def folded(path, kind):
    """The flame graph: weight in ns by stack, as tuples of frames with the program as the innermost."""
    output = "%s.%s.folded" % (path, kind)
    done = run([XPUTRACE, "report", path, "--flame", kind, "-o", output])
    assert done.status == 0, done.stderr
    with open(output, encoding="utf-8") as file:
        lines = [line.rstrip("\n").rsplit(" ", 1) for line in file]
    return {tuple(stack.split(";")): int(weight) for stack, weight in lines}


@alone(TIME)
def test_where_they_compute_and_wait():
    """Samples of running threads weigh what they ran, stacks of blocked ones what they were blocked, at the function that did it."""
    made, path, done = record("--samples=1000", "--stacks=1000", "--why")
    assert "lost: nothing" in done.stdout, done.stdout
    running, waiting = folded(path, "cpu"), folded(path, "offcpu")
    for name, function in (("spin", "spin"), ("compete", "compete"), ("migrate", "migrate")):
        stacks = {stack: weight for stack, weight in running.items() if stack[-1] == name}
        whole = sum(weight for stack, weight in stacks.items() if "main" in stack and "states_run" in stack)
        # One that is met in a probe is not complete.
        assert whole >= 0.9 * sum(stacks.values()) > 0, stacks
        inside = sum(weight for stack, weight in stacks.items() if function in stack[:-1])
        truth = sum(inference.cpu for inference in made[name])
        samples = truth / 1000000  # expected; four standard deviations of so many
        assert abs(inside / 1000000 - samples) <= 4 * math.sqrt(samples) + 2, (name, inside, truth)
    for name, function in (("sleep", "usleep"), ("futex", "lock"), ("poll", "wait_poll")):
        stacks = {stack: weight for stack, weight in waiting.items() if stack[-1] == name}
        inside = sum(weight for stack, weight in stacks.items() if function in stack[:-1])
        truth = sum(inference.wall - inference.cpu for inference in made[name])
        assert 0.6 * truth <= inside <= truth + 1000000, (name, inside, truth, stacks)


def test_stacks_that_were_not_taken():
    """A flame graph without stacks says what would record them."""
    _, path, _ = record("--stacks")
    for kind, option in (("cpu", "--samples"), ("offcpu", "--stacks --why")):
        done = run([XPUTRACE, "report", path, "--flame", kind])
        assert done.status == 1 and "record %s`" % option in done.stderr, done.stderr
