#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the seeds of the fuzz target of recordings, in tests/fuzz/corpus/recording, from recordings of the tests' programs.

Needs root, tracefs, `make all workload`; run again only when records change; with the word study only those that are explained,
compared and become pages. Of records that are alike a few are kept, and nothing of the machine; the sums are wrong then, as the
target makes them right.
"""

import collections
import json
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(HERE, "..", "e2e")
FOLDER = os.path.join(HERE, "corpus", "recording")
sys.path.insert(0, E2E)

import codeobj_loads  # noqa: E402 (found only now)
import harness  # noqa: E402
import operator_toy  # noqa: E402
import recordings as rewriting  # noqa: E402
import region_programs  # noqa: E402

CALL, STRING, EVENT, REGION, OFF_CPU, SPEC, PROCESS, END, CHOICE, CODE_OBJECT = 1, 2, 4, 7, 11, 16, 17, 24, 33, 36
ALIKE = 3  # records of one kind that are kept; more of calls, events and what they need
CHUNKS, FORMATS = 2, 3  # the target makes the chunks right; the first so many of its uses are formats of reports
CHROME, ORT, CSV, EXPLAIN, DIFF, PAGE = 0, 1, 2, 4, 6, 8  # uses, as in fuzz_recording.c


def linked(runtime, *options):
    return [harness.workload_path("linked-" + runtime), runtime, "--calls", "2", *options]


def recordings():
    """Name, options of record and command of each."""
    yield "nrt", [], linked("nrt")
    yield "qaic", ["--program", "cloud-0.0"], linked("qaic", "--threads", "2")
    yield "cuda", [], linked("cuda")
    yield "operators", ["--ops", "-r", operator_toy.description()], operator_toy.toy("2gr3gl", 2)
    yield "regions", [], region_programs.marks(["decode", "prefill"], "+0", "+1", "1=0", "-1", "-0", times=2)
    yield "counters", ["--counters", "task-clock,page-faults", "--counters-every", "1ms"], linked("nrt")
    yield "counted", ["--counters", "page-faults", "--counters-per-inference"], linked("nrt")
    given = codeobj_loads.make(codeobj_loads.cubin, 4096)
    script = "printf 'cuModuleLoadData %s unload=yes\\nquit\\n' | \"$0\" libcuda.so.1" % given.path
    yield "codeobj", ["--codeobj"], ["sh", "-c", script, harness.workload_path("code_loads")]
    yield "jobs", ["--driver", os.path.join(E2E, "told.json"), "--drivers", "told"], \
        linked("qaic", "--device", "told:device=7", "--jobs", "2")


def records(data):
    """The header, and every record."""
    begin, = struct.unpack_from("<I", data, 16)
    at, found = begin, []
    while at < len(data):
        end = at + 24 + struct.unpack_from("<I", data, at + 8)[0]
        at += 24
        while at < end:
            size, = struct.unpack_from("<H", data, at + 2)
            found.append(data[at:at + size])
            at += size
    return data[:begin], found


def text_of(record):
    length, = struct.unpack_from("<I", record, 24)
    return record[32:32 + length]


def with_text(record, text):
    padded = text + bytes(-len(text) % 8)
    return struct.pack("<HH", struct.unpack_from("<H", record)[0], 32 + len(padded)) + record[4:24] + \
        struct.pack("<I", len(text)) + record[28:32] + padded


def few(found, alike=ALIKE):
    """Records without the many that are like others, and descriptions of calls that are not made."""
    used = {struct.unpack_from("<H", record, 28)[0] for record in found if record[0] in (CALL, STRING, REGION)}
    seen = collections.Counter()
    for record in found:
        kind = record[0]
        if kind == SPEC and struct.unpack_from("<Q", record, 16)[0] not in used:
            continue
        if kind == PROCESS:
            record = with_text(record, b'{"name":"serve","command":"serve model","parent":1,"start_time":7}')
        elif kind == CODE_OBJECT:
            record = with_text(record, re.sub(rb'"file://[^"#]*/', b'"file:///usr/lib/', text_of(record)))
        seen[kind] += 1
        if kind in (SPEC, CALL, EVENT) or seen[kind] <= alike:
            yield record


def header(old):
    info = json.dumps({"monotonic_ns": "1000000000", "realtime_ns": "1700000000000000000", "host": "host", "cpus": 2,
                       "kernel": "6.1.0", "machine": "x86_64", "version": "0.1.0", "command": "xputrace record"}).encode()
    info += bytes(b" " * (-len(info) % 8))
    return old[:16] + struct.pack("<IIII", 32 + len(info), 32, len(info), 0) + info


def write(name, use, old, found):
    body = b"".join(found)
    assert not re.search(rb"/(home|root|work|tmp)/", body), "%s has a path of this machine" % name
    data = bytes([CHUNKS | use << 2]) + header(old) + b"XPCK" + bytes(20) + body
    with open(os.path.join(FOLDER, name), "wb") as file:
        file.write(data)
    print(name, len(data), sorted({record[0] for record in found}))


def budget():
    path = os.path.join(harness.scratch(), "budget.xpt")
    rewriting.with_budget(os.path.join(E2E, "kept", "counted.xpt"), path)
    with open(path, "rb") as file:
        write("budget", 0, *records(file.read()))


def some(found, every=10):
    """Of the inferences one in so many and every 50th, which is slow, with what lies in them; all that defines others."""
    specs = {struct.unpack_from("<Q", record, 16)[0]: json.loads(text_of(record)) for record in found if record[0] == SPEC}
    spans = sorted((struct.unpack_from("<Q", record, 16)[0], struct.unpack_from("<Q", record, 8)[0]) for record in found
                   if record[0] == CALL and specs[struct.unpack_from("<H", record, 28)[0]].get("role") == "execute")
    kept = [span for number, span in enumerate(spans) if number % every == 0 or number % 100 in range(52, 56)]

    def wanted(record):
        start, = struct.unpack_from("<Q", record, 16)
        return start < spans[0][0] or any(begin <= start <= end for begin, end in kept)
    return [record for record in found if record[0] not in (CALL, OFF_CPU) or wanted(record)]


def studies():
    """What is explained, compared or a page."""
    path = os.path.join(harness.scratch(), "slow.xpt")
    result = harness.run([harness.XPUTRACE, "record", "-o", path, "--ops", "--why", "-r", os.path.join(E2E, "slow.json"), "--",
                          harness.workload_path("slow"), "60"], cwd=os.path.dirname(path))
    assert result.status == 0, result.stderr
    with open(path, "rb") as file:
        old, found = records(file.read())
    for use, name in ((EXPLAIN, "explain"), (EXPLAIN + 1, "explain_sleep"), (DIFF, "diff"), (DIFF + 1, "diff_twice"), (PAGE, "page")):
        write(name, use, old, list(few(some(found), 10000)))
    again = ((EXPLAIN, "explain"), (DIFF, "diff"), (PAGE, "page"))
    for name, uses in (("jobs", ((CHROME, "chrome"), *again)), ("counters", again), ("operators", ((ORT, "ort"), (CSV, "csv"), (PAGE, "page")))):
        with open(os.path.join(FOLDER, name), "rb") as file:
            data = file.read()
        for use, what in uses:
            with open(os.path.join(FOLDER, what + "_" + name), "wb") as file:
                file.write(bytes([CHUNKS | use << 2]) + data[1:])


def main():
    os.makedirs(FOLDER, exist_ok=True)
    if sys.argv[1:] == ["study"]:
        studies()
        return
    budget()
    for number, (name, options, command) in enumerate(recordings()):
        path = os.path.join(harness.scratch(), name + ".xpt")
        result = harness.run([harness.XPUTRACE, "record", "-o", path, *options, "--", *command],
                             env={**os.environ, "XPUTRACE_REGIONS": "enabled"})
        assert result.status == 0, result.stderr
        with open(path, "rb") as file:
            old, found = records(file.read())
        write(name, number % FORMATS, old, list(few(found)))
        if name == "regions":  # cut off, and of places that nothing says what they are
            write("regions_cut", 0, old, [record for record in few(found) if record[0] not in (SPEC, END)])
        if name == "qaic":  # what is chosen has neither a name nor a handle
            write("chosen_nothing", 0, old, [with_text(record, b"") if record[0] == CHOICE else record for record in few(found)])
    studies()


main()
