# SPDX-License-Identifier: BSD-2-Clause
"""<xputrace/region.h>: compiled in every way, watched by the kernel's own uprobes instead of the collector."""

import json
import os
import re
import shutil
import subprocess

from harness import NOBODY, Process, ROOT, Skip, cases, run, scratch, wait_until
from region_probes import PROBES, Probes, file_offset, notes_of, readelf, section_of, semaphore_in

SOURCES = os.path.join(ROOT, "tests", "workload", "region")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
ARM_NOP = bytes.fromhex("1f2003d5")
LINKING = ("-Wl,", "-fuse-ld=", "-static", "-no-pie")
STRICT = "-D_DEFAULT_SOURCE"  # for the workload's own calls, not for the header: that is alone.c of the public tests

# name: compiler, options of compiler and linker, whether all is linked into one executable
WAYS = {
    "gcc-O0": ("gcc", "-O0", False),
    "gcc-O1-c99": ("gcc", "-std=c99 -O1 " + STRICT, False),
    "gcc-O2-c11": ("gcc", "-std=c11 -O2 " + STRICT, False),
    "gcc-O3": ("gcc", "-O3", False),
    "gcc-cet": ("gcc", "-O2 -fcf-protection=full", False),
    "gcc-no-cet": ("gcc", "-O2 -fcf-protection=none", False),
    "gcc-no-pie": ("gcc", "-O2 -fno-pie -no-pie", False),
    "gcc-large": ("gcc", "-O2 -fPIC -mcmodel=large", False),
    "gcc-static": ("gcc", "-O2 -static", True),
    "gcc-static-pie": ("gcc", "-O2 -fPIE -static-pie", True),
    "gcc-lto": ("gcc", "-O2 -flto=2", False),
    "gcc-lto-static": ("gcc", "-O2 -flto=2 -static", True),
    "gcc-gold": ("gcc", "-O2 -fuse-ld=gold", False),
    "gcc-lld": ("gcc", "-O2 -fuse-ld=lld", False),
    "gcc-gc-sections": ("gcc", "-O2 -ffunction-sections -fdata-sections -Wl,--gc-sections", True),
    "gcc-thread": ("gcc", "-O1 -fsanitize=thread", False),
    "clang-O0": ("clang", "-O0", False),
    "clang-O2": ("clang", "-O2", False),
    "clang-lto": ("clang", "-O2 -flto -fuse-ld=lld", False),
    "clang-thin-lto": ("clang", "-O2 -flto=thin -fuse-ld=lld", False),
    "clang-gc-sections": ("clang", "-O2 -ffunction-sections -Wl,--gc-sections -fuse-ld=lld", True),
    "clang-address": ("clang", "-O1 -fsanitize=address,undefined", False),
    "g++-11": ("g++", "-std=c++11 -O2", True),
    "g++-20": ("g++", "-std=c++20 -O3 -fno-exceptions -fno-rtti", False),
    "clang++-17": ("clang++", "-std=c++17 -O2", False),
}


def compile_with(compiler, arguments):
    if not shutil.which(compiler):
        raise Skip("%s is not installed" % compiler)
    result = subprocess.run([compiler, "-I" + os.path.join(ROOT, "include")] + arguments, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False, text=True)
    if re.search(r"(invalid linker name|cannot find|unsupported|unrecognized) ", result.stdout):
        raise Skip(result.stdout.strip().splitlines()[-1])
    assert result.returncode == 0, result.stdout


def build(way="gcc-O2-c11", *more):
    """The workload, with more options: the program and, unless it is all in one, its shared object."""
    compiler, options, alone = WAYS[way]
    folder, options = scratch(), options.split() + WARNINGS + list(more)
    linked = [option for option in options if option.startswith(LINKING)]
    options = [option for option in options if not option.startswith(LINKING)]
    language = ["-x", "c++"] if "++" in compiler else []
    paths = {name: os.path.join(SOURCES, name + ".c") for name in ("main", "other", "leaf", "shared")}
    program, library = os.path.join(folder, "main"), os.path.join(folder, "libshared.so")
    if not alone:
        compile_with(compiler, options + [option for option in linked if option != "-no-pie"] + ["-fPIC", "-shared"] +
                     language + [paths.pop("shared"), "-o", library])
    objects = []
    for name, path in paths.items():
        objects.append(os.path.join(folder, name + ".o"))
        compile_with(compiler, options + language + ["-c", path, "-o", objects[-1]])
    compile_with(compiler, options + linked + objects + ([] if alone else [library, "-Wl,-rpath," + folder]) +
                 ["-o", program, "-lpthread"])
    return program, None if alone else library


def check_notes(path, arguments, nop, copies=1):
    """Both probes, one semaphore, and at each place a nop of one instruction at the entry of a function."""
    notes = notes_of(path)
    assert sorted(note.name for note in notes) == sorted(PROBES * copies), [note.name for note in notes]
    assert {note.arguments for note in notes} == {arguments}, [note.arguments for note in notes]
    assert len({note.semaphore for note in notes}) == 1
    assert section_of(path, notes[0].semaphore) == ".probes", section_of(path, notes[0].semaphore)
    with open(path, "rb") as file:
        data = file.read()
    for note in notes:
        at = file_offset(path, note.location)
        assert data[at:at + len(nop)] == nop, data[at:at + 8].hex()
    at = file_offset(path, notes[0].semaphore)
    assert data[at:at + 2] == b"\0\0"


def lines(process):
    """What the workload reported, by its first word."""
    return {entry["what"]: entry for entry in map(json.loads, process.stdout.splitlines())}


def go(program, *words, **environment):
    process = run([program, *map(str, words)], env=dict(os.environ, **environment))
    assert process.status == 0, "%s: %d: %s" % (words, process.status, process.stderr)
    return process


def native():
    if os.uname().machine == "aarch64":
        return "8@x0 8@x1", ARM_NOP
    return "8@%rdi 8@%rsi", b"\x90\xc3"  # and return: not the beginning of a longer nop


@cases(*WAYS)
def test_way(way):
    """It compiles without a warning, has its notes once, exports nothing, and counts across sources and objects."""
    program, library = build(way)
    # There each source is an object of its own, whose groups the linker does not compare.
    check_notes(program, *native(), copies=3 if way == "clang-thin-lto" else 1)
    if library:
        check_notes(library, *native())
        exported = re.findall(r"GLOBAL +DEFAULT +\d+ (xpt_\w+)", readelf(library, "--dyn-syms"))
        assert not exported, exported
    reported = lines(go(program, "objects", XPUTRACE_REGIONS="enabled"))
    for name in ("main", "shared"):
        assert reported[name]["entries"] == 9 and reported[name]["unmatched"] == 0, reported[name]
    reported = lines(go(program, "leaf", 1000, XPUTRACE_REGIONS="enabled"))
    assert reported["wrong"]["entries"] == 0 and reported["leaf"]["entries"] == 1000, reported


def test_arm64():
    """The cross-compiler's notes and instructions, with and without branch targets; executed where an emulator is."""
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    for options in ([], ["-mbranch-protection=standard"]):
        program = os.path.join(scratch(), "main")
        compile_with("aarch64-linux-gnu-gcc", ["-O2", "-static", *options, *WARNINGS] + [
            os.path.join(SOURCES, name + ".c") for name in ("main", "other", "leaf", "shared")] + ["-o", program])
        check_notes(program, "8@x0 8@x1", ARM_NOP)
        with open(program, "rb") as file:
            data = file.read()
        for note in notes_of(program):
            at = file_offset(program, note.location)
            before = data[at - 4:at] == bytes.fromhex("5f2403d5")
            assert before == bool(options), data[at - 4:at + 8].hex()
        if emulator:
            reported = lines(run([emulator, program, "threads", "4", "1000"],
                             env=dict(os.environ, XPUTRACE_REGIONS="enabled")))["threads"]
            assert reported["entries"] == 4000 and reported["unmatched"] == 0, reported


def test_bpftrace_lists():
    """Another tool finds the probes."""
    if not shutil.which("bpftrace"):
        raise Skip("bpftrace is not installed")
    program, _ = build()
    listed = run(["bpftrace", "-l", "usdt:%s:*" % program])
    if listed.status:
        raise Skip("bpftrace does not run here: %s" % listed.stderr.strip())
    for probe in PROBES:
        assert "usdt:%s:xputrace:%s" % (program, probe) in listed.stdout, listed.stdout


# ---- counts in the process ----

@cases("XPUTRACE_REGIONS=enabled", "VACCEL_PROF_ENABLED=enabled", "VACCEL_PROFILING_ENABLED=1")
def test_environment(setting):
    program, _ = build()
    process = go(program, "threads", 1, 7, **dict([setting.split("=")]))
    reported = lines(process)["threads"]
    assert reported["enabled"] == 1 and reported["entries"] == 7
    assert 0 < reported["min"] <= reported["max"] <= reported["total"], reported
    assert process.stderr == "[prof] the \"region\"\\nof main: total_time: %d nsec nr_entries: 7\n" % reported["total"]


@cases("", "XPUTRACE_REGIONS=no", "XPUTRACE_REGIONS=")
def test_not_enabled(setting):
    """Nothing is kept and nothing printed."""
    program, _ = build()
    process = go(program, "threads", 1, 7, **(dict([setting.split("=")]) if setting else {}))
    reported = lines(process)["threads"]
    assert not any(reported[name] for name in ("enabled", "entries", "total", "min", "max", "unmatched")), reported
    assert not process.stderr, process.stderr


def test_other_privileges():
    """A program that runs as somebody else than its caller does not look at the environment."""
    if os.geteuid():
        raise Skip("needs root")
    program, _ = build("gcc-static")
    words = [program, "threads", "1", "3"]
    environment = dict(os.environ, XPUTRACE_REGIONS="enabled")
    plain = run(words, env=environment, user=NOBODY)
    os.chmod(program, 0o4755)
    privileged = run(words, env=environment, user=NOBODY)
    assert lines(plain)["threads"]["entries"] == 3, plain.stdout
    assert lines(privileged)["threads"]["enabled"] == 0, privileged.stdout


def test_threads():
    """Eight threads, ten million times: not one is missing."""
    program, _ = build()
    reported = lines(go(program, "threads", 8, 1250000, XPUTRACE_REGIONS="enabled"))["threads"]
    assert reported["entries"] == 10000000 and reported["unmatched"] == 0, reported
    assert reported["max"] <= reported["total"] and reported["min"] * reported["entries"] <= reported["total"], reported


def test_endings():
    """fork, exec and exit in the middle, and a stop without a start."""
    program, _ = build()
    reported = lines(go(program, "fork", XPUTRACE_REGIONS="enabled"))
    assert [reported[who]["entries"] for who in ("parent", "child")] == [1, 1], reported
    assert [reported[who]["unmatched"] for who in ("parent", "child")] == [0, 0], reported
    reported = lines(go(program, "exec", XPUTRACE_REGIONS="enabled"))
    assert reported["main"]["entries"] == 9 and reported["main"]["unmatched"] == 0, reported
    reported = lines(go(program, "exit", XPUTRACE_REGIONS="enabled"))["exit"]
    assert reported["entries"] == 0 and reported["total"] == 0 and reported["unmatched"] == 1, reported


def test_names():
    """A hundred thousand, and three of 4 KB: each has its line; samples take no more memory than is said."""
    program, _ = build()
    for count, length in ((100000, 20), (3, 4096)):
        process = go(program, "names", count, length, XPUTRACE_REGIONS="enabled")
        reported = lines(process)["names"]
        assert reported["once"] == count and reported["sampled"] == min(count, 1024), reported
        found = re.findall(r"^\[prof\] (\d+)(n+): total_time: \d+ nsec nr_entries: 1$", process.stderr, re.M)
        assert [int(number) for number, _ in found] == list(range(count)), len(found)
        assert {len(number + rest) for number, rest in found} == {length}


# ---- watched from outside ----

@cases("gcc-O0", "gcc-O2-c11", "gcc-cet", "gcc-lto", "gcc-static", "gcc-gold", "gcc-lld", "clang-O2",
       "clang-thin-lto", "g++-20")
def test_watched(way):
    """Every marker is seen, and functions that keep variables below the stack pointer go on summing right."""
    program, _ = build(way)
    with Probes(program) as probes:
        reported = lines(go(program, "leaf", 100000))
        assert reported["wrong"]["entries"] == 0, reported
        assert probes.hits() == {probe: 100000 for probe in PROBES}, probes.hits()


def test_red_zone():
    """That the sums are a witness: a probe on a 5-byte nop in the middle of a leaf, as the header has none, spoils
    them."""
    if os.uname().machine != "x86_64":
        raise Skip("there is no red zone here")
    program, _ = build("gcc-no-pie", "-DLEAF_NOP")
    address = int(re.search(r"(\w+) +0 NOTYPE .* leaf_nop$", readelf(program, "--symbols"), re.M).group(1), 16)
    assert lines(go(program, "leaf", 10000))["wrong"]["entries"] == 0
    with Probes(program, [("nop", address, None)]) as probes:
        reported = lines(go(program, "leaf", 10000))
        assert probes.hits() == {"nop": 30000}, probes.hits()
    if not reported["wrong"]["entries"]:
        raise Skip("this kernel does not make a call of a 5-byte nop")


def test_arguments():
    """Region and name, byte for byte; both at once with the counts inside."""
    program, library = build()
    with Probes(program) as probes:
        reported = lines(go(program, "threads", 1, 3, XPUTRACE_REGIONS="enabled"))["threads"]
        trace = probes.trace()
    assert reported["entries"] == 3
    assert trace.count("name=\"the \"region\"\nof main\"") == 6, trace
    assert len(set(re.findall(r"region=(0x\w+)", trace))) == 1, trace
    with Probes(library) as probes:
        go(program, "objects")
        assert probes.hits() == {probe: 6 for probe in PROBES}, probes.hits()


def test_semaphore():
    """It is raised in a process that runs already, by each probe, and lowered again."""
    program, _ = build()
    process = Process([program, "wait", "1000"])
    process.wait_line("stdout", "ready")
    assert semaphore_in(process.pid, program) == 0
    with Probes(program) as probes:
        assert semaphore_in(process.pid, program) == 2
        process.send("\n")
        assert process.wait() == 0
        assert probes.hits() == {probe: 1000 for probe in PROBES}, probes.hits()
    process = Process([program, "wait", "10"])
    process.wait_line("stdout", "ready")
    wait_until(lambda: semaphore_in(process.pid, program) == 0, "semaphore is 0")
    process.kill()
