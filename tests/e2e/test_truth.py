# SPDX-License-Identifier: BSD-2-Clause
"""Random workloads with random options: every figure of every output against what the workload did.

A case is made of its kind and number alone, which the name of a failed assertion has: XPUTRACE_TRUTH=NUMBER:KIND makes that one
only, XPUTRACE_TRUTH=FROM-TO all of these, each tenth of one of the kinds of truth_kinds.py (`make test-truth`), and FROM-TO:KIND
those of one kind: calls, operators, regions, tools, jobs; or perf, bpftrace (second_opinion.py), of which there is one in twenty cases."""

import collections
import json
import os
import random
import re
import sqlite3

from harness import (RUNNING, XPUTRACE, Recorder, Trace, Workload, cases, compare, compare_calls, entries_of, need,
                     plain_name, results_in, run, scratch, workload_path)
from second_opinion import KINDS as SECOND
from strict_csv import strict_rows
from truth_kinds import KINDS as OTHERS

GROUPS, EACH = 20, 10
RUNTIMES = ("nrt", "qaic", "vaccel", "hip", "cuda", "cudart", "pjrt", "llama")
WARNED = ("llama",)  # a status that is not 0 may be a warning
CHOSEN = os.environ.get("XPUTRACE_TRUTH", "")


class Calls:
    """What the case number makes: a workload and how it is recorded."""

    def __init__(self, number):
        chance = random.Random(number)
        self.runtime = chance.choice(RUNTIMES)
        self.words = ["--calls", str(chance.choice((1, 2, 7, 30, 61, 120))), "--threads", str(chance.choice((1, 1, 2, 3, 5))),
                      "--programs", str(chance.choice((1, 2, 3, 7))), "--duration-us", str(chance.choice((0, 5, 40, 200)))]
        self.words += chance.choice(([], [], ["--fail-every", str(chance.choice((2, 3, 7, 50)))]))
        self.late = chance.random() < 0.4
        self.words += chance.choice(([], [], [], ["--fork", str(chance.choice((1, 2, 3)))])) if not self.late else []
        # A forked child gets probes that follow from memory a moment later.
        if self.runtime == "pjrt" and "--fork" in self.words:
            del self.words[self.words.index("--fork"):]
        self.words += chance.choice(([], [], ["--reload"])) if "--fork" not in self.words else []
        self.words += ["--callbacks"] if self.runtime == "hip" and chance.random() < 0.3 else []
        self.words += ["--resolve"] if self.runtime == "cuda" and "--fork" not in self.words and chance.random() < 0.3 else []
        self.words += [] if self.late else chance.choice(([], [], ["--exec"]))
        self.sample = chance.choice((1, 1, 1, 1, 2, 3, 10))
        self.options = ["--sample", str(self.sample)] if self.sample > 1 else []
        self.options += chance.choice(([], [], ["--link", chance.choice(("session", "multi", "perf"))]))
        for word in ("--why", "--stacks", "--samples", "--drivers=none", "--buffer=32M"):
            self.options += [word] if chance.random() < 0.2 else []

    def command(self):
        return [workload_path("workload"), self.runtime, "--log-times", *self.words]

    def __str__(self):
        return "%s, %s" % (" ".join(self.command()[1:]), " ".join(self.options) + (" late" if self.late else ""))

    def check(self, folder):
        """Checks all outputs of one recording, unless probes came late, which it returns."""
        return recorded_late(self, folder)

    def record(self, path):
        """Into path; what the processes of the workload printed."""
        if not self.late:
            recorder = Recorder(*self.options, "--", *self.command(), wait=False, output=path)
            assert recorder.wait() == 0, recorder.stderr
            return results_in(recorder.stdout)
        workload = Workload(self.command() + ["--wait-for-go"])
        recorder = Recorder("-p", workload.pid, *self.options, output=path)
        workload.go()
        results = workload.results()
        assert recorder.wait() == 0, recorder.stderr
        return results


def executions(results):
    """(process, program) to number of executions and of failed ones, as the workload has counted them."""
    made, failed = collections.Counter(), collections.Counter()
    for result in results:
        for entry in entries_of([result]):
            if plain_name(entry["function"]) in RUNNING:
                made[result["pid"], entry["program"]] += entry["count"]
                # Of PJRT an error is an object, whose address the workload does not know.
                failed[result["pid"], entry["program"]] += entry["count"] if entry.get("status", result["runtime"] == "pjrt") else 0
    return made, failed


def plain(name):
    """Without the number of one that has the name of another at the same time."""
    return re.sub(r" #\d+$", "", name)


def check_calls(made, results, trace):
    """All calls with their values, or of executions one in so many of each program."""
    if made.sample == 1:
        compare(made.runtime, results, trace)
        return
    trace.check()
    assert not trace.losses(), trace.losses()
    compare_calls([{**result, "libraries": [{"calls": [entry for entry in entries_of([result])
                                                       if plain_name(entry["function"]) not in RUNNING]}]}
                   for result in results], trace)


def check_times(results, trace):
    """Each execution lies in the time that its thread has measured around one, and there is one for each of them."""
    for result in results:
        spans = sorted(zip(result["times"], result["ends"]))
        for call in trace.runs(pid=result["pid"]):
            start, end = round(call.start * 1000), round(call.end * 1000)
            assert any(begun <= start and end <= ended for begun, ended in spans), (
                "%s of process %d: %d to %d ns lies in no execution" % (call.function, result["pid"], start, end))


def check_summary(made, results, summary):
    """Counts of each program in each process, exactly."""
    counted, failed = executions(results)
    found = collections.Counter()
    for program in summary["programs"]:
        left_out = program["inferences"] - program["recorded"]
        assert made.sample > 1 or not left_out, program
        found[program["pid"], plain(program["name"])] += program["inferences"]
    found = +found
    assert found == counted, "executions: made %s, counted %s" % (dict(counted), dict(found))
    if made.sample == 1 and made.runtime not in WARNED:
        for program in summary["programs"]:
            key = program["pid"], plain(program["name"])
            failed[key] -= program.get("failed", 0)
        assert not +failed and not -failed, "failed ones differ: %s" % dict(failed)


def check_tables(recording, trace, folder):
    """The database and the CSV have the inferences of each other, and the calls of the trace."""
    path = os.path.join(folder, "out.db")
    reported = run([XPUTRACE, "report", "-q", recording, "-o", path])
    assert reported.status == 0, reported.stderr
    database = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
    by_function = dict(database.execute("SELECT f.name, count(*) FROM calls c JOIN functions f ON f.id = c.function GROUP BY 1"))
    traced = collections.Counter(call.event["args"]["function"] for call in trace.calls)
    differs = {name: (traced[name], by_function.get(name)) for name in traced if by_function.get(name, 0) > traced[name]}
    assert not differs, "calls in the trace and the database: %s" % differs
    rows = run([XPUTRACE, "report", "-q", recording, "--format", "csv", "-o", "-"])
    assert rows.status == 0, rows.stderr
    header, *rows = strict_rows(rows.stdout)
    rows = [dict(zip(header, row)) for row in rows]
    wanted = collections.Counter((row["program"], int(row["pid"]), round(float(row["duration_us"] or 0) * 1000)) for row in rows)
    found = collections.Counter(database.execute(
        "SELECT p.name, r.pid, coalesce(i.duration, 0) FROM inferences i JOIN programs p ON p.id = i.program "
        "JOIN processes r ON r.id = p.process"))
    assert found == wanted, "inferences of database and CSV differ: %s" % dict((found - wanted) + (wanted - found))
    return rows


KINDS = {"calls": Calls, **OTHERS, **SECOND}


def check(number, kind):
    """Where probes came late, which is counted, it is recorded again: other programs use the machine, too."""
    for _ in range(3):
        if not KINDS[kind](number).check(scratch()):
            return
    raise AssertionError("probes came late three times")


def recorded_late(made, folder):
    """Checks all outputs of one recording, unless probes came late, which it returns."""
    recording = os.path.join(folder, "out.xpt")
    results = made.record(recording)
    trace_path, summary_path = os.path.join(folder, "out.json"), os.path.join(folder, "summary.json")
    reported = run([need(XPUTRACE, "collector"), "report", "-q", recording, "-o", trace_path, "--summary-json", summary_path])
    assert reported.status == 0, reported.stderr
    trace = Trace(trace_path)
    if set(trace.losses()) == {"late_probes"}:
        return True
    check_calls(made, results, trace)
    check_times(results, trace)
    with open(summary_path, encoding="utf-8") as file:
        check_summary(made, results, json.load(file))
    rows = check_tables(recording, trace, folder)
    counted, _ = executions(results)
    if made.sample == 1:
        assert len(rows) == sum(counted.values()), "executed %d times, %d rows" % (sum(counted.values()), len(rows))
    return False


def chosen():
    """Number and kind of each case that is asked for."""
    words, _, kind = CHOSEN.partition(":")
    first, _, last = words.partition("-")
    for number in range(int(first), int(last or first) + 1) if words else range(GROUPS * EACH):
        # One in ten is of the other kinds.
        yield number, kind or ("calls" if number % EACH else tuple(OTHERS)[number // EACH % len(OTHERS)])


def check_all(numbers_and_kinds):
    """One that fails keeps no other one from being made."""
    problems = []
    for number, kind in numbers_and_kinds:
        try:
            check(number, kind)
        except AssertionError as error:
            problems.append("XPUTRACE_TRUTH=%d:%s, %s: %s" % (number, kind, KINDS[kind](number), error))
    assert not problems, "\n".join(problems)


@cases(*range(GROUPS))
def test_cases(group):
    """200 workloads, or those that are asked for."""
    cases_of_group = list(chosen())
    share = -(-len(cases_of_group) // GROUPS)
    check_all(cases_of_group[group * share:(group + 1) * share])


test_cases.every_case = True  # 200 workloads are made in each run


@cases(*SECOND)
def test_second_opinion(tool):
    """Another tool counts the same calls at the same time, and comes to the same numbers: one case, or one in twenty of those asked for."""
    if ":" not in CHOSEN:
        check_all([(number, tool) for number, _ in chosen()][3::20 if CHOSEN else GROUPS * EACH])
