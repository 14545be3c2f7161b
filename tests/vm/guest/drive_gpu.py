#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes a virtio GPU work from user space: drive_gpu.py NODE TIMES

Each time, a buffer that the device knows is made and destroyed, for which the driver queues some commands in the calling
thread; the answers come in an interrupt. Prints its own thread number, and when it began and ended (CLOCK_MONOTONIC, ns).
"""

import fcntl
import json
import os
import struct
import sys
import threading
import time

CREATE_DUMB = 0xC02064B2
DESTROY_DUMB = 0xC00464B4
DUMB = struct.Struct("=IIIIIIQ")  # height, width, bits, flags; out: handle, pitch, size


def main():
    node, times = os.open(sys.argv[1], os.O_RDWR | os.O_CLOEXEC), int(sys.argv[2])
    begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    for _ in range(times):
        buffer = bytearray(DUMB.pack(64, 64, 32, 0, 0, 0, 0))
        fcntl.ioctl(node, CREATE_DUMB, buffer)
        fcntl.ioctl(node, DESTROY_DUMB, struct.pack("=I", DUMB.unpack(buffer)[4]))
    time.sleep(0.2)  # for the last answers
    ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    print(json.dumps({"tid": threading.get_native_id(), "begun": begun, "ended": ended}), flush=True)


if __name__ == "__main__":
    main()
