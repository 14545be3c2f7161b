# SPDX-License-Identifier: BSD-2-Clause
"""Continuous profiling when things go wrong: kills, forks, full disks, bad directories, rivals."""

import contextlib
import fcntl
import os
import random
import resource
import secrets
import shutil
import signal
import struct
import subprocess
import time

from collectors import (SOCKETS, Collector, Connection, check_folder, continuous, endless, expect, has_probes, report,
                        socket_path, unharmed)
from harness import (NOBODY, SLOW, XPUTRACE, Process, Skip, Workload, alone, cases, need, process_state, run, scratch,
                     standin, wait_until, workload_path)

SEED = 20268


def refused(status, words, *arguments, **options):
    """A collector that must not come to run: why it did not."""
    name = "e2e-" + secrets.token_hex(6)
    folder = os.path.join(scratch(), "saved")
    if "-o" not in arguments:
        arguments += ("-o", folder)
    if "--" in arguments:
        arguments = arguments[-2:] + arguments[:-2]
    result = continuous("start", "--instance", name, *arguments, **options)
    expect(result, status, *words)
    assert not os.path.exists(socket_path(name)), "a start that was refused has left a socket"
    return result


# ---- kills ----

@cases("attaching", "recording", "saving")
def test_collector_is_killed(moment):
    """SIGKILL: no probe, no half and no hidden file is left; one with the same name starts at once and saves."""
    chance = random.Random(SEED + len(moment))
    workload = endless()
    name, output = "e2e-" + secrets.token_hex(6), os.path.join(scratch(), "saved")
    for _ in range(3):
        collector = Collector("-p", workload.pid, name=name, output=output, wait=moment != "attaching")
        if moment == "attaching":
            time.sleep(chance.random() * 0.5 * SLOW)
        elif moment == "recording":
            assert has_probes(workload.pid)
            time.sleep(chance.random() * 0.3)
        else:
            with Connection(name) as connection:
                for _ in range(chance.randrange(4)):
                    connection.ask("save")
                connection.send("save")
                time.sleep(chance.random() * 0.01)
        collector.signal(signal.SIGKILL)
        collector.wait()
        wait_until(lambda: not has_probes(workload.pid), "the probes are off", 10)
        if os.path.exists(output):
            check_folder(output)
    collector = Collector("-p", workload.pid, name=name, output=output)
    collector.wait_calls()
    last = collector.save()
    collector.stop()
    assert report(last).runs(pid=workload.pid)
    assert all(trace.complete for trace in collector.traces()), "a file that is not whole"
    unharmed(workload)


def test_target_is_killed_and_comes_back():
    """What a process did that is gone can be saved; another one of its name is picked up, whatever its number."""
    name = "t" + secrets.token_hex(6)
    first = endless("--name", name)
    collector = Collector("--process", name)
    collector.wait_calls()
    first.kill()
    second = endless("--name", name)
    wait_until(lambda: collector.save() and report(collector.save()).runs(pid=second.pid), "the second is recorded")
    trace = report(collector.save())
    assert trace.runs(pid=first.pid), "what the first one did is gone"
    wait_until(lambda: collector.status()["processes"] == 1, "the first is not counted any more")
    collector.stop()
    unharmed(second)


def test_target_ends_while_it_is_saved():
    """Saves go on while the target is killed: each file is whole, and nobody waits for it."""
    workload = endless("--threads", 2)
    collector = Collector("-p", workload.pid)
    collector.wait_calls()
    with Connection(collector.name) as connection:
        for number in range(12):
            connection.send("save")
            if number == 6:
                workload.kill()
            assert connection.read()["ok"]
        assert connection.ask("save", pid=workload.pid, inferences=3)["ok"]
        assert connection.ask("status")["processes"] == 0
    collector.stop()
    traces = collector.traces()
    assert len(traces) == 13
    assert len(traces[-1].runs(pid=workload.pid)) == 3


def is_claimed(pid):
    """Whether a collector has this process, as the kernel tells of the file in which they say so."""
    asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, pid, 1, 0)
    with open(os.path.join(SOCKETS, "targets"), "rb+", buffering=0) as file:
        return struct.unpack("hhqqi4x", fcntl.fcntl(file, 36, asked))[0] != fcntl.F_UNLCK  # F_OFD_GETLK


def test_fork_storm():
    """Hundreds of children: all are let go when they have ended, and what the last one does is recorded."""
    ended = os.path.join(scratch(), "ended")
    script = "i=0; while [ $i -lt 300 ]; do /bin/true & echo $! >&3; i=$((i+1)); done; wait; %s nrt --calls 5; " \
        "exec sleep 1000" % workload_path("workload")
    collector = Collector("--", "sh", "-c", "exec 3>%s >/dev/null 2>&1; %s" % (ended, script))
    wait_until(lambda: collector.status()["window_inferences"] >= 5, "the last child has run")
    wait_until(lambda: collector.status()["processes"] == 1, "only the shell is left")
    assert len(report(collector.save()).runs()) == 5
    shell, = children(collector.pid)
    assert is_claimed(shell)
    with open(ended, encoding="ascii") as file:
        claimed = [pid for pid in map(int, file) if not os.path.exists("/proc/%d" % pid) and is_claimed(pid)]
    assert len(claimed) < 5, "claims of processes that have ended are left: %s" % claimed  # numbers come back
    collector.stop()
    os.kill(shell, signal.SIGKILL)


def children(pid):
    """Those that run a program of their own, which helpers of the collector do not."""
    listed = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid=,comm="], capture_output=True, text=True,
                            check=False).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "xputrace" not in line]


# ---- who may have which target ----

def test_bad_targets():
    """No such process, a zombie, a kernel thread, no program: said so, and nothing is left."""
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as file:
        unused = int(file.read()) - 1
    while os.path.exists("/proc/%d" % unused):
        unused -= 1
    refused(1, ["no process %d" % unused], "-p", unused)
    refused(1, ["kernel thread"], "-p", 2)
    child = subprocess.Popen(["true"])
    wait_until(lambda: process_state(child.pid) == "Z", "it has ended")
    refused(1, ["has ended"], "-p", child.pid)
    child.wait()
    refused(1, ["nonexistent"], "--", "/nonexistent/program")


def test_collector_watches_itself():
    """Of no use, and of no harm."""
    name, folder = "e2e-" + secrets.token_hex(6), os.path.join(scratch(), "saved")
    collector = Process(["sh", "-c", "exec \"$0\" continuous start -p $$ -o \"$1\" --instance \"$2\"",
                         need(XPUTRACE, "collector"), folder, name])
    collector.wait_line("stderr", "recording into memory")
    with Connection(name) as connection:
        assert connection.ask("save")["ok"]
        status = connection.ask("status")
        assert status["processes"] == 1 and not status["lost"], status
        assert connection.ask("stop")["ok"]
    assert collector.wait() == 0, collector.stderr


def thread_of(workload):
    return max(int(thread) for thread in os.listdir("/proc/%d/task" % workload.pid))


@alone("looks at all processes")
def test_one_collector_a_target():
    """Whichever way a target is named, a second collector for it is refused, and the first goes on."""
    name = "t" + secrets.token_hex(6)
    workload = endless("--threads", 2, "--name", name)
    for first in (["-p", workload.pid], ["--process", name]):
        collector = Collector(*first)
        for second in (["-p", workload.pid], ["-p", thread_of(workload)], ["--process", name], ["-a"]):
            result = refused(1, ["profiled continuously already"], *second)
            assert result.stderr.count("profiled continuously") == 1, result.stderr
        other = continuous("start", "-p", workload.pid, name=collector.name)
        expect(other, 1, "profiled continuously already")
        collector.wait_calls()
        collector.stop()
    unharmed(workload)


def test_one_collector_a_command():
    """A command and its children belong to the collector that has started it."""
    collector = Collector("--", "sh", "-c", "exec >/dev/null 2>&1; %s nrt --calls 0 --rate 100; true" %
                          workload_path("workload"))
    collector.wait_calls()
    shell, = children(collector.pid)
    workload, = children(shell)
    for pid in (shell, workload):
        refused(1, ["profiled continuously already"], "-p", pid)
    collector.stop()
    again = Collector("-p", workload)
    again.wait_calls()
    os.kill(workload, signal.SIGTERM)
    again.stop()


def test_collectors_side_by_side():
    """Two of different targets know nothing of each other; the same name is refused."""
    targets = [endless(), endless()]
    folder = os.path.join(scratch(), "saved")
    collectors = [Collector("-p", target.pid, output=folder) for target in targets]
    result = continuous("start", "-o", folder, "--process", "t" + secrets.token_hex(6), name=collectors[0].name)
    expect(result, 1, "process %d listens there already" % collectors[0].pid)
    for target, collector in zip(targets, collectors):
        collector.wait_calls()
        trace = report(collector.save())
        assert {call.pid for call in trace.calls} == {target.pid}
    collectors[0].stop()
    assert collectors[1].status()["processes"] == 1
    collectors[1].stop()
    for target in targets:
        unharmed(target)


# ---- where files go ----

@contextlib.contextmanager
def mounted(*arguments):
    folder = scratch()
    if run(["mount", *arguments, folder]).status != 0:
        raise Skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        run(["umount", "-l", folder])


def test_bad_directory():
    """One that cannot be used is refused at the start, with the reason, and the target is left alone."""
    workload = endless()
    folder = scratch()
    file = os.path.join(folder, "file")
    with open(file, "w", encoding="ascii"):
        pass
    refused(1, ["'missing' does not exist"], "-p", workload.pid, "-o", os.path.join(folder, "missing", "saved"))
    refused(1, ["Not a directory"], "-p", workload.pid, "-o", file)
    refused(1, ["Not a directory"], "-p", workload.pid, "-o", os.path.join(file, "saved"))
    refused(2, ["output-dir"], "-p", workload.pid, "-o", "")
    refused(1, ["File name too long"], "-p", workload.pid, "-o", folder + "/" + "./" * 2000 + "saved")
    sticky = os.path.join(folder, "sticky")
    os.mkdir(sticky)
    os.chmod(sticky, 0o1777)
    link = os.path.join(sticky, "link")
    os.symlink(folder, link)
    os.lchown(link, NOBODY, NOBODY)
    refused(1, ["link"], "-p", workload.pid, "-o", link)
    refused(1, ["link"], "-p", workload.pid, "-o", os.path.join(link, "saved"))
    everybody = os.path.join(folder, "everybody")
    os.mkdir(everybody)
    os.chmod(everybody, 0o777)
    refused(1, [everybody], "-p", workload.pid, "-o", everybody)
    script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && shift && exec \"$@\""
    refused(1, ["read-only"], "-p", workload.pid, "-o", sticky,
            prefix=["unshare", "-m", "sh", "-c", script, "sh", sticky])
    assert os.listdir(sticky) == ["link"] and not os.listdir(everybody)
    unharmed(workload)


def test_full_disk():
    """A save that finds no room fails with that, leaves nothing, and later ones succeed when there is room."""
    with mounted("-t", "tmpfs", "-o", "size=1m", "none") as folder:
        workload = endless("--threads", 2, rate=2000)
        collector = Collector("-p", workload.pid, output=os.path.join(folder, "saved"))
        collector.wait_calls()
        filler = os.path.join(folder, "filler")
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        result = continuous("save", name=collector.name)
        expect(result, 1, "No space left")
        assert not os.listdir(collector.output), "something is left"
        status = collector.status()
        assert status["failed_saves"] == 1 and status["saves"] == 0
        os.unlink(filler)
        trace = report(collector.save(inferences=20))
        assert len(trace.runs()) == 20
        collector.stop()
        unharmed(workload)


def test_file_size_limit():
    """The same where files may not grow: the signal for that ends nothing."""
    workload = endless("--threads", 2, rate=2000)
    collector = Collector("-p", workload.pid, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                                    (40000, 40000)))
    collector.wait_calls()
    wait_until(lambda: collector.status()["window_records"] > 10000, "more than the limit")
    answer = collector.ask("save")
    assert not answer["ok"] and answer["error"] == "EFBIG", answer
    assert not os.listdir(collector.output), "something is left"
    assert collector.status()["lost"] == 0
    collector.stop()
    unharmed(workload)


def test_directory_goes_and_comes():
    """Removed while it runs: it is made anew with the next save."""
    workload = endless()
    collector = Collector("-p", workload.pid)
    collector.wait_calls()
    collector.save()
    shutil.rmtree(collector.output)
    path = collector.save()
    assert os.path.dirname(path) == collector.output and os.stat(collector.output).st_mode & 0o777 == 0o700
    shutil.rmtree(collector.output)
    with open(collector.output, "w", encoding="ascii"):
        pass
    answer = collector.ask("save")
    assert not answer["ok"] and answer["error"] == "ENOTDIR", answer
    os.unlink(collector.output)
    assert report(collector.save()).runs()
    collector.stop()
    unharmed(workload)


def test_path_is_absolute():
    """Whoever asks is elsewhere: the file is found from there."""
    workload = endless()
    folder = scratch()
    collector = Collector("-p", workload.pid, output="saved", cwd=folder)
    collector.wait_calls()
    result = continuous("save", "-q", name=collector.name, cwd="/")
    expect(result, 0)
    assert os.path.dirname(result.stdout.strip()) == os.path.join(folder, "saved"), result.stdout
    assert report(result.stdout.strip()).runs()
    collector.output = os.path.join(folder, "saved")
    collector.stop()
    unharmed(workload)


# ---- names ----

def test_clock_jumps():
    """The wall clock is set back and forth by an hour: files have names of their own, and the window does not mind."""
    workload = endless()
    collector = Collector("-p", workload.pid, "--window-time", "2s",
                          env={**os.environ, "LD_PRELOAD": workload_path("clock_jumps.so")})
    collector.wait_calls()
    paths = []
    for _ in range(20):
        paths.append(collector.save())
        time.sleep(0.15)
    assert len(set(paths)) == 20, paths
    hours = {os.path.basename(path).partition("T")[2][:2] for path in paths}
    assert len(hours) >= 2, "the clock has not jumped: %s" % paths
    for path in paths[-3:]:
        starts = [call.start for call in report(path).runs()]
        assert starts and 0.5 < (max(starts) - min(starts)) / 1e6 < 3 * SLOW, (min(starts), max(starts))
    assert collector.status()["evicted_inferences"]
    collector.stop()
    unharmed(workload)


def test_hostile_names():
    """Names of targets and programs reach neither terminals nor names of files as they are."""
    name = "\"/\n\x1b[31m<"
    workload = standin("hostile", "--calls", 5, "--linger")
    named = Workload([workload_path("workload"), "nrt", "--wait-for-go", "--calls", "0", "--rate", "100", "--name",
                      name])
    named.go()
    folder = os.path.join(scratch(), "a \"b\"\n\x1b[31m")
    collector = Collector("-p", "%d,%d" % (workload.pid, named.pid), "--save-on", "latency > 1ns", "--after", "0",
                          output=folder)
    workload.go()
    wait_until(lambda: collector.status()["saves"] == 1, "the trigger's file")
    workload.wait_line("stdout", '"runtime"')
    path = collector.save()
    assert os.path.dirname(path) == folder, path
    trace = report(path)
    assert trace.runs(pid=workload.pid) and trace.runs(pid=named.pid)
    assert not [event for event in trace.events if event["name"] == "injected"]
    shown = continuous("save", "-P", "quote\" backslash\\ slash/", name=collector.name)
    expect(shown, 0)
    assert "\x1b" not in shown.stderr, "an escape sequence reaches the terminal"
    expect(continuous("save", "-P", "no such\x1b[31m", name=collector.name), 1, "no such inference")
    expect(continuous("save", "-P", "", name=collector.name), 2)
    workload.send("\n")
    collector.stop()
    assert "\x1b" not in collector.stderr and "\x07" not in collector.stderr, collector.stderr
    workload.wait()
    named.stop()
