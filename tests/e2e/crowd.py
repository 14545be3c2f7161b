# SPDX-License-Identifier: BSD-2-Clause
"""1,000 clients of one socket that mean no good. Arguments: "tcp PORT", "stream PATH" or "seqpacket PATH", and how many. Until standard
input ends; then what they did is printed, as JSON."""

import array
import collections
import contextlib
import errno
import json
import os
import resource
import select
import socket
import sys

PAUSE = 0.2  # seconds between two rounds, each of which connects again whoever was cut off
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
ASKS = b'{"xputrace":2,"id":1,"do":"status"}'
GARBAGE = (b"\0\xff\xfe\r\n\r\n", b"{" * 5000, b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(500), b"GET " + b"/" * 60000,
           b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n")


def descriptors(count):
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * count))]


class Client:
    """Of one of seven kinds, by its number; connects again when it was cut off."""

    def __init__(self, number, kind, address):
        self.number, self.family, self.address = number, kind, address
        self.socket, self.sent = None, 0

    def connect(self, counts):
        family = socket.AF_INET if self.family == "tcp" else socket.AF_UNIX
        self.socket = socket.socket(family, socket.SOCK_SEQPACKET if self.family == "seqpacket" else socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.sent = 0
        error = self.socket.connect_ex(self.address)
        counts["connected" if error in (0, errno.EINPROGRESS) else "refused"] += 1
        if error not in (0, errno.EINPROGRESS):
            self.close()

    def close(self):
        self.socket.close()
        self.socket = None

    def turn(self, counts):
        if not self.socket:
            self.connect(counts)
        if not self.socket:
            return
        try:
            self.act()
            counts["bytes"] += len(self.socket.recv(4096))
            if self.number % 7 != 6:  # that one has asked, and reads nothing more
                while True:
                    part = self.socket.recv(1 << 16)
                    counts["bytes"] += len(part)
                    if not part:
                        counts["cut off"] += 1
                        self.close()
                        break
        except BlockingIOError:
            pass
        except OSError:
            counts["cut off"] += 1
            self.close()

    def act(self):
        kind, request = self.number % 7, ASKS if self.family == "seqpacket" else REQUEST
        if kind == 1:  # half of it
            self.once(request[:len(request) // 2])
        elif kind == 2:  # byte after byte
            self.socket.send(request[self.sent % len(request):][:1])
            self.sent += 1
        elif kind == 3:
            self.once(GARBAGE[self.number // 7 % len(GARBAGE)])
        elif kind == 4:  # too much, for ever
            self.socket.send(b"X: " + b"y" * 100000)
        elif kind == 5 and self.family != "tcp":
            for _ in range(3):
                self.socket.sendmsg([request], descriptors(200))
        elif kind == 6:
            self.once(request)

    def once(self, data):
        if not self.sent:
            self.sent = self.socket.send(data)


def main():
    kind, where, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, count + 100))
    clients = [Client(number, kind, ("127.0.0.1", int(where)) if kind == "tcp" else where) for number in range(count)]
    counts = collections.Counter()
    while True:
        for client in clients:
            with contextlib.suppress(BlockingIOError):
                client.turn(counts)
        if not counts["rounds"]:
            print("ready", flush=True)
        counts["rounds"] += 1
        counts["open most"] = max(counts["open most"], sum(client.socket is not None for client in clients))
        if select.select([sys.stdin], [], [], PAUSE)[0] and not os.read(0, 1):
            break
    print(json.dumps(counts))


main()
