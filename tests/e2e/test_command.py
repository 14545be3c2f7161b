# SPDX-License-Identifier: BSD-2-Clause
"""record -- CMD: from the first instruction, nothing is missed."""

import os
import stat

from harness import (RUNS, SLOW, XPUTRACE, cases, compare, compare_calls, compare_programs, need, record_command, run,
                     results_in, scratch, workload_path, Trace)

RUNTIMES = ("nrt", "qaic", "vaccel", "hip", "cuda", "cudart", "pjrt", "llama")


@cases(*RUNTIMES)
def test_linked(runtime):
    """The library is one of the program's own: the first call comes right after main."""
    results, trace, _ = record_command([workload_path("linked-" + runtime), runtime, "--calls", "50"])
    compare(runtime, results, trace)


@cases(*RUNTIMES)
def test_late_dlopen(runtime):
    """The library is opened by dlopen and called at once: not one call is missed."""
    results, trace, _ = record_command([workload_path("workload"), runtime, "--dlopen", "--calls", "50"])
    compare(runtime, results, trace)


def test_late_dlopen_often():
    """The same many times, since it is a race that must not be lost once."""
    for _ in range(20 if SLOW == 1 else 5):
        results, trace, _ = record_command([workload_path("workload"), "cuda", "--dlopen", "--calls", "2"])
        compare("cuda", results, trace)


@cases("session", "multi", "perf")
def test_late_dlopen_link(link):
    """The same with every type of link."""
    results, trace, _ = record_command([workload_path("workload"), "nrt", "--dlopen", "--calls", "50"], "--link", link)
    compare("nrt", results, trace)


def test_holding_is_counted():
    """The times for which the program was held are in the trace."""
    _, trace, _ = record_command([workload_path("workload"), "nrt", "--dlopen", "--calls", "5"])
    held = [event for event in trace.events if event["ph"] == "b" and event["name"] == "waited"]
    assert held, "nothing was held: how could no call be missed?"


@cases("nrt", "hip")
def test_forked_children(runtime):
    """Children are traced from their first call, each with its own programs."""
    results, trace, _ = record_command([workload_path("workload"), runtime, "--fork", "3", "--calls", "40"])
    assert len(results) == 4
    compare(runtime, results, trace)
    assert {call.pid for call in trace.runs()} == {result["pid"] for result in results}


def test_children_that_dlopen():
    """Children that open the library themselves."""
    results, trace, _ = record_command([workload_path("workload"), "nrt", "--dlopen", "--fork", "3", "--calls", "40"])
    assert len(results) == 4
    compare("nrt", results, trace)


def test_exec():
    """A program that executes another one, under the same PID."""
    results, trace, _ = record_command([workload_path("workload"), "nrt", "--exec", "--calls", "40"])
    compare("nrt", results, trace)


def test_shell_pipeline():
    """Several programs below a shell."""
    command = "%s nrt --calls 20 | cat; %s qaic --calls 30 --dlopen & %s cuda --calls 10; wait" % (
        (workload_path("workload"),) * 3)
    results, trace, _ = record_command(["sh", "-c", command])
    assert {result["runtime"] for result in results} == {"nrt", "qaic", "cuda"}
    for result in results:
        compare_calls([result], trace)
        compare_programs([result], trace)
    trace.check()


def test_exit_status():
    """The recording's own status is returned, the program's is printed."""
    _, trace, recorder = record_command(["sh", "-c", "exit 7"])
    assert "7" in recorder.stderr + recorder.stdout
    assert trace.complete


def test_command_not_found():
    """A program that does not exist: a message, and status 1."""
    need(XPUTRACE, "collector")
    output = os.path.join(scratch(), "trace.json")
    result = run([XPUTRACE, "record", "-o", output, "--", "/no/such/program"])
    assert result.status == 1, result.status
    assert "/no/such/program" in result.stderr, result.stderr


def test_command_killed():
    """A program that crashes: the recording ends in order."""
    results, trace, recorder = record_command([workload_path("workload"), "nrt", "--calls", "20", "--crash"])
    compare("nrt", results, trace)
    exits = [event for event in trace.events if event["name"] == "exit"]
    assert any(event["args"].get("signal") == 11 for event in exits), exits


def test_static():
    """A runtime that is linked statically into a program without a dynamic loader, found by the symbol table."""
    results, trace, _ = record_command([workload_path("static-nrt"), "nrt", "--calls", "50"])
    compare("nrt", results, trace)


def test_default_output():
    """Without -o the trace has a name of its own in the working folder."""
    folder = scratch()
    result = run([need(XPUTRACE, "collector"), "record", "--", workload_path("linked-nrt"), "nrt", "--calls", "5"],
                 cwd=folder)
    assert result.status == 0, result.stderr
    files = os.listdir(folder)
    assert len(files) == 1, files
    trace = Trace(os.path.join(folder, files[0]))
    compare("nrt", results_in(result.stdout), trace)
    assert stat.S_ISREG(os.stat(trace.path).st_mode)


def test_output_to_pipe():
    """-o - writes the trace to standard output; nothing else goes there but what the program prints itself."""
    result = run([need(XPUTRACE, "collector"), "record", "-o", "-", "--", "sh", "-c",
                  "exec " + workload_path("linked-nrt") + " nrt --calls 5 >&2"])
    assert result.status == 0, result.stderr
    path = os.path.join(scratch(), "trace.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(result.stdout)
    trace = Trace(path)
    compare("nrt", results_in(result.stderr), trace)
    assert any(call.role in RUNS for call in trace.calls)
