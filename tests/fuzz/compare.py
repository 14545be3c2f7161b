#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is read from ELF files, against binutils: segments, sections, build ids and functions as readelf has them, and names of types as
c++filt has them.

    compare.py PROGRAM MUTATIONS [SEED [LIBRARIES]]     all libraries of this machine, or so many, and files that differ in a few bytes

PROGRAM is build/test-elf-read. A file that readelf complains of is not compared; one that is refused where readelf does not complain is
counted.
"""

import collections
import glob
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build")
BUILT = [path for pattern in ("npm*/**/linux/*/*.so*", "python/usr/lib/**/lib*.so*") for path in
         sorted(glob.glob(os.path.join(BUILD, pattern), recursive=True)) if not os.path.islink(path)]  # for names of types
FOLDERS = ("/usr/lib", "/usr/bin", "/usr/sbin", "/usr/local/lib", "/opt")
MACHINES = {62, 183}  # x86-64, AArch64
NAME_MAX = 63  # bytes of a section's name
BATCH = 50
NAMES_MAX = 100000
STRING = re.compile(rb"\0\*?((?:N|St|[1-9])[\w$.]{4,400})(?=\0)")  # of a type of a namespace or class
SEGMENT = re.compile(r"^  LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x\w+ (...) ", re.M)
SECTION = re.compile(r"^  \[ *\d+\] (.{17}\S*) (.+?) +[0-9a-f]{16} ([0-9a-f]{6,}) ([0-9a-f]{6,}) [0-9a-f]{2,} ", re.M)
ENTRY = r"(?:<[^>]*>: \w+|\S+)"  # a type or binding that has no name is in angle brackets
SYMBOL = re.compile(r"^ *\d+: ([0-9a-f]{16}) +(\w+) (%s) +%s +\S+ +(?:\[.*?\] +)?(bad section index\[ *\d+\]|\S+) ?(.*)$" % (ENTRY, ENTRY), re.M)


def is_elf(path):
    try:
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError:
        return False
    return len(head) == 64 and head[:6] == b"\x7fELF\x02\x01" and struct.unpack_from("<H", head, 18)[0] in MACHINES


def libraries():
    """Each file once."""
    seen = {}
    for folder in FOLDERS:
        for where, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(where, name)
                if "\n" not in path and os.path.isfile(path) and (".so" in name or os.access(path, os.X_OK)) and is_elf(path):
                    status = os.stat(path)
                    seen.setdefault((status.st_dev, status.st_ino), path)
    return sorted(seen.values())


def ours(program, paths):
    """Path to (error, kind to lines)."""
    said = subprocess.run([program, *paths], stdout=subprocess.PIPE, check=True).stdout.decode(errors="backslashreplace")
    found, lines = {}, None
    for line in said.split("\n"):
        kind, _, rest = line.partition(" ")
        if kind == "file":
            error, path = rest.split(" ", 1)
            lines = collections.defaultdict(list)
            found[path] = int(error), lines
        elif kind:
            lines[kind].append("".join(one if one >= " " else "^" + chr(ord(one) + 64) for one in rest))
    return found


def readelf(path):
    """Kind to lines as above; None: it complains."""
    said = subprocess.run(["readelf", "-W", "-l", "-S", "-n", "-s", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env={**os.environ, "LC_ALL": "C"})
    text = said.stdout.decode(errors="backslashreplace")
    if said.returncode or said.stderr or "<corrupt" in text or "<no-strings>" in text:
        return None
    size = os.path.getsize(path)
    lines = collections.defaultdict(list)
    lines["build_id"] = re.findall(r"Build ID: (\w+)", text)[:1] or [""]
    lines["extent"] = ["%x %x %x %d" % (int(offset, 16), int(length, 16), int(address, 16), "E" in flags)
                       for offset, address, length, flags in SEGMENT.findall(text)]
    for name, kind, offset, length in SECTION.findall(text.split("Program Headers:")[0]):
        offset, length = int(offset, 16), int(length, 16)
        if kind.strip() not in ("NOBITS", "NULL") and length and offset + length <= size:
            lines["section"].append("%x %x %s" % (offset, length, name.strip()[:NAME_MAX]))
    for address, length, kind, section, name in SYMBOL.findall(text):
        kind = "IFUNC" if kind == "<OS specific>: 10" else kind
        name = name.partition("@")[0]
        if kind in ("FUNC", "IFUNC") and section != "UND" and int(address, 16) and name:
            lines["function"].append("%x %x %d %s" % (int(address, 16), int(length, 0), kind == "IFUNC", name))
    return lines


class Totals(collections.Counter):
    def compare(self, path, found, name, kinds=("build_id", "extent", "section", "function")):
        error, lines = found
        expected = readelf(path)
        if expected is None:
            self["complained of"] += 1
            return True
        if error:
            self["refused"] += 1
            return True
        self["compared"] += 1
        good = True
        for kind in kinds:
            left, right = sorted(lines[kind]), sorted(expected[kind])
            self[kind] += len(right)
            if left != right:
                good = False
                print("%s: %s: %s here, %s of readelf" % (name, kind, sorted(set(left) - set(right))[:3] or len(left),
                                                          sorted(set(right) - set(left))[:3] or len(right)))
        return good


def tables(data):
    """Places of what readers go by: headers of segments; headers of sections, and the entries of symbol tables and notes."""
    segments, sections = struct.unpack_from("<QQ", data, 32)
    segment_count, _, section_count = struct.unpack_from("<HHH", data, 56)
    places = [(sections + 64 * i, 64) for i in range(section_count)]
    for i in range(section_count):
        kind, = struct.unpack_from("<I", data, sections + 64 * i + 4)
        offset, size = struct.unpack_from("<QQ", data, sections + 64 * i + 24)
        if kind in (2, 11):
            places += [(offset + at, 24) for at in range(0, size, 24)]
        elif kind == 7:
            places.append((offset, size))
    return [(segments + 56 * i, 56) for i in range(segment_count)], places


def mutated(data, random_):
    """A few bytes of such places are others; and what can be compared: build ids are read through segments here, through sections by readelf."""
    changed, which = bytearray(data), random_.randrange(4) > 0
    places = tables(data)[which]
    for _ in range(random_.randint(1, 3)):
        begin, length = random_.choice(places)
        at = begin + random_.randrange(length)
        changed[at] = random_.choice((0, 1, 0xff, changed[at] ^ 1 << random_.randrange(8), random_.randrange(256)))
    return bytes(changed), ("section", "function") if which else ("extent",)


def compare_libraries(program, paths, totals):
    good = True
    for at in range(0, len(paths), BATCH):
        found = ours(program, paths[at:at + BATCH])
        for path in paths[at:at + BATCH]:
            good &= totals.compare(path, found[path], path)
    return good


def compare_mutated(program, count, seed, totals):
    """Of the seeds of the fuzz target, which are small."""
    folder = os.path.join(HERE, "corpus", "elf")
    sources = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        for at in range(0, count, BATCH):
            names = {}
            for number in range(at, min(at + BATCH, count)):
                random_ = random.Random(seed + number)
                source = random_.choice(sources)
                path = os.path.join(scratch, "%d" % number)
                with open(source, "rb") as file:
                    data, kinds = mutated(file.read(), random_)
                with open(path, "wb") as out:
                    out.write(data)
                names[path] = "mutation %d of %s" % (seed + number, os.path.basename(source)), kinds
            found = ours(program, list(names))
            for path, (name, kinds) in names.items():
                good &= totals.compare(path, found[path], name, kinds)
                os.remove(path)
    return good


def type_names(path, strings):
    """Mangled names in a library's symbols of type information; strings: and what looks like one in its bytes, as stripped ones have them."""
    listed = subprocess.run(["nm", "-D", "--defined-only", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    names = {name.split("@")[0] for name in re.findall(r" _ZT[IS](\S+)", listed.decode(errors="replace"))}
    if strings:
        with open(path, "rb") as file:
            data = file.read()
        if b"__cxxabiv1" in data:
            names.update(name.decode() for name in STRING.findall(data))
    return names


def damaged(name, random_):
    """Another name: a character of it is gone, there twice, or one that names have."""
    at = random_.randrange(len(name))
    return name[:at] + random_.choice(("", 2 * name[at], random_.choice("NSIETLJKPRXZFADdpst_0123456789"))) + name[at + 1:]


def compare_types(program, paths, totals, strings):
    """Names of types in libraries, what they are cut to, and damaged ones."""
    names = set()
    for path in paths:
        names |= type_names(path, strings)
    random_ = random.Random(len(names))
    names = set(random_.sample(sorted(names), min(len(names), NAMES_MAX)))
    names |= {name[:random_.randrange(1, len(name))] for name in sorted(names) if len(name) > 1}
    if strings:
        names |= {damaged(name, random_) for name in sorted(names)}
    # An underscore begins symbols that are no types.
    names = sorted(name for name in names if name.isascii() and not name.startswith("_"))
    text = "".join(name + "\n" for name in names)
    left, right = (subprocess.run(words, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
                   for words in ([program, "-t"], ["c++filt", "-t"]))
    good = True
    for name, mine, theirs in zip(names, left, right, strict=True):
        totals["types"] += 1
        understood = theirs != name
        if understood and not mine:
            totals["types refused"] += 1
        elif mine != (theirs if understood else "") and not (mine and mine == name):
            good = False
            print("%s: %r here, %r of c++filt" % (name, mine, theirs))
    return good


def main():
    program, mutations = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    paths, good = libraries(), True
    cplusplus, few = paths + BUILT, len(sys.argv) > 4
    if few:
        cplusplus = [path for path in paths if os.path.basename(path).startswith("libstdc++.so")]
        paths = sorted(random.Random(seed).sample(paths, min(int(sys.argv[4]), len(paths))))
    for what, compare in (("libraries", lambda totals: compare_libraries(program, paths, totals)),
                          ("mutated", lambda totals: compare_mutated(program, mutations, seed, totals)),
                          ("types", lambda totals: compare_types(program, cplusplus, totals, not few))):
        totals = Totals()
        good &= compare(totals)
        print("%s: %s" % (what, ", ".join("%s %d" % pair for pair in totals.items())), flush=True)
    return good


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
