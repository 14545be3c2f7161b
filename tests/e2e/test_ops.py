# SPDX-License-Identifier: BSD-2-Clause
"""record --ops: operators of ONNX Runtime's inferences, against its own profiler, which watches the same runs."""

import collections
import os
import time

from harness import (XPUTRACE, Recorder, Trace, Workload, alone, cases, compare_programs, record_command, results_in,
                     run, scratch, workload_path)
from onnx_models import MODELS, RELEASES, library, model, nodes, serve
from operator_checks import Node, check_counts, check_operators, check_profile, difference, parents, spans, traced_counts
from ort_profile import profiles

RUNS = 20
AT_ONCE = 400  # of each thread, without a pause
THREADS = 2
# Runs go on for 0.2 s, as names of nodes are read from the process, after what has executed them is seen.
PACE = ("--runs", RUNS, "--rate", 100)

PAIRED = "threads wait while many probes are placed, which others at the same time slow down"
BUSY = "its threads use all processors"


class Profiled:
    """A server that lets ONNX Runtime write its profile."""

    def __init__(self, name, *options, release=RELEASES[0], sizes=None, pace=PACE):
        self.prefix = os.path.join(scratch(), "profile")
        self.model = model(name, **(sizes or {}))
        self.command = serve(self.model, *pace, *options, "--profile", self.prefix, release=release)

    def traced(self, *options):
        """Traced from its start: it is held when operators are called from a place for the first time, so none is missed."""
        (result,), trace, _ = record_command(self.command, *options)
        return result, trace

    def profiles(self):
        return profiles(self.prefix)


def check_sessions(server, result, trace):
    """Each session is a program with its own operators, in the order in which they were made."""
    operators = check_operators(trace, result["pid"])
    assert not [span for span in operators if span.unassigned], operators
    assert len(trace.of("Run")) == result["runs"]
    programs = sorted({span.program for span in operators})
    found = server.profiles()
    assert len(programs) == len(found), (programs, len(found))
    for program, profile in zip(programs, found):
        check_profile(profile, [span for span in operators if span.program == program])
    return operators


@cases(*MODELS)
def test_models(name):
    """Each kind of model: the same nodes as often, each in its time, and all sums."""
    server = Profiled(name)
    check_sessions(server, *server.traced("--ops"))


@cases(*["%s/%s" % (release, name) for release in RELEASES[1:] for name in ("mlp", "control", "branches")])
def test_releases(case):
    """Earlier releases, traced from their start: the program has the model's name."""
    release, name = case.split("/")
    server = Profiled(name, release=release)
    result, trace = server.traced("--ops")
    check_sessions(server, result, trace)
    assert {call.program for call in trace.of("Run")} == {server.model}


@alone("measures time")
def test_durations():
    """Where operators take long, they take as long in all as the profiler says, without the wait for the probes behind
    them, and with what the probes have cost."""
    server = Profiled("mlp", sizes={"hidden": 1024, "batch": 128}, pace=("--runs", RUNS))
    result, trace = server.traced("--ops")
    operators = check_operators(trace, result["pid"])
    profile, = server.profiles()
    target = trace.metadata["tracing"]["target"]
    traced = sum(span.duration for span in operators)
    profiled = sum(node.duration for node in profile.nodes.values()) * 1000
    spent = len(operators) * target["cost_ns"] / target["calls"]
    first = spans(trace, "execute", result["pid"])[0].start / 1000
    waited = sum(event["ts"] * (1000 if event["ph"] == "e" else -1000) for event in trace.events
                 if event["name"] == "waited" and event["ts"] > first)
    assert traced > 100 * spent, "too short to be compared"
    assert abs(profiled - waited - traced) <= 0.1 * profiled + spent, \
        "the profiler says %d us, the trace %d us, and %d us of waiting" % (profiled / 1000, traced / 1000, waited / 1000)


def test_nested():
    """Operators of nested graphs lie inside those that run the graphs."""
    server = Profiled("control", "--level", "disabled")
    result, trace = server.traced("--ops")
    operators = check_sessions(server, result, trace)
    made = {name: count * RUNS for (name, _), count in nodes(server.model).items() if count}
    assert collections.Counter(span.label for span in operators) == made
    around = collections.defaultdict(set)
    for span, parent in parents(operators):
        around[span.label].add(parent.label if parent else None)
    inner = {"scaled": "chosen", "rest": "looped", "even": "looped", "going_on": "looped", "next_state": "looped",
             "stepped": "next_state", "even_state": "next_state", "odd_state": "next_state", "next_total": "scanned",
             "seen": "scanned"}
    wanted = {name: {None} for name in made}
    wanted.update({name + "_node": {outer + "_node"} for name, outer in inner.items()})
    assert around == wanted, (around, wanted)


def test_threads():
    """Threads that share the work of one operator are no operators."""
    server = Profiled("mlp", "--intra", 4, sizes={"hidden": 1024, "batch": 16})
    operators = check_sessions(server, *server.traced("--ops"))
    assert len({span.tid for span in operators}) == 1


def test_parallel():
    """Threads of ONNX Runtime's own run the branches: all belong to the one inference.

    In the first one, what the others execute when the place becomes known that operators are called from may have no end."""
    server = Profiled("branches", "--mode", "parallel", "--inter", 3)
    result, trace = server.traced("--ops")
    operators = check_operators(trace, result["pid"])
    second = spans(trace, "execute", result["pid"])[1]
    assert not [span for span in operators if span.unassigned]
    operators = [span for span in operators if span.start >= second.start]
    profile, = server.profiles()
    for node in profile.nodes.values():
        node.events = node.events[1:]
    check_profile(profile, operators)
    assert len({span.tid for span in operators}) > 1
    assert not {span.tid for span in operators} & {call.tid for call in trace.of("Run")}


def test_sessions():
    """Two sessions of a model: two programs with operators of the same names."""
    server = Profiled("mlp", "--sessions", 2)
    operators = check_sessions(server, *server.traced("--ops"))
    first, second = sorted({span.program for span in operators})
    counts = [traced_counts(span for span in operators if span.program == program) for program in (first, second)]
    assert counts[0] == counts[1] and set(counts[0].values()) == {RUNS}


def test_recreated():
    """Sessions released and made again: what lies at the same addresses are operators of other programs."""
    server = Profiled("mlp", "--recreate")
    result, trace = server.traced("--ops")
    check_sessions(server, result, trace)
    assert len(trace.metadata["operators"]) == 2 * 9, trace.metadata["operators"]


# ---- several inferences at once ----

def check_at_once(*options):
    """Two threads that run at once. Of every operator as many executions as its session has runs."""
    words = [workload_path("onnx"), library(), model("branches"), "--threads", THREADS, "--runs", AT_ONCE]
    results, trace, _ = record_command([str(word) for word in words + list(options)], "--ops")
    compare_programs(results, trace, False)
    operators = check_operators(trace, results[0]["pid"])
    runs = collections.Counter(call.handle for call in trace.of("Run"))
    counts = collections.Counter((span.object, span.node) for span in operators)
    made = collections.Counter({Node(node.name, node.operator, node.index, node.provider): len(runs)
                                for node in optimised("branches")})
    traced = collections.Counter(node for _, node in counts)
    assert made == traced, difference(made, traced)
    # What other threads execute before the process is held, to learn from where operators are called, may have no end.
    since = max(round(event["ts"] * 1000) for event in trace.events if event["name"] == "waited" and event["ph"] == "e")
    after = sum(run.start >= since for run in spans(trace, "execute")) / len(runs)
    counts = collections.Counter(span.object for span in operators if span.start >= since)
    assert after > AT_ONCE / 2 and all(abs(count - after) <= THREADS for count in counts.values()), (after, counts)
    return operators


def optimised(name):
    """The nodes that ONNX Runtime makes of a model."""
    server = Profiled(name, pace=("--runs", 1))
    assert run(server.command).status == 0
    profile, = server.profiles()
    return profile.nodes.values()


@alone(BUSY)
@cases(1, 2)
def test_at_once(sessions):
    """On two threads at once: every operator belongs to the inference of its thread."""
    operators = check_at_once("--sessions", sessions)
    assert not [span for span in operators if span.unassigned]


@alone(BUSY)
@cases(1, 2)
def test_at_once_in_parallel(sessions):
    """Neither of the inferences that run at once gets operators of which it is not known that they are its own."""
    operators = check_at_once("--sessions", sessions, "--inter", 3)
    assert [span for span in operators if span.unassigned]


# ---- ways of recording ----

def operators_of_runs(trace, pid):
    """For each recorded inference its operators. At the edges of a recording there may be others, which have none."""
    trace.check()
    operators = spans(trace, pid=pid)
    return [[span for span in operators if span.inside(one)] for one in spans(trace, "execute", pid)]


@alone("compares with what runs at a rate")
def test_attached_while_it_runs():
    """In the middle of a load: inferences have all their operators, but where the recording begins or ends in one.

    At the begin, operators have no end until the place is known that they are called from: some ms."""
    server = Workload(serve(model("mlp"), "--seconds", 0, "--rate", 200))
    recorder = Recorder("-p", server.pid, "--ops")
    time.sleep(0.5)
    trace = recorder.stop()
    server.stop()
    found = operators_of_runs(trace, server.inside_pid)
    first = next(index for index, operators in enumerate(found) if operators)
    assert first < 20, [len(one) for one in found]
    assert len(found) > 40 and {len(operators) for operators in found[first + 1:-1]} == {9}, [len(one) for one in found]
    assert len({span.node for operators in found for span in operators}) == 9
    assert None not in {span.node.name for operators in found for span in operators}


def test_sampled():
    """Every fourth inference, with all its operators."""
    server = Profiled("mlp", pace=("--runs", 42, "--rate", 100))
    result, trace = server.traced("--ops", "-s", 4)
    operators = check_operators(trace, result["pid"])
    program, = trace.programs(runtime="onnxruntime")
    recorded = len(trace.of("Run"))
    assert program["calls"] == 42 and program["recorded"] == recorded and recorded in (10, 11), program
    profile, = server.profiles()
    for node in profile.nodes.values():
        node.events = node.events[:recorded]
    check_counts(profile, operators)


@cases("basic", "standard")
def test_levels(level):
    """Without operators; basic has the loads and the inferences only."""
    server = Profiled("mlp")
    result, trace = server.traced("--level", level)
    trace.check()
    assert not trace.metadata["operators"] and not spans(trace)
    assert len(trace.of("Run")) == result["runs"]
    roles = {call.role for call in trace.calls}
    assert {"program.load", "execute"} <= roles and (level != "basic" or roles <= {
        "program.load", "program.unload", "program.name", "execute"}), roles


def test_recorded():
    """What a recording is reported as later has the same operators."""
    server = Profiled("control")
    output = os.path.join(scratch(), "trace.xpt")
    recorder = Recorder("--ops", "--", *server.command, wait=False, output=output)
    assert recorder.wait() == 0, recorder.stderr
    result, = results_in(recorder.stdout)
    reported = run([XPUTRACE, "report", output, "-o", output + ".json"])
    assert reported.status == 0, reported.stderr
    check_sessions(server, result, Trace(output + ".json"))


def test_all_processes():
    """A process that starts after xputrace: from some run on all operators, with their names."""
    server = Profiled("mlp", pace=("--runs", 200, "--rate", 100))
    recorder = Recorder("-a", "--ops", "--only", "onnxruntime")
    result, = Workload(server.command).results()
    found = operators_of_runs(recorder.stop(), result["pid"])
    found = found[next(index for index, operators in enumerate(found) if operators) + 1:]
    assert len(found) > 30, "%d of 200 runs: nothing is tested" % len(found)
    profile, = server.profiles()
    for node in profile.nodes.values():
        node.events = node.events[-len(found):]
    check_profile(profile, [span for operators in found for span in operators])


@cases(*RELEASES)
def test_exception(release):
    """An operator that throws: the run fails with ONNX Runtime's own error, as it does untraced."""
    command = serve(model("failing"), "--wait", "--runs", 3, release=release)
    said = []
    for options in ((), ("--ops",)):
        server = Workload(command)
        recorder = Recorder("-p", server.pid, *options)
        server.go()
        said.append((server.wait(), [line for line in server.stderr.splitlines() if line.startswith("Error: ")]))
        recorder.finish()
    assert said[0][0] == 1 and len(said[0][1]) == 1 and "Reshape node" in said[0][1][0], said
    assert said[0] == said[1], said
