# SPDX-License-Identifier: BSD-2-Clause
"""Classes of a C++ library without symbols, from readelf's list of relocations and the library's bytes.

What xputrace finds is compared with this. The layout is that of the Itanium C++ ABI, where a class has an object of
type information (its kind, its name, its bases), and every virtual table begins with the distance to the start of the
object and the address of that type information. All of it is for the dynamic linker to relocate.
"""

import re
import struct
import subprocess

KINDS = {"17__class": 0, "20__si_class": 1, "21__vmi_class": 2}
VIRTUAL = 1  # flag of a base
PURE = "__cxa_pure_virtual"
OP_KERNEL, COMPUTE = "N11onnxruntime8OpKernelE", 2  # a class and a slot of its virtual table


def output(*words, text=None):
    return subprocess.run(words, input=text, stdout=subprocess.PIPE, check=True, text=True, errors="replace").stdout


class Library:
    """The addresses are those of the library before it is loaded."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self._bytes = file.read()
        self.segments = [tuple(int(word, 16) for word in match) for match in re.findall(
            r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", output("readelf", "-lW", path))]
        self._targets, self._symbols = {}, {}  # by the address that is relocated
        self._kinds = {}  # of classes, by the address of their type information
        for line in output("readelf", "-rW", path).splitlines():
            self._relocate(line.split())
        self._names = {address: self._name(address) for address in self._kinds}

    def _relocate(self, fields):
        if len(fields) == 4 and fields[2].endswith("_RELATIVE"):
            self._targets[int(fields[0], 16)] = int(fields[3], 16)
        elif len(fields) >= 7 and re.search(r"_(64|ABS64)$", fields[2]):
            place, value, symbol, addend = int(fields[0], 16), int(fields[3], 16), fields[4], int(fields[6], 16)
            self._symbols[place] = symbol.split("@")[0]
            if value:
                self._targets[place] = value + addend
            match = re.match(r"_ZTVN10__cxxabiv1(\d\d__\w+?)_type_infoE", symbol)
            if match and match[1] in KINDS:
                self._kinds[place] = KINDS[match[1]]

    def file_offset(self, address):
        return next(offset + address - start for offset, start, size in self.segments
                    if start <= address < start + size)

    def _number(self, address, form):
        return struct.unpack_from("<" + form, self._bytes, self.file_offset(address))[0]

    def _name(self, address):
        start = self.file_offset(self._targets[address + 8])
        return self._bytes[start:self._bytes.index(b"\0", start)].decode()

    def _bases(self, address):
        """Type information of each base, and where the base lies in the class; None for a virtual one."""
        if self._kinds[address] == 1:
            yield self._targets.get(address + 16), 0
        elif self._kinds[address] == 2:
            for place in range(address + 24, address + 24 + 16 * self._number(address + 20, "I"), 16):
                flags = self._number(place + 8, "q")
                yield self._targets.get(place), None if flags & VIRTUAL else flags >> 8

    def derived(self, base):
        """Type information of each class with the base of this mangled name, and where the base lies in it; None for
        what is or has a virtual base."""
        found = {address: 0 for address, name in self._names.items() if name == base}
        roots, size = set(found), -1
        while size != len(found):
            size = len(found)
            for address in self._kinds:
                for one, offset in self._bases(address):
                    if one in found:
                        lies = None if offset is None or found[one] is None else offset + found[one]
                        found.setdefault(address, lies)
        return {address: offset for address, offset in found.items() if address not in roots}

    def _tables(self):
        """By type information and distance, where each virtual table has its first function."""
        return {(target, -self._number(place - 8, "q")): place + 8 for place, target in self._targets.items()
                if target in self._kinds and place - 8 not in self._targets and place - 8 not in self._symbols}

    def methods(self, base, slot):
        """Readable name of each class that has a function in this slot, its own or a base's, and the address of it."""
        tables, found = self._tables(), {}
        for address, offset in self.derived(base).items():
            place = tables.get((address, offset), -8 * slot) + 8 * slot
            if place and self._symbols.get(place) != PURE and place in self._targets:
                found[self._names[address].lstrip("*")] = self._targets[place]
        readable = output("c++filt", "-t", text="\n".join(found)).splitlines()
        return dict(zip(readable, found.values()))


def compare_operators(path, rows, said):
    """What `xputrace list operators` has of ONNX Runtime: its classes, their names and methods are those found here."""
    library = Library(path)
    classes = library.derived(OP_KERNEL)
    expected = {name: library.file_offset(address) for name, address in library.methods(OP_KERNEL, COMPUTE).items()}
    compute = [row for row in rows if row["method"] == "Compute"]
    found = {row["operator"]: row["function_offset"] for row in compute}
    assert len(found) == len(compute), "a class is listed twice"
    assert len(expected) > 500, "only %d classes are there: nothing is tested" % len(expected)
    assert found == expected, "not the same: %s" % (set(found.items()) ^ set(expected.items()))
    assert "%d classes derived" % len(classes) in said, "%d classes, but: %s" % (len(classes), said)
    return found
