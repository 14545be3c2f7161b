#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes a virtio GPU work from user space: drive_gpu.py NODE BUFFERS MOVES [wait]

Each buffer that is made and destroyed, and each move of the mouse pointer, makes the driver queue some commands in the
calling thread, on its control and on its cursor queue. The device answers later, in another thread of the kernel.
Prints {"at": "begin", "pid", "tid"} before the first buffer, {"at": "first"} after it, and {"at": "end", "time"}
(CLOCK_MONOTONIC, ns) when it has closed the node and all answers must have come; each time it then waits for a line, if
that was asked for. Moves need the screen for itself; without any, it is left to others.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import struct
import sys
import threading
import time

DROP_MASTER = 0x641F
GET_RESOURCES = 0xC04064A0
SET_CURSOR = 0xC01C64A3
CREATE_DUMB = 0xC02064B2
DESTROY_DUMB = 0xC00464B4
RESOURCES = struct.Struct("=4Q8I")  # addresses of framebuffers, screens...; how many of each; smallest and largest
DUMB = struct.Struct("=6IQ")  # height, width, bits, flags; out: handle, pitch, size
CURSOR = struct.Struct("=2I2i3I")  # what to set, screen, x, y, width, height, handle of its picture
PICTURE, PLACE = 1, 2
SIDE = 64  # of a pointer's picture: the device takes no other
SETTLE_SECONDS = 0.5  # for the last answers


def create(node):
    buffer = bytearray(DUMB.pack(SIDE, SIDE, 32, 0, 0, 0, 0))
    fcntl.ioctl(node, CREATE_DUMB, buffer)
    return DUMB.unpack(buffer)[4]


def destroy(node, handle):
    fcntl.ioctl(node, DESTROY_DUMB, struct.pack("=I", handle))


def first_screen(node):
    screen = ctypes.c_uint32()
    fcntl.ioctl(node, GET_RESOURCES, bytearray(RESOURCES.pack(0, ctypes.addressof(screen), 0, 0, 0, 1, *[0] * 6)))
    return screen.value


def move(node, times):
    """Shows a pointer, moves it, hides it."""
    screen, picture = first_screen(node), create(node)
    fcntl.ioctl(node, SET_CURSOR, bytearray(CURSOR.pack(PICTURE, screen, 0, 0, SIDE, SIDE, picture)))
    for place in range(times):
        fcntl.ioctl(node, SET_CURSOR, bytearray(CURSOR.pack(PLACE, screen, place, place, 0, 0, 0)))
    fcntl.ioctl(node, SET_CURSOR, bytearray(CURSOR.pack(PICTURE, screen, 0, 0, 0, 0, 0)))
    destroy(node, picture)


def leave_screen(node):
    """Whoever opens the node first has the screen; others are informed that they don't."""
    with contextlib.suppress(OSError):
        fcntl.ioctl(node, DROP_MASTER)


def tell(place, **fields):
    print(json.dumps(dict(fields, at=place)), flush=True)
    if sys.argv[4:] == ["wait"]:
        sys.stdin.readline()


def main():
    node, buffers, moves = os.open(sys.argv[1], os.O_RDWR | os.O_CLOEXEC), int(sys.argv[2]), int(sys.argv[3])
    if not moves:
        leave_screen(node)
    tell("begin", pid=os.getpid(), tid=threading.get_native_id())
    for i in range(buffers):
        destroy(node, create(node))
        if not i:
            tell("first")
    if moves:
        move(node, moves)
    os.close(node)
    time.sleep(SETTLE_SECONDS)
    tell("end", time=time.clock_gettime_ns(time.CLOCK_MONOTONIC))


if __name__ == "__main__":
    main()
