# SPDX-License-Identifier: BSD-2-Clause
"""The accelerator of the tests, whose driver is a real one: that it does what it says, and that its events tell it.

What is compared here with what stand-in runtimes have asked of it is the device itself and the kernel's own trace.
"""

import json
import os
import statistics

import accelerator
from accelerator import STATUS_FAILED, TIMEOUT_MS, execute, load, loaded, trace_lines, traced, unload
from devices import CANCELLED, check, executions_of, jobs_of, most_at_once, overtaken
from harness import SLOW, XPUTRACE, Process, Skip, cases, run, wait_until

# The events of the scheduler, by what they say; kernels up to 6.16 have the first ones.
QUEUE = ("drm_sched_job", "drm_sched_job_queue")
RUN = ("drm_run_job", "drm_sched_job_run")
DONE = ("drm_sched_process_job", "drm_sched_job_done")
MICROSECOND = 1000
THREADS, PROCESSES = 4, 2
CROWD = ("--threads", THREADS, "--fork", PROCESSES - 1, "--calls", 12)


def test_module(kernel):
    """The module is there, is loaded and unloaded, and is not unloaded while somebody has the device open."""
    if os.path.exists(accelerator.WHY_NOT):
        with open(accelerator.WHY_NOT, encoding="utf-8") as file:
            raise AssertionError(file.read())
    unload()
    for wrong in ("devices=0", "engines=9", "slots=17", "timeout_ms=0"):
        assert run(["modprobe", accelerator.NAME, wrong]).status != 0 and not loaded(), wrong
    load(devices=2)
    assert os.path.exists("/dev/xptaccel1")
    opened = os.open(accelerator.NODE, os.O_RDWR)
    try:
        assert run(["rmmod", accelerator.NAME]).status != 0 and loaded(), "unloaded while it is open"
    finally:
        os.close(opened)
    unload()
    assert not os.path.exists("/dev/xptaccel1")


def test_time(kernel):
    """A job takes the time that was asked for; of an emulated processor, only half of them must keep to it."""
    load()
    jobs = check(execute("nrt", "--calls", "15", duration_us=100000))
    late = sorted(job["finished_ns"] - job["started_ns"] - job["asked_ns"] for job in jobs)
    assert statistics.median(late) <= 0.05 * jobs[0]["asked_ns"], "late by %s us" % [each // 1000 for each in late]


@cases("nrt", "qaic", "cuda")
def test_crowd(kernel, runtime):
    """Threads and processes, several jobs an execution, failures; jobs overtake each other."""
    load(slots=2)
    results = execute(runtime, *CROWD, "--jobs", 3, "--engines", 2, "--fail-jobs", 7)
    jobs = check(results)
    assert len(results) == PROCESSES and len({(job["pid"], job["tid"]) for job in jobs}) == THREADS * PROCESSES
    assert len(jobs) == THREADS * PROCESSES * 12 * 3, "%d jobs" % len(jobs)
    failed = [job for job in jobs if job["error"]]
    assert len(failed) == PROCESSES * (len(jobs) // PROCESSES // 7), "%d have failed" % len(failed)
    assert overtaken(jobs) > 10, "only %d jobs were overtaken" % overtaken(jobs)
    for engine in (0, 1):
        most = most_at_once([job for job in jobs if job["engine"] == engine])
        assert most == 2, "engine %d ran %d jobs at once" % (engine, most)


@cases("nrt", "qaic", "cuda")
def test_status(kernel, runtime):
    """The runtime tells its caller when a job of an execution has failed."""
    load()
    results = execute(runtime, "--calls", "40", "--jobs", "2", "--fail-jobs", "5")
    check(results)
    failed = sum(any(job["error"] for job in execution["jobs"]) for execution in executions_of(results)
                 if execution["function"] != "nrta_execute_schedule")  # one that is polled has no status
    reported = sum(entry["count"] for result in results for library in result["libraries"] for entry in library["calls"]
               if entry.get("status") == STATUS_FAILED[runtime])
    assert failed and reported == failed, "%d executions have failed, %d were reported" % (failed, reported)


def test_one_slot(kernel):
    """An engine with one slot runs one job at a time, in the order in which one thread submitted them."""
    load(engines=1)
    jobs = check(execute("qaic", "--threads", "3", "--calls", "20", "--jobs", "2"))
    assert most_at_once(jobs) == 1 and not overtaken(jobs)


def test_short_jobs(kernel):
    """Jobs that take less time than it takes to submit them, from many threads; some hang, and the engines go on."""
    load(slots=4, engines=4, timeout_ms=100)
    jobs = check(execute("qaic", "--threads", "8", "--calls", "100", "--jobs", "4", "--engines", "4", "--fail-jobs",
                         "9", "--hang-jobs", "400", duration_us=20), cancelled=True)
    assert len(jobs) == 8 * 100 * 4, "%d jobs" % len(jobs)
    hung = [job for job in jobs if job["asked"] == "hang"]
    assert len(hung) == 8 and not [job for job in jobs if job["error"] == CANCELLED and not any(
        one["engine"] == job["engine"] and one["started_ns"] < job["finished_ns"] for one in hung)]


def named(events, names):
    return [event for event in events if event.name in names]


def test_events(kernel):
    """The scheduler's events come once a job, from the thread and within the call that submitted it."""
    load(slots=2)
    with traced("gpu_scheduler") as events:
        results = execute("qaic", *CROWD, "--jobs", 3, "--engines", 2, "--fail-jobs", 7)
    jobs = check(results)
    queued, ran, done = (named(events, names) for names in (QUEUE, RUN, DONE))
    assert len(queued) == len(ran) == len(done) == len(jobs), "%d jobs, %d queued, %d run, %d done" % (
        len(jobs), len(queued), len(ran), len(done))
    queued.sort(key=lambda event: event.time)
    for tid in {job["tid"] for job in jobs}:
        own = [event for event in queued if event.tid == tid]
        submitted = [job for job in jobs if job["tid"] == tid]
        assert len(own) == len(submitted), "thread %d: %d jobs, %d queued" % (tid, len(submitted), len(own))
        for job, event in zip(submitted, own):
            assert job["submit_ns"] - MICROSECOND <= event.time <= job["submitted_ns"] + MICROSECOND, (
                job, event.time, event.text)


def test_events_have_the_fence(kernel):
    """Where the events name the scheduler's fence, it is the one that the device says."""
    load()
    with traced("gpu_scheduler") as events:
        jobs = check(execute("nrt", "--calls", "20", "--engines", "2", "--fail-jobs", "5"))
    if not named(events, QUEUE[1:]) and kernel != "newest":
        raise Skip("this kernel's events name a job by an address")
    by_fence = {tuple(job["fence"]): job for job in jobs}
    for names in (QUEUE, RUN, DONE):
        fences = [tuple(int(part) for part in event.fields["fence"].split(":")) for event in named(events, names)]
        assert sorted(fences) == sorted(by_fence), "%s: other fences" % names[1]
    for event in named(events, DONE):
        job = by_fence[tuple(int(part) for part in event.fields["fence"].split(":"))]
        late = event.time - job["finished_ns"]
        assert -MICROSECOND <= late, "done %d ns before it was: %s" % (-late, job)


def test_reset(kernel):
    """A job that hangs is ended by a reset of its engine, which an event tells; those that wait behind it run."""
    load(timeout_ms=TIMEOUT_MS)
    with traced("xptaccel") as reported:
        results = execute("nrt", "--threads", "2", "--calls", "20", "--engines", "2", "--hang-jobs", "10")
    events = [event for event in reported if event.name == "xptaccel_reset"]
    jobs = check(results)
    hung = [job for job in jobs if job["asked"] == "hang"]
    assert len(hung) == 4, "%d jobs have hung" % len(hung)
    assert sorted(event.text for event in events) == sorted(
        "dev=xptaccel0 engine=%d error=-62" % job["engine"] for job in hung), [event.text for event in events]
    assert [event.name for event in reported].count("xptaccel_error") == len(hung), [event.text for event in reported]
    for job in hung:
        milliseconds = (job["finished_ns"] - job["started_ns"]) / 1e6
        assert TIMEOUT_MS * 0.9 <= milliseconds <= TIMEOUT_MS * (1 + SLOW), "reset after %d ms" % milliseconds
    for event, job in zip(events, sorted(hung, key=lambda one: one["finished_ns"])):
        assert abs(event.time - job["finished_ns"]) < 50e6 * SLOW, "the reset at %d, its job at %d" % (
            event.time, job["finished_ns"])


def test_late_job(kernel):
    """A job that takes longer than the timeout is taken for one that hangs; the device ends it once."""
    load(timeout_ms=100)
    results = execute("nrt", "--calls", "2", duration_us=2000000)
    for job in jobs_of(results):
        assert job["asked"] == "run" and job["error"] == -62, job
        assert job["finished_ns"] - job["started_ns"] < job["asked_ns"], job


def test_killed(kernel):
    """A process dies with jobs that run and jobs that wait: nothing is left of them, and the module can go."""
    load(timeout_ms=10000)
    # Jobs for 10 s on each engine; to end, the process waits for each of its four contexts, up to a second.
    words = accelerator.command("qaic", "--threads", "2", "--jobs", "8", "--engines", "2", duration_us=2000000)
    with traced("gpu_scheduler") as events:
        process = Process(words)
        wait_until(lambda: sum(" %s: " % name in line for line in trace_lines() for name in QUEUE) == 16,
                   "all jobs of both threads are queued")
        process.kill()
    assert len(named(events, QUEUE)) > len(named(events, RUN)), "no job was left that had not begun"
    # The scheduler of 6.1 loses a reference to the last fence of a context that is killed after that was signalled.
    unload(leaked=kernel == "6.1")


def test_description(kernel):
    """With the driver's description, list drivers finds all of it; without the module, what is the scheduler's."""
    words = [XPUTRACE, "list", "drivers", "--driver", accelerator.DESCRIPTION, "--format", "json"]
    load(devices=2)
    found = {driver["driver"]: driver for driver in json.loads(run(words).stdout)}
    assert found["xptaccel"]["state"] == "complete", found["xptaccel"]
    assert sorted(found["xptaccel"]["devices"]) == ["/dev/xptaccel0", "/dev/xptaccel1"], found["xptaccel"]
    assert found["gpu_scheduler"]["state"] == "complete", found["gpu_scheduler"]
    unload()
    found = {driver["driver"]: driver for driver in json.loads(run(words).stdout)}
    assert found["xptaccel"]["state"] == "partial" and not found["xptaccel"]["devices"], found["xptaccel"]
    left = [event["event"] for event in found["xptaccel"]["events"] if event["found"]]
    assert left and all(event.startswith("gpu_scheduler:") for event in left), left


def test_unload(kernel):
    """Afterwards the module goes, and the kernel has complained about nothing."""
    unload()
    complaints = [line for line in run(["dmesg"]).stdout.splitlines() if "WARNING:" in line or "BUG:" in line]
    assert not complaints, "\n".join(complaints)


def discover(kernel):
    """As kernel_tests.discover() has them."""
    tests = []
    for name, function in list(globals().items()):
        if name.startswith("test_") and function.__module__ == __name__:
            for case in getattr(function, "cases", (None,)):
                tests.append(("driver." + name[5:], function, (kernel,)) if case is None else
                             ("driver.%s[%s]" % (name[5:], case), function, (kernel, case)))
    return tests
