# SPDX-License-Identifier: BSD-2-Clause
"""What xputrace says of jobs of the tests' accelerator, against what the device itself has told the program."""

import collections
import os
import subprocess

import accelerator
from accelerator import DESCRIPTION, TIMEOUT_MS, command, executions_of, jobs_of, load, loaded, unload
from harness import (SLOW, Process, Recorder, Workload, cases, compare, record_command, results_in, run, scratch,
                     wait_until)
from reports import Stream

THREADS, CALLS, JOBS = 4, 12, 3
CROWD = ("--threads", THREADS, "--calls", CALLS, "--jobs", JOBS, "--engines", 2)
OPTIONS = ("--driver", DESCRIPTION)
MICROSECOND = 1000
# What the device says and what the scheduler's events say lie some microseconds apart, on an emulated processor sometimes
# milliseconds: most of the values must agree, and none may lie on the wrong side.
SLACK_NS = 50 * MICROSECOND
# A kernel skips an event in an interrupt of the program that takes another one. From 6.7 on it counts that.
UNCOUNTED = "6.1"
SKIPPED = 0.1


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def agree(found, expected, what, slack=SLACK_NS):
    """Half of the values or more are within 5 % or 50 us."""
    errors = sorted((abs(a - b) - max(0.05 * b, slack), a, b) for a, b in zip(found, expected))
    assert errors[len(errors) // 2][0] <= 0, "%s: %s" % (what, [
        "%d us instead of %d" % (a // 1000, b // 1000) for _, a, b in errors[len(errors) // 2:]][:20])


class Job:
    """A job in the trace."""

    def __init__(self, event):
        arguments = event["args"]
        self.event, self.arguments = event, arguments
        self.categories = event["cat"].split(",")
        self.pid, self.tid = arguments.get("pid"), arguments.get("tid")
        self.queued, self.began, self.ended = (
            nanoseconds(arguments[name]) if name in arguments else None for name in ("queued_us", "run_us", "done_us"))
        self.program = arguments.get("program")
        self.failed = arguments.get("failed", False)


def jobs_in(trace, other=False):
    jobs = [Job(event) for event in trace.events if event.get("cat", "").startswith("job,") and event["ph"] in "Xi"]
    return [job for job in jobs if ("other" in job.categories) == other]


def record(runtime, *options, duration_us=3000, recorder_options=()):
    """The workload from its first instruction; its results and the trace."""
    results, trace, recorder = record_command(command(runtime, *options, duration_us=duration_us), *OPTIONS,
                                              *recorder_options)
    return results, trace, recorder


def pair(told, traced):
    """Each job of the device with the one of the trace: both are in the order in which each thread submitted them."""
    assert len(told) == len(traced), "%d jobs, %d in the trace" % (len(told), len(traced))
    by_thread = collections.defaultdict(list)
    for job in sorted(traced, key=lambda job: job.queued):
        by_thread[job.pid, job.tid].append(job)
    pairs = []
    for job in sorted(told, key=lambda job: job["submit_ns"]):
        thread = by_thread[job["pid"], job["tid"]]
        assert thread, "no job of thread %d is left in the trace" % job["tid"]
        pairs.append((job, thread.pop(0)))
    return pairs


def skipped_at_most(kernel, trace, jobs):
    """Jobs whose end may be missing: those that are counted as such."""
    return SKIPPED * len(jobs) if kernel == UNCOUNTED else trace.losses().get("nested", 0)


def check_times(kernel, trace, pairs):
    """Queued within the ioctl; device time as the device says. The pairs of jobs whose end was seen."""
    for told, job in pairs:
        assert told["submit_ns"] <= job.queued <= told["submitted_ns"], (told, job.arguments)
    ended = [(told, job) for told, job in pairs if job.began and job.ended]
    missing = len(pairs) - len(ended)
    assert missing <= skipped_at_most(kernel, trace, pairs), "%d of %d jobs have no end, lost: %s" % (
        missing, len(pairs), trace.losses())
    for told, job in ended:
        assert job.began <= told["started_ns"] + SLACK_NS and job.ended >= told["finished_ns"], (told, job.arguments)
    agree([job.ended - job.began for _, job in ended],
          [told["finished_ns"] - told["started_ns"] for told, _ in ended], "device time")
    return ended


def check_attribution(trace, pairs):
    """Every job is in the call that submitted it, and counted for that call's program and no other."""
    calls = {}
    for call in trace.runs():
        calls.setdefault((call.pid, call.tid), []).append(call)
    for told, job in pairs:
        around = [call for call in calls[told["pid"], told["tid"]]
                  if nanoseconds(call.start) <= told["submit_ns"] and told["submitted_ns"] <= nanoseconds(call.end)]
        assert len(around) == 1, "%d calls around a submission" % len(around)
        assert job.program == told["program"] == around[0].program, (job.arguments, told, around[0].program)
    counted, counted_failed = collections.Counter(), collections.Counter()
    for program in trace.metadata["programs"]:
        counted[program["pid"], program["name"]] += program.get("jobs", 0)
        counted_failed[program["pid"], program["name"]] += program.get("failed_jobs", 0)
    seen = [told for told, job in pairs if job.ended]
    made = collections.Counter((job["pid"], job["program"]) for job in seen)
    failed = collections.Counter((job["pid"], job["program"]) for job in seen if job["error"])
    assert +counted == made and +counted_failed == failed, (counted, made, counted_failed, failed)


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
    told = accelerator.check(results)
    assert len(told) == 2 * THREADS * CALLS * JOBS and accelerator.overtaken(told) > 10
    traced = jobs_in(trace)
    pairs = pair(told, traced)
    ended = check_times(kernel, trace, pairs)
    check_attribution(trace, pairs)
    for job_told, job in ended:
        assert job.failed == bool(job_told["error"]), (job_told, job.arguments)
    assert not jobs_in(trace, other=True) and not set(trace.losses()) - {"nested"}, trace.losses()
    compare(runtime, results, trace, lossless=False)


def covered(spans):
    """How long at least one of the spans lasts."""
    busy, until = 0, 0
    for start, end in sorted(spans):
        busy += max(0, end - max(start, until))
        until = max(until, end)
    return busy


def test_busy(kernel):
    """Sums: a queue has been busy for as long as at least one of its jobs was with the device; programs share that."""
    load(slots=2)
    results, trace, _ = record("nrt", "--threads", THREADS, "--calls", 4, "--jobs", JOBS, "--engines", 2,
                               duration_us=60000)
    told = accelerator.check(results)
    pairs = check_times(kernel, trace, pair(told, jobs_in(trace)))
    whole = len(pairs) == len(told)  # else a queue is taken for busy while the end of a job has not been seen
    for engine in (0, 1):
        mine = [(told, job) for told, job in pairs if told["engine"] == engine]
        (queue,) = [one for one in trace.metadata["queues"] if one["engine"].endswith(".%d" % engine)]
        assert queue["jobs"] == queue["target_jobs"] == len(mine)
        if not whole:
            continue
        assert abs(nanoseconds(queue["busy_us"]) - covered((job.began, job.ended) for _, job in mine)) <= MICROSECOND
        agree([nanoseconds(queue["busy_us"])],
              [covered((told["started_ns"], told["finished_ns"]) for told, _ in mine)], "busy time")
        assert abs(queue["busy_us"] - queue["target_us"]) < 1, queue
    if whole:
        share = sum(program["busy_ns"] for program in trace.metadata["programs"] if "busy_ns" in program)
        busy = sum(nanoseconds(queue["busy_us"]) for queue in trace.metadata["queues"])
        assert abs(share - busy) < 10 * MICROSECOND, "programs %d ns, queues %d ns" % (share, busy)


def test_others(kernel):
    """Jobs of a process that is not traced are there as its own, and counted for nobody."""
    load(slots=1, engines=1)
    other = Process(command("nrt", "--calls", 2000, "--threads", 2, duration_us=2000))
    wait_until(lambda: accelerator.jobs_left() > 0, "the other process works")
    results, trace, _ = record("nrt", "--calls", 20, "--jobs", 2)
    other.kill()
    pairs = pair(accelerator.check(results), jobs_in(trace))
    ended = check_times(kernel, trace, pairs)
    check_attribution(trace, pairs)
    others = jobs_in(trace, other=True)
    # Of those that were queued before the target used the device, nobody is known.
    assert {other.pid} <= {job.pid for job in others} <= {other.pid, None}, {job.pid for job in others}
    (queue,) = [one for one in trace.metadata["queues"] if one["jobs"]]
    assert queue["target_jobs"] == len(ended) and queue["jobs"] > queue["target_jobs"], queue
    assert queue["target_us"] < queue["busy_us"], queue


def expected_columns(execution):
    """Columns of a sample, in ns, from the times that the program has taken and those that the device has told."""
    jobs = execution["jobs"]
    began = execution["start"], jobs[0]["submit_ns"], jobs[-1]["submitted_ns"]
    ran, done = min(job["started_ns"] for job in jobs), max(job["finished_ns"] for job in jobs)
    return {
        "preProcTime(Us)": began[1] - began[0],
        "submitTime(Us)": began[2] - began[1],
        "exectoVc(Us)": ran - began[2],
        "execToComplete(Us)": done - ran,
        "execTotal(Us)": done - began[1],
        "deviceTime(Us)": sum(job["finished_ns"] - job["started_ns"] for job in jobs),
        "queueTime(Us)": sum(job["started_ns"] - job["queued_ns"] for job in jobs),
    }


@cases("nrt", "qaic")
def test_columns(kernel, runtime):
    """The columns of a latency report, each against the times that the program and the device have told."""
    load(slots=1, engines=1)
    output = os.path.join(scratch(), "latency.csv")
    stream = Stream(*OPTIONS, "--append", "--report-every", "10s", "--", *command(
        runtime, "--calls", 30, "--jobs", 2, duration_us=20000), output=output, wait=False)
    blocks = stream.blocks()
    told = sorted(executions_of(results_in(stream.stdout)), key=lambda one: (one["tid"], one["start"]))
    samples = sorted((sample for block in blocks for sample in block.samples), key=lambda sample: sample.key)
    assert len(told) == len(samples) >= 30, "%d executions, %d samples" % (len(told), len(samples))
    for column in expected_columns(told[0]):
        found = [(nanoseconds(float(sample.row[column])), expected_columns(execution)[column])
                 for execution, sample in zip(told, samples) if sample.row[column] != "N/A"]
        # The device may begin with the first job before the second one is submitted: then no time lies between.
        if column != "exectoVc(Us)":
            assert len(found) >= (1 - SKIPPED) * len(samples), "%s: %d of %d samples" % (
                column, len(found), len(samples))
        # Those of the program itself are taken a probe earlier or later, which takes an emulated processor 50 us.
        if found:
            agree(*zip(*found), column, SLACK_NS * 2)
    assert {sample.row["jobs"] for sample in samples} == {"2"}


def test_reset(kernel):
    """A job that hangs until its engine is reset: the job, and the reset, on the track of that engine."""
    load(timeout_ms=TIMEOUT_MS)
    results, trace, _ = record("nrt", "--threads", 2, "--calls", 20, "--engines", 2, "--hang-jobs", 10)
    told = accelerator.check(results)
    hung = [job for job in told if job["asked"] == "hang"]
    pairs = pair(told, jobs_in(trace))
    check_times(kernel, trace, pairs)
    assert {job["number"] for job, traced in pairs if traced.failed} == {job["number"] for job in hung}
    resets = [event for event in trace.events if event.get("cat") == "reset,xptaccel"]
    assert len(resets) == len(hung) == 4, resets
    assert all(event["args"]["status"] == -62 for event in resets), resets


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
    pairs = pair(accelerator.check(results), jobs_in(trace))
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
