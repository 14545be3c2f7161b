# SPDX-License-Identifier: BSD-2-Clause
"""Names from the target never break the trace: quotes, control bytes, invalid UTF-8, bad pointers, 1 MB."""

import collections
import csv
import importlib
import io
import json
import os
import re
import shutil
import string
import subprocess
import sys

import perfetto
import python_root
import test_sql
from harness import (ROOT, SLOW, XPUTRACE, Process, Recorder, Trace, Workload, cases, compare_calls, entries_of, library_path, record_late, run,
                     scratch, standin, workload_path)
from onnx_models import SCRIPTS, library, model
from strict_csv import strict_rows

# In the order of tests/workload/scenario/hostile.c; None: what cannot be read has no name.
NAMES = [
    b"plain",
    b"quote\" backslash\\ slash/",
    b"new\nline\ttab\rreturn\x1b[31mescape\x07",
    b"\x01\x02\x1f\x7f",
    b"invalid \xff\xfe utf-8 \xc3",
    b"overlong \xc0\xaf surrogate \xed\xa0\x80 too large \xf4\x90\x80\x80",
    "\u2028separator \U0001f680".encode(),
    b"</script><b>&amp;%s%n%1000000d",
    b"\"},{\"name\":\"injected\",\"ph\":\"i\",\"ts\":0",
    b"",
    b"L" * (1 << 20),
    b"unterminated",
    None,
    None,
    None,
]


def names_by_handle(results):
    numbers = {}
    for entry in entries_of(results):
        if entry["function"] == "cuModuleGetFunction":
            numbers[int(entry["handle"], 16)] = int(entry["program"].rsplit(".", 1)[1])
    return numbers


def check_names(results, trace):
    numbers = names_by_handle(results)
    assert len(numbers) == len(NAMES)
    by_handle = {}
    for call in trace.runs():
        by_handle.setdefault(call.handle, []).append(call.program)
    for handle, number in numbers.items():
        shown = set(by_handle[handle])
        assert len(shown) == 1, "name number %d is shown as %s" % (number, shown)
        shown, = shown
        assert len(by_handle[handle]) == 5 * (number + 1), "name number %d" % number
        original = NAMES[number]
        if original is None or original == b"unterminated" and shown.startswith("cuda kernel "):
            assert re.fullmatch(r"cuda kernel \d+", shown), "name number %d is shown as %r" % (number, shown)
            continue
        if not original:
            assert not shown or re.fullmatch(r"cuda kernel \d+", shown), "the empty name is shown as %r" % shown
            continue
        # what can be shown is shown: the ASCII letters, in their order
        letters = [c for c in original.decode("utf-8", "ignore") if c.isalnum() and c.isascii()]
        seen = [c for c in shown if c.isalnum() and c.isascii()]
        assert seen[:200] == letters[:200], "name number %d is shown as %r" % (number, shown[:300])
        assert len(shown) <= 2000, "a name of %d characters" % len(shown)


def test_names():
    """As JSON: each name is there as far as it can be shown; counts are exact."""
    workload = standin("hostile", "--calls", 5)
    recorder = Recorder("-p", workload.pid)
    workload.go()
    results = workload.results()
    trace = recorder.finish()
    trace.check()
    compare_calls(results, trace, {"cuLaunchKernel", "cuModuleGetFunction"})
    check_names(results, trace)
    assert not [event for event in trace.events if event["name"] == "injected"]
    # the summary on the terminal obeys no escape sequence of the target
    assert "\x1b[31m" not in recorder.stdout and "\x07" not in recorder.stdout


def test_names_through_recording():
    """The same through a recording."""
    workload = standin("hostile", "--calls", 5)
    folder = scratch()
    recorder = Recorder("-p", workload.pid, output=os.path.join(folder, "recording.xpt"))
    workload.go()
    results = workload.results()
    assert recorder.wait() == 0, recorder.stderr
    output = os.path.join(folder, "trace.json")
    assert run([XPUTRACE, "report", recorder.output, "-o", output]).status == 0
    check_names(results, Trace(output))


def test_names_in_other_formats():
    """Perfetto's trace processor and SQLite read the names that the Chrome trace has, and as many inferences of each."""
    workload = standin("hostile", "--calls", 5)
    recorder = Recorder("-p", workload.pid, output=os.path.join(scratch(), "recording.xpt"))
    workload.go()
    workload.results()
    assert recorder.wait() == 0, recorder.stderr
    perfetto.compare(recorder.output)
    runs = collections.Counter(run.program for run in Trace(perfetto.report(recorder.output, ".json")).runs())
    rows = test_sql.database_of(recorder.output).execute(
        "SELECT programs.name, count(*) FROM inferences JOIN programs ON programs.id = program GROUP BY programs.id").fetchall()
    assert len(runs) >= 10 and len(dict(rows)) == len(rows) and dict(rows) == runs, (rows, runs)


def test_process_names():
    """Names of threads and processes, and command lines."""
    name = "\"\\\n\x01'</b>"
    workload = Workload([workload_path("workload"), "nrt", "--wait-for-go", "--calls", 10, "--name", name])
    results, trace = record_late(workload)
    trace.check()
    compare_calls(results, trace, {"nrt_execute"})
    names = [event["args"]["name"] for event in trace.events
             if event["ph"] == "M" and event["name"] == "process_name" and event["pid"] == workload.pid]
    assert names and all("'</b>" in one for one in names), names


def test_independent_reader():
    """Another JSON parser reads the hostile trace too."""
    results, trace = record_late(standin("hostile", "--calls", 1))
    compare_calls(results, trace)
    subprocess.run([sys.executable, "-m", "json.tool", trace.path, os.devnull], check=True)
    try:
        subprocess.run(["node", "-e", "JSON.parse(require('fs').readFileSync(process.argv[1], 'utf8'))", trace.path],
                       check=True)
    except FileNotFoundError:
        pass


# ---- every byte through every output ----

EVERY_BYTE = bytes(set(range(1, 256)) - {ord("/")})


def no_constant(text):
    raise AssertionError("%s is no JSON" % text)


def strict_json(text):
    return json.loads(text, parse_constant=no_constant, object_pairs_hook=unique)


def unique(pairs):
    found = dict(pairs)
    assert len(found) == len(pairs), "a member twice: %s" % pairs
    return found


def check_terminal(what, text):
    """Lines that no terminal does anything with but show them."""
    bad = sorted({character for character in text if not character.isprintable()} - {"\n"})
    assert not bad, "%s shows %s" % (what, bad)


def check_file(path):
    if not path.endswith((".json", ".csv")):
        return
    with open(path, "rb") as file:
        text = file.read().decode()
    if path.endswith(".json"):
        strict_json(text)
    else:
        assert strict_rows(text, "qaic" in os.path.basename(path)) == list(csv.reader(io.StringIO(text, newline=""), strict=True))


def hostile_program():
    """A program whose path, library and programs hold every byte, for ever."""
    folder = os.path.join(os.fsencode(scratch()), EVERY_BYTE)
    os.mkdir(folder)
    program, library = os.path.join(folder, EVERY_BYTE), os.path.join(folder, b"lib" + EVERY_BYTE[:250])
    shutil.copy(workload_path("workload"), program)
    shutil.copy(library_path("libcuda.so.1"), library)
    return Workload([os.fsdecode(program), "hostile", "--wait-for-go", "--calls", 0, "--rate", 20, "--library", os.fsdecode(library)])


PLAIN = '"quote\\ ,;=1+1 </b> \u202e\u2028 \U0001f680'  # nothing that a name may not have
GRAPHS = (EVERY_BYTE, b"invalid \xff\xfe \xc3", b"new\nline\r\ttab \x1b]0;x\x07", b"L" * 5000, PLAIN.encode())
NODES = (b"\x1b[31m\xff\n\",\x01\xc3\x07", ",\"\u202e\U0001f680;='".encode())  # as long as the names that they replace


def hostile_models():
    """Models in files whose names hold every byte or are long, and models whose graph and nodes are called so, loaded from bytes. Nobody
    has seen their loads: the names are read in the memory of the process."""
    sys.path.insert(0, SCRIPTS)
    make_model, onnx_writer = (importlib.import_module(name) for name in ("make_model", "onnx_writer"))
    graphs, folder = [], os.path.join(os.fsencode(scratch()), EVERY_BYTE)
    for number, name in enumerate(GRAPHS):
        graph = make_model.MODELS["small"](hidden=16)
        graph.name = "@" * len(name)
        graphs.append(os.path.join(scratch(), "%d.bin" % number))
        onnx_writer.write_model(graph, graphs[-1])
        with open(graphs[-1], "r+b") as file:
            content = file.read()
            for known, hostile in ((b"active1_node", NODES[0]), (b"active2_node", NODES[1]), (graph.name.encode(), name)):
                assert len(hostile) == len(known) and content.count(known) == 1
                content = content.replace(known, hostile)
            file.seek(0)
            file.write(content)
    os.mkdir(folder)
    paths = [os.path.join(folder, EVERY_BYTE[:249] + b".onnx"), os.path.join(os.fsencode(scratch()), PLAIN.replace("/", "").encode() + b".onnx")]
    for path in paths:
        shutil.copy(model("small", hidden=16), path)
    return [Workload(python_root.direct(os.path.join(ROOT, "tests", "workload", "python", "serve.py"), *graphs, "--array", "--wait", "--runs",
                                        "100000000", "--rate", "100")),
            Workload([workload_path("onnx"), library(), *map(os.fsdecode, (paths[0], "--other", paths[1])), "--sessions", "2", "--threads", "2", "--batch", "1",
                      "--wait-for-go", "--runs", "100000000"])]


@cases("calls", "memory")
def test_every_output(source):
    """What all commands print and write while such a program runs, as strict readers see it."""
    workloads = hostile_models() if source == "memory" else [hostile_program()]
    for workload in workloads:
        workload.go()
    folder, pid = scratch(), ",".join(str(workload.pid) for workload in workloads)

    def path(name):
        return os.path.join(folder, name)
    lasting = ["-d", "%gs" % (0.3 * SLOW)]
    ops = ["--ops"] if source == "memory" else []
    commands = [
        ["record", "-p", pid, "-o", path("trace.json"), "--summary-json", path("summary.json"), *lasting],
        ["record", "-p", pid, "-o", path("recording.xpt"), *ops, *lasting],
        ["report", path("recording.xpt"), "-o", path("report.json"), "--summary-json", path("report-summary.json")],
        ["report", path("recording.xpt"), "--format", "csv", "-o", path("rows.csv")],
        ["stream", "-p", pid, "--match", ".", "-o", path("latency.csv"), *lasting],
        ["stream", "-p", pid, "--match", ".", "--layout", "qaic", "-o", path("qaic.csv"), *lasting],
    ]
    if source == "calls":
        commands += [
            ["report", path("recording.xpt"), "--format", "ort", "-o", path("ort.json")],
            ["report", path("recording.xpt"), "--format", "qnn-csv", "-o", path("qnn.csv")],
            ["stream", "-p", pid, "--match", ".", "--summary", "-o", path("summary.csv"), *lasting],
            ["stream", "-p", pid, "--match", ".", "--type", "trace", "-o", path("stream.json"), *lasting],
            ["inspect", "-p", pid, "-o", path("inspect"), *lasting],
            ["codeobj", "-p", pid, "-o", path("objects"), *lasting],
            *[["list", what, "-p", pid, *form] for form in ([], ["--format", "json"]) for what in ("runtimes", "sites", "programs")],
        ]
    try:
        for words in commands:
            shown = run([XPUTRACE] + words)
            assert shown.status == 0, (words, shown.stdout, shown.stderr)
            check_terminal("standard error of %s" % words, shown.stderr)
            if "json" in words:
                strict_json(shown.stdout)
            if words[0] == "list" and words[1] != "programs":
                assert string.ascii_uppercase in shown.stdout, "the name of the library is missing"
            check_terminal("%s" % words, shown.stdout)
    finally:
        for workload in workloads:
            workload.child.kill()
    written = [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]
    for one in written:
        check_file(one)
    assert {os.path.splitext(one)[1] for one in written} >= {".json", ".csv", ".xpt"}, written
    if source == "memory":
        names = {program["name"] for program in Trace(path("trace.json")).programs()}
        assert PLAIN in names and any(name.endswith(PLAIN.replace("/", "") + ".onnx") for name in names), names
        names -= {name for name in names if re.fullmatch(r"onnxruntime model \d+", name)}
        assert len(names) <= 3 and all(PLAIN.replace("/", "") in name.replace("/", "") or name == "small" for name in names), names
