# SPDX-License-Identifier: BSD-2-Clause
"""report -o FILE.db: read by Python's sqlite3, and compared with the other reports of the same recording."""

import collections
import json
import os
import re
import resource
import signal
import sqlite3
import subprocess

from harness import ROOT, XPUTRACE, Recorder, Trace, cases, need, run, scratch, standin
from operator_toy import description, toy
from strict_csv import strict_rows

QUESTIONS = os.path.join(ROOT, "docs", "questions.md")
KEPT = os.path.join(ROOT, "tests", "e2e", "kept")
JOBS = os.path.join(KEPT, "jobs.xpt")
_made = {}


def report(path, *options, status=0, **keywords):
    done = run([need(XPUTRACE, "collector"), "report", "-q", path] + [str(one) for one in options], **keywords)
    assert done.status == status, done.stderr
    return done


def opened(path):
    """The database, in which nothing is wrong."""
    database = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    version, = database.execute("PRAGMA user_version").fetchone()
    assert database.execute("SELECT id, schema_version FROM recording").fetchall() == [(1, version)]
    return database


def database_of(path, *options):
    output = os.path.join(scratch(), "%s%d.db" % (os.path.basename(path), len(os.listdir(scratch()))))
    report(path, "-o", output, *options)
    return opened(output)


def recordings():
    """Of asynchronous inferences, of tokens, of operators with reasons and stacks, twice."""
    if not _made:
        folder = scratch()
        workloads = [standin("nrt", "--calls", 120, "--rate", 800), standin("llama", "--calls", 60, "--rate", 400)]
        _made["calls"] = os.path.join(folder, "calls.xpt")
        recorder = Recorder("-p", ",".join(str(one.pid) for one in workloads), "--why", "--stacks", output=_made["calls"])
        for workload in workloads:
            workload.go()
        assert recorder.wait() == 0, recorder.stderr
        for name in ("before", "operators"):
            _made[name] = os.path.join(folder, name + ".xpt")
            recorder = Recorder("--ops", "-r", description(), "--", *toy("gtr", 60), wait=False, output=_made[name])
            assert recorder.wait() == 0, recorder.stderr
        _made["jobs"] = JOBS
    return _made


def statements():
    with open(QUESTIONS, encoding="utf-8") as file:
        return re.findall(r"^```sql\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)


def column(rows, name):
    return [row[name] for row in rows]


def csv_rows(path, *options):
    header, *rows = strict_rows(report(path, "--format", "csv", "-o", "-", *options).stdout)
    return [dict(zip(header, row)) for row in rows]


def nanoseconds(text):
    return round(float(text) * 1000)


@cases("calls", "operators", "jobs")
def test_inferences(name):
    """Each row of the table of inferences is one of the database, with the same times."""
    path = recordings()[name]
    database, rows = database_of(path), csv_rows(path)
    found = database.execute("SELECT p.name, r.pid, t.tid, i.duration, i.start + c.realtime, i.failed FROM inferences i "
                             "JOIN programs p ON p.id = i.program JOIN processes r ON r.id = p.process "
                             "JOIN threads t ON t.id = i.thread, recording c").fetchall()
    assert rows and len(found) == len(rows)
    wanted = collections.Counter((row["program"], int(row["pid"]), int(row["thread"]), nanoseconds(row["duration_us"] or "0"))
                                 for row in rows)
    assert collections.Counter(row[:3] + (row[3] or 0,) for row in found) == wanted
    for unit, names in (("device_us", ("device_time",)), ("queue_us", ("queue_time",)), ("jobs", ("jobs",))):
        if unit in rows[0]:
            factor = 1 if unit == "jobs" else 1000
            total, = database.execute("SELECT total(%s) FROM inferences" % names[0]).fetchone()
            assert total == sum(round(float(row[unit]) * factor) for row in rows if row[unit]), unit


@cases("calls", "operators", "jobs")
def test_summary(name):
    """Numbers, sums and quantiles are those of the summary."""
    path = recordings()[name]
    output = os.path.join(scratch(), name + ".summary")
    database = database_of(path, "--summary-json", output)
    with open(output, encoding="utf-8") as file:
        summary = json.load(file)
    assert [(one["format"], one["bytes"] > 0) for one in summary["outputs"]] == [("sqlite", True)]
    assert summary["complete"] == bool(database.execute("SELECT complete FROM recording").fetchone()[0])
    found = {}
    for program, pid, count, total, least, p50, p99, most, failed in database.execute(
            "SELECT name, pid, inferences, total, least, p50, p99, most, failed FROM latency"):
        found[program, pid] = {"count": count, "mean": total / count, "min": least, "p50": p50, "p99": p99, "max": most}, failed
    timed = [program for program in summary["programs"] if program.get("latency_ns", {}).get("count")]
    assert timed and {(program["name"], program["pid"]) for program in timed} == set(found)
    for program in timed:
        figures, failed = found[program["name"], program["pid"]]
        assert failed == program["failed"]
        for figure, value in figures.items():
            close = 1 if figure in ("mean",) else value * 0.011 if figure[0] == "p" else 0
            assert abs(program["latency_ns"][figure] - value) <= close, (figure, value, program)
        states = program.get("states")
        if states:
            sums = database.execute("SELECT sum(cpu_time), sum(waited_time), sum(blocked_time) FROM inferences i JOIN programs p "
                                    "ON p.id = i.program JOIN processes r ON r.id = p.process WHERE p.name = ? AND r.pid = ?",
                                    (program["name"], program["pid"])).fetchone()
            assert sums == (states["cpu_ns"], states["waited_ns"], states["blocked_ns"])
    losses = dict(database.execute("SELECT cause, count FROM losses"))
    assert losses == {cause: count for cause, count in summary.get("lost", {}).items() if count}


@cases("calls", "operators", "jobs")
def test_trace(name):
    """Calls, operators, regions and jobs are the slices of the Chrome trace."""
    path = recordings()[name]
    output = os.path.join(scratch(), name + ".json")
    report(path, "-o", output)
    trace, database = Trace(output), database_of(path)
    slices = collections.Counter()
    times = collections.Counter()
    for call in trace.calls:
        if call.role == "operator":
            continue
        slices[call.function] += 1
        times[call.function] += round((call.end - call.start) * 1000)
    found = database.execute("SELECT f.name, count(*), total(duration) FROM all_calls JOIN functions f ON f.id = function "
                             "GROUP BY f.name").fetchall()
    assert {row[0]: row[1] for row in found} == dict(slices)
    assert all(abs(row[2] - times[row[0]]) <= row[1] for row in found), (found, times)
    operators = [event for event in trace.events if event["ph"] == "X" and event.get("cat", "").endswith(",operator")]
    assert database.execute("SELECT count(*), total(duration) FROM operators").fetchone() == (
        len(operators), sum(round(event["dur"] * 1000) for event in operators))
    assert collections.Counter(event["name"] for event in operators) == collections.Counter(dict(database.execute(
        "SELECT label, count(*) FROM operators o JOIN operator_names n ON n.id = o.operator GROUP BY label")))
    assert bool(operators) == (name == "operators")
    # Each lies in the inference that it belongs to.
    assert database.execute("SELECT count(*) FROM operators o JOIN inferences i ON i.id = o.inference WHERE o.start < i.start OR "
                            "o.start + o.duration > i.start + i.duration OR o.thread != i.thread").fetchone() == (0,)
    assert name != "operators" or database.execute("SELECT count(*) FROM operators WHERE inference IS NULL").fetchone() == (0,)
    jobs = sum(queue["jobs"] for queue in trace.metadata.get("queues", []))
    assert database.execute("SELECT total(jobs) FROM queues").fetchone() == (jobs,) and bool(jobs) == (name == "jobs")
    assert database.execute("SELECT count(*) FROM jobs WHERE done IS NOT NULL").fetchone() == (jobs,)


def test_stacks_and_states():
    """Frames of stacks, and where threads did not run."""
    database = database_of(recordings()["calls"])
    samples, = database.execute("SELECT count(*) FROM samples WHERE reason = 'call'").fetchone()
    assert samples and database.execute("SELECT count(DISTINCT sample) FROM flame").fetchone()[0] >= samples
    blocked, = database.execute("SELECT sum(woken - start) FROM off_cpu WHERE reason != 'preempted'").fetchone()
    assert blocked > 0 and not database.execute("SELECT 1 FROM off_cpu WHERE woken < start OR end < woken").fetchall()
    folded = report(recordings()["calls"], "--flame", "inference", "-o", "-").stdout
    total = sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines())
    assert database.execute("SELECT sum(duration * weight) FROM samples WHERE reason = 'call'").fetchone()[0] >= total > 0
    named = [row[0] for row in database.execute("SELECT DISTINCT function FROM flame WHERE function IS NOT NULL AND reason = 'call'")]
    assert named and any(name in folded for name in named), (named, folded)


def test_questions():
    """Each statement of docs/questions.md answers, and no statement is without an answer in all recordings."""
    paths = {}
    for name, path in recordings().items():
        paths[name] = os.path.join(scratch(), "question-%s.db" % name)
        report(path, "-o", paths[name])
    texts = statements()
    assert len(texts) == 11
    answered = collections.Counter()
    for name, path in paths.items():
        database = opened(path)
        database.row_factory = sqlite3.Row
        other = paths["operators" if name == "before" else "before"]  # one of the two is slower than the other
        database.execute("ATTACH ? AS before", ("file:%s?mode=ro" % other,))
        for number, text in enumerate(texts, 1):
            assert sqlite3.complete_statement(text) and text.count(";") == 1, text
            rows = database.execute(text).fetchall()
            answered[number] += len(rows)
            assert all(any(value is not None for value in row) for row in rows), (number, name)
            if number == 1:
                assert column(rows, "ms") == sorted(column(rows, "ms"), reverse=True)
            if number == 3:
                counted, = database.execute("SELECT count(*) FROM inferences").fetchone()
                assert sum(column(rows, "inferences")) == counted
            if number == 4:
                counted, = database.execute("SELECT count(*) FROM inferences WHERE duration IS NOT NULL").fetchone()
                assert sum(column(rows, "inferences")) == counted
    silent = {number for number in range(1, 12) if not answered[number]}
    # Where nothing was lost, and no driver reports jobs of traced processes.
    assert silent <= {6, 7}, "statements without an answer: %s" % silent


def test_parts():
    """Filters are those of the other formats."""
    path = recordings()["calls"]
    database = database_of(path, "--slowest", 5)
    rows = csv_rows(path, "--slowest", 5)
    wanted = sorted((nanoseconds(row["duration_us"]) for row in rows), reverse=True)
    slowest = [row[0] for row in database.execute("SELECT duration FROM slowest LIMIT 5")]
    assert len(wanted) == 5 and slowest == wanted
    pid = database_of(path).execute("SELECT min(pid) FROM processes WHERE name IS NOT NULL").fetchone()[0]
    part = database_of(path, "--pid", pid)
    assert len(csv_rows(path, "--pid", pid)) == part.execute("SELECT count(*) FROM inferences").fetchone()[0]
    assert part.execute("SELECT DISTINCT pid FROM programs p JOIN processes r ON r.id = p.process").fetchall() == [(pid,)]


def test_cut_short():
    """Up to the last complete part, as of other formats, with exit status 1."""
    path = os.path.join(scratch(), "cut.xpt")
    with open(recordings()["calls"], "rb") as file:
        whole = file.read()
    with open(path, "wb") as file:
        file.write(whole[:-20])
    output = os.path.join(scratch(), "cut.db")
    done = report(path, "-o", output, status=1)
    assert "cut short" in done.stderr
    assert opened(output).execute("SELECT complete FROM recording").fetchone() == (0,)


def test_no_room():
    """A limit on files is an error as of the table of inferences; what was there stays, and nothing else is left."""
    folder = scratch()
    output = os.path.join(folder, "small.db")
    with open(output, "w", encoding="ascii") as file:
        file.write("before")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    done = subprocess.run([XPUTRACE, "report", "-q", recordings()["calls"], "-o", output], capture_output=True, text=True,
                          preexec_fn=limit, check=False)
    assert done.returncode == 1 and "too large" in done.stderr, done.stderr
    assert os.listdir(folder) == ["small.db"]
    with open(output, encoding="ascii") as file:
        assert file.read() == "before"
    full = subprocess.run([XPUTRACE, "report", "-q", recordings()["calls"], "--format", "sqlite", "-o", "/dev/full"],
                          capture_output=True, text=True, check=False)
    assert full.returncode == 1 and "No space left" in full.stderr, full.stderr


def test_standard_output():
    """The same bytes as in a file; a name that is no output for it is refused."""
    path = recordings()["operators"]
    with open(os.path.join(scratch(), "pipe.db"), "w+b") as file:
        subprocess.run([XPUTRACE, "report", "-q", path, "--format", "sqlite", "-o", "-"], stdout=file, check=True)
    database = opened(file.name)
    assert database.execute("SELECT count(*) FROM inferences").fetchone()[0] == len(csv_rows(path))
    assert "requires a file" in report(path, "--format", "sqlite", status=2).stderr
    refused = run([XPUTRACE, "record", "-o", "x.db", "--", "true"])
    assert refused.status == 2 and "record to FILE.xpt" in refused.stderr
