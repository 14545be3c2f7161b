# SPDX-License-Identifier: BSD-2-Clause
"""Executes a program from functions of many kinds: stacks.py LIBRARY SECONDS.

LIBRARY: libnrt.so.1. Prints one line with the stacks from which it was executed: qualified name (the name, before Python 3.11), file
and line of each function, the innermost first."""

import ctypes
import json
import os
import sys
import threading
import time

library = ctypes.CDLL(sys.argv[1])
model = ctypes.c_void_p()
stacks = set()


def note(frame):
    stack = []
    while frame:
        code = frame.f_code
        stack.append((getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno))
        frame = frame.f_back
    stacks.add(tuple(stack))


def execute():
    return note(sys._getframe()), library.nrt_execute(model, None, None)


class Model:
    def run(self, deep):
        if deep:
            return self.run(deep - 1)
        return execute()

    @staticmethod
    def größer(value):
        execute()
        return value


def generate():
    for value in range(2):
        execute()
        yield value


def work():
    served = Model()
    served.run(0)
    served.run(20)
    sorted([1, 2], key=lambda value: (execute(), value))
    list(generate())
    list(map(Model.größer, [1]))
    [execute()
     for _ in range(1)]


def serve():
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        work()


library.nrt_init(1, b"2.0", b"2.0")
library.nrt_load(ctypes.create_string_buffer(2048), ctypes.c_size_t(1024), 0, -1, ctypes.byref(model))
thread = threading.Thread(target=serve)
thread.start()
serve()
thread.join()
print(json.dumps({"runtime": "nrt", "pid": os.getpid(), "version": sys.version_info[:2], "stacks": sorted(stacks)}))
