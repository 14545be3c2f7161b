# SPDX-License-Identifier: BSD-2-Clause
"""xputrace inspect: a folder for each process, with what it did there and nothing else."""

import csv
import json
import os
import resource
import signal
import socket

from saved_files import CLOCKS, Saved, executions, executions_in, nanoseconds
from harness import (XPUTRACE, Process, Trace, Workload, cases, compare, entries_of, need, results_in, run, run_entries,
                     scratch, standin, workload_path)
from test_devices import CROWD, EMULATED, check_all, command

FILES = {"recording.xpt", "trace.json", "report.txt", "usage.csv", "index.json"}


def inspect(*arguments, environment=None, status=0):
    """Runs it to its end; the finished process."""
    result = run([need(XPUTRACE, "collector"), "inspect"] + [str(word) for word in arguments],
                 env={**os.environ, **(environment or {})})
    assert result.status == status, "it ended with %d instead of %d: %s" % (result.status, status, result.stderr)
    return result


class Inspector(Process):
    """One that runs."""

    def __init__(self, *arguments, **options):
        self.folder = os.path.join(scratch(), "inspected")
        words = [need(XPUTRACE, "collector"), "inspect", "-o", self.folder]
        super().__init__(words + [str(word) for word in arguments], **options)
        self.wait_line("stderr", "recording into memory")

    def finish(self, number=signal.SIGINT, status=0):
        if number:
            self.signal(number)
        ended = self.wait()
        assert ended == status, "it ended with %d: %s" % (ended, self.stderr)


class Folder:
    """What was written of a process."""

    def __init__(self, root, pid, lossless=True):
        self.path = os.path.join(root, "%s_pid_%d" % (socket.gethostname(), pid))
        self.files = set(os.listdir(self.path))
        with open(os.path.join(self.path, "index.json"), encoding="utf-8") as file:
            self.index = json.load(file)
        assert set(self.index["files"]) | {"index.json"} == self.files, (self.index, self.files)
        assert self.index["pid"] == pid and self.index["host"] == socket.gethostname(), self.index
        assert not lossless or self.index["lost"] == 0, self.index

    @property
    def trace(self):
        """As it was written; and that of the recording is the same."""
        trace = Trace(os.path.join(self.path, "trace.json"))
        again = Saved(os.path.join(self.path, "recording.xpt")).trace
        assert [call.event for call in trace.calls] == [call.event for call in again.calls]
        return trace

    def rows(self):
        with open(os.path.join(self.path, "usage.csv"), encoding="ascii", newline="") as file:
            return list(csv.DictReader(file))


def finish(workload):
    """Lets it run, and waits for its line while it lingers."""
    workload.go()
    return json.loads(workload.wait_line("stdout", '{"runtime"'))


def end(workload):
    workload.send("\n")
    assert workload.wait() == 0, workload.stderr


@cases("nrt", "qaic", "cuda")
def test_folder(runtime):
    """Two processes side by side: in the folder of each is what it did, nothing of the other, and all files."""
    workloads = [standin(runtime, "--calls", "60", "--threads", "2", "--linger") for _ in range(2)]
    inspector = Inspector("-p", ",".join(str(one.pid) for one in workloads), "--session-id", "7")
    results = [finish(workload) for workload in workloads]
    inspector.finish()
    for workload, result in zip(workloads, results):
        folder = Folder(inspector.folder, workload.pid)
        assert folder.files == FILES and folder.index["session"] == 7, folder.index
        compare(runtime, [result], folder.trace, totals_in="recorded")
        assert folder.index["failed"] == 0 and folder.index["inferences"] > 0, folder.index
        with open(os.path.join(folder.path, "report.txt"), encoding="utf-8") as file:
            assert "inspection 7" in file.read()
        end(workload)


def test_usage():
    """CPU time and memory over time, against what the kernel says of the process at its end."""
    workload = standin("nrt", "--calls", "0", "--rate", "500")
    inspector = Inspector("-p", workload.pid, "-d", "2.5s")
    workload.go()
    inspector.finish(None)
    rows = Folder(inspector.folder, workload.pid).rows()
    with open("/proc/%d/stat" % workload.pid, encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    spent = (int(fields[11]) + int(fields[12])) * 10**9 // os.sysconf("SC_CLK_TCK")
    resident = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    workload.stop()
    assert 3 <= len(rows) <= 5, rows
    times, cpu = [int(row["time_ns"]) for row in rows], [int(row["cpu_ns"]) for row in rows]
    assert times == sorted(times) and cpu == sorted(cpu) and cpu[-1] <= spent + 20 * 10**6, (rows, spent)
    assert abs(int(rows[-1]["rss_bytes"]) - resident) < 1 << 20, (rows, resident)


def test_on_fail():
    """Those that fail are in files, each with what was before it; nothing else is written of inferences."""
    workload = standin("nrt", "--calls", "90", "--rate", "300", "--fail-every", "30", "--log-times", "--linger")
    inspector = Inspector("-p", workload.pid, "--on-fail")
    result = finish(workload)
    inspector.finish()
    folder = Folder(inspector.folder, workload.pid)
    failed = sum(entry["count"] for entry in run_entries([result]) if entry["status"])
    files = sorted(name for name in folder.files if name.startswith("failed"))
    assert failed == 3 == folder.index["failed"] and folder.index["inferences"] == 90, (folder.index, failed)
    assert 1 <= len(files) <= failed and "recording.xpt" not in folder.files, folder.files
    log = executions(result)
    seen = set()
    for name in files:
        trace = Saved(os.path.join(folder.path, name)).trace
        runs = [call for call in trace.runs() if call.event["args"].get("status")]
        assert runs, "nothing has failed in %s" % name
        seen |= {call.start for call in runs}
        last = max(nanoseconds(call.end) for call in runs)
        before = [one for one in log if one.end < last - CLOCKS]
        assert set(before) <= executions_in(trace, log), "what was before is missing in %s" % name
    assert len(seen) == failed, (seen, files, folder.index)
    end(workload)


def programs_of(result):
    """Names with the core that each was loaded onto."""
    return {"neuron-0.%d" % number: number for number in range(len({
        entry["program"] for entry in entries_of([result]) if entry.get("program")}))}


def test_cores():
    """Only inferences of programs on these cores, with what lies in them."""
    workload = standin("nrt", "--programs", "4", "--calls", "80", "--log-times", "--linger")
    inspector = Inspector("-p", workload.pid, "--cores", "1,3")
    result = finish(workload)
    inspector.finish()
    trace = Folder(inspector.folder, workload.pid).trace
    names = {call.program for call in trace.runs()}
    assert names == {name for name, core in programs_of(result).items() if core in (1, 3)}, names
    expected = sum(entry["count"] for entry in run_entries([result]) if entry["program"] in names)
    assert len(trace.runs()) == expected > 0, (len(trace.runs()), expected)
    end(workload)


def test_max_events():
    """Of each core the latest inferences, as many as have no more events together."""
    workload = standin("nrt", "--programs", "2", "--calls", "200", "--log-times", "--linger")
    inspector = Inspector("-p", workload.pid, "--max-events", "120")
    result = finish(workload)
    inspector.finish()
    folder = Folder(inspector.folder, workload.pid)
    trace = folder.trace
    log = executions(result)
    found = executions_in(trace, log)
    assert folder.index["left_out"] + len(found) == len(log) == folder.index["inferences"], folder.index
    for core in range(2):
        of_core = [one for one in log if one.number // 2 % 2 == core]
        kept = [one for one in of_core if one in found]
        assert 10 < len(kept) <= 120 and kept == of_core[-len(kept):], "core %d: %d of %d" % (
            core, len(kept), len(of_core))
    end(workload)


def test_types():
    """Only events of these types."""
    workload = standin("nrt", "--calls", "40", "--linger")
    inspector = Inspector("-p", workload.pid, "--types", "execute,enqueue,wait")
    result = finish(workload)
    inspector.finish()
    trace = Folder(inspector.folder, workload.pid).trace
    roles = {call.role for call in trace.calls if not call.role.startswith("program.")}
    assert roles == {"execute", "enqueue", "wait"} or roles == {"execute", "enqueue"}, roles
    assert len(trace.runs()) == sum(entry["count"] for entry in run_entries([result]))
    end(workload)


@cases("all", "^job", "software")
def test_driver_types(types):
    """Jobs of a driver, each in its call, unless they are not wanted."""
    workload = Workload(command("nrt", *CROWD, "--linger", "--wait-for-go", device="slots=2"))
    words = () if types == "all" else ("--types", types)
    inspector = Inspector("-p", workload.pid, *EMULATED, *words)
    workload.go()
    results = results_in(workload.wait_line("stdout", '{"runtime"'))
    inspector.finish()
    trace = Folder(inspector.folder, workload.pid, lossless=False).trace  # check_all() and its jobs_in() look at losses
    jobs = [event for event in trace.events if "job" in event.get("cat", "").split(",")]
    if types == "all":
        check_all(trace, results)
        assert jobs
    else:
        assert trace.runs() and not jobs, jobs[:3]
        assert not [call for call in trace.runs() if call.event["args"].get("device", {}).get("jobs")]
    workload.go()
    workload.results()


def test_environment():
    """What the environment says holds where the command line does not say something else; what is bad is refused."""
    folder = os.path.join(scratch(), "elsewhere")
    command = [workload_path("workload"), "nrt", "--programs", "4", "--calls", "40"]
    said = {"XPUTRACE_INSPECT_OUTPUT_DIR": folder, "XPUTRACE_INSPECT_EVENT_FILTER_CORE": "0",
            "XPUTRACE_INSPECT_SESSION_ID": "5"}
    inspect("--cores", "2", "--", *command, environment=said)
    name, = os.listdir(folder)
    found = Folder(folder, int(name.rpartition("_")[2]))
    assert found.index["session"] == 5 and {call.program for call in found.trace.runs()} == {"neuron-0.2"}, found.index
    result = inspect("--", *command, environment={"XPUTRACE_INSPECT_MAX_EVENTS_PER_CORE": "none"}, status=2)
    assert "XPUTRACE_INSPECT_MAX_EVENTS_PER_CORE" in result.stderr, result.stderr


def test_environment_of_the_target():
    """What the target's own runtime was given holds when it is asked to; but not where files go."""
    theirs = os.path.join(scratch(), "theirs")
    environment = {**os.environ, "NEURON_RT_INSPECT_EVENT_FILTER_NC": "1", "NEURON_RT_INSPECT_OUTPUT_DIR": theirs}
    for words, wanted in (((), {0, 1, 2, 3}), (("--honour-target-env",), {1})):
        workload = Workload([workload_path("workload"), "nrt", "--wait-for-go", "--programs", "4", "--calls", "40",
                             "--linger"], env=environment)
        inspector = Inspector("-p", workload.pid, *words)
        finish(workload)
        inspector.finish()
        trace = Folder(inspector.folder, workload.pid).trace
        assert {int(call.program[-1]) for call in trace.runs()} == wanted, words
        assert not os.path.exists(theirs)
        end(workload)


def test_environments_of_two_targets():
    """What one target was given wrongly does not refuse the other: it is left out, with a warning."""
    good, bad = (Workload([workload_path("workload"), "nrt", "--wait-for-go", "--programs", "4", "--calls", "40", "--linger"],
                          env={**os.environ, "NEURON_RT_INSPECT_EVENT_FILTER_NC": value}) for value in ("1", "one"))
    inspector = Inspector("-p", "%d,%d" % (bad.pid, good.pid), "--honour-target-env")
    for workload in (good, bad):
        finish(workload)
    inspector.finish()
    assert "process %d: " % bad.pid in inspector.stderr and "not honoured" in inspector.stderr, inspector.stderr
    for workload in (good, bad):
        trace = Folder(inspector.folder, workload.pid).trace
        assert {int(call.program[-1]) for call in trace.runs()} == {1}, "the options are those of all"
        end(workload)


def test_name_that_is_not_utf_8():
    """Names with any bytes: the index is read by a strict reader."""
    folder = scratch()
    program = os.path.join(folder, os.fsdecode(b"work\xffload\x01\""))
    os.symlink(workload_path("workload"), program)
    workload = Workload([program, "nrt", "--wait-for-go", "--calls", "10", "--linger"])
    inspector = Inspector("-p", workload.pid)
    finish(workload)
    inspector.finish()
    found, = [name for name in os.listdir(inspector.folder) if name.endswith("_%d" % workload.pid)]
    with open(os.path.join(inspector.folder, found, "index.json"), "rb") as file:
        index = json.loads(file.read().decode("utf-8"))
    assert index["name"].startswith("work\ufffdload\x01"), index
    end(workload)


def test_no_room():
    """Files may not grow: what fits is there and whole, the rest is not, and the exit status and messages say so."""
    workload = standin("nrt", "--calls", "200", "--threads", "2", "--linger")
    inspector = Inspector("-p", workload.pid, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                                    (20000, 20000)))
    finish(workload)
    inspector.finish(signal.SIGTERM, status=1)
    assert "recording" in inspector.stderr or "captured" in inspector.stderr, inspector.stderr
    folder = Folder(inspector.folder, workload.pid)
    assert folder.files == {"usage.csv", "index.json"}, folder.files
    assert folder.rows()
    end(workload)


@cases(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
def test_signals(number):
    """Each ends it in order, and all is written."""
    workload = standin("nrt", "--calls", "10", "--linger")
    inspector = Inspector("-p", workload.pid)
    finish(workload)
    inspector.finish(number)
    assert Folder(inspector.folder, workload.pid).files == FILES
    end(workload)


def test_killed():
    """What was in memory is gone, nothing half is there, and the target and the next inspection do not mind."""
    workload = standin("nrt", "--calls", "30", "--linger")
    killed = Inspector("-p", workload.pid)
    killed.signal(signal.SIGKILL)
    killed.wait()
    assert not os.listdir(killed.folder)
    inspector = Inspector("-p", workload.pid)
    result = finish(workload)
    inspector.finish()
    compare("nrt", [result], Folder(inspector.folder, workload.pid).trace, totals_in="recorded")
    end(workload)


def test_refused():
    """With the reason, and nothing attached."""
    workload = standin("nrt", "--calls", "1")
    for words, reason in ((("--cores", "1-"), "--cores"), (("--types", "nonsense"), "--types"),
                          (("--activities", "all,some"), "--activities"), (("--max-events", "0"), "--max-events")):
        result = inspect("-p", workload.pid, *words, status=2)
        assert reason in result.stderr, result.stderr
    result = inspect("-a", "--honour-target-env", status=2)
    assert "-p PID" in result.stderr, result.stderr
    result = inspect("-p", workload.pid, "-o", "/proc/nowhere", status=1)
    assert "/proc" in result.stderr, result.stderr
    workload.go()
    workload.results()
