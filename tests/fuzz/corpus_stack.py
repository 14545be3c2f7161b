#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the seeds of the fuzz target of stacks, in tests/fuzz/corpus/stack: a copy of a stack, what the process has in memory, names of
made code and frames of each Python that is known, at the places where the target reads them. Run again only when a layout changes."""
import os
import struct

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "stack")
COPY, DEBUG, CODE, TEXTS, NAMES, PYTHON = 472, 512, 1024, 1536, 3072, 3584  # offsets; the first is the copy's own size
REGISTERS, STACK_POINTER, FRAME_POINTER, PROGRAM_COUNTER = 33, 7, 6, 16
MADE = 0x20000000  # as in fuzz_stack.c
STACK = 0x7ffc00001000
FIRST = 9  # minor of the first Python; the first byte of an input is that of another
NAMES_TEXT = b"""
20000000 40 LazyCompile:*work file:///srv/main.mjs:68:12
20000040 40 JS:~ :1:1
20000080 40 plain
not a line
20000020 8 Script:
"""


def text(value, width, old):
    data = value.encode({1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[width])
    ascii_only = width == 1 and value.isascii()
    place = (48 if old else 40) if ascii_only else (72 if old else 56)
    head = struct.pack("<QQQQI", 1, 0, len(value), 0, width << 2 | ascii_only << 6)
    return head.ljust(place, b"\0") + data


# (code, instruction, owner) in a frame; (first line, file name, name, lines, adaptive code) in a code object
LAYOUTS = {9: ((32, 104, 0), (40, 104, 112, 120, 0)), 10: ((32, 96, 0), (40, 104, 112, 120, 0)), 11: ((32, 56, 68), (72, 112, 128, 136, 184)),
           12: ((0, 56, 70), (68, 112, 128, 136, 192)), 13: ((0, 56, 70), (68, 112, 128, 136, 200)), 14: ((0, 56, 74), (68, 112, 128, 136, 208))}
LINES = {9: bytes((4, 1, 6, 2)), 10: bytes((4, 1, 6, 128, 8, 2))}
LOCATIONS = bytes((0x80 | 13 << 3 | 1, 66, 1, 0x80 | 11 << 3, 3, 4, 0x80 | 15 << 3 | 2, 0x80 | 7))
SECTIONS = {13: (13, 13, 9, 6, 10), 14: (13, 16, 9, 8, 11)}  # words of runtime, interpreter, thread, frame, code


def debug(minor):
    (code, instruction, owner), (first, file, name, lines, adaptive) = LAYOUTS[minor]
    sections = [[0] * words for words in SECTIONS[minor]]
    sections[0][2], sections[1][2], sections[1][3], sections[2][2], sections[2][4], sections[2][5] = 40, 8, 72, 8, 56, 136
    sections[3][1:4], sections[3][5] = [8, code, instruction], owner
    sections[4][1], sections[4][3:6], sections[4][9] = file, [name, lines, first], adaptive
    return b"xdebugpy" + struct.pack("<QQ", minor, 0) + b"".join(struct.pack("<%dQ" % len(one), *one) for one in sections)


def seed(minor, widths, stack=b"", trampoline=0, count=4):
    (code, instruction, owner), (first, file, name, lines, adaptive) = LAYOUTS[minor]
    old = minor < 12
    data = bytearray(PYTHON)
    registers = [0] * REGISTERS
    registers[STACK_POINTER], registers[FRAME_POINTER] = STACK, STACK + 16
    registers[PROGRAM_COUNTER] = MADE + 4
    head = struct.pack("<HHIQQQQQQIHHIIQ", minor - FIRST, 0, 1, 0, 5, 0, 0, trampoline, STACK, 7, 0, 1, len(stack), 2 if stack else 1, 0)
    data[:COPY] = (head + struct.pack("<%dQ" % REGISTERS, *registers) + struct.pack("<QQ", STACK + 8, MADE + 80)).ljust(COPY, b"\0")
    data[COPY:COPY + len(stack)] = stack
    if minor in SECTIONS:
        data[DEBUG:DEBUG + len(debug(minor))] = debug(minor)
    at = TEXTS
    for place, value in ((name, text("näme" if widths[0] == 1 else "\u540d\u524d", widths[0], old)), (file, text("/srv/main.py", widths[1], old)),
                         (lines, struct.pack("<QQQQ", 1, 0, len(LINES.get(minor, LOCATIONS)), 0) + LINES.get(minor, LOCATIONS))):
        data[at:at + len(value)] = value
        struct.pack_into("<Q", data, CODE + place, at)
        at += (len(value) + 7) & ~7
    assert at <= NAMES
    struct.pack_into("<I", data, CODE + first, 40)
    data[NAMES:NAMES + len(NAMES_TEXT)] = NAMES_TEXT
    frames = b""
    for number in range(count):
        frame = bytearray(120)
        struct.pack_into("<Q", frame, code, CODE)
        struct.pack_into("<Q", frame, instruction, 2 * number + (CODE + adaptive if minor >= 11 else 0))
        if owner and number == 3:
            frame[owner] = 3
        frames += struct.pack("<Q", STACK + 8 * number) + bytes(frame)
    python = struct.pack("<HHIQIIII", 0, 0, 1, 0, 7, count, 0, 0) + frames
    return bytes(data) + python.ljust(PYTHON, b"\0")


os.makedirs(FOLDER, exist_ok=True)
SEEDS = {"python%d" % minor: seed(minor, widths) for minor, widths in
         ((9, (1, 1)), (10, (2, 1)), (11, (4, 2)), (12, (1, 4)), (13, (2, 1)), (14, (1, 1)))}
# Code without tables, whose caller is found on the stack; a return address that the kernel has replaced.
SEEDS["made"] = seed(12, (1, 1), struct.pack("<5Q", 0x4242, MADE + 68, STACK + 32, MADE + 130, 0), 0x4242, 0)
# In the target itself, as the second byte says.
SEEDS["own_code"] = seed(12, (1, 1), struct.pack("<5Q", 0, 0, STACK + 32, MADE + 130, 0), 0, 0)
SEEDS["own_code"] = SEEDS["own_code"][:1] + b"\1" + SEEDS["own_code"][2:]
for key, value in SEEDS.items():
    with open(os.path.join(FOLDER, key), "wb") as out:
        out.write(value)
    print(key, len(value))
