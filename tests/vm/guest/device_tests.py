# SPDX-License-Identifier: BSD-2-Clause
"""What xputrace says of jobs of the tests' accelerator, against what the device itself has reported to the program."""

import os
import subprocess
import time

import accelerator
import devices
from accelerator import DESCRIPTION, TIMEOUT_MS, command, load, loaded, unload
from devices import check, check_attribution, check_busy, check_columns, executions_of, jobs_in, overtaken, pair
from harness import (SLOW, Process, Recorder, Workload, cases, compare, record_command, results_in, run, scratch,
                     wait_until)
from reports import Stream
from skipped import SKIPPED, UNCOUNTED, skipped_at_most
from test_agent import check_shared, sharers, watching

THREADS, CALLS, JOBS = 4, 12, 3
CROWD = ("--threads", THREADS, "--calls", CALLS, "--jobs", JOBS, "--engines", 2)
OPTIONS = ("--driver", DESCRIPTION)


def others_in(trace):
    """Jobs of others on this device. The machine's console is a virtio GPU: where its driver's events have no number (6.1),
    none of them can be left out, and the kernel's own commands are there."""
    return [job for job in jobs_in(trace, other=True) if "virtio_gpu" not in job.categories]


def record(runtime, *options, duration_us=3000, recorder_options=()):
    """The workload from its first instruction; its results and the trace."""
    results, trace, recorder = record_command(command(runtime, *options, duration_us=duration_us), *OPTIONS,
                                              *recorder_options)
    return results, trace, recorder


def check_times(kernel, trace, pairs):
    """Queued within the ioctl; device time as the device says. The pairs of jobs whose end was seen."""
    ended = devices.check_times(pairs)
    missing = len(pairs) - len(ended)
    assert missing <= skipped_at_most(kernel, trace, pairs), "%d of %d jobs have no end, lost: %s" % (
        missing, len(pairs), trace.losses())
    return ended


@cases("nrt", "qaic", "cuda")
def test_crowd(kernel, runtime):
    """4 threads in each of 2 processes, several jobs an inference, jobs that overtake each other, failures."""
    load(slots=2)
    processes = [Workload(command(runtime, *CROWD, "--wait-for-go", "--fail-jobs", 7, duration_us=3000)) for _ in "ab"]
    recorder = Recorder("-p", ",".join(str(process.pid) for process in processes), *OPTIONS)
    for process in processes:
        process.go()
    results = [result for process in processes for result in process.results()]
    trace = recorder.finish()
    reported = check(results)
    assert len(reported) == 2 * THREADS * CALLS * JOBS and overtaken(reported) > 10
    traced = jobs_in(trace)
    pairs = pair(reported, traced)
    ended = check_times(kernel, trace, pairs)
    check_attribution(trace, pairs)
    for job_reported, job in ended:
        assert job.failed == bool(job_reported["error"]), (job_reported, job.arguments)
    lost = trace.losses()
    assert not others_in(trace) and not set(lost) - {"nested", "job_ends"} and lost.get("job_ends", 0) <= len(pairs) - len(ended), lost
    compare(runtime, results, trace, lossless=False)


def test_busy(kernel):
    """Sums: a queue has been busy for as long as at least one of its jobs was with the device; programs share that."""
    load(slots=2)
    results, trace, _ = record("nrt", "--threads", THREADS, "--calls", 4, "--jobs", JOBS, "--engines", 2,
                               duration_us=60000)
    reported = check(results)
    pairs = check_times(kernel, trace, pair(reported, jobs_in(trace)))
    for engine in (0, 1):
        mine = [(reported, job) for reported, job in pairs if reported["engine"] == engine]
        (queue,) = [one for one in trace.metadata["queues"] if one["engine"].endswith(".%d" % engine)]
        assert queue["jobs"] == queue["target_jobs"] == len(mine)
    if len(pairs) == len(reported):  # else a queue is taken for busy while the end of a job has not been seen
        check_busy(trace, pairs)


def test_others(kernel):
    """Jobs of a process that is not traced are there as its own, and counted for nobody."""
    load(slots=1, engines=1)
    other = Process(command("nrt", "--calls", 20000, "--threads", 2, duration_us=2000))  # until it is killed
    wait_until(lambda: accelerator.jobs_left() > 0, "the other process works")
    results, trace, _ = record("nrt", "--calls", 20, "--jobs", 2)
    other.kill()
    pairs = pair(check(results), jobs_in(trace))
    ended = check_times(kernel, trace, pairs)
    check_attribution(trace, pairs)
    others = others_in(trace)
    # Of those that were queued before the target used the device, nobody is known.
    assert {other.pid} <= {job.pid for job in others} <= {other.pid, None}, {job.pid for job in others}
    (queue,) = [one for one in trace.metadata["queues"] if one["jobs"] and one["driver"] != "virtio_gpu"]
    assert queue["target_jobs"] == len(ended) and queue["jobs"] > queue["target_jobs"], queue
    assert queue["target_us"] < queue["busy_us"], queue


def test_shared(kernel):
    """What the agent says of two processes on one engine, which runs one job at a time."""
    load(slots=1, engines=1)
    workloads = sharers(accelerator.NODE, (20, 8), duration_us=30000)

    def missing(samples):
        if kernel == UNCOUNTED:
            return SKIPPED * 2 * 2 * (20 + 8)
        return sum(value for labels, value in samples["xputrace_events_lost_total"] if labels["cause"] == "nested")

    with watching("--budget", "none", *OPTIONS, pids=[workload.pid for workload in workloads.values()]) as agent:
        # Before 6.17 events name no device: where there is one GPU alone, such as virtio_gpu, the jobs are taken for its own.
        named = {"driver": "gpu_scheduler"} if kernel == "newest" else {}
        jobs = check_shared(agent, workloads, missing=missing, **named)
    assert len(jobs) == 2 * 2 * (20 + 8)


@cases("nrt", "qaic")
def test_columns(kernel, runtime):
    """The columns of a latency report, each against the times that the program and the device have reported."""
    load(slots=1, engines=1)
    output = os.path.join(scratch(), "latency.csv")
    stream = Stream(*OPTIONS, "--append", "--report-every", "10s", "--", *command(
        runtime, "--calls", 30, "--jobs", 2, duration_us=20000), output=output, wait=False)
    blocks = stream.blocks()
    samples = [sample for block in blocks for sample in block.samples]
    check_columns(executions_of(results_in(stream.stdout)), samples, missing=SKIPPED)
    assert len(samples) >= 30, "%d samples" % len(samples)
    assert {sample.row["jobs"] for sample in samples} == {"2"}


def test_reset(kernel):
    """A job that hangs until its engine is reset: the job, and the reset, on the track of that engine."""
    load(timeout_ms=TIMEOUT_MS)
    results, trace, _ = record("nrt", "--threads", 2, "--calls", 20, "--engines", 2, "--hang-jobs", 10)
    reported = check(results)
    hung = [job for job in reported if job["asked"] == "hang"]
    pairs = pair(reported, jobs_in(trace))
    check_times(kernel, trace, pairs)
    assert {job["number"] for job, traced in pairs if traced.failed} == {job["number"] for job in hung}
    resets = [event for event in trace.events if event.get("cat") == "reset,xptaccel"]
    assert len(resets) == len(hung) == 4, resets
    assert all(event["args"]["status"] == -62 for event in resets), resets


@cases("traced", "beside")
def test_killed(kernel, which):
    """A process is killed with jobs that run and jobs that wait: these are dropped, and no one reports an end of them. They
    wait no more, are counted, and the jobs of others are as ever. Traced, or beside the one that is."""
    load(slots=1, engines=1, timeout_ms=10000)
    words = command("qaic", "--threads", 2, "--jobs", 8, duration_us=2000000)  # to end, it waits for each context, up to a second
    survivor = Workload(command("nrt", "--calls", 200, "--wait-for-go", duration_us=3000))
    killed = Workload([*words, "--wait-for-go"])
    pids = [survivor.pid] + [killed.pid] * (which == "traced")
    recorder = Recorder("-p", ",".join(map(str, pids)), *OPTIONS)
    if which == "beside":
        survivor.go()
        wait_until(lambda: accelerator.jobs_left() > 0, "the device is known to be used by one that is traced")
    killed.go()
    wait_until(lambda: accelerator.jobs_left() >= 12, "jobs wait")
    moment = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    killed.kill()
    wait_until(lambda: accelerator.jobs_left() <= 2, "they were dropped")
    if which == "traced":
        survivor.go()
    results = survivor.results()
    trace = recorder.finish()
    jobs = jobs_in(trace) + others_in(trace)
    mine = [job for job in jobs if job.pid == killed.pid]
    pairs = pair(check(results), [job for job in jobs_in(trace) if job.pid == survivor.pid])
    check_times(kernel, trace, pairs)
    dropped = [job for job in mine if job.ended is None]
    assert len(mine) >= 12 and len(dropped) >= 8, (len(mine), len(dropped))
    assert sum(job.began is not None for job in dropped) <= 1, [job.arguments for job in dropped]
    lost = trace.losses()
    assert lost.get("job_ends", 0) >= len(dropped) - skipped_at_most(kernel, trace, pairs), (lost, len(dropped))
    (queue,) = [one for one in trace.metadata["queues"] if one["jobs"] and one["driver"] != "virtio_gpu"]
    ended = sum(job.ended is not None for job in jobs)
    assert queue["jobs"] == ended, (queue, ended)
    waiting = [(event["ts"] * 1000, event["args"]["waiting"]) for event in trace.events
               if event["ph"] == "C" and "waiting" in event.get("args", {}) and event["ts"] * 1000 > moment + 5e8 * SLOW]
    assert all(number <= 2 for _, number in waiting), waiting


def test_unload(kernel):
    """A driver cannot be unloaded while its events are followed; afterwards it can."""
    load()
    sleeper = Process(["sleep", "60"])
    recorder = Recorder("-p", sleeper.pid, *OPTIONS)
    assert run(["rmmod", accelerator.NAME]).status != 0 and loaded()
    recorder.stop()
    sleeper.kill()
    unload()


def test_loaded_later(kernel):
    """A driver that is loaded while tracing goes on is followed from then on."""
    unload()
    go = "modprobe %s && sleep %d && exec %s" % (accelerator.NAME, SLOW,
                                                 subprocess.list2cmdline(command("nrt", "--calls", 10)))
    results, trace, recorder = record_command(["sh", "-c", go], *OPTIONS)
    assert "driver xptaccel" in recorder.stderr and "driver gpu_scheduler" in recorder.stderr, recorder.stderr
    pairs = pair(check(results), jobs_in(trace))
    check_attribution(trace, pairs)


def discover(kernel):
    """As kernel_tests.discover() has them."""
    tests = []
    for name, function in list(globals().items()):
        if name.startswith("test_") and function.__module__ == __name__:
            for case in getattr(function, "cases", (None,)):
                tests.append(("device." + name[5:], function, (kernel,)) if case is None else
                             ("device.%s[%s]" % (name[5:], case), function, (kernel, case)))
    return tests
