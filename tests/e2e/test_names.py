# SPDX-License-Identifier: BSD-2-Clause
"""Names of programs: sessions of one file apart, a description of those without a name, names that the user gives."""

import csv
import json
import os
import re
import shutil

from harness import XPUTRACE, Recorder, Trace, Workload, cases, record_command, record_late, run, scratch, standin
from onnx_models import RELEASES, model, serve
from saved_files import Collector
from test_python import serve as serve_python

RUNS = 10


def used(trace):
    """Runs by name of the program, as its totals have them."""
    return {program["name"]: program["calls"] for program in trace.programs() if program.get("calls")}


def report(recording, *options):
    result = run([XPUTRACE, "report", recording, *options])
    assert result.status == 0, result.stderr
    return result.stdout


def test_two_sessions():
    """Two sessions of one file are two rows, everywhere; a report has the same ones, and either can be chosen."""
    path = model("small")
    recording, summary = (os.path.join(scratch(), name) for name in ("two.xpt", "two.json"))
    result = run([XPUTRACE, "record", "-o", recording, "--summary-json", summary, "--",
                  *serve(path, "--sessions", 2, "--runs", RUNS)])
    assert result.status == 0, result.stderr
    wanted = {path: RUNS, path + " #2": RUNS}
    with open(summary, encoding="utf-8") as file:
        assert {one["name"]: one["inferences"] for one in json.load(file)["programs"]} == wanted
    assert re.search(r"%s #2 +onnxruntime +\d+ +%d " % (re.escape(os.path.basename(path)), RUNS), result.stdout), result.stdout
    output = os.path.join(scratch(), "two-report.json")
    report(recording, "-o", output)
    assert used(Trace(output)) == wanted
    assert {call.program for call in Trace(output).of("Run")} == set(wanted)
    for chosen, names in ((path + " #2", {path + " #2"}), (path, set(wanted))):
        report(recording, "--format", "csv", "--program", chosen, "-o", output)
        with open(output, encoding="utf-8") as file:
            assert {row["program"] for row in csv.DictReader(file)} == names, chosen


def test_two_sessions_late():
    """The same where the loads were not seen; those released and loaded again go on in the rows."""
    path, runs = model("small"), 20000  # they live until their names are read
    (result,), trace = record_late(Workload(serve(path, "--wait", "--sessions", 2, "--runs", runs, "--recreate")))
    assert result["runs"] == 4 * runs
    calls = [(program["name"], program["calls"]) for program in trace.programs() if program.get("calls")]
    assert sorted(calls) == sorted([(path, runs), (path + " #2", runs)] * 2), calls


@cases(*RELEASES)
def test_learned(release):
    """A session that was loaded before under a name that shows nothing: read where one that was loaded later has its path."""
    paths = [os.path.join(scratch(), name) for name in ("a model.bin", "another.model")]
    for path in paths:
        for suffix in ("", ".json"):
            shutil.copy(model("small") + suffix, path + suffix)
    runs = 150  # in so long their names are read
    command = serve(paths[0], "--wait", "--runs", runs, "--rate", 100, "--another", paths[1], release=release)
    (result,), trace = record_late(Workload(command))
    assert result["runs"] == 3 * runs
    found = {program["name"]: (program["name_source"], program["calls"]) for program in trace.programs() if program.get("calls")}
    assert found == {paths[0]: ("memory", 2 * runs), paths[1]: ("load", runs)}, found


def test_loaded_again_in_python():
    """Its sessions are released by a destructor, which is not seen: one loaded again is not another one."""
    command = serve_python(model("small", hidden=512, batch=64), "--recreate", "--linger", 0.3)
    _, trace, _ = record_command(command)
    assert len(used(trace)) == 1, used(trace)


def fingerprint(name, *options, mode=()):
    """That of a session that is loaded from a file of another kind, with a graph without a name: nothing tells a name."""
    path = os.path.join(scratch(), os.path.basename(model(name)) + ".bin")
    with open(model(name), "rb") as file:
        content = file.read()
    graph = bytes([0x12, len(name)]) + name.encode()
    assert content.count(graph) == 1, "the name of the graph is not where it is expected"
    with open(path, "wb") as file:
        file.write(content.replace(graph, bytes([0x12, len(name)]) + b"\x01" * len(name)))
    with open(model(name) + ".json", encoding="utf-8") as source, open(path + ".json", "w", encoding="utf-8") as copy:
        copy.write(source.read())
    workload = Workload(serve(path, "--array", "--wait", "--runs", RUNS, "--rate", 100, *mode))
    (result,), trace = record_late(workload, "--ops", *options)
    assert result["runs"] == RUNS
    program, = [program for program in trace.programs() if program.get("calls")]
    return program


@cases("mlp", "control", "branches")
def test_fingerprint(name):
    """Of the operators: the same after a restart and in whatever order they run; the user can give it a name."""
    first = fingerprint(name)
    assert first["name_source"] == "operators" and not first["named"], first
    assert first["name"] == "onnxruntime model " + first["fingerprint"] and first["handle"].startswith("0x"), first
    names = os.path.join(scratch(), "names")
    with open(names, "w", encoding="utf-8") as file:
        file.write("# models of this server\n\n  %s=my model\n0x1234=of nobody\n" % first["fingerprint"])
    mode = ("--mode", "parallel", "--inter", 3) if name == "branches" else ()
    second = fingerprint(name, "--name", "@" + names, mode=mode)
    assert (second["fingerprint"], second["name"]) == (first["fingerprint"], "my model"), (first, second)


def test_fingerprints_differ():
    """Models of other operators, though they are of as many."""
    assert fingerprint("small")["fingerprint"] != fingerprint("unnamed")["fingerprint"]


def test_order():
    """Without operators they are numbered as they were first seen."""
    _, trace = record_late(standin("nrt", "--load-first", "--calls", 40, "--programs", 2))
    assert set(used(trace)) == {"nrt model 1", "nrt model 2"}, used(trace)
    handles = {call.program: call.handle for call in trace.runs()}
    assert len(set(handles.values())) == 2 and all(handles.values()), handles


def by_handle(trace):
    return {call.handle: call.program for call in trace.runs()}


def test_order_of_chosen():
    """Reports of some inferences, and parts that are saved, have the numbers of the whole."""
    output = os.path.join(scratch(), "part.json")
    workload = standin("nrt", "--load-first", "--calls", 34, "--programs", 3)  # 1 1 2 2 3 3 ... 1 1 2 2
    recorder = Recorder("-p", workload.pid, output=os.path.join(scratch(), "whole.xpt"))
    watcher = Collector("-p", workload.pid)
    workload.go()
    workload.results()
    assert recorder.wait() == 0, recorder.stderr
    report(recorder.output, "-o", output)
    whole = by_handle(Trace(output))
    assert sorted(whole.values()) == ["nrt model 1", "nrt model 2", "nrt model 3"], whole
    for handle, name in whole.items():
        report(recorder.output, "--match", name[-1] + "$", "-o", output)
        assert by_handle(Trace(output)) == {handle: name}, (name, used(Trace(output)))
        report(recorder.output, "--format", "csv", "--program", name, "-o", output)
        with open(output, encoding="utf-8") as file:
            found = {(int(row["handle"], 16), row["program"]) for row in csv.DictReader(file)}
        assert found == {(handle, name)}, found
    watcher.wait_inferences(34)
    whole = by_handle(watcher.save().trace)  # another collector's: it may have seen another one first
    assert sorted(whole.values()) == ["nrt model 1", "nrt model 2", "nrt model 3"], whole
    for last, programs in (("1", 1), ("3", 2)):
        part = by_handle(watcher.save("--last", last).trace)
        assert part.items() <= whole.items() and len(part) == programs, (last, part, whole)
    watcher.stop()


def test_names_that_fit_nothing():
    """They are named at the end, each on a line; those that fit are not."""
    workload = standin("nrt", "--load-first", "--calls", 40, "--programs", 1)
    recorder = Recorder("-p", workload.pid, "--name", "0x1234=x", "--name", "deadbeef=y")
    workload.go()
    workload.results()
    recorder.finish()
    assert "--name 0x1234=x: no program fits" in recorder.stderr, recorder.stderr
    assert "--name deadbeef=y: no program fits" in recorder.stderr, recorder.stderr


@cases("missing", "folder", "line", "empty name")
def test_name_files_that_are_none(case):
    """A file that cannot be read, and a line that says nothing: which one, and no trace."""
    folder = scratch()
    path = {"missing": folder + "/none", "folder": folder}.get(case, folder + "/names")
    if path.endswith("names"):
        with open(path, "w", encoding="utf-8") as file:
            file.write("# first\n" + {"line": "resnet\n", "empty name": "0x12=\n"}[case])
    result = run([XPUTRACE, "record", "-n", "@" + path, "-o", folder + "/trace", "--", "true"])
    assert result.status == 2 and path in result.stderr, result.stderr
    assert path.endswith("names") == (":2: " in result.stderr), result.stderr
    assert not os.path.exists(folder + "/trace")
