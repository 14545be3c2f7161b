# SPDX-License-Identifier: BSD-2-Clause
"""What ONNX Runtime's own profiler says of the models that operators are compared with, against how they were made."""

import os

from harness import cases, results_in, run, scratch
from onnx_models import MODELS, RELEASES, model, nodes, serve
from ort_profile import profiles

RUNS = 20


def profiled(*names, options=(), release=RELEASES[0]):
    """What the workload, which runs all models at the same time, prints of its sessions, and their profiles."""
    prefix = os.path.join(scratch(), "profile")
    process = run(serve(*map(model, names), "--runs", RUNS, "--profile", prefix, *options, release=release))
    assert process.status == 0, process.stderr
    result, = results_in(process.stdout)
    found = profiles(prefix)
    assert len(found) == len(result["sessions"]), (len(found), result)
    return list(zip(result["sessions"], found))


def check_runs(session, profile):
    """As many as were made, and none longer than the application has measured around it."""
    assert len(profile.runs) == session["runs"] == RUNS, session
    took = sum(event.duration for event in profile.runs)
    assert took <= session["runs"] * (session["mean_us"] + 1), (took, session)


@cases(*RELEASES)
def test_as_made(release):
    """Not optimised: exactly the nodes that were written, nested ones as often as their graphs run."""
    for name, (session, profile) in zip(MODELS, profiled(*MODELS, options=("--level", "disabled"), release=release)):
        check_runs(session, profile)
        made = {node: RUNS * times for node, times in nodes(model(name)).items() if times}
        assert profile.counts() == made, (name, set(made.items()) ^ set(profile.counts().items()))


@cases(*RELEASES)
def test_optimised(release):
    """As it runs by default: whole runs of every node, nine of mlp, and those of one thread lie in their run."""
    for name, (session, profile) in zip(MODELS, profiled(*MODELS, release=release)):
        check_runs(session, profile)
        assert profile.nodes and all(node.count % RUNS == 0 for node in profile.nodes.values()), profile.counts()
        assert name != "mlp" or len(profile.nodes) == 9, profile.counts()
        for node in profile.nodes.values():
            assert all(any(begun.start <= event.start and event.start + event.duration <= begun.start + begun.duration
                           for begun in profile.runs) for event in node.events), (name, node.name)


@cases(*RELEASES)
def test_parallel(release):
    """Threads of ONNX Runtime's own run the branches."""
    (session, profile), = profiled("branches", options=("--mode", "parallel", "--inter", 3), release=release)
    check_runs(session, profile)
    assert len({event.tid for node in profile.nodes.values() for event in node.events}) > 1
    assert {node.count for node in profile.nodes.values()} == {RUNS}, profile.counts()


@cases(*RELEASES)
def test_sessions(release):
    """Two sessions of a model, released and made again: a profile of each."""
    found = profiled("small", options=("--sessions", 2, "--recreate"), release=release)
    assert len(found) == 4
    for session, profile in found:
        check_runs(session, profile)
        assert all(node.count == RUNS for node in profile.nodes.values())
