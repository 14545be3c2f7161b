# SPDX-License-Identifier: BSD-2-Clause
"""What `xputrace codeobj` says on the way and at its end, and with which status it ends."""

import _ctypes
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

from codeobj_loads import KB, MB, Capture, Loads, make, neff
from harness import NOBODY, SLOW, XPUTRACE, Process, Skip, cases, library_path, need, run, scratch, wait_until


def codeobj(*words, status=0, **options):
    result = run([need(XPUTRACE, "collector"), "codeobj", *[str(word) for word in words]], **options)
    assert result.status == status, "ended with %d instead of %d: %s" % (result.status, status, result.stderr)
    return result


def ended_pid():
    with subprocess.Popen(["true"]) as process:
        process.wait()
        return process.pid


@cases("no target", "two targets", "mode", "folder", "limit", "duration of a snapshot", "snapshot of a command")
def test_usage(what):
    """Wrong usage is status 2, with a line that says what is wanted, and nothing is made."""
    words, message = {
        "no target": ([], "say what to trace"),
        "two targets": (["-a", "-p", os.getpid()], "one of: -p PID"),
        "mode": (["-p", os.getpid(), "--mode", "x"], "expected symbols, memory or all"),
        "folder": (["-p", os.getpid(), "-o", ""], "--output-dir '': must not be empty"),
        "limit": (["-p", os.getpid(), "--object-limit", "big"], "expected a size such as 64M or 2G"),
        "duration of a snapshot": (["-p", os.getpid(), "--snapshot", "-d", "1s"], "--snapshot is for running processes"),
        "snapshot of a command": (["--snapshot", "--", "true"], "--snapshot is for running processes"),
    }[what]
    output = os.path.join(scratch(), "objects")
    result = codeobj(*([] if "-o" in words else ["-o", output]), *words, status=2)
    assert message in result.stderr and not result.stdout, result.stderr
    assert not os.path.exists(output)


@cases("dead", "no command", "no root", "file", "foreign", "above")
def test_failed(what):
    """What cannot be done is status 1, and the message says why; no table is printed."""
    if what == "no root" and os.geteuid():
        raise Skip("it is not root already")
    options = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if what == "no root" else {}
    place = scratch()
    output, file = os.path.join(place, "objects"), os.path.join(place, "file")
    with open(file, "w", encoding="ascii"):
        pass
    index = os.path.join(place, "index.json")
    with open(index, "w", encoding="ascii") as other:
        other.write("[]")
    dead = ended_pid()
    words, message = {
        "dead": (["-o", output, "-p", dead], "there is no process %d" % dead),
        "no command": (["-o", output, "--", "/nonexistent"], "cannot run /nonexistent: No such file"),
        "no root": (["--mode", "symbols", "-p", os.getpid()], "tracing needs root: start it with sudo"),
        "file": (["-o", file, "-p", os.getpid(), "--snapshot"], "is not a directory"),
        "foreign": (["-o", place, "-p", os.getpid(), "--snapshot"], "index.json of something else: name another"),
        "above": (["-o", os.path.join(place, "a", "b"), "-p", os.getpid(), "--snapshot"], "create it first"),
    }[what]
    result = codeobj(*words, status=1, **options)
    assert "xputrace: error: " in result.stderr and message in result.stderr, result.stderr
    assert not result.stdout, result.stdout
    with open(index, encoding="ascii") as other:
        assert other.read() == "[]"


def test_nothing():
    """A process without a runtime: a folder with an empty index, no header of a table, and what to do instead."""
    sleeper, output = Process(["sleep", "60"]), os.path.join(scratch(), "objects")
    for words, message in ((["--snapshot"], "without --snapshot"), (["-d", "100ms"], "no code objects were loaded")):
        result = codeobj("-o", output, "-p", sleeper.pid, *words)
        assert result.stdout == "0 objects, 0 loads\n" and message in result.stderr, (result.stdout, result.stderr)
        assert "uses no described runtime yet" in result.stderr, result.stderr
        assert "index.json and 0 objects of 0 bytes" in result.stderr, result.stderr
    quiet = codeobj("-q", "-o", output, "-p", sleeper.pid, "-d", "100ms")
    assert not quiet.stdout and "wrote" not in quiet.stderr and "recording" not in quiet.stderr, quiet.stderr
    symbols = codeobj("--mode", "symbols", "-p", sleeper.pid, "--snapshot")
    assert "wrote" not in symbols.stderr, symbols.stderr
    sleeper.signal(9)


def test_summary():
    """It says that it records, and in the end how many calls waited for it and what it wrote."""
    small, large = make(neff, 4 * KB), make(neff, 20 * MB)
    program = Loads("nrt")
    capture = Capture("-p", program.pid)
    capture.wait_line("stderr", "recording loads of code objects (Ctrl-C to stop)")
    program.load("nrt_load", small, times=3)
    program.load("nrt_load", large)
    begun = time.monotonic()
    captured = capture.stop()
    assert time.monotonic() - begun < 10 * SLOW
    program.quit()
    waited = [load["waited_ns"] / 1e6 for load in captured.loads() if load.get("waited_ns")]
    count, everything, longest = re.search(r"(\d+) calls waited: ([\d.]+) ms in all, ([\d.]+) ms at longest",
                                           capture.stderr).groups()
    assert int(count) == len(waited) >= 1, capture.stderr
    assert abs(float(everything) - sum(waited)) < 0.1 and abs(float(longest) - max(waited)) < 0.1, capture.stderr
    written = "wrote %s: index.json and 2 objects of %d bytes" % (capture.output, small.size + large.size)
    assert written in capture.stderr, capture.stderr
    assert "xputrace codeobj show " + capture.output in capture.stderr, capture.stderr
    lines = capture.stdout.splitlines()
    assert [line.split()[1] for line in lines[1:] if "memory://" in line] == ["3", "1"], capture.stdout
    assert lines[-1].startswith("2 objects, 4 loads"), lines


def test_json():
    """--json prints what the index has, and messages do not come between."""
    program = Loads("nrt")
    capture = Capture("-p", program.pid, "--json")
    program.load("nrt_load", make(neff, 4 * KB))
    captured = capture.stop()
    program.quit()
    printed = json.loads(capture.stdout)
    assert (printed["objects"], printed["loads"]) == (captured.index["objects"], captured.index["loads"])


def test_limit():
    """What is not kept for a limit is counted, with the options that set it."""
    program = Loads("nrt")
    capture = Capture("-p", program.pid, "--object-limit", "64k")
    program.load("nrt_load", make(neff, 100 * KB))
    capture.stop()
    program.quit()
    assert "1 not kept for a limit" in capture.stdout and "see --object-limit" in capture.stderr, capture.stderr


def test_libraries():
    """With a command the program's own libraries are counted; --libraries prints them; the index has them in any case."""
    program = Loads("nrt")
    words = list(program.arguments)
    program.quit()
    given = make(neff, 4 * KB)
    for options in ([], ["--libraries"]):
        capture = Capture(*options, "--", "sh", "-c", "echo nrt_load %s | exec \"$0\" \"$@\"" % given.path, *words,
                          output=os.path.join(scratch(), "objects"), wait=False, start_new_session=True)
        captured = capture.finish()
        table = capture.stdout[capture.stdout.index("LOADED(S)"):]
        assert any("libnrt" in load["uri"] for load in captured.index["loads"]), captured.index["loads"]
        assert ("libnrt" in table) == bool(options), table
        assert ("--libraries prints them" in table) != bool(options), table
        assert given.sha256[:12] in table, table
        assert "sh ended with status 0" in capture.stderr, capture.stderr
    shown = codeobj("show", capture.output)
    assert "libnrt" not in shown.stdout and "libnrt" in codeobj("show", capture.output, "--libraries").stdout


LOADER = """
import ctypes, sys
for line in sys.stdin:
    for path in line.split():
        ctypes.CDLL(path)
    print("loaded", flush=True)
"""


def test_descriptors():
    """A library that was loaded keeps no descriptor open in the collector, though its load is reported at the end."""
    library = os.path.join(scratch(), "library-%d.so")
    for number in range(100):
        shutil.copy(_ctypes.__file__, library % number)
        with open(library % number, "ab") as file:
            file.write(b"%d" % number)  # another object
    program = Process([sys.executable, "-c", LOADER])
    program.send(library_path("libnrt.so.1") + "\n")
    program.wait_line("stdout", "loaded")
    capture = Capture("-p", program.pid)
    program.send(" ".join(library % number for number in range(100)) + "\n")
    wait_until(lambda: len(os.listdir(capture.output)) >= 100, "all libraries are kept")
    folder, held = "/proc/%d/fd" % capture.pid, []
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            held.append(os.readlink(os.path.join(folder, name)))
    held = [path for path in held if "/library-" in path]
    captured = capture.stop()
    program.kill()
    assert sum("/library-" in load["uri"] for load in captured.index["loads"]) == 100, captured.index["loads"]
    assert not held, "%d are open: %s" % (len(held), held[:3])


def test_full():
    """A disk that is full is status 1: the table comes, the message says which file could not be written."""
    place = os.path.join(scratch(), "full")
    os.mkdir(place)
    mounted = run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", place])
    if mounted.status:
        raise Skip("no file system can be mounted here")
    try:
        program = Loads("nrt")
        capture = Capture("-p", program.pid, output=os.path.join(place, "objects"))
        program.load("nrt_load", make(neff, MB))
        capture.signal(2)
        status = capture.wait()
        program.quit()
        assert status == 1 and "No space left on device" in capture.stderr, (status, capture.stderr)
        assert "1 objects, 1 loads" in capture.stdout and "wrote" not in capture.stderr, capture.stdout
    finally:
        run(["umount", place])
