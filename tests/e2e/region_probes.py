# SPDX-License-Identifier: BSD-2-Clause
"""The static probes of <xputrace/region.h>: what a file says of them, and the kernel's own uprobes on them."""

import contextlib
import os
import re
import shutil
import struct
import subprocess

from harness import Skip, tracefs

PROBES = ("region_begin", "region_end")


class Note:
    """A probe as readelf shows it; places are virtual addresses."""

    def __init__(self, name, location, semaphore, arguments):
        self.name, self.arguments = name, arguments
        self.location, self.semaphore = int(location, 16), int(semaphore, 16)


def readelf(path, *options):
    if not shutil.which("readelf"):
        raise Skip("readelf is not installed")
    return subprocess.run(["readelf", "--wide", *options, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True, text=True).stdout


def notes_of(path):
    found = re.findall(r"Provider: xputrace\s+Name: (\w+)\s+Location: 0x(\w+), Base: 0x\w+, Semaphore: 0x(\w+)\s+"
                       r"Arguments: (.*)", readelf(path, "--notes"))
    return [Note(*fields) for fields in found]


def file_offset(path, address):
    for line in readelf(path, "--segments").splitlines():
        words = line.split()
        if words[:1] == ["LOAD"]:
            offset, start, size = int(words[1], 16), int(words[2], 16), int(words[4], 16)
            if start <= address < start + size:
                return address - start + offset
    raise AssertionError("%s: no bytes of the file at 0x%x" % (path, address))


def section_of(path, address):
    for name, start, size in re.findall(r"\] (\S+)\s+PROGBITS\s+(\w+) \w+ (\w+)", readelf(path, "--sections")):
        if int(start, 16) and int(start, 16) <= address < int(start, 16) + int(size, 16):
            return name
    return None


def write(path, text):
    """Adds to a list of the kernel's, which cannot be sought in."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


class Probes:
    """The kernel's uprobes on the notes of a file, with its semaphore: hits, and what the arguments were.

    places: (name, address, semaphore's address or None) instead of those of the notes.
    """

    def __init__(self, path, places=None):
        self.path = path
        self.places = places or [(note.name, note.location, note.semaphore) for note in notes_of(path)]
        self.group = "xptregion%d" % os.getpid()
        self.events = []
        self.instance = os.path.join(tracefs(), "instances", self.group)
        self.first, self.second = ("%x0", "%x1") if os.uname().machine == "aarch64" else ("%di", "%si")

    def __enter__(self):
        if os.geteuid() or not os.path.exists(tracefs() + "/uprobe_events"):
            raise Skip("needs root, and a kernel with uprobe_events")
        for number, (name, address, semaphore) in enumerate(self.places):
            counter = "(0x%x)" % file_offset(self.path, semaphore) if semaphore else ""
            write(tracefs() + "/uprobe_events", "p:%s/%s_%d %s:0x%x%s region=%s:x64 name=+0(%s):string\n" % (
                self.group, name, number, self.path, file_offset(self.path, address), counter, self.first, self.second))
            self.events.append("%s_%d" % (name, number))
        os.mkdir(self.instance)
        write(os.path.join(self.instance, "events", self.group, "enable"), "1")
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            write(os.path.join(self.instance, "events", self.group, "enable"), "0")
        with contextlib.suppress(OSError):
            os.rmdir(self.instance)
        for event in self.events:
            with contextlib.suppress(OSError):
                write(tracefs() + "/uprobe_events", "-:%s/%s\n" % (self.group, event))

    def hits(self):
        """How often each probe was met, wherever the file has it."""
        found = dict.fromkeys((name for name, _, _ in self.places), 0)
        with open(tracefs() + "/uprobe_profile", encoding="utf-8") as file:
            for path, event, count in (line.split()[:3] for line in file):
                if path == self.path and event in self.events:
                    found[event.rpartition("_")[0]] += int(count)
        return found

    def trace(self):
        with open(os.path.join(self.instance, "trace"), encoding="utf-8") as file:
            return file.read()


def semaphore_in(pid, path):
    """The semaphore's value in the memory of a process."""
    address = notes_of(path)[0].semaphore
    with open("/proc/%d/maps" % pid, encoding="utf-8") as file:
        base = min(int(line.split("-")[0], 16) for line in file if line.rstrip().endswith(path))
    with open("/proc/%d/mem" % pid, "rb") as file:
        file.seek(base + address)
        return struct.unpack("<H", file.read(2))[0]
