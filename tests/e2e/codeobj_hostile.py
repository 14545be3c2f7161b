# SPDX-License-Identifier: BSD-2-Clause
"""A program that calls stand-in runtimes as no sane one does: each line of its input is a function and its arguments.

Numbers are passed as they are; text:... is decoded from %XX; bytes:SIZE is memory of that size, behind which nothing is
mapped; place:PATH is a descriptor of a file that cannot be read through it, open:PATH one that can; touch:PATH maps all of
the file and reads its first page, too, and mapped:PATH is where that is, later, far:PATH 1 MB behind; lazy:SIZE is memory whose pages come only when a thread of this very program is asked for them; handle: is room for one.
Prints {"ready"}, then {"result"} for each line.
"""

import ctypes
import fcntl
import json
import mmap
import os
import struct
import sys
import threading
import urllib.parse

PAGE = mmap.PAGESIZE
SYS_USERFAULTFD = 323 if os.uname().machine == "x86_64" else 282
UFFDIO_API, UFFDIO_REGISTER, UFFDIO_COPY = 0xc018aa3f, 0xc020aa00, 0xc028aa03

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.syscall.restype = ctypes.c_long
kept = []
mapped = {}  # path: address


def memory(size):
    """Address of bytes that end where nothing is mapped."""
    length = (size + PAGE - 1) // PAGE * PAGE
    start = libc.mmap(None, ctypes.c_size_t(length + PAGE), 3, 0x22, -1, ctypes.c_long(0))
    libc.munmap(ctypes.c_void_p(start + length), ctypes.c_size_t(PAGE))
    return start + length - size


def serve(faults):
    page = ctypes.create_string_buffer(b"\xa5" * PAGE, PAGE)
    while True:
        address = struct.unpack_from("<Q", os.read(faults, 32), 16)[0] // PAGE * PAGE
        fcntl.ioctl(faults, UFFDIO_COPY, struct.pack("<QQQQq", address, ctypes.addressof(page), PAGE, 0, 0))


def lazy(size):
    faults = libc.syscall(SYS_USERFAULTFD, os.O_CLOEXEC)
    if faults < 0:
        raise OSError(ctypes.get_errno(), "userfaultfd")
    start = memory(size)
    fcntl.ioctl(faults, UFFDIO_API, struct.pack("<QQQ", 0xaa, 0, 0))
    fcntl.ioctl(faults, UFFDIO_REGISTER, struct.pack("<QQQQ", start, size, 1, 0))
    threading.Thread(target=serve, args=(faults,), daemon=True).start()
    return start


def argument(word):
    kind, _, rest = word.partition(":")
    if kind == "text":
        kept.append(ctypes.create_string_buffer(urllib.parse.unquote_to_bytes(rest)))
        return kept[-1]
    if kind == "handle":
        kept.append((ctypes.c_uint64 * 64)())
        return kept[-1]
    if kind in ("bytes", "lazy"):
        return ctypes.c_void_p((memory if kind == "bytes" else lazy)(int(rest)))
    if kind == "place":
        return ctypes.c_int(os.open(rest, os.O_PATH))
    if kind in ("open", "touch"):
        file = os.open(rest, os.O_RDONLY)
        if kind == "touch":
            mapped[rest] = libc.mmap(None, ctypes.c_size_t(os.fstat(file).st_size), 5, 2, file, ctypes.c_long(0))
            ctypes.string_at(mapped[rest], 64)
        return ctypes.c_int(file)
    if kind == "far":
        return ctypes.c_void_p(mapped[rest] + (1 << 20))
    if kind == "mapped":
        return ctypes.c_void_p(mapped[rest])
    return ctypes.c_uint64(int(word, 0))


def main():
    libraries = [ctypes.CDLL(path) for path in sys.argv[1:]]
    print('{"ready":%d}' % os.getpid(), flush=True)
    for line in sys.stdin:
        name, *words = line.split()
        try:
            function = next(getattr(library, name) for library in libraries if hasattr(library, name))
            result = function(*[argument(word) for word in words])
        except OSError as error:
            result = str(error)
        print(json.dumps({"result": result}), flush=True)


if __name__ == "__main__":
    main()
