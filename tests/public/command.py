#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Wrong usage of the installed command: reported before anything is attached, without root: command.py PREFIX."""

import pathlib
import subprocess
import sys

import tests

COMMAND = str(pathlib.Path(sys.argv[1]) / "bin" / "xputrace")
TARGET = ["-p", "1"]
PROFILE = ["profile"] + TARGET + ["--program", "x"]
STREAM = ["stream"] + TARGET


def run(arguments):
    return subprocess.run([COMMAND] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True,
                          errors="replace")


def refused(arguments, *words):
    """Exit status 2, nothing on standard output, and a message with the words."""
    result = run(arguments)
    line = " ".join(arguments)
    assert result.returncode == 2, "%s: status %d: %s" % (line, result.returncode, result.stderr)
    assert not result.stdout, "%s: %s" % (line, result.stdout)
    for word in words:
        assert word in result.stderr, "%s: \"%s\" is not in: %s" % (line, word, result.stderr)
    return result.stderr


def targets():
    """Exactly one of -p, -a and a command."""
    for command in (["profile", "--program", "x"], ["stream"]):
        refused(command, "say what to trace")
        refused(command + ["-a"] + TARGET, "say what to trace")
        refused(command + TARGET + ["--", "true"], "say what to trace")
        refused(command + ["-p", "x"], "--pid")
        refused(command + TARGET + ["--no-such-option"], "--no-such-option")


def profile():
    """Options of profile that are out of range or contradict each other."""
    refused(["profile"] + TARGET, "--program")
    for samples in ("0", "-1", "x", "", "1000000001", "99999999999999999999"):
        refused(PROFILE + ["--samples", samples], "--samples", "1 to 1000000000")
    for program in ("", "0x0", "0x12345678901234567", "name="):
        refused(["profile"] + TARGET + ["--program", program], "--program")
    refused(PROFILE + ["--program", "y"], "--program", "stream")
    refused(PROFILE + ["--type", "chrome"], "expected latency, trace or perfetto")
    refused(PROFILE + ["--type", "trace", "--summary"], "--summary")
    refused(PROFILE + ["--skip", "-1"], "--skip")
    refused(PROFILE + ["--delay", "soon"], "--delay")
    refused(PROFILE + ["-d", "0"], "--duration")
    refused(PROFILE + ["-o", ""], "--output")


def stream():
    """Options of stream that are out of range or contradict each other."""
    for rate in ("9ms", "0", "25h", "x", "-500ms"):
        refused(STREAM + ["--report-every", rate], "--report-every", "10ms to 24h")
    for rate in ("0", "1000001", "half"):
        refused(STREAM + ["--sample-every", rate], "--sample-every", "1 to 1000000")
    refused(STREAM + ["--type", "stats"], "expected latency, trace or perfetto")
    refused(STREAM + ["--type", "trace", "--summary"], "--summary")
    refused(STREAM + ["--rotate", "1M", "-o", "x.csv"], "--rotate", "--append")
    refused(STREAM + ["--rotate", "1M", "--append"], "--rotate", "-o FILE")
    refused(STREAM + ["--rotate", "0", "--append", "-o", "x.csv"], "--rotate")
    refused(STREAM + ["--keep", "3"], "--keep", "-o FILE")
    refused(STREAM + ["--keep", "3", "--append", "-o", "x.csv"], "--keep", "--rotate")
    refused(STREAM + ["--keep", "0", "-o", "x.csv"], "--keep")
    refused(STREAM + ["--match", "a", "--match", "b"], "--match")


def expression():
    """An expression that is wrong is shown with a mark below the place."""
    for text, places in (("bert(x", (4, 5, 6)), ("[z-a]", (1, 2, 3, 4)), ("abc)", (3, 4)), ("a**", (2, 3))):
        lines = refused(STREAM + ["--match", text], "--match: ").splitlines()
        assert len(lines) == 3, lines
        assert lines[1] == "  " + text, lines
        assert lines[2].strip() == "^" and len(lines[2]) - 3 in places, lines


def hostile_expression():
    """Nothing in it reaches the terminal as a command, and the mark stands where it should."""
    lines = refused(STREAM + ["--match", "\x1bc\u00e9\t("], "--match: ").splitlines()
    assert "\x1b" not in "".join(lines) and "\t" not in "".join(lines), lines
    assert lines[2].index("^") in (len(lines[1]) - 1, len(lines[1])), lines


def helps():
    """--help of each, and its name in that of the command."""
    for command in ("profile", "stream"):
        result = run([command, "--help"])
        assert result.returncode == 0 and "exit status:" in result.stdout, result
        assert command in run(["--help"]).stdout


CASES = (targets, profile, stream, expression, hostile_expression, helps)
sys.exit(1 if tests.run("command", [(case.__name__, case) for case in CASES]) else 0)
