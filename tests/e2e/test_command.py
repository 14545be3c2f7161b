# SPDX-License-Identifier: BSD-2-Clause
"""record -- CMD: from the first instruction, nothing is missed."""

import os
import signal
import stat

from harness import (RUNS, SLOW, XPUTRACE, Recorder, cases, compare, compare_calls, compare_programs, need, process_state,
                     record_command, results_in, run, scratch, wait_until, workload_path, Trace)

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


def shell_status(words, command):
    """$? of a shell that has nothing but PATH in its environment, after xputrace record -- command."""
    line = "%s record -q -o %s %s -- %s; echo status $?" % (
        need(XPUTRACE, "collector"), os.path.join(scratch(), "trace.json"), words, command)
    result = run(["env", "-i", "PATH=" + os.environ["PATH"], "bash", "-c", line])
    return int(result.stdout.rpartition("status ")[2]), result.stderr


@cases("sh -c 'exit 7' = 7", "sh -c 'exit 0' = 0", "sh -c 'kill -9 $$' = 137", "/no/such/program = 127", "no_such_program = 127",
       "/etc/passwd = 126", "--exit-status=own sh -c 'exit 7' = 0", "--exit-status=own sh -c 'kill -9 $$' = 0",
       "--exit-status=own /no/such/program = 1", "-d=200ms sleep 2 = 0", "--program=nobody true = 125",
       "--exit-status=own --program=nobody true = 1", "--output=/no/such/folder/x true = 125", "--runtime=/no/file true = 125")
def test_exit_status(text):
    """As of env(1): the command's own, 128 + N, 125 to 127; whether it was recorded, if that is asked for."""
    words, _, expected = text.rpartition(" = ")
    options = []
    while words.startswith("-"):
        option, _, words = words.partition(" ")
        options.append(option.replace("-d=", "-d "))
    status, messages = shell_status(" ".join(options), words)
    assert status == int(expected), (status, messages)
    assert status < 125 or status > 127 or "error: " in messages, messages


def test_exit_status_without_environment():
    """No variable at all, not even PATH; the trace is complete and how the command ended is printed."""
    output = os.path.join(scratch(), "trace.json")
    result = run(["env", "-i", need(XPUTRACE, "collector"), "record", "-o", output, "--", "sh", "-c", "exit 7"])
    assert result.status == 7 and "sh ended with status 7" in result.stderr, (result.status, result.stderr)
    assert "warning: no program was run" in result.stderr, result.stderr
    assert Trace(output).complete


@cases("command", "own")
def test_exit_status_of_one_that_left_others(kind):
    """The recording is stopped when the command has ended, but not what it has begun: its status is known, however late."""
    recorder = Recorder("--exit-status", kind, "--", "sh", "-c", "sleep 1000 & echo $$ $!; exit 7", wait=False)
    shell, sleeper = (int(word) for word in recorder.wait_line("stdout", " ").split())
    wait_until(lambda: process_state(shell) in ("Z", ""), "the command has ended")
    recorder.signal(signal.SIGINT)
    os.waitid(os.P_PID, recorder.pid, os.WEXITED | os.WNOWAIT)
    os.kill(sleeper, signal.SIGKILL)  # it has the pipes of the command
    assert recorder.wait() == 0, recorder.stderr  # it was stopped before its targets had ended
    assert "sh ended with status 7" in recorder.stderr, recorder.stderr


def test_command_killed():
    """A program that crashes: the recording ends in order."""
    results, trace, _ = record_command([workload_path("workload"), "nrt", "--calls", "20", "--crash"],
                                       status=128 + signal.SIGSEGV)
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
