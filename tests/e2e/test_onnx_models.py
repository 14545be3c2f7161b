# SPDX-License-Identifier: BSD-2-Clause
"""What ONNX Runtime's own profiler says of the models that operators are compared with, against how they were made."""

import os

from harness import cases, results_in, run, scratch
from onnx_models import MODELS, RELEASES, model, nodes, serve
from ort_profile import profiles

RUNS = 20


def profiled(name, *options, release=RELEASES[0]):
    """The result that the workload prints and the profiles of its sessions."""
    prefix = os.path.join(scratch(), "profile")
    process = run(serve(model(name), "--runs", RUNS, "--profile", prefix, *options, release=release))
    assert process.status == 0, process.stderr
    result, = results_in(process.stdout)
    return result, profiles(prefix)


def check_runs(result, found):
    """As many as were made, and none longer than the application has measured around it."""
    assert sum(len(profile.runs) for profile in found) == result["runs"]
    took = sum(event.duration for profile in found for event in profile.runs)
    assert took <= result["runs"] * (result["mean_us"] + 1), (took, result)


@cases(*RELEASES)
def test_as_made(release):
    """Not optimised: exactly the nodes that were written, nested ones as often as their graphs run."""
    for name in MODELS:
        result, (profile,) = profiled(name, "--level", "disabled", release=release)
        check_runs(result, [profile])
        made = {node: RUNS * times for node, times in nodes(model(name)).items() if times}
        assert profile.counts() == made, (name, set(made.items()) ^ set(profile.counts().items()))


@cases(*RELEASES)
def test_optimised(release):
    """As it runs by default: whole runs of every node, nine of mlp, and those of one thread lie in their run."""
    for name in MODELS:
        result, (profile,) = profiled(name, release=release)
        check_runs(result, [profile])
        assert profile.nodes and all(node.count % RUNS == 0 for node in profile.nodes.values()), profile.counts()
        assert name != "mlp" or len(profile.nodes) == 9, profile.counts()
        for node in profile.nodes.values():
            assert all(any(begun.start <= event.start and event.start + event.duration <= begun.start + begun.duration
                           for begun in profile.runs) for event in node.events), (name, node.name)


@cases(*RELEASES)
def test_parallel(release):
    """Threads of ONNX Runtime's own run the branches."""
    result, (profile,) = profiled("branches", "--mode", "parallel", "--inter", 3, release=release)
    check_runs(result, [profile])
    assert len({event.tid for node in profile.nodes.values() for event in node.events}) > 1
    assert {node.count for node in profile.nodes.values()} == {RUNS}, profile.counts()


@cases(*RELEASES)
def test_sessions(release):
    """Two sessions of a model, released and made again: a profile of each."""
    result, found = profiled("small", "--sessions", 2, "--recreate", release=release)
    check_runs(result, found)
    assert [len(profile.runs) for profile in found] == [RUNS] * 4
    assert all(node.count == RUNS for profile in found for node in profile.nodes.values())
