# SPDX-License-Identifier: BSD-2-Clause
"""xputrace counters: what it counts, against perf stat, the kernel's accounts and what a program was asked to do."""

import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import (NOBODY, SLOW, XPUTRACE, Process, Skip, alone, cases, has_tracepoint, need, paired, process_state, run, scratch,
                     wait_until)
from test_endings import small_file_system

MACHINE, TIME = "measures what the whole machine does", "measures time"  # why a test runs alone

# Does what its words say, or its lines of standard input when there are no words: each time as many of one thing as it
# is asked for. Answers with the kernel's own account of what it did meanwhile.
WORKER = r"""
import json, mmap, os, queue, resource, sys, threading, time

PAGES = 256
AREA = mmap.mmap(-1, PAGES * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
if hasattr(mmap, "MADV_NOHUGEPAGE"):
    AREA.madvise(mmap.MADV_NOHUGEPAGE)
AREA.madvise(mmap.MADV_DONTNEED)
crew, crew_done = queue.Queue(), queue.Queue()

def faults(number):
    for index in range(number):
        if index % PAGES == 0:
            AREA.madvise(mmap.MADV_DONTNEED)
        AREA[index % PAGES * mmap.PAGESIZE] = 1

def calls(number):
    for _ in range(number):
        os.getppid()

def switches(number):
    for _ in range(number):
        time.sleep(0.00005)

def migrations(number):
    for index in range(number):
        os.sched_setaffinity(0, {index % 2})

def burn(milliseconds):
    end = time.process_time() + milliseconds / 1000
    while time.process_time() < end:
        pass

def threads(number):
    made = [threading.Thread(target=calls, args=(number,)) for _ in range(3)]
    for one in made:
        one.start()
    for one in made:
        one.join()

def children(number):
    made = []
    for _ in range(3):
        pid = os.fork()
        if not pid:
            calls(number)
            os._exit(0)
        made.append(pid)
    for pid in made:
        os.waitpid(pid, 0)

def crew_calls(number):
    for _ in range(3):
        crew.put(number)
    for _ in range(3):
        crew_done.get()

def pin(cpu):
    os.sched_setaffinity(0, {cpu})

def end(status):
    os._exit(status)

def work():
    while True:
        calls(crew.get())
        crew_done.put(None)

def account():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return [used.ru_minflt, used.ru_nvcsw + used.ru_nivcsw, time.process_time_ns()]

def perform(word, number):
    before = account()
    globals()[word](int(number))
    after = account()
    done = dict(zip(("faults", "switches", "nanoseconds"), (b - a for a, b in zip(before, after))))
    print(json.dumps(done), flush=True)

words = sys.argv[1:]
if words:
    for word, number in zip(words[::2], words[1::2]):
        perform(word, number)
else:
    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        perform(*line.split())
"""
CALL = "syscalls:sys_enter_getppid"
MANY = 20000  # so many that what others do by chance does not matter
NEVER = "counters-of-no-machine/never/"


# ---- the command and what it prints ----

def counters(*arguments, **options):
    """xputrace counters, run to its end."""
    return run([need(XPUTRACE, "collector"), "counters"] + [str(word) for word in arguments], **options)


def expect(result, status, *words):
    """Ended with the status, and said each of the words."""
    assert result.status == status, "status %d, expected %d:\n%s%s" % (
        result.status, status, result.stdout, result.stderr)
    assert result.stderr.strip(), "no message"
    for word in words:
        assert word.lower() in result.stderr.lower(), "\"%s\" is not in: %s" % (word, result.stderr)


ROW = re.compile(r"^(\S+)\s+(<not counted>|-?[\d.]+) (\S*)\s+(-?[\d.]+|mean|now)(  \(.*\))?$")


class Table:
    """The table at the end: values and rates by name, and the seconds that were counted."""

    def __init__(self, text):
        assert text.count("COUNTER ") == 1, text
        lines = text[text.index("COUNTER "):].splitlines()
        self.values, self.units, self.rates, self.marks = {}, {}, {}, {}
        for line in lines[1:]:
            found = re.match(r"([\d.]+) s(, read within ([\d.]+) us)?$", line)
            if found:
                self.seconds = float(found[1])
                return
            found = ROW.match(line)
            assert found, "no row of a table: %r" % line
            name, value, unit, rate, mark = found.groups()
            assert name not in self.values, text
            self.values[name] = float(value) if value[0] != "<" else None
            self.units[name] = unit
            self.rates[name] = rate
            self.marks[name] = mark or ""
        raise AssertionError("the table has no end:\n" + text)


def count(*arguments, **options):
    """The table of a run that ends by itself."""
    result = counters(*arguments, **options)
    assert result.status == 0, "status %d:\n%s%s" % (result.status, result.stdout, result.stderr)
    return Table(result.stdout)


class Rows:
    """A CSV, as Python's reader of it sees it."""

    def __init__(self, text):
        rows = list(csv.reader(io.StringIO(text), strict=True))
        assert len(rows) > 1, text
        self.header, self.rows = rows[0], rows[1:]
        assert self.header[0] == "time(S)" and self.header[-1] == "counted share", self.header
        assert all(len(row) == len(self.header) for row in self.rows), text
        self.times = [float(row[0]) for row in self.rows]
        assert self.times == sorted(set(self.times)), "times do not rise: %s" % self.times

    def column(self, name):
        index = self.header.index(name)
        return [float(row[index]) for row in self.rows]


class Counting(Process):
    """The command while it counts: begun, when its first row has come."""

    def __init__(self, *arguments, every="20ms"):
        super().__init__([need(XPUTRACE, "collector"), "counters", "--every", every, "-o", "-"] +
                         [str(word) for word in arguments])
        self.wait_line("stdout", ",", 2)

    def stop(self, number=signal.SIGINT):
        """The table; the rows are in self.rows."""
        self.signal(number)
        status = self.wait()
        assert status == 0, "status %d:\n%s" % (status, self.stderr)
        self.rows = Rows(self.stdout)
        return Table(self.stderr)


class Perf(Process):
    """perf stat, begun when it says that its events are switched on."""

    def __init__(self, *arguments):
        if not shutil.which("perf"):
            raise Skip("perf is not installed")
        folder = tempfile.mkdtemp(dir=scratch())
        self.output = os.path.join(folder, "output")
        pipes = [os.path.join(folder, name) for name in ("control", "answer")]
        for pipe in pipes:
            os.mkfifo(pipe)
        super().__init__(["perf", "stat", "-x,", "-D", "-1", "-o", self.output, "--control",
                          "fifo:%s,%s" % tuple(pipes)] + [str(word) for word in arguments])
        opened = [os.open(pipe, os.O_RDWR) for pipe in pipes]  # waits for nobody
        os.write(opened[0], b"enable\n")
        answer = b""
        while b"ack" not in answer:
            wait_until(lambda: self.child.poll() is not None or readable(opened[1]), "perf answers")
            assert self.child.poll() is None, self.stderr
            answer += os.read(opened[1], 100)
        for descriptor in opened:
            os.close(descriptor)

    def stop(self):
        """{event: (value, ns that it ran, of all CPUs together)}"""
        self.signal(signal.SIGINT)
        self.wait()
        with open(self.output, encoding="utf-8") as file:
            return perf_values(file.read())


def readable(descriptor):
    import select
    return bool(select.select([descriptor], [], [], 0)[0])


def perf_values(text):
    """Of what perf stat -x, prints. Times are in ms there."""
    values = {}
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 4 and fields[0]:
            assert re.fullmatch(r"[\d.]+", fields[0]), "perf does not count: " + line
            values[fields[2]] = (float(fields[0]) * (1e6 if fields[1] == "msec" else 1), float(fields[3]))
    assert values, text
    return values


def close(value, wanted, share=0.01, by=0):
    return abs(value - wanted) <= wanted * share + by


class Worker(Process):
    """A process that does as many things as it is asked, and says what the kernel has accounted for."""

    def __init__(self):
        super().__init__([sys.executable, "-W", "ignore", "-c", WORKER])
        self.wait_line("stdout", "ready")

    def do(self, word, number):
        lines = sum("{" in line for line in self.lines["stdout"])
        self.send("%s %d\n" % (word, number))
        return json.loads(self.wait_line("stdout", "{", lines + 1))

    def leave(self):
        self.child.stdin.close()
        self.child.wait()


def worker_command(*words):
    return ["--", sys.executable, "-W", "ignore", "-c", WORKER] + [str(word) for word in words]


def need_tracepoint(name=CALL):
    if not has_tracepoint(name):
        raise Skip("there is no tracepoint %s here" % name)


def need_pmu(name):
    if not os.path.isdir("/sys/bus/event_source/devices/" + name):
        raise Skip("this machine has no PMU %s" % name)


def need_root():
    if os.geteuid():
        raise Skip("needs root")


# ---- of one process ----

@alone(TIME)
@cases("page-faults", "context-switches", "cpu-migrations", "task-clock", CALL)
def test_known_numbers(name):
    """As many as the worker has been asked to make, or has been accounted for by the kernel."""
    word, number, account = {"page-faults": ("faults", MANY, "faults"),
                             "context-switches": ("switches", 2000, "switches"),
                             "cpu-migrations": ("migrations", 200, None),
                             "task-clock": ("burn", round(300 * SLOW), "nanoseconds"),
                             CALL: ("calls", MANY, None)}[name]
    if name == CALL:
        need_tracepoint()
    if name == "cpu-migrations" and not {0, 1} <= os.sched_getaffinity(0):
        raise Skip("needs CPUs 0 and 1")
    worker = Worker()
    if name == "cpu-migrations":
        worker.do("pin", 1)
    counting = Counting("-e", name, "-p", worker.pid)
    reported = worker.do(word, number)
    value = counting.stop().values[name]
    if name in ("cpu-migrations", CALL):
        assert value == number, (value, number)
    else:
        # A sleep that is so short may be over before it has begun.
        assert name == "task-clock" or reported[account] > 0.9 * number, "the worker has not done it: %s" % reported
        by = 5e6 * SLOW if name == "task-clock" else 20  # to take the number and to answer
        assert close(value, reported[account], 0.01, by), (value, reported)
    worker.leave()


@alone(TIME)
def test_against_perf():
    """perf stat on the same events of the same process at the same time; it waits before and after."""
    need_tracepoint()
    names = ["page-faults", "minor-faults", "context-switches", "cpu-migrations", "task-clock", CALL]
    if os.path.isdir("/sys/bus/event_source/devices/msr"):
        names.append("msr/tsc/")
    worker = Worker()
    perf = Perf("-e", ",".join(names), "-p", worker.pid)
    counting = Counting("-e", ",".join(names), "-p", worker.pid)
    for word, number in (("faults", MANY), ("switches", 1000), ("calls", MANY), ("burn", round(400 * SLOW)),
                         ("threads", 2000), ("crew_calls", 3000), ("children", 1000), ("migrations", 100)):
        worker.do(word, number)
    table = counting.stop()
    perfs = perf.stop()
    worker.leave()
    assert sorted(perfs) == sorted(names), perfs
    for name in names:
        assert close(table.values[name], perfs[name][0], 0.01, 3), "%s: %s, perf: %s" % (
            name, table.values[name], perfs[name][0])
    assert table.values[CALL] == perfs[CALL][0] == MANY + 3 * (2000 + 3000 + 1000), (table.values, perfs)


def test_command_against_perf():
    """The same command once below each of the two: from its first instruction on, with its threads and children."""
    need_tracepoint()
    if not shutil.which("perf"):
        raise Skip("perf is not installed")
    names = "page-faults,%s,major-faults" % CALL
    command = worker_command("faults", 4 * MANY, "calls", MANY, "threads", 1000, "children", 500)
    table = count("-e", names, *command)
    output = os.path.join(scratch(), "perf")
    assert run(["perf", "stat", "-x,", "-o", output, "-e", names] + command).status == 0
    with open(output, encoding="utf-8") as file:
        perfs = perf_values(file.read())
    assert table.values[CALL] == perfs[CALL][0] == MANY + 4500, (table.values, perfs)
    assert close(table.values["page-faults"], perfs["page-faults"][0]), (table.values, perfs)
    assert table.values["page-faults"] > 4 * MANY


def test_command_of_nothing():
    """The smallest program: what perf counts is what is counted, none of the collector's own work."""
    program = shutil.which("true")
    faults = [count("-e", "minor-faults", "--", program).values["minor-faults"] for _ in range(3)]
    account = run([sys.executable, "-c", "import os, subprocess, resource; subprocess.run(['%s']);"
                   "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt)" % program])
    # Where a program lies in memory is left to chance, and with it how many pages its loader touches.
    assert all(abs(number - int(account.stdout)) < 0.3 * int(account.stdout) for number in faults), (
        faults, account.stdout)


def test_threads():
    """-p has all threads that there are, and those that begin later; a thread that ends keeps its part."""
    need_tracepoint()
    worker = Worker()
    assert len(os.listdir("/proc/%d/task" % worker.pid)) == 4
    counting = Counting("-e", CALL, "-p", worker.pid)
    worker.do("crew_calls", 1000)
    worker.do("threads", 500)
    worker.do("calls", 77)
    assert counting.stop().values[CALL] == 3 * 1000 + 3 * 500 + 77
    worker.leave()


def test_children():
    """Children are counted with the process that has started them, and nobody else."""
    need_tracepoint()
    worker, other = Worker(), Worker()
    counting = Counting("-e", CALL, "-p", worker.pid)
    worker.do("children", 700)
    other.do("calls", 5000)
    worker.do("calls", 11)
    assert counting.stop().values[CALL] == 3 * 700 + 11
    worker.leave()
    other.leave()


def test_command_with_children():
    """A command that is a shell: all that it starts is counted, at the same time or one after the other."""
    need_tracepoint()
    single = "\"$0\" -W ignore -c \"$1\" calls %d >&2"
    script = " & ".join(single % number for number in (1000, 200)) + "; " + single % 30 + "; wait"
    before = count("-e", CALL, "--", "sh", "-c", ":").values[CALL]
    table = count("-e", CALL, "--", "sh", "-c", script, sys.executable, WORKER)
    assert table.values[CALL] == before + 1230, (table.values, before)


def test_target_ends():
    """-p of a process that ends: so does the counting, with what it has counted."""
    need_tracepoint()
    worker = Worker()
    counting = Counting("-e", CALL, "-p", worker.pid)
    worker.do("calls", 123)
    worker.leave()
    with contextlib.suppress(subprocess.TimeoutExpired):
        counting.child.wait(5 * SLOW)
    assert counting.child.returncode == 0, "the process is gone, and it goes on"
    counting.wait()
    assert Table(counting.stderr).values[CALL] == 123, counting.stderr


@cases("0", "1")
def test_process_on_one_cpu(cpu):
    """--cpu together with -p: only what the process does there; or said that this cannot be had."""
    need_tracepoint()
    if not {0, 1} <= os.sched_getaffinity(0):
        raise Skip("needs CPUs 0 and 1")
    worker = Worker()
    worker.do("pin", 1)
    try:
        counting = Counting("-e", CALL, "-p", worker.pid, "--cpu", cpu)
    except AssertionError:
        expect(counters("-e", CALL, "-p", worker.pid, "--cpu", cpu, "-d", "10ms"), 2, "cpu")
        return
    worker.do("calls", 1000)
    value = counting.stop().values[CALL]  # None: it was never there, so that nothing was counted
    assert value == 1000 if cpu == "1" else not value, value
    worker.leave()


# ---- of everybody ----

@alone(MACHINE)
def test_system_wide():
    """Everybody's calls, of which the worker makes nearly all; on the CPU where it makes them, and not on the other."""
    need_tracepoint()
    if not {0, 1} <= os.sched_getaffinity(0):
        raise Skip("needs CPUs 0 and 1")
    worker = Worker()
    worker.do("pin", 1)
    every, first, second = Counting("-e", CALL), Counting("-e", CALL, "--cpu", 0), Counting("-e", CALL, "--cpu", 1)
    worker.do("calls", 10 * MANY)
    every, first, second = [counting.stop().values[CALL] for counting in (every, first, second)]
    worker.leave()
    assert 10 * MANY <= every and close(every, 10 * MANY), every
    assert 10 * MANY <= second and close(second, 10 * MANY), second
    assert first < 0.01 * 10 * MANY, first


@alone(MACHINE)
def test_system_wide_against_perf():
    """perf stat -a on the same CPUs over the same time, in which the worker does nearly all that there is."""
    need_tracepoint()
    names = [CALL, "cpu-clock"]
    if os.path.isdir("/sys/bus/event_source/devices/msr"):
        names.append("msr/tsc/")
    worker = Worker()
    perf = Perf("-a", "-e", ",".join(names))
    counting = Counting("-e", ",".join(names))
    begun = time.monotonic()
    worker.do("calls", 10 * MANY)
    time.sleep(max(0, 1 - (time.monotonic() - begun)))
    table = counting.stop()
    perfs = perf.stop()
    worker.leave()
    assert close(table.values[CALL], perfs[CALL][0]) and close(perfs[CALL][0], 10 * MANY), (table.values, perfs)
    # Both count these for as long as they run themselves: a second each has no better than the same rate.
    for name in names[1:]:
        rate = table.values[name] / (table.seconds * 1e9 * os.cpu_count())
        assert close(rate, perfs[name][0] / perfs[name][1] if name != "cpu-clock" else 1), (name, table.values, perfs)


@alone(MACHINE)
def test_same_second():
    """One second of perf stat -a and one of counters have the same ticks of the time stamp counter."""
    need_pmu("msr")
    if not shutil.which("perf"):
        raise Skip("perf is not installed")
    output = os.path.join(scratch(), "perf")
    perf = Process(["perf", "stat", "-x,", "-a", "-o", output, "-e", "msr/tsc/", "--", "sleep", "1"])
    table = count("-e", "msr/tsc/", "-d", "1s")
    assert perf.wait() == 0, perf.stderr
    with open(output, encoding="utf-8") as file:
        (ticks, nanoseconds), = perf_values(file.read()).values()
    assert 1 <= table.seconds < 1 + 0.2 * SLOW, table.seconds
    wanted = ticks / (nanoseconds / os.cpu_count()) * table.seconds * 1e9
    assert close(table.values["msr/tsc/"], wanted), (table.values, ticks, nanoseconds)
    assert close(float(table.rates["msr/tsc/"]) * table.seconds, table.values["msr/tsc/"]), table.rates


@alone(TIME)
def test_terms():
    """The same event by its name, by its term and by the configuration word: the same numbers."""
    need_pmu("msr")
    with open("/sys/bus/event_source/devices/msr/events/tsc", encoding="ascii") as file:
        number = int(file.read().strip().partition("=")[2], 0)
    names = ["msr/tsc/", "msr/event=%#x/" % number, "msr/config=%d/" % number, "msr/tsc,event=%d/" % number]
    table = count(*[word for name in names for word in ("-e", name)], *worker_command("burn", 100))
    assert list(table.values) == names, table.values
    first, *others = table.values.values()
    assert first > 1e6 and all(close(other, first, 0.001) for other in others), table.values
    comma, = [one for one in Rows(counters("-e", names[3], "-d", "10ms", "-o", "-").stdout).header if "," in one]
    assert comma == names[3], comma


# ---- outputs ----

@alone(TIME)
def test_rows_sum_up():
    """--every: the rows of the CSV have, together, what the table has; their times rise by the interval."""
    need_tracepoint()
    worker = Worker()
    names = ("page-faults", CALL, "task-clock")
    begun = time.time()
    counting = Counting("-e", ",".join(names), "-p", worker.pid, every="50ms")
    for _ in range(8):
        worker.do("faults", 1000)
        worker.do("calls", 500)
        worker.do("burn", 30)
    table = counting.stop()
    worker.leave()
    rows = counting.rows
    assert rows.header == ["time(S)", "page-faults", CALL, "task-clock (ns)", "counted share"], rows.header
    for name, header in zip(names, rows.header[1:]):
        column = rows.column(header)
        assert sum(column) == table.values[name], (name, column, table.values)
        assert min(column) >= 0 and max(column) < table.values[name], (name, column)
    assert table.values[CALL] == 8 * 500
    assert set(rows.column("counted share")) == {1.0}, rows.rows
    assert begun < rows.times[0] and rows.times[-1] < time.time() + 0.001, (begun, rows.times)
    # A late row makes no other one late, and none is made up for.
    steps = [later - earlier for earlier, later in zip(rows.times, rows.times[1:-1])]
    assert len(steps) > 3 and 0.03 < sum(steps) / len(steps) < 0.15 * SLOW, rows.times


def test_lines_sum_up():
    """The same without a file: lines on standard output, the end of the last interval among them; then the total."""
    need_tracepoint()
    half = round(150 * SLOW)
    result = counters("-e", CALL, "--every", "%dms" % (2 * half), *worker_command(
        "calls", 3000, "burn", 3 * half, "calls", 4000, "burn", half, "calls", 5, "end", 0))
    assert result.status == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines() if line.endswith(" " + CALL)]
    total = Table(result.stdout).values[CALL]
    assert len(lines) > 1 and total == 7005, (total, result.stdout)
    assert sum(float(line[1]) for line in lines) == total, result.stdout
    times = [float(line[0]) for line in lines]
    assert times == sorted(times), times


def test_trace():
    """A Chrome trace: a track for each counter, on the clock of recordings; rates times their time are the total."""
    need_tracepoint()
    path = os.path.join(scratch(), "trace.json")
    begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC) / 1e3
    result = counters("-e", CALL, "-e", "task-clock,page-faults", "--every", "50ms", "-o", path,
                      *worker_command("calls", 5000, "burn", 150, "calls", 300, "faults", 700, "burn", 80))
    ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC) / 1e3
    assert result.status == 0, result.stderr
    table = Table(result.stdout)
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    reported = trace["metadata"]["counters"]
    assert [(one["name"], one["unit"], one["shown"]) for one in reported] == [
        (CALL, "", "per second"), ("task-clock", "ns", "per second"), ("page-faults", "", "per second")], reported
    for one in reported:
        points = [event for event in trace["traceEvents"] if event["ph"] == "C" and event["name"] == one["name"]]
        times = [point["ts"] for point in points]
        assert len(points) > 3 and times == sorted(set(times)), times
        assert begun <= times[0] and times[-1] <= ended, (begun, times, ended)
        values = [list(point["args"].items()) for point in points]
        assert all(len(value) == 1 and value[0][0] == (one["unit"] or "count") + "/s" for value in values), values
        ends = times[1:] + [times[0] + table.seconds * 1e6]
        total = sum(value[0][1] * (end - time) / 1e6 for value, time, end in zip(values, times, ends))
        assert close(total, table.values[one["name"]], 0.001, 1), (one, total, table.values)
    assert table.values[CALL] == 5300


def test_output_once():
    """Without an interval a file has one row, which is the total."""
    path = os.path.join(scratch(), "counters.csv")
    result = counters("-e", "page-faults,page-faults", "-o", path, *worker_command("faults", 3000))
    assert result.status == 0, result.stderr
    with open(path, encoding="utf-8") as file:
        rows = Rows(file.read())
    row, = rows.rows
    assert row[1] == row[2] and float(row[1]) >= 3000, row
    assert result.stdout.count("%.0f" % float(row[1])) == 2, result.stdout


def test_quiet():
    """-q: nothing on standard output but what the command prints itself."""
    result = counters("-q", "-e", "page-faults", "--", "sh", "-c", "echo alone")
    assert result.status == 0 and result.stdout == "alone\n", result.stdout


@paired(TIME)
@cases("100ms", "0.5s", "1s")
def test_duration(text):
    """-d: the time that was asked for has been counted."""
    wanted = {"100ms": 0.1, "0.5s": 0.5, "1s": 1}[text]
    result = counters("-e", "cpu-clock", "-d", text)
    if result.status == 2 and "." in text:
        raise Skip("no fractions in times: " + result.stderr.strip())
    table = Table(result.stdout)
    assert wanted <= table.seconds <= wanted + 0.2 * SLOW, table.seconds
    # In an emulated machine the counters begin and end some milliseconds after one another.
    assert close(table.values["cpu-clock"], table.seconds * 1e9 * os.cpu_count(), 0.03 * SLOW), vars(table)
    assert table.units["cpu-clock"] == "ns"


@cases("INT", "TERM", "HUP")
def test_interrupted(name):
    """Ends in order on signals, with the total and a whole trace."""
    number = getattr(signal, "SIG" + name)
    counting = Counting("-e", "page-faults")
    table = counting.stop(number)
    assert table.values["page-faults"] == sum(counting.rows.column("page-faults"))
    path = os.path.join(scratch(), "trace.json")
    process = Process([XPUTRACE, "counters", "-e", "page-faults", "--every", "10ms", "-o", path])
    process.wait_line("stdout", "page-faults")
    process.signal(number)
    assert process.wait() == 0, process.stderr
    with open(path, encoding="utf-8") as file:
        assert json.load(file)["metadata"]["counters"][0]["name"] == "page-faults"


def test_interrupted_command():
    """Ctrl-C on a terminal reaches both: the command has ended, and the total is there."""
    # As a program does that knows nothing of signals, whatever they were to who has started the tests.
    sleeper = ("import signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL); print('here', flush=True); "
               "time.sleep(1000)")
    process = Process([need(XPUTRACE, "collector"), "counters", "-e", "page-faults", "--"] +
                      [sys.executable, "-c", sleeper], start_new_session=True)
    process.wait_line("stdout", "here")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait() == 0, process.stderr
    assert Table(process.stdout).values["page-faults"] > 0

    def left():
        listed = subprocess.run(["ps", "-e", "-o", "sid=,state=,comm="], capture_output=True, text=True, check=True).stdout
        return [line for line in listed.splitlines() if line.split()[:1] == [str(process.pid)] and line.split()[1] != "Z"]
    wait_until(lambda: not left(), "all processes of its session have ended", 5)


def test_terminal():
    """On a terminal the table is written over and over, and Ctrl-C ends it."""
    import pty
    import termios
    master, slave = pty.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[3] |= termios.NOFLSH  # Ctrl-C would drop what is on its way to the terminal
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    process = subprocess.Popen([need(XPUTRACE, "collector"), "counters", "-e", "page-faults,cpu-clock", "--every",
                                "50ms"], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                               preexec_fn=lambda: take_terminal(0))
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # a terminal that nobody has open any more
        while True:
            part = os.read(master, 65536)
            if not part:
                break
            if shown.count(b"COUNTER ") < 4 <= (shown + part).count(b"COUNTER "):
                os.write(master, b"\x03")
            shown += part
    os.close(master)
    assert process.wait() == 0, shown
    text = shown.decode()
    assert text.count("\x1b[4A\x1b[J") >= 3, repr(text)
    rest = text.replace("\x1b[4A\x1b[J", "")
    assert "\x1b" not in rest, repr(rest)
    assert rest.count("page-faults ") == rest.count("cpu-clock ") == rest.count("COUNTER "), repr(rest)
    assert "in all:" in rest


def take_terminal(descriptor):
    import fcntl
    import termios
    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)


# ---- commands that end badly ----

def test_command_does_not_start():
    """No such program: said so, once, and counting nothing is no success."""
    result = counters("-e", "page-faults", "--", "/no/such/program")
    expect(result, 1, "/no/such/program", "no such file")
    assert "COUNTER" not in result.stdout, result.stdout


def test_command_is_killed():
    """The counts until then; which signal it was stands on standard error."""
    result = counters("-e", "page-faults", *worker_command("faults", 2000), "burn", "1", "end", "9")
    assert result.status == 0 and "status 9" in result.stderr, (result.status, result.stderr)
    assert Table(result.stdout).values["page-faults"] > 2000
    result = counters("-e", "page-faults", "--", "sh", "-c", "kill -9 $$")
    assert result.status == 0 and "signal 9" in result.stderr, (result.status, result.stderr)
    assert Table(result.stdout).values["page-faults"] > 0


def test_command_stays():
    """-d is over before the command is: counted until then, and said that it goes on."""
    result = counters("-e", "task-clock", "-d", "200ms", "--", "sh", "-c", "echo $$ >&2; exec sleep 1000 >&- 2>&-")
    pid = int(result.stderr.split()[0])
    try:
        assert result.status == 0
        assert "still runs" in result.stderr or process_state(pid) == "", result.stderr
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_no_command_without_counters():
    """A counter that is unknown is known to be so before the command is executed."""
    marker = os.path.join(scratch(), "marker")
    expect(counters("-e", NEVER, "--", "touch", marker), 1, NEVER)
    assert not os.path.exists(marker)


# ---- bad input ----

@cases("pagefaults page-faults", "page-fault page-faults", "contxt-switches context-switches", "task_clock task-clock",
       "msr/tcs/ msr/tsc/", "mrs/tsc/ msr/tsc/")
def test_nearest_names(words):
    """A name that is nearly one: that one is offered first."""
    wrong, right = words.split()
    if right.startswith("msr"):
        need_pmu("msr")
    result = counters("-e", wrong, "-d", "10ms")
    expect(result, 1, wrong, "near", right)
    assert result.stderr.partition("near it: ")[2].startswith(right), result.stderr


@cases("zzzzzzzzzzzzzzz", NEVER, "no_such_system:no_such_event", "sched:no_such_event", "software:page-faults",
       "PAGE-FAULTS", " page-faults", "page-faults ", ":", "/", "//", "///", "a:", ":b", "-1")
def test_unknown(name):
    """What is no counter is said to be none, by its name."""
    result = counters("-e", name, "-d", "10ms")
    assert result.status in (1, 2), (result.status, result.stdout)
    expect(result, result.status, name)
    assert "COUNTER" not in result.stdout


@cases("msr/tsc", "msr/", "msr//", "msr/tsc/x", "msr/tsc//", "msr/tsc,/x/", "msr/tsc,tsc,event/0", "msr/event=/",
       "msr/event=0x/", "msr/event=-1/", "msr/event=+1/", "msr/event=1x/", "msr/event= 1/", "msr/event=0x77/",
       "msr/config=99999999999999999999/", "msr/config9=1/", "msr/=1/", "msr/=/", "msr/tsc,nothing=1/", "msr/tsc,smi/",
       "msr/tsc,event=\x01/", "msr/tsc=1/", "msr/config1=1,config2=2,config3=3,config4=4/")
def test_malformed(name):
    """Names of a PMU's events that are wrong: a message that has them, and nothing is counted."""
    need_pmu("msr")
    result = counters("-e", name, "-d", "10ms")
    assert result.status in (1, 2), (result.status, result.stdout)
    expect(result, result.status, "msr")
    assert "COUNTER" not in result.stdout and "strerror" not in result.stderr


@cases("-e", "-e=", "-e=,", "-e=,page-faults", "-e=page-faults,,cpu-clock", "--every=0", "--every=1us", "--every=x",
       "--every=-1s", "-d=0", "-d=never", "-d=-1s", "--cpu=x", "--cpu=-1", "--cpu=99999999999", "--gpu=x", "--gpu=-1",
       "-p=0", "-p=-1", "-p=x", "-p=99999999999", "-o=file.txt", "-o=/tmp", "-o=", "--no-such-option")
def test_bad_option(text):
    """What cannot be an option's value is a wrong usage."""
    words = text.split("=", 1)
    before = [] if words[0] == "-e" else ["-e", "page-faults", "-d", "10ms"]
    expect(counters(*before, *words), 2, words[0].lstrip("-"))


def test_nothing_to_count():
    """Zero events, and a process together with a command, are a wrong usage."""
    expect(counters(), 2, "-e")
    expect(counters("-d", "1s"), 2, "-e")
    expect(counters("-e", "page-faults", "-p", os.getpid(), "--", "true"), 2, "pid")
    result = counters("--help")
    assert result.status == 0 and "--no-multiplex" in result.stdout


def test_no_such_cpu():
    """A CPU that is not there."""
    for name in ("page-faults", "msr/tsc/" if os.path.isdir("/sys/bus/event_source/devices/msr") else "cpu-clock"):
        for cpu in (99, 4000, 65535):
            expect(counters("-e", name, "--cpu", cpu, "-d", "10ms"), 1, "CPU %d" % cpu)


def test_no_such_device():
    """A device that is not there."""
    number = len(os.listdir("/dev/dri")) + len(os.listdir("/dev/accel")) if os.path.isdir("/dev/accel") else \
        len(os.listdir("/dev/dri")) if os.path.isdir("/dev/dri") else 0
    expect(counters("-e", "page-faults", "--gpu", number, "-d", "10ms"), 1, "device %d" % number)


def test_no_such_process():
    """A process that is gone, one that was not reaped, and one that never was."""
    child = subprocess.Popen(["true"])
    wait_until(lambda: process_state(child.pid) == "Z", "it has ended")
    expect(counters("-e", "page-faults", "-p", child.pid, "-d", "10ms"), 1, "process", str(child.pid))
    child.wait()
    expect(counters("-e", "page-faults", "-p", child.pid, "-d", "10ms"), 1, "process", str(child.pid))
    expect(counters("-e", "page-faults,cpu-clock", "-p", 0x7fffffff, "-d", "10ms"), 1, "process", "2147483647")


def test_not_root():
    """Without permission: said so, with what is needed, for any kind of counter; no file is left behind."""
    need_root()
    folder = scratch()
    os.chmod(folder, 0o777)
    path = os.path.join(folder, "counters.csv")
    nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
        if int(file.read()) < 1:
            raise Skip("everybody may count here")
    expect(counters("-e", "page-faults", "-d", "10ms", "-o", path, **nobody), 1, "page-faults", "root")
    expect(counters("-e", "page-faults", "-p", os.getpid(), "-d", "10ms", "-o", path, **nobody), 1, "root")
    expect(counters("-e", CALL, "-d", "10ms", "-o", path, **nobody), 1, CALL, "root")
    if os.path.isdir("/sys/bus/event_source/devices/msr"):
        expect(counters("-e", "msr/tsc/", "-d", "10ms", "-o", path, **nobody), 1, "msr/tsc/", "root")
    assert not os.path.exists(path)


@cases("missing folder", "folder", "/proc")
def test_unwritable_output(how):
    """An output that cannot be written: the command is not started for nothing."""
    folder = scratch()
    marker = os.path.join(folder, "marker")
    os.mkdir(os.path.join(folder, "folder.csv"))
    path = {"missing folder": "/nonexistent/counters.csv", "folder": os.path.join(folder, "folder.csv"),
            "/proc": "/proc/counters.json"}[how]
    expect(counters("-e", "page-faults", "-o", path, "--", "touch", marker), 1, path)
    assert not os.path.exists(marker)


def test_earlier_file_survives():
    """Counters that cannot be opened leave the file of an earlier run alone."""
    path = os.path.join(scratch(), "counters.csv")
    with open(path, "w", encoding="ascii") as file:
        file.write("precious")
    expect(counters("-e", NEVER, "-o", path, "-d", "10ms"), 1, NEVER)
    expect(counters("-e", "page-faults", "--cpu", 4000, "-o", path, "-d", "10ms"), 1, "4000")
    with open(path, encoding="ascii") as file:
        assert file.read() == "precious"


@cases("counters.csv", "trace.json")
def test_full_disk(name):
    """The disk is full: it ends and says so, with the right reason; the total is there, and the file can be read."""
    with small_file_system("16k") as folder:
        path = os.path.join(folder, name)
        process = Process([need(XPUTRACE, "collector"), "counters", "-e", "page-faults,cpu-clock", "--every", "1ms",
                           "-d", "%ds" % (5 * SLOW), "-o", path])
        begun = time.monotonic()
        status = process.wait()
        assert status == 1, "status %d:\n%s" % (status, process.stderr)
        assert path in process.stderr and "no space left" in process.stderr.lower(), process.stderr
        assert time.monotonic() - begun < 4 * SLOW, "it has gone on for all of its time"
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if name.endswith(".json"):
            assert json.loads(text)["traceEvents"]
        else:
            assert len(Rows(text[:text.rindex("\n") + 1]).rows) > 10


def test_full_standard_output():
    """Standard output that takes nothing: that is no success."""
    for arguments in (["-o", "-"], []):
        with open("/dev/full", "wb") as full:
            process = subprocess.run([need(XPUTRACE, "collector"), "counters", "-e", "page-faults", "-d", "50ms"] +
                                     arguments, stdout=full, stderr=subprocess.PIPE, check=False)
        assert process.returncode == 1 and process.stderr, (arguments, process)


@cases("-o", "lines")
def test_reader_of_pipe_goes(how):
    """The program that reads the rows ends: so does the counting."""
    process = subprocess.Popen([need(XPUTRACE, "collector"), "counters", "-e", "page-faults", "--every", "10ms"] +
                               (["-o", "-"] if how == "-o" else []), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout.read(40)
    process.stdout.close()
    try:
        assert process.wait(5 * SLOW) in (0, 1, -signal.SIGPIPE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise AssertionError("nobody reads the rows any more, and it goes on") from None


HOSTILE = "\x1b[31mred\x07\r\n\x7f\x9b1m\u202e"


@cases(HOSTILE, "msr/%s/" % HOSTILE, "msr/tsc,event=%s/" % HOSTILE, "%s/tsc/" % HOSTILE, "sched:%s" % HOSTILE,
       "%s:switch" % HOSTILE, "%s,," % HOSTILE, "-o", "--", "-d", "--cpu")
def test_hostile_names(name):
    """Control characters in what is asked for do not reach the terminal."""
    rest = {"-o": ("-e", "page-faults", "-o", "/nonexistent/%s.csv" % HOSTILE, "-d", "10ms"),
            "--": ("-e", "page-faults", "--", "/nonexistent/%s" % HOSTILE),
            "-d": ("-e", "page-faults", "-d", HOSTILE), "--cpu": ("-e", "page-faults", "--cpu", HOSTILE)}
    result = counters(*rest.get(name, ("-e", name, "-d", "10ms")))
    assert result.stderr.strip()
    for character in HOSTILE:
        if not character.isalnum() and character not in "\n[":
            assert character not in result.stderr + result.stdout, "%r in %r" % (character, result.stderr)
    assert result.status in (1, 2), result.status


def test_hostile_file_name():
    """A name of a file with control characters that can be written: neither is it shown as it is at the end."""
    path = os.path.join(scratch(), "\x1b[31mred\x07.csv")
    result = counters("-e", "page-faults", "-d", "10ms", "-o", path)
    assert result.status == 0 and os.path.exists(path)
    assert "\x1b" not in result.stdout + result.stderr


@cases("2", "100", "500")
def test_many(number):
    """500 counters at once: all of them count the same, and are read."""
    need_tracepoint()
    names = ["minor-faults", CALL] * (int(number) // 2)
    path = os.path.join(scratch(), "counters.csv")
    result = counters("-q", "-e", ",".join(names), "-o", path, *worker_command("calls", 1000))
    assert result.status == 0, result.stderr
    with open(path, encoding="utf-8") as file:
        rows = Rows(file.read())
    row, = rows.rows
    assert rows.header[1:-1] == names
    assert set(row[2:-1:2]) == {"1000"} and len(set(row[1:-1:2])) == 1 and int(row[1]) > 256, row


def test_command_prints_as_well():
    """-o - together with a command that prints: what it prints stands between the lines of the CSV, not within them."""
    names = ["page-faults", "minor-faults"] * 250
    result = counters("-e", ",".join(names), "-o", "-", "--", "sh", "-c", "echo between")
    assert result.status == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 3 and "between" in lines, [line[:100] for line in lines]
    lines.remove("between")
    rows = Rows("\n".join(lines))
    assert rows.header[1:-1] == names and float(rows.rows[0][1]) > 0, rows.rows


def test_few_descriptors():
    """More events than the process may have files: said so; nothing has crashed."""
    command = ["sh", "-c", "ulimit -n 100; exec \"$@\"", "sh", need(XPUTRACE, "collector"), "counters", "-e",
               ",".join(["page-faults", "cpu-clock"] * 250), "-d", "10ms"]
    expect(run(command), 1, "open files")


def test_low_soft_limit():
    """The soft limit of open files is raised as far as the hard one allows."""
    names = ["page-faults", "minor-faults"] * 100
    command = ["sh", "-c", "ulimit -Sn 50; exec \"$@\"", "sh", need(XPUTRACE, "collector"), "counters", "-q", "-e",
               ",".join(names), "-o", "-", "-d", "10ms"]
    result = run(command)
    assert result.status == 0, result.stderr
    assert Rows(result.stdout).header[1:-1] == names


@cases("busy", "jobs", "energy", "frequency", "memory_used", "memory_busy")
def test_alias_without_device(name):
    """An alias that no device here tells: which one, and why; nothing is executed."""
    if any(os.path.isdir(path) and os.listdir(path) for path in ("/sys/class/accel", "/dev/dri", "/dev/nvidia0")):
        raise Skip("this machine has devices that may tell it")
    marker = os.path.join(scratch(), "executed")
    expect(counters("-e", "page-faults," + name, "--", "touch", marker), 1, name + ": there is no device here")
    assert not os.path.exists(marker)
    listed = run([XPUTRACE, "list", "counters"])
    assert name not in [line.split()[0] for line in listed.stdout.splitlines()], listed.stdout


def test_alias_misspelt():
    """The nearest alias is offered."""
    expect(counters("-e", "memory_use", "-d", "10ms"), 1, "near it: memory_used")


@cases("x", "msr/x/", "msr/event=x/", "sched:x", "x:y", "x/y/")
def test_long_name(pattern):
    """A name of 10 kB is unknown as any other."""
    name = pattern.replace("x", "x" * 10240)
    result = counters("-e", name, "-d", "10ms")
    assert result.status in (1, 2) and result.stderr.strip(), (result.status, result.stderr)
    assert len(result.stderr) < 3 * len(name), len(result.stderr)


def test_two_sessions():
    """Two at the same time count the same."""
    need_tracepoint()
    worker = Worker()
    first, second = (Counting("-e", CALL + ",page-faults", "-p", worker.pid) for _ in "ab")
    worker.do("calls", 1234)
    assert first.stop().values[CALL] == second.stop().values[CALL] == 1234
    worker.leave()


def test_no_multiplex():
    """What the kernel counts itself needs no hardware: --no-multiplex changes nothing."""
    need_tracepoint()
    table = count("--no-multiplex", "-e", "page-faults,cpu-clock," + CALL, *worker_command("calls", 100))
    assert table.values[CALL] == 100 and not any(table.marks.values()), vars(table)
