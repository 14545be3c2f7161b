# SPDX-License-Identifier: BSD-2-Clause
"""Counting events of a PMU by the system call itself, and what a PMU says of itself in sysfs."""

import ctypes
import fcntl
import os
import platform
import struct

DEVICES = "/sys/bus/event_source/devices"
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}[platform.machine()]
FORMAT_TIMES, FORMAT_GROUP = 3, 8  # of read_format: both times before the value; all of the group at once
ENABLE, DISABLE, RESET = 0x2400, 0x2401, 0x2403
WHOLE_GROUP = 1  # argument of these
CLOSE_ON_EXEC = 8
FLAGS = """disabled inherit pinned exclusive exclude_user exclude_kernel exclude_hv exclude_idle mmap comm freq
    inherit_stat enable_on_exec task watermark precise_ip precise_ip_high mmap_data sample_id_all exclude_host
    exclude_guest""".split()  # of perf_event_attr, from bit 0

_library = ctypes.CDLL(None, use_errno=True)


class Attributes(ctypes.Structure):
    """struct perf_event_attr, as far as kernels have had it since config2 was added."""

    _fields_ = [("type", ctypes.c_uint32), ("size", ctypes.c_uint32), ("config", ctypes.c_uint64),
                ("sample_period", ctypes.c_uint64), ("sample_type", ctypes.c_uint64),
                ("read_format", ctypes.c_uint64), ("flags", ctypes.c_uint64), ("wakeup_events", ctypes.c_uint32),
                ("bp_type", ctypes.c_uint32), ("config1", ctypes.c_uint64), ("config2", ctypes.c_uint64)]


class Pmu:
    """A PMU of the running kernel by its name."""

    def __init__(self, name):
        self.name = name
        self.folder = os.path.join(DEVICES, name)
        self.type = int(self.text("type"))

    def text(self, path):
        """What a file has, without the end of its line."""
        with open(os.path.join(self.folder, path), encoding="ascii") as file:
            text = file.read()
        assert text.endswith("\n") and "\n" not in text[:-1], (path, text)
        return text[:-1]

    def texts(self, folder):
        return {name: self.text(os.path.join(folder, name)) for name in os.listdir(os.path.join(self.folder, folder))}

    def place(self, term, value):
        """Bits of the configuration words that give a term of the format a value."""
        word, _, ranges = self.text("format/" + term).partition(":")
        bits = 0
        for each in ranges.split(","):
            first, _, last = each.partition("-")
            for bit in range(int(first), int(last or first) + 1):
                bits |= (value & 1) << bit
                value >>= 1
        assert not value, "the value of %s has more bits than there are" % term
        return word, bits

    def configuration(self, event, **terms):
        """The configuration words of a named event, with more terms, as perf's command line puts them together."""
        given = dict(pair.partition("=")[::2] for pair in self.text("events/" + event).split(","))
        given.update(terms)
        words = {}
        for term, value in given.items():
            word, bits = self.place(term, int(value, 0) if isinstance(value, str) else value)
            words[word] = words.get(word, 0) | bits
        return words


class Event:
    """An open event, stopped until it is enabled; together with others when it is given their leader.

    OSError: why the kernel refuses it. flags: names of FLAGS; fields: any of Attributes."""

    def __init__(self, pmu, cpu=0, pid=-1, leader=None, group=False, flags=("disabled",), **fields):
        self.descriptor = -1
        self.group = group
        attributes = Attributes(type=pmu.type, size=ctypes.sizeof(Attributes),
                                read_format=FORMAT_TIMES | (FORMAT_GROUP if group else 0),
                                flags=sum(1 << FLAGS.index(flag) for flag in flags), **fields)
        self.descriptor = _library.syscall(PERF_EVENT_OPEN, ctypes.byref(attributes), pid, cpu,
                                           leader.descriptor if leader else -1, ctypes.c_ulong(CLOSE_ON_EXEC))
        if self.descriptor < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def control(self, request):
        fcntl.ioctl(self.descriptor, request, WHOLE_GROUP if self.group else 0)

    def read(self):
        """Values, of the whole group if this is a leader who was opened for that; enabled and running time in ns."""
        data = os.read(self.descriptor, 4096)
        numbers = struct.unpack("=%dQ" % (len(data) // 8), data)
        if not self.group:
            value, enabled, running = numbers
            return (value,), enabled, running
        count, enabled, running, *values = numbers
        assert count == len(values), numbers
        return tuple(values), enabled, running

    @property
    def value(self):
        return self.read()[0][0]

    def close(self):
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1
