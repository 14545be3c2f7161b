# SPDX-License-Identifier: BSD-2-Clause
"""ONNX Runtime in Python, Debian's python3-onnxruntime in a root of its own, as a program in a container has it: a module that exports
nothing, and calls InferenceSession by itself."""

import glob
import json
import os
import shutil
import subprocess

import python_root
from harness import ROOT, XPUTRACE, Workload, cases, need, paired, record_command, record_late, run, scratch
from onnx_models import model
from operator_checks import check_operators, check_profile, check_runs
from ort_profile import profiles

RUN, LOAD, LOAD_BYTES = "InferenceSession::Run", "InferenceSession::Load", "InferenceSession::Load(bytes)"
INITIALIZE, RELEASE = "InferenceSession::Initialize", "InferenceSession::~InferenceSession"


def serve(path, *options, contained=False):
    """The command that serves a model. contained: as in a container, with other files at the same paths."""
    shared = scratch()
    script = shutil.copy(os.path.join(ROOT, "tests", "workload", "python", "serve.py"), shared)
    for suffix in ("", ".json"):
        shutil.copy(path + suffix, shared)
    words = [script, os.path.join(shared, os.path.basename(path)), *[str(option) for option in options]]
    return python_root.inside(shared, *words) if contained else python_root.direct(*words)


def path_of(command):
    """Of the model, as the program has it."""
    return next(word for word in command if word.endswith(".onnx"))


def profile_prefix(command):
    """Where it writes ONNX Runtime's profiles: beside the model, which is there in a container, too."""
    return os.path.join(os.path.dirname(path_of(command)), "profile")


def names(trace):
    return {program["name"] for program in trace.programs(runtime="onnxruntime") if program.get("calls")}


def check(result, trace, prefix):
    """As many runs as Python counts, as long as ONNX Runtime's own profile says."""
    trace.check()
    assert not trace.losses(), trace.losses()
    runs = trace.of(RUN)
    assert len(runs) == result["runs"] + result["failed"], (len(runs), result)
    good = [call for call in runs if not call.status]
    assert len(good) == result["runs"], "%d runs of %d without an error" % (len(good), result["runs"])
    check_runs(profiles(prefix), good)


@paired("measures time")
@cases("path", "bytes")
def test_from_the_start(given):
    """Loads and runs: the program has the path of its model, or the name of the graph where it came as bytes."""
    path = model("small", hidden=512, batch=64)
    command = serve(path, "--recreate", "--fail", 3, "--linger", 0.3, *["--array"] * (given == "bytes"))
    prefix = profile_prefix(command)
    (result,), trace, _ = record_command([*command, "--profile", prefix])
    check(result, trace, prefix)
    assert result["failed"] == 6
    loads = trace.of(LOAD, LOAD_BYTES)
    assert [load.function for load in loads] == [LOAD if given == "path" else LOAD_BYTES] * 2
    if given == "bytes":
        assert {load.event["args"]["size"] for load in loads} == {os.path.getsize(path)}
        assert names(trace) == {"small"}, names(trace)
    else:
        assert names(trace) == {path_of(command)}, names(trace)


def test_sessions():
    """A session is loaded when it is initialised, and ends when it is released: by Python's clock, and ONNX Runtime's own profile."""
    command = serve(model("small", hidden=512, batch=64), "--recreate", "--runs", 5)
    prefix = profile_prefix(command)
    (result,), trace, _ = record_command([*command, "--profile", prefix], "--wait-limit", "30s")
    loads, inits, ends = trace.of(LOAD), trace.of(INITIALIZE), trace.of(RELEASE)
    programs = sorted(trace.programs(runtime="onnxruntime"), key=lambda program: program["loaded_us"])
    assert len(loads) == len(inits) == len(ends) == len(programs) == len(result["sessions"]) == 2
    for number, (began, made, releasing, released) in enumerate(result["sessions"]):
        load, init, end, program = loads[number], inits[number], ends[number], programs[number]
        assert began / 1000 <= load.start < load.end <= init.start < init.end <= made / 1000, (load.start, init.end)
        assert releasing / 1000 <= end.start <= released / 1000, (releasing, end.start, released)
        assert abs(program["loaded_us"] - init.end) < 0.01 and program["released_us"] == end.start, program
        profile, = glob.glob("%s-%d_*.json" % (prefix, number))
        with open(profile, encoding="utf-8") as file:
            steps = {event["name"]: event["dur"] for event in json.load(file) if event["cat"] == "Session"}
        for name, call in (("model_loading_uri", load), ("session_initialization", init)):
            assert steps[name] <= call.duration + 1 <= 1.1 * steps[name] + 20000, (name, steps[name], call.duration)


@paired("measures time")
@cases("path", "bytes")
def test_late_attach(given):
    """A server that runs already, with threads: nothing was seen loading, and the names are there."""
    command = serve(model("small", hidden=512, batch=64), "--wait", "--threads", 2, "--rate", 200,
                    *["--array"] * (given == "bytes"), contained=True)
    prefix = profile_prefix(command)
    (result,), trace = record_late(Workload([*command, "--profile", prefix]))
    check(result, trace, prefix)
    assert result["runs"] == 200
    assert names(trace) == {"small" if given == "bytes" else path_of(command)}, names(trace)
    program, = [program for program in trace.programs(runtime="onnxruntime") if program.get("calls")]
    assert program["name_source"] == "memory", program


@cases("mlp", "control")
def test_operators(name):
    """The same nodes as in ONNX Runtime's own profile, as often, each in its time."""
    command = serve(model(name), "--runs", 20, "--rate", 100)
    prefix = profile_prefix(command)
    (result,), trace, _ = record_command([*command, "--profile", prefix], "--ops")
    operators = check_operators(trace, result["pid"])
    assert len(trace.of(RUN)) == result["runs"]
    profile, = profiles(prefix)
    check_profile(profile, operators)


def test_sites():
    """list sites finds the functions in the stripped module by their strings, and none in other files."""
    library = python_root.library(os.path.join("onnxruntime", "capi", "onnxruntime_pybind11_state*.so"))
    result = run([need(XPUTRACE, "collector"), "list", "sites", "--file", library, "--format", "json"])
    assert result.status == 0, result.stderr
    found = {site["function"]: site for site in json.loads(result.stdout)}
    assert set(found) == {RUN, LOAD, LOAD_BYTES, INITIALIZE, RELEASE}, set(found)
    starts = function_starts(library)
    for site in found.values():
        assert site["found_by"] == ("class" if site["function"] == RELEASE else "string") and site["class"] != "stepped", site
        assert site["function_offset"] in starts, "%s: no function begins at %#x" % (site["function"], site["function_offset"])


def function_starts(library):
    """Where functions begin, as readelf has them from the unwind tables; addresses and offsets of the code are the same there."""
    frames = subprocess.run(["readelf", "--debug-dump=frames", library], capture_output=True, text=True, check=True).stdout
    return {int(line.split("pc=")[1].split(".")[0], 16) for line in frames.splitlines() if " FDE " in line}
