# SPDX-License-Identifier: BSD-2-Clause
"""Many clients at once on the sockets of a collector: idle, half-open, slow, malformed, oversized, with descriptors. Whoever asks in earnest
gets an answer meanwhile, and what they cost is bounded."""

import contextlib
import json
import os
import socket
import sys
import time

from collectors import Collector, Connection, endless, socket_path, unharmed
from harness import NOBODY, SLOW, Process, Skip, alone, cases, cpu_seconds, run, standin, wait_until
from test_agent import Agent, free_port, parse
from test_continuous_hostile_clients import memory_of

CROWD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "crowd.py")
MANY = 1000
LASTING = 3  # seconds
IN_TIME = 10 * SLOW  # seconds within which an answer comes; TCP may have to connect again after 1 and 3 s


class Crowd(Process):
    def __init__(self, *words, **options):
        super().__init__([sys.executable, CROWD, *map(str, words), str(MANY)], **options)
        self.wait_line("stdout", "ready")

    def end(self):
        self.child.stdin.close()
        assert self.wait() == 0, self.stderr
        return json.loads(self.stdout.splitlines()[-1])


def descriptors_of(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def connected(address):
    """Connects as clients do that wait: with a timeout of its own, a full queue of a Unix socket would be an error."""
    client = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    client.connect(address)
    client.settimeout(20)
    return client


def ask_meanwhile(pid, ask, connections):
    """Answers within their time, for a while; what it costs the collector meanwhile. Returns how many there were and the slowest, s."""
    before, open_before = memory_of(pid)[0], descriptors_of(pid)
    begun, used, answers, slowest, most = time.monotonic(), cpu_seconds(pid), 0, 0, 0
    while time.monotonic() < begun + LASTING * SLOW:
        asked = time.monotonic()
        ask()
        slowest = max(slowest, time.monotonic() - asked)
        most = max(most, descriptors_of(pid))
        answers += 1
        time.sleep(0.05)
    assert slowest < IN_TIME, "an answer took %.1f s" % slowest
    assert most <= open_before + connections, "descriptors: %d, then %d" % (open_before, most)
    grown = memory_of(pid)[0] - before
    assert grown < 10000, "memory grows by %d kB" % grown
    share = (cpu_seconds(pid) - used) / (time.monotonic() - begun)
    assert share < 1, "more than one CPU: %.2f" % share
    return answers, slowest


@alone("measures how soon answers come")
@cases("loopback", "unix")
def test_metrics(where):
    """1,000 clients of another user on the loopback address, or of the same on a Unix socket: scrapes are answered at once."""
    if os.geteuid():
        raise Skip("only root can start programs of others")
    idle, port = standin("nrt", "--calls", 1), free_port()
    agent = Agent("--budget", "none", pids=[idle.pid], listen=str(port) if where == "loopback" else None)

    def ask():
        while True:
            answer = b""
            with contextlib.suppress(ConnectionError), connected(("127.0.0.1", port) if where == "loopback" else agent.path) as client:
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
            if answer:  # else 192 others came between its connection and its request
                break
        head, _, body = answer.decode().partition("\r\n\r\n")
        assert "200 OK" in head and parse(body)["xputrace_process_start_time_seconds"], head

    ask()
    before = descriptors_of(agent.pid)
    crowd = Crowd(*(["tcp", port] if where == "loopback" else ["stream", agent.path]),
                  **({"user": NOBODY, "group": NOBODY, "extra_groups": []} if where == "loopback" else {}))
    answers, slowest = ask_meanwhile(agent.pid, ask, 260)
    counts = crowd.end()
    assert counts["connected"] >= MANY and counts["cut off"] > MANY / 2, counts
    wait_until(lambda: descriptors_of(agent.pid) <= before, "no descriptor is left of them")
    ask()
    print("%d answers, the slowest after %.3f s; %s" % (answers, slowest, counts))
    agent.stop()
    idle.kill()


@alone("measures how soon answers come")
def test_control():
    """1,000 clients of root on the control socket, and those of another user, who cannot even connect: it saves and loses nothing."""
    workload = endless()
    collector = Collector("-p", workload.pid)
    collector.wait_calls()
    path = socket_path(collector.name)
    if not os.geteuid():
        denied = run([sys.executable, "-c", "import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(sys.argv[1])",
                      path], user=NOBODY, group=NOBODY, extra_groups=[])
        assert denied.status and "PermissionError" in denied.stderr, denied.stderr
    before = descriptors_of(collector.pid)

    def ask():
        while True:
            try:
                with Connection(collector.name) as connection:
                    answer = connection.ask("status")
            except BlockingIOError:  # the queue is full
                time.sleep(0.001)
                continue
            except ConnectionError:
                continue
            if answer and answer["ok"]:
                break
            # It had been silent for longest: 64 others came between its connection and its request.
            assert answer is None or answer["error"] == "EBUSY", answer

    crowd = Crowd("seqpacket", path)
    answers, slowest = ask_meanwhile(collector.pid, ask, 80)
    counts = crowd.end()
    assert counts["connected"] >= MANY and counts["cut off"] > MANY / 2, counts
    wait_until(lambda: descriptors_of(collector.pid) <= before, "no descriptor is left of them")
    assert os.path.exists(collector.save(inferences=5))
    status = collector.status()
    assert status["ok"] and status["lost"] == 0, status
    print("%d answers, the slowest after %.3f s; %s" % (answers, slowest, counts))
    collector.stop()
    unharmed(workload)
