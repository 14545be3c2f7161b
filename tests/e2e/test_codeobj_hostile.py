# SPDX-License-Identifier: BSD-2-Clause
"""Targets, and others, that do to a capture what they can: nothing is stopped, and the capture goes on."""

import json
import os
import shutil
import signal
import sys
import time

import hung_file_system
from codeobj_loads import KB, MB, LIBRARIES, WAIT_LIMIT, Capture, Captured, Loads, check_whole, elf, find, make, neff, states
from harm import helpers
from harness import SLOW, TIMEOUT, Process, Skip, cases, library_path, need, paired, scratch, wait_until

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "codeobj_hostile.py")


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


def test_killed_while_waiting():
    """Targets are killed while their calls wait: the capture of another one goes on."""
    given = make(neff, 16 * MB)
    other = Loads("nrt")
    for attempt in range(5):
        program = Loads("nrt")
        capture = Capture("-p", program.pid, "-p", other.pid)
        program.begin("nrt_load", given, times=50, spoil="no")
        time.sleep((0.05 + 0.002 * attempt) * SLOW)
        begun = time.monotonic()
        program.kill()
        assert time.monotonic() - begun < 0.5 * SLOW, "a killed thread waits until its deadline"
        line, = other.load("nrt_load", given)
        check_whole(capture.stop(), line, given)
    other.quit()


def test_many_wait():
    """10 processes with 4 threads each at once: all bytes of all of them."""
    given = [make(neff, 2 * MB, seed) for seed in range(4)]
    programs = [Loads("nrt") for _ in range(10)]
    capture = Capture(*[word for program in programs for word in ("-p", program.pid)], "--code-wait-limit", "10s")
    capture.wait_line("stderr", "attached", 10)
    for program in programs:
        program.begin("nrt_load", *given, threads=4, times=2)
    made = [line for program in programs for line in program.finish()]
    for program in programs:
        program.quit()
    captured = capture.finish()
    captured.check()
    assert len(made) == 80 and len(captured.files()) == 4
    for line in made:
        check_whole(captured, line, given[line["file"]])


def test_stopped_while_waiting():
    """Somebody stops a process while its calls wait: it stays stopped until that one continues it."""
    given, times = make(neff, 16 * MB), 20 if SLOW == 1 else 4
    for attempt in range(6):
        program = Loads("nrt")
        capture = Capture("-p", program.pid)
        program.begin("nrt_load", given, times=times, spoil="no")
        time.sleep((0.02 + 0.003 * attempt) * SLOW)
        program.signal(signal.SIGSTOP)
        time.sleep(min(0.5 * SLOW, 2))
        assert set(states(program.pid)) == {"T"}, "the stop was lost"
        program.signal(signal.SIGCONT)
        assert len(program.finish()) == times
        capture.stop()
        program.quit()


def test_two_captures():
    """Two captures of one process at once: it goes on, and what either of them says to have is right."""
    given = make(neff, 8 * MB)
    program = Loads("nrt")
    captures = [Capture("-p", program.pid), Capture("-p", program.pid)]
    made = program.load("nrt_load", given, times=10)
    for capture in captures:
        captured = capture.stop()
        for line in made:
            check_whole(captured, line, given)
    program.quit()


def test_lazy_memory():
    """Pages that another thread of the process gives when they are first read, and slowly."""
    program = Hostile("nrt")
    capture = Capture("-p", program.pid)
    begun = time.monotonic()
    result = program.call("nrt_load lazy:%d %d 0 -1 handle:" % (8 * MB, 8 * MB))
    if "userfaultfd" in str(result):
        raise Skip("no memory of that kind can be made here: %s" % result)
    assert time.monotonic() - begun < 2 * SLOW, "it has waited for too long"
    capture.stop().loads("nrt_load")


def test_collector_stopped():
    """The collector is stopped while it copies: the call goes on at its deadline."""
    given = make(neff, 400 * MB)
    program = Loads("nrt")
    capture = Capture("-p", program.pid)
    program.begin("nrt_load", given, spoil="no")
    time.sleep(0.01 * SLOW)  # it has the record, and is at it
    capture.signal(signal.SIGSTOP)
    line, = program.finish()
    assert line["end_ns"] - line["begin_ns"] < (WAIT_LIMIT + SLOW) * 1e9, line
    capture.signal(signal.SIGCONT)
    captured = capture.stop()
    load = find(captured, line)
    one = captured.object_of(load)
    assert one.get("sha256", given.sha256) == given.sha256, (load, one)
    program.quit()


def test_collector_stopped_before():
    """It is stopped when loads begin: they go on at their deadline, and after three in a row no call waits any more."""
    given, limit = make(neff, 4 * MB), 0.3
    program = Loads("nrt")
    capture = Capture("-p", program.pid, "--code-wait-limit", "300ms")
    capture.signal(signal.SIGSTOP)
    wait_until(lambda: set(states(capture.pid)) == {"T"}, "the collector is stopped")
    made = [line for _ in range(6) for line in program.load("nrt_load", given, spoil="no")]
    took = [(line["end_ns"] - line["begin_ns"]) / 1e9 for line in made]
    assert min(took[:3]) > limit * 0.9 and max(took[3:]) < limit / 2 * SLOW, took
    capture.signal(signal.SIGCONT)
    captured = capture.stop()
    for line in made:
        load = find(captured, line)
        assert load["error"] and load["missing"] and not load.get("waited_ns"), "bytes that may be others by now: %s" % load
    assert "does not wait any more" in capture.stderr, capture.stderr
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


# ---- file systems that hang ----

LOOKUP, OPEN, READ = hung_file_system.LOOKUP, hung_file_system.OPEN, hung_file_system.READ
OPENS = "hsa_code_object_reader_create_from_file open:%s handle:"
TOUCHES = OPENS.replace("open:", "touch:")
HANGS = {
    "lookup": ([], LOOKUP, "hipModuleLoad handle: text:%s"),
    "open": ([], OPEN, "hipModuleLoad handle: text:%s"),
    "read": ([], READ, "hipModuleLoad handle: text:%s"),
    "descriptor": ([], READ, OPENS),
    # its begin is there; as much as the kernel's side does not copy itself
    "memory": ([TOUCHES], READ, "nrt_load mapped:%%s %d 0 -1 handle:" % MB),
}


def interrupt(capture):
    """Seconds from Ctrl-C to its end."""
    begun = time.monotonic()
    capture.signal(signal.SIGINT)
    capture.wait()
    return time.monotonic() - begun


@paired("calls wait as long as they do by default")
@cases(*HANGS)
def test_file_system_hangs(what):
    """Files and memory on a file system that never answers: others are captured, and the capture ends in time."""
    before, operation, call = HANGS[what]
    given, other = make(neff, 8 * KB, 1), make(neff, 4 * MB, 2)
    with hung_file_system.HungFileSystem() as system:
        # No object that is found in a mapping: the capture would read all of it before it hangs.
        with open(make(neff if before else elf, MB, 3).path, "rb") as file:
            path = system.add("code.hsaco", file.read())
        hostile, program = Hostile("nrt", "hip", "hsa"), Loads("nrt")
        for line in before:  # with all that the file system is asked for once
            hostile.call(line % path)
        capture = Capture("-p", hostile.pid, "-p", program.pid)
        capture.wait_line("stderr", "attached", 2)
        lines = program.load("nrt_load", given)
        system.hang(operation)
        for _ in range(3):
            hostile.begin(call % path)
            lines += program.load("nrt_load", other)
        wait_until(lambda: operation in system.asked, "the file system is asked")
        lasted = interrupt(capture)
        system.end()
        captured = capture.finish()
        captured.check()
        hostile.kill()
        program.quit()
    assert lasted < 10 * SLOW, "it has taken %.1f s" % lasted
    for line, one in zip(lines, (given, other, other, other)):
        check_whole(captured, line, one)
    warnings = [line for line in capture.stderr.splitlines() if "process %d: " % hostile.pid in line]
    assert 1 <= len(warnings) == len(set(warnings)) <= 2 and all("answer" in line for line in warnings), capture.stderr
    loads = captured.loads(function=call.split()[0], pid=hostile.pid)  # a stand-in makes others of its own inside
    for load in loads:
        one = captured.object_of(load)
        assert one["id"].startswith("incomplete-") and (load.get("error") or one.get("error")), (load, one)
    assert loads, "none of the loads has been seen"


PAGES = {"nrt_load": "nrt_load far:%%s %d 0 -1 handle:" % (8 * KB), "hipModuleLoad": "hipModuleLoad handle: far:%s"}


@cases("nrt_load below 0", "nrt_load below 1", "nrt_load below 2", "hipModuleLoad below 0", "hipModuleLoad below 1")
def test_pages_never_come(where):
    """What the kernel's side reads itself lies on pages that never come, also below other file systems (overlayfs): it does not fault
    them in, as no probe of the machine could be removed while it waits for them."""
    given, (function, layers) = make(neff, 8 * KB, 1), where.split(" below ")
    with hung_file_system.HungFileSystem() as system, hung_file_system.below(int(layers), system.path) as folder:
        system.add("pages", bytes(2 * MB))
        path = os.path.join(folder, "pages")
        hostile, program = Hostile("nrt", "hip", "hsa"), Loads("nrt")
        hostile.call(TOUCHES % path)
        capture = Capture("-p", hostile.pid, "-p", program.pid)
        capture.wait_line("stderr", "attached", 2)
        system.hang(READ)
        hostile.call(PAGES[function] % path)
        lines = program.load("nrt_load", given)
        asked = list(system.asked)
        lasted = interrupt(capture)
        system.end()
        captured = capture.finish()
        captured.check()
        hostile.kill()
        program.quit()
    assert READ not in asked, "pages were faulted in"
    assert lasted < 10 * SLOW, "it has taken %.1f s" % lasted
    check_whole(captured, lines[0], given)
    loads = captured.loads(function=function, pid=hostile.pid)
    assert loads, "the load has not been seen"
    for load in loads:
        assert captured.object_of(load)["id"].startswith("incomplete-"), load


MAPS = """import mmap, sys
with open(sys.argv[1], 'rb') as file:
    kept = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
print('ready', flush=True)
sys.stdin.read()
"""


@cases("open", "read")
def test_mapped_file_hangs(what):
    """A library that was mapped before, on a file system that never answers when it is searched for code objects."""
    given, operation = make(neff, 4 * MB, 2), {"open": OPEN, "read": READ}[what]
    with hung_file_system.HungFileSystem() as system:
        with open(library_path("libnrt.so.1"), "rb") as file:
            path = system.add("libnrt.so.1", file.read())
        holder, program = Process([sys.executable, "-c", MAPS, path], start_new_session=True), Loads("nrt")
        holder.wait_line("stdout", "ready")
        system.hang(operation)
        begun = time.monotonic()
        capture = Capture("-p", holder.pid, "-p", program.pid, wait=False)
        capture.wait_line("stderr", "attached", 2)
        line, = program.load("nrt_load", given)
        capture.signal(signal.SIGINT)
        capture.wait()
        lasted = time.monotonic() - begun
        system.end()
        captured = capture.finish()
        holder.kill()
        program.quit()
    assert operation in system.asked, "nobody has asked it for anything"
    assert lasted < 15 * SLOW, "it has taken %.1f s" % lasted
    assert "its file system does not answer" in capture.stderr, capture.stderr
    check_whole(captured, line, given)


def test_kernel_in_file_that_hangs():
    """The handle of a launched kernel lies in a file that never answers: others are captured, and the capture ends in time."""
    given = make(neff, 4 * MB, 2)
    with hung_file_system.HungFileSystem() as system:
        path = system.add("kernels.so", bytes(65536))
        hostile, program = Hostile("nrt", "hip", "hsa"), Loads("nrt")
        hostile.call(TOUCHES % path)
        capture = Capture("-p", hostile.pid, "-p", program.pid)
        capture.wait_line("stderr", "attached", 2)
        system.hang(OPEN, READ)
        hostile.begin("hipLaunchKernel mapped:%s 1 1 1 1 0 0 0" % path)
        line, = program.load("nrt_load", given)
        lasted = interrupt(capture)
        system.end()
        captured = capture.finish()
        hostile.kill()
        program.quit()
    assert lasted < 10 * SLOW, "it has taken %.1f s" % lasted
    check_whole(captured, line, given)


def test_who_copies():
    """What is given in memory is copied by a process that can do nothing but read memory; when it ends, the next copy finds another."""
    program, given = Loads("nrt"), [make(neff, size, seed) for seed, size in enumerate((4 * MB, 20 * MB, 4 * MB))]
    before = {status["Pid"] for status in helpers("xputrace-memory")}
    capture = Capture("-p", program.pid)
    first, = program.load("nrt_load", given[0])
    mine = [status for status in helpers("xputrace-memory") if status["Pid"] not in before]
    for status in mine:
        os.kill(int(status["Pid"]), signal.SIGKILL)
    lost, = program.load("nrt_load", given[1])
    last, = program.load("nrt_load", given[2])
    captured = capture.stop()
    program.quit()
    assert mine, "nobody has copied anything"
    for status in mine:
        user, = set(status["Uid"].split())
        assert int(user) and status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
        assert int(status["CapPrm"], 16) & ~(1 << 19) == 0, status  # sys_ptrace
    check_whole(captured, first, given[0])
    assert find(captured, lost), lost
    check_whole(captured, last, given[2])
