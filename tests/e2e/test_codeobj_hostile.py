# SPDX-License-Identifier: BSD-2-Clause
"""Targets, and others, that do to a capture what they can: nobody stays stopped, and the capture goes on."""

import json
import os
import shutil
import signal
import sys
import time

from codeobj_loads import KB, MB, LIBRARIES, Capture, Captured, Loads, check_whole, elf, find, make, neff, states
from harness import SLOW, TIMEOUT, Process, Skip, library_path, need, scratch, wait_until

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "codeobj_hostile.py")
STOP_LIMIT = 1.0  # seconds that a process may be stopped for a load


class Hostile(Process):
    """codeobj_hostile.py."""

    def __init__(self, *runtimes, **settings):
        paths = [library_path(LIBRARIES[runtime]) for runtime in runtimes]
        super().__init__([sys.executable, need(PROGRAM, "program"), *paths], start_new_session=True, **settings)
        self.wait_line("stdout", '"ready"')
        self.calls = 0

    def begin(self, line):
        self.calls += 1
        self.send(line + "\n")

    def call(self, line):
        self.begin(line)
        return json.loads(self.wait_line("stdout", '"result"', self.calls))["result"]


def seen_stopped(pid, seconds):
    """Whether it is stopped at any moment of that time, as soon as it is."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if "T" in states(pid):
            return True
    return False


def test_killed_while_held():
    """Targets are killed while they are held: the capture of another one goes on."""
    given = make(neff, 16 * MB)
    other = Loads("nrt")
    for _ in range(5):
        program = Loads("nrt")
        capture = Capture("-p", program.pid, "-p", other.pid)
        program.begin("nrt_load", given, times=50, spoil="no")
        assert seen_stopped(program.pid, 10 * SLOW), "it was never stopped"
        program.kill()
        line, = other.load("nrt_load", given)
        check_whole(capture.stop(), line, given)
        assert "T" not in states(other.pid)
    other.quit()


def test_many_held():
    """10 processes with 4 threads each at once: all bytes of all of them, and nobody stays stopped."""
    given = [make(neff, 2 * MB, seed) for seed in range(4)]
    programs = [Loads("nrt") for _ in range(10)]
    capture = Capture(*[word for program in programs for word in ("-p", program.pid)])
    capture.wait_line("stderr", "attached", 10)
    for program in programs:
        program.begin("nrt_load", *given, threads=4, times=2)
    made = [line for program in programs for line in program.finish()]
    for program in programs:
        assert "T" not in states(program.pid), program.pid
        program.quit()
    captured = capture.finish()
    captured.check()
    assert len(made) == 80 and len(captured.files()) == 4
    for line in made:
        check_whole(captured, line, given[line["file"]])


def test_stopped_while_held():
    """Somebody stops a process that is held for a moment: it stays stopped until that one continues it."""
    given, times = make(neff, 16 * MB), 20 if SLOW == 1 else 4
    stopped = 0
    for _ in range(6):
        program = Loads("nrt")
        capture = Capture("-p", program.pid)
        program.begin("nrt_load", given, times=times, spoil="no")
        assert seen_stopped(program.pid, 10 * SLOW), "it was never stopped"
        program.signal(signal.SIGSTOP)
        time.sleep(min(0.5 * SLOW, 2))  # for long after the collector has let it go
        stopped += states(program.pid) == "T"
        program.signal(signal.SIGCONT)
        assert len(program.finish()) == times
        capture.stop()
        program.quit()
    assert stopped >= 5, "in %d of 6 the stop was lost" % (6 - stopped)  # one may come while it is let go


def test_two_captures():
    """Two captures of one process at once: it goes on, and what either of them says to have is right."""
    given = make(neff, 8 * MB)
    program = Loads("nrt")
    captures = [Capture("-p", program.pid), Capture("-p", program.pid)]
    made = program.load("nrt_load", given, times=10)
    for capture in captures:
        captured = capture.stop()
        for line in made:
            load = find(captured, line)
            one = captured.object_of(load)
            assert one.get("sha256") == given.sha256 or (load.get("missing") and load.get("error")), (load, one)
    assert "T" not in states(program.pid)
    program.quit()


def test_lazy_memory():
    """Pages that only another thread of the stopped process can give: the capture would wait for it for ever."""
    program = Hostile("nrt")
    capture = Capture("-p", program.pid)
    begun = time.monotonic()
    result = program.call("nrt_load lazy:%d %d 0 -1 handle:" % (8 * MB, 8 * MB))
    if "userfaultfd" in str(result):
        raise Skip("no memory of that kind can be made here: %s" % result)
    assert time.monotonic() - begun < (STOP_LIMIT + 1) * SLOW, "it was stopped for too long"
    load, = capture.stop().loads("nrt_load")
    assert load["error"], load
    assert "T" not in states(program.pid)


def test_collector_stopped():
    """The collector is stopped itself while it copies: somebody else lets the process go."""
    given = make(neff, 400 * MB)
    program = Loads("nrt")
    capture = Capture("-p", program.pid)
    program.begin("nrt_load", given, spoil="no")
    assert seen_stopped(program.pid, 10 * SLOW)
    time.sleep(0.01 * SLOW)  # it has the record, and is at it
    capture.signal(signal.SIGSTOP)
    wait_until(lambda: "T" not in states(program.pid), "the process is let go", (STOP_LIMIT + 2) * SLOW)
    line, = program.finish()
    capture.signal(signal.SIGCONT)
    captured = capture.stop()
    load = find(captured, line)
    one = captured.object_of(load)
    assert one.get("sha256", given.sha256) == given.sha256, (load, one)
    program.quit()


def test_collector_stopped_before():
    """It is stopped when the load begins, and knows nothing of it: the process goes on all the same, and is not stopped
    again until the collector is back."""
    given = make(neff, 4 * MB)
    program = Loads("nrt")
    capture = Capture("-p", program.pid, "--stop-limit", "300ms")
    capture.signal(signal.SIGSTOP)
    wait_until(lambda: set(states(capture.pid)) == {"T"}, "the collector is stopped")
    program.begin("nrt_load", given, spoil="no")
    assert seen_stopped(program.pid, 10 * SLOW), "it was never stopped"
    wait_until(lambda: "T" not in states(program.pid), "the process is let go", 2 * SLOW)
    first, = program.finish()
    program.begin("nrt_load", given, times=20, spoil="no")
    later = program.finish()
    assert len(later) == 20
    capture.signal(signal.SIGCONT)
    wait_until(lambda: set(states(capture.pid)) != {"T"}, "the collector goes on")
    time.sleep(0.5 * min(SLOW, 5))
    last, = program.load("nrt_load", given)
    captured = capture.stop()
    for line in [first] + later:
        load = find(captured, line)
        assert load["error"] and load["missing"], "bytes that may be others by now: %s" % load
        assert bool(load.get("waited_ns")) == (line is first), load
    assert captured.object_of(find(captured, last))["sha256"] == given.sha256
    assert "T" not in states(program.pid)
    program.quit()


def test_arguments():
    """Addresses, sizes, paths and descriptors that are none: an entry each that says so; the program goes on."""
    folder = scratch()
    os.mkfifo(os.path.join(folder, "fifo"))
    paths = [folder + "/fifo", folder, "/proc/self/mem", "/proc/self/root/etc/passwd", "/proc/kmsg", "/dev/zero",
             "/dev/tty", "/" + "a" * 5000, "a/" * 2500, "", "%1b[31m%0a"]
    calls = ["hipModuleLoadData handle: " + address for address in
             ("0", "1", "0xffffffffffffffff", "0x7fffffffffff", "0xffff800000000000", "bytes:1", "bytes:63")]
    calls += ["nrt_load %s 0 -1 handle:" % words for words in
              ("0 0", "0 0x8000000000000000", "bytes:65536 0x8000000000000000", "bytes:65536 0xffffffffffffffff",
               "bytes:65536 65537", "bytes:1048576 2097152", "bytes:65536 0", "0xffffffffffff0000 0x20000")]
    calls += ["hipModuleLoad handle: text:" + path for path in paths]
    calls += ["hipModuleLoad handle: 0", "hipModuleLoad handle: 0xffffffffffffff00"]
    calls += ["hsa_code_object_reader_create_from_file %d handle:" % number for number in (-1, 0, 1 << 30, -1 << 31)]
    program = Hostile("nrt", "hip", "hsa")
    capture = Capture("-p", program.pid)
    for call in calls:
        program.call(call)
    assert "T" not in states(program.pid)
    begun = time.monotonic()
    captured = capture.stop()
    assert time.monotonic() - begun < TIMEOUT / 2, "something was waited for"
    loads = captured.loads()
    for function in {call.split()[0] for call in calls}:
        seen, made = len(captured.loads(function)), sum(call.split()[0] == function for call in calls)
        assert seen == made, "%d of %d calls of %s" % (seen, made, function)
    for load in loads:
        one = captured.object_of(load)
        if load["function"] == "hsa_code_object_reader_create_from_memory":
            continue  # HIP's own
        assert load.get("error") or one.get("error") or one["size"] in (0, 1, 63), (load, one)
        assert load.get("missing", 0) < 1 << 64
    assert program.child.poll() is None


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def resident(pid):
    with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) * KB for line in file if line.startswith("VmRSS"))


def test_many_loads():
    """10,000 loads of 100 objects: the same threads and descriptors as before, and a bounded memory."""
    given = [make(elf, 8 * KB, seed) for seed in range(100)]
    program = Loads("hip")
    capture = Capture("-p", program.pid)
    program.load("hipModuleLoadData", given[0], unload="yes")
    before = descriptors(capture.pid), len(states(capture.pid)), resident(capture.pid)
    for one in given:
        program.load("hipModuleLoadData", one, times=100, unload="yes")
    wait_until(lambda: descriptors(capture.pid) <= before[0], "descriptors are closed")
    assert len(states(capture.pid)) == before[1]
    # with the 256 MB that are kept ready for a large copy
    assert resident(capture.pid) < before[2] + 320 * MB, (resident(capture.pid), before)
    captured = capture.stop()
    hashes = {captured.object_of(load)["sha256"] for load in captured.loads("hipModuleLoadData")}
    assert hashes == {one.sha256 for one in given}
    assert len(captured.loads("hipModuleLoadData")) + captured.index["lost"] == 10001, captured.index["lost"]
    program.quit()


def test_folder_removed():
    """The folder is removed while it runs: an error and a failure at the end; the program is not harmed."""
    program = Loads("nrt")
    capture = Capture("-p", program.pid)
    program.load("nrt_load", make(neff, 4 * KB, 1))
    wait_until(lambda: [name for name in os.listdir(capture.output) if name.endswith(".neff")], "it is written")
    shutil.rmtree(capture.output)
    program.load("nrt_load", make(neff, 4 * MB, 2))
    capture.signal(signal.SIGINT)
    status = capture.wait()
    if status == 0:  # it was made again
        assert len(Captured(capture.output).files()) == 1, os.listdir(capture.output)
    else:
        assert capture.output in capture.stderr, capture.stderr
    assert "T" not in states(program.pid)
    program.quit()


def test_link_swapped_in():
    """A link where an object would come, and one in place of the folder: nothing is written where they lead."""
    given = make(neff, 4 * KB, 1)
    folder, victim = scratch(), os.path.join(scratch(), "victim")
    output = os.path.join(folder, "out")
    program = Loads("nrt")
    os.mkdir(output, 0o700)
    os.symlink(victim, os.path.join(output, given.sha256 + ".neff"))
    os.symlink(victim, os.path.join(output, "index.json"))
    capture = Capture("-p", program.pid, output=output)
    program.load("nrt_load", given)
    os.rename(output, output + ".away")
    os.symlink(os.path.dirname(victim), output)
    program.load("nrt_load", make(neff, 4 * KB, 2))
    capture.signal(signal.SIGINT)
    capture.wait()
    assert os.listdir(os.path.dirname(victim)) == [], "something was written where a link leads"
    program.quit()
