# SPDX-License-Identifier: BSD-2-Clause
"""--summary-json: one shape for all commands, and nothing in it that SCHEMA.md does not explain."""

import json
import os
import re

from harness import ROOT, XPUTRACE, cases, entries_of, plain_name, need, run, scratch, results_in, workload_path
from recordings import with_budget

RUN = [workload_path("linked-nrt"), "nrt", "--calls", "60", "--programs", "2"]


def documented():
    """Names of the fields, and for each command which stand in it."""
    with open(os.path.join(ROOT, "user/report/SCHEMA.md"), encoding="utf-8") as file:
        section = re.search(r"\n## Summary as JSON\n(.*?)\n## ", file.read(), re.S).group(1)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines()
            if line.startswith("|")][2:]
    names = {}
    for fields, _, commands, meaning in rows:
        assert meaning or fields == "listed", fields
        for name in fields.split(", "):
            assert name not in names, name
            names[name] = commands
    return names


def fields_of(value, prefix=""):
    """All names in it, those in arrays without their index; the causes of losses are one."""
    for name, member in value.items():
        name = prefix + ("CAUSE" if prefix == "lost." else name)
        yield name
        for one in member if isinstance(member, list) else [member]:
            if isinstance(one, dict):
                yield from fields_of(one, name + ".")


def summary(*words, status=0, **options):
    """What the command has written."""
    path = os.path.join(scratch(), "summary.json")
    words = list(words)
    words[1:1] = ["--summary-json", path]
    done = run([need(XPUTRACE, "collector")] + [str(one) for one in words], **options)
    assert done.status == status, done.stderr
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert text.endswith("}\n") and text.count("\n") == 1 and os.stat(path).st_mode & 0o777 == 0o600
    read = json.loads(text)
    assert (read["command"], read["status"], read["schema"]) == (words[0], status, 1), read
    return read, done


def made(done):
    """Executions of each program that the workload has logged."""
    counts = {}
    for entry in entries_of(results_in(done.stdout)):
        if plain_name(entry["function"]) in ("nrt_execute", "nrta_execute_schedule"):
            counts[entry["program"]] = counts.get(entry["program"], 0) + entry["count"]
    return counts


def check_programs(read, wanted):
    assert {one["name"]: one["inferences"] for one in read["programs"]} == wanted, read["programs"]
    for one in read["programs"]:
        times = one["latency_ns"]
        assert times["count"] == one["recorded"] and times["min"] <= times["p50"] <= times["p99"] <= times["max"]
        assert times["min"] <= times["mean"] <= times["max"] < read["duration_ns"], one


def test_fields_are_documented_and_seen():
    """All commands together: each field that is there is documented, of its command; each documented one is seen."""
    folder = scratch()
    recording, trace = os.path.join(folder, "r.xpt"), os.path.join(folder, "t.json")
    read, done = summary("record", "-o", recording, "--", *RUN)
    check_programs(read, made(done))
    assert read["outputs"] == [{"file": recording, "format": "xpt", "bytes": os.stat(recording).st_size}]
    summaries = [read]
    read, _ = summary("report", "-q", recording, "-o", trace)
    assert [{key: one[key] for key in ("name", "inferences", "latency_ns")} for one in read["programs"]] == [
        {key: one[key] for key in ("name", "inferences", "latency_ns")} for one in summaries[0]["programs"]]
    assert read["outputs"] == [{"file": trace, "format": "chrome", "bytes": os.stat(trace).st_size}]
    summaries.append(read)
    for command in ("stream", "profile"):
        words = ["--program", "neuron-0.1"] if command == "profile" else []
        read, done = summary(command, "-o", os.path.join(folder, command + ".csv"), *words, "--", *RUN)
        counts = made(done)
        check_programs(read, {"neuron-0.1": counts["neuron-0.1"]} if words else counts)
        summaries.append(read)
    read, done = summary("inspect", "-o", os.path.join(folder, "inspected"), "--", *RUN)
    assert [one["inferences"] for one in read["processes"]] == [sum(made(done).values())]
    with open(os.path.join(read["processes"][0]["directory"], "index.json"), encoding="utf-8") as file:
        assert {**json.load(file), "directory": read["processes"][0]["directory"]} == read["processes"][0]
    summaries.append(read)
    read, done = summary("check")
    assert read["features"] and all(one["name"] in done.stdout for one in read["features"])
    summaries.append(read)
    read, done = summary("list", "runtimes")
    assert read["listed"] == {"what": "runtimes", "entries": len(done.stdout.splitlines()) - 1}
    summaries.append(read)
    # Regions, and a loss: a call that has not returned.
    summaries.append(summary("record", "--format", "none", "--region", "functions:app::*", "--", workload_path(
        "functions/functions"), "3")[0])
    summaries.append(summary("record", "--format", "none", "-d", "300ms", "--", *RUN[:2], "--calls", "1", "--programs", "1",
                             "--duration-us", "1000000")[0])
    assert [one["calls"] for one in summaries[-2]["regions"]] and summaries[-1]["lost"] == {"open": 1}, summaries[-2:]
    # Threads that block.
    read, _ = summary("record", "--format", "none", "--why", "--", *RUN, "--duration-us", "3000")
    blocked = [one["states"] for one in read["programs"] if one["states"]["blocked_ns"]]
    assert blocked and all(sum(one["blocked_by_ns"].values()) == one["blocked_ns"] for one in blocked), read["programs"]
    summaries.append(read)
    with_budget(os.path.join(ROOT, "tests/e2e/kept/counted.xpt"), recording)
    summaries.append(summary("report", "-q", recording)[0])
    known, seen = documented(), set()
    for read in summaries:
        for name in fields_of(read):
            assert name in known, "%s of %s is not documented" % (name, read["command"])
            commands = known[name] or known[name.split(".")[0]]
            assert commands == "all" or read["command"] in commands.split(", "), (name, read["command"])
            seen.add(name)
    missing = sorted(set(known) - seen)
    assert not missing, "documented, but in no summary: %s" % missing


@cases("fifo", "-", "/no/such/folder/s.json")
def test_where_it_goes(path):
    """Standard output takes it behind the table; what cannot be written is an error, and holds up nobody."""
    if path == "fifo":
        path = os.path.join(scratch(), "fifo")
        os.mkfifo(path)
    done = run([XPUTRACE, "list", "runtimes", "--summary-json", path])
    if path == "-":
        assert done.status == 0 and json.loads(done.stdout.splitlines()[-1])["listed"]["entries"], done.stdout
    else:
        assert done.status == 1 and path in done.stderr, done.stderr
