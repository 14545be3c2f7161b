# SPDX-License-Identifier: BSD-2-Clause
"""What is read from code objects, against what compilers were given and what other readers of ELF say."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys

from harness import BUILD, Skip, cases, need, run, scratch

READER = os.path.join(BUILD, "test-code-read")
SOURCE = """
__kernel void scale(__global int *a, int factor) { a[0] = a[1] * factor; }
__attribute__((noinline)) int helper(int x) { return x * 3 + 1; }
static __attribute__((noinline)) int hidden(int x) { return x * 5 + 1; }
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void add(__global int *a)
{ a[2] = helper(a[0]) + hidden(a[1]); }
"""
KERNELS, FUNCTIONS = {"scale", "add"}, {"helper", "hidden"}
PROCESSORS = """gfx600 gfx601 gfx602 gfx700 gfx701 gfx702 gfx703 gfx704 gfx705 gfx801 gfx802 gfx803 gfx805 gfx810 gfx900
gfx902 gfx904 gfx906 gfx908 gfx909 gfx90a gfx90c gfx1010 gfx1011 gfx1012 gfx1013 gfx1030 gfx1031 gfx1032 gfx1033 gfx1034
gfx1035""".split()
SPIRV = """OpCapability Addresses
OpCapability Kernel
OpCapability Linkage
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %scale "scale"
OpEntryPoint Kernel %add "add, with a longer name"
OpName %helper "helper"
OpName %scale "scale"
OpName %void "no function"
%void = OpTypeVoid
%type = OpTypeFunction %void
%scale = OpFunction %void None %type
%1 = OpLabel
OpReturn
OpFunctionEnd
%helper = OpFunction %void None %type
%2 = OpLabel
OpReturn
OpFunctionEnd
%add = OpFunction %void None %type
%3 = OpLabel
OpReturn
OpFunctionEnd
"""


def tool(name):
    for candidate in (name, name + "-14", os.path.join("/usr/local/cuda/bin", name)):
        if shutil.which(candidate):
            return candidate
    raise Skip("%s is not installed" % name)


def output(*arguments):
    result = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert result.returncode == 0, "%s: %s" % (arguments, result.stderr.decode("utf-8", "replace"))
    return result.stdout.decode("utf-8", "replace")


def read(path, *hint):
    process = run([need(READER, "reader of code objects"), path, *hint])
    assert process.status == 0, "%s: %d %s" % (path, process.status, process.stderr)
    return json.loads(process.stdout)


def write(name, data):
    path = os.path.join(scratch(), name)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def compiled(*options, name="object"):
    path = os.path.join(scratch(), name)
    output(tool("clang"), "-nogpulib", "-x", "cl", "-O1", *options, write("source.cl", SOURCE), "-o", path)
    return path


# ---- what other readers say ----

def functions_of(path, readelf):
    """(name, address, size) of .symtab, or of .dynsym; of each, whether st_other has the mark of an entry."""
    text = output(readelf, "-sW", path)
    tables = dict(re.findall(r"Symbol table '(\.\w+)'[^\n]*\n(.*?)(?=\nSymbol table|\Z)", text, re.DOTALL))
    rows = []
    for line in tables.get(".symtab", tables.get(".dynsym", "")).splitlines():
        row = re.match(r"\s*\d+: ([0-9a-f]+)\s+(\w+) FUNC\s+\w+\s+\w+\s+(\[.*?\]\s+)?(\w+)\s+(\S+)", line)
        if row and row[4] != "UND":
            rows.append((row[5].split("@")[0], int(row[1], 16), int(row[2], 0), row[4], bool(row[3])))
    return rows


def sections_of(path):
    """Address and offset of sections by number."""
    rows = re.findall(r"^ *\[ *(\d+)\] (?:.{17}) *(\w+) +([0-9a-f]+) ([0-9a-f]+) [0-9a-f]+ ",
                      output(tool("readelf"), "-SW", path), re.MULTILINE)
    return {number: (int(address, 16), int(offset, 16)) for number, _, address, offset in rows}


def segments_of(path):
    rows = re.findall(r"^  LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", output(tool("readelf"), "-lW", path), re.MULTILINE)
    return [tuple(int(field, 16) for field in row) for row in rows]


def offset_by_segments(segments, address):
    for offset, start, size in segments:
        if start <= address < start + size:
            return offset + address - start
    return 0


def check_linked(path, readelf=None):
    """Functions of a linked object, with offsets that the program headers give."""
    segments, readelf = segments_of(path), readelf or tool("readelf")
    found = read(path)
    assert found["error"] is None, found["error"]
    expected = sorted((name, address, size, offset_by_segments(segments, address))
                      for name, address, size, _, _ in functions_of(path, readelf))
    assert sorted((one["name"].split("@")[0], one["address"], one["size"], one["offset"])
                  for one in found["functions"]) == expected, path
    assert [one["offset"] for one in found["functions"]] == sorted(one["offset"] for one in found["functions"])
    assert found["own_size_error"] == 0 and found["own_size"] <= os.path.getsize(path)
    return found


def check_relocatable(path, readelf=None):
    sections, readelf = sections_of(path), readelf or tool("readelf")
    found = read(path)
    assert found["error"] is None, found["error"]
    expected = sorted((name, size, sections[section][1] + value)
                      for name, value, size, section, _ in functions_of(path, readelf))
    assert expected and sorted((one["name"], one["size"], one["offset"]) for one in found["functions"]) == expected
    assert found["own_size"] == os.path.getsize(path), found
    return found


def kernels(found):
    return {one["name"] for one in found["functions"] if one["kernel"]}


# ---- AMD ----

def check_hsaco(found, processor, path):
    noted = set(re.findall(r"\.symbol: +(\S+)\.kd", output(tool("llvm-readelf"), "--notes", path)))
    assert (found["kind"], found["machine"]) == ("hsaco", processor), found
    assert kernels(found) == noted == KERNELS, (found, noted)


@cases("gfx803", "gfx90a", "gfx1030")
def test_hsaco(processor):
    """Functions and kernels of a relocatable object, of a linked one with debug information, and of a stripped one."""
    tool("ld.lld")
    target = ("--target=amdgcn-amd-amdhsa", "-mcpu=" + processor)
    path = compiled(*target, "-c")
    found = check_relocatable(path, tool("llvm-readelf"))
    check_hsaco(found, processor, path)
    assert {one["name"] for one in found["functions"]} == KERNELS | FUNCTIONS
    path = compiled(*target, "-g")
    found = check_linked(path, tool("llvm-readelf"))
    check_hsaco(found, processor, path)
    assert found["own_size"] == os.path.getsize(path)
    output(tool("llvm-strip"), path)
    found = check_linked(path, tool("llvm-readelf"))
    check_hsaco(found, processor, path)
    assert {one["name"] for one in found["functions"]} == KERNELS


def test_processors():
    """Every processor that the assembler knows has its name."""
    source, path = write("empty.s", ""), os.path.join(scratch(), "object")
    for processor in PROCESSORS:
        output(tool("llvm-mc"), "--triple=amdgcn-amd-amdhsa", "--mcpu=" + processor, "-filetype=obj", source,
               "-o", path)
        assert read(path)["machine"] == processor, (processor, read(path))


# ---- NVIDIA ----

def ptx():
    return compiled("--target=nvptx64-nvidia-cuda", "-Xclang", "-target-cpu", "-Xclang", "sm_70", "-Xclang",
                    "-target-feature", "-Xclang", "+ptx70", "-S", name="module.ptx")


def test_ptx():
    """What the compiler writes; declarations are no functions."""
    path = ptx()
    found = read(path)
    assert (found["kind"], found["machine"], found["error"]) == ("ptx", "sm_70", None), found
    assert kernels(found) == KERNELS, found
    assert {one["name"] for one in found["functions"]} == KERNELS | FUNCTIONS, found
    assert found["own_size_error"], "text does not tell its size"


def elf(flags, abi, wide=True, order="<", machine=190):
    """An ELF object with functions "scale" (an entry), "helper", and one that is not defined."""
    names = b"\0scale\0helper\0outside\0.symtab\0"
    text, head = b"\x11" * 32 + b"\x22" * 16, 64 if wide else 52

    def symbol(name, info, other, section, value, size):
        if wide:
            return struct.pack(order + "IBBHQQ", name, info, other, section, value, size)
        return struct.pack(order + "IIIBBH", name, value, size, info, other, section)

    symbols = symbol(0, 0, 0, 0, 0, 0) + symbol(1, 0x12, 0x10, 1, 0, 32) + symbol(7, 0x12, 0, 1, 32, 16) + \
        symbol(14, 0x12, 0, 0, 0, 0)
    at = [head, head + len(text), head + len(text) + len(symbols)]
    end = at[2] + len(names)
    layout = order + ("IIQQQQIIQQ" if wide else "10I")

    def section(kind, flags, offset, size, link, entry):
        name = names.index(b".symtab") if kind == 2 else 0
        return struct.pack(layout, name, kind, flags, 0, offset, size, link, 1 if kind == 2 else 0, 4, entry)

    sections = section(0, 0, 0, 0, 0, 0) + section(1, 6, at[0], len(text), 0, 0) + \
        section(2, 0, at[1], len(symbols), 3, len(symbols) // 4) + section(3, 0, at[2], len(names), 0, 0)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1, 0x41 if abi == 8 else 0x33, abi])
    header = ident.ljust(16, b"\0") + struct.pack(
        order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"), 2, machine, 1, 0, 0, end, flags, head, 0, 0,
        len(sections) // 4, 4, 3)
    return header + text + symbols + names + sections


def test_cubin():
    """Both layouts of the flags, both classes and byte orders, against readelf."""
    for wide, order in ((True, "<"), (True, ">"), (False, "<"), (False, ">")):
        for flags, abi, machine in ((0x500550, 7, "sm_80"), (0x5A0D5A, 7, "sm_90a"), (0x6006402, 8, "sm_100"),
                                    (0x600640A, 8, "sm_100a"), (0, 7, None)):
            path = write("object.cubin", elf(flags, abi, wide, order))
            found = check_relocatable(path)
            assert (found["kind"], found["machine"]) == ("cubin", machine), found
            marked = {name for name, _, _, _, other in functions_of(path, "readelf") if other}
            assert kernels(found) == marked == {"scale"}, (found, marked)


def test_ptxas():
    """Objects of NVIDIA's own assembler."""
    assembler, source, path = tool("ptxas"), ptx(), os.path.join(scratch(), "object")
    tried = 0
    for processor in ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120"):
        result = subprocess.run([assembler, "-c", "-arch=" + processor, source, "-o", path], check=False,
                                stderr=subprocess.DEVNULL)
        if result.returncode:
            continue  # of another release
        tried += 1
        found = check_relocatable(path)
        assert (found["kind"], found["machine"]) == ("cubin", processor), found
        assert kernels(found) == KERNELS == {name for name, _, _, _, other in functions_of(path, "readelf") if other}
    assert tried


# ---- processors ----

def test_libraries():
    """Libraries of this machine, stripped and not."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split()[-1] for line in maps if ".so" in line}
    assert paths
    for path in sorted(paths | {os.path.realpath(sys.executable), READER}):
        found = check_linked(path)
        assert found["kind"] == "elf" and found["machine"] == os.uname().machine and not kernels(found), path


# ---- SPIR-V, OpenCL C ----

def test_spirv():
    """Entry points and functions with names, in both byte orders."""
    path = os.path.join(scratch(), "module.spv")
    output(tool("spirv-as"), "--target-env", "opencl2.2", write("module.spvasm", SPIRV), "-o", path)
    with open(path, "rb") as file:
        data = file.read()
    swapped = struct.pack(">%dI" % (len(data) // 4), *struct.unpack("<%dI" % (len(data) // 4), data))
    for one in (path, write("swapped.spv", swapped)):
        found = read(one)
        assert (found["kind"], found["machine"], found["error"]) == ("spirv", "64-bit", None), found
        assert {(function["name"], function["kernel"]) for function in found["functions"]} == {
            ("scale", True), ("add, with a longer name", True), ("helper", False)}, found
    assert "behind the end" in read(write("cut.spv", data[:-12]))["error"]


def test_opencl():
    """What the compiler takes for a kernel."""
    source = SOURCE + """
// __kernel void commented(void) {}
/* __kernel void commented_too(void) {} */
__constant char text[] = "__kernel void quoted(void) {}";
#define MADE __kernel void made(void) \\
{}
__kernel void declared(void);
__attribute__((used)) kernel void
spread /* over */ (
    __global int *out) __attribute__((nothrow)) { out[0] = '"'; }
"""
    path, code = write("source.cl", source), os.path.join(scratch(), "code")
    output(tool("clang"), "--target=spir64", "-x", "cl", "-S", "-emit-llvm", path, "-o", code)
    with open(code, encoding="utf-8") as file:
        expected = set(re.findall(r"^define .*?spir_kernel void @(\w+)\(", file.read(), re.MULTILINE))
    found = read(path, "opencl")
    assert expected == KERNELS | {"spread"}, expected
    assert found["kind"] == "opencl", found
    assert {one["name"] for one in found["functions"]} == kernels(found) == expected, found
