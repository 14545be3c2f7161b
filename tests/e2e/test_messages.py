# SPDX-License-Identifier: BSD-2-Clause
"""Bad input: each with its message and exit status, and nothing left behind."""

import json
import os
import shutil
import subprocess

from harness import (NOBODY, XPUTRACE, Process, Skip, Trace, cases, compare, need, process_state, record_late, run,
                     scratch, standin, workload_path)


def record(*arguments, prefix=(), **options):
    output = os.path.join(scratch(), "trace.json")
    words = [str(word) for word in arguments]
    if "-o" not in words:
        words = ["-o", output] + words
    result = run(list(prefix) + [need(XPUTRACE, "collector"), "record"] + words, **options)
    result.output = output
    return result


def expect(result, status, *words):
    statuses = status if isinstance(status, tuple) else (status,)
    assert result.status in statuses, "status %d, expected %s:\n%s" % (result.status, status, result.stderr)
    assert result.stderr.strip(), "no message"
    for word in words:
        assert word.lower() in result.stderr.lower(), "\"%s\" is not in: %s" % (word, result.stderr)


def test_no_such_pid():
    """A PID that does not exist."""
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as file:
        unused = int(file.read()) - 1
    while os.path.exists("/proc/%d" % unused):
        unused -= 1
    result = record("-p", unused)
    expect(result, 1, str(unused), "no process")
    assert not os.path.exists(result.output), "a recording that never began has left a file"


def test_earlier_trace_survives():
    """A recording that cannot begin leaves the file of an earlier one alone."""
    path = os.path.join(scratch(), "trace.json")
    with open(path, "w", encoding="ascii") as file:
        file.write("precious")
    expect(record("-p", 2, "-o", path), 1, "2")
    with open(path, encoding="ascii") as file:
        assert file.read() == "precious", "the earlier file was overwritten"


def test_zombie():
    """A process that has ended and was not reaped."""
    child = subprocess.Popen(["true"])
    while process_state(child.pid) != "Z":
        pass
    expect(record("-p", child.pid), 1, str(child.pid))
    child.wait()


def test_kernel_thread():
    """A kernel thread has no runtime."""
    expect(record("-p", 2), 1, "2")


@cases("0", "-1", "abc", "1x", "99999999999", "", "1,", "1,,2")
def test_bad_pid(text):
    """What is not a PID is a usage error."""
    expect(record("-p", text), 2, "-p")


@cases("--no-such-option", "--sample=0", "--sample=x", "--link=none", "-d=never", "-d=-1s", "--name=x", "--name=0x1")
def test_bad_option(text):
    """Options and values that do not exist are usage errors."""
    words = text.split("=", 1)
    target = Process([workload_path("sleeper")])
    target.wait_line("stdout", "ready")
    expect(record("-p", target.pid, *words), 2, words[0].lstrip("-"))
    target.send("\n")
    target.wait()


def test_nothing_to_do():
    """No target is a usage error; so is an unknown command."""
    expect(record(), 2)
    expect(run([XPUTRACE]), 2)
    expect(run([XPUTRACE, "reccord"]), 2, "reccord")
    result = run([XPUTRACE, "--help"])
    assert result.status == 0 and "record" in result.stdout
    for command in ("record", "report", "list", "check"):
        result = run([XPUTRACE, command, "--help"])
        assert result.status == 0 and command in result.stdout, command
    result = run([XPUTRACE, "--version"])
    assert result.status == 0 and result.stdout.strip()


def test_pid_and_command():
    """A PID and a command together make no sense."""
    expect(record("-p", os.getpid(), "--", "true"), 2)


def test_not_root():
    """Without permission: said so, with what is needed."""
    target = Process([workload_path("sleeper")], user=NOBODY, group=NOBODY, extra_groups=[])
    target.wait_line("stdout", "ready")
    folder = scratch()
    os.chmod(folder, 0o777)
    result = record("-p", target.pid, "-o", os.path.join(folder, "trace.json"), user=NOBODY, group=NOBODY,
                    extra_groups=[])
    expect(result, 1, "root")
    target.send("\n")
    target.wait()
    result = run([XPUTRACE, "check"], user=NOBODY, group=NOBODY, extra_groups=[])
    assert "root" in (result.stdout + result.stderr).lower() or "cap_" in (result.stdout + result.stderr).lower()


def test_no_btf():
    """A kernel without type information: said so."""
    if run(["unshare", "-m", "true"]).status != 0:
        raise Skip("no new mount namespace can be made here")
    workload = standin("nrt", "--calls", 1)
    hide = ["unshare", "-m", "--propagation", "private", "sh", "-ec",
            "mount -t tmpfs none /sys/kernel/btf; for each in /boot /lib/modules; do "
            "if [ -d $each ]; then mount -t tmpfs none $each; fi; done; exec \"$@\"", "sh"]
    expect(record("-p", workload.pid, prefix=hide), 1, "BTF")
    workload.go()
    workload.results()


def test_32_bit():
    """A 32-bit target is refused."""
    path = os.path.join(os.path.dirname(workload_path("workload")), "sleeper32")
    if not os.path.exists(path):
        raise Skip("32-bit programs cannot be linked here")
    try:
        target = Process([path])
    except OSError as error:
        raise Skip("this kernel runs no 32-bit programs") from error
    target.wait_line("stdout", "ready")
    expect(record("-p", target.pid), 1, "32-bit")
    assert target.child.poll() is None
    target.kill()


def test_static_without_runtime():
    """A static program that holds no runtime can never be traced."""
    target = Process([workload_path("sleeper-static")])
    target.wait_line("stdout", "ready")
    expect(record("-p", target.pid), 1, "static")
    assert target.child.poll() is None
    target.send("\n")
    target.wait()


def test_no_runtime_yet():
    """A dynamic program without a runtime is attached to: one may be loaded later. It is said so."""
    target = Process([workload_path("sleeper")])
    target.wait_line("stdout", "ready")
    from harness import Recorder
    recorder = Recorder("-p", target.pid)
    target.send("\n")
    target.wait()
    trace = recorder.finish()
    assert trace.complete and not trace.calls
    assert "no " in recorder.stderr.lower(), recorder.stderr


@cases("missing folder", "folder", "read-only file system")
def test_unwritable_output(how):
    """An output that cannot be written is noticed before anything is attached."""
    folder = scratch()
    path = {"missing folder": folder + "/no/trace.json", "folder": folder,
            "read-only file system": "/proc/trace.json"}[how]
    workload = standin("nrt", "--calls", 5)
    result = record("-p", workload.pid, "-o", path)
    expect(result, 1, path)
    assert "attached" not in result.stderr
    workload.go()
    workload.results()


def runtime_file(text):
    path = os.path.join(scratch(), "mine.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def load_shipped(name):
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "user/runtimes")
    with open(need(os.path.join(folder, name), "runtime description"), encoding="utf-8") as file:
        return file.read()


@cases("syntax", "role", "argument", "key", "missing", "file", "empty", "binary")
def test_bad_runtime_file(how):
    """A bad description: file, line, field and reason; nothing is attached."""
    good = load_shipped("nrt.json")
    marked = good.replace("\"nrt_execute\",", "\"nrt_execute\", @,", 1)
    texts = {
        "syntax": marked,
        "role": good.replace("\"execute\"", "\"exekute\"", 1),
        "argument": good.replace("\"arg0\"", "\"arg99\"", 1),
        "key": good.replace("\"role\"", "\"rolle\"", 1),
        "missing": good.replace("\"runtime\"", "\"runtimes\"", 1),
        "empty": "",
        "binary": "\x00\x01\x02" * 100,
    }
    path = "/no/such/file.json" if how == "file" else runtime_file(texts[how])
    assert how == "file" or texts[how] != good, "the text was not changed: the test proves nothing"
    workload = standin("nrt", "--calls", 5)
    result = record("-p", workload.pid, "--runtime", path)
    expect(result, (1, 2), path)
    if how not in ("file", "empty"):
        line = next(number for number, (old, new) in enumerate(
            zip(good.split("\n"), texts[how].split("\n")), 1) if old != new) if how != "binary" else 1
        if how not in ("missing",):
            assert "%s:%d:" % (path, line) in result.stderr, "line %d expected: %s" % (line, result.stderr)
    assert "attached" not in result.stderr
    workload.go()
    workload.results()


def test_own_runtime_file():
    """--runtime adds a runtime without a rebuild."""
    text = json.dumps({
        "schema": 1, "runtime": "mine", "title": "A runtime of my own", "libraries": ["libnrt.so*"],
        "identify": ["nrt_close"],
        "calls": [{"symbol": "nrt_init", "role": "select", "success": "zero", "fetch": {"core": "arg0:s32"}}],
    })
    results, trace = record_late(standin("nrt", "--calls", 10), "--runtime", runtime_file(text))
    compare("nrt", results, trace)
    init, = trace.of("nrt_init")
    assert init.runtime == "mine" and init.core == 1, init.event


def recording():
    """A small recording in a folder that everyone can read."""
    workload = standin("nrt", "--calls", 20)
    from harness import Recorder
    recorder = Recorder("-p", workload.pid, output=os.path.join(scratch(), "recording.xpt"))
    workload.go()
    workload.results()
    assert recorder.wait() == 0, recorder.stderr
    return recorder.output


@cases("no file", "not a recording", "empty", "cut in the header", "cut in the middle")
def test_bad_recording(how):
    """report on what is no recording: a message; on one that was cut short: what is there."""
    folder = scratch()
    path = os.path.join(folder, "file.xpt")
    output = os.path.join(folder, "trace.json")
    if how == "not a recording":
        shutil.copy(workload_path("workload"), path)
    elif how != "no file":
        with open(recording(), "rb") as file:
            data = file.read()
        size = {"empty": 0, "cut in the header": 10, "cut in the middle": len(data) * 2 // 3}[how]
        with open(path, "wb") as file:
            file.write(data[:size])
    result = run([need(XPUTRACE, "collector"), "report", path, "-o", output])
    if how == "cut in the middle":
        trace = Trace(output) if os.path.exists(output) else None
        assert trace is None or not trace.complete, "a recording that was cut short is called complete"
        assert result.stderr.strip(), "no word about the recording being cut short"
    else:
        expect(result, 1, path)
