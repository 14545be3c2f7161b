# SPDX-License-Identifier: BSD-2-Clause
"""Processes whose large code objects are captured: held for a moment, or not at all; never left stopped."""

import contextlib
import ctypes
import os
import random
import signal
import subprocess
import time

from codeobj_loads import KB, MB, Capture, Captured, Loads, Object, check_whole, elf, find, make, neff, noise, states
from harness import SLOW, XPUTRACE, Skip, cases, run, scratch, wait_until

LARGE = 20 * MB
SEED = 20269
PTRACE_DETACH, PTRACE_SEIZE = 17, 0x4206


def stopped_since(pid):
    """Whether the parent of a process, which the test is, can tell that it was stopped or continued since it asked."""
    return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG) is not None


def check_untouched(capture, program, given, reason):
    """A load that would need a stop, in a process that must not be stopped: what is missing is marked, and why."""
    line, = program.load("nrt_load", given, spoil="inside")
    captured = capture.stop()
    load = find(captured, line)
    one = captured.object_of(load)
    assert line["status"] == 0 and not load.get("waited_ns"), load
    if load.get("missing"):
        assert load["missing"] <= given.size and "sha256" not in one and "file" not in one, (load, one)
        error = load.get("error") or one.get("error", "")
        assert any(word in error for word in reason), (load, one)
        assert captured.index["incomplete"] == 1, captured.index
    else:  # the kernel had room for all of it
        assert one["sha256"] == given.sha256
    return load


def test_held():
    """The process is stopped for a large load, which its parent can see, and goes on; small ones come without."""
    small, large = make(neff, 4 * KB), make(neff, LARGE)
    program = Loads("nrt")
    capture = Capture("-p", program.pid)
    first, = program.load("nrt_load", small)
    assert not stopped_since(program.pid), "stopped for 4 KB"
    second, = program.load("nrt_load", large)
    assert stopped_since(program.pid), "it was not stopped: other tests here prove nothing"
    captured = capture.stop()
    assert not check_whole(captured, first, small).get("waited_ns")
    assert check_whole(captured, second, large)["waited_ns"] > 0
    assert "T" not in states(program.pid)
    program.quit()


def test_no_stop():
    """--no-stop: nobody sees a stop; of a large object is missing what did not fit; small ones are whole."""
    small, large = make(neff, 4 * KB), make(neff, LARGE)
    program = Loads("nrt")
    capture = Capture("-p", program.pid, "--no-stop")
    line, = program.load("nrt_load", small)
    load = check_untouched(capture, program, large, ("stop",))
    assert load.get("missing"), "20 MB came without a stop: the other tests here prove nothing"
    assert not stopped_since(program.pid)
    check_whole(Captured(capture.output), line, small)
    program.quit()


def test_handles_continue():
    """A process that handles SIGCONT never gets one."""
    program = Loads("nrt", options=["--handle-cont"])
    check_untouched(Capture("-p", program.pid), program, make(neff, LARGE), ("SIGCONT", "handles"))
    assert not stopped_since(program.pid) and program.continued == 0
    program.signal(signal.SIGCONT)
    wait_until(lambda: program.load("nrt_load", make(neff, KB)) and program.continued, "a SIGCONT is counted")
    program.quit()


def ptrace(request, pid, data=0):
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.restype = ctypes.c_long
    if library.ptrace(ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_void_p(0), ctypes.c_void_p(data)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def test_traced():
    """One that a debugger has is left to that: it sees no stop that it did not make."""
    program = Loads("nrt")
    try:
        ptrace(PTRACE_SEIZE, program.pid)
    except OSError as error:
        raise Skip("no process can be traced here: %s" % error) from None
    check_untouched(Capture("-p", program.pid), program, make(neff, LARGE), ("debugger", "traced"))
    assert not stopped_since(program.pid), "the debugger was told of a stop"
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
    """kill -9 of the collector at random moments: the process finishes its loads each time, and is not stopped."""
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
        wait_until(lambda: "T" not in states(program.pid), "it runs after attempt %d" % attempt)
    time.sleep(1.5 * SLOW)  # the guard of the last one lets the process go for a second
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
    """A size that no memory is behind: what is there is told, the rest is missing, the process is not harmed."""
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
    assert captured.object_of(find(captured, first))["size"] == 2 * MB  # nrt_load is told the size
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
    """codeobj -- COMMAND: from its first load on, and its exit status is told."""
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
