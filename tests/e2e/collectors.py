# SPDX-License-Identifier: BSD-2-Clause
"""xputrace continuous for tests: a collector with a name and a folder of its own, and its socket."""

import json
import os
import re
import secrets
import signal
import socket

from harness import (SLOW, TIMEOUT, XPUTRACE, Process, Trace, need, process_state, run, scratch, standin,
                     wait_until)

SOCKETS = "/run/xputrace"
UNLIMITED = ("--budget", "none")  # all that the workload does is to be recorded


def socket_path(name):
    return os.path.join(SOCKETS, name + ".sock")


class Connection:
    """One connection to a collector; speaks the protocol by itself, without the command."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect(socket_path(name))
        self.id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, what, **members):
        self.id += 1
        self.socket.send(json.dumps(dict(members, xputrace=2, id=self.id, do=what)).encode())

    def read(self):
        packet = self.socket.recv(1 << 16)
        return json.loads(packet) if packet else None

    def ask(self, what, **members):
        """The answer; None: the other side has closed."""
        self.send(what, **members)
        return self.read()


def continuous(word, *arguments, name=None, prefix=(), **options):
    """xputrace continuous WORD, to its end."""
    words = list(prefix) + [need(XPUTRACE, "collector"), "continuous", word] + [str(one) for one in arguments]
    return run(words + (["--instance", name] if name else []), **options)


class Collector(Process):
    """One that runs, once it has been made, unless wait is false."""

    def __init__(self, *arguments, name=None, output=None, prefix=(), wait=True, budget=UNLIMITED, **options):
        self.name = name or "e2e-" + secrets.token_hex(6)
        self.output = output or os.path.join(scratch(), "saved")
        words = [need(XPUTRACE, "collector"), "continuous", "start", "-o", self.output, "--instance", self.name]
        super().__init__(list(prefix) + words + list(budget) + [str(one) for one in arguments], **options)
        if wait:
            self.wait_line("stderr", "recording into memory")

    def ask(self, what, **members):
        with Connection(self.name) as connection:
            return connection.ask(what, **members)

    def save(self, **members):
        """Path of a file that was saved."""
        answer = self.ask("save", **members)
        assert answer and answer["ok"], "not saved: %s\n%s" % (answer, self.stderr)
        return answer["path"]

    def status(self):
        return self.ask("status")

    def wait_calls(self):
        wait_until(lambda: self.status()["window_inferences"], "inferences in the window")

    def stop(self, number=signal.SIGINT):
        self.signal(number)
        status = self.wait()
        assert status == 0, "ended with %d:\n%s" % (status, self.stderr)
        self.check_gone()

    def check_gone(self):
        assert not os.path.exists(socket_path(self.name)), "its socket is left"
        check_folder(self.output)

    def traces(self):
        return [report(os.path.join(self.output, file)) for file in sorted(os.listdir(self.output))]


def check_folder(folder):
    """No half and no hidden file."""
    for file in os.listdir(folder):
        assert re.fullmatch(r"[^.].*\.xpt", file), "there is a file '%s'" % file


def report(path):
    """The trace of a saved file."""
    output = os.path.join(scratch(), "trace.json")
    result = run([XPUTRACE, "report", path, "-o", output])
    assert result.status == 0, "%s: %s" % (path, result.stderr)
    trace = Trace(output)
    trace.check()
    return trace


def code_of(pid, library):
    """The executable pages of a library as the process has them, and as its file has them."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as file:
        lines = [line.split(None, 5) for line in file if library in line and " r-xp " in line]
    assert lines, "%s is not in process %d" % (library, pid)
    addresses, _, offset, _, _, path = lines[0]
    start, end = (int(address, 16) for address in addresses.split("-"))
    with open("/proc/%d/mem" % pid, "rb") as memory, open(path.strip(), "rb") as file:
        memory.seek(start)
        file.seek(int(offset, 16))
        there = file.read(end - start)
        return memory.read(end - start)[:len(there)], there


def has_probes(pid, library="libnrt"):
    """Whether anything was written into its code."""
    mine, original = code_of(pid, library)
    return mine != original


# ---- targets and messages ----

RATE = round(500 / SLOW)


def endless(*options, rate=RATE):
    """A workload that runs until it is asked to stop."""
    workload = standin("nrt", "--calls", 0, "--rate", rate, *options)
    workload.go()
    return workload


def unharmed(workload):
    """It has run on, nothing is left in its code, and it ends as if nothing had been."""
    wait_until(lambda: not has_probes(workload.pid), "no probes in the target", 10)
    assert process_state(workload.pid) in ("S", "R"), "the target is in state " + process_state(workload.pid)
    results = workload.stop()
    assert results and results[0]["libraries"][0]["calls"], "it has done nothing"


def expect(result, status, *words):
    assert result.status == status, "status %d, expected %d:\n%s" % (result.status, status, result.stderr)
    for word in words:
        assert word.lower() in result.stderr.lower(), "\"%s\" is not in: %s" % (word, result.stderr)
