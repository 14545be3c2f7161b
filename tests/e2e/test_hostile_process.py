# SPDX-License-Identifier: BSD-2-Clause
"""A process of an unprivileged user that wants the collector to harm others, and a victim that checks itself."""

import collections
import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import time

import code_files
import hung_file_system
from codeobj_loads import KB, LIBRARIES, MB, Capture, Loads, Object, check_whole, elf, find, make
from harm import LONG, Target, helpers, program
from harness import (NOBODY, SLOW, XPUTRACE, Process, Recorder, Skip, Trace, Workload, alone, cases, compare_calls, library_path, need, paired, run,
                     scratch, wait_until, workload_path)

ALL = "traces every process, and so places probes in the victims of others"
PATIENCE = "files are given up after 2 s in all, and 3 s are allowed"
CODE_HOSTILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "codeobj_hostile.py")
EXECUTE = 55  # slot of a table that the collector is interested in


def programs(folder):
    """A copy of its own for each test: what is probed in a file is probed in all who map it."""
    for name in ("table", "plugin.so"):
        shutil.copy(need(workload_path("hostile/" + name), "workload"), folder)
    return os.path.join(folder, "table")


@contextlib.contextmanager
def attacker(*words, user=NOBODY):
    """A program of nobody's, or another user's, that runs meanwhile."""
    if os.geteuid():
        raise Skip("only root can start programs of others")
    child = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             user=user, group=user, extra_groups=[])
    try:
        assert child.stdout.readline().startswith("ready"), "it has not begun"
        yield child
        assert child.poll() is None, "the attacker has ended with %s" % child.returncode
    finally:
        child.kill()
        child.communicate()


class Victim(Process):
    def __init__(self, program):
        super().__init__([program, "victim"])
        self.wait_line("stdout", "ready")

    def outcome(self):
        self.child.stdin.close()
        assert self.wait() == 0, self.stderr
        return json.loads(self.stdout.splitlines()[-1])


BREAKPOINT = 4 if os.uname().machine == "aarch64" else 1  # bytes


def check_unharmed(outcome, probes=()):
    probes = [probe + byte for probe in probes for byte in range(BREAKPOINT)]
    assert outcome["calls"] > 1000 and outcome["wrong"] == 0, outcome
    assert set(outcome["changed"]) <= set(probes), outcome


@alone(ALL)
@cases(1, 3, 5)
def test_address_inside_an_instruction(offset):
    """--all-processes: what a process has written into its table is a probe for nobody, and not inside an instruction."""
    folder = scratch()
    program = programs(folder)
    victim = Victim(program)
    with attacker(program, "attacker", EXECUTE, offset):
        recorder = Recorder("--all-processes", "-d", "%gs" % (1 * SLOW))
        recorder.finish()
    # Its own table is read in its own memory, and leads to the begins of functions.
    check_unharmed(victim.outcome(), (0, 4))


@alone(ALL)
def test_table_of_one_process_alone():
    """The table is read in one process: another one that maps the file has no probe."""
    folder = scratch()
    program = programs(folder)
    victim = Victim(program)
    with attacker(program, "attacker", EXECUTE, 0) as target:
        recorder = Recorder("-p", target.pid, "-d", "%gs" % (1 * SLOW))
        trace = recorder.finish()
        assert not trace.calls
    check_unharmed(victim.outcome())


@alone(ALL)
def test_file_is_changed_while_it_is_traced():
    """A file that is changed in place, which its owner may do: later looks at it do not use what was found before."""
    folder = scratch()
    program = programs(folder)
    victim = Victim(program)
    recorder = Recorder("--all-processes")
    with open(os.path.join(folder, "plugin.so"), "r+b") as file:  # the same bytes
        first = file.read(1)
        file.seek(0)
        file.write(first)
    second = Victim(program)
    time.sleep(0.3 * SLOW)
    outcomes = victim.outcome(), second.outcome()
    recorder.stop()
    for outcome in outcomes:
        check_unharmed(outcome, (0, 4))


def test_lease():
    """A write lease on a mapped file, which makes who opens it wait for up to 45 s, taken when the file was known already."""
    name = "holder"
    program, library = (os.path.join(scratch(), file) for file in (name, "libnrt.so.1"))
    os.symlink(os.path.realpath("/usr/bin/python3"), program)  # that nobody, too, may execute
    shutil.copy(workload_path("lib/libnrt.so.1"), library)
    os.chown(library, NOBODY, NOBODY)
    script = ("import fcntl, mmap, os, signal, sys\n"
              "signal.signal(signal.SIGIO, signal.SIG_IGN)\n"
              "file = os.open(%r, os.O_RDWR)\n"
              "if len(sys.argv) > 1: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
              "mapped = mmap.mmap(file, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)\n"
              "print('ready', flush=True)\n"
              "sys.stdin.read()\n" % library)
    with attacker(program, "-c", script):
        recorder = Recorder("--process", name)
    with attacker(program, "-c", script, "lease"):
        time.sleep(0.5 * SLOW)
        begun = time.monotonic()
        recorder.signal(signal.SIGINT)
        recorder.wait()
        lasted = time.monotonic() - begun
    assert lasted < 5 * SLOW, "it has taken %.1f s" % lasted
    assert "another process holds a lease on it" in recorder.stderr, recorder.stderr


def has_no_rights(status):
    user, = set(status["Uid"].split())
    return int(user) not in (0, NOBODY) and status["Groups"] in ("", user) and \
        not any(int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")) and \
        status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"


def test_reader_of_roots_files():
    """The process that reads what only root may change has no rights either; when it ends, libraries that come later are read."""
    workload = Workload([workload_path("workload"), "nrt", "--wait-for-go", "--dlopen", "--calls", 200, "--rate", 200])
    recorder = Recorder("-p", workload.pid)
    wait_until(lambda: any(map(has_no_rights, helpers("xputrace-files"))), "a process without rights")
    wait_until(lambda: all(map(has_no_rights, helpers("xputrace-files"))), "none with rights")
    for status in helpers("xputrace-files"):
        os.kill(int(status["Pid"]), signal.SIGKILL)
    workload.go()
    workload.results()
    trace = recorder.finish()
    assert trace.of("nrt_unload"), "the library was not read"
    assert "has ended" not in recorder.stderr, recorder.stderr


def capabilities(pid):
    with open("/proc/%s/status" % pid, encoding="ascii", errors="replace") as file:
        return {name: int(value, 16) for name, _, value in (line.partition(":\t") for line in file) if name.startswith("Cap")}


@cases("record", "profile --program none", "stream --match .", "inspect -o {}", "continuous start",
       "codeobj -o {}", "list programs -d 20s")
def test_capabilities(command):
    """The collector keeps those that `xputrace check` names; a command that it runs has what it would have without."""
    output = os.path.join(scratch(), "output")
    target = Target(program("storm", "call", 3, 1))
    words = command.format(output).split() + (["-o", output + ".json"] if command == "record" else [])
    collector = Process([XPUTRACE, *words, "-p", str(target.pid)], cwd=scratch())
    mine = capabilities("self")
    wait_until(lambda: capabilities(collector.pid)["CapPrm"] != mine["CapPrm"], "fewer capabilities")
    wait_until(lambda: any(helpers("xputrace-files")), "a process that reads files")
    its = capabilities(collector.pid)
    target.go()
    target.outcome()
    collector.signal(signal.SIGINT)
    collector.wait()
    named = re.findall(r"^  ([a-z_]+) ", run([XPUTRACE, "check"]).stdout, re.MULTILINE)
    assert its["CapEff"] == its["CapPrm"] and its["CapEff"] & mine["CapEff"] == its["CapEff"]
    assert 5 <= bin(its["CapEff"]).count("1") <= len(named) < bin(mine["CapEff"]).count("1"), (its, named)
    if command != "record":
        return
    command = run([XPUTRACE, "record", "-q", "--format", "none", "--", "/bin/cat", "/proc/self/status"])
    assert "CapEff:\t%016x" % mine["CapEff"] in command.stdout, command.stdout


def test_capabilities_of_counters():
    """Once its counters are open, it keeps two, and what opens some for CPUs that come back where it counts everybody; its command
    has all of them, and another user's process is counted."""
    mine = capabilities("self")["CapEff"]
    output = os.path.join(scratch(), "status")
    with attacker("/bin/sh", "-c", "echo ready; while :; do :; done") as child:
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
            opens = 1 << 38 | (1 << 21 if int(file.read()) > 2 else 0)  # perfmon; sys_admin
        for what, kept in ((("-p", str(child.pid)), 1 << 19 | 1 << 2), ((), 1 << 19 | 1 << 2 | opens)):
            counters = Process([XPUTRACE, "counters", "-e", "task-clock,page-faults", "--every", "10ms", *what])
            wait_until(lambda: capabilities(counters.pid)["CapPrm"] != mine, "fewer capabilities")
            its = capabilities(counters.pid)
            time.sleep(0.2 * SLOW)  # it counts
            counters.signal(signal.SIGINT)
            counters.wait()
            assert its["CapPrm"] == its["CapEff"] == kept & mine, its  # sys_ptrace, dac_read_search
            assert "task-clock" in counters.stdout, (counters.stdout, counters.stderr)
    result = run([XPUTRACE, "counters", "-q", "-e", "task-clock", "--", "/bin/cp", "/proc/self/status", output])
    assert not result.status, result.stderr
    with open(output, encoding="ascii") as file:
        assert "CapEff:\t%016x" % mine in file.read()


MAPS = """import mmap, sys
kept = []
for path in sys.argv[1:]:
    with open(path, 'rb') as file:
        kept.append(mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
print('ready', flush=True)
sys.stdin.read()
"""


@paired(PATIENCE)
@cases("all", "open", "read")
def test_file_system_that_does_not_answer(what):
    """Files of FUSE that never answer, mapped by one process: the other one is traced, and the recording ends in time."""
    operations = {"all": (), "open": (hung_file_system.OPEN,), "read": (hung_file_system.READ,)}[what]
    with open(library_path("libnrt.so.1"), "rb") as file:
        library = file.read()
    with hung_file_system.HungFileSystem() as system:
        paths = [system.add("libnrt%d.so" % i, library) for i in range(8)]
        with attacker("/usr/bin/python3", "-c", MAPS, *paths) as holder:
            victim = Target(program("storm", "call", 300, 1))
            system.hang(*operations)
            begun = time.monotonic()
            recorder = Recorder("-p", "%d,%d" % (holder.pid, victim.pid), wait=False)
            recorder.wait_line("stderr", "attached", 2)
            attached = time.monotonic() - begun
            victim.go()
            outcome = victim.outcome()
            recorder.signal(signal.SIGINT)
            trace = recorder.finish()
            lasted = time.monotonic() - begun
            left = list(helpers("xputrace-file"))
            system.end()  # the process that has mapped its files does not end before
    assert system.asked, "nobody has asked it for anything"
    assert attached < 3 * SLOW and lasted < 10 * SLOW, (attached, lasted)
    assert recorder.stderr.count("does not answer") == len(paths), recorder.stderr
    assert len(trace.of("nrt_tensor_write")) == outcome.result["family"]["nrt_tensor_write"]
    # Those that wait for a file are ended as soon as they can be.
    assert len(left) == len(paths), left
    if what == "read":  # they have opened it, and may do nothing else any more
        assert all(map(has_no_rights, left)), left
        assert len({status["Uid"] for status in left}) == len(left), "two of one user"
    wait_until(lambda: not list(helpers("xputrace-file")), "the end of those that read files")


@cases("root", "nobody", "root below 1", "nobody below 1", "nobody below 2")
def test_file_system_of(who):
    """A library on FUSE: it gets probes if root answers for it; else none, as who answers could hang when the kernel reads them.
    Another file system (overlayfs) over it makes no difference."""
    user, _, layers = who.partition(" below ")
    with open(library_path("libnrt.so.1"), "rb") as file:
        library = file.read()
    with hung_file_system.HungFileSystem({"root": 0, "nobody": NOBODY}[user]) as system:
        system.add("libnrt.so.1", library)
        with hung_file_system.below(int(layers or 0), system.path) as folder:
            path = os.path.join(folder, "libnrt.so.1")
            # Below overlayfs, this file system lets only root in.
            with attacker("/usr/bin/python3", "-c", MAPS, path, user=0 if layers else NOBODY) as holder:
                recorder = Recorder("-p", holder.pid)
                system.hang()
                recorder.signal(signal.SIGINT)
                recorder.wait()
                system.end()
    # Below two, the kernel gives the path in the lower one.
    refused = "/libnrt.so.1: no probes are placed in it: its file system (FUSE) is another user's" in recorder.stderr
    placed, = re.findall(r"attached to PID %d .*: (\d+) probes in" % holder.pid, recorder.stderr)
    assert refused == (user == "nobody") and (int(placed) == 0) == refused, recorder.stderr


def test_executable_that_does_not_answer():
    """A program on FUSE that never answers any more: the other one is traced, and the recording ends in time."""
    with open(os.path.realpath("/bin/sleep"), "rb") as file:
        content = file.read()
    with hung_file_system.HungFileSystem() as system:
        path = system.add("program", content)
        # By a shell: this process, which answers for the file, waits until the program that it starts has been executed.
        holder = subprocess.Popen(["/bin/sh", "-c", 'exec "$0" 1000', path])
        try:
            wait_until(lambda: os.readlink("/proc/%d/exe" % holder.pid) == path, "it runs")
            victim = Target(program("storm", "call", 300, 1))
            system.hang(hung_file_system.OPEN, hung_file_system.READ)
            begun = time.monotonic()
            recorder = Recorder("-p", "%d,%d" % (holder.pid, victim.pid), wait=False)
            recorder.wait_line("stderr", "attached", 2)
            victim.go()
            outcome = victim.outcome()
            recorder.signal(signal.SIGINT)
            trace = recorder.finish()
            lasted = time.monotonic() - begun
            system.end()
        finally:
            holder.kill()
            holder.wait()
    assert lasted < 10 * SLOW, lasted
    assert len(trace.of("nrt_tensor_write")) == outcome.result["family"]["nrt_tensor_write"]


LAYS = """import ctypes, os, sys, time
library, mmap = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None).mmap
library.GetPjrtApi.restype = mmap.restype = ctypes.c_void_p
mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
table = library.GetPjrtApi()
mmap(table & -4096, 4096, 3, 0x12, os.open(sys.argv[2], os.O_RDONLY), 0)  # MAP_FIXED
print('ready', flush=True)
while True:
    library.GetPjrtApi()
    time.sleep(0.01)
"""


def test_memory_that_does_not_answer():
    """A table of functions whose page is one of FUSE that never answers: the other one is traced, and the recording ends in time."""
    folder = scratch()
    programs(folder)
    with hung_file_system.HungFileSystem() as system:
        path = system.add("page", bytes(8192))
        with attacker("/usr/bin/python3", "-c", LAYS, os.path.join(folder, "plugin.so"), path) as holder:
            victim = Target(program("storm", "call", 300, 1))
            system.hang(hung_file_system.READ)
            begun = time.monotonic()
            recorder = Recorder("-p", "%d,%d" % (holder.pid, victim.pid), wait=False)
            recorder.wait_line("stderr", "attached", 2)
            attached = time.monotonic() - begun
            victim.go()
            outcome = victim.outcome()
            recorder.signal(signal.SIGINT)
            trace = recorder.finish()
            lasted = time.monotonic() - begun
            system.end()
    assert hung_file_system.READ in system.asked, "nobody has read the page"
    assert attached < 5 * SLOW and lasted < 10 * SLOW, (attached, lasted)
    assert recorder.stderr.count("process %d: names, operators, functions and code objects in its memory are left out" % holder.pid) == 1, \
        recorder.stderr
    assert len(trace.of("nrt_tensor_write")) == outcome.result["family"]["nrt_tensor_write"]


ALTERNATES = """import ctypes, os, sys
mmap = ctypes.CDLL(None).mmap
mmap.restype = ctypes.c_void_p
mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
files = [os.open(path, os.O_RDONLY) for path in sys.argv[1:]]
place = mmap(None, 65536, 5, 2, files[0], 0)
print('ready', flush=True)
while True:
    for file in files:
        mmap(place, 65536, 5, 0x12, file, 0)  # MAP_FIXED
"""


def check_two_files(script, seconds, owner=0):
    """One process does what the script says with a library and another file, while recordings of all processes begin and end:
    the library's user is unharmed. owner: of the folder that they are in."""
    folder = scratch()
    table, other = programs(folder), os.path.join(folder, "offset.so")
    shutil.copy(workload_path("hostile/offset.so"), other)
    victim = Victim(table)
    os.chown(folder, owner, owner)
    end = time.monotonic() + (60 if LONG else seconds * min(SLOW, 3))
    with attacker("/usr/bin/python3", "-c", script, os.path.join(folder, "plugin.so"), other):
        while time.monotonic() < end:  # it is looked at when a recording begins, and whenever it maps
            Recorder("--all-processes", "-d", "300ms").finish()
    check_unharmed(victim.outcome(), (0, 4))


@alone(ALL)
def test_two_files_at_one_address():
    """One process maps two files at the same place in turn: where probes belong in one, the other one gets none."""
    check_two_files(ALTERNATES, 5)


REPLACES = """import ctypes, os, sys
library = ctypes.CDLL(None)
library.mmap.restype = ctypes.c_void_p
library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
one, other = [path.encode() for path in sys.argv[1:]]
place = None
while True:
    assert library.renameat2(-100, one, -100, other, 2) == 0  # AT_FDCWD, RENAME_EXCHANGE
    file = os.open(one, os.O_RDONLY)
    mapped = library.mmap(place, 65536, 5, 0x12 if place else 2, file, 0)  # MAP_FIXED
    os.close(file)
    if not place:
        place = mapped
        print('ready', flush=True)
"""


@alone(ALL)
def test_file_is_replaced():
    """A library and another one change their names all the time, as when a package replaces it: probes belong to the file, not the name."""
    check_two_files(REPLACES, 3, owner=NOBODY)


@alone(ALL)
def test_exec_all_the_time():
    """A process that becomes another program, with other libraries, again and again while it is looked at."""
    folder = scratch()
    table, other, script = programs(folder), os.path.join(folder, "offset.so"), os.path.join(folder, "again")
    shutil.copy(workload_path("hostile/offset.so"), other)
    with open(script, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n[ \"$1\" ] || echo ready\n"
                   "[ \"$1\" = a ] && LD_PRELOAD=%s exec \"$0\" b\nLD_PRELOAD=%s exec \"$0\" a\n"
                   % (other, os.path.join(folder, "plugin.so")))
    os.chmod(script, 0o755)
    victim = Victim(table)
    with attacker(script):
        recorder = Recorder("--all-processes")
        time.sleep(60 if LONG else 5)
        recorder.stop()
    check_unharmed(victim.outcome(), (0, 4))


def test_file_is_cut_off():
    """A library that is cut off, and written anew, while it has probes: the recording of others goes on."""
    library = os.path.join(scratch(), "libnrt.so.1")
    shutil.copy(library_path("libnrt.so.1"), library)
    os.chown(library, NOBODY, NOBODY)
    victim = Target(program("storm", "call", 300, 1))
    with attacker("/usr/bin/python3", "-c", MAPS, library) as holder:
        recorder = Recorder("-p", "%d,%d" % (holder.pid, victim.pid))
        for content in (b"", b"\x7fELF" + bytes(1 << 16), os.urandom(1 << 16)):
            with open(library, "wb") as file:
                file.write(content)
            with attacker("/usr/bin/python3", "-c", MAPS, *([library] if content else [])):
                time.sleep(0.1)
        victim.go()
        outcome = victim.outcome()
        trace = recorder.stop()
    assert len(trace.of("nrt_tensor_write")) == outcome.result["family"]["nrt_tensor_write"]


@alone("gives processes a number that another one may have taken")
def test_process_number_is_used_again():
    """The number of a process that has ended belongs to a stranger: that one is not traced."""
    words = [workload_path("workload"), "nrt", "--wait-for-go", "--calls", 10]
    first, second = Workload(words), Workload(words)
    recorder = Recorder("-p", "%d,%d" % (first.pid, second.pid))
    first.child.kill()
    first.child.wait()
    for _ in range(200):
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
            file.write(str(first.pid - 1))
        stranger = Workload(words)
        if stranger.pid == first.pid:
            break
        stranger.child.kill()
        stranger.child.wait()
    else:
        raise Skip("the number could not be had again")
    stranger.go()
    stranger.results()
    second.go()
    results = second.results()
    trace = recorder.finish()
    compare_calls(results, trace)
    traced = collections.Counter((call.pid, call.function) for call in trace.calls)
    assert {pid for pid, _ in traced} == {second.pid}, (first.pid, second.pid, traced)


@cases("path", "link", "descriptor", "descriptor's path")
def test_secret(how):
    """What only root may read is in no output, whatever a program of nobody's says that it loads."""
    folder = scratch()
    secret = make(elf, 64 * KB, 7, name="secret.hsaco", folder=folder)
    os.chmod(secret.path, 0o600)
    os.symlink("secret.hsaco", os.path.join(folder, "link"))
    with open(secret.path, "rb") as file:
        text = file.read()[32768:32800]
    for path in (library_path(LIBRARIES["hip"]), library_path(LIBRARIES["hsa"]), CODE_HOSTILE):
        shutil.copy(path, folder)
    libraries = [os.path.join(folder, LIBRARIES[runtime]) for runtime in ("hip", "hsa")]
    target = Process(["/usr/bin/python3", os.path.join(folder, os.path.basename(CODE_HOSTILE)), *libraries],
                     user=NOBODY, group=NOBODY, extra_groups=[])
    target.wait_line("stdout", '"ready"')
    capture = Capture("-p", target.pid)
    for line in {"path": ["hipModuleLoad handle: text:" + secret.path],
                 "link": ["hipModuleLoad handle: text:%s/link" % folder],
                 "descriptor": ["hsa_code_object_reader_create_from_file place:%s handle:" % secret.path],
                 "descriptor's path": ["hsa_code_object_reader_create_from_file place:%s handle:" % secret.path] +
                                      ["hipModuleLoad handle: text:/proc/self/fd/%d" % number for number in range(3, 9)]
                 }[how]:
        target.send(line + "\n")
        target.wait_line("stdout", '"result"')
    captured = capture.stop()
    target.child.kill()
    assert captured.loads(), "nothing was seen of it"
    shown = [capture.stdout.encode(), capture.stderr.encode()]
    for where, _, names in os.walk(capture.output):
        for name in names:
            with open(os.path.join(where, name), "rb") as file:
                shown.append(file.read())
    assert not any(text in one or text.hex().encode() in one for one in shown), "the secret is in the output"


def test_reader_of_code_objects():
    """A code object that takes long to be read: by a process without rights, and when that ends, the next one is read."""
    text = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n" + \
           b"\tmov.u32 %r1, %ntid.x; // .visible .entry no\n" * (MB // 2)
    bombs = [Object(text + b"// %d\nret;\n}\n" % number) for number in range(4)]
    target = Loads("nrt", "hip")
    capture = Capture("-p", target.pid)
    before = {status["Pid"] for status in helpers("xputrace-files")}
    caught, loads = [], []
    for bomb in bombs:  # one of them is still being read when its reader is found
        loads += target.load("nrt_load", bomb)
        end = time.monotonic() + (0.5 if SLOW == 1 else 30)  # an emulated processor begins late, then with an earlier one
        found = []
        while not found and time.monotonic() < end:
            found = [status for status in helpers("xputrace-files")
                     if status["Pid"] not in before and status["Seccomp"] != "0"]
        for status in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(status["Pid"]), signal.SIGKILL)
        caught += found
    code = make(elf, 64 * KB, 7)
    second, = target.load("hipModuleLoadData", code)
    captured = capture.stop()
    target.quit()
    assert caught and all(map(has_no_rights, caught)), caught
    ones = [captured.object_of(find(captured, load)) for load in loads]
    assert any("the process that read it has ended" in one.get("error", "") for one in ones), ones
    assert [one["sha256"] for one in ones] == [bomb.sha256 for bomb in bombs], ones
    one = captured.object_of(check_whole(captured, second, code))
    assert one["kind"] == "hsaco" and "error" not in one, one


def confined(pid):
    """Whether it has given up all rights."""
    with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as file:
        status = {name: value.strip() for name, _, value in (line.partition(":\t") for line in file)}
    return has_no_rights(status)


def test_report_has_no_rights():
    """What reads a recording has none, and makes of it what was recorded."""
    folder = scratch()
    workload = Workload([workload_path("workload"), "nrt", "--wait-for-go", "--calls", 50])
    recorder = Recorder("-p", workload.pid, output=os.path.join(folder, "recording.xpt"))
    workload.go()
    results = workload.results()
    assert recorder.wait() == 0, recorder.stderr
    with open(recorder.output, "rb") as file:
        recording = file.read()
    pipe, output = os.path.join(folder, "pipe"), os.path.join(folder, "trace.json.gz")
    os.mkfifo(pipe)
    report = Process([XPUTRACE, "report", pipe, "-o", output, "--summary-json", os.path.join(folder, "summary.json")])
    with open(pipe, "wb", buffering=0) as file:
        file.write(recording[:100])
        wait_until(lambda: confined(report.pid), "a process without rights")
        file.write(recording[100:])
    assert report.wait() == 0, report.stderr
    with gzip.open(output, "rb") as packed, open(os.path.join(folder, "trace.json"), "wb") as file:
        file.write(packed.read())
    compare_calls(results, Trace(file.name))
    with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
        summary = json.load(file)
    assert summary["outputs"][0]["bytes"] == os.path.getsize(output), summary["outputs"]
    assert os.stat(output).st_uid == os.geteuid()


@cases("list sites -f {}", "merge {} -o {}.json", "codeobj show {}")
def test_no_rights(command):
    """What looks for functions in a file, reads a trace or a code object has none, and leaves nothing behind when it fails."""
    with open(library_path("libnrt.so.1"), "rb") as file:
        library = file.read()
    with hung_file_system.HungFileSystem() as system:
        path = system.add("libnrt.so.1", library)
        system.hang(hung_file_system.READ)
        reading = Process([XPUTRACE, *command.replace("{}", path).split()])
        wait_until(lambda: system.asked and confined(reading.pid), "a process without rights")
        system.end()
    assert reading.wait() == 1, (reading.stdout, reading.stderr)
    assert list(system.files) == ["libnrt.so.1"], system.files


def test_merge_without_rights():
    """The output is another process's to name: it keeps its mode, what was there is FILE.old, and nothing else is left."""
    folder = scratch()
    trace, output = os.path.join(folder, "trace.json"), os.path.join(folder, "both.json")
    with open(trace, "w", encoding="ascii") as file:
        file.write('[{"ph":"i","ts":1,"s":"t"}]')
    merge = [XPUTRACE, "merge", trace, "--offset", trace + "=0", "-o"]
    with open(output, "w", encoding="ascii") as file:
        file.write("before")
    os.chmod(output, 0o640)
    result = run(merge + [output])
    assert not result.status, result.stderr
    with open(output, encoding="ascii") as file:
        assert len(json.load(file)["traceEvents"]) == 1
    with open(output + ".old", encoding="ascii") as file:
        assert file.read() == "before"
    assert os.stat(output).st_mode & 0o7777 == 0o640
    assert sorted(os.listdir(folder)) == ["both.json", "both.json.old", "trace.json"], os.listdir(folder)
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    merging = Process(merge + [pipe])
    wait_until(lambda: confined(merging.pid), "a process without rights")
    openers = [status["Pid"] for status in helpers("xputrace-open") if status["PPid"] == str(merging.pid)]
    assert len(openers) == 1, openers
    merging.signal(signal.SIGINT)
    assert merging.wait() < 0
    wait_until(lambda: all(status["Pid"] not in openers or status["State"].startswith("Z")
                           for status in helpers("xputrace-open")), "the end of the process that opens")


@cases("report", "list", "merge")
def test_pipe_in_place_of_a_file(how):
    """A FIFO that nobody writes into."""
    path = os.path.join(scratch(), "pipe")
    os.mkfifo(path)
    words = {"report": ["report", path], "list": ["list", "sites", "-f", path],
             "merge": ["merge", path, path, "-o", path + ".json"]}[how]
    begun = time.monotonic()
    result = run([XPUTRACE] + words)
    assert result.status == 1 and path in result.stderr, (result.status, result.stderr)
    assert time.monotonic() - begun < 5 * SLOW
