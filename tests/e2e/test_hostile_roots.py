# SPDX-License-Identifier: BSD-2-Clause
"""Targets of nobody's in a root directory of their own, of whose content nothing is as it should be, and which nothing leads out of."""

import json
import os
import signal
import time

import hung_file_system
from harm import helpers
from harness import SLOW, Recorder, Skip, Trace, Workload, cases, compare, library_path, paired, run, scratch, standin, wait_until
from recordings import Recording
from test_hostile_process import MAPS, attacker

STACK_COPIES = 17
NAME_OF_ROOT, NAME_OF_TARGET = "secret_of_root", "code_of_target"
ESCAPES = "nrt \\ \"\n\x1b]0;x\x07.so"

# Calls the runtime 25 times through code that it has made, so that stacks have an address that only a map for perf names. It says how a
# line of such a map begins, executes what it is told to, and then waits once more; and stays until the recording has ended.
TARGET = r"""
import ctypes, json, mmap, os, struct, sys
library = sys.argv[1]
runtime = ctypes.CDLL(library)
model = ctypes.c_void_p()
neff = ctypes.create_string_buffer(b"\0" * 0xdc + b"in a root", 2048)
page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
page.write(b"\x55\x48\x89\xe5\x48\xb8" + struct.pack("<Q", ctypes.cast(runtime.nrt_execute, ctypes.c_void_p).value) + b"\xff\xd0\x5d\xc3")
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
execute = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(address)
path, line = "/tmp/perf-%d.map" % os.getpid(), "%x 1000 " % address
print(json.dumps({"ready": True, "pid": os.getpid(), "line": line}), flush=True)
exec(json.loads(sys.stdin.readline()))
print("changed", flush=True)
sys.stdin.readline()
assert runtime.nrt_load(neff, ctypes.c_size_t(2048), 0, -1, ctypes.byref(model)) == 0
for _ in range(25):
    assert execute(model, None, None) == 0
calls = [{"function": "nrt_load", "program": "in a root", "count": 1, "size": 2048},
         {"function": "nrt_execute", "program": "in a root", "count": 25, "status": 0}]
print(json.dumps({"runtime": "nrt", "pid": os.getpid(), "libraries": [{"inferences": [], "calls": calls}]}), flush=True)
sys.stdin.readline()
"""

# Of the host it has what it needs to run, which it cannot change; the rest is a file system of its own.
ROOT = """mount -t tmpfs -o mode=755 none "$1"; cd "$1"; mkdir -m 1777 tmp; mkdir -p opt dev etc proc/self proc/1
cp "$2" "opt/$3"; chown 65534 . tmp opt "opt/$3" etc proc
head -c 65536 /dev/urandom >etc/ld.so.cache; ln -s / proc/1/root; ln -s / proc/self/root; echo 0-ffffffff r-xp 0 0:0 1 /bin/sh >proc/self/maps
for each in /lib /lib64 /usr; do mkdir -p ".$each"; mount --bind "$each" ".$each"; mount -o remount,bind,ro ".$each"; done; ln -s usr/bin bin
%s
exec chroot --userspec=65534:65534 . /usr/bin/python3 -c "$4" "/opt/$3"
"""


class Root(Workload):
    """The target, in a root directory that the host sees as an empty folder. commands: more that root makes in it before."""

    def __init__(self, commands="", name="libnrt.so.1"):
        if os.geteuid() or run(["unshare", "-m", "true"]).status or os.uname().machine != "x86_64":
            raise Skip("needs root, mount namespaces, and x86-64 for the code that is made")
        if not os.path.realpath("/usr/bin/python3").startswith("/usr/"):
            raise Skip("needs a Python below /usr, all of which the target has")
        super().__init__(["unshare", "-m", "--propagation", "private", "sh", "-ec", ROOT % commands, "sh", scratch(),
                          library_path("libnrt.so.1"), name, TARGET])
        self.line = json.loads(self.wait_line("stdout", '"ready"'))["line"]

    def change(self, script):
        """Has the target execute it."""
        self.send(json.dumps(script) + "\n")
        self.wait_line("stdout", "changed")

    def run(self, recorder):
        """Lets it make its calls, and stops the recorder."""
        self.go()
        self.wait_line("stdout", '"runtime"')
        recorder.signal(signal.SIGINT)
        assert recorder.wait() == 0, recorder.stderr
        self.go()
        return self.results()


FOLDER_LINK = "os.rename('/tmp', '/before'); os.symlink(%s, '/tmp')"
# What the target does, and root in its root before; names are shown where they are the target's own.
MAPS_FOR_PERF = {
    "own": ("open(path, 'w').write(line + OWN)", ""),
    "own, behind a link": ((FOLDER_LINK % "'/before/../before'") + "; open(path, 'w').write(line + OWN)", ""),
    "folder behind a link": (FOLDER_LINK % "SECRET", ""),
    "folder above the root": (FOLDER_LINK % "'../' * 20 + SECRET", ""),
    "folder of another process": (FOLDER_LINK % "'/proc/1/root' + SECRET", "rm -r proc; mkdir proc; mount -t proc proc proc"),
    "link": ("os.symlink(SECRET + path[4:], path)", ""),
    "file of root": ("", "touch tmp/perf-$$.map; mount --bind %s tmp/perf-$$.map"),
    "pipe": ("os.mkfifo(path)", ""),
    "device": ("", "touch tmp/perf-$$.map; mount --bind /dev/zero tmp/perf-$$.map"),
    "file of the kernel": ("", "touch tmp/perf-$$.map; mount --bind /proc/kmsg tmp/perf-$$.map"),
    "sparse file": ("open(path, 'w').close(); os.truncate(path, 1 << 42)", ""),
}


@cases(*MAPS_FOR_PERF)
def test_map_for_perf(case):
    """Names of code that was made are read from a plain file of the target's own in its root, and nothing else is even opened."""
    script, commands = MAPS_FOR_PERF[case]
    folder = scratch()
    os.chmod(folder, 0o700)
    bound = os.path.join(folder, "bound")
    with open(bound, "w", encoding="ascii"):
        os.chmod(bound, 0o600)
    target = Root(commands.replace("%s", bound))
    for path in (bound, os.path.join(folder, "perf-%d.map" % target.pid)):
        with open(path, "w", encoding="ascii") as file:
            file.write(target.line + NAME_OF_ROOT + "\n")
    target.change("SECRET, OWN = %r, %r; " % (folder, NAME_OF_TARGET + "\n") + script)
    begun = time.monotonic()
    recorder = Recorder("-p", target.pid, "--stacks=1000", output=os.path.join(scratch(), "out.xpt"))
    target.run(recorder)
    assert time.monotonic() - begun < 20 * SLOW
    recording = Recording(recorder.output)
    assert not recording.losses, recording.losses
    names = [[frame.get("function") for frame in sample.stack.frames] for sample in recording.stack_samples]
    assert names and all(each[0] == "nrt_execute" for each in names), names[:1]
    shown = {NAME_OF_TARGET} if case.startswith("own") else set()
    assert all({NAME_OF_TARGET, NAME_OF_ROOT} & set(each) == shown for each in names), recording.stack_samples[0].stack.frames[:4]


PLACES = {
    "pipe": "os.mkfifo(library)",
    "link out of the root": "os.symlink('/../../etc/shadow', library)",
    "sparse file": "open(library, 'w').close(); os.truncate(library, 1 << 42)",
    "folder": "os.mkdir(library)",
    "nothing": "os.rename('/opt', '/before'); os.rename('/tmp', '/opt')",
}


@cases(*PLACES)
def test_place_of_the_library(case):
    """Something else is where the library was, whose name has escapes: the one that is mapped is traced, and the host's is not touched."""
    target = Root(name=ESCAPES)
    target.change("os.rename(library, library + '.before'); " + PLACES[case])
    recorder = Recorder("-p", target.pid, "--stacks", "--codeobj")
    results = target.run(recorder)
    compare("nrt", results, Trace(recorder.output))
    assert "\x1b" not in recorder.stderr + recorder.stdout, recorder.stderr


def check_stacks(victim, holder, system, asked):
    """Stacks of the victim are all taken while the file system that another target has given does not answer."""
    begun = time.monotonic()
    recorder = Recorder("-p", "%d,%d" % (holder.pid, victim.pid), "--stacks=1000", output=os.path.join(scratch(), "out.xpt"))
    for target in (holder, victim):
        if isinstance(target, Workload):
            target.go()
    victim.results()
    recorder.signal(signal.SIGINT)
    assert recorder.wait() == 0, recorder.stderr
    lasted = time.monotonic() - begun
    assert set(asked) & set(system.asked), "it was not asked for anything: %s" % system.asked
    left = list(helpers("xputrace-file"))
    assert all(status["State"].startswith("D") for status in left) and not list(helpers("xputrace-stacks")), left
    system.end()
    wait_until(lambda: not list(helpers("xputrace-file")), "the end of those that open files")
    recording = Recording(recorder.output)
    samples = [sample for sample in recording.stack_samples if sample.tgid == victim.pid]
    assert samples and all(sample.stack.frames for sample in samples), (len(samples), recording.losses)
    assert not recording.losses.get(STACK_COPIES), recording.losses
    assert lasted < 20 * SLOW, lasted


@paired("files are given up after 1 s")
@cases("mapped file", "folder of maps for perf")
def test_stacks_beside_a_file_system_that_does_not_answer(what):
    """What a target has given hangs: others' stacks are unwound with their names."""
    victim = standin("nrt", "--calls", "100", "--programs", "1")
    with hung_file_system.HungFileSystem() as system:
        if what.startswith("folder"):
            holder = Root("mount --bind %s tmp" % system.path)
            holder.change("")
            system.hang()
            check_stacks(victim, holder, system, (hung_file_system.LOOKUP,))
            return
        with open(library_path("libnrt.so.1"), "rb") as file:
            path = system.add("libnrt.so", file.read())
        with attacker("/usr/bin/python3", "-c", MAPS, path) as holder:
            system.hang(hung_file_system.STATFS, hung_file_system.OPEN)
            check_stacks(victim, holder, system, (hung_file_system.STATFS, hung_file_system.OPEN))
