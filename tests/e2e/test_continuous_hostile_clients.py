# SPDX-License-Identifier: BSD-2-Clause
"""Continuous profiling and those around it: bad clients, terminals, managers; and for long."""

import ast
import contextlib
import json
import os
import pty
import secrets
import shutil
import signal
import socket
import subprocess
import textwrap
import time

from collectors import (Collector, Connection, check_folder, continuous, endless, expect, has_probes, report,
                        socket_path, unharmed)
from harness import NOBODY, ROOT, SLOW, TIMEOUT, XPUTRACE, Process, Skip, cases, need, run, scratch, standin, wait_until

# ---- the socket ----

def test_socket_path_is_taken():
    """By what is no socket: it is left alone, and said."""
    workload = endless()
    name = "e2e-" + secrets.token_hex(6)
    Collector("-p", workload.pid).stop()  # makes the folder
    with open(socket_path(name), "w", encoding="ascii") as file:
        file.write("precious")
    try:
        result = continuous("start", "-p", workload.pid, "-o", os.path.join(scratch(), "saved"), name=name)
        expect(result, 1, socket_path(name), "remove it")
        with open(socket_path(name), encoding="ascii") as file:
            assert file.read() == "precious"
        expect(continuous("save", name=name), 1)
    finally:
        os.unlink(socket_path(name))
    unharmed(workload)


GARBAGE = [b"\n", b"\0\n", b"{}\n", b"[]\n", b"null\n", b"\xff\xfe\n", b"GET / HTTP/1.1\r\n\r\n", b"{" * 5000 + b"\n",
           b'{"xputrace":2,"id":1,"do":""}\n', b'{"xputrace":2,"id":1,"do":7}\n',
           b'{"xputrace":1,"id":1,"do":"save"}\n',
           b'{"xputrace":2,"id":-1,"do":"save"}\n', b'{"xputrace":2,"id":1,"do":"erase"}\n',
           b'{"xputrace":2,"id":1,"do":"save","core":"3"}\n', b'{"xputrace":2,"id":1,"do":"save","inferences":1e300}\n',
           b'{"xputrace":2,"id":1,"do":"save","program":""}\n', b'{"xputrace":2,"id":1,"do":"save","pid":-7}\n',
           b'{"xputrace":2,"id":1,"do":"save","program":"\\u0000"}\n', b"x" * 70000 + b"\n"]


def test_bad_clients():
    """Garbage, long packets, silent ones, those that go, and 100 at once: it answers, and loses nothing."""
    workload = endless()
    collector = Collector("-p", workload.pid)
    collector.wait_calls()
    for packet in GARBAGE:
        with Connection(collector.name) as connection:
            connection.socket.send(packet)
            answer = connection.read()
            assert answer and answer["ok"] is False and answer["reason"], "%r: %s" % (packet[:60], answer)
    open_ones = []
    for number in range(100):
        with contextlib.suppress(ConnectionError, BlockingIOError):
            open_ones.append(Connection(collector.name))
            if number % 2:
                open_ones[-1].socket.send(b'{"xputrace":2,')
    begun = time.monotonic()
    expect(continuous("save", "-n", 5, name=collector.name), 0)
    assert time.monotonic() - begun < 10 * SLOW, "it was held up for %.1f s" % (time.monotonic() - begun)
    for _ in range(20):  # gone before the answer is there
        connection = Connection(collector.name)
        connection.send("save")
        connection.close()
    for connection in open_ones:
        connection.close()
    status = collector.status()
    assert status["ok"] and status["lost"] == 0, status
    collector.stop()
    unharmed(workload)


def test_other_users():
    """Only root and whose it is can ask."""
    workload = endless()
    collector = Collector("-p", workload.pid)
    assert os.stat(socket_path(collector.name)).st_mode & 0o777 == 0o600
    program = os.path.join(scratch(), "xputrace")
    shutil.copy(XPUTRACE, program)
    for word in ("save", "status", "stop"):
        result = run([program, "continuous", word, "--instance", collector.name], user=NOBODY, group=NOBODY,
                     extra_groups=[])
        expect(result, 1, "another user")
    assert collector.status()["saves"] == 0
    collector.stop()
    unharmed(workload)


def test_stop_while_saving():
    """A save that is under way is completed, or refused; a second stop is answered, and nobody waits for ever."""
    workload = endless("--threads", 2, rate=2000)
    collector = Collector("-p", workload.pid)
    wait_until(lambda: collector.status()["window_records"] > 5000, "something to save")
    connections = [Connection(collector.name) for _ in range(6)]
    for connection, word in zip(connections, ["save", "save", "stop", "stop", "save", "save"]):
        connection.send(word)
    answers = [read_or_none(connection) for connection in connections]
    assert collector.wait() == 0, collector.stderr
    saved = [answer["path"] for answer in answers if answer and answer["ok"] and "path" in answer]
    stops = [answer for answer in answers[2:4] if answer and answer["ok"]]
    assert len(stops) == 1, "one of two stops is informed that it has ended: %s" % answers
    assert all(answer is None or answer["ok"] or answer["error"] in ("ECANCELED", "ESHUTDOWN", "EALREADY")
               for answer in answers), answers
    assert sorted(saved) == sorted(os.path.join(collector.output, file) for file in os.listdir(collector.output))
    for path in saved:
        report(path)
    collector.check_gone()
    expect(continuous("stop", name=collector.name), 1, "no such socket")
    unharmed(workload)


def read_or_none(connection):
    try:
        return connection.read()
    except ConnectionError:
        return None


# ---- the examples of user/control/CONTROL.md ----

@cases("python3", "sh")
def test_documented_examples(interpreter):
    """Each gets the status, as it is written there."""
    if interpreter == "sh" and not shutil.which("socat"):
        raise Skip("socat is not installed")
    start, read = {"python3": ("    import json", ast.literal_eval), "sh": ("    echo ", json.loads)}[interpreter]
    with open(os.path.join(ROOT, "user/control/CONTROL.md"), encoding="utf-8") as file:
        text = file.read()
    example = text[text.index(start):].split("\n\nIn a shell")[0]
    workload = endless()
    collector = Collector("-p", workload.pid)
    path = "/run/xputrace/continuous.sock"
    assert path in example, example
    example = textwrap.dedent(example).replace(path, socket_path(collector.name))
    result = run([interpreter, "-c", example])
    expect(result, 0)
    answer = read(result.stdout)
    assert answer["ok"] is True and answer["pid"] == collector.pid, answer
    collector.stop()
    unharmed(workload)


# ---- for long ----

def test_saves_leak_nothing():
    """300 saves: memory and descriptors as after the first 50, every file of its own name and whole."""
    workload = endless()
    collector = Collector("-p", workload.pid, "--window-time", "0", "-w", "2M")
    wait_until(lambda: collector.status()["evicted_records"], "a full window")
    figures = []
    paths = set()
    with Connection(collector.name) as connection:
        for number in range(300):
            answer = connection.ask("save", inferences=1)
            assert answer["ok"], answer
            paths.add(answer["path"])
            if number in (49, 299):
                figures.append(memory_of(collector.pid) + (len(os.listdir("/proc/%d/fd" % collector.pid)),))
    (before, _, open_before), (after, _, open_after) = figures
    assert after < before + 1500, "memory grows from %d to %d kB" % (before, after)
    assert open_after == open_before, "descriptors: %d, then %d" % (open_before, open_after)
    assert len(paths) == len(os.listdir(collector.output)) == 300
    for path in sorted(paths)[::100]:
        assert len(report(path).runs()) == 1
    collector.stop()
    unharmed(workload)


def memory_of(pid):
    """Resident and highest, kB."""
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["VmRSS"].split()[0]), int(fields["VmHWM"].split()[0])


def test_memory_under_load():
    """As fast as the target can: what is kept stays within its bounds, and is counted."""
    workload = standin("nrt", "--calls", 0, "--threads", 2, "--duration-us", 0)
    workload.go()
    collector = Collector("-p", workload.pid, "-w", "4M")
    wait_until(lambda: collector.status()["evicted_records"] > 50000, "more than fits has come")
    first = memory_of(collector.pid)[0]
    status = collector.status()
    evicted = status["evicted_records"]
    assert status["window_bytes"] <= 4 << 20, "%d bytes in the window" % status["window_bytes"]
    wait_until(lambda: collector.status()["evicted_records"] > 3 * evicted, "much more than fits has come")
    status = collector.status()
    assert status["window_bytes"] <= 4 << 20, "%d bytes in the window" % status["window_bytes"]
    assert memory_of(collector.pid)[0] < first + 4000, "memory grows from %d to %d kB" % (
        first, memory_of(collector.pid)[0])
    collector.stop()
    unharmed(workload)


# ---- as a service ----

@cases("SIGINT", "SIGTERM", "SIGHUP")
def test_signals(name):
    """Each ends it with 0, and all probes are off."""
    workload = endless()
    collector = Collector("-p", workload.pid)
    assert has_probes(workload.pid), "there is nothing to take off"
    collector.stop(getattr(signal, name))
    assert not has_probes(workload.pid), "probes are left"
    unharmed(workload)


def test_messages_that_nobody_reads():
    """A pipe that is full holds nothing up."""
    workload = endless()
    name = "e2e-" + secrets.token_hex(6)
    reading, writing = os.pipe()
    child = subprocess.Popen([need(XPUTRACE, "collector"), "continuous", "start", "-p", str(workload.pid), "-o",
                              os.path.join(scratch(), "saved"), "--instance", name], stderr=writing)
    try:
        wait_until(lambda: os.path.exists(socket_path(name)) and has_probes(workload.pid), "it runs")
        os.set_blocking(writing, False)
        with Connection(name) as connection:
            while not connection.ask("status")["window_inferences"]:
                time.sleep(0.01)
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(writing, b"x" * 100)
            os.set_blocking(writing, True)
            for _ in range(5):
                assert connection.ask("save", inferences=1)["ok"]
        child.send_signal(signal.SIGTERM)
        assert child.wait(TIMEOUT) == 0
    finally:
        child.kill()
        child.wait()
        os.close(reading)
        os.close(writing)
    unharmed(workload)


def background(workload, name, folder, *arguments, **options):
    return continuous("start", "-p", workload.pid, "-o", folder, "--background", *arguments, name=name, **options)


def test_background():
    """It is on its own: no terminal, a session of its own, streams that lead nowhere; its manager is notified."""
    workload = endless()
    name, folder = "e2e-" + secrets.token_hex(6), os.path.join(scratch(), "saved")
    manager_path = os.path.join(scratch(), "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(manager_path)
        manager.settimeout(TIMEOUT)
        expect(background(workload, name, folder, env=dict(os.environ, NOTIFY_SOCKET=manager_path)), 0)
        assert manager.recv(100) == b"READY=1"
    with Connection(name) as connection:
        pid = connection.ask("status")["pid"]
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        _, _, _, session, terminal = file.read().rpartition(") ")[2].split()[:5]
    assert int(session) == pid and terminal == "0", "session %s, terminal %s" % (session, terminal)
    assert {os.readlink("/proc/%d/fd/%d" % (pid, stream)) for stream in range(3)} == {"/dev/null"}
    expect(background(workload, "e2e-" + secrets.token_hex(6), folder), 1, "profiled continuously already")
    expect(continuous("save", name=name), 0)
    expect(continuous("stop", name=name), 0)
    wait_until(lambda: not os.path.exists("/proc/%d" % pid), "it has ended")
    check_folder(folder)
    unharmed(workload)


def test_background_fails():
    """What keeps it from running is the status of the start."""
    workload = endless()
    name, folder = "e2e-" + secrets.token_hex(6), os.path.join(scratch(), "saved")
    expect(background(workload, name, "/nonexistent/saved"), 1, "'nonexistent' does not exist: create it first")
    expect(background(workload, name, folder, "--save-on", "error", "--after", "60s"), 2, "window")
    expect(continuous("start", "--background", "-o", folder, "--", "/nonexistent/program", name=name), 1, "nonexistent")
    assert not os.path.exists(socket_path(name))
    unharmed(workload)


def test_terminal_is_closed():
    """One in the background goes on; its terminal's end is not its own."""
    workload = endless()
    name, folder = "e2e-" + secrets.token_hex(6), os.path.join(scratch(), "saved")
    child, terminal = pty.fork()
    if not child:
        os.execv(XPUTRACE, [XPUTRACE, "continuous", "start", "-p", str(workload.pid), "-o", folder, "--instance", name,
                            "--background"])
    text = b""
    with contextlib.suppress(OSError):
        while True:
            text += os.read(terminal, 4096)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, text
    os.close(terminal)
    with Connection(name) as connection:
        assert connection.ask("save")["ok"]
    expect(continuous("stop", name=name), 0)
    unharmed(workload)


def test_start_in_background_is_interrupted():
    """Whoever kills the one that waits gets no collector."""
    workload = endless()
    name, folder = "e2e-" + secrets.token_hex(6), os.path.join(scratch(), "saved")
    starter = Process([need(XPUTRACE, "collector"), "continuous", "start", "-p", str(workload.pid), "-o", folder,
                       "--background", "--instance", name])
    wait_until(lambda: children_of(starter.pid) or starter.child.poll() is not None, "it has forked")
    started = children_of(starter.pid)
    if starter.child.poll() is None:
        starter.signal(signal.SIGINT)
    if starter.wait() == 0:
        expect(continuous("stop", name=name), 0)
        raise Skip("it had started already")
    wait_until(lambda: not any(os.path.exists("/proc/%d" % pid) for pid in started), "it has ended, too")
    for path in (socket_path(name), socket_path(name) + ".lock"):  # the next of the name would take them over
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    unharmed(workload)


def children_of(pid):
    listed = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True,
                            check=False).stdout
    return [int(line) for line in listed.split()]


def test_streams_that_are_closed():
    """Started without standard streams: what it opens does not become one of them."""
    workload = endless()
    name, folder = "e2e-" + secrets.token_hex(6), os.path.join(scratch(), "saved")
    child = subprocess.Popen(["sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh", XPUTRACE, "continuous", "start", "-p",
                              str(workload.pid), "-o", folder, "--instance", name])
    wait_until(lambda: os.path.exists(socket_path(name)) and has_probes(workload.pid), "it runs")
    with Connection(name) as connection:
        for _ in range(3):
            assert connection.ask("save")["ok"]
        assert connection.ask("status")["lost"] == 0
    child.send_signal(signal.SIGTERM)
    assert child.wait(TIMEOUT) == 0
    losses = [trace.losses() for trace in map(report, paths_in(folder))]
    assert len(losses) == 3 and all(set(one) <= {"unpaired"} for one in losses), losses  # it runs while that is saved
    unharmed(workload)


def paths_in(folder):
    return [os.path.join(folder, file) for file in os.listdir(folder)]
