# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of calls that begin an inference: record --stacks."""

import collections
import glob
import json
import os
import shutil
import signal
import sys
import time

import python_root
from harness import ROOT, SLOW, XPUTRACE, Process, cases, library_path, run, scratch, wait_until, workload_path
from onnx_models import model, serve
from recordings import PARTIAL, Recording

STACK_COPIES = 17
CLOCKS = 0 if SLOW == 1 else 1000  # ns that those of emulated processors may differ
LATE_PROBES = 5  # of a program whose dynamic loader is not known: in another root
SOURCE = os.path.join(ROOT, "tests", "workload", "stacks.c")
SCRIPT = os.path.join(ROOT, "tests", "workload", "python", "stacks.py")


def record(command, *options):
    """What the command printed, and the recording. Each sample is of a recorded call, and every call of one is recorded."""
    path = os.path.join(scratch(), "stacks.xpt")
    words = [XPUTRACE, "record", "-q", "-o", path, *options, "--", *command]
    recorder = run([str(word) for word in words], cwd=os.path.dirname(path))  # V8 leaves a file where it is
    assert recorder.status == 0, recorder.stderr
    recording = Recording(path)
    assert not set(recording.losses) - {LATE_PROBES}, recording.losses
    calls = {(call.tid, call.start) for call in recording.calls}
    assert recording.stack_samples and all((sample.tid, sample.call_start) in calls for sample in recording.stack_samples)
    assert all(sample.reason == 1 and sample.time < sample.call_start for sample in recording.stack_samples)
    lines = [line for line in recorder.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None, recording


def names(sample):
    return [frame.get("function") for frame in sample.stack.frames]


def complete(recording):
    """The part of the stacks that reach the thread's start."""
    good = [sample for sample in recording.stack_samples if not sample.stack.flags & PARTIAL]
    return len(good) / len(recording.stack_samples)


def check_chain(result, recording, start):
    for sample in recording.stack_samples:
        assert not sample.stack.flags & PARTIAL, names(sample)
        found = names(sample)
        assert found[:len(start)] == start, found
        inlined = sample.stack.frames[1]
        assert inlined["inlined"] and inlined["line"] == result["innermost"], inlined
        outer = sample.stack.frames[2]
        assert not outer.get("inlined") and outer["line"] == result["third"], outer
        for frame in (inlined, outer):
            assert os.path.realpath(os.path.join(ROOT, frame["file"])) == SOURCE, frame
            assert frame["kind"] == "native" and recording.modules[frame["module"]]["path"] == workload_path("stacks")
    assert all(module.get("build_id") for module in recording.modules.values()
               if "libnrt" in module["path"] or "libc" in module["path"]), recording.modules


@cases("session", "multi", "perf")
def test_chain(link):
    """Functions without frame pointers, one of them inlined and one with a frame of any size, up to the start of the program."""
    result, recording = record([workload_path("stacks"), 50, 5000], "--stacks=1000", "--link", link)
    check_chain(result, recording, ["nrt_execute", "innermost", "third", "second", "first", "run", "main"])
    assert {names(sample)[-1] for sample in recording.stack_samples} == {"_start"}
    # On an emulated machine, calls come late and then close to each other.
    assert len(recording.stack_samples) == 50 or (SLOW > 1 and len(recording.stack_samples) >= 30), len(recording.stack_samples)


def test_thread():
    """The same in a thread."""
    result, recording = record([workload_path("stacks"), 20, 5000, "thread"], "--stacks=1000")
    check_chain(result, recording, ["nrt_execute", "innermost", "third", "second", "first", "run"])
    assert len(recording.stack_samples) == 20, len(recording.stack_samples)


def test_ended():
    """A process that ends with its first call."""
    result, recording = record([workload_path("stacks"), 1, 0], "--stacks")
    check_chain(result, recording, ["nrt_execute", "innermost", "third", "second", "first", "run", "main"])
    assert len(recording.stack_samples) == 1 and recording.stack_samples[0].weight == 1


def test_rate():
    """At most so many a second, spread in time; each stands for the calls since the one before."""
    _, recording = record([workload_path("stacks"), 3000, 300], "--stacks=50")
    times = [sample.time for sample in recording.stack_samples]
    assert all(later - earlier >= 1e9 / 50 - CLOCKS for earlier, later in zip(times, times[1:])), times
    assert len(times) > 20, times
    runs = sorted(recording.of_role("execute"), key=lambda call: call.start)
    place = {call.start: number for number, call in enumerate(runs)}
    total = 0
    for sample in recording.stack_samples:
        total += sample.weight
        assert total == place[sample.call_start] + 1, (total, place[sample.call_start])


def test_sampled():
    """Of calls that are left out no stack is taken."""
    _, recording = record([workload_path("stacks"), 40, 3000], "--stacks=1000", "--sample", 4)
    assert len(recording.stack_samples) == 10 and {sample.weight for sample in recording.stack_samples} == {1, 4}


def test_no_stacks():
    """Without the option there are none."""
    path = os.path.join(scratch(), "none.xpt")
    assert run([XPUTRACE, "record", "-q", "-o", path, "--", workload_path("stacks"), "5", "0"]).status == 0
    recording = Recording(path)
    assert recording.calls and not recording.stack_samples and not recording.frames


def unwinders(mark):
    """Processes that unwind for a recorder with this in its environment."""
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(folder + "/comm", encoding="utf-8") as name, open(folder + "/environ", "rb") as environment:
                if name.read() == "xputrace-unwind\n" and mark.encode() in environment.read():
                    found.append(int(os.path.basename(folder)))
        except OSError:
            pass
    return found


def test_crash():
    """The process that unwinds has crashed: it is started again, and what comes later is unwound."""
    path, mark = os.path.join(scratch(), "crash.xpt"), "XPUTRACE_MARK=%d" % os.getpid()
    recorder = Process(["env", mark, XPUTRACE, "record", "-q", "--stacks=1000", "-o", path, "--", workload_path("stacks"), "400",
                        "5000"])
    wait_until(lambda: unwinders(mark), "the process that unwinds has started")
    time.sleep(1)
    killed = unwinders(mark)
    os.kill(killed[0], signal.SIGKILL)
    assert recorder.wait() == 0, recorder.stderr
    recording = Recording(path)
    assert not set(recording.losses) - {LATE_PROBES, STACK_COPIES}, recording.losses
    later = [sample for sample in recording.stack_samples if sample.call_start > recording.stack_samples[0].call_start + 1.3e9]
    assert later and recording.losses[STACK_COPIES] < 5, recording.losses
    for sample in later:
        assert names(sample)[:4] == ["nrt_execute", "innermost", "third", "second"], names(sample)
    assert not unwinders(mark)


@cases("0", "1001", "many")
def test_refused(number):
    result = run([XPUTRACE, "record", "--stacks=" + number, "--", "true"])
    assert result.status == 2 and "expected a number from 1 to 1000" in result.stderr, result.stderr


def test_node():
    """ONNX Runtime in Node.js: native code and code that V8 has made."""
    _, recording = record(serve(model("small"), "--seconds", 2), "--stacks=500")
    assert complete(recording) >= 0.98 and len(recording.stack_samples) > 100, (
        complete(recording), len(recording.stack_samples))
    for sample in recording.stack_samples[:50]:
        kinds = collections.Counter(frame["kind"] for frame in sample.stack.frames)
        # What is interpreted has the interpreter's frames, what is compiled is of no file.
        assert kinds["javascript"] or "Builtins_InterpreterEntryTrampoline" in names(sample), names(sample)
        assert kinds["native"] > 8, names(sample)
        assert "InferenceSessionWrap::Run" in names(sample), names(sample)


def test_node_names():
    """The same with the names that it writes for perf."""
    command = serve(model("small"), "--seconds", 2)
    at = next(number for number, word in enumerate(command) if os.path.basename(word).startswith("node"))
    _, recording = record(command[:at + 1] + ["--perf-basic-prof", "--interpreted-frames-native-stack"] + command[at + 1:],
                          "--stacks=500")
    assert complete(recording) >= 0.98
    made = [frame for sample in recording.stack_samples for frame in sample.stack.frames if frame["kind"] == "javascript"]
    placed = [frame for frame in made if frame.get("file") and frame.get("line")]
    # Functions without a name of their own, such as callbacks, have none here.
    named = [frame for frame in placed if frame.get("function")]
    assert len(placed) >= 0.9 * len(made) > 100 and len(named) >= 0.7 * len(made), (len(made), len(placed), len(named))
    assert any(frame["function"] == "processImmediate" and frame["file"] == "node:internal/timers" for frame in named)


def python_frames(sample):
    return tuple((frame["function"], frame["file"], frame.get("line")) for frame in sample.stack.frames
                 if frame["kind"] == "python")


def check_python(command):
    """Every stack is one that the script has noted, and nearly all that it has noted are met."""
    result, recording = record([*command, SCRIPT, library_path("libnrt.so.1"), 3], "--stacks=1000")
    expected = {tuple(tuple(frame) for frame in stack) for stack in result["stacks"]}
    found = collections.Counter(python_frames(sample) for sample in recording.stack_samples)
    wrong = [stack for stack in found if stack not in expected]
    assert not wrong, "Python %s: not one of %d: %s" % (result["version"], len(expected), wrong[0])
    assert len(found) >= 0.8 * len(expected), "%d of %d" % (len(found), len(expected))
    assert complete(recording) >= 0.98
    for sample in recording.stack_samples:
        assert "_PyEval_EvalFrameDefault" not in names(sample), names(sample)
        assert names(sample)[0] == "nrt_execute", names(sample)
        # Who has called the interpreter comes behind its frames.
        assert sample.stack.frames[-1]["kind"] == "native", names(sample)
    assert any("größer" in stack[1][0] for stack in found)


def test_python():
    """This machine's Python, by ctypes."""
    check_python([os.path.realpath(shutil.which("python3", path="/usr/bin") or sys.executable)])


def test_python_of_next_release():
    check_python(python_root.direct())


def test_python_in_a_container():
    """In another root."""
    shared = scratch()
    for path in (SCRIPT, library_path("libnrt.so.1")):
        shutil.copy(path, shared)
    command = python_root.inside(shared, os.path.join(shared, "stacks.py"), os.path.join(shared, "libnrt.so.1"), "2")
    result, recording = record(command, "--stacks=1000")
    expected = {tuple(tuple(frame) for frame in stack) for stack in result["stacks"]}
    assert all(python_frames(sample) in expected for sample in recording.stack_samples)
    assert complete(recording) >= 0.98
