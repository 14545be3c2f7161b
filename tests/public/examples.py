#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compiles the installed examples against the installed library and runs them on a stand-in: examples.py PREFIX.

Every docs/examples/NAME.c has to be run here.
"""

import csv
import pathlib
import re
import subprocess
import sys

import tests

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402 (found only now)

PREFIX = pathlib.Path(sys.argv[1])
EXAMPLES = PREFIX / "share" / "doc" / "xputrace" / "docs" / "examples"
PROGRAM = "neuron-0.0"


def pkg_config(*options):
    return subprocess.run(["pkg-config", *options, "xputrace"], stdout=subprocess.PIPE, check=True,
                          text=True).stdout.split()


def compiled(name):
    """Path of the program, built as docs/guide.md says and with every warning an error."""
    command = ["cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-o", name, str(EXAMPLES / (name + ".c"))]
    command += pkg_config("--cflags", "--libs") + ["-Wl,-rpath," + str(PREFIX / "lib")]
    result = subprocess.run(command, stderr=subprocess.PIPE, check=False, text=True)
    assert result.returncode == 0, result.stderr
    return "./" + name


def traced(name, *arguments):
    """Runs the program on a stand-in; what the stand-in did, what the program printed."""
    path = compiled(name)
    tests.need_root()
    workload = harness.standin("nrt", "--calls", 400, "--rate", 400)
    program = harness.Process([path, str(workload.pid)] + list(arguments))
    program.wait_line("stderr", "attached")
    workload.go()
    results = workload.results()
    status = program.wait()
    assert status == 0, "%s ended with %d: %s" % (name, status, program.stderr)
    made = {}
    for entry in harness.run_entries(results):
        made[entry["program"]] = made.get(entry["program"], 0) + entry["count"]
    return made, program.stdout


def profile():
    """A hundred samples of the program, each with its time."""
    made, output = traced("profile", PROGRAM)
    assert made[PROGRAM] >= 100, made
    rows = list(csv.reader(output.splitlines()))
    heading = next(row for row in rows if row and row[0] == "Sample")
    samples = rows[rows.index(heading) + 1:]
    assert len(samples) == 100, "%d rows" % len(samples)
    for row in samples:
        assert float(row[heading.index("totalRoundtripTime(Us)")]) > 0, row


def stream():
    """Every inference in one of the lines."""
    made, output = traced("stream")
    counted = {}
    for line in output.splitlines():
        name, count = re.match(r"(\S+): (\d+) inferences", line).groups()
        counted[name] = counted.get(name, 0) + int(count)
    assert counted == made, "made %s, printed %s" % (made, counted)


def session():
    """One session: the trace, both streams and the objects are of the same calls."""
    made, output = traced("session", "trace.json")
    streams = {"all": {}, "few": {}}
    samples = {"all": 0, "few": 0}
    for name, program, inferences, taken in re.findall(r"(all|few) (\S+): (\d+) inferences, (\d+) samples", output):
        streams[name][program] = streams[name].get(program, 0) + int(inferences)
        samples[name] += int(taken)
    assert streams["all"] == streams["few"] == made, "made %s, printed %s" % (made, streams)
    total = sum(made.values())
    assert samples["all"] == total and 0 < samples["few"] <= total / 16 + len(made), samples
    trace = harness.Trace("trace.json")
    assert trace.complete and len(trace.runs()) == total, "%d of %d" % (len(trace.runs()), total)
    objects = re.findall(r"object (\S+) neff ([0-9a-f]{64})", output)
    loads = [call for call in trace.calls if call.role == "program.load"]
    assert sorted(function for function, _ in objects) == sorted(call.function for call in loads), (objects, loads)


def explain():
    """A row a program of the recording, most time first; nothing of a file that is not there."""
    path = compiled("explain")
    done = harness.run([path, str(ROOT / "tests" / "e2e" / "kept" / "window.xpt")])
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert done.status == 0 and [(row["program"], row["recorded"]) for row in rows] == [
        ("neuron-0.0", "7"), ("neuron-0.1", "6")], done.stdout + done.stderr
    done = harness.run([path, "nowhere.xpt"])
    assert done.status == 1 and "nowhere.xpt" in done.stderr and not done.stdout, done.stderr


TESTS = {"explain": explain, "profile": profile, "session": session, "stream": stream}


def all_known():
    """No example is left out here, and all are installed."""
    examples = {path.stem for path in (ROOT / "docs" / "examples").glob("*.c")}
    installed = {path.stem for path in EXAMPLES.glob("*.c")}
    assert examples == installed == set(TESTS), "%s, installed %s" % (sorted(examples), sorted(installed))


sys.exit(1 if tests.run("examples", [("all_known", all_known)] + sorted(TESTS.items())) else 0)
