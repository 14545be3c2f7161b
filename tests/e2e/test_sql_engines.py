# SPDX-License-Identifier: BSD-2-Clause
"""Databases and tables of several recordings in ClickHouse and DuckDB, by the statements of docs/questions.md, against SQLite."""

import json
import os
import re
import sqlite3

from harness import BUILD, ROOT, Skip, cases, need, run, scratch
from test_sql import QUESTIONS, recordings, report

SCRIPT = os.path.join(ROOT, "tests/workload/sql/query.mjs")
SUMMARY = """SELECT c.host, p.name, count(*), sum(i.duration), max(i.duration) FROM inferences i JOIN programs p ON p.id = i.program
JOIN recording c WHERE i.duration IS NOT NULL GROUP BY p.name"""


def answers(engine, folder, statements):
    """Rows of each statement."""
    root = os.path.join(BUILD, "npm-" + engine)
    if not os.path.exists(root + ".done"):
        raise Skip("%s is not there: `make test-engines` fetches it" % engine)
    done = run(["node", need(SCRIPT, "runner"), engine, root, *statements], cwd=folder)
    assert done.status == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(statements), done.stdout
    return found


def statements(kind):
    """Those of the page's blocks of a kind, by block."""
    with open(QUESTIONS, encoding="utf-8") as file:
        blocks = re.findall(r"^```sql %s\n(.*?)^```$" % kind, file.read(), re.MULTILINE | re.DOTALL)
    return [[text.strip() for text in block.split(";") if text.strip()] for block in blocks]


def folder_of(*names):
    """Databases night.db and other.db of two recordings, or a table of each one, in a new folder."""
    folder = scratch()
    for name, path in zip(("night", "other"), (recordings()[name] for name in names)):
        report(path, "-o", os.path.join(folder, name + ".db"))
    return folder


def tables():
    folder = scratch()
    for name, path in recordings().items():
        report(path, "--format", "csv", "-o", os.path.join(folder, name + ".csv"))
        report(path, "-o", os.path.join(folder, name + ".db"))
    return folder


def summary(folder, names, unit=1):
    """Host, program, number, sum and largest duration of all databases, as SQLite has them."""
    found = {}
    for name in names:
        for host, program, count, total, most in sqlite3.connect(os.path.join(folder, name + ".db")).execute(SUMMARY):
            before = found.get((host, program), (0, 0, 0))
            found[host, program] = before[0] + count, before[1] + total, max(before[2], most)
    assert found
    return {key: (count, total / unit, most / unit) for key, (count, total, most) in found.items()}


def check(rows, wanted):
    """The same figures, largest sum first."""
    found = {(host, program): (int(count), float(total), float(most)) for host, program, count, total, most in rows}
    assert len(found) == len(rows) and found.keys() == wanted.keys(), (rows, wanted)
    for key, figures in found.items():
        assert all(abs(one - other) < 0.01 for one, other in zip(figures, wanted[key])), (key, figures, wanted[key])
    assert [float(row[3]) for row in rows] == sorted((float(row[3]) for row in rows), reverse=True), rows


def test_clickhouse():
    """Two databases in one table; a whole database."""
    folder = folder_of("calls", "jobs")
    filled, whole, _ = statements("clickhouse")
    *made, rows = answers("clickhouse", folder, filled)
    assert made == [[], []], made
    check(rows, summary(folder, ("night", "other")))
    made, rows = answers("clickhouse", folder, whole)
    assert made == [], made
    check(rows, summary(folder, ("night",)))


def test_clickhouse_tables():
    """All tables of a folder."""
    folder = tables()
    rows, = answers("clickhouse", folder, statements("clickhouse")[2])
    check(rows, summary(folder, recordings(), 1000))


@cases("calls", "operators", "jobs")
def test_clickhouse_types(name):
    """Numbers are numbers in tables and views, and rows are those that SQLite has."""
    folder = folder_of(name)
    database = sqlite3.connect(os.path.join(folder, "night.db"))
    names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'")]
    assert {"slowest", "latency", "per_second", "operators_by_type", "device_use", "all_calls", "flame"} < set(names)
    described = answers("clickhouse", folder, ["DESCRIBE sqlite('night.db', '%s')" % name for name in names])
    counted = answers("clickhouse", folder, ["SELECT count(*) FROM sqlite('night.db', '%s')" % name for name in names])
    wrong = []
    for name, columns, ((count,),) in zip(names, described, counted):
        assert database.execute("SELECT count(*) FROM " + name).fetchone() == (int(count),), name
        for column, kind in (row[:2] for row in columns):
            kinds = {row[0] for row in database.execute('SELECT DISTINCT typeof("%s") FROM %s' % (column, name))} - {"null"}
            plain = re.sub(r"Nullable\((.*)\)", r"\1", kind)
            if not kinds <= {"String": {"text"}, "Int64": {"integer"}, "Float64": {"real"}}[plain]:
                wrong.append((name, column, kind, kinds))
    assert not wrong, wrong


def test_duckdb_tables():
    """All tables of a folder, and the same after a copy to Parquet."""
    folder = tables()
    texts, = statements("duckdb")
    rows, (copied,), again = answers("duckdb", folder, texts)
    wanted = summary(folder, recordings(), 1000)
    check(rows, wanted)
    check(again, wanted)
    assert int(copied[0]) >= sum(count for count, _, _ in wanted.values())


def test_duckdb_database():
    """A database through the extension for SQLite, where that is installed."""
    folder = folder_of("calls")
    texts, = statements("duckdb sqlite")
    loaded, *others = answers("duckdb", folder, texts)
    if "error" in loaded:
        raise Skip("DuckDB's extension for SQLite is not installed")
    check(others[-1], summary(folder, ("night",)))
