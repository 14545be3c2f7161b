# SPDX-License-Identifier: BSD-2-Clause
"""xputrace counters on the PMU of the tests' accelerator: against what the device has reported of its jobs."""

import csv
import io
import json
import os
import re
import signal

import accelerator
from accelerator import NODE, command, load, loaded, unload
from devices import check
from harness import NOBODY, SLOW, XPUTRACE, Process, results_in, run, scratch, wait_until
from pmu_tests import COUNTERS, CROWD, LONG, ONLINE, Device, busy_of, expected

SECOND = 1e9
MEBIBYTE = 1 << 20
LONGEST = 10 * 10 ** 9  # ns that a job may run
OTHERS = ("page-faults", "cpu-clock")


# ---- what it prints ----

class Table:
    """The table at the end: value, unit and mark by name; None: not counted."""

    def __init__(self, text):
        self.values, self.units, self.marks = {}, {}, {}
        rows = text[text.rindex("COUNTER "):].splitlines()[1:]
        for row in rows:
            found = re.match(r"^(\S+)\s+(<not counted>|-?[\d.]+) (\S*)\s+\S+(?:  \((.*)\))?$", row)
            if not found:
                break
            name, value, self.units[name], mark = found.groups()
            self.values[name] = None if value[0] == "<" else float(value)
            self.marks[name] = mark or ""
        assert re.match(r"[\d.]+ s", row), text


def name_of(event, device=""):
    """xptaccel_0/busy,engine=1/"""
    return "%s%s/%s/" % (accelerator.NAME, device, event)


def full_name(event):
    """Of an event of all devices together, or of one that is none of theirs."""
    return event if "/" in event or ":" in event or event in OTHERS else name_of(event)


def arguments_of(events):
    return [word for event in events for word in ("-e", full_name(event))]


def counters(*arguments):
    return run([XPUTRACE, "counters"] + [str(argument) for argument in arguments])


def counted(events, words, *options):
    """Counts while the words of a command are executed: values in the order of events, and the jobs that it reported."""
    result = counters(*options, *arguments_of(events), "--", *words)
    assert result.status == 0, "status %d:\n%s%s" % (result.status, result.stdout, result.stderr)
    table = Table(result.stdout)
    assert not any(table.marks.values()), table.marks
    return [table.values[full_name(event)] for event in events], check(results_in(result.stdout)), table


def expect(result, status, *words):
    assert result.status == status, "status %d, expected %d:\n%s%s" % (
        result.status, status, result.stdout, result.stderr)
    for word in words:
        assert word in result.stderr, "\"%s\" is not in: %s" % (word, result.stderr)
    assert "COUNTER" not in result.stdout, result.stdout


def close(value, nanoseconds):
    """Seconds, as they are printed, and within 1 %."""
    return abs(value - nanoseconds / SECOND) <= 0.01 * nanoseconds / SECOND


class Counting(Process):
    """The command while it counts; a row, once it has begun and every so often."""

    def __init__(self, events, *options, every="50ms"):
        super().__init__([XPUTRACE, "counters", "--every", every, "-o", "-"] + arguments_of(events) +
                         [str(option) for option in options])
        self.wait_line("stdout", ",", 2)

    @property
    def rows(self):
        """Values of each row that is complete, without time and share."""
        text = self.stdout[:self.stdout.rindex("\n")]
        return [[float(value) if value != "N/A" else None for value in row[1:-1]]
                for row in list(csv.reader(io.StringIO(text)))[1:]]

    def next_row(self):
        """One whose interval has begun after now."""
        rows = len(self.rows)
        wait_until(lambda: len(self.rows) >= rows + 2, "a row comes")
        return self.rows[rows + 1]

    def stop(self):
        self.signal(signal.SIGINT)
        assert self.wait() == 0, self.stderr
        return Table(self.stderr)


# ---- tests ----

def test_counts(kernel):
    """Jobs of a crowd: counts exactly, busy time within 1 % and in seconds; also as samples."""
    load(slots=2)
    events = ("jobs", "queued", "failed", "busy", "busy,sample=1")
    values, jobs, table = counted(events, command("nrt", *CROWD))
    wanted = expected(jobs)
    assert wanted["failed"] > 5 and len({job["engine"] for job in jobs}) == 2
    assert values[:3] == [wanted[event] for event in events[:3]], (values, wanted)
    assert all(close(value, wanted["busy"]) for value in values[3:]), (values, wanted)
    assert [table.units[name_of(event)] for event in events] == ["", "", "", "s", "s"], table.units


def test_engines(kernel):
    """Of each engine by its number, by the event that wants one and by a term behind one that does not."""
    load(slots=2)
    events = ("jobs", "jobs,engine=1", "engine=2,jobs", "engine-busy,engine=1", "busy,engine=0x2",
              "config=0x%x" % (0x101 | 1 << 16))
    values, jobs, _ = counted(events, command("nrt", *CROWD))
    first, second = expected(jobs, 0), expected(jobs, 1)
    assert first["jobs"] and second["jobs"], "one engine has done all"
    assert values[:3] == [len(jobs), first["jobs"], second["jobs"]], (values, first, second)
    # engine-busy has no scale: it is in ns.
    assert close(values[3] / SECOND, first["busy"]) and close(values[4], second["busy"]), (values, first, second)
    assert values[5] == first["jobs"], (values, first)


def test_engine_is_wanted(kernel):
    """An event that wants a value says so, and which; a value that its field cannot hold is refused, too."""
    load(engines=2)
    expect(counters("-e", name_of("engine-busy"), "-d", "10ms"), 2, "engine", "engine=N")
    expect(counters("-e", name_of("engine-busy,engine=256"), "-d", "10ms"), 2, "engine", "8 bits", "255")
    expect(counters("-e", name_of("engine-busy,engine=?"), "-d", "10ms"), 2, "number")
    expect(counters("-e", name_of("jobs,engine=3"), "-d", "10ms"), 2, "no such event")
    expect(counters("-e", name_of("event=0x100"), "-d", "10ms"), 2, "8 bits")
    expect(counters("-e", name_of("jobs,queued"), "-d", "10ms"), 2, "one event")


def test_bytes(kernel):
    """Mebibytes by their scale, of jobs that another process submits meanwhile; nobody has asked for a single row."""
    load()
    sizes = [0, 1 << 20, 3 << 30, 5 << 18]
    with Device() as device:
        counting = Counting(("bytes", "bytes,engine=2", "jobs"))
        for number in [device.submit(1000000, index % 2, size) for index, size in enumerate(sizes)]:
            device.wait(number)
        table = counting.stop()
    values = [table.values[name_of(event)] for event in ("bytes", "bytes,engine=2", "jobs")]
    assert abs(values[0] - sum(sizes) / MEBIBYTE) < 0.1 and abs(values[1] - (sizes[1] + sizes[3]) / MEBIBYTE) < 0.01, (
        values, sizes)
    assert values[2] == len(sizes) and table.units[name_of("bytes")] == "MiB", vars(table)
    columns = list(zip(*counting.rows))
    assert abs(sum(columns[0]) - sum(sizes) / MEBIBYTE) < 1e-6 and sum(columns[2]) == len(sizes), counting.rows


def test_two_devices(kernel):
    """By the name without number both together, by the one with number each for itself."""
    load(devices=2)
    events = [name_of(event, device) for event in ("jobs", "failed", "busy") for device in ("", "_0", "_1")]
    other = Process([word.replace(NODE, "/dev/xptaccel1") for word in command("qaic", "--calls", 9, "--jobs", 2)] +
                    ["--wait-for-go"])
    other.wait_line("stdout", "ready")
    counting = Counting(events)
    other.send("\n")
    mine = expected(check(accelerator.execute("nrt", "--calls", 5, "--fail-jobs", 2)))
    assert other.wait() == 0, other.stderr
    others = expected(check(results_in(other.stdout)))
    values = counting.stop().values
    for event in ("jobs", "failed"):
        assert [values[name_of(event, device)] for device in ("", "_0", "_1")] == [
            mine[event] + others[event], mine[event], others[event]], (values, mine, others)
    for device, wanted in (("", mine["busy"] + others["busy"]), ("_0", mine["busy"]), ("_1", others["busy"])):
        assert close(values[name_of("busy", device)], wanted), (values, mine, others)
    assert mine["jobs"] == 5 and others["jobs"] == 18
    expect(counters("-e", name_of("jobs", "_2"), "-d", "10ms"), 1, name_of("jobs", "_2"), "near", name_of("jobs", "_0"))


def test_depth(kernel):
    """What is a state and no sum: how many jobs run now, in each row; it does not add up, nor does it have a rate."""
    load(timeout_ms=round(20000 * SLOW))
    with Device() as device:
        counting = Counting(("depth", "depth,engine=2", "queued"))
        assert counting.next_row() == [0, 0, 0]
        numbers = [device.submit(5 * LONG, 0) for _ in range(3)] + [device.submit(5 * LONG, 1)]
        wait_until(lambda: counting.rows[-1][:2] == [2, 1], "both engines are seen to run a job")
        assert counting.next_row() == [2, 1, 0]
        for number in numbers:
            device.wait(number)
        assert counting.next_row() == [0, 0, 0]
        table = counting.stop()
    assert [table.values[name_of(event)] for event in ("depth", "depth,engine=2", "queued")] == [0, 0, 4], table.values
    assert max(row[0] for row in counting.rows) == 2, counting.rows
    assert re.search(r"^xptaccel/depth/ .* now$", counting.stderr, re.MULTILINE), counting.stderr


def test_rows(kernel):
    """Busy time of the intervals in which a job runs is all of them, before it ends; together they are what it ran."""
    load(timeout_ms=round(20000 * SLOW))
    with Device() as device:
        counting = Counting(("busy", "jobs"), every="100ms")
        started, finished = device.wait(device.submit(min(10 * LONG, LONGEST)))
        table = counting.stop()
    busy, jobs = zip(*counting.rows)
    assert abs(sum(busy) - (finished - started) / SECOND) < 1e-6, (busy, started, finished)
    assert sum(jobs) == 1 and jobs.index(1) > 1, jobs
    within = [value for value in busy[:jobs.index(1)] if value]
    assert len(within) > 1 and max(within) < 0.1 + 0.1 * SLOW, busy
    assert close(table.values[name_of("busy")], finished - started), table.values


def users():
    """References to the driver's module."""
    with open("/sys/module/%s/refcnt" % accelerator.NAME, encoding="ascii") as file:
        return int(file.read())


def test_around_inferences(kernel):
    """The kernel reads the device around each inference: one job each, and together as busy as the device says."""
    load()
    path = os.path.join(scratch(), "trace.json")
    names = [name_of("jobs"), name_of("busy")]
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {0})  # where the device counts; before Linux 6.13 it can be read nowhere else
    try:
        result = run([XPUTRACE, "record", "-o", path, "--counters", ",".join(names), "--counters-per-inference", "--"] +
                     command("nrt", "--calls", 40))
    finally:
        os.sched_setaffinity(0, everywhere)
    assert result.status == 0, result.stderr
    jobs = check(results_in(result.stdout))
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    counts = [event["args"]["counters"] for event in trace["traceEvents"] if "counters" in event.get("args", {})]
    assert len(counts) == len(jobs) == 40, (len(counts), len(jobs))
    assert [count[names[0]] for count in counts] == [1] * 40, counts
    assert close(sum(count[names[1]] for count in counts), expected(jobs)["busy"]), counts
    totals = {counter["name"]: counter["total"] for counter in trace["metadata"]["counters"]}
    assert totals[names[0]] == 40 and close(totals[names[1]], expected(jobs)["busy"]), totals
    wait_until(lambda: users() == 0, "the kernel lets go of the device's events, some time after their last reader")


def test_processor(kernel):
    """It counts where cpumask says; on another processor it is refused, with the reason; one that is offline as well."""
    load()
    values, _, _ = counted(("jobs", "queued"), command("nrt", "--calls", 3), "--cpu", 0)
    assert values == [3, 3], values
    expect(counters("-e", name_of("jobs"), "--cpu", 1, "-d", "10ms"), 1, "CPU 1", "cpumask")
    with open(ONLINE, "w", encoding="ascii") as file:
        file.write("0")
    try:
        expect(counters("-e", name_of("jobs"), "--cpu", 1, "-d", "10ms"), 1, "CPU 1", "offline")
        expect(counters("-e", "page-faults", "--cpu", 1, "-d", "10ms"), 1, "CPU 1", "offline")
        values, _, _ = counted(("jobs", "page-faults"), command("nrt", "--calls", 4))
        assert values[0] == 4 and values[1] > 0, values
    finally:
        with open(ONLINE, "w", encoding="ascii") as file:
            file.write("1")


def test_processor_goes(kernel):
    """A processor that goes offline while everybody's events are counted there: the others go on."""
    load()
    counting = Counting(("jobs", "cpu-clock"))
    with open(ONLINE, "w", encoding="ascii") as file:
        file.write("0")
    try:
        accelerator.execute("nrt", "--calls", 6)
        table = counting.stop()
        assert table.values[name_of("jobs")] == 6 and table.values["cpu-clock"] > 0, table.values
    finally:
        with open(ONLINE, "w", encoding="ascii") as file:
            file.write("1")


def test_single_process(kernel):
    """A device's counters have no process: with -p they are refused; together with a command, they have everybody."""
    load()
    process = Process(["sleep", "1000"])
    expect(counters("-e", name_of("jobs"), "-p", process.pid, "-d", "10ms"), 1, name_of("jobs"), "process")
    expect(counters("-e", "page-faults", "-e", name_of("jobs"), "-p", process.pid, "-d", "10ms"), 1, name_of("jobs"))
    process.kill()
    result = counters(*arguments_of(["jobs"]), "--", "sh", "-c", "\"$@\" >&2; exec \"$@\"", "sh",
                      *command("nrt", "--calls", 8))
    assert Table(result.stdout).values[name_of("jobs")] == 16, result.stdout


def test_multiplexed(kernel):
    """More events than counters: each has had its turn, is estimated and marked; as one too many, it is not refused."""
    load(slots=2)
    events = ["queued", "queued,engine=1", "busy", "failed", "bytes", "queued,engine=2"]
    counting = Counting(events + ["jobs"], every="200ms")
    jobs = check(accelerator.execute("nrt", "--calls", 400, duration_us=4000))
    table = counting.stop()
    shares = [re.fullmatch(r"counted ([\d.]+) % of the time", table.marks[name_of(event)]) for event in events]
    assert len(events) > COUNTERS and any(shares), table.marks
    used = sum(float(share[1]) if share else 100 for share in shares) / 100
    assert used < COUNTERS * 1.05, table.marks
    assert all(table.values[name_of(event)] is not None for event in events), table.values
    # An estimate: the device is busy all the time, and every event has some of it.
    busy = table.values[name_of("busy")]
    assert 0.5 * busy_of(jobs) / SECOND < busy < 1.5 * busy_of(jobs) / SECOND, (busy, busy_of(jobs))
    share = [float(row.rpartition(",")[2]) for row in counting.stdout.splitlines()[2:]]
    assert share[-1] < 1, share


def test_no_multiplex(kernel):
    """--no-multiplex: as many as there are counters are taken, one more is refused, and no command executed."""
    load()
    events = ["queued", "queued,engine=1", "busy", "failed"]
    values, jobs, _ = counted(events + ["jobs", "page-faults"], command("nrt", "--calls", 20), "--no-multiplex")
    assert values[:2] == [20, 20] and values[4] == 20 and len(jobs) == 20, values
    result = counters("--no-multiplex", *arguments_of(events + ["bytes"]), "--", *command("nrt", "--calls", 1))
    expect(result, 1, "hardware", "at once")
    assert not results_in(result.stdout), "the command was executed"
    assert counted(events, command("nrt", "--calls", 2))[0][0] == 2, "counters have not come back"


def test_held(kernel):
    """With --no-multiplex a second session is refused while the first has all of the hardware; it is not disturbed."""
    load()
    events = ["queued", "queued,engine=1", "busy", "failed"]
    counting = Counting(events, "--no-multiplex")
    expect(counters("--no-multiplex", *arguments_of(["bytes"]), "-d", "10ms"), 1, "hardware")
    values, _, _ = counted(["jobs"], command("nrt", "--calls", 4), "--no-multiplex")
    assert values == [4]
    table = counting.stop()
    assert table.values[name_of("queued")] == 4 and not any(table.marks.values()), vars(table)


def test_module_stays(kernel):
    """While a session is open the module is not unloaded; afterwards it can be."""
    load()
    counting = Counting(["jobs"])
    assert run(["rmmod", accelerator.NAME]).status != 0 and loaded()
    counting.stop()
    unload()
    expect(counters("-e", name_of("jobs"), "-d", "10ms"), 1, name_of("jobs"))


def test_killed(kernel):
    """A session that is killed leaves nothing behind: its counters are free, and the module can be unloaded."""
    load()
    counting = Counting(["queued", "busy", "failed", "bytes"])
    counting.signal(signal.SIGKILL)
    counting.wait()
    values, _, _ = counted(["queued", "busy", "failed", "bytes"], command("nrt", "--calls", 5), "--no-multiplex")
    assert values[0] == 5, values
    unload()


def test_tracepoints(kernel):
    """Together with the driver's own tracepoints: as many errors as jobs that have failed, whoever meets them."""
    load()
    counting = Counting(("failed", "xptaccel:xptaccel_error"))
    jobs = check(accelerator.execute("nrt", "--calls", 20, "--fail-jobs", 4))
    values = counting.stop().values
    wanted = expected(jobs)["failed"]
    assert wanted == 5 and list(values.values()) == [wanted, wanted], (values, wanted)


def test_not_root(kernel):
    """Without permission the PMU's name stands in the message, and what is wanted."""
    load()
    result = run([XPUTRACE, "counters", "-e", name_of("jobs"), "-d", "10ms"], user=NOBODY, group=NOBODY,
                 extra_groups=[])
    expect(result, 1, name_of("jobs"), "root")


def test_nearest(kernel):
    """Of a device's events the nearest names are offered."""
    load()
    expect(counters("-e", "xptaccel_0/job/", "-d", "10ms"), 1, "near", "xptaccel_0/jobs/")
    expect(counters("-e", "xptacel/jobs/", "-d", "10ms"), 1, "near", "xptaccel_0/jobs/")
    expect(counters("-e", "xptaccel/jobs", "-d", "10ms"), 2, "xptaccel/jobs")


def seconds_of(text):
    """For how long a table's command was counted."""
    return float(re.search(r"^([\d.]+) s", text[text.rindex("COUNTER "):], re.MULTILINE)[1])


def test_aliases(kernel):
    """busy and jobs: of one device that works, with what the workload has asked it to do."""
    load(devices=2, engines=1)
    result = counters("-e", "busy,jobs", "--", *command("nrt", "--calls", 250))
    assert result.status == 0, result.stderr
    table, jobs = Table(result.stdout), check(results_in(result.stdout))
    share = 100 * busy_of(jobs) / SECOND / seconds_of(result.stdout)
    assert len(jobs) == table.values["jobs"] == 250 and table.units["busy"] == "%", vars(table)
    assert share > 20 and abs(table.values["busy"] - share) < 0.03 * share, (table.values, share)


def test_aliases_of_two(kernel):
    """Of two devices that work at once jobs are added; busy is the one that works more."""
    load(devices=2, engines=1)
    first, second = command("nrt", "--calls", 200), command("nrt", "--calls", 60)
    second = [word.replace(NODE, "/dev/xptaccel1") for word in second]
    result = counters("-e", "busy,jobs", "--", "sh", "-c", "%s > /tmp/first & %s; wait; cat /tmp/first" % (
        " ".join(first), " ".join(second)))
    assert result.status == 0, result.stderr
    table, both = Table(result.stdout), [check([one]) for one in results_in(result.stdout)]
    assert sorted(map(len, both)) == [60, 200] and table.values["jobs"] == 260, (table.values, [len(one) for one in both])
    share = 100 * max(map(busy_of, both)) / SECOND / seconds_of(result.stdout)
    assert abs(table.values["busy"] - share) < 0.03 * share, (table.values, share)


def test_aliases_by_interval(kernel):
    """In each row busy is that of its interval: high while a job runs, and 0 again once it has ended."""
    load(engines=1, timeout_ms=round(20000 * SLOW))
    counting = Process([XPUTRACE, "counters", "--every", "50ms", "-o", "-", "-e", "busy,jobs"])
    counting.wait_line("stdout", ",", 2)

    def rows():
        text = counting.stdout[:counting.stdout.rindex("\n")]
        return [(float(row[1]), float(row[2])) for row in list(csv.reader(io.StringIO(text)))[1:]]

    with Device() as device:
        device.wait(device.submit(5 * LONG))
    ended = len(rows())
    wait_until(lambda: len(rows()) >= ended + 3, "rows come")
    counting.signal(signal.SIGINT)
    assert counting.wait() == 0, counting.stderr
    shares, jobs = zip(*rows())
    assert max(shares) > 98 and shares[-1] == 0 and shares[0] < 98 and sum(jobs) == 1, (shares, jobs)


def test_aliases_refused(kernel):
    """What no device reports, what a device cannot report of a process, and a device that has no node."""
    load(engines=1)
    expect(counters("-e", "energy", "-d", "10ms"), 1, "energy", "reports it")
    expect(counters("-e", "busy", "-p", os.getpid(), "-d", "10ms"), 1, "busy", "single process")
    expect(counters("-e", "busy", "--gpu", 77, "-d", "10ms"), 1, "no device 77")
    unload()
    expect(counters("-e", "busy", "-d", "10ms"), 1, "busy", "reports it")


def test_list_aliases(kernel):
    """list counters shows the aliases that work, and of what they are made."""
    load(devices=2)
    result = run([XPUTRACE, "list", "counters"])
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert "xptaccel_0/busy/,xptaccel_1/busy/" in lines["busy"] and "%" in lines["busy"].split(), lines["busy"]
    assert "xptaccel_0/jobs/,xptaccel_1/jobs/" in lines["jobs"], lines["jobs"]
    assert "energy" not in lines and "memory_busy" not in lines, list(lines)


def test_list(kernel):
    """list counters shows each event of each device, once, with its unit and what it wants."""
    load(devices=2)
    result = run([XPUTRACE, "list", "counters"])
    assert result.status == 0, result.stderr
    for device in (0, 1):
        for event, unit in (("jobs", ""), ("queued", ""), ("failed", ""), ("busy", "s"), ("engine-busy,engine=?", ""),
                            ("bytes", "MiB"), ("depth", "")):
            name = name_of(event, "_%d" % device)
            line, = [line for line in result.stdout.splitlines() if line.split()[:1] == [name]]
            assert not unit or unit in line.split(), line


def discover(kernel):
    """As kernel_tests.discover() has them."""
    return [("device_counters." + name[5:], function, (kernel,)) for name, function in list(globals().items())
            if name.startswith("test_") and function.__module__ == __name__]
