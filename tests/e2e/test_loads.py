# SPDX-License-Identifier: BSD-2-Clause
"""BPF programs in the configurations that options can produce: each set of options is another set of programs to the verifier,
which drops what an option switches off. All pairs of options; XPUTRACE_E2E_LOADS=all: all combinations of those that decide
what is loaded. In each, what is loaded is what the options ask for, and the counts are exact."""

import concurrent.futures
import ctypes
import functools
import itertools
import os
import platform
import re
import struct

from harness import ROOT, XPUTRACE, Recorder, Skip, cases, run, run_entries, standin

ALL = os.environ.get("XPUTRACE_E2E_LOADS") == "all"
LINKS = {"session": "session link", "multi": "multi link", "perf": "perf uprobes"}  # and their lines of xputrace check
NODE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "emulated_node.json")

# Words on the command line that change which programs, maps or constants the kernel is given, and the programs that come with them.
LOADING = {
    "stacks": (["--stacks"], []),
    "samples": (["--samples"], ["stack_sample"]),
    "why": (["--why"], ["task_switch", "task_waking"]),
    "budget": (["--budget", "100"], []),
    "codeobj": (["--codeobj"], ["code_entry"]),
    "driver": (["--driver", NODE, "--drivers", "emulated_node"], ["client_exit", "driver_event", "ioctl_enter", "ioctl_leave"]),
    "counters": (["--counters", "page-faults,task-clock", "--counters-per-inference"], []),
}
# Those that only change what the programs find in their maps.
OTHERS = {
    "ops": (["--ops"], []),
    "sample": (["--sample", "4"], []),
    "chosen": (["--match", "neuron-0"], []),
    "no-wait": (["--no-wait"], []),
    "buffer": (["--buffer", "64K"], []),
}
OPTIONS = dict(LOADING, **OTHERS)
ALWAYS = ["process_mappings", "process_fork", "process_exec", "process_exit"]
BY_LINK = {"session": ["call_session", "call_place"], "multi": ["call_entry", "call_return"], "perf": ["call_entry", "call_return"]}

CALLS = 40
BPF = {"x86_64": 321, "aarch64": 280}  # number of the system call
PROG_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD = 13, 15
NAME_AT, NAME_BYTES, VERIFIED_AT = 64, 16, 216  # in struct bpf_prog_info
VERIFIED_MAX = 400_000  # instructions: the limit of the kernel is 1,000,000, and each update of a kernel verifies other paths


# ---- the table ----

@functools.cache
def links():
    """Those that this kernel has."""
    said = run([XPUTRACE, "check"]).stdout
    found = [link for link, line in LINKS.items() if re.search(r"^ok +%s\b" % line, said, re.M)]
    assert found, said
    return found


def pairs():
    """Rows (link, option names) in which every two options stand together, each without the other, and both not; and each option
    with and without every link. An option is on in 4 of 6 rows, which are others for each: any two share a row, and each has one
    that the other has not (Kleitman and Spencer, 1973)."""
    chosen = list(itertools.combinations(range(6), 4))
    assert len(OPTIONS) <= len(chosen)
    first, *others = links()
    rows = [(first, [name for name, on in zip(OPTIONS, chosen) if row in on]) for row in range(6)] + [(first, [])]
    return rows + [(link, names) for link in others for names in (list(OPTIONS), [])]


# Parts of all combinations, each short enough for the slowest machine: the link, and two options that are on.
PARTS = ["%s%s%s" % (link, " why" * why, " codeobj" * codeobj) for link in LINKS for why in (0, 1) for codeobj in (0, 1)]


def product(part):
    link, *given = part.split()
    others = [name for name in LOADING if name not in ("why", "codeobj")]
    return [(link, given + [name for name, on in zip(others, chosen) if on])
            for chosen in itertools.product((True, False), repeat=len(others))]


# ---- one row ----

class Attributes(ctypes.Structure):
    _fields_ = [("first", ctypes.c_uint32), ("second", ctypes.c_uint32), ("pointer", ctypes.c_uint64), ("rest", ctypes.c_uint8 * 112)]


def bpf(command, attributes):
    result = ctypes.CDLL(None, use_errno=True).syscall(BPF[platform.machine()], command, ctypes.byref(attributes), 128)
    assert result >= 0, os.strerror(ctypes.get_errno())
    return result


def loaded_by(pid):
    """Names of the programs of a process, as the kernel has them, and the instructions that it has verified for each."""
    verified = {}
    folder = "/proc/%d/fdinfo" % pid
    for number in os.listdir(folder):
        try:
            with open(os.path.join(folder, number), encoding="ascii", errors="replace") as file:
                found = re.search(r"^prog_type:[^$]*?^prog_id:\s*(\d+)", file.read(), re.M)
        except FileNotFoundError:  # closed meanwhile
            continue
        if not found:
            continue
        program = bpf(PROG_GET_FD_BY_ID, Attributes(first=int(found[1])))
        info = ctypes.create_string_buffer(256)
        bpf(OBJ_GET_INFO_BY_FD, Attributes(first=program, second=len(info), pointer=ctypes.addressof(info)))
        os.close(program)
        name = struct.unpack_from("%ds" % NAME_BYTES, info, NAME_AT)[0].rstrip(b"\0").decode()
        verified[name], = struct.unpack_from("I", info, VERIFIED_AT)
    return verified


def record(link, names):
    """What is wrong with one row, "": nothing; and how many instructions the kernel has verified for a program at most."""
    words = [word for name in names for word in OPTIONS[name][0]] + ["--drivers", "none"] * ("driver" not in names)
    what = "--link %s %s" % (link, " ".join(words))
    workload = standin("nrt", "--calls", str(CALLS))
    recorder = Recorder("-v", "-p", workload.pid, "--link", link, *words, wait=False)
    try:
        recorder.wait_line("stderr", "attached")
        wanted = {program[:NAME_BYTES - 1] for program in ALWAYS + BY_LINK[link] + [
            program for name in names for program in OPTIONS[name][1]]}
        loaded = loaded_by(recorder.pid)
        most = max(loaded, key=loaded.get)
        if set(loaded) != wanted:
            return "%s: loaded %s, expected %s" % (what, sorted(loaded), sorted(wanted)), 0
        if not 0 < loaded[most] < VERIFIED_MAX:
            return "%s: %d instructions verified in %s" % (what, loaded[most], most), 0
        workload.go()
        results = workload.results()
        trace = recorder.finish()
    except AssertionError:  # what libbpf has printed: the verifier's log
        return "%s:\n%s" % (what, recorder.stderr), 0
    made = sum(entry["count"] for entry in run_entries(results))
    counted = sum(program.get("calls", 0) for program in trace.programs())
    if not 0 < made == counted or trace.losses():
        return "%s: %d calls made, %d counted, lost: %s" % (what, made, counted, trace.losses()), 0
    return "", loaded[most]


def load(rows):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda row: record(*row), rows))
    wrong = [text for text, _ in results if text]
    print("        %d configurations loaded of %d, with %s; %d instructions verified in one program at most" % (
        len(rows) - len(wrong), len(rows), ", ".join(links()), max(verified for _, verified in results)))
    assert not wrong, "\n".join(wrong)


def test_pairs():
    """Every pair of options, with each kind of link that the kernel has."""
    load(pairs())


def test_everything():
    """All options that decide what is loaded, with each kind of link: each program is far below what a kernel verifies at most."""
    load([(link, list(LOADING)) for link in links()])


@cases(*(PARTS if ALL else ()))
def test_all(part):
    """Every combination of those that decide what is loaded."""
    if part.split()[0] not in links():
        raise Skip("this kernel has no %s" % LINKS[part.split()[0]])
    load(product(part))


def test_table():
    """No program of the sources is missing in the table above."""
    folder = os.path.join(ROOT, "bpf")
    if not os.path.isdir(folder):
        raise Skip("the sources are not here")
    written = set()
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            written |= set(re.findall(r'^SEC\("(?!license|\.)[^"]*"\)\n(?:\w+ )*?int (?:BPF_PROG\()?(\w+)', file.read(), re.M))
    known = set(ALWAYS).union(*BY_LINK.values(), *(programs for _, programs in OPTIONS.values()))
    assert written == known, (sorted(written - known), sorted(known - written))
