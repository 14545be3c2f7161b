# SPDX-License-Identifier: BSD-2-Clause
"""list sites of damaged libraries: whatever their symbols, unwind tables, relocations and code say, no probe is placed inside an
instruction, as objdump decodes them. And of real ones of AArch64: what the slots of the API table are."""

import bisect
import collections
import json
import os
import random
import re
import shutil
import struct
import subprocess

import onnx_models
from code_files import sections_of
from harness import ROOT, WORKLOADS, XPUTRACE, Skip, cases, need, run, scratch

SEED = 20263
MUTATIONS = 600  # of all stand-ins together
LARGE_MUTATIONS = 100
LONGEST = 16  # bytes of an instruction, and one
SYMBOLS, RELOCATIONS, DYNAMIC_SYMBOLS, NO_BITS = 2, 4, 11, 8  # types of sections
EXECUTED = 4  # flag of a section


class Library:
    """An ELF file of x86-64 or AArch64, its bytes as they were and as they are now."""

    def __init__(self, path):
        self.path = os.path.join(scratch(), os.path.basename(path))
        shutil.copy(need(path, "library"), self.path)
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.sections = {one.name: one for one in sections_of(self.bytes) if one.size and one.type != NO_BITS}
        self.code = [one for one in self.sections.values() if one.flags & EXECUTED]
        self.decoded = {}

    def change(self, changes):
        """The file with these bytes, {offset: bytes}, in place of its own."""
        with open(self.path, "r+b") as file:
            for offset, new in changes.items():
                file.seek(offset)
                file.write(new)

    def restore(self, changes):
        self.change({offset: self.bytes[offset:offset + len(new)] for offset, new in changes.items()})

    def sites(self):
        """What list sites says: as (offset, offset of the function)."""
        listed = subprocess.run([XPUTRACE, "list", "sites", "-f", self.path, "--format", "json"], capture_output=True, check=False)
        assert listed.returncode in (0, 1), (self.path, listed)
        return {(one["offset"], one["function_offset"]) for one in json.loads(listed.stdout)} if not listed.returncode else set()

    def decode(self, begin, end):
        """File offsets at which instructions begin, from that of one up to another one in its section, as the file is now."""
        section, = [one for one in self.code if one.offset <= begin < one.offset + one.size]
        apart = section.address - section.offset
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "--start-address=%d" % (begin + apart),
                               "--stop-address=%d" % (end + apart), self.path], capture_output=True, text=True, check=True).stdout
        return {int(address, 16) - apart for address in re.findall(r"^ *([0-9a-f]+):\t(?!\(bad\))", text, re.M)}

    def functions(self):
        """File offsets at which functions begin, sorted: by the search table of the unwind information."""
        header = self.sections[".eh_frame_hdr"]
        assert self.bytes[header.offset + 1:header.offset + 4] == b"\x1b\x03\x3b", "another encoding"
        count, = struct.unpack_from("<I", self.bytes, header.offset + 8)
        text = self.sections[".text"]
        return sorted(header.address + struct.unpack_from("<i", self.bytes, header.offset + 12 + 8 * i)[0] - text.address + text.offset
                      for i in range(count))


def mutation(chance, library, functions, slots):
    """What of the library is damaged, and how: {offset: bytes}. slots: offsets of the relocations that fill tables with functions."""
    def somewhere():  # mostly near the begin of a function
        return chance.choice(functions) + chance.randrange(-4, 12) if chance.randrange(4) else chance.randrange(text.address, text.address + text.size)
    text = library.sections[".text"]
    places = {"symbol": [one for one in library.sections.values() if one.type in (SYMBOLS, DYNAMIC_SYMBOLS)],
              "relocation": [one for one in library.sections.values() if one.type == RELOCATIONS],
              "frame": [library.sections[name] for name in (".eh_frame", ".eh_frame_hdr")],
              "bytes": [one for name, one in library.sections.items() if re.match(r"\.(dynsym|dynstr|strtab|rodata|data|rela|eh_frame|gnu)", name)],
              "code": [text]}
    what = chance.choice(list(places))
    changes = {}
    for _ in range(1 if what == "code" else chance.choice((1, 4, 30))):
        section = chance.choice(places[what])
        if what in ("symbol", "relocation"):  # both have 24 bytes
            offset = section.offset + 24 * chance.randrange(section.size // 24) + (8 if what == "symbol" else 16)
            if what == "relocation" and slots and chance.randrange(4):
                offset = chance.choice(slots)
            changes[offset] = struct.pack("<Q", somewhere())
            if what == "symbol":
                changes[offset - 4] = b"\x12"  # a global function
        elif what == "frame":  # begins or lengths of functions are some of these words
            offset = section.offset + 4 * chance.randrange(section.size // 4)
            word, = struct.unpack_from("<i", library.bytes, offset)
            changes[offset] = struct.pack("<I", (word + chance.choice((-16, -3, -1, 1, 2, 5, 16))) & 0xffffffff)
        else:
            offset = chance.choice(functions) - text.address + text.offset + chance.randrange(24) if what == "code" else \
                section.offset + chance.randrange(section.size)
            changes[offset] = chance.randbytes(min(chance.choice((1, 2, 8)), section.offset + section.size - offset))
    return what, changes


def check_mutations(chance, library, times, instructions):
    """instructions(offset): whether one of the whole file begins there. How many sites were others than those of the whole file, by kind."""
    text, whole = library.sections[".text"], library.sites()
    assert whole and all(instructions(offset) for site in whole for offset in site), "a site of the whole file is wrong"
    functions = sorted({function - text.offset + text.address for _, function in whole})
    slots = [one.offset + 24 * i + 16 for one in library.sections.values() if one.type == RELOCATIONS
             for i, (_, _, addend) in enumerate(struct.iter_unpack("<QQQ", library.bytes[one.offset:one.offset + one.size]))
             if addend in functions]
    others = collections.Counter()
    for number in range(times):
        what, changes = mutation(chance, library, functions, slots)
        library.change(changes)
        for offset, function in library.sites() - (set() if what == "code" else whole):
            others[what] += (offset, function) not in whole
            begins = offset in library.decode(function, offset + LONGEST) if what == "code" else instructions(offset)
            assert instructions(function) and begins, "%s, mutation %d of %s: probe at 0x%x, function at 0x%x" % (
                os.path.basename(library.path), number, what, offset, function)
        library.restore(changes)
    return others


def test_standins():
    """Symbols, relocations, unwind tables, strings and code of all stand-ins."""
    folder = os.path.join(WORKLOADS, "lib")
    names = sorted(name for name in os.listdir(folder) if ".so" in name and name != "pjrt_plugin.so")  # whose table is in memory only
    chance, others = random.Random(SEED), collections.Counter()
    for name in names:
        library = Library(os.path.join(folder, name))
        begins = set().union(*(library.decode(one.offset, one.offset + one.size) for one in library.code))
        others += check_mutations(chance, library, MUTATIONS // len(names), begins.__contains__)
    # Only then something is tested: probes were placed elsewhere.
    assert others["symbol"] and others["code"], others


def test_onnx_runtime():
    """The same of a library of 45 MB, whose functions are found by a table that its relocations fill."""
    library, whole_file = Library(onnx_models.library()), Library(onnx_models.library())
    functions, decoded = library.functions(), {}

    def begins(offset):
        """Decoded from the begin of its function on."""
        function = functions[bisect.bisect_right(functions, offset) - 1]
        known = decoded.setdefault(function, {})
        if offset not in known:
            known[offset] = offset in whole_file.decode(function, offset + LONGEST)
        return known[offset]
    others = check_mutations(random.Random(SEED), library, LARGE_MUTATIONS, begins)
    assert others["relocation"] and others["code"], others


def addresses(disassembler, library, function):
    """What the begin of a function of AArch64 computes with adrp and add, as objdump prints it."""
    text = subprocess.run([disassembler, "-d", "--no-show-raw-insn", "--start-address=%d" % function, "--stop-address=%d" % (function + 160),
                           library.path], capture_output=True, text=True, check=True).stdout
    pages, found = {}, []
    for name, operands in re.findall(r"\t(adrp|add)\t([^<\n]*)", text):
        to, *rest = operands.strip().split(", ")
        if name == "adrp":
            pages[to] = int(rest[0], 16)
        elif rest[0] in pages and rest[1].startswith("#"):
            found.append(pages[rest[0]] + int(rest[1][1:], 16))
    return found


@cases(*onnx_models.RELEASES)
def test_table_of_arm64(release):
    """From OrtGetApiBase to its object, GetApi, the table and each function in it: by objdump and the relocations of the file."""
    disassembler = shutil.which("aarch64-linux-gnu-objdump")
    if not disassembler:
        raise Skip("aarch64-linux-gnu-objdump is not installed")
    library = Library(onnx_models.library(release, "arm64"))
    words = {offset: addend for one in library.sections.values() if one.type == RELOCATIONS
             for offset, kind, addend in struct.iter_unpack("<QQq", library.bytes[one.offset:one.offset + one.size])
             if kind == 1027}  # R_AARCH64_RELATIVE
    symbols = subprocess.run(["readelf", "-W", "--dyn-syms", library.path], capture_output=True, text=True, check=True).stdout
    entry, = {int(address, 16) for address in re.findall(r": ([0-9a-f]{16}) .* OrtGetApiBase", symbols)}
    base, = [one for one in addresses(disassembler, library, entry) if one in words]
    # What lies behind GetApi is printed with it, and leads to other tables.
    table = next(one for one in addresses(disassembler, library, words[base]) if all(one + 8 * i in words for i in range(200)))
    with open(os.path.join(ROOT, "user", "runtimes", "onnxruntime.json"), encoding="utf-8") as file:
        slots = {one["name"]: one["slot"] for one in json.load(file)["calls"] if "slot" in one and "method_of" not in one}
    length = next(i for i in range(4096) if table + 8 * i not in words or table + 8 * i == base)
    text = library.sections[".text"]
    expected = {name: words[table + 8 * slot] - text.address + text.offset for name, slot in slots.items() if slot < length}
    listed = json.loads(run([XPUTRACE, "list", "sites", "-f", library.path, "--only", "onnxruntime", "--format", "json"]).stdout)
    assert len(expected) >= 10 and {one["function"]: one["function_offset"] for one in listed} == expected, (expected, listed)
    assert {one["found_by"] for one in listed} == {"table"}, listed
    assert len(expected) == len(slots) - (release == "npm-1.21.1"), "CopyTensors came with 1.23: %s" % sorted(set(slots) - set(expected))
