#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is known of code of AArch64, against objdump: every instruction, where probes of functions sit, which functions refer to strings.

    arm64.py PROGRAM [PART]     all of each file, or so many bytes of the code of the first

PROGRAM is build/test-elf-read. The files are ONNX Runtime's for AArch64 in build/npm*, and with no PART the C++ library and SQLite of
Debian's AArch64 where they are installed. Objdump decodes; what follows for probes from what it prints is written down here as kernels
have it in arch/arm64/kernel/probes: what they simulate, let run from a copy, refuse.
"""

import bisect
import collections
import glob
import os
import random
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
from code_files import sections_of  # pylint: disable=wrong-import-position

BUILD = os.environ.get("XPUTRACE_BUILD", os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "build"))
OBJDUMP = shutil.which("aarch64-linux-gnu-objdump") or (shutil.which("objdump") if os.uname().machine == "aarch64" else None)
FILES = [os.path.join(BUILD, "npm*", "node_modules", "onnxruntime-node", "bin", "napi-v*", "linux", "arm64", "libonnxruntime.so.1")]
OTHERS = ["/usr/aarch64-linux-gnu/lib/libstdc++.so.6", "/usr/lib/aarch64-linux-gnu/libsqlite3.so.0"]
STRINGS = 2000
REACH = 64  # instructions between an adrp and what adds the rest: a compiler puts them farther apart now and then
CONSTANT = 16  # bytes of a string that compilers copy at once
NEXT, BRANCH, JUMP, TAIL, SWITCH, STOP = range(6)  # enum site_flow
LINE = re.compile(r"^ *([0-9a-f]+):\t(\S+)(?:\t([^\n]*?))?(?: *//[^\n]*)?$", re.M)
TARGET = re.compile(r"(?:^|, )([0-9a-f]+)(?: <[^\n]*>)?$")

Instruction = collections.namedtuple("Instruction", "name operands")


class Code:
    """A file's instructions as objdump has them, by address; data between them is left out."""

    def __init__(self, path, part):
        self.path = path
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.sections = {one.name: one for one in sections_of(self.bytes)}
        text = self.sections[".text"]
        self.begin, self.end = text.address, text.address + text.size
        self.whole = not part
        if part:  # somewhere in it, the same with each run
            self.begin += random.Random(len(self.bytes)).randrange(max(text.size - part, 1)) & ~3
            self.end = min(self.begin + part, self.end)
        listed = subprocess.run([OBJDUMP, "-d", "--no-show-raw-insn", "-j", ".text", "--start-address=%d" % self.begin,
                                 "--stop-address=%d" % self.end, path], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.instructions = {int(address, 16): Instruction(name, operands or "") for address, name, operands in LINE.findall(listed)
                             if name[0] != "." and name != "undefined"}

        self.functions = self._functions()

    def _functions(self):
        """Addresses at which functions in the part begin, sorted: of the search table of the unwind information."""
        _, _, _, address, offset, _ = self.sections[".eh_frame_hdr"]
        assert self.bytes[offset + 1:offset + 4] == b"\x1b\x03\x3b", "another encoding"
        count, = struct.unpack_from("<I", self.bytes, offset + 8)
        return sorted(begin for begin in (address + struct.unpack_from("<i", self.bytes, offset + 12 + 8 * i)[0] for i in range(count))
                      if self.begin <= begin < self.end)


def target_of(one):
    match = TARGET.search(one.operands)
    return int(match[1], 16) if match else 0


def flow_of(name):
    if name == "b":
        return JUMP
    if re.fullmatch(r"bc?\.\w+|cbn?z|tbn?z", name):
        return BRANCH
    if re.fullmatch(r"bra[ab]z?|br", name):
        return SWITCH
    return STOP if re.fullmatch(r"bl|blr|blra[ab]z?|reta?[ab]?|eret(a[ab])?|svc|hvc|smc|brk|hlt|dcps[123]|udf", name) else NEXT


def is_simulated(one):
    return bool(re.fullmatch(r"adrp?|b|b\.\w+|cbn?z|tbn?z|blr?|br|ret|nop", one.name))


def is_refused(one):
    if re.fullmatch(r"ldr|ldrsw|prfm", one.name) and "[" not in one.operands:
        return True  # a literal
    return bool(re.fullmatch(r"msr|smst(art|op)|svc|hvc|smc|brk|hlt|dcps[123]|udf|eret(a[ab])?|bl?ra[ab]z?|reta[ab]|bc\.\w+"  # branches, exceptions
                             r"|(ld|st)[al]?x[rp][bh]?|(ldax|stlx)[rp][bh]?|caspa?l?"  # exclusive
                             r"|yield|wfe|wfi|sevl?|dgh|esb|psb|tsb|csdb|hint|auti\w+|gcsb|chkfeat|clrbhb"
                             r"|(cpyf?|set|setg)[pme]\w*", one.name))


def moves_stack(one):
    """Whether sp is the first operand, or is changed where it is an address."""
    first = one.operands.split(",")[0]
    return bool(re.search(r"\[sp\]?, [^\]]*\]!|\[sp\], ", one.operands)) or \
        (first in ("sp", "wsp") and not re.fullmatch(r"cmp|cmn|tst|st.*|ldr", one.name))


def expected(one):
    flow, landing = flow_of(one.name), one.name == "bti"
    return (flow, is_simulated(one), is_refused(one), moves_stack(one), landing or one.name == "nop", landing,
            target_of(one) if flow in (BRANCH, JUMP) else 0)


def run(program, option, path, *words, text=""):
    return subprocess.run([program, option, path, *words], input=text, stdout=subprocess.PIPE, text=True, errors="surrogateescape",
                          check=True).stdout.splitlines()


def compare_instructions(program, code):
    """How many instructions; one line for each name that has some decoded otherwise."""
    wrong, count = collections.defaultdict(list), 0
    for line in run(program, "-i", code.path, "%x" % code.begin, "%x" % code.end):
        address, flow, *rest, target = line.split()
        one = code.instructions.get(int(address, 16))
        if one:
            count += 1
            found = (int(flow), *(word == "1" for word in rest), int(target, 16))
            if found != expected(one):
                wrong[one.name].append("%s: %s %s: %s here, expected %s" % (address, one.name, one.operands, found, expected(one)))
    return {"instructions": count}, ["%s, and %d more" % (lines[0], len(lines) - 1) for lines in wrong.values()]


def is_right_site(code, targets, address, error, distance, kind):
    """No probe on what the kernel refuses, none behind the begin where a branch leads or something but a landing pad was passed."""
    first, site = code.instructions[address], code.instructions.get(address + distance)
    if error:
        return is_refused(first)
    if not distance:
        return not is_refused(first) and kind == ("emulated" if is_simulated(first) else "stepped")
    passed = [code.instructions[at].name for at in range(address, address + distance, 4)]
    return site and set(passed) <= {"bti", "nop"} and is_simulated(site) and flow_of(site.name) != STOP and address + distance not in targets


def compare_sites(program, code):
    """How many functions have their probe on which kind of instruction; those where it is wrong."""
    wrong, kinds = [], collections.Counter()
    targets = {target_of(one) for one in code.instructions.values() if flow_of(one.name) in (BRANCH, JUMP)}
    for line in run(program, "-s", code.path, text="".join("%x\n" % one for one in code.functions)):
        address, error, distance, kind = line.split()
        address, error, distance = int(address, 16), int(error), int(distance, 16)
        if address in code.instructions:
            kinds["refused" if error else kind] += 1
            if not is_right_site(code, targets, address, error, distance, kind):
                wrong.append("function %x: error %d, site %d bytes behind, %s; begins with %s" % (
                    address, error, distance, kind, code.instructions[address]))
    return kinds, wrong


def strings_of(code, chance):
    """Some strings by their address: of those that are there once, from their beginning on and as the end of a longer one."""
    _, _, _, address, offset, size = code.sections[".rodata"]
    data = code.bytes[offset:offset + size]
    every = [(match.start() + 1, match[1]) for match in re.finditer(rb"\0([ -~]{6,200})(?=\0)", data)]
    chosen = chance.sample(every, min(STRINGS if code.whole else STRINGS // 2, len(every)))
    around = code.bytes if code.whole else data  # constants lie in other sections, too
    return {address + at: text.decode() for at, text in chosen if around.count(text[:CONSTANT]) == around.count(text + b"\0") == 1}


def writes(one, register):
    """Whether an instruction leaves something else in a register, or calls what may."""
    words = [word.strip("[]!{}") for word in one.operands.split(", ")]
    if re.fullmatch(r"blr?|blra[ab]z?", one.name):
        return int(register[1:]) <= 18
    if re.match("st|cmp|cmn|ccm|tst|cb|tb|prf|b$|b\\.|br|ret|msr", one.name):
        return False
    written = words[:2] if re.match("ldp|ldnp|ldpsw|ldxp|ldaxp", one.name) else words[:1]
    return register in written or "w" + register[1:] in written


def place_of(one, register, page):
    """The place that an instruction makes of a page in a register; None: none."""
    words = one.operands.split(", ")
    if one.name == "add" and words[1] == register and words[2].startswith("#"):
        return page + (int(words[2][1:], 16) << (12 if words[3:] else 0))
    base = re.fullmatch(r"\[(x\d+)(?:, #(\d+))?\]", ", ".join(words[1:])) if one.name == "ldr" and words[0].startswith("q") else None
    return page + int(base[2] or 0) if base and base[1] == register else None  # the beginning of the string as a constant


def places_behind(code, begin, register, page):
    """Those that the code behind an adrp makes, on every way that begins there; a switch leads anywhere."""
    to_do, done, last = [begin + 4], set(), begin + 4 * REACH
    while to_do:
        address = to_do.pop()
        one = code.instructions.get(address)
        if address in done or not one or not begin < address <= last:
            continue
        done.add(address)
        place = place_of(one, register, page)
        if place is not None:
            yield place
        flow = flow_of(one.name)
        if flow in (BRANCH, JUMP):
            to_do.append(target_of(one))
        if one.name == "br":
            to_do.extend(range(begin + 4, last + 4, 4))
        if not (flow in (JUMP, SWITCH) or re.match("ret|eret", one.name) or writes(one, register)):
            to_do.append(address + 4)


def references(code, places):
    """(address of a string, function)."""
    found = set()
    for address, one in code.instructions.items():
        if one.name not in ("adrp", "adr") or "[" in one.operands:
            continue
        register, target = one.operands.split(", ")
        page = int(target.split()[0], 16)
        function = code.functions[max(bisect.bisect_right(code.functions, address) - 1, 0)]
        made = [page] if one.name == "adr" else places_behind(code, address, register, page)
        found.update((place, function) for place in made if place in places and address >= function)
    return found


def compare_references(program, code):
    """How many functions refer to strings; references that only one of the two finds."""
    strings = strings_of(code, random.Random(len(code.bytes)))
    places = sorted(strings)
    expect = references(code, strings)
    found = {(places[int(number)], int(function, 16)) for number, function in
             (line.split() for line in run(program, "-r", code.path, text="".join(strings[place] + "\n" for place in places)))}
    found = {one for one in found if code.begin <= one[1] and one[1] in code.functions[:-1]}
    expect = {one for one in expect if one[1] in code.functions[:-1]}  # the last one may end behind the part
    return {"references": len(expect)}, [
        "%r in function %x: %s" % (strings[place], function, "not found" if (place, function) in expect else "not of objdump")
        for place, function in sorted(expect ^ found)]


def main():
    program, part = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    paths = sorted(path for pattern in FILES for path in glob.glob(pattern)) + [path for path in OTHERS if not part and os.path.exists(path)]
    if not paths or not OBJDUMP:
        print("skipped: %s" % ("no ONNX Runtime for AArch64 in build/npm*: make npm-releases" if OBJDUMP else "no objdump for AArch64"))
        return True
    good = True
    for path in paths[:1] if part else paths:
        code, totals = Code(path, part), collections.Counter()
        for compare in (compare_instructions, compare_sites, compare_references):
            counts, wrong = compare(program, code)
            totals.update(counts)
            for line in wrong[:20]:
                print("%s: %s" % (path, line))
            if not counts or not list(counts.values())[0]:
                wrong.append("nothing is compared")
            good &= not wrong
        print("%s: %s" % (os.path.relpath(path, BUILD) if path.startswith(BUILD) else path, ", ".join("%s %d" % pair for pair in totals.items())), flush=True)
    return good


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
