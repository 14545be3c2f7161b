# SPDX-License-Identifier: BSD-2-Clause
"""Stand-in runtimes: every call is in the trace, with its name, handle, size, core, stream and status."""

import collections
import re
import statistics

from harness import (REQUIRED, RUNNING, SLOW, Workload, alone, cases, compare, compare_calls, compare_programs,
                     entries_of, hexadecimal, library_path, record_late, standin, workload_path)

RUNTIMES = ("nrt", "qaic", "vaccel", "hip", "cuda", "cudart", "pjrt", "llama")


@cases(*RUNTIMES)
def test_late_attach(runtime):
    """Attached before the first call: exact calls and values."""
    results, trace = record_late(standin(runtime, "--calls", 120, "--programs", 3))
    compare(runtime, results, trace)


@cases("nrt", "cuda", "hip")
def test_plain_entries(runtime):
    """The same library compiled without endbr64 at the entries."""
    name = {"nrt": "libnrt.so.1", "cuda": "libcuda.so.1", "hip": "libamdhip64.so.6"}[runtime]
    results, trace = record_late(standin(runtime, "--library", library_path(name, "plain/lib"), "--calls", 120))
    compare(runtime, results, trace)


@cases(*RUNTIMES)
def test_threads(runtime):
    """Several threads call at once; each has a track of its own."""
    results, trace = record_late(standin(runtime, "--calls", 100, "--threads", 4))
    compare(runtime, results, trace)
    traced = {call.tid for call in trace.runs()}
    assert traced == set(results[0]["threads"]), "threads: made %s, traced %s" % (results[0]["threads"], traced)


@cases("nrt", "qaic", "vaccel", "hip", "cuda", "llama", "pjrt")
def test_failures(runtime):
    """Failed calls are marked, counted by program, and their status is the runtime's."""
    results, trace = record_late(standin(runtime, "--calls", 100, "--fail-every", 7))
    compare(runtime, results, trace)
    if runtime == "pjrt":  # the status is the address of an error object
        failed = 100 - sum(entry["count"] for entry in entries_of(results, "inferences"))
    else:
        warnings = {"llama": (1, 2)}.get(runtime, ())
        failed = sum(entry["count"] for entry in entries_of(results)
                     if "program" in entry and entry.get("status", 0) not in (0,) + warnings)
    assert failed >= 5
    assert sum(call.failed for call in trace.runs()) == failed
    assert sum(program["errors"] for program in trace.programs()) == failed


@cases("nrt", "qaic", "cuda", "pjrt", "vaccel", "llama")
def test_handle_reuse(runtime):
    """Programs are released and others loaded: the same handles, other programs."""
    results, trace = record_late(standin(runtime, "--calls", 60, "--reload"))
    compare(runtime, results, trace)
    names = collections.defaultdict(set)
    for entry in entries_of(results):
        if "program" in entry and "handle" in entry:
            names[int(entry["handle"], 16)].add(entry["program"])
    if runtime != "vaccel":  # there the handles come from malloc()
        assert any(len(one) > 1 for one in names.values()), "no handle was given out twice: the test proves nothing"
    for handle, reused in names.items():
        programs = [one for one in trace.programs() if hexadecimal(one["handle"]) == handle and one["name"] in reused]
        assert {one["name"] for one in programs} == reused, "%x: %s, traced %s" % (handle, reused, programs)
        generations = [one["generation"] for one in programs]
        assert len(set(generations)) == len(generations), "generations are not unique: %s" % programs


@cases("session", "multi", "perf")
def test_link_types(link):
    """Every way of linking gives the same."""
    for runtime in ("nrt", "hip"):
        results, trace = record_late(standin(runtime, "--calls", 100, "--threads", 2, "--fail-every", 10),
                                     "--link", link)
        compare(runtime, results, trace)
        assert trace.metadata["tracing"]["link"] == link, trace.metadata["tracing"]


@cases("session", "multi", "perf")
def test_sampling(link):
    """Every fourth call of each program is recorded; counts stay exact."""
    results, trace = record_late(standin("cuda", "--calls", 403), "--sample", 4, "--link", link)
    trace.check()
    made = collections.Counter()
    for entry in entries_of(results):
        if entry["function"].startswith("cuLaunchKernel"):
            made[entry["program"]] += entry["count"]
    for name, count in made.items():
        program, = [one for one in trace.programs() if one["name"] == name]
        assert program["calls"] == count, "%s: made %d: %s" % (name, count, program)
        assert program["recorded"] in (count // 4, -(-count // 4)), "%s: made %d: %s" % (name, count, program)
        assert program["left_out"] == count - program["recorded"], program
        recorded = [call for call in trace.runs() if call.program == name]
        assert len(recorded) == program["recorded"]
        assert all(call.sample == 4 for call in recorded)
    # what is not an execution is not sampled
    others = [entry for entry in entries_of(results) if entry["function"] not in RUNNING]
    compare_calls([{**results[0], "libraries": [{"calls": others}]}], trace, set(REQUIRED["cuda"].split()) - RUNNING)


@cases("hip", "cudart", "llama")
def test_layers(runtime):
    """The calls of the runtime below are there, inside, marked as layers, and counted nowhere as runs."""
    below = {"hip": "hsa", "cudart": "cuda", "llama": "ggml"}[runtime]
    results, trace = record_late(standin(runtime, "--calls", 100))
    compare(runtime, results, trace)
    inner = [call for call in trace.calls if call.runtime == below]
    assert inner, "no call of %s in the trace" % below
    outer = {"hip": ("hipMalloc", "hsa_amd_memory_pool_allocate"), "cudart": ("cudaMalloc", "cuMemAlloc_v2"),
             "llama": ("llama_decode", "ggml_backend_sched_graph_compute_async")}[runtime]
    layers = trace.of(outer[1])
    assert layers and all(call.layer for call in layers), "%s is not marked as a layer" % outer[1]
    for layer in layers:
        around = [call for call in trace.of(outer[0]) if call.tid == layer.tid and call.start <= layer.start
                  and layer.end <= call.end]
        assert around, "%s lies outside of %s" % outer[::-1]
    assert not trace.runs(below), "runs of %s were counted again" % below


def test_resolved_addresses():
    """Launches by the exported name and by the address that the driver hands out: each counted once. The thread waits until the
    address has its probe; where it does not, launches may be missing, which is counted."""
    results, trace = record_late(standin("cuda", "--calls", 100, "--resolve"), "--wait-limit", "30s")
    compare("cuda", results, trace)
    for options in (("--no-wait",), ("--wait-limit", "1us")):
        results, trace = record_late(standin("cuda", "--calls", 100, "--resolve"), *options)
        made = sum(entry["count"] for entry in entries_of(results) if entry["function"] == "cuLaunchKernel")
        traced = len([call for call in trace.of("cuLaunchKernel") if not call.layer])
        assert made == 75 and 50 <= traced <= 75, (options, made, traced)
        assert trace.losses() == {"late_probes": 1}, (options, trace.losses())


def test_resolved_addresses_sampled():
    """The same where most launches are left out: the function that a stub jumps to is not counted as another launch."""
    for sample in (2, 7):
        results, trace = record_late(standin("cuda", "--calls", 100, "--resolve", "--programs", 2), "--wait-limit", "30s", "--sample", sample)
        made = collections.Counter()
        for entry in entries_of(results):
            made[entry.get("program")] += entry["count"] if entry["function"].startswith("cuLaunchKernel") else 0
        counted = {program["name"]: program["calls"] for program in trace.programs(runtime="cuda") if program.get("calls")}
        assert counted == +made and len(counted) == 2, (sample, counted, +made)


def test_resolved_before_attach():
    """An address that was handed out before the attach cannot be known: all other launches are there."""
    results, trace = record_late(standin("cuda", "--calls", 100, "--resolve", "--load-first"))
    trace.check()
    # in turn by the exported name, by the address, by the twin _ptsz, and by cuLaunchKernelEx
    assert sum(entry["count"] for entry in entries_of(results) if entry["function"] == "cuLaunchKernel") == 75
    assert len(trace.of("cuLaunchKernel")) == 50 and len(trace.of("cuLaunchKernelEx")) == 25


@cases("nrt", "qaic", "cuda", "llama")
def test_loaded_before_attach(runtime):
    """The handle stands in for a name that was given before the attach, and is stable."""
    results, trace = record_late(standin(runtime, "--calls", 80, "--load-first"))
    trace.check()
    compare_calls(results, trace)
    compare_programs(results, trace, names=False)
    names = {call.handle: call.program for call in trace.runs()}
    assert len(set(names.values())) == len(names), names
    assert all(re.fullmatch(r"\w+ (model|kernel) \d+", name) for name in names.values()), names


def test_name_option():
    """--name gives such a program a name."""
    # the stand-in gives out addresses in its library: without randomisation every process has the same ones
    arguments = ["setarch", "-R", workload_path("workload"), "nrt", "--wait-for-go", "--calls", 40, "--programs", 1,
                 "--load-first"]
    results, _ = record_late(Workload(arguments))
    handle = next(entry["handle"] for entry in entries_of(results) if entry["function"] == "nrt_execute")
    again, trace = record_late(Workload(arguments), "--name", handle + "=my model")
    assert handle in {entry.get("handle") for entry in entries_of(again)}, "addresses are randomised: nothing tested"
    assert {call.program for call in trace.runs()} == {"my model"}


def test_stack_arguments():
    """Arguments beyond the sixth are right although the probe has been moved off endbr64."""
    results, trace = record_late(standin("cuda", "--calls", 40, "--threads", 3))
    compare("cuda", results, trace)
    streams = {int(entry["stream"], 16) for entry in entries_of(results) if entry["function"] == "cuLaunchKernel"}
    assert len(streams) == 3
    assert {call.stream for call in trace.of("cuLaunchKernel")} == streams
    results, trace = record_late(standin("nrt", "--calls", 64, "--programs", 2))
    loads = trace.of("nrt_load_collectives")
    assert len(loads) == 1 and loads[0].handle, "the out pointer in argument 6 was not followed"
    keys = [call.key for call in trace.of("nrta_tensor_write", "nrta_tensor_read", "nrta_tensor_copy")]
    assert len(keys) == 24 and None not in keys and len(set(keys)) == 24, "sequence numbers: %s" % keys


@alone("measures time")
def test_asynchronous_times():
    """From the enqueue to the end of the wait, not only the enqueue: at least the device's time."""
    device = int(2000 * SLOW)  # us; longer than an enqueue takes on a slow machine, but for a few
    results, trace = record_late(standin("qaic", "--calls", 50, "--duration-us", device))
    compare("qaic", results, trace)
    ends = {(event["id"], event["cat"]): event["ts"] for event in trace.events if event["ph"] == "e"}
    for event in trace.inferences:
        assert ends[event["id"], event["cat"]] - event["ts"] >= device
    enqueues = [call.duration for call in trace.of("qaicEnqueueExecObj")]
    measured = sum(entry["total_ns"] for entry in entries_of(results)
                   if entry["function"] == "qaicEnqueueExecObj") / 1000
    assert sum(enqueues) <= measured, "%.1f us in enqueues, the workload measured %.1f" % (sum(enqueues), measured)
    assert statistics.median(enqueues) < device, enqueues


def test_regions():
    """vAccel's own regions, by name."""
    results, trace = record_late(standin("vaccel", "--calls", 30))
    compare("vaccel", results, trace)
    regions = [event for event in trace.events if event["ph"] == "X" and event.get("cat", "") == "region,vaccel"]
    assert len(regions) == 30 and {event["name"] for event in regions} == {"vaccel_user_region"}


def test_callbacks():
    """Launches on a stream end when the function is called that was handed over for it: each before the next one begins."""
    results, trace = record_late(standin("hip", "--calls", 50, "--callbacks"), "--wait-limit", "30s")
    trace.check()
    assert not trace.losses(), trace.losses()
    launches = trace.of("hipLaunchKernel", "hipModuleLaunchKernel")
    synchronised, = trace.of("hipDeviceSynchronize")
    own = [program["latency_ns"] for program in trace.programs(runtime="hip") if program.get("calls")]
    assert len(launches) == len(trace.of("stream callback")) == sum(one["count"] for one in own) == 50, own
    # One after the other, where all ended by the last wait would overlap.
    took = (synchronised.start - min(call.start for call in launches)) * 1000
    assert 50 * 15000 < sum(one["sum"] for one in own) < took, "%s of %d ns" % (own, took)
