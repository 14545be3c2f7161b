# SPDX-License-Identifier: BSD-2-Clause
"""The flat table of latencies: read by pandas, sqlite3 and a strict reader, compared with the Cloud AI 100 layout."""

import calendar
import csv
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time

from harness import Skip, cases, scratch, standin
from reports import DRIFT, Profile, Stream, nanoseconds, read_file, read_samples, report_files
from strict_csv import strict_rows

FIRST = "host pid process runtime program start duration_us".split()


def table_of(path):
    """Rows as dictionaries; no column is without a value."""
    header, *rows = strict_rows(read_file(path))
    assert header[:len(FIRST)] == FIRST and len(set(header)) == len(header), header
    empty = [name for index, name in enumerate(header) if not any(row[index] for row in rows)]
    assert not empty, "columns without values: %s" % empty
    return [dict(zip(header, row)) for row in rows]


def start_of(row):
    """ns since 1970."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{9})Z", row["start"])
    return calendar.timegm(time.strptime(found.group(1), "%Y-%m-%dT%H:%M:%S")) * 10 ** 9 + int(found.group(2))


def profiled():
    """The same inferences of asynchronous and synchronous calls in both layouts: rows, blocks, the file of the rows."""
    workload = standin("nrt", "--calls", 200, "--rate", 400)
    folder = scratch()
    path = os.path.join(folder, "flat.csv")
    common = ("-p", workload.pid, "--program", "neuron-0.0", "--samples", 1000)
    flat = Profile(*common, output=path, layout="flat")
    qaic = Profile(*common, output=os.path.join(folder, "qaic.csv"))
    workload.go()
    block = qaic.block()
    flat.end()
    return table_of(path), block, path, workload.pid


def test_rows_of_both_layouts():
    """Each sample of the Cloud AI 100 layout is a row of the table, the times as another collector has taken them."""
    rows, block, _, pid = profiled()
    assert len(rows) == block.taken > 50
    for row, sample in zip(rows, block.samples):
        assert (row["host"], row["pid"], row["process"]) == (socket.gethostname(), str(pid), block.process), row
        assert (row["runtime"], row["program"], row["handle"]) == (block.runtime, block.name, "0x%x" % block.handle)
        ends = start_of(row), start_of(row) + nanoseconds(row["duration_us"]) // 10 ** 6
        assert max(abs(ends[0] - sample.start), abs(ends[1] - sample.end)) < DRIFT, (row, sample.row)
        for name, other in (("in_queue", "numInfInQueue"), ("thread", "thread"), ("status", "status"), ("core", "core"),
                            ("bytes", "bytes"), ("device_us", "devExec(Us)")):
            assert row.get(name, "") == sample.row[other].replace("N/A", ""), (name, row, sample.row)
        assert (row["enqueue_us"] == "") == (sample.row["enqTime(Us)"] == "N/A"), (row, sample.row)
    assert [int(row["inference"]) for row in rows] == list(range(len(rows)))
    assert {row["enqueue_us"] == "" for row in rows} == {True, False}, "only synchronous, or only asynchronous calls"


def test_read_with_sqlite3():
    """The shell imports it as a table, whose sums are those of the rows."""
    rows, _, path, pid = profiled()
    base = os.path.join(os.path.dirname(path), "latency.db")
    try:
        subprocess.run(["sqlite3", base, ".import --csv %s latency" % path], check=True)
    except FileNotFoundError:  # python's module then, with what it has of CSV
        with open(path, encoding="utf-8", newline="") as file, sqlite3.connect(base) as database:
            header, *fields = csv.reader(file, strict=True)
            database.execute("create table latency (%s)" % ", ".join('"%s"' % name for name in header))
            database.executemany("insert into latency values (%s)" % ",".join("?" * len(header)), fields)
    with sqlite3.connect(base) as database:
        found = database.execute("select count(*), sum(duration_us), min(pid), max(pid), count(distinct start) "
                                 "from latency where julianday(start) > julianday('2020-01-01')").fetchone()
    wanted = sum(float(row["duration_us"]) for row in rows)
    assert found[0] == found[4] == len(rows) and abs(found[1] - wanted) < 1e-3, (found, wanted)
    assert int(found[2]) == int(found[3]) == pid


PANDAS = """
import json, pandas, sys
table = pandas.read_csv(sys.argv[1], parse_dates=["start"])
print(json.dumps({
    "columns": list(table.columns), "start": [value.value for value in table["start"]],
    "duration": table["duration_us"].sum(), "pid": int(table["pid"].max()),
    "synchronous": int(table["enqueue_us"].isna().sum()),
    "empty": [name for name in table.columns if table[name].isna().all()]}))
"""


def test_read_with_pandas():
    """Numbers and times are numbers and times without any option; what is not known is NaN."""
    pythons = [python for python in (sys.executable, "/usr/bin/python3")
               if os.path.exists(python) and subprocess.run([python, "-c", "import pandas"], capture_output=True).returncode == 0]
    if not pythons:
        raise Skip("pandas is not installed (Debian: python3-pandas)")
    rows, _, path, pid = profiled()
    read = json.loads(subprocess.run([pythons[0], "-c", PANDAS, path], check=True, capture_output=True).stdout)
    assert read["columns"] == list(rows[0]) and read["start"] == [start_of(row) for row in rows]
    assert abs(read["duration"] - sum(float(row["duration_us"]) for row in rows)) < 1e-3 and read["pid"] == pid
    assert read["synchronous"] == sum(not row["enqueue_us"] for row in rows) and not read["empty"], read


@cases("rows", "summary")
def test_stream(kind):
    """A file a report, each with its header; appended, one header for all."""
    workload = standin("nrt", "--calls", 240, "--rate", 400, "--programs", 2)
    folder = scratch()
    options = ["--summary"] if kind == "summary" else []
    streams = [Stream("-p", workload.pid, "--report-every", "100ms", *words, *options, layout="flat", output=os.path.join(
        folder, name)) for name, words in (("single.csv", []), ("all.csv", ["--append"]))]
    streams.append(Stream("-p", workload.pid, "--report-every", "100ms"))
    workload.go()
    workload.results()
    for stream in streams[:2]:
        stream.end()
    blocks = read_samples(streams[2].end().stdout)
    single = []
    for path in report_files(os.path.join(folder, "single.csv")):  # the last one may have one inference of a program, or none
        header, *rows = strict_rows(read_file(path))
        assert header[:5] == FIRST[:5] and len(set(header)) == len(header), header
        single += [dict(zip(header, row)) for row in rows]
    header, *every = strict_rows(read_file(os.path.join(folder, "all.csv")))
    every = [dict(zip(header, row)) for row in every]
    if kind == "rows":
        assert len(single) == len(every) == sum(block.taken for block in blocks)
        key = ("program", "inference", "thread")
        assert sorted([row[name] for name in key] for row in single) == sorted([row[name] for name in key] for row in every)
    else:
        for rows in (single, every):
            assert sum(int(row["inferences"]) for row in rows) == sum(block.inferences for block in blocks)
            assert all(int(row.get("duration_us_count") or 0) == int(row["samples"]) for row in rows)

