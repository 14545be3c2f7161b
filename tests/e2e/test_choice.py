# SPDX-License-Identifier: BSD-2-Clause
"""record --program and --match: all inferences of the chosen programs and none of others, which are counted."""

import collections
import json
import os
import re

from harness import (file_name, SLOW, XPUTRACE, Recorder, Trace, Workload, alone, cases, entries_of, need, paired, plain_name, record_command, results_in, run,
                     run_entries, scratch, standin, workload_path)
from onnx_models import RELEASES, library, model, serve
from operator_checks import check_operators, check_profile, profile_counts, spans
from operator_toy import DESCRIPTION, toy
from ort_profile import profiles
from reports import churn_made

MANY_PROBES = "threads wait while many probes are placed, which others at the same time slow down"
BUSY = "its threads use all processors"

RUNS = 60
AT_ONCE = 300  # of each of two sessions, without a pause
SLACK = 20000  # ns: the probes of two recorders come one after the other


def made_by(results, key="program"):
    """Runs by program."""
    made = collections.Counter()
    for entry in run_entries(results):
        made[entry[key]] += entry["count"]
    return made


def check_chosen(trace, made, chosen, every=1):
    """Runs of chosen programs, one in so many, and none of others; exact counts of all."""
    trace.check()
    assert not trace.losses(), "something was lost: %s" % trace.losses()
    assert chosen and set(chosen) < set(made), "nothing is tested: %s of %s" % (chosen, made)
    wanted = {name: -(-count // every) for name, count in made.items() if name in chosen}
    traced = collections.Counter(file_name(call.program) for call in trace.runs())
    assert traced == wanted, "wanted %s, traced %s" % (wanted, dict(traced))
    counts = collections.defaultdict(collections.Counter)
    for program in trace.programs():
        if file_name(program["name"]) in made and "calls" in program:
            counts[file_name(program["name"])].update({key: program[key] for key in ("calls", "recorded", "left_out")})
    for name, count in made.items():
        recorded = wanted.get(name, 0)
        assert counts[name] == {"calls": count, "recorded": recorded, "left_out": count - recorded}, (name, counts)


def check_others(results, trace):
    """Calls that are no inferences are recorded as ever."""
    runs = {plain_name(entry["function"]) for entry in run_entries(results)}
    made = collections.Counter()
    for entry in entries_of(results):
        made[plain_name(entry["function"])] += entry["count"]
    seen = {call.function for call in trace.calls}
    traced = collections.Counter(call.function for call in trace.calls if not call.layer)
    wanted = {function: count for function, count in made.items() if function in seen - runs}
    assert wanted and {function: traced[function] for function in wanted} == wanted, (wanted, traced)


# ---- by name, handle and expression ----

@cases("nrt", "qaic", "vaccel", "hip", "cuda", "pjrt", "llama")
def test_names(runtime):
    """Names and an expression: from the first inference on, though the programs are loaded while it records."""
    workload = standin(runtime, "--calls", 90, "--threads", 2, "--programs", 5)
    name = {"nrt": "neuron-0.0", "qaic": "cloud-0.0", "hip": "hip_kernel-0.0"}.get(runtime)
    options = ["--program", name] if name else []
    recorder = Recorder("-p", workload.pid, "--match", "[.][13]$", *options)
    workload.go()
    results = workload.results()
    trace = recorder.finish()
    made = made_by(results)
    check_chosen(trace, made, {one for one in made if one[-1] in "13" or one == name})
    check_others(results, trace)
    assert trace.metadata["chosen"] == ([{"name": name}] if name else []) + [{"match": "[.][13]$"}]
    assert "chosen: " in recorder.stdout and "names with [.][13]$" in recorder.stdout, recorder.stdout


def test_loaded_later():
    """A program that is loaded in the middle, by the same handles as others before: all its inferences."""
    results, trace, _ = record_command([workload_path("linked-nrt"), "nrt", "--calls", 60, "--programs", 3, "--reload"],
                                       "--program", "neuron-1.1")
    check_chosen(trace, made_by(results), {"neuron-1.1"})


def test_many_that_come_and_go():
    """Each is run a few times at once after its load, and unloaded: one in ten is wanted, and none of it is missing."""
    workload = standin("qaic", "--churn", 400, "--for", 2, "--threads", 3)
    recorder = Recorder("-p", workload.pid, "--match", "^churn-[0-9]*7$")
    workload.go()
    result, = workload.results()
    trace = recorder.finish()
    made = churn_made(result)
    check_chosen(trace, made, {name for name in made if name.endswith("7")})


def test_handles():
    """Programs that were loaded before: by handle, and by the name that the user gives."""
    seconds = "%ds" % (2 * min(SLOW, 5))
    workload = standin("nrt", "--calls", 0, "--rate", 500, "--programs", 4, "--load-first")
    everything = Recorder("-p", workload.pid, "-d", seconds)
    workload.go()
    handles = sorted(program["handle"] for program in everything.finish().programs() if program["recorded"])
    assert len(handles) == 4, handles
    recorder = Recorder("-p", workload.pid, "-n", handles[1] + "=mine", "--program", handles[0], "--program", "mine",
                        "-d", seconds)
    trace = recorder.finish()
    workload.stop()
    traced = collections.Counter(hex(call.handle) for call in trace.runs())
    for program in trace.programs():
        assert program["calls"] > 20, program
        assert program["recorded"] == traced[program["handle"]] == (
            program["calls"] if program["handle"] in handles[:2] else 0), (program, traced)
    assert trace.metadata["chosen"] == [{"name": None, "handle": handles[0]}, {"name": "mine"}]
    # It ends while the program runs: in a call, or between an enqueue and its wait.
    assert set(trace.losses().items()) <= {("open", 1), ("unpaired", 1)}, trace.losses()


def test_sampled():
    """-s: one in so many of the chosen programs."""
    workload = standin("nrt", "--calls", 100, "--programs", 3)
    recorder = Recorder("-p", workload.pid, "--program", "neuron-0.1", "-s", 4)
    workload.go()
    results = workload.results()
    check_chosen(recorder.finish(), made_by(results), {"neuron-0.1"}, every=4)


def test_recorded():
    """What is made of a recording later leaves out the same."""
    workload = standin("nrt", "--calls", 90, "--programs", 3)
    path = os.path.join(scratch(), "trace.xpt")
    recorder = Recorder("-p", workload.pid, "--match", "[12]$", output=path)
    workload.go()
    results = workload.results()
    assert recorder.wait() == 0, recorder.stderr
    reported = run([XPUTRACE, "report", path, "-o", path + ".json"])
    assert reported.status == 0, reported.stderr
    trace = Trace(path + ".json")
    check_chosen(trace, made_by(results), {"neuron-0.1", "neuron-0.2"})
    assert trace.metadata["chosen"] == [{"match": "[12]$"}]


# ---- what is wrong ----

def test_not_seen():
    """Each choice that was of nothing is named, with the programs that there were; the others are recorded."""
    workload = standin("nrt", "--calls", 90, "--programs", 3)
    recorder = Recorder("-p", workload.pid, "--program", "neuron-0.0", "--program", "neuron", "--match", "^0[.]",
                        "--program", "0x12")
    workload.go()
    results = workload.results()
    trace = recorder.finish(1)
    check_chosen(trace, made_by(results), {"neuron-0.0"})
    said = [line for line in recorder.stderr.splitlines() if re.search("was (not )?seen", line)]
    assert len(said) == 3 and all(any(text in line for line in said) for text in ("neuron ", "0x12", "^0[.]")), said
    for name in ("neuron-0.0", "neuron-0.1", "neuron-0.2"):
        assert re.search(r"^  %s " % re.escape(name), recorder.stderr, re.M), recorder.stderr


@cases(("--match", "a("), ("--match", "a", "--match", "b"), ("--program", ""), ("--program", "0x0"),
       ("--program", "name="))
def test_usage(options):
    """Refused before anything is attached."""
    result = run([need(XPUTRACE, "collector"), "record", "-p", str(os.getpid()), *options])
    assert result.status == 2, "status %d:\n%s" % (result.status, result.stderr)
    assert result.stderr.strip() and "attached" not in result.stderr, result.stderr


# ---- launches inside ----

def described():
    """The toy runtime, whose programs have names."""
    load = {"symbol": "toy_load", "role": "program.load", "success": "nonzero",
            "fetch": {"program": "return", "name": "arg0:string"}}
    path = os.path.join(scratch(), "toy.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**DESCRIPTION, "calls": [load, *DESCRIPTION["calls"]]}, file)
    return path


@cases("standard", "detailed")
def test_launches_inside(level):
    """Of kernels that were not chosen: recorded in inferences of a program that was."""
    (result,), trace, _ = record_command(toy("2gr3gl", 400, 2), "--level", level, "-r", described(), "--match", "^2gr")
    assert len(trace.of("toy_run")) == 800
    counts = {one["name"]: (one["calls"], one["recorded"], one["left_out"]) for one in trace.programs(runtime="cuda")}
    assert counts == {"multiply": (2400, 2400, 0), "add_bias": (1600, 1600, 0)}, counts
    trace.check()
    assert not trace.losses() and bool(check_operators(trace, result["pid"])) == (level == "detailed")


def test_kernel():
    """A kernel that was chosen: its launches, and not the inferences that they are in."""
    _, trace, _ = record_command(toy("2gr3gl", 2000), "--ops", "-r", described(), "--program", "multiply")
    counts = {one["name"]: (one["calls"], one["recorded"]) for one in trace.programs()}
    assert counts["multiply"] == (6000, 6000) and counts["2gr3gl"] == (2000, 0), counts
    assert counts["add_bias"][0] == 4000 and counts["add_bias"][1] < 2000, counts
    assert len(trace.of("cuLaunchKernel")) == 6000 + counts["add_bias"][1]
    assert not spans(trace) and not spans(trace, "execute")


# ---- ONNX Runtime ----

def check_nodes(profile, operators, chosen):
    check_profile(profile, operators)
    assert {span.program for span in operators} == {chosen}


@paired(MANY_PROBES)
@cases(*RELEASES)
def test_onnx_operators(release):
    """Two models that are served at the same time: the operators of one, as its own profile has them."""
    models = model("mlp"), model("conv")
    for index, name in enumerate(models):
        prefix = os.path.join(scratch(), "profile")
        command = serve(*models, "--runs", RUNS, "--rate", 100, "--profile", prefix, release=release)
        (result,), trace, _ = record_command(command, "--ops", "--program", name)
        made = {one["model"]: one["runs"] for one in result["sessions"]}
        assert made == {one: RUNS for one in models}, made
        counts = {one["name"]: (one["calls"], one["recorded"]) for one in trace.programs(runtime="onnxruntime")}
        assert counts == {one: (RUNS, RUNS if one == name else 0) for one in models}, counts
        chosen, = [one["id"] for one in trace.programs() if one["name"] == name]
        check_nodes(profiles(prefix)[index], check_operators(trace, result["pid"]), chosen)


@paired(MANY_PROBES)
@cases("ort", "qnn-csv")
def test_onnx_formats(form):
    """Nothing of the other model is in them."""
    models, path = (model("mlp"), model("conv")), os.path.join(scratch(), "profile")
    prefix = path + "-own"
    command = serve(*models, "--runs", RUNS, "--rate", 100, "--profile", prefix)
    recorder = Recorder("--ops", "--format", form, "--program", models[1], "--", *command, wait=False, output=path)
    assert recorder.wait() == 0, recorder.stderr
    assert results_in(recorder.stdout)[0]["runs"] == 2 * RUNS
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if form == "ort":
        found = [event["name"] for event in json.loads(text) if event.get("cat") == "Node"]
        names = collections.Counter(name[:-len("_kernel_time")] for name in found)
    else:
        rows = [line.split(",") for line in text.splitlines()]
        assert sum("EXECUTE" in row for row in rows) == RUNS
        names = collections.Counter(row[-1] for row in rows if "NODE" in row)
    made = collections.Counter()
    for node, count in profile_counts(profiles(prefix)[1]).items():
        made[node.name] += count
    assert names == made, (names, made)


def other_model(path):
    """The same under another name."""
    other = os.path.join(scratch(), "other.onnx")
    for end in ("", ".json"):
        with open(path + end, "rb") as file, open(other + end, "wb") as copy:
            copy.write(file.read())
    return other


def pool_command(*options):
    """Two sessions of a model whose branches run on ONNX Runtime's own threads."""
    path = model("branches")
    other = other_model(path)
    words = [workload_path("onnx"), library(), path, "--other", other, "--sessions", 2, "--inter", 3, *options]
    return [str(word) for word in words], path, other


@alone(BUSY)
def test_onnx_pool_threads():
    """Sessions that run in turn: all operators of the one, on whatever thread, and none of the other.

    The second time another thread runs them; the last inference of the first one may be one that is left out."""
    command, path, other = pool_command("--runs", 100, "--recreate")
    for name in (path, other):
        (result,), trace, _ = record_command(command, "--wait-limit", "30s", "--ops", "--program", name)
        operators = check_operators(trace, result["pid"])
        runs = spans(trace, "execute", result["pid"])
        assert len(runs) == 100 and {call.program for call in trace.runs()} == {name}
        assert not [span for span in operators if span.unassigned]
        assert {span.program for span in operators} == {run.program for run in runs} and runs[0].tid != runs[-1].tid
        elsewhere = [span for span in operators if span.tid not in (runs[0].tid, runs[-1].tid)]
        assert len(elsewhere) > 100, "few of %d operators are on other threads: nothing is tested" % len(operators)
        # In the first one, what others execute when the place becomes known that operators are called from has no end.
        counts = collections.Counter(span.node for span in operators if span.start >= runs[1].start)
        assert set(counts.values()) == {99}, counts


@alone(BUSY)
def test_onnx_pool_threads_at_once():
    """Sessions that run at once: an operator elsewhere is of the chosen one only where that ran alone.

    What ran beside it tells a second recorder, which records everything."""
    command, path, _ = pool_command("--runs", AT_ONCE, "--threads", 2, "--wait-for-go", "--load-last")
    workload = Workload(command)
    everything = Recorder("-p", workload.pid, "--level", "basic")
    recorder = Recorder("-p", workload.pid, "--ops", "--program", path)
    workload.go()
    results = workload.results()
    trace, whole = recorder.finish(), everything.finish()
    operators = check_operators(trace, results[0]["pid"])
    made = made_by(results)
    assert {call.program for call in trace.runs()} == {path}
    assert len(trace.runs()) == made[path] == AT_ONCE, made
    own = {span.tid for span in spans(trace, "execute")}
    others = [span for span, call in zip(spans(whole, "execute"), sorted(whole.of("Run"), key=lambda one: one.start))
              if call.program != path]
    assert len(others) == AT_ONCE
    elsewhere = [span for span in operators if span.tid not in own]
    assert elsewhere, "nothing is tested"
    for span in elsewhere:
        assert not span.unassigned
        beside = [one for one in others if one.start < span.start - SLACK and span.end + SLACK < one.end]
        assert not beside, (span, beside)
