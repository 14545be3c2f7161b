# SPDX-License-Identifier: BSD-2-Clause
"""Code objects that programs give to stand-in runtimes: what was captured are the bytes that were given, by hash."""

from codeobj_loads import (FROM_FILES, FROM_MEMORY, KB, KINDS, LIBRARIES, MB, Capture, Loads, check_whole, elf, find,
                           make, neff)
from harness import SLOW, Skip, cases

SIZES = (KB, 4 * KB - 1, 64 * KB, 384 * KB - 1, 384 * KB + 1, MB)
FAILING = {"hipModuleLoadData": 200, "cuModuleLoadData": 200, "nrt_load": 2, "qaicOpenQpc": 6,
           "hsa_code_object_reader_create_from_memory": 0x1010, "zeModuleCreate": 0x70000004}


def functions_of(runtime, table):
    return {function: form for function, (one, form) in table.items() if one == runtime}


def capture_all(program, loads, **options):
    """Makes the loads, (function, objects, options) each, under one capture that has time. It, and what was made."""
    capture = Capture("-p", program.pid, "--code-wait-limit", "30s", **options)
    made = [(program.load(function, *objects, **words), objects) for function, objects, words in loads]
    captured = capture.stop()
    program.quit()
    return captured, made


def check_all(captured, made, kept=True):
    loads = []
    for lines, objects in made:
        assert lines
        loads += [check_whole(captured, line, objects[line["file"]], kept) for line in lines]
    return loads


@cases(*sorted({runtime for runtime, _ in FROM_MEMORY.values()}))
def test_sizes(runtime):
    """1 KB to 1 MB, a byte more and less than limits: each function of a runtime, which destroys the bytes."""
    loads = [(function, [make(form, size, seed)], {"spoil": "inside", "unload": "yes"})
             for function, form in functions_of(runtime, FROM_MEMORY).items() for seed, size in enumerate(SIZES)]
    captured, made = capture_all(Loads(runtime), loads)
    check_all(captured, made)
    assert captured.index["incomplete"] == captured.index["over_limit"] == captured.index["lost"] == 0
    for lines, _ in made:
        load = find(captured, lines[0])
        form = FROM_MEMORY[load["function"]][1]
        assert load["runtime"] == runtime
        assert captured.object_of(load)["kind"] == KINDS.get(form, captured.object_of(load)["kind"])


@cases(*sorted({runtime for runtime, _ in FROM_MEMORY.values()}))
def test_large(runtime):
    """20 MB: the process is held while they are read, and for as long as the record says."""
    function, form = sorted(functions_of(runtime, FROM_MEMORY).items())[0]
    captured, made = capture_all(Loads(runtime), [(function, [make(form, 20 * MB)], {"spoil": "inside"})])
    load, = check_all(captured, made)
    line, = made[0][0]
    assert 0 < load["waited_ns"] <= line["end_ns"] - line["begin_ns"], (load, line)


def test_very_large():
    """200 MB, once."""
    captured, made = capture_all(Loads("nrt"), [("nrt_load", [make(neff, 200 * MB)], {"spoil": "inside"})])
    check_all(captured, made)


@cases("plain", "end", "file")
def test_memory(memory):
    """Across pages from an odd address; with nothing mapped behind; of a file that has no page in memory."""
    loads = [(function, [make(form, size, seed)], {"memory": memory, "spoil": spoil})
             for function, form in (("hipModuleLoadData", elf), ("nrt_load", neff)) for spoil in ("inside", "after")
             for seed, size in enumerate((*SIZES, 5 * MB + 1))]
    captured, made = capture_all(Loads("hip", "nrt"), loads)
    check_all(captured, made)
    resident = [line["resident"] for lines, _ in made for line in lines]
    if memory == "file" and all(resident):
        raise Skip("all files stay in memory here: the bytes were compared, but pages were never missing")


@cases(4 * KB, 500 * KB, 3 * MB)
def test_threads(size):
    """8 threads at once, ten loads each: each has its own object, and each load is of its thread."""
    objects = [make(neff, size + index, index) for index in range(8)]
    captured, made = capture_all(Loads("nrt"), [("nrt_load", objects, {"threads": 8, "times": 10, "spoil": "inside"})])
    lines = made[0][0]
    assert len(lines) == 80 and len({line["tid"] for line in lines}) == 8
    check_all(captured, made)
    assert len(captured.loads("nrt_load")) == 80


@cases("hipModuleLoadData", "nrt_load", "qaicOpenQpc", "cuModuleLoadDataEx")
def test_often(function):
    """The same object 1,000 times: one file, 1,000 loads with their unloads."""
    runtime, form = FROM_MEMORY[function]
    given = make(form, 8 * KB)
    captured, made = capture_all(Loads(runtime), [(function, [given], {"times": 1000, "unload": "yes"})])
    check_all(captured, made)
    loads = captured.loads(function)
    assert len(made[0][0]) == len(loads) == 1000
    assert len({load["object"] for load in loads}) == 1
    named = [name for name in captured.files() if name.startswith(given.sha256)]
    assert named == [captured.object_of(loads[0])["file"]]
    for line in made[0][0]:
        load = find(captured, line)
        assert line["unload_begin_ns"] <= load["unloaded_ns"] <= line["unload_end_ns"], (line, load)


@cases(*sorted(FROM_MEMORY))
def test_unload(function):
    """When an object was unloaded; one that was not has no time."""
    runtime, form = FROM_MEMORY[function]
    given = make(form, 16 * KB)
    program = Loads(runtime)
    capture = Capture("-p", program.pid)
    unloaded, = program.load(function, given, unload="yes")
    stays, = program.load(function, given)
    captured = capture.stop()
    program.quit()
    load = check_whole(captured, unloaded, given)
    assert unloaded["unload_begin_ns"] <= load["unloaded_ns"] <= unloaded["unload_end_ns"], (unloaded, load)
    assert "unloaded_ns" not in check_whole(captured, stays, given)


@cases(*sorted(FAILING))
def test_failed(function):
    """The runtime refuses an object: it is recorded with what the runtime answered."""
    runtime, form = FROM_MEMORY[function]
    given = make(form, 16 * KB)
    captured, made = capture_all(Loads(runtime), [(function, [given], {"fail": "yes", "spoil": "inside"}),
                                                  (function, [make(form, 16 * KB, 2)], {})])
    failed, good = check_all(captured, made)
    assert made[0][0][0]["status"] == FAILING[function]
    assert failed["status"] == FAILING[function] and not failed.get("unloaded_ns"), failed
    assert not good.get("status", 0), good


def test_modes():
    """symbols: no bytes; memory: only those that were given in memory; all: also files. Hashes are always there."""
    given, file = make(elf, 64 * KB, 1), make(elf, 64 * KB, 2)
    for mode, kept in (("symbols", set()), ("memory", {given.sha256}), ("all", {given.sha256, file.sha256})):
        captured, made = capture_all(Loads("hip"), [("hipModuleLoadData", [given], {}), ("hipModuleLoad", [file], {})],
                                     mode=mode)
        assert captured.index["mode"] == mode
        for lines, objects in made:
            load = check_whole(captured, lines[0], objects[0], objects[0].sha256 in kept)
            assert captured.object_of(load)["kind"] == "hsaco" and captured.object_of(load)["machine"] == "gfx90a"
        if mode == "symbols":
            assert not captured.files(), captured.files()


def test_uris():
    """Where objects came from, as ROCm writes it."""
    given, file = make(elf, 64 * KB, 1), make(elf, 64 * KB, 2, name="a file with, blanks.hsaco")
    program = Loads("hip")
    captured, made = capture_all(program, [("hipModuleLoadData", [given], {}), ("hipModuleLoad", [file], {})])
    memory, path = check_all(captured, made)
    line, = made[0][0]
    assert memory["uri"] == "memory://%d#offset=0x%x&size=%d" % (program.pid, int(line["address"], 16), given.size)
    assert path["uri"] == "file://" + file.path.replace(" ", "%20").replace(",", "%2C"), path["uri"]


def test_end_unloads():
    """When the process has ended its objects are gone."""
    given = make(neff, 16 * KB)
    program = Loads("nrt")
    capture = Capture("-p", program.pid)
    line, = program.load("nrt_load", given)
    program.quit()
    captured = capture.finish()
    captured.check()
    load = check_whole(captured, line, given)
    assert load["unloaded_ns"] > line["end_ns"], load


def test_children():
    """Children that are forked load: the first child of a process has its probes a moment after the fork, which is said, later ones
    from their first instruction on."""
    given = make(neff, 100 * KB, 1), make(neff, 3 * MB, 2)
    program = Loads("nrt")
    capture = Capture("-p", program.pid, "--code-wait-limit", "30s")
    made = []
    for number in range(3):
        child = program.fork()
        if not number:
            capture.wait_line("stderr", "PID %d (" % child)
        lines = program.load("nrt_load", *given, threads=2, times=5)
        assert {line["pid"] for line in lines} == {child} and len(lines) == 10
        program.leave()
        made += lines
    made += program.load("nrt_load", *given[:1])
    captured = capture.stop()
    program.quit()
    for line in made:
        assert check_whole(captured, line, given[line["file"]])["pid"] == line["pid"]
    assert made[-1]["pid"] == program.pid and len(captured.files()) == 2
    assert len(captured.loads()) == len(made), "loads that nobody made"


def test_every_function():
    """All runtimes in one process, each function once, from memory and from files; and no load that nobody made."""
    tables = {**FROM_MEMORY, **FROM_FILES}
    given = {function: make(form, 32 * KB, seed) for seed, (function, (_, form)) in enumerate(sorted(tables.items()))}
    loads = Loads(*LIBRARIES)
    capture = Capture("-p", loads.pid)
    made = {function: loads.load(function, one) for function, one in given.items()}
    captured = capture.stop()
    loads.quit()
    for function, lines in made.items():
        check_whole(captured, lines[0], given[function])
    calls = [line for lines in made.values() for line in lines]
    for load in captured.loads():  # inside of a call a runtime may give something to the one below it
        assert any(line["begin_ns"] <= load["loaded_ns"] <= line["end_ns"] for line in calls), "nobody made %s" % load
