# SPDX-License-Identifier: BSD-2-Clause
"""A file system in user space (FUSE) that answers until it is asked to hang: as one on a server that has gone.

It keeps what is written in memory and knows one folder with files. It reads each request also while it hangs, so that whoever has
made it waits in the kernel where no signal gets through."""

import contextlib
import ctypes
import errno
import os
import select
import stat
import struct
import threading
import time

from harness import Skip, run, scratch

LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FLUSH, INIT, CREATE, BATCH_FORGET = (
    1, 2, 3, 4, 14, 15, 16, 17, 18, 25, 26, 35, 42)
ROOT = 1
VALID = 60  # seconds that the kernel may believe an answer
OPEN_DIRECT = 1  # writes come here at once, and not when the kernel writes its cache back


@contextlib.contextmanager
def below(layers, folder):
    """The folder as it is seen through this number of overlayfs, each mounted over the one before."""
    with contextlib.ExitStack() as mounted:
        for _ in range(layers):
            upper, empty = scratch(), scratch()
            result = run(["mount", "-t", "overlay", "none", "-o", "lowerdir=%s:%s" % (folder, empty), upper])
            if result.status:
                raise Skip("no overlayfs can be mounted here: " + result.stderr)
            mounted.callback(run, ["umount", "-l", upper])
            folder = upper
        yield folder


class HungFileSystem:
    """with HungFileSystem() as system: system.path is the folder, system.hang() makes every later request wait, or those of
    one kind. user: who it was mounted by, as the kernel says it."""

    def __init__(self, user=0):
        self._user = user
        self.path = scratch()
        self.files = {}  # name: number of the file
        self.content = {}  # number of the file: bytes
        self.asked = []  # operations since it hangs
        self._mapped = set()  # files that can be mapped
        self._made = int(time.time())
        self._hangs = threading.Event()
        self._operations = ()  # that hang; none: all
        self._ends, self._end = os.pipe()

    def __enter__(self):
        try:
            self._device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise Skip("there is no FUSE here") from error
        options = "fd=%d,rootmode=40000,user_id=%d,group_id=0,allow_other" % (self._device, self._user)
        library = ctypes.CDLL(None, use_errno=True)
        if library.mount(b"hung", self.path.encode(), b"fuse", 0, options.encode()):
            os.close(self._device)
            raise Skip("no FUSE can be mounted here: " + os.strerror(ctypes.get_errno()))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def end(self):
        """Ends the connection, and with it all requests that wait; they fail."""
        if self._thread:
            os.write(self._end, b"x")
            self._thread.join()
            os.close(self._device)
        self._thread = None

    def __exit__(self, *_):
        self.end()
        run(["umount", "-l", self.path])
        os.close(self._ends)
        os.close(self._end)

    def hang(self, *operations):
        self._operations = operations
        self._hangs.set()

    def add(self, name, content):
        """A file that can be mapped; its path."""
        self.files[name] = node = len(self.files) + 2
        self.content[node] = bytearray(content)
        self._mapped.add(node)
        return os.path.join(self.path, name)

    def read(self, name):
        """What is in the file, without asking the kernel."""
        return bytes(self.content[self.files[name]])

    def _serve(self):
        while True:
            readable, _, _ = select.select([self._device, self._ends], [], [])
            if self._ends in readable:
                return
            request = os.read(self._device, (1 << 20) + 4096)
            _, operation, unique, node = struct.unpack_from("<IIQQ", request)
            if operation in (FORGET, BATCH_FORGET):
                continue
            if self._hangs.is_set():
                self.asked.append(operation)
                if not self._operations or operation in self._operations:
                    continue
            try:
                answer, error = self._answer(operation, node, request[40:]), 0
            except OSError as failure:
                answer, error = b"", -failure.errno
            os.write(self._device, struct.pack("<IiQ", 16 + len(answer), error, unique) + answer)

    def _attributes(self, node):
        size = len(self.content.get(node, b""))
        mode = stat.S_IFDIR | 0o777 if node == ROOT else stat.S_IFREG | (0o777 if node in self._mapped else 0o666)
        made = self._made
        return struct.pack("<QQQQQQIIIIIIIIII", node, size, (size + 511) // 512, made, made, made, 0, 0, 0, mode, 1, 0, 0, 0,
                           4096, 0)

    def _entry(self, node):
        return struct.pack("<QQQQII", node, 0, VALID, VALID, 0, 0) + self._attributes(node)

    def _answer(self, operation, node, body):
        if operation == INIT:
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, 1 << 17, 0, 12, 10, 1 << 20, 1, 256, 0, 0)
        if operation == LOOKUP:
            name = body.rstrip(b"\0").decode()
            if name not in self.files:
                raise OSError(errno.ENOENT, name)
            return self._entry(self.files[name])
        if operation in (GETATTR, SETATTR):
            valid, = struct.unpack_from("<I", body)
            if operation == SETATTR and valid & 8:
                size, = struct.unpack_from("<Q", body, 16)
                del self.content[node][size:]
                self.content[node].extend(bytes(size - len(self.content[node])))
            return struct.pack("<QII", VALID, 0, 0) + self._attributes(node)
        if operation == CREATE:
            name = body[16:].rstrip(b"\0").decode()
            self.files[name] = node = len(self.files) + 2
            self.content[node] = bytearray()
            return self._entry(node) + struct.pack("<QII", node, OPEN_DIRECT, 0)
        if operation == OPEN:
            return struct.pack("<QII", node, 0 if node in self._mapped else OPEN_DIRECT, 0)
        if operation == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return bytes(self.content[node][offset:offset + size])
        if operation == WRITE:
            _, offset, size = struct.unpack_from("<QQI", body)
            content = self.content[node]
            content.extend(bytes(max(0, offset + size - len(content))))
            content[offset:offset + size] = body[40:40 + size]
            return struct.pack("<II", size, 0)
        if operation == STATFS:
            return bytes(80)
        if operation in (FLUSH, RELEASE):
            return b""
        raise OSError(errno.ENOSYS, "not needed")
