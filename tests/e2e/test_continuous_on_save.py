# SPDX-License-Identifier: BSD-2-Clause
"""xputrace continuous start --on-save: what the program gets, and that none of its faults is the recorder's."""

import glob
import os
import re
import signal

from saved_files import Collector
from harness import XPUTRACE, cases, need, run, scratch, standin, wait_until

LIBRARY_SIGNALS = 3 << 31  # 32 and 33: posix_spawn() of the C library leaves them ignored
QUEUE = 16  # ON_SAVE_WAITING_MAX
GETS = r"""#!/bin/sh
here=$(dirname "$0")
{ printf '%s\0' "$#" "$1"; env -0; } >"$here/words"
readlink /proc/$$/fd/0 >"$here/streams"
ls /proc/self/fd >"$here/descriptors"
grep -E '^Sig(Blk|Ign):' /proc/self/status >"$here/signals"
echo "it says so"
mv "$here/words" "$here/ran"
"""


def program(text, folder=None):
    path = os.path.join(folder or scratch(), "program")
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


class Recorder(Collector):
    """A collector that runs a program, beside a workload that has done something."""

    def __init__(self, path, *options, folder=None, **process_options):
        self.workload = standin("nrt", "--calls", "20", "--linger")
        words = ["-o", folder] if folder else []
        super().__init__("-p", self.workload.pid, "--window-time", "0", "--on-save", path, *words, *options, **process_options)
        self.folder = folder or self.folder
        self.workload.go()
        self.wait_inferences(20)

    def end(self):
        """It still runs, and ends in order."""
        self.stop()
        self.workload.kill()


@cases("plain", "with blanks  and 'quotes' \"of\" both kinds", "$(touch injected); `touch injected` & \\", "two\nlines", "*?[a]", "-rf")
def test_names(name):
    """The path of the file is one argument as it is, wherever it lies; nothing of the recorder is open in the program."""
    place = scratch()
    path = program(GETS, place)
    inherited = os.open("/dev/null", os.O_RDONLY)
    recorder = Recorder(path, "--after", "0", folder=os.path.join(scratch(), name), pass_fds=[inherited])
    os.close(inherited)
    recorder.signal(signal.SIGUSR2)
    wait_until(lambda: os.path.exists(os.path.join(place, "ran")), "the program has run")
    with open(os.path.join(place, "ran"), encoding="utf-8") as file:
        number, given, *rest = file.read().split("\0")
    variables = dict(one.split("=", 1) for one in rest if one)
    saved, = recorder.files()
    assert (number, given) == ("1", saved.path) and variables["XPUTRACE_FILE"] == saved.path, (number, given)
    assert int(variables["XPUTRACE_BYTES"]) == os.path.getsize(saved.path)
    assert "signal" in variables["XPUTRACE_REASON"] and variables["XPUTRACE_INSTANCE"] == recorder.name, variables
    assert 0 < int(variables["XPUTRACE_BEGIN_NS"]) < int(variables["XPUTRACE_END_NS"]) and int(variables["XPUTRACE_RECORDS"]) > 20
    assert variables["XPUTRACE_LOST"] == "0" and variables["PATH"] == os.environ["PATH"]
    with open(os.path.join(place, "streams"), encoding="ascii") as file:
        assert file.read() == "/dev/null\n"
    with open(os.path.join(place, "descriptors"), encoding="ascii") as file:
        assert file.read().split() == ["0", "1", "2", "3"]  # the last is the folder that ls reads
    with open(os.path.join(place, "signals"), encoding="ascii") as file:
        masks = file.read()
    assert not any(int(mask, 16) & ~LIBRARY_SIGNALS for mask in re.findall(r"\t(\w+)", masks)), masks
    recorder.wait_line("stderr", "it says so")
    assert not glob.glob("injected") and not os.path.exists(os.path.join(place, "injected"))
    recorder.end()


def test_failures():
    """One that fails, one that a signal ends, one that is not there any more: a message each, and the next one runs."""
    place = scratch()
    path = program("#!/bin/sh\nexit 3\n", place)
    recorder = Recorder(path)
    first = recorder.save()
    recorder.wait_line("stderr", "failed with status 3 for " + first.path)
    program("#!/bin/sh\nkill -SEGV $$\n", place)
    recorder.save()
    recorder.wait_line("stderr", "was killed by signal 11")
    os.unlink(path)
    recorder.save()
    recorder.wait_line("stderr", "cannot be run for")
    program(GETS, place)
    recorder.save()
    wait_until(lambda: os.path.exists(os.path.join(place, "ran")), "the program has run")
    recorder.end()


def test_hanging():
    """One that hangs is killed with its children; what no longer fits into the queue is dropped and counted."""
    path = program('#!/bin/sh\nsleep 1000 &\necho $! >>"$(dirname "$0")/children"\nwait\n')
    recorder = Recorder(path, "--on-save-limit", "3s")
    children = os.path.join(os.path.dirname(path), "children")
    recorder.save()
    recorder.wait_line("stderr", "took too long")
    with open(children, encoding="ascii") as file:
        child = int(file.readline())
    wait_until(lambda: not os.path.exists("/proc/%d" % child) or " Z " in open("/proc/%d/stat" % child, encoding="utf-8").read(),
               "its child has ended")
    for _ in range(2):
        for _ in range(QUEUE):
            recorder.save()
    recorder.wait_line("stderr", "too many files wait for it (1 dropped)")
    assert len(recorder.files()) == 2 * QUEUE + 1, "a file is saved all the same"
    recorder.end()
    assert "the recorder has ended" in recorder.stderr, recorder.stderr
    messages = recorder.stderr
    done = messages.count("took too long") + messages.count(" dropped)")
    assert done == 2 * QUEUE + 1, messages


def test_ends_in_order():
    """Files that are saved when it is stopped are not forgotten."""
    place = scratch()
    path = program('#!/bin/sh\nsleep 0.3\necho "$1" >>"$(dirname "$0")/ran"\n', place)
    recorder = Recorder(path)
    paths = [recorder.save().path for _ in range(3)]
    recorder.end()
    with open(os.path.join(place, "ran"), encoding="utf-8") as file:
        assert file.read().splitlines() == paths


@cases("true", "/nonexistent/program", os.path.dirname(os.path.abspath(__file__)) + "/harness.py")
def test_refused(path):
    """What is no path, not there, or not to be run is refused before anything is attached."""
    result = run([need(XPUTRACE, "collector"), "continuous", "start", "-a", "--on-save", path])
    assert result.status == 2 and "--on-save" in result.stderr, result.stderr
