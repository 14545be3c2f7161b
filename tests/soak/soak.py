#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Everything at once for a long time, as root: soak.py [--seconds N] [--every SECONDS] [-o FILE.csv]

Collectors: stream, agent, continuous (operators, regions, counters and a trigger), codeobj, counters. Targets come in rounds: some load and
unload programs all the time, some serve until the round ends, others live for milliseconds, fork, execute themselves,
load everything anew, crash. At every interval a sample of each collector: resident memory, descriptors, threads, links, losses. Behind each
round, when all targets have ended, what they have counted themselves is compared with what the collectors have counted,
exactly, and descriptors, threads, links and entries of maps must be what they were behind the first round.

Memory: a line through the samples behind the warm-up, by least squares. It fails where the growth per hour exceeds LIMIT by
more than its noise (two standard errors): a single sample says nothing. It is that of anonymous memory: pages of the program and its
libraries, most of what is resident, go and come with the memory that the machine has free. Fails with what has grown, and prints tables,
also as Markdown.
"""

import argparse
import collections
import contextlib
import csv
import glob
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import harness  # noqa: E402 - the path comes first
from codeobj_loads import Loads, make, neff  # noqa: E402
from collectors import Collector  # noqa: E402
from harm import cpu_seconds, links_and_maps, map_entries  # noqa: E402
from harness import RUNNING, XPUTRACE, Process, entries_of, need, plain_name, results_in, run, scratch, wait_until, workload_path  # noqa: E402
from operator_toy import description, toy  # noqa: E402
from region_programs import marks  # noqa: E402

NAME, CODE_NAME = "soak-%d" % os.getpid(), "code-%d" % os.getpid()  # of the targets; 15 bytes at most
ROUND = 60  # seconds
WARM_UP = 0.25  # of the time, but WARM_UP_SECONDS at most: 256 programs and processes that have ended, 10 s of what may still come
WARM_UP_SECONDS = 1800
LIMIT = 1.0  # MiB an hour: in a day less than what an idle collector takes
SETTLE = 30  # seconds in which a collector has let go of what has ended
LIBRARIES = 0.3  # seconds in which all libraries of a process get their probes, on a busy machine, too
SHORT_PAUSE = 0.2  # seconds between two processes that live shortly
CODE_SIZE = 20000
MESSAGES = 1000  # that are kept of each collector
CACHES = ("region_names",)  # LRU, all memory from the start: names of a process that has ended stay until others need the room
EXACT = ("--budget", "none", "--wait-limit", "60s")  # all that the targets do is to be counted


# ---- the targets ----

class Made:
    """What targets have said that they did: inferences by runtime, and regions."""

    def __init__(self):
        self.inferences, self.regions, self.processes = collections.Counter(), 0, 0
        self._lock = threading.Lock()

    def add(self, results, regions=0, **inferences):
        """What the processes have printed, or is known of one."""
        count = collections.Counter(inferences)
        for result in results:
            count[result["runtime"]] += sum(result.get("churn", {}).get("runs", ())) + sum(
                entry["count"] for entry in entries_of([result]) if plain_name(entry["function"]) in RUNNING)
            regions += sum(entry["count"] for entry in entries_of([result]) if entry["function"] == "vaccel_prof_region_stop")
        with self._lock:
            self.inferences += count
            self.regions += regions
            self.processes += len(results) or 1


def target(program, name=NAME):
    """The path of a program under the name that the collectors follow."""
    path = os.path.join(target.folder, program.replace("/", "-"), name)
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path))
        os.symlink(workload_path(program), path)
    return path


TOY_RUNS, MARKS = 20, 50
SHORT = [["nrt", "--calls", "20", "--programs", "3"], ["qaic", "--calls", "20", "--threads", "2"], ["hip", "--calls", "20"],
         ["cuda", "--calls", "20"], ["cudart", "--calls", "20"], ["vaccel", "--calls", "20"], ["llama", "--calls", "5"],
         ["nrt", "--calls", "5", "--fork", "2"], ["nrt", "--calls", "5", "--crash"], ["nrt", "--calls", "5", "--reload"],
         ["qaic", "--calls", "20", "--threads", "3"]]
STORM = ["mixed", "60", "10"]  # kind, children, at once; they make no inferences


class Target(Process):
    """
    A process that begins when all that count have attached to it: one that has just started runs up to 100 ms without probes, and if
    it has a second library, that one can have its own later.
    """

    def __init__(self, words, watched, status=0):
        super().__init__(words)
        self.watched, self.status = watched, status

    def go(self):
        pid = json.loads(self.wait_line("stdout", '"ready"'))["pid"]
        for one in self.watched:
            wait_until(lambda one=one: one.attached(pid, self.begun), "%s has attached to %d: %s" % (one.name, pid, self.arguments))
        time.sleep(LIBRARIES)
        self.send("\n")
        return self

    def results(self):
        status = self.wait()
        assert status == self.status, "%s has ended with %d: %s" % (self.arguments, status, self.stderr)
        return results_in(self.stdout)


def start_workload(words, watched):
    return Target([target("workload"), *words, "--wait-for-go"], watched, -signal.SIGSEGV if "--crash" in words else 0)


def run_short(words, made, watched):
    """One process that ends by itself."""
    made.add(start_workload(words, watched).go().results())


def run_toy(made, watched):
    Target([target("operators/main"), *toy("gtr", TOY_RUNS)[1:], "wait"], watched).go().results()
    made.add((), toy=TOY_RUNS)


def run_marks(made, names, watched):
    Target([target("marks"), names, "1", "1", "wait", *["+0", "+1", "-1", "-0"] * MARKS], watched).go().results()
    made.add((), regions=2 * MARKS)


class Shorts(threading.Thread):
    """Starts one short process after the other until it is told to stop."""

    def __init__(self, made, names, watched):
        super().__init__(daemon=True)
        self.made, self.stopping, self.error = made, threading.Event(), None
        self.jobs = [lambda words=words: run_short(words, made, watched) for words in SHORT]
        self.jobs += [lambda: run_toy(made, watched), lambda: run_marks(made, names, watched),
                      lambda: run([target("harm/storm"), *STORM])]

    def run(self):
        try:
            for job in itertools.cycle(self.jobs):
                if self.stopping.wait(SHORT_PAUSE):
                    return
                job()
        except (AssertionError, OSError) as error:
            self.error = error

    def stop(self):
        self.stopping.set()
        self.join(harness.TIMEOUT)
        assert not self.is_alive(), "a short target has not ended"
        if self.error:
            raise self.error


class Targets:
    """All of one round."""

    def __init__(self, made, names, watched, seconds):
        self.made, self.seconds = made, seconds
        self.shorts = Shorts(made, names, watched)
        self.churn = [start_workload(["nrt", "--churn", "40", "--for", str(seconds)], watched),
                      start_workload(["qaic", "--churn", "20", "--for", str(seconds)], watched)]
        self.served = [start_workload(["nrt", "--calls", "0", "--rate", "100", "--threads", "2"], watched),
                       start_workload(["pjrt", "--calls", "0", "--rate", "50"], watched)]
        for each in self.churn + self.served:
            each.go()
        self.shorts.start()

    def end(self):
        for process in self.churn:
            assert harness.wait_end(process.child, self.seconds + harness.TIMEOUT), "churn has not ended"
        for process in self.served:
            process.signal(signal.SIGTERM)
        for process in self.churn + self.served:
            self.made.add(process.results())
        self.shorts.stop()


class Codes:
    """Code objects that are loaded and unloaded."""

    def __init__(self, codeobj):
        self.objects = [make(neff, CODE_SIZE, seed) for seed in range(3)]
        self.loads = Loads("nrt", program=target("code_loads", CODE_NAME))
        self.made = 0
        wait_until(lambda: codeobj.attached(self.loads.inside_pid, self.loads.begun), "codeobj has attached")

    def load(self):
        made = self.loads.load("nrt_load", *self.objects, threads=3, times=2, unload="yes")
        assert len(made) == 6 and not any(load["status"] for load in made), made
        self.made += len(made)


# ---- the collectors ----

def descriptors_of(pid):
    """What each leads to."""
    for number in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(FileNotFoundError):
            yield os.readlink("/proc/%d/fd/%s" % (pid, number))


def sum_by_runtime(pairs):
    sums = collections.Counter()
    for runtime, count in pairs:
        sums[runtime] += count
    return +sums


class Watched:
    """A collector, its samples, and what it must come back to when nothing runs."""

    def __init__(self, name, process):
        self.name, self.process, self.pid = name, process, process.pid
        self.samples, self.base, self.base_files = [], None, None
        self.messages = collections.deque(maxlen=MESSAGES)
        self._attached, self._late, self._lock = {}, 0, threading.Lock()

    def _read_messages(self):
        for line, time_ns in self.process.take("stderr"):
            self.messages.append(line)
            self._attached.update((int(found), time_ns) for found, probes in re.findall(r"PID (\d+) \(.*\): (\d+) probes", line)
                                  if int(probes))
            self._late += bool(re.search(r"probes were placed \d+ ms after", line))

    def attached(self, pid, since):
        """Whether the process has probes since that time, ns: another one may have had its number before."""
        with self._lock:
            self._read_messages()
            return self._attached.get(pid, 0) >= since

    def late(self):
        """Processes with late probes, as on a busy machine, which count as losses. Targets wait for theirs: nothing is missing."""
        with self._lock:
            self._read_messages()
            return self._late

    def sample(self, since):
        assert self.process.child.poll() is None, "%s has ended: %s" % (self.name, self.process.stderr[-2000:])
        with open("/proc/%d/status" % self.pid, encoding="ascii", errors="replace") as file:
            status = dict(line.split(":\t", 1) for line in file if ":\t" in line)
        one = {"seconds": round(time.monotonic() - since, 1), "collector": self.name,
               "resident_kb": int(status["VmRSS"].split()[0]), "anonymous_kb": int(status["RssAnon"].split()[0]),
               "descriptors": len(os.listdir("/proc/%d/fd" % self.pid)), "threads": int(status["Threads"]),
               "links": len(links_and_maps(self.pid)["link_id"]), "cpu_seconds": cpu_seconds(self.pid), "lost": self.lost(), "late": self.late()}
        self.samples.append(one)
        if one["lost"] > one["late"]:
            time.sleep(1)  # the message may be under way
        assert one["lost"] <= self.late(), "%s has lost %d, and placed probes late in %d processes" % (self.name, one["lost"], self.late())
        return one

    def lost(self):
        return 0

    def figures(self):
        """Inferences that it has counted so far, those of them that it has recorded, and lost; None: it says so only at its end."""
        return None

    def expected(self, made):
        """What these inferences must be."""
        return made.inferences

    def details(self):
        """More to find a difference by."""
        return ""

    def quiet(self):
        """Waits until it holds no more than behind the first round."""
        seen, files = {}, collections.Counter()

        def held():
            found = links_and_maps(self.pid)
            seen.clear()
            files.clear()
            files.update(descriptors_of(self.pid))
            seen.update({"descriptors": files.total(), "links": len(found["link_id"]),
                         "threads": len(os.listdir("/proc/%d/task" % self.pid))})
            seen.update({"entries of " + name: count for name, count in map_entries(self.pid).items() if name not in CACHES})
            return self.base is None or all(count <= self.base.get(what, 0) for what, count in seen.items())
        deadline = time.monotonic() + SETTLE
        while not held():
            if time.monotonic() > deadline:
                raise AssertionError("%s has grown: %s; descriptors that are new: %s" % (self.name, ", ".join(
                    "%s from %d to %d" % (what, self.base.get(what, 0), count) for what, count in seen.items()
                    if count > self.base.get(what, 0)), dict(files - self.base_files)))
            time.sleep(1)
        if self.base is None:
            time.sleep(SETTLE / 3)  # what has ended is let go of a moment later
            held()
            self.base, self.base_files = dict(seen), files.copy()

    def stop(self):
        self.process.signal(signal.SIGINT)
        assert self.process.wait() == 0, "%s: %s" % (self.name, self.process.stderr[-2000:])


ALL = "all"  # runtimes


class Stream(Watched):
    def __init__(self, folder):
        self.summary, self.written = os.path.join(folder, "stream.json"), None
        super().__init__("stream", Process(
            [XPUTRACE, "stream", "--process", NAME, "-r", description(), "--summary", "-o", os.path.join(folder, "stream.csv"), "--append",
             "--rotate", "4M", "--keep", "1", "--summary-json", self.summary, *EXACT]))

    def figures(self):
        if self.process.child.poll() is None:
            return None
        with open(self.summary, encoding="utf-8") as file:
            self.written = json.load(file)
        # The row of all that have made room for others has no runtime.
        return [sum_by_runtime((ALL, one[what]) for one in self.written["programs"]) for what in ("inferences", "recorded", "lost")]

    def expected(self, made):
        return collections.Counter({ALL: made.inferences.total()})

    def details(self):
        programs = [(one["name"], one["runtime"], one["pid"], one["inferences"]) for one in self.written["programs"]]
        return "; lost: %s; programs: %s; messages: %s%s" % (
            self.written["lost"], programs[-20:], "".join(self.messages[-20:]), self.process.stderr[-2000:])


class Agent(Watched):
    """The counters of its page; of series that are removed the last value counts."""

    METRIC = re.compile(r"^xputrace_(inferences|inferences_recorded|inferences_lost)_(total|created)(\{.*\}) (\S+)", re.MULTILINE)

    def __init__(self, folder):
        self.path = os.path.join(folder, "metrics")
        self.gone, self.now, self.page = collections.Counter(), {}, ""
        super().__init__("agent", Process([XPUTRACE, "agent", "--process", NAME, "-r", description(), "--listen", "unix:" + self.path, "--interval", "1s",
                                           "--stale-after", "90s", *EXACT]))
        self.process.wait_line("stderr", "metrics are at")

    def scrape(self):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(harness.TIMEOUT)
            connection.connect(self.path)
            connection.sendall(b"GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-text\r\n\r\n")
            self.page = b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode()
        lines = {(kind, labels, what): float(value) for kind, what, labels, value in self.METRIC.findall(self.page)}
        # One that was removed and has come back since the last look may have as many: when it was created tells them apart.
        found = {(kind, labels, lines[kind, labels, "created"]): int(value) for (kind, labels, what), value in lines.items() if what == "total"}
        for key, value in self.now.items():
            if key not in found:
                self.gone[key] += value
        self.now = found

    def lost(self):
        self.scrape()
        return sum(float(line.split()[-1]) for line in self.page.splitlines() if line.startswith("xputrace_events_lost_total"))

    def figures(self):
        self.scrape()
        # "other" has those of all runtimes that --max-series leaves no room for.
        return [sum_by_runtime(("all", value) for each in (self.gone, self.now) for (kind, *_), value in each.items() if kind == what)
                for what in ("inferences", "inferences_recorded", "inferences_lost")]

    def expected(self, made):
        return {"all": sum(made.inferences.values())}

    def details(self):
        runtimes = sum_by_runtime(((re.findall(r'runtime="([^"]*)"', labels) or ["other"])[0], value) for each in (self.gone, self.now)
                                  for (kind, labels, _), value in each.items() if kind == "inferences")
        return ", by runtime %s" % dict(runtimes)


class Continuous(Watched):
    def __init__(self):
        self.collector = Collector("--process", NAME, "-r", description(), "-w", "8M", "--level", "detailed", "--counters", "page-faults",
                                   "--counters-every", "100ms", "--save-on", "latency > 5ms", "--cooldown", "15s", "--max-files", 0,
                                   "--wait-limit", "60s", wait=True)
        super().__init__("continuous", self.collector)
        self.saved = 0

    def lost(self):
        status = self.collector.status()
        return status["lost"] + status["failed_saves"]

    def figures(self):
        status = self.collector.status()
        counted = {"all": status["window_inferences"] + status["evicted_inferences"]}
        return counted, counted, {}

    def expected(self, made):
        return {"all": sum(made.inferences.values()) + made.regions}

    def check_files(self):
        """Each saved file is a complete recording."""
        for path in sorted(glob.glob(os.path.join(self.collector.output, "[!.]*.xpt"))):
            report = run([XPUTRACE, "report", "-q", path, "-o", "/dev/null", "--format", "csv"])
            assert report.status == 0, "%s: %s" % (path, report.stderr)
            os.unlink(path)
            self.saved += 1


def start(folder):
    need(XPUTRACE, "collector")
    words = [XPUTRACE, "codeobj", "--process", CODE_NAME, "-o", os.path.join(folder, "codeobj"), "--wait-limit", "60s"]
    counters = [XPUTRACE, "counters", "-q", "-e", "page-faults,context-switches", "--every", "1s", "-o", os.path.join(folder, "counters.csv")]
    watched = [Stream(folder), Agent(folder), Continuous(), Watched("codeobj", Process(words)), Watched("counters", Process(counters))]
    for one in (watched[0], watched[3]):
        one.process.wait_line("stderr", "waiting for one")
    return watched


# ---- what has grown ----

def line_of(points):
    """Slope by least squares, and its standard error."""
    count = len(points)
    mean_x, mean_y = (sum(point[i] for point in points) / count for i in (0, 1))
    square = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / square
    rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    return slope, (rest / max(count - 2, 1) / square) ** 0.5


def growth(samples, what, warm_up):
    """Per hour, with two standard errors; None: too few samples."""
    points = [(one["seconds"] / 3600, one[what]) for one in samples if one["seconds"] >= warm_up]
    if len(points) < 5:
        return None
    slope, error = line_of(points)
    return slope, 2 * error


COLUMNS = ("collector", "resident MiB at the begin, behind the warm-up, at the end", "anonymous MiB", "growth MiB/h", "descriptors", "threads", "links", "% of a core")


def rows(watched, warm_up):
    for one in watched:
        samples = one.samples
        warm = next((sample for sample in samples if sample["seconds"] >= warm_up), samples[-1])
        grown = growth(samples, "anonymous_kb", warm_up)
        cpu = (samples[-1]["cpu_seconds"] - samples[0]["cpu_seconds"]) / max(samples[-1]["seconds"] - samples[0]["seconds"], 1)
        yield (one.name, *(", ".join("%.1f" % (sample[what] / 1024) for sample in (samples[0], warm, samples[-1]))
                           for what in ("resident_kb", "anonymous_kb")),
               "%.2f ± %.2f" % tuple(value / 1024 for value in grown) if grown else "-",
               *("%d to %d" % (min(values), max(values)) for values in ([sample[what] for sample in samples]
                                                                        for what in ("descriptors", "threads", "links"))),
               "%.1f" % (100 * cpu))


def table(watched, warm_up):
    lines = [COLUMNS, ["---"] * len(COLUMNS), *rows(watched, warm_up)]
    return "\n".join("| %s |" % " | ".join(line) for line in lines)


def write_samples(path, watched):
    samples = sorted((sample for one in watched for sample in one.samples), key=lambda sample: sample["seconds"])
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, samples[0].keys())
        writer.writeheader()
        writer.writerows(samples)


# ---- all of it ----

def check_figures(one, made):
    """made = recorded + left out + lost, of each runtime, where nothing is left out and nothing may be lost."""
    seen = []

    def agreed():
        seen[:] = one.figures() or [None] * 3
        return seen[0] in (None, one.expected(made))
    with contextlib.suppress(AssertionError):
        wait_until(agreed, "the figures", SETTLE)
    assert agreed(), "%s: made %s and %d regions, counted %s%s" % (one.name, dict(made.inferences), made.regions, dict(seen[0]), one.details())
    assert seen[0] == seen[1] and not seen[2], "%s: counted %s, recorded %s, lost %s" % (one.name, *map(dict, seen))


def sample_until(end, watched, since, every, codes, tell):
    while time.monotonic() < end:
        time.sleep(max(0, min(every, end - time.monotonic())))
        codes.load()
        now = [one.sample(since) for one in watched]
        watched[2].check_files()
        tell("%5d s: %s" % (now[0]["seconds"], "; ".join("%s %.1f MiB, %d fd, %d links" % (
            one["collector"], one["resident_kb"] / 1024, one["descriptors"], one["links"]) for one in now)))


def soak(seconds, every, output, tell):
    folder = target.folder = scratch()
    watched, made, names = start(folder), Made(), os.path.join(folder, "names")
    with open(names, "wb") as file:
        file.write(b"outer\0inner\0")
    warm_up, round_seconds = min(seconds * WARM_UP, WARM_UP_SECONDS), max(5, min(ROUND, round(seconds / 4)))
    since = time.monotonic()
    try:
        while time.monotonic() < since + seconds:
            targets, codes = Targets(made, names, watched[:3], round_seconds), Codes(watched[3])
            sample_until(time.monotonic() + round_seconds, watched, since, every, codes, tell)
            targets.end()
            codes.loads.quit()
            wrong = []
            for one in watched:
                try:
                    check_figures(one, made)
                except AssertionError as error:
                    wrong.append(str(error))
            assert not wrong, "\n".join(wrong)
            for one in watched:
                one.quiet()
            tell("%5d s: %d processes have made %d inferences, all are counted" % (
                time.monotonic() - since, made.processes, sum(made.inferences.values())))
    except AssertionError:
        for one in watched:
            print("the last messages of %s:\n%s%s" % (one.name, "".join(one.messages), one.process.stderr))
        raise
    finally:
        if watched[0].samples:
            write_samples(output, watched)
            print(table(watched, warm_up), flush=True)
    for one in watched:
        one.stop()
    check_figures(watched[0], made)
    for one in watched:
        grown = growth(one.samples, "anonymous_kb", warm_up)
        assert not grown or (grown[0] - grown[1]) / 1024 <= LIMIT, "the memory of %s grows by %.2f MiB an hour, ± %.2f" % (
            one.name, grown[0] / 1024, grown[1] / 1024)
    print("%d processes, %d inferences, %d saved files" % (made.processes, sum(made.inferences.values()), watched[2].saved))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=7200)
    parser.add_argument("--every", type=float, default=10, metavar="SECONDS", help="between two samples")
    parser.add_argument("-o", "--output", default=os.path.join(harness.BUILD, "soak.csv"), metavar="FILE.csv")
    arguments = parser.parse_args()
    soak(arguments.seconds, arguments.every, arguments.output, lambda text: print(text, flush=True))


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit("soak: %s" % error)
    finally:
        harness.kill_all()
