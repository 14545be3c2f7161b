# SPDX-License-Identifier: BSD-2-Clause
"""Processes whose large code objects are captured: calls wait, nothing is ever stopped."""

import contextlib
import ctypes
import os
import random
import signal
import subprocess

from codeobj_loads import KB, MB, Capture, Loads, Object, check_whole, elf, find, make, neff, noise, states
from harness import SLOW, XPUTRACE, Skip, cases, run, scratch, wait_until

LARGE = 20 * MB
SEED = 20269
PTRACE_DETACH, PTRACE_SEIZE = 17, 0x4206


def stopped_since(pid):
    """Whether the parent of a process, which the test is, can tell that it was stopped or continued since it asked."""
    return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG) is not None


def check_captured(capture, program, given):
    """All bytes of a load come, which nobody who watches the process can see."""
    line, = program.load("nrt_load", given, spoil="inside")
    captured = capture.stop()
    assert not stopped_since(program.pid), "the process was stopped or continued"
    return check_whole(captured, line, given)


def test_waits():
    """A call waits for a large load, which its parent cannot see; small ones come without."""
    small, large = make(neff, 4 * KB), make(neff, LARGE)
    program = Loads("nrt")
    capture = Capture("-p", program.pid)
    first, = program.load("nrt_load", small)
    second, = program.load("nrt_load", large)
    assert not stopped_since(program.pid)
    captured = capture.stop()
    assert not check_whole(captured, first, small).get("waited_ns")
    load = check_whole(captured, second, large)
    assert 0 < load["waited_ns"] <= second["end_ns"] - second["begin_ns"], (load, second)
    program.quit()


def test_no_wait():
    """--no-wait: of a large object is missing what did not fit; small ones are whole."""
    small, large = make(neff, 4 * KB), make(neff, LARGE)
    program = Loads("nrt")
    capture = Capture("-p", program.pid, "--no-wait")
    line, = program.load("nrt_load", small)
    other, = program.load("nrt_load", large, spoil="inside")
    captured = capture.stop()
    load = find(captured, other)
    one = captured.object_of(load)
    assert load["missing"] == one["size"] == large.size and "wait" in (load.get("error") or one["error"]), (load, one)
    assert "sha256" not in one and "file" not in one and not load.get("waited_ns"), (load, one)
    assert captured.index["incomplete"] == 1, captured.index
    check_whole(captured, line, small)
    program.quit()


def test_all_processes():
    """With --all-processes, too."""
    program = Loads("nrt")
    check_captured(Capture("-a"), program, make(neff, LARGE))
    program.quit()


def test_handles_continue():
    """A process that handles SIGCONT gets none."""
    program = Loads("nrt", options=["--handle-cont"])
    check_captured(Capture("-p", program.pid), program, make(neff, LARGE))
    assert program.continued == 0
    program.signal(signal.SIGCONT)
    wait_until(lambda: program.load("nrt_load", make(neff, KB)) and program.continued, "a SIGCONT is counted")
    program.quit()


def ptrace(request, pid, data=0):
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.restype = ctypes.c_long
    if library.ptrace(ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_void_p(0), ctypes.c_void_p(data)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def test_traced():
    """A debugger sees no stop that it did not make."""
    program = Loads("nrt")
    try:
        ptrace(PTRACE_SEIZE, program.pid)
    except OSError as error:
        raise Skip("no process can be traced here: %s" % error) from None
    check_captured(Capture("-p", program.pid), program, make(neff, LARGE))
    assert "t" not in states(program.pid) and "T" not in states(program.pid)
    program.signal(signal.SIGSTOP)  # what it would have seen
    wait_until(lambda: stopped_since(program.pid), "a stop is seen")
    ptrace(PTRACE_DETACH, program.pid)
    program.signal(signal.SIGCONT)
    program.quit()


def test_stopped_already():
    """A process that somebody has stopped stays so while a capture begins and ends."""
    program = Loads("nrt")
    program.signal(signal.SIGSTOP)
    wait_until(lambda: states(program.pid) == "T", "it is stopped")
    capture = Capture("-p", program.pid)
    assert states(program.pid) == "T"
    capture.stop()
    assert states(program.pid) == "T", "it was continued by others"
    capture = Capture("-p", program.pid)
    program.signal(signal.SIGCONT)
    given = make(neff, LARGE)
    line, = program.load("nrt_load", given)
    check_whole(capture.stop(), line, given)
    program.quit()


@cases("attaching", "loading", "loading with threads")
def test_killed(when):
    """kill -9 of the collector at random moments: the process finishes its loads each time, and never stops."""
    moments = random.Random(SEED)
    given = [make(neff, 8 * MB, seed) for seed in range(4)]
    program = Loads("nrt")
    for attempt in range(12):
        capture = Capture("-p", program.pid, wait=when != "attaching")
        threads = 4 if when.endswith("threads") else 1
        program.begin("nrt_load", *given[:threads], threads=threads, times=max(1, 24 // threads), unload="yes")
        with contextlib.suppress(subprocess.TimeoutExpired):
            capture.child.wait(moments.uniform(0.001, 0.3) * SLOW)
            raise AssertionError("it has ended by itself: " + capture.stderr)
        capture.kill()
        lines = program.finish()
        assert len(lines) == threads * max(1, 24 // threads) and not any(line["status"] for line in lines), attempt
        assert not stopped_since(program.pid), attempt
    capture = Capture("-p", program.pid)
    line, = program.load("nrt_load", given[0], spoil="inside")
    check_whole(capture.stop(), line, given[0])
    program.quit()


def test_process_ends():
    """The process is killed while it loads: the capture ends by itself, with what it has."""
    program = Loads("nrt")
    capture = Capture("-p", program.pid)
    program.begin("nrt_load", make(neff, 8 * MB), times=1000, unload="yes")
    program.signal(signal.SIGKILL)
    assert program.wait() == -signal.SIGKILL
    capture.finish().check()


def test_dead_process():
    """A PID that nobody has."""
    program = Loads("nrt")
    program.quit()
    capture = Capture("-p", program.pid, wait=False)
    assert capture.wait() == 1 and "no process" in capture.stderr.lower(), capture.stderr
    assert not os.path.exists(os.path.join(capture.output, "index.json"))


def test_wrong_size():
    """A size that no memory is behind: what is there is reported, the rest is missing, the process is not harmed."""
    lying = bytearray(neff(2 * MB, 1))
    lying[16:24] = (1 << 40).to_bytes(8, "little")
    header = bytearray(elf(64 * KB, 1))
    header[40:48] = (1 << 45).to_bytes(8, "little")
    program = Loads("nrt", "hip")
    capture = Capture("-p", program.pid)
    first, = program.load("nrt_load", Object(bytes(lying)), memory="end")
    second, = program.load("hipModuleLoadData", Object(bytes(header)), memory="end")
    third, = program.load("hipModuleLoadData", Object(noise(64 * KB, 1)), memory="end")
    captured = capture.stop()
    assert captured.object_of(find(captured, first))["size"] == 2 * MB  # nrt_load is given the size
    for line in (second, third):
        load = find(captured, line)
        assert load.get("error") or captured.object_of(load).get("error"), (load, captured.object_of(load))
    program.quit()


def test_object_limit():
    """Beyond --object-limit: the hash, no bytes; counted."""
    small, large = make(neff, MB - 1), make(neff, MB + 1)
    program = Loads("nrt")
    capture = Capture("-p", program.pid, "--object-limit", "1M")
    lines = program.load("nrt_load", small) + program.load("nrt_load", large)
    captured = capture.stop()
    program.quit()
    check_whole(captured, lines[0], small)
    check_over(captured, lines[1], large)
    assert captured.index["over_limit"] == 1


@cases("--process-limit", "--total-limit")
def test_other_limits(option):
    """Four objects where there is room for two: the others are counted, and have a hash if any."""
    given = [make(neff, MB, seed) for seed in range(4)]
    program = Loads("nrt")
    capture = Capture("-p", program.pid, option, "2M")
    lines = [line for one in given for line in program.load("nrt_load", one)]
    captured = capture.stop()
    program.quit()
    for one, line in zip(given[:2], lines):
        check_whole(captured, line, one)
    for one, line in zip(given[2:], lines[2:]):
        check_over(captured, line, one)
    assert captured.index["over_limit"] == 2 and len(captured.files()) == 2


def check_over(captured, line, given):
    one = captured.object_of(find(captured, line))
    assert "file" not in one and one.get("sha256", given.sha256) == given.sha256, one
    assert one["size"] == given.size, one


def test_command():
    """codeobj -- COMMAND: from its first load on, and its exit status is reported."""
    given = make(elf, 64 * KB)
    script = "printf 'hipModuleLoadData %s spoil=inside\\nquit\\n' | exec \"$0\" \"$@\""
    program = Loads("hip")  # where it is, and that it can be run
    words = list(program.arguments)
    program.quit()
    capture = Capture("--", "sh", "-c", script % given.path, *words, wait=False, start_new_session=True)
    captured = capture.finish()
    captured.check()
    load, = captured.loads("hipModuleLoadData")
    one = captured.object_of(load)
    assert one["sha256"] == given.sha256 and captured.path_of(load), (load, one)


def test_show():
    """codeobj show of the folder, and of an object: the same objects and hashes as the index."""
    given = make(elf, 64 * KB)
    program = Loads("hip")
    capture = Capture("-p", program.pid)
    line, = program.load("hipModuleLoadData", given)
    captured = capture.stop()
    program.quit()
    path = captured.path_of(find(captured, line))
    for each in (capture.output, path):
        shown = run([XPUTRACE, "codeobj", "show", each])
        assert shown.status == 0, shown.stderr
        assert given.sha256[:12] in shown.stdout and "hsaco" in shown.stdout, shown.stdout
    missing = run([XPUTRACE, "codeobj", "show", os.path.join(scratch(), "nothing")])
    assert missing.status == 1 and "No such file" in missing.stderr, missing.stderr
