# SPDX-License-Identifier: BSD-2-Clause
"""Jobs of devices: what a workload has printed of them, what the trace has, and how the two are compared.

The device tells for each job when it was queued, began and ended, on the clock of everything else. It does so through
the call by which one waits for the job, so that it is known without tracing anything.
"""

import collections

MICROSECOND = 1000
# What the device says and what its driver's events say lie some microseconds apart, on an emulated processor sometimes
# milliseconds: most of the values must agree, and none may lie on the wrong side.
SLACK_NS = 50 * MICROSECOND
ERRORS = {"run": 0, "fail": -5, "hang": -62}  # what a job ends with: EIO, ETIME
CANCELLED = -125  # ECANCELED


# ---- what the workload has printed ----

def executions_of(results):
    return [dict(execution, pid=result["pid"]) for result in results for execution in result["executions"]]


def jobs_of(results):
    """All jobs, each with the process and thread that submitted it, in the order of submission."""
    jobs = [dict(job, pid=execution["pid"], tid=execution["tid"], program=execution["program"])
            for execution in executions_of(results) for job in execution["jobs"]]
    return sorted(jobs, key=lambda job: job["submit_ns"])


def check(results, cancelled=False):
    """What must be true of every job, by the program's clock and by the device's. The jobs.

    cancelled: jobs may have been on an engine that was reset because of another one."""
    jobs = jobs_of(results)
    assert jobs, "no jobs"
    for name in ("number", "cookie"):
        assert len({job[name] for job in jobs}) == len(jobs), "two jobs have the same %s" % name
    assert len({tuple(job["fence"]) for job in jobs}) == len(jobs), "two jobs have the same fence"
    for execution in executions_of(results):
        for job in execution["jobs"]:
            times = [execution["start"], job["submit_ns"], job["queued_ns"], job["submitted_ns"], execution["end"]]
            assert times == sorted(times), "not submitted within its call: %s" % execution
            times = [job["queued_ns"], job["started_ns"], job["finished_ns"]]
            assert job["waited"] and times == sorted(times), job
            if cancelled and job["error"] == CANCELLED:
                continue
            assert job["error"] == ERRORS[job["asked"]], job
            if job["asked"] != "hang":
                assert job["finished_ns"] - job["started_ns"] >= job["asked_ns"], "ended early: %s" % job
    return jobs


def most_at_once(jobs):
    """How many of the jobs ran at one time, at the most."""
    steps = sorted([(job["started_ns"], 1) for job in jobs] + [(job["finished_ns"], -1) for job in jobs])
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def overtaken(jobs):
    """How many jobs ended before one of the same thread that was submitted earlier."""
    count, latest = 0, {}
    for job in jobs:
        thread = job["pid"], job["tid"]
        count += job["finished_ns"] < latest.get(thread, 0)
        latest[thread] = max(latest.get(thread, 0), job["finished_ns"])
    return count


def expected_columns(execution):
    """Columns of a sample, in ns, from the times that the program has taken and those that the device has reported."""
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


# ---- what the trace has ----

def nanoseconds(microseconds):
    return round(microseconds * 1000)


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


def covered(spans):
    """How long at least one of the spans lasts."""
    busy, until = 0, 0
    for start, end in sorted(spans):
        busy += max(0, end - max(start, until))
        until = max(until, end)
    return busy


# ---- comparing ----

def agree(found, expected, what, slack=SLACK_NS):
    """Half of the values or more are within 5 % or 50 us."""
    errors = sorted((abs(a - b) - max(0.05 * b, slack), a, b) for a, b in zip(found, expected))
    assert errors[len(errors) // 2][0] <= 0, "%s: %s" % (what, [
        "%d us instead of %d" % (a // 1000, b // 1000) for _, a, b in errors[len(errors) // 2:]][:20])


def pair(reported, traced):
    """Each job of the device with the one of the trace: both are in the order in which each thread submitted them."""
    assert len(reported) == len(traced), "%d jobs, %d in the trace" % (len(reported), len(traced))
    by_thread = collections.defaultdict(list)
    for job in sorted(traced, key=lambda job: job.queued):
        by_thread[job.pid, job.tid].append(job)
    pairs = []
    for job in sorted(reported, key=lambda job: job["submit_ns"]):
        thread = by_thread[job["pid"], job["tid"]]
        assert thread, "no job of thread %d is left in the trace" % job["tid"]
        pairs.append((job, thread.pop(0)))
    return pairs


def check_times(pairs):
    """Queued within the ioctl; device time as the device says. The pairs of jobs whose end was seen."""
    for reported, job in pairs:
        assert reported["submit_ns"] <= job.queued <= reported["submitted_ns"], (reported, job.arguments)
    ended = [(reported, job) for reported, job in pairs if job.began and job.ended]
    assert ended, "of no job both ends are in the trace"
    for reported, job in ended:
        assert job.began <= reported["started_ns"] + SLACK_NS and job.ended >= reported["finished_ns"], (reported, job.arguments)
    agree([job.ended - job.began for _, job in ended],
          [reported["finished_ns"] - reported["started_ns"] for reported, _ in ended], "device time")
    return ended


def runs_around(trace):
    """Function that has, for a submission, the executions in the trace that it lies in."""
    calls = collections.defaultdict(list)
    for call in trace.runs():
        calls[call.pid, call.tid].append(call)

    def around(job):
        return [call for call in calls[job["pid"], job["tid"]]
                if nanoseconds(call.start) <= job["submit_ns"] and job["submitted_ns"] <= nanoseconds(call.end)]
    return around


def check_counted(trace, pairs):
    """Programs have the numbers of these jobs, as far as they have ended, and of no others."""
    counted, counted_failed = collections.Counter(), collections.Counter()
    for program in trace.metadata["programs"]:
        counted[program["pid"], program["name"]] += program.get("jobs", 0)
        counted_failed[program["pid"], program["name"]] += program.get("failed_jobs", 0)
    seen = [reported for reported, job in pairs if job.ended]
    made = collections.Counter((job["pid"], job["program"]) for job in seen)
    failed = collections.Counter((job["pid"], job["program"]) for job in seen if job["error"])
    assert +counted == made and +counted_failed == failed, (counted, made, counted_failed, failed)


def check_attribution(trace, pairs):
    """Every job is in the call that submitted it, and counted for that call's program and no other."""
    runs = runs_around(trace)
    for reported, job in pairs:
        around = runs(reported)
        assert len(around) == 1, "%d calls around a submission" % len(around)
        assert job.program == reported["program"] == around[0].program, (job.arguments, reported, around[0].program)
    check_counted(trace, pairs)


def check_busy(trace, pairs):
    """Sums: a queue has been busy for as long as at least one of its jobs was with the device; programs share that.

    Where all jobs are of traced processes, and both ends of all were seen."""
    for engine in {reported["engine"] for reported, _ in pairs}:
        mine = [(reported, job) for reported, job in pairs if reported["engine"] == engine]
        (queue,) = [one for one in trace.metadata["queues"] if one["engine"].rpartition(".")[2] == str(engine)]
        assert queue["jobs"] == queue["target_jobs"] == len(mine), queue
        assert queue["failed_jobs"] == sum(1 for reported, _ in mine if reported["error"]), queue
        assert abs(nanoseconds(queue["busy_us"]) - covered((job.began, job.ended) for _, job in mine)) <= MICROSECOND
        agree([nanoseconds(queue["busy_us"])],
              [covered((reported["started_ns"], reported["finished_ns"]) for reported, _ in mine)], "busy time")
        assert abs(queue["busy_us"] - queue["target_us"]) < 1, queue
    share = sum(program["busy_ns"] for program in trace.metadata["programs"] if "busy_ns" in program)
    # Another device's queue, a screen's, may be there with no job that was seen to be with it.
    busy = sum(nanoseconds(queue.get("busy_us", 0)) for queue in trace.metadata["queues"])
    assert abs(share - busy) < 10 * MICROSECOND, "programs %d ns, queues %d ns" % (share, busy)


def check_columns(executions, samples, none=(), some=("exectoVc(Us)",), slack=SLACK_NS * 2, missing=0):
    """The columns of samples against the times that the program and the device have reported.

    none: columns that no sample has; some: that only some have (the device may begin with the first job before the
    second one is submitted: then no time lies between); missing: part of the samples that may lack one."""
    reported = sorted(executions, key=lambda one: (one["tid"], one["start"]))
    samples = sorted(samples, key=lambda sample: sample.key)
    assert len(reported) == len(samples), "%d executions, %d samples" % (len(reported), len(samples))
    for column in expected_columns(reported[0]):
        found = [(nanoseconds(float(sample.row[column])), expected_columns(execution)[column])
                 for execution, sample in zip(reported, samples) if sample.row[column] != "N/A"]
        if column in none:
            assert not found, "%s: %s" % (column, found)
        elif column not in some:
            assert len(found) >= (1 - missing) * len(samples), "%s: %d of %d samples" % (
                column, len(found), len(samples))
        # Those of the program itself are taken a probe earlier or later, which takes an emulated processor 50 us.
        if found:
            agree(*zip(*found), column, slack)
    return list(zip(reported, samples))
