# SPDX-License-Identifier: BSD-2-Clause
"""Code objects in a trace: record --codeobj, with stand-ins and for real; kernels launched by host addresses."""

import hashlib
import json
import os
import re
import signal

from codeobj_loads import FROM_FILES, FROM_MEMORY, KB, KINDS, LIBRARIES, MB, Loads, coded, make, neff
from harness import SLOW, WORKLOADS, XPUTRACE, Process, Recorder, Skip, Trace, Workload, cases, run, scratch, \
    workload_path
from onnx_models import model, serve
from recordings import Recording
from test_opencl import program as opencl_program

STAND_INS = ("hip", "cuda", "cudart", "nrt")
NAMED = {"cudaLaunchKernel": ["_Z9vectoraddPfS_", "_Z9vectormulPfS_"], "hipLaunchKernel": ["_Z9vectorsubPfS_"]}


def instants(trace, word):
    """Loads, or unloads, in the trace."""
    return [event for event in trace.events if event.get("cat") == "codeobj" and event["name"].startswith(word + " ")]


def waits(trace):
    """Begin and end, ns, and what it was for, of each wait."""
    ends = {event["id"]: event for event in trace.events if event["ph"] == "e" and event["name"] == "waited"}
    return [(round(event["ts"] * 1000), round(ends[event["id"]]["ts"] * 1000), event["args"])
            for event in trace.events if event["ph"] == "b" and event["name"] == "waited"]


def inside(event, begin, end):
    return begin <= round(event["ts"] * 1000) <= end


def load_of(trace, made, given):
    """The instant of a load that was made, as the workload saw it."""
    found = [event for event in instants(trace, "load") if event["args"].get("function") == made["function"]
             and event["tid"] == made["tid"] and inside(event, made["begin_ns"], made["end_ns"])]
    assert len(found) == 1, "%d loads of %s in the trace: %s" % (len(found), made, instants(trace, "load"))
    event, = found
    assert event["ph"] == "i" and event["s"] == "t" and event["pid"] == made["pid"], event
    assert event["args"]["sha256"] == given.sha256 and event["args"]["size"] == given.size, (event, given.sha256)
    assert int(event["args"]["handle"], 16) == int(made["handle"], 16), (event, made)
    assert "found" not in event["args"], event
    return event


def check_unload(trace, made, given):
    found = [event for event in instants(trace, "unload") if event["args"].get("sha256") == given.sha256
             and inside(event, made["unload_begin_ns"], made["unload_end_ns"])]
    assert len(found) == 1, "%d unloads of %s: %s" % (len(found), made, instants(trace, "unload"))


def functions_of(runtime):
    return {function: form for function, (one, form) in {**FROM_MEMORY, **FROM_FILES}.items() if one == runtime}


def check_made(trace, made):
    """All that was made is there, and in the totals. made: (line, object) each."""
    for line, given in made:
        load_of(trace, line, given)
        if "unload_begin_ns" in line:
            check_unload(trace, line, given)
    totals = trace.metadata["code_objects"]
    assert totals["loads"] == len(instants(trace, "load")) >= len(made), totals
    assert totals["unloads"] == len(instants(trace, "unload")), totals
    assert sum(kind["loads"] for kind in totals["kinds"]) == totals["loads"], totals
    assert totals["incomplete"] == 0, totals
    rows = {one["sha256"]: one for one in totals["objects"] if "sha256" in one}
    for _, given in made:
        assert rows[given.sha256]["size"] == given.size, rows[given.sha256]
        assert rows[given.sha256]["loads"] == sum(one is given for _, one in made), rows[given.sha256]


def check_table(text, made, forms):
    """The table of the summary has a line for each object."""
    assert re.search(r"^CODE OBJECT +KIND +MACHINE +SIZE +LOADS +KERNELS$", text, re.MULTILINE), text
    for line, given in made:
        kind = KINDS.get(forms[line["function"]])
        where = coded(given.path) if line["function"] in FROM_FILES else "&size=%d" % given.size
        rows = [row.split() for row in text.splitlines() if where in row]
        assert rows and (not kind or any(row[1] == kind for row in rows)), (line, where, text)


@cases(*STAND_INS)
def test_attached(runtime):
    """Each load and unload of a stand-in; the same from a recording, as the report and as a second reader see it."""
    forms = functions_of(runtime)
    given = {function: make(form, 24 * KB, seed) for seed, (function, form) in enumerate(sorted(forms.items()))}
    program = Loads(runtime)

    def load_all():
        return [(program.load(function, one, unload="yes", spoil="inside")[0], one) for function, one in given.items()]

    direct = Recorder("--codeobj", "-p", program.pid)
    made = load_all()
    trace = direct.stop()
    trace.check()
    check_made(trace, made)
    check_table(direct.stdout, made, forms)
    # One after the other: of two collectors that stop a process, one lets it go while the other one reads.
    recording, output = os.path.join(scratch(), "loads.xpt"), os.path.join(scratch(), "loads.json")
    kept = Process([XPUTRACE, "record", "--codeobj", "-o", recording, "-p", str(program.pid)])
    kept.wait_line("stderr", "attached")
    made = load_all()
    kept.signal(signal.SIGINT)
    assert kept.wait() == 0, kept.stderr
    program.quit()
    result = run([XPUTRACE, "report", recording, "-o", output])
    assert result.status == 0, result.stderr
    check_made(Trace(output), made)
    check_table(result.stdout, made, forms)
    check_recording(Recording(recording), made)


def check_recording(recording, made):
    for line, given in made:
        loads = [one for one in recording.code if one.text and one.text.get("sha256") == given.sha256
                 and line["begin_ns"] <= one.time <= line["end_ns"]]
        assert len(loads) == 1 and loads[0].tgid == line["pid"] and loads[0].handle == int(line["handle"], 16), loads
        if "unload_begin_ns" in line:
            assert [one for one in recording.code if one.text is None and one.handle == loads[0].handle
                    and line["unload_begin_ns"] <= one.time <= line["unload_end_ns"]], (line, recording.code)


def test_command():
    """A command from its begin on; its input is the test's."""
    given = make(neff, 24 * KB)
    recorder = Recorder("--codeobj", "--", workload_path("code_loads"), LIBRARIES["nrt"], wait=False)
    recorder.wait_line("stdout", '"ready"')
    # It may have ended before the bytes of its object have been looked at.
    recorder.send("nrt_load %s unload=yes spoil=inside\nquit\n" % coded(given.path))
    trace = recorder.finish()
    trace.check()
    lines = [json.loads(line) for line in recorder.stdout.splitlines() if line.startswith('{"function"')]
    check_made(trace, [(line, given) for line in lines])
    assert len(lines) == 1


def test_waits():
    """A large object: the call waits, once, and the trace says for what; not with --no-wait."""
    given = make(neff, 8 * MB)
    for options in ((), ("--no-wait",)):
        program = Loads("nrt")
        recorder = Recorder("--codeobj", "-p", program.pid, *options)
        line, = program.load("nrt_load", given, spoil="after")
        trace = recorder.stop()
        program.quit()
        totals, waited = trace.metadata["code_objects"], waits(trace)
        event, = [one for one in instants(trace, "load") if one["args"]["function"] == "nrt_load"]
        assert event["args"]["size"] == given.size, event
        if options:
            assert not waited and totals["waited"] == 0 and "waited_us" not in event["args"], (waited, event)
            assert event["args"]["missing"] and event["args"]["error"] and totals["incomplete"] == 1, event
            assert "incomplete: 1 of" in recorder.stdout and "waited:" not in recorder.stdout, recorder.stdout
            continue
        load_of(trace, line, given)
        (begin, end, about), = waited
        assert about["code_object"] == event["name"].partition(" ")[2], (about, event)
        assert line["begin_ns"] <= begin < end <= line["end_ns"] + 50e6 * SLOW, (line, waited)
        assert totals["waited"] == 1 and trace.metadata["waited"] == 0, totals
        assert "waited: 1 times while code objects were read" in recorder.stdout, recorder.stdout


def test_without():
    """Without --codeobj: no instants, no table, and probes at the same places."""
    program = Loads("nrt")
    sites = []
    for options in ((), ("--codeobj",), ()):
        recorder = Recorder("-p", program.pid, *options)
        program.load("nrt_load", make(neff, 24 * KB), unload="yes")
        trace = recorder.stop()
        sites.append(int(re.search(r"attached to .*: (\d+) probes", recorder.stderr).group(1)))
        assert bool(instants(trace, "load")) == ("CODE OBJECT" in recorder.stdout) == bool(options), recorder.stdout
        assert not options or trace.of("nrt_load"), "the call itself is traced as well"
    program.quit()
    assert sites[0] == sites[2] <= sites[1], sites


# ---- kernels by address ----

def stubs():
    """The program; it has registered its kernels, unseen."""
    program = Process([workload_path("stubs")])
    program.wait_line("stdout", '"ready"')
    return program


def launches(trace, pid):
    return {function: [call.event["name"] for call in trace.of(function, pid=pid, layer=False)] for function in NAMED}


def test_symbols():
    """Attached late: launches by the addresses of stubs, functions and variables are named, in children as well."""
    program = stubs()
    recording = os.path.join(scratch(), "stubs.xpt")
    kept = Process([XPUTRACE, "record", "--codeobj", "-o", recording, "-p", str(program.pid)])
    kept.wait_line("stderr", "attached")
    recorder = Recorder("--codeobj", "-p", program.pid)
    program.send("launch\nlaunch\nfork %d\n" % (300000 * SLOW))  # probes are placed in the child meanwhile
    program.wait_line("stdout", '"begin_ns"', 3)
    trace = recorder.stop()
    kept.signal(signal.SIGINT)
    assert kept.wait() == 0, kept.stderr
    program.kill()
    lines = [json.loads(line) for line in program.stdout.splitlines()[1:4]]
    child = lines[2]["pid"]
    assert child != program.pid
    output = os.path.join(scratch(), "stubs.json")
    assert run([XPUTRACE, "report", recording, "-o", output]).status == 0
    for one in (trace, Trace(output)):
        for pid, times in ((program.pid, 2), (child, 1)):
            names = launches(one, pid)
            assert names["cudaLaunchKernel"] == NAMED["cudaLaunchKernel"] * times, names
            assert names["hipLaunchKernel"][::2] == NAMED["hipLaunchKernel"] * times, names
            assert all(re.fullmatch(r"hip kernel \d+", name) for name in names["hipLaunchKernel"][1::2]), names
    symbols = Recording(recording).symbols
    reported = sorted(name for (tgid, _), name in symbols.items() if tgid == program.pid)
    assert reported == sorted(sum(NAMED.values(), [])), symbols


def test_symbols_without():
    """Without --codeobj no file of the target is read for names: kernels have none."""
    program = stubs()
    recorder = Recorder("-p", program.pid)
    program.send("launch\n")
    program.wait_line("stdout", '"begin_ns"')
    trace = recorder.stop()
    program.kill()
    names = sum(launches(trace, program.pid).values(), [])
    assert len(set(names)) == 4 and all(re.fullmatch(r"\w+ kernel \d+", name) for name in names), names


# ---- for real ----

def test_opencl():
    """PoCL: a program's source with the kernels in it."""
    opencl_program()  # is there a device?
    path = os.path.join(WORKLOADS, "opencl_loads")
    if not os.path.exists(path):
        raise Skip("the OpenCL workload could not be built here")
    source = os.path.join(scratch(), "source.cl")
    with open(source, "w", encoding="ascii") as file:
        file.write("kernel void vector_add(global float *b) {\n\tb[get_global_id(0)] += 1;\n}\n")
    workload = Workload([path, os.path.join(scratch(), "binary"), source], start_new_session=True)
    recorder = Recorder("--codeobj", "-p", workload.pid)
    workload.go()
    assert workload.wait() == 0, workload.stderr
    trace = recorder.finish()
    loads = [event["args"] for event in instants(trace, "load") if event["args"]["kind"] == "opencl"]
    assert loads and loads[0]["kernels"] == ["vector_add"] and loads[0]["size"] == os.path.getsize(source), loads


def test_onnx():
    """ONNX Runtime of npm: the session that is made again after the attachment loads the model's file."""
    path = model("small")
    server = Workload(serve(path, "--wait", "--runs", 1, "--recreate"), start_new_session=True)
    recorder = Recorder("--codeobj", "-p", server.pid)
    server.go()
    server.results()
    trace = recorder.finish()
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    event, = [event for event in instants(trace, "load") if event["args"]["kind"] == "onnx"]
    assert event["name"] == "load onnx small" and event["args"]["sha256"] == digest, event
    assert event["args"]["runtime"] == "onnxruntime" and event["args"]["uri"] == "file://" + path, event
    call, = [one for one in trace.of("CreateSession") if not one.layer]
    assert call.start <= event["ts"] <= call.end and call.tid == event["tid"], (call.event, event)
