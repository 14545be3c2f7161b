# SPDX-License-Identifier: BSD-2-Clause
"""Bad input: each with its message and exit status, and nothing left behind."""

import json
import os
import shutil
import subprocess

from harness import (NOBODY, SLOW, XPUTRACE, Process, Recorder, Skip, Trace, cases, compare, library_path, need, process_state, record_late, run,
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


@cases("--no-such-option", "--sample=0", "--sample=x", "--link=none", "-d=never", "-d=-1s", "--name=x", "--name=0x1",
       "--budget=0", "--budget=101", "--budget=2x", "--budget=")
def test_bad_option(text):
    """Options and values that do not exist are usage errors."""
    words = text.split("=", 1)
    target = Process([workload_path("sleeper")])
    target.wait_line("stdout", "ready")
    expect(record("-p", target.pid, *words), 2, words[0].lstrip("-"))
    target.send("\n")
    target.wait()


@cases("record", "profile -P x", "stream", "continuous start", "inspect")
def test_budget(command):
    """A percentage, or none; only of what traces all the time."""
    for text in ("none", "0.1", ".5", "2", "2%", "100%"):
        result = run([XPUTRACE, *command.split(), "--budget", text])
        expect(result, 2, "say what to trace")
    for text in ("0", "0.05", "101", "-1", "nan", "inf", "2 %", "0x2z", "None", ""):
        result = run([XPUTRACE, *command.split(), "--budget", text])
        expect(result, 2, "--budget '%s': expected a percentage from 0.1 to 100, or none" % text)
    expect(run([XPUTRACE, "codeobj", "--budget", "2"]), 2, "unknown option")


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


# What is missing, what is asked for then, and what the message has to name.
DENIED = {
    "bpf": ([], "CAP_BPF"),
    "perfmon": ([], "CAP_PERFMON"),
    "checkpoint_restore": ([], "CAP_CHECKPOINT_RESTORE"),
    "sys_admin": (["--link", "perf"], "CAP_SYS_ADMIN"),
    "sys_ptrace": ([], "CAP_SYS_PTRACE"),
}


def without(*capabilities):
    """Root without these; CAP_SYS_ADMIN includes some others."""
    names = ",".join("-" + name for name in capabilities + ("sys_admin",))
    return ["setpriv", "--bounding-set", names, "--inh-caps", names]


@cases(*DENIED)
def test_missing_capability(name):
    """Which one is missing is named, and nothing that is not so. With all but it, as here, all else is there."""
    options, word = DENIED[name]
    target = Process([workload_path("sleeper")])
    target.wait_line("stdout", "ready")
    pid = target.pid if name != "sys_ptrace" else 1  # which has more than that
    result = record("-p", pid, "-d", "100ms", *options, prefix=without(name))
    expect(result, 1, "missing " + word + ":")
    for untrue in ("Linux 6.1", "security module", "libbpf", "not supported"):
        assert untrue not in result.stderr, result.stderr
    if name == "sys_ptrace":
        result = record("-a", "-d", "100ms", prefix=without(name))
        expect(result, 0, "warning", word)
    else:
        result = run(without(name) + [XPUTRACE, "check"])
        assert "missing " + word in result.stdout.replace("CAP_BPF, ", "CAP_BPF, missing "), result.stdout
        assert result.status == (0 if name == "sys_admin" else 1), result.stdout
    target.kill()


def test_admin_for_all():
    """CAP_SYS_ADMIN stands for those that were split from it: what gives up rights keeps it then."""
    workload = standin("nrt", "--calls", 5)
    names = "-bpf,-perfmon,-checkpoint_restore"
    recorder = Recorder("-p", workload.pid, prefix=["setpriv", "--bounding-set", names, "--inh-caps", names])
    workload.go()
    compare("nrt", workload.results(), recorder.finish())


def test_user_namespace():
    """Root in a namespace of its own has no right to trace."""
    if run(["unshare", "-r", "true"]).status != 0:
        raise Skip("no user namespace can be made here")
    expect(record("-p", os.getpid(), prefix=["unshare", "-r"]), 1, "user namespace")


def mounted(*commands):
    if run(["unshare", "-m", "true"]).status != 0:
        raise Skip("no new mount namespace can be made here")
    return ["unshare", "-m", "--propagation", "private", "sh", "-ec", "; ".join(commands) + '; exec "$@"', "sh"]


def test_no_sysfs():
    """/sys is not mounted: said so, and nothing of libbpf's own."""
    hide = mounted("umount -l /sys")
    target = Process([workload_path("sleeper")])
    target.wait_line("stdout", "ready")
    result = record("-p", target.pid, prefix=hide)
    expect(result, 1, "mount -t sysfs")
    assert "CONFIG_DEBUG" not in result.stderr and "libbpf" not in result.stderr, result.stderr
    result = run(hide + [XPUTRACE, "check"])
    assert result.status == 1 and not result.stderr, result.stderr
    assert "mount -t sysfs" in result.stdout and "CONFIG_DEBUG" not in result.stdout, result.stdout
    assert "comes with" not in result.stdout, result.stdout
    target.kill()


def test_hidden_processes():
    """A process that /proc hides is there all the same; one that is not there is not."""
    target = Process([workload_path("sleeper")])
    target.wait_line("stdout", "ready")
    hide = mounted("mount -t proc -o hidepid=2 proc /proc") + without("sys_ptrace") + ["--regid", "1", "--clear-groups"]
    expect(record("-p", target.pid, prefix=hide), 1, "hidepid", "CAP_SYS_PTRACE")
    target.kill()
    target.wait()
    expect(record("-p", target.pid, prefix=hide), 1, "there is no process")
    expect(record("-p", os.getpid(), prefix=mounted("umount -l /proc")), 1, "mount -t proc")


def test_same_process_twice():
    """Named twice, also by another thread of it: attached to once."""
    workload = standin("nrt", "--calls", "10", "--threads", "2")
    results, trace = record_late(workload, "-p", "%d,%d" % (workload.pid, workload.pid))
    compare("nrt", results, trace)
    target = Process(["python3", "-c", "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); "
                      "print('ready', threading.enumerate()[1].native_id, flush=True)"])
    other = int(target.wait_line("stdout", "ready").split()[1])
    result = record("-p", "%d,%d,%d" % (target.pid, other, target.pid), "-d", "100ms")
    expect(result, 0)
    assert result.stderr.count("attached to PID") == 1, result.stderr
    target.kill()


def test_name_of_nobody():
    """--process with a name that no process has: a message at once, and status 1 when none came."""
    result = record("--process", "nobody-has-it", "-d", "100ms")
    expect(result, 1, "warning: no process is called nobody-has-it yet", "warning: no program was run")
    assert Trace(result.output).complete


def test_nothing_was_run():
    """A process that does nothing: a warning also with --quiet; a failure only where programs were asked for by name."""
    target = Process([workload_path("sleeper")])
    target.wait_line("stdout", "ready")
    expect(record("-q", "-p", target.pid, "-d", "100ms"), 0, "warning: no program was run")
    target.kill()


def test_nothing_explains_itself():
    """What was searched, which functions are in none of it, which have probes that were never hit, which were called."""
    target = Process([workload_path("sleeper")])
    target.wait_line("stdout", "ready")
    expect(record("-p", target.pid, "-d", "100ms"), 0, "found no known runtime: ", "sleeper", "libc.so.6")
    target.kill()
    workload = standin("nrt", "--calls", "3")
    result = record("-p", workload.pid, "-d", "100ms")
    expect(result, 0, library_path("libnrt.so.1") + ": ", "loaded before, nothing ran since",
           "nrt: never called: nrt_load", "nrt: found in no file: nrta_get_sequence")
    workload.go()
    called = {call["function"] for result in workload.results() for library in result["libraries"]
              for call in library["calls"]}
    never = result.stderr.partition("never called: ")[2].partition(" and ")[0]
    assert set(never.split(", ")) & called and not set(never.split(", ")) & {"nrta_get_sequence"}, never
    result = record("--", "timeout", "-s", "KILL", "%d" % SLOW, workload_path("workload"), "nrt", "--load-first", "--wait-for-go")
    expect(result, 137, "called: nrt_load", "nrt: never called: ")
    called = result.stderr.partition("called: ")[2].partition("\n")[0]
    assert "nrt_execute" not in called and "nothing ran since" not in result.stderr, result.stderr


def test_output_without_option():
    """A file name behind the options is no command when there is a process."""
    expect(record("-p", os.getpid(), "trace.json"), 2, "-o trace.json")
    expect(record("-a", "trace.json", "more"), 2, "-o FILE")
    result = record("-p", os.getpid(), "--", "true")
    assert "-o " not in result.stderr, result.stderr


@cases("record --outptu=x --output", "record --counter-every --counters-every", "profile --sampels --samples",
       "list --drivr=x --driver", "continuous start --max-fils --max-files")
def test_nearest_option(text):
    """An unknown option with the one that was meant."""
    *words, meant = text.split()
    result = run([XPUTRACE] + words)
    expect(result, 2, words[-1], "did you mean %s?" % meant)


def test_wrong_values():
    """What an option expects is printed, by its type and limits; the value is not taken as another one."""
    for text, expected in {
            "record --sample 0": "a number from 1 to 1000000", "record --sample 1000001": "a number from 1 to 1000000",
            "record --sample 4294967297": "a number from 1 to 1000000", "record -s -1": "a number from 1 to 1000000",
            "record --buffer 63K": "a size from 64K to 1G", "record --warn-size 1X": "a size such as 64M or 2G",
            "stream --report-every 25h": "a time from 10ms to 24h", "record -d 0": "a time such as 500ms or 10s",
            "counters --every 99us": "a time of at least 100us", "continuous start --after 61s": "a time up to 1m, or 0",
            "continuous start --window-time 999ms": "a time from 1s to 24h, or 0",
            "continuous save --last 0": "a number of at least 1", "list --pid 2147483648": "a process ID",
            "record --link=uprobe": "auto, session, multi or perf", "stream --type sum": "latency, trace or perfetto"}.items():
        *words, value = text.replace("=", " ").split()
        result = run([XPUTRACE] + words + [value])
        expect(result, 2, "'%s': expected %s\n" % (value, expected))
    expect(run([XPUTRACE, "record", "-o", ""]), 2, "--output '': must not be empty")
    expect(run([XPUTRACE, "record", "-s"]), 2, "an argument is required after '-s'")


def test_nothing_near():
    """None that looks alike, none suggested; of commands, too."""
    for words in (["record", "--zzz"], ["record", "-Z"], ["record", "--" + "o" * 5000], ["nothing"], [""], ["r" * 5000]):
        result = run([XPUTRACE] + words)
        expect(result, 2)
        assert "did you mean" not in result.stderr, result.stderr
    expect(run([XPUTRACE, "recrod"]), 2, "did you mean record?")


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
