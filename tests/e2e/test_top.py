# SPDX-License-Identifier: BSD-2-Clause
"""xputrace top: tables against what the workload says it did; keys, mouse and names in a terminal, which tmux is."""

import collections
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import time

from harness import (ROOT, SLOW, WAITING, XPUTRACE, Process, Skip, Trace, Workload, cases, library_path, need, run, run_entries, scratch,
                     standin, wait_until, workload_path)
from devices import jobs_of
from reports import made_by, write_names
from test_devices import EMULATED, command

FIRST, SECOND = "neuron-0.0", "neuron-0.1"  # programs of the stand-in
NAMES = r"^(neuron-0\.[01]) "
HOSTILE = [b"\x1b[31mred\x1b]0;owned\x07", "日本語-model".encode()]
RATE = 100  # inferences a second of each thread, and of each program: as many of them as threads


# ---- plain tables ----

def tables_of(text):
    """One a report: rows as dictionaries by the columns' titles. Only names of programs have spaces."""
    tables = []
    for block in text.strip().split("\n\n"):
        head, titles, *rows = block.splitlines()
        span = float(re.match(r"\d\d:\d\d:\d\d  ([\d.]+) s  \d+ processes  \d+ programs  \d+ calls  \d+ lost$", head).group(1))
        titles = titles.split()
        rows = [row.rsplit(None, len(titles) - 1) for row in rows]
        assert all(len(row) == len(titles) for row in rows), block
        tables.append((span, [dict(zip(titles, row)) for row in rows]))
    return tables


def seconds(cell):
    """The time of a cell such as 12.3us; None where none was observed."""
    number, unit = re.match(r"(-|[\d.]+)(ns|us|ms|s|)$", cell).groups()
    return None if number == "-" else float(number) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[unit]


def batch(workload, *options):
    """Tables of a workload that runs to its end, and its results."""
    top = Process([need(XPUTRACE, "collector"), "top", "--batch", "-p", str(workload.pid)] + WAITING + list(options))
    top.wait_line("stderr", "attached")
    workload.go()
    results = workload.results()
    assert not top.wait(), top.stderr
    return tables_of(top.stdout), results


@cases("nrt", "qaic", "llama")
def test_counts(runtime):
    """Totals are those of the workload, and so are errors; the rates of all tables add up to them, the shares to 100 %."""
    workload = standin(runtime, "--calls", 150, "--threads", 2, "--fail-every", 7, "--rate", 150)
    tables, results = batch(workload, "-d", "200ms")
    made, rates, shown, failed = (collections.Counter() for _ in range(4))
    for (_, name, _), count in made_by(results).items():
        made[name] += count
    totals = {}
    for span, rows in tables:
        for row in rows:
            name = row["PROGRAM"]
            assert int(row["PID"]) == workload.pid and row["PROCESS"] == "workload", row
            rates[name] += span * float(row["INF/S"])
            check_shares(row)
        for name in {row["PROGRAM"] for row in rows}:  # a program is on two tables after the last run at most
            totals[name] = [row for row in rows if row["PROGRAM"] == name]
    for name, rows in totals.items():
        shown[name] = sum(int(row["TOTAL"]) for row in rows)
        failed[name] = sum(int(row["ERR"]) for row in rows)
    assert shown == made, "made %s, shown %s" % (dict(made), dict(shown))
    for name, count in made.items():  # of the times two digits are printed, of the rates one
        assert abs(rates[name] - count) < 0.05 * count + len(tables), "%s: %d ran, rates say %.1f" % (name, count, rates[name])
    if runtime != "llama":  # of its statuses not all are errors
        assert failed == failures(results), "made %s, shown %s" % (failures(results), failed)
    else:
        assert any(row["TOK/S"] != "-" for _, rows in tables for row in rows), tables


def check_shares(row):
    if row["CPU%"] != "-":
        assert 98 <= sum(int(row[title]) for title in ("CPU%", "WAIT%", "BLK%")) <= 102, row


def failures(results):
    """Executions with a status that is an error, by program."""
    count = collections.Counter()
    for entry in run_entries(results):
        count[entry["program"]] += entry["count"] * bool(entry.get("status"))
    return count


def test_device_times():
    """Means of queue and device time, over all tables, against what the device says of its jobs."""
    workload = Workload(command("nrt", "--calls", 60, "--rate", 100, "--wait-for-go", duration_us=2000))
    tables, results = batch(workload, *EMULATED)
    weighted = [(span * float(row["INF/S"]), row) for span, rows in tables for row in rows if float(row["INF/S"])]
    jobs = jobs_of(results)
    for title, begin, end in (("QUEUE", "queued_ns", "started_ns"), ("DEVICE", "started_ns", "finished_ns")):
        said = sum(job[end] - job[begin] for job in jobs) / len(jobs) / 1e9
        shown = sum(weight * seconds(row[title]) for weight, row in weighted) / sum(weight for weight, _ in weighted)
        assert abs(shown - said) < 0.1 * said + 100e-6 * SLOW, "%s: %g s by the device, shown %g" % (title, said, shown)


CHAIN = "nrt_execute <- innermost <- third <- second <- first <- run <- main <- "
STACK = re.compile(r"^ *(\d+\.\d)%  (.*)$", re.MULTILINE)


def stacks_of(text, title):
    """[samples, {stack: share}] of each list with this title."""
    lists = []
    for block in re.split(r"^(?=stacks of |\w.*: \d+ \w+$)", text, flags=re.MULTILINE):
        head = re.match(re.escape(title) + r": (\d+) \w+$", block, re.MULTILINE)
        if head:
            lists.append((int(head.group(1)), {frames: float(share) for share, frames in STACK.findall(block)}))
    return lists


def batch_of(command, *options):
    """What top prints of a command that runs to its end."""
    result = run([need(XPUTRACE, "collector"), "top", "--batch", *options, "--", *map(str, command)])
    assert not result.status, result.stderr
    return result.stdout


def test_callers():
    """Each table has who has called the runtime: always the same functions, and all calls but the last ones are among the tables."""
    text = batch_of([workload_path("stacks"), 400, 4000], "-d", "200ms", "--stacks=1000")
    lists = stacks_of(text, "Callers, by time of inferences")
    assert all(len(stacks) == 1 and next(iter(stacks)).startswith(CHAIN) for _, stacks in lists), lists
    assert 0 < sum(count for count, _ in lists) <= 400, lists
    assert all(list(stacks.values()) == [100.0] for _, stacks in lists), lists


def test_callers_in_python():
    """Frames of Python have function, file and line."""
    script = os.path.join(ROOT, "tests", "workload", "python", "stacks.py")
    text = batch_of(["/usr/bin/python3", script, library_path("libnrt.so.1"), 3], "--stacks=1000")
    result = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
    made = {" <- ".join("%s (%s:%d)" % (name, os.path.basename(path), line) for name, path, line in stack)
            for stack in result["stacks"]}
    lists = stacks_of(text, "Callers, by time of inferences")
    found = {" <- ".join(frame for frame in frames.split(" <- ") if re.search(r"\.py:\d+\)$", frame)) for _, stacks in lists for frames in stacks}
    assert len(found) > 3 and not found - made - {""}, (found - made, made)


def test_where_it_runs():
    """Threads that burn CPU time do so in the functions that were written for it."""
    text = batch_of([workload_path("slow"), 1500], "--samples=500", "-r", os.path.join(ROOT, "tests", "e2e", "slow.json"))
    lists = stacks_of(text, "Where threads run in calls, by CPU time")
    assert len(lists) > 1 and all(sum(stacks.values()) < 100.5 for _, stacks in lists), lists
    steps = sum(count * share for count, stacks in lists for frames, share in stacks.items()
                if re.search("step_(first|second) <- slow_run", frames))
    assert steps > 60 * sum(count for count, _ in lists) > 0, lists


def test_number_of_tables():
    """-n N prints as many, of the interval that is asked for; the workload runs on."""
    workload = standin("nrt", "--calls", 0, "--rate", RATE)
    workload.go()
    result = run([XPUTRACE, "top", "--batch", "-n", "3", "-d", "200ms", "-p", str(workload.pid)] + WAITING)
    assert not result.status, result.stderr
    tables = tables_of(result.stdout)
    assert len(tables) == 3 and all(span <= 0.2 for span, _ in tables), result.stdout
    workload.stop()


def test_wrong_use():
    """Each refused with what is wrong, before anything is traced."""
    for options, text in ((["-a"], "not a terminal: use --batch"), (["--tables", "3", "-a"], "--tables requires --batch"),
                          (["--stacks=0", "-a"], "expected a number from 1 to 1000"), (["-d", "1ms"], "expected a time from 100ms to 1h"), (["--match", "("], "--match: "),
                          (["--batch", "--save-dir", "x"], "--save-dir is for a terminal")):
        result = run([XPUTRACE, "top"] + options)
        assert result.status == 2 and text in result.stderr and not result.stdout, (options, result.stderr)


# ---- a terminal ----

class Terminal:
    """A tmux server of its own with one window in which the collector runs."""

    def __init__(self, *arguments, columns=80, lines=24, environment=()):
        if not shutil.which("tmux"):
            raise Skip("tmux is not installed")
        self.socket = os.path.join(scratch(passing=True), "tmux")
        words = ["env", *environment, need(XPUTRACE, "collector"), *map(str, arguments)]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "top", "-x", str(columns), "-y", str(lines),
                  "%s; echo ended $?; read -r line" % " ".join(words))

    def tmux(self, *arguments):
        result = subprocess.run(["tmux", "-S", self.socket, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, check=False)
        assert not result.returncode, result.stderr
        return result.stdout

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", "-t", "top", *options)

    def keys(self, *names):
        self.tmux("send-keys", "-t", "top", *names)

    def text(self, text):
        self.tmux("send-keys", "-t", "top", "-l", text)

    def wait(self, pattern, absent=False):
        """The screen once the pattern is on it, or is not."""
        seen = [""]

        def shown():
            seen[0] = self.screen()
            return bool(re.search(pattern, seen[0], re.MULTILINE)) != absent

        try:
            wait_until(shown, "%s: %s" % ("absent" if absent else "shown", pattern), 10 * SLOW)
        except AssertionError as error:
            raise AssertionError("%s\n%s" % (error, seen[0])) from None
        return seen[0]

    def quit(self):
        self.keys("q")
        self.wait(r"^ended 0")


@contextlib.contextmanager
def terminal(*arguments, **options):
    made = Terminal(*arguments, **options)
    try:
        yield made
    finally:
        subprocess.run(["tmux", "-S", made.socket, "kill-server"], stderr=subprocess.DEVNULL, check=False)


def order(screen, pattern):
    """What rows of the table say in the order in which they stand."""
    return re.findall(pattern, screen, re.MULTILINE)


@contextlib.contextmanager
def running(*options):
    """A stand-in that loads and runs its programs when it is told to; until the end of the block."""
    workload = standin("nrt", "--rate", RATE, "--threads", 2, *(options or ("--calls", 0)))
    yield workload
    workload.stop()


@contextlib.contextmanager
def watched(*options, **terminal_options):
    """One that runs, and top of it."""
    with running() as workload, terminal("top", "-p", workload.pid, *options, *WAITING, **terminal_options) as shown:
        shown.wait("No program has run yet")
        workload.go()
        shown.wait(r"^neuron-0\.1 .* [1-9]\d*\.\d .*(us|ms) ")
        yield workload, shown


def test_screen():
    """Rows with the rates that were asked for; sorting, filter, an opened program, pause, resize, help, quit."""
    with watched() as (workload, shown):
        screen = shown.screen()
        assert screen.splitlines()[0].startswith("xputrace top ") and "1 processes" in screen, screen
        shown.wait(r"^neuron-0.0 +%d workload +(9\d|1[01]\d)\.\d " % workload.pid)
        check_order(shown)
        check_opened(shown, workload)
        check_filter(shown)
        shown.keys("Space")
        paused = shown.wait("PAUSED")
        time.sleep(1.2)
        assert shown.screen().splitlines()[1:] == paused.splitlines()[1:], "it goes on while it is paused"
        shown.keys("Space")
        shown.wait("PAUSED", absent=True)
        shown.tmux("resize-window", "-t", "top", "-x", "130", "-y", "12")
        shown.wait(r"TOTAL$")
        shown.tmux("resize-window", "-t", "top", "-x", "60", "-y", "8")
        shown.wait(r"^PROGRAM +PID +INF/S +P50 +P99 CPU% WAIT% BLK%$")
        shown.quit()


def check_order(shown):
    shown.keys("n")
    wait_until(lambda: order(shown.screen(), NAMES) == [FIRST, SECOND], "sorted by name")
    shown.keys("R")
    wait_until(lambda: order(shown.screen(), NAMES) == [SECOND, FIRST], "the other way round")
    shown.keys("R")
    shown.keys(">", "<")
    wait_until(lambda: order(shown.screen(), NAMES) == [FIRST, SECOND], "by name again")
    shown.keys("?")
    shown.wait("Sorted by:")
    shown.keys("?")
    shown.wait(r"^neuron-0.0 ")


def check_opened(shown, workload):
    shown.keys("Home", "Down", "Enter")
    screen = shown.wait(r"^total +\d+ ")
    assert "neuron-0.1" in screen and "workload %d  nrt  0x" % workload.pid in screen, screen
    screen = shown.wait(r"^Slowest inference since it was opened: number \d+, ")
    slowest, = re.findall(r"number \d+, [\d.]+ s ago, ([\d.]+) us", screen)
    assert re.search(r"^total .* %s$" % re.escape(slowest), screen, re.MULTILINE), "the slowest is not the highest: " + screen
    shown.keys("Escape")
    shown.wait(r"^PROGRAM ")


def check_filter(shown):
    shown.keys("/")
    shown.text("(")
    shown.keys("Enter")
    shown.wait(r"\( at \d+: ")
    shown.keys("/")
    shown.keys("BSpace")
    shown.text("^neuron.*0$")
    shown.keys("Enter")
    shown.wait(r"^neuron-0.1 ", absent=True)
    screen = shown.wait(r"^neuron-0.0 ")
    assert not re.search("^neuron-0.1", screen, re.MULTILINE) and screen.splitlines()[0].endswith("/^neuron.*0$"), screen
    shown.keys("/", *["BSpace"] * len("^neuron.*0$"), "Enter")
    shown.wait(r"^neuron-0.1 ")


def test_hostile_names():
    """Escape sequences are shown as text and set no title; behind wide characters the columns stand where they do elsewhere."""
    with running("--churn", 8, "--for", 6, "--names", write_names(HOSTILE)) as workload, \
            terminal("top", "-p", workload.pid, *WAITING) as shown:
        shown.wait("No program has run yet")
        title = shown.tmux("display-message", "-p", "-t", "top", "#{pane_title}")
        workload.go()
        screen = shown.wait(r"^\\x1b\[31m[^ ]*… +%d(.*\n)*日本語-model(  |.* #)|^日本語-model(.*\n)*\\x1b\[31m" % workload.pid)
        ends = {len(line.partition(" workload ")[0]) + sum(c in "日本語" for c in line) for line in screen.splitlines()
                if " workload " in line}
        assert len(ends) == 1, screen
        shown.keys("Space", "Home", "Enter")
        shown.wait("since it was opened")
        assert shown.tmux("display-message", "-p", "-t", "top", "#{pane_title}") == title
        assert "31m" not in shown.screen("-e").replace("x1b[31m", "")
        shown.quit()


@cases("colour", "NO_COLOR", "vt100", "unknown")
def test_terminals(kind):
    """Colours where there are some and they are wanted; without them the table is the same; one that cannot be drawn on is refused."""
    if kind == "unknown":
        with terminal("top", "-p", os.getpid(), environment=["TERM=nothing-known"]) as shown:
            shown.wait("ended 1")
        return
    with watched(environment={"colour": [], "NO_COLOR": ["NO_COLOR=1"], "vt100": ["TERM=vt100"]}[kind]) as (_, shown):
        colours = re.search(r"\x1b\[(\d*;)*3[0-7][;m]", shown.screen("-e"))
        assert bool(colours) == (kind == "colour"), shown.screen("-e")
        shown.quit()


def test_mouse_and_save():
    """A click on a title sorts, one on a row selects it; s saves a recording of the last seconds that has the program's calls; e explains."""
    folder = scratch()
    with watched("--save-dir", folder) as (_, shown):
        click(shown, 2, 1)
        wait_until(lambda: order(shown.screen(), NAMES) == [FIRST, SECOND], "sorted by name")
        click(shown, 2, 3)
        shown.keys("Enter")
        shown.wait(r"^neuron-0.1$")
        shown.keys("e")
        screen = shown.wait(r"A typical inference \(\d+ between")
        assert re.search(r"^neuron-0.1: \d+ inferences$", screen, re.M) and "on a CPU" in screen, screen
        shown.keys("End", "Home", "Escape")
        shown.wait(r"^\d+ inferences, \d+ failed")
        shown.keys("Escape", "s")
        shown.wait("^saved the last ")
        shown.quit()
    path = sorted(glob.glob(os.path.join(folder, "*.xpt")), key=os.path.getmtime)[-1]
    trace = os.path.join(folder, "trace.json")
    assert not run([XPUTRACE, "report", path, "-o", trace]).status
    assert {call.program for call in Trace(trace).runs()} == {FIRST, SECOND}


def click(shown, column, line):
    """As a terminal reports button 1 pressed and released in the older way, which the name of the terminal stands for."""
    for button in (0, 3):
        shown.tmux("send-keys", "-t", "top", "-H", *["%x" % byte for byte in (27, ord("["), ord("M"), 32 + button, 33 + column, 33 + line)])


def test_stacks_on_the_screen():
    """An opened program shows who calls the runtime, folded between frames; S shows that alone; what is saved has the stacks, too."""
    folder = scratch()
    workload = Process([workload_path("stacks"), "1000000", "3000"])
    with terminal("top", "-p", workload.pid, "--stacks=500", "--save-dir", folder) as shown:
        shown.wait(r"^nrt model 1 .* [1-9]\d*\.\d ")
        shown.keys("Enter")
        shown.wait(r"^total +\d+ ")
        shown.keys("S")
        shown.wait(r"^total", absent=True)
        screen = shown.wait(r"^100\.0%  nrt_execute <- innermost")
        lines = screen[screen.index("100.0%"):].splitlines()
        folded = " ".join(line.strip() for line in lines[:lines.index("")])
        assert folded.startswith("100.0%  " + CHAIN) and all(line.startswith("        <- ") for line in lines[1:lines.index("")]), screen
        shown.keys("S")
        shown.wait(r"^total +\d+ ")
        shown.keys("s")
        shown.wait("^saved the last ")
        shown.quit()
    workload.kill()
    path, = glob.glob(os.path.join(folder, "*.xpt"))
    graph = run([XPUTRACE, "report", path, "-q", "--flame", "inference"])
    assert not graph.status and ";".join(reversed(CHAIN.split(" <- ")[:-1])) in graph.stdout, (graph.stdout, graph.stderr)


def test_ended_and_signal():
    """A command: what has run stays on the screen when it has ended, without what it printed; SIGTERM gives the terminal back."""
    with terminal("top", "--", workload_path("workload"), "nrt", "--calls", 40) as shown:
        screen = shown.wait("ENDED")
        assert '"runtime"' not in screen and "xputrace top " in screen, screen
        pane = int(shown.tmux("display-message", "-p", "-t", "top", "#{pane_pid}"))
        with open("/proc/%d/task/%d/children" % (pane, pane), encoding="ascii") as file:
            child, = file.read().split()
        os.kill(int(child), 15)
        shown.wait("^ended 0$")


def test_choose():
    """Without arguments, on a terminal: the processes that use a runtime, and top of the one that is chosen."""
    with running() as workload, terminal() as shown:
        workload.go()
        screen = shown.wait(r"^which one\?")
        row = re.search(r"^ *(\d+) +%d root +workload .* (\d+) +nrt$" % workload.pid, screen, re.MULTILINE)
        assert row and int(row.group(2)) > RATE, screen
        shown.text(row.group(1))
        shown.keys("Enter")
        shown.wait(r"^nrt model 1 +%d " % workload.pid)
        shown.quit()
    result = run([XPUTRACE])
    assert result.status == 2 and "usage: xputrace COMMAND" in result.stderr, result.stderr
