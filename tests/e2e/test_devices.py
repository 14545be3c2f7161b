# SPDX-License-Identifier: BSD-2-Clause
"""Jobs of a driver that exists on any machine: system calls are its events (tests/workload/emulated.c, emulated.json)."""

import collections
import ctypes
import errno
import glob
import json
import os
import platform
import re
import signal
import struct

import devices
from devices import (MICROSECOND, agree, check, check_attribution, check_busy, check_columns, check_counted,
                     check_times, executions_of, jobs_of, most_at_once, nanoseconds, overtaken, pair,
                     runs_around)
from harness import (SLOW, TRACEFS_STATES, XPUTRACE, Recorder, Skip, Trace, Workload, cases, compare, has_tracepoint, need,
                     process_state, record_command, record_late, results_in, run, scratch, wait_until, with_tracefs,
                     workload_path)
from reports import Profile, Stream, trace_output, traces_of

ALONE = "measures time"

HERE = os.path.dirname(os.path.abspath(__file__))
DESCRIPTION = os.path.join(HERE, "emulated.json")
NODE_DESCRIPTION = os.path.join(HERE, "emulated_node.json")  # its ioctls; it reports no jobs
EMULATED = ("--driver", DESCRIPTION, "--drivers", "emulated")
WITH_NODE = ("--driver", DESCRIPTION, "--driver", NODE_DESCRIPTION, "--drivers", "emulated,emulated_node")
ONLY_NODE = ("--driver", NODE_DESCRIPTION, "--drivers", "emulated_node")
NOBODY = 1 << 30  # numbers of devices begin here
EVENT = "syscalls:sys_enter_kcmp"
THREADS, CALLS, JOBS = 4, 10, 3
CROWD = ("--threads", THREADS, "--calls", CALLS, "--jobs", JOBS, "--engines", 2)
ENGINE_COLUMNS = ("execToComplete(Us)", "deviceTime(Us)", "queueTime(Us)")
IOCTL_COLUMNS = ("preProcTime(Us)", "submitTime(Us)")
MIXED_COLUMNS = ("exectoVc(Us)", "execTotal(Us)")


def jobs_in(trace, other=False):
    """As devices.jobs_in(). Some kernels (7.x) let a thread be preempted in the middle of the program that takes an event of
    a system call, and skip what happens on that CPU until it goes on. That is counted; in emulation it happens all the time,
    and what is left says nothing. What a real driver's events do there is looked at in tests/vm/guest/device_tests.py."""
    lost = trace.metadata["lost"]  # reports of profile and stream do not tell causes
    skipped = lost.get("nested", 0) if isinstance(lost, dict) else 0
    if skipped and SLOW > 1:
        raise Skip("the kernel has skipped %d events of system calls, which is counted" % skipped)
    return devices.jobs_in(trace, other)


def command(runtime, *options, duration_us=3000, device=""):
    """A stand-in runtime that executes on the accelerator: the words of the command. Each run of the tests has its own
    device; jobs take longer where events do."""
    if not has_tracepoint(EVENT):
        raise Skip("the kernel has no %s" % EVENT)
    name = "emulated:device=%d%s" % (os.getpid(), device and "," + device)
    duration = str(round(duration_us * min(SLOW, 3)))
    return [workload_path("workload"), runtime, "--device", name, "--duration-us", duration] + [
        str(option) for option in options]


def attach_to(commands, *options, **keywords):
    """Several processes that wait until the collector has attached to all; their results and the collector."""
    workloads = [Workload(words + ["--wait-for-go"]) for words in commands]
    recorder = Recorder("-p", ",".join(str(workload.pid) for workload in workloads), *options, **keywords)
    for workload in workloads:
        workload.go()
    return [result for workload in workloads for result in workload.results()], recorder


def check_numbers(pairs):
    """They were put together by their order; each event also tells the number of the job."""
    for reported, job in pairs:
        assert job.arguments["value"] == reported["number"], (reported, job.arguments)


def check_all(trace, results, children=0):
    """Every job of the workload, and nothing else; the pairs. children: that it has forked since it is traced alone."""
    pairs = pair(check(results), jobs_in(trace))
    check_numbers(pairs)
    assert len(check_times(pairs)) == len(pairs)
    check_attribution(trace, pairs)
    for reported, job in pairs:
        assert job.failed == bool(reported["error"]), (reported, job.arguments)
    assert not jobs_in(trace, other=True)
    assert trace.losses() == ({"late_probes": children} if children else {}), trace.losses()
    devices = {queue["device"] for queue in trace.metadata["queues"]}
    assert devices == {str(NOBODY + os.getpid())}, devices
    return pairs


# ---- which job is whose ----

@cases("nrt", "qaic", "cuda")
def test_crowd(runtime):
    """4 threads in each of 2 processes, several jobs an inference, jobs that overtake each other, failures."""
    results, recorder = attach_to([command(runtime, *CROWD, "--fail-jobs", 7, device="slots=2")] * 2, *EMULATED)
    trace = recorder.finish()
    pairs = check_all(trace, results)
    reported = [reported for reported, _ in pairs]
    assert len(reported) == 2 * THREADS * CALLS * JOBS and overtaken(reported) > 10, overtaken(reported)
    assert len({job["pid"] for job in reported}) == 2 and any(job["error"] for job in reported)
    compare(runtime, results, trace)


@cases("nrt", "cuda")
def test_engines_apart(runtime):
    """RUN and DONE come from another process than QUEUE; the target runs already when tracing begins."""
    workload = Workload(command(runtime, *CROWD, "--wait-for-go", device="slots=2,apart"))
    results, trace = record_late(workload, *EMULATED)
    pairs = check_all(trace, results, children=1)  # the device
    for engine in (0, 1):
        most = most_at_once([reported for reported, _ in pairs if reported["engine"] == engine])
        assert most == 2, "engine %d ran %d jobs at once" % (engine, most)
    compare(runtime, results, trace, lossless=False)


def test_others():
    """Jobs of a process that is not traced are there as its own, with their times, and counted for nobody."""
    other = Workload(command("nrt", "--calls", 0, "--threads", 2, "--engines", 1, "--wait-for-go", duration_us=2000))
    other.go()
    results, trace, _ = record_command(command("nrt", "--calls", 30, "--jobs", 2), *EMULATED)
    (made,) = other.stop()
    pairs = pair(check(results), jobs_in(trace))
    check_numbers(pairs)
    check_times(pairs)
    check_attribution(trace, pairs)
    reported = {job["number"]: job for job in jobs_of([made])}
    others = jobs_in(trace, other=True)
    # Of those that were queued before the target used the device, nobody is known.
    known = [(reported[job.arguments["value"]], job) for job in others if job.pid]
    assert len(known) > 10 and {job.pid for _, job in known} == {other.inside_pid}, {job.pid for job in others}
    check_times([one for one in known if one[1].ended])
    assert all(job.event.get("cname") == "grey" and not job.program for job in others if job.event["ph"] == "X")
    (queue,) = [one for one in trace.metadata["queues"] if one["jobs"]]
    assert queue["target_jobs"] == len(pairs) and queue["jobs"] > queue["target_jobs"], queue
    assert 0 < queue["target_us"] < queue["busy_us"], queue


# ---- sums ----

def test_busy():
    """Queues are busy as long as at least one job is with the device, and programs share that."""
    results, trace, _ = record_command(command(
        "nrt", "--threads", THREADS, "--calls", 8, "--jobs", JOBS, "--engines", 2, "--fail-jobs", 5, duration_us=20000,
        device="slots=2"), *EMULATED)
    pairs = check_all(trace, results)
    check_busy(trace, pairs)
    check_sums(trace, pairs)


def test_load():
    """The counters of a queue: as many jobs wait and run as the jobs say, at the most, and none at the end."""
    results, trace, _ = record_command(command("nrt", "--threads", 6, "--calls", 10, "--jobs", 2, "--engines", 2,
                                               duration_us=2000, device="slots=2"), *EMULATED)
    pairs = check_all(trace, results)
    for engine in (0, 1):
        mine = [job for reported, job in pairs if reported["engine"] == engine]
        points = [event["args"] for event in sorted(trace.events, key=lambda event: event.get("ts", 0))
                  if event["ph"] == "C" and event["name"] == "%d jobs" % engine]
        assert points and points[-1] == {"waiting": 0, "running": 0}, points[-1:]
        for state, spans in (("waiting", [(job.queued, job.began) for job in mine]),
                             ("running", [(job.began, job.ended) for job in mine])):
            most = most_at_once([dict(zip(("started_ns", "finished_ns"), span)) for span in spans])
            assert max(point[state] for point in points) == most > 1, "%s: %d, by the jobs %d" % (
                state, max(point[state] for point in points), most)


def check_sums(trace, pairs):
    """Device and queue time of each program, as the device has reported them for these jobs."""
    for program in trace.metadata["programs"]:
        mine = [reported for reported, _ in pairs if (reported["pid"], reported["program"]) == (program["pid"], program["name"])]
        if not mine:
            continue
        agree([program["device_ns"]], [sum(job["finished_ns"] - job["started_ns"] for job in mine)],
              "device time of " + program["name"], 50 * MICROSECOND * len(mine))
        agree([program["queue_ns"]], [sum(job["started_ns"] - job["queued_ns"] for job in mine)],
              "time in queues of " + program["name"], 50 * MICROSECOND * len(mine))


def test_sampling():
    """One in 4: all jobs are there, but only those of recorded inferences have a program, and are counted for it."""
    results, trace, _ = record_command(command("nrt", "--threads", 2, "--calls", 40, "--jobs", 2, "--fail-jobs", 9,
                                               duration_us=2000), *EMULATED, "-s", 4)
    pairs = pair(check(results), jobs_in(trace))
    check_numbers(pairs)
    check_times(pairs)
    runs = runs_around(trace)
    recorded = [(reported, job) for reported, job in pairs if runs(reported)]
    assert len(recorded) == 2 * len(trace.runs()) and 4 * len(recorded) == len(pairs), "%d of %d jobs, %d calls" % (
        len(recorded), len(pairs), len(trace.runs()))
    for reported, job in pairs:
        assert job.program == (reported["program"] if runs(reported) else None), (reported, job.arguments)
    check_counted(trace, recorded)
    check_sums(trace, recorded)


def table(text, heading):
    """Rows of one table of the summary, each as a dictionary. No cell of these contains a space."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(heading))
    names = re.split(r"\s{2,}|(?<=RUNTIME) ", lines[first].strip())
    rows = []
    for line in lines[first + 1:]:
        if not line.strip():
            break
        assert len(line.split()) == len(names), "%s: %s" % (names, line)
        rows.append(dict(zip(names, line.split())))
    return rows


def time_of(cell):
    """ns of a time in the summary."""
    number, unit = re.match(r"([\d.]+)(\D+)$", cell).groups()
    return float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def test_summary():
    """The table on the terminal has programs with their device times, and queues; from a recording the same."""
    path = os.path.join(scratch(), "recording.xpt")
    direct = run([need(XPUTRACE, "collector"), "record", "-o", path, *EMULATED, "--", *command(
        "nrt", "--calls", 20, "--jobs", 2, "--engines", 2, "--fail-jobs", 8, duration_us=5000)])
    assert direct.status == 0, direct.stderr
    reported = check(results_in(direct.stdout))
    later = run([XPUTRACE, "report", path, "-o", os.path.join(scratch(), "later.json")])
    assert later.status == 0, later.stderr
    for text in (direct.stdout, later.stdout):
        check_tables(text, reported)


def check_tables(text, reported):
    length = time_of(re.search(r"^recorded (\S+?),", text, re.MULTILINE).group(1))
    programs = {row["PROGRAM ON DEVICE"]: row for row in table(text, "PROGRAM ON DEVICE")}
    assert set(programs) == {job["program"] for job in reported}, programs
    for name, row in programs.items():
        mine = [job for job in reported if job["program"] == name]
        assert int(row["JOBS"]) == len(mine) and int(row["FAILED"]) == sum(1 for job in mine if job["error"]), row
        agree([time_of(row["TIME"])], [sum(job["finished_ns"] - job["started_ns"] for job in mine)], "TIME",
              50 * MICROSECOND * len(mine))
    queues = {row["QUEUE"]: row for row in table(text, "QUEUE ")}
    assert set(queues) == {"0", "1"}, text
    for engine, row in queues.items():
        mine = [job for job in reported if str(job["engine"]) == engine]
        assert row["DEVICE"] == str(NOBODY + os.getpid()) and row["DRIVER"] == "emulated", row
        assert int(row["JOBS"]) == len(mine) and int(row["FAILED"]) == sum(1 for job in mine if job["error"]), row
        busy = sum(job["finished_ns"] - job["started_ns"] for job in mine)
        agree([float(row["BUSY"].rstrip("%")) / 100 * length], [busy], "BUSY", 50 * MICROSECOND * len(mine))
        assert row["TARGET"] == row["BUSY"], row


# ---- recordings and reports ----

def test_recording():
    """Through a recording: the same jobs, exactly, and a second report is the same as the first."""
    folder = scratch()
    path = os.path.join(folder, "recording.xpt")
    results, recorder = attach_to([command("qaic", *CROWD, "--fail-jobs", 7, device="slots=2,apart")] * 2, *WITH_NODE,
                                  output=path)
    assert recorder.wait() == 0, recorder.stderr
    traces = []
    for name in ("one.json", "two.json"):
        later = run([XPUTRACE, "report", path, "-o", os.path.join(folder, name)])
        assert later.status == 0, later.stderr
        traces.append(Trace(os.path.join(folder, name)))
    pairs = check_all(traces[0], results)
    check_busy_of_jobs(traces[0])
    compare("qaic", results, traces[0])
    assert len(ioctls_of(traces[0], "SUBMIT")) == len(pairs)
    assert traces[0].events == traces[1].events


def check_busy_of_jobs(trace):
    """Queues of two processes with engines of their own: by the trace's own jobs."""
    for queue in trace.metadata["queues"]:
        assert queue["jobs"] == queue["target_jobs"] and 0 < queue["busy_us"], queue
        assert abs(queue["busy_us"] - queue["target_us"]) < 1, queue


def stream(options, *arguments, **keywords):
    """xputrace stream over the whole of a command: its executions and samples."""
    output = os.path.join(scratch(), "latency.csv")
    process = Stream(*options, "--append", "--report-every", "10s", "--", *command(*arguments, **keywords),
                     output=output, wait=False)
    samples = [sample for block in process.blocks() for sample in block.samples]
    return executions_of(results_in(process.stdout)), samples


@cases("nrt", "qaic")
def test_columns(runtime):
    """The columns of a latency report, each against the times that the program and the device have reported."""
    executions, samples = stream(WITH_NODE, runtime, "--calls", 40, "--jobs", 2, duration_us=10000)
    for execution, sample in check_columns(executions, samples):
        assert sample.row["jobs"] == str(len(execution["jobs"]))


def test_columns_without_ioctls():
    """Events alone tell when the device ran, and not when the submission began: those columns are N/A."""
    executions, samples = stream(EMULATED, "nrt", "--calls", 20, "--jobs", 2, "--engines", 2, duration_us=5000)
    check_columns(executions, samples, none=IOCTL_COLUMNS + MIXED_COLUMNS, some=())


def test_columns_without_events():
    """ioctls alone tell when the submission was made, and nothing of the device."""
    executions, samples = stream(ONLY_NODE, "nrt", "--calls", 20, "--jobs", 2, duration_us=5000)
    for _, sample in check_columns(executions, samples, none=ENGINE_COLUMNS + MIXED_COLUMNS, some=()):
        assert sample.row["jobs"] == "N/A", sample.row


def test_profile_trace():
    """A profile's trace has the jobs of its samples, and of no other inference."""
    output = os.path.join(scratch(), "profile.json")
    profile = Profile("--program", "cloud-0.1", "--samples", 12, "--skip", 3, "--type", "trace", *WITH_NODE, "--",
                      *command("qaic", "--calls", 60, "--jobs", 2, "--engines", 2, "--fail-jobs", 5),
                      output=output, wait=False)
    profile.end()
    trace = Trace(output)
    runs = trace.runs()
    assert len(runs) == 12 and {call.program for call in runs} == {"cloud-0.1"}, len(runs)
    around = runs_around(trace)
    reported = [job for job in jobs_of(results_in(profile.stdout)) if around(job)]
    pairs = pair(reported, jobs_in(trace))
    assert len(pairs) == 24, len(pairs)
    check_numbers(pairs)
    check_times(pairs)
    for job_reported, job in pairs:
        assert job.program == job_reported["program"] == "cloud-0.1" and job.failed == bool(job_reported["error"])
    assert len(ioctls_of(trace, "SUBMIT")) == len(pairs)


def test_stream_trace():
    """Traces of a stream: every job is in exactly one of them, whichever interval it ends in."""
    workload = Workload(command("qaic", "--calls", 120, "--threads", 2, "--jobs", 2, "--engines", 2, "--fail-jobs", 9,
                                "--wait-for-go", device="slots=2"))
    output = trace_output()
    stream_process = Stream("-p", workload.pid, "--type", "trace", "--report-every", "100ms", *EMULATED, output=output)
    workload.go()
    reported = {job["number"]: job for job in check(workload.results())}
    stream_process.end()
    traces = traces_of(output)
    jobs = [job for trace in traces for job in jobs_in(trace)]
    assert len(traces) > 3 and len(jobs) == len(reported) == 480, (len(traces), len(jobs), len(reported))
    assert {job.arguments["value"] for job in jobs} == set(reported)
    pairs = [(reported[job.arguments["value"]], job) for job in jobs]
    check_times(pairs)
    for job_reported, job in pairs:
        assert job.program == job_reported["program"] and (job.pid, job.tid) == (job_reported["pid"], job_reported["tid"])
        assert job.failed == bool(job_reported["error"]), (job_reported, job.arguments)


# ---- ioctls ----

def ioctls_of(trace, name):
    return [event for event in trace.events if event.get("cat", "").startswith("ioctl,")
            and event["name"] == "ioctl " + name and event["ph"] == "X"]


def test_ioctls():
    """ioctls on a node: each is a span of its thread, where the program has made it, inside its call."""
    results, trace, _ = record_command(command("qaic", "--threads", 2, "--calls", 20, "--jobs", 2), *ONLY_NODE)
    reported, spans = check(results), collections.defaultdict(list)
    submits = ioctls_of(trace, "SUBMIT")
    for event in submits:
        assert event["args"]["node"] == "/dev/null" and event["args"]["command"] == "0x5451", event
        assert event["args"]["role"] == "submit" and event["args"]["result"] == 0, event
        spans[event["pid"], event["tid"]].append((nanoseconds(event["ts"]),
                                                  nanoseconds(event["ts"]) + nanoseconds(event["dur"])))
    assert len(submits) == len(reported), "%d ioctls, %d jobs" % (len(submits), len(reported))
    around = runs_around(trace)
    for job in reported:
        begun, ended = spans[job["pid"], job["tid"]].pop(0)
        assert job["submit_ns"] <= begun <= ended <= job["submitted_ns"] and len(around(job)) == 1, (begun, ended, job)
    assert len(ioctls_of(trace, "WAIT")) >= len(reported)
    assert not jobs_in(trace) and not trace.metadata.get("queues"), trace.metadata.get("queues")
    compare("qaic", results, trace)


# ---- what is not there ----

def test_none():
    """--drivers none: nothing of the device is in the trace or in the summary."""
    results, trace, recorder = record_command(command("nrt", "--calls", 10), "--driver", DESCRIPTION,
                                              "--drivers", "none")
    assert check(results)
    seen = [event for event in trace.events if event.get("cat", "").startswith(("job,", "ioctl,", "error,"))]
    assert not seen and not trace.metadata.get("queues"), seen
    assert not any("device" in call.event["args"] for call in trace.calls)
    assert "QUEUE" not in recorder.stdout and "emulated" not in recorder.stderr, recorder.stderr
    compare("nrt", results, trace)


@cases("record", "stream")
def test_unknown_driver(subcommand):
    """A name that no description has: wrong usage, and what to do."""
    result = run([need(XPUTRACE, "collector"), subcommand, "--driver", DESCRIPTION, "--drivers", "emulated,emulatd", "--",
                  "true"])
    assert result.status == 2, (result.status, result.stderr)
    assert "emulatd" in result.stderr and "xputrace list drivers" in result.stderr, result.stderr


def changed_description(change):
    """The description with something else in it: change(events)."""
    with open(DESCRIPTION, encoding="utf-8") as file:
        description = json.load(file)
    change(description["sets"][0]["events"])
    path = os.path.join(scratch(), "emulated.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(description, file)
    return path


def missing_field(events):
    events[3]["fields"]["status"] = "outcome:64"
    return "outcome"


def other_width(events):
    events[3]["fields"]["status"] = "pid2:32"
    return "pid2"


@cases("missing_field", "other_width")
def test_other_kernel(case):
    """An event that is laid out otherwise is left out, and that is said; the others are followed."""
    fields = []
    path = changed_description(lambda events: fields.append(globals()[case](events)))
    results, trace, recorder = record_command(command("nrt", "--calls", 20, "--fail-jobs", 5), "--driver", path,
                                              "--drivers", "emulated")
    lines = [line for line in recorder.stderr.splitlines() if EVENT in line]
    assert len(lines) == 1, recorder.stderr
    for word in ("emulated:", EVENT, fields[0], platform.release(), "left out"):
        assert word in lines[0], "%s is not in: %s" % (word, lines[0])
    pairs = pair(check(results), jobs_in(trace))
    assert len(check_times(pairs)) == len(pairs)
    assert any(reported["error"] for reported, _ in pairs) and not any(job.failed for _, job in pairs)


@cases(*TRACEFS_STATES, "named")
def test_tracefs(state):
    """Jobs are seen through a tracefs of its own, and through the one that is mounted, wherever. Without either: said, with what to
    do; a failure only if the driver was asked for by its name."""
    if state != "own" and [int(word) for word in re.findall(r"\d+", platform.release())[:2]] < [6, 6]:
        raise Skip("perf links need CAP_SYS_ADMIN, too")
    output = os.path.join(scratch(), "trace.json")
    result = with_tracefs("nowhere" if state == "named" else state, [
        need(XPUTRACE, "collector"), "record", "-o", output, "--driver", DESCRIPTION, "--drivers",
        "auto" if state == "nowhere" else "emulated", "--"] + command("nrt", "--calls", 10))
    assert ("mount -t tracefs" in result.stderr) == (state in ("nowhere", "named")), result.stderr
    if state == "named":
        assert result.status == 125, (result.status, result.stderr)
        assert not results_in(result.stdout), "the command was run"
        return
    assert result.status == 0, (result.status, result.stderr)
    trace, results = Trace(output), results_in(result.stdout)
    if state == "nowhere":
        assert not jobs_in(trace) and not jobs_in(trace, other=True)
    else:
        check_all(trace, results)
    compare("nrt", results, trace)


# ---- endings ----

def contains(path, text):
    """Of a trace that is being written."""
    if not os.path.exists(path):
        return False
    with open(path, encoding="utf-8") as file:
        return text in file.read()


def test_two_collectors():
    """Two follow the same driver at once, one of them for a part of the time: both are right."""
    workload = Workload(command("nrt", *CROWD, "--wait-for-go"))
    second = Recorder("-p", workload.pid, *EMULATED)
    results, trace = record_late(workload, *WITH_NODE)
    check_all(trace, results)
    check_all(second.finish(), results)


def sleeps(pid):
    """Whether a thread is in clock_nanosleep(), as an engine that has a job."""
    number = {"x86_64": "230", "aarch64": "115"}[platform.machine()]
    for path in glob.glob("/proc/%d/task/*/syscall" % pid):
        with open(path, encoding="ascii") as file:
            if file.read().split()[0] == number:
                return True
    return False


def test_target_is_killed():
    """A job that runs when its program is killed: there with its begin and no end, counted for nobody."""
    workload = Workload(command("nrt", "--calls", 3, "--wait-for-go", duration_us=3000000))
    recorder = Recorder("-p", workload.pid, *EMULATED)
    workload.go()
    wait_until(lambda: sleeps(workload.pid), "a job runs")
    workload.signal(signal.SIGKILL)
    workload.wait()
    trace = recorder.finish()
    (job,) = jobs_in(trace)
    assert job.event["ph"] == "i" and job.event["name"].startswith("job not done"), job.event
    # Its call has not returned, so it was not recorded.
    assert job.queued and job.began and not job.ended and not job.program, job.arguments
    assert not sum(queue["jobs"] for queue in trace.metadata["queues"]), trace.metadata["queues"]


def programs_of(pid):
    """Identifiers of the BPF programs that the process holds, itself or through links."""
    found = set()
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        try:
            with open(path, encoding="ascii") as file:
                found.update(int(number) for number in re.findall(r"^prog_id:\s*(\d+)", file.read(), re.MULTILINE))
        except OSError:  # closed since
            pass
    return found


def is_loaded(program):
    """Asks the kernel for a program by its identifier."""
    number = {"x86_64": 321, "aarch64": 280}[platform.machine()]
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = ctypes.create_string_buffer(struct.pack("III", program, 0, 0))
    descriptor = libc.syscall(ctypes.c_long(number), ctypes.c_int(13), attributes, ctypes.c_uint(12))
    if descriptor >= 0:
        os.close(descriptor)
        return True
    assert ctypes.get_errno() == errno.ENOENT, os.strerror(ctypes.get_errno())
    return False


def test_killed():
    """SIGKILL of the collector: nothing is left in the kernel, the target goes on, a second recording is right."""
    workload = Workload(command("nrt", "--calls", 0, "--threads", 2, "--load-first", "--wait-for-go", device="apart"))
    workload.go()
    recorder = Recorder("-p", workload.pid, *WITH_NODE)
    programs = programs_of(recorder.pid)
    assert len(programs) > 3 and all(is_loaded(program) for program in programs), programs
    recorder.signal(signal.SIGKILL)
    recorder.wait()
    wait_until(lambda: not any(is_loaded(program) for program in programs), "the programs are gone", 10)
    assert process_state(workload.pid) in ("S", "R"), process_state(workload.pid)
    again = Recorder("-p", workload.pid, *WITH_NODE)
    wait_until(lambda: contains(again.output, '"job,emulated"'), "there are jobs in the trace")
    results = workload.stop()
    trace = again.finish()
    numbers = {job["number"]: job for job in jobs_of(results)}
    seen = [job for job in jobs_in(trace) if job.program]
    assert len(seen) > 2 and trace.complete, len(seen)
    check_times([(numbers[job.arguments["value"]], job) for job in seen])
