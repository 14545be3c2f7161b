# SPDX-License-Identifier: BSD-2-Clause
"""Kinds of random cases of test_truth.py beside calls: operators, regions, several tools on one process, jobs of a device.

Each is made of its number alone. check() makes a recording and compares every figure of the outputs with what the program did. It
returns whether probes came late, which is counted, and is no fault: then it is made again."""

import collections
import json
import os
import random
import sqlite3

from devices import check, check_counted, check_times, covered, jobs_in, nanoseconds, pair, runs_around
from harness import (SLOW, WAITING, XPUTRACE, Process, Recorder, Trace, Workload, need, results_in, run, run_entries, standin,
                     workload_path)
from operator_checks import check_covered, check_objects, check_places, check_sums, spans
from operator_toy import description, toy
from region_programs import Made, counted, marks
from region_programs import spans as region_spans
from reports import Stream, check_totals, made_by, read_summary
from strict_csv import strict_rows
from test_agent import by_program, check_histograms, parse
from test_devices import EMULATED, NOBODY, command as device_command, table
from test_ops_device import check_metadata, launches_in, owners, sums_by_operator

DEPTH_MAX = 16  # calls of a thread that are open at once


class Reports:
    """What report makes of a recording: a trace, a summary for machines and one for people, a database, a table of inferences."""

    def __init__(self, recording):
        folder = os.path.dirname(recording)
        trace, summary, database = (os.path.join(folder, name) for name in ("out.json", "summary.json", "out.db"))
        self.text = self.report("report", recording, "-o", trace, "--summary-json", summary)
        self.report("report", "-q", recording, "-o", database)
        self.trace = Trace(trace)
        with open(summary, encoding="utf-8") as file:
            self.summary = json.load(file)
        self.database = sqlite3.connect("file:%s?mode=ro" % database, uri=True)
        header, *rows = strict_rows(self.report("report", "-q", recording, "--format", "csv", "-o", "-")) or [[]]
        self.rows = [dict(zip(header, row)) for row in rows]

    @staticmethod
    def report(*words):
        done = run([need(XPUTRACE, "collector"), *words])
        assert done.status == 0, done.stderr
        return done.stdout

    def ask(self, statement, *values):
        return self.database.execute(statement, values).fetchall()

    @property
    def late(self):
        """Or memory of the process was being moved by the kernel when it was to be read."""
        return bool({"late_probes", "unreadable"} & set(self.trace.losses()))

    def check_losses(self, wanted):
        """The same in all outputs. A stack that could not be copied changes no other figure."""
        lost = self.trace.losses()
        assert self.summary.get("lost", {}) == lost == dict(self.ask("SELECT cause, count FROM losses")), (self.summary.get("lost"), lost)
        lost.pop("stack_copies", None)
        assert lost == wanted, "lost: %s, expected %s" % (lost, wanted)


def same(one, other, what):
    """Two Counters or dictionaries of numbers; what is 0 may be missing."""
    one, other = ({key: value for key, value in each.items() if value} for each in (one, other))
    assert one == other, "%s: only in one %s, only in the other %s" % (
        what, dict(list(one.items() - other.items())[:10]), dict(list(other.items() - one.items())[:10]))


def tracing_options(chance):
    """Options of record that change nothing of what is recorded."""
    options = chance.choice(([], [], ["--link", chance.choice(("session", "multi", "perf"))]))
    for word in ("--why", "--stacks", "--samples", "--buffer=32M"):
        options += [word] if chance.random() < 0.2 else []
    return options


# ---- operators ----

NUMBERED = {"rt::Gemm<float>": "Gemm", "rt::Relu": "Relu", "rt::Leaky": "Leaky", "rt::Second": "Second"}
LEAVES = "tj"  # throws, jumps


class Operators:
    """A program of chains of operators, each inside the one before, some of which are left by exceptions or longjmp()."""

    def __init__(self, number):
        chance = random.Random("operators %d" % number)
        left = chance.random() < 0.4  # what was left may still be open, as far as is known, when others are called deeper
        self.chains = [self.chain(chance, left) for _ in range(chance.choice((1, 2, 3, 6)))]
        self.runs, self.threads = chance.choice((1, 2, 7, 30)), chance.choice((1, 1, 2, 4))
        self.sample = chance.choice((1, 1, 1, 2, 3))
        self.late = chance.random() < 0.3
        few = self.runs < 10 and self.sample == 1 and all(len(chain) < 10 for chain, _ in self.chains)
        self.device = few and chance.random() < 0.4
        self.options = ["--ops", "-r", description(), *(EMULATED if self.device else ["--drivers=none"])] + tracing_options(chance)
        self.options += ["--sample", str(self.sample)] if self.sample > 1 else []

    @staticmethod
    def chain(chance, left):
        """Letters and launches, the outer one first, and whether it is called from deeper on the stack."""
        depth = chance.choice((1, 2, 3)) if left else chance.choice((1, 2, 3, 6, 14)) if chance.random() < 0.95 else 18
        chain = [chance.choice("gggtj" if left else "g") for _ in range(depth - 1)] + [chance.choice("grlstj" if left else "grls")]
        # Others have nothing inside.
        return [(letter, chance.choice((0, 0, 1, 2, 5)) if letter in "gtj" else 0) for letter in chain], chance.random() < 0.3

    def command(self):
        text = "".join(("_" if deep else "") + "(".join((str(launches) if launches else "") + letter for letter, launches in chain)
                       for chain, deep in self.chains)
        return toy(text, self.runs, self.threads) + (["wait"] if self.late else [])

    def made(self):
        """Of one run: launches of each operator that ends, in the order of the ends; launches in others; what lies too deep."""
        ended, others, lost = [], 0, 0
        for chain, _ in self.chains:
            left = max([place for place, (letter, _) in enumerate(chain) if letter in LEAVES], default=-1)
            for place, (_, launches) in reversed(list(enumerate(chain))):
                kept_launches = launches if place + 3 <= DEPTH_MAX else 0
                lost += launches - kept_launches + (place + 2 > DEPTH_MAX)
                if place > left:
                    ended.append(kept_launches if place + 2 <= DEPTH_MAX else None)
                else:
                    others += kept_launches
        return ended, others, lost

    def record(self, path):
        environment = dict(os.environ)
        if self.device:
            device_command("cuda")  # where the device's events are missing, so is the test
            environment.update(STANDIN_DEVICE="emulated:device=%d" % os.getpid(), STANDIN_DURATION_US="100")
        if not self.late:
            recorder = Recorder(*self.options, "--", *self.command(), wait=False, output=path, env=environment)
            assert recorder.wait() == 0, recorder.stderr
            return results_in(recorder.stdout)[0]
        workload = Workload(self.command(), env=environment)
        recorder = Recorder("-p", workload.pid, *self.options, output=path)
        workload.go()
        result, = workload.results()
        assert recorder.wait() == 0, recorder.stderr
        return result

    def __str__(self):
        return "%s, %s" % (" ".join(self.command()[1:]), " ".join(self.options) + (" late" if self.late else ""))

    def check(self, folder):
        path = os.path.join(folder, "out.xpt")
        result = self.record(path)
        reports = Reports(path)
        if reports.late:
            return True
        trace, pid = reports.trace, result["pid"]
        ended, others, lost = self.made()
        recorded = -(-self.runs // self.sample)  # of each thread's program
        reports.check_losses({"depth": lost * recorded * self.threads} if lost else {})
        trace.check()
        runs, operators = spans(trace, "execute", pid), spans(trace, pid=pid)
        check_places(runs, operators)
        check_objects(operators, [])
        check_sums(trace, operators, pid)
        check_covered(trace, runs, operators, pid)
        launches = self.check_done(result, runs, operators, ended, recorded)
        launches[None] = others * recorded * self.threads
        if self.sample > 1:  # each kernel is sampled by itself
            launches = launches_in(trace, operators)
        same(launches_in(trace, operators), launches, "launches by operator")
        self.check_outputs(reports, operators, launches)
        if self.device:
            self.check_jobs(reports, result, operators, launches)
        return False

    @staticmethod
    def check_jobs(reports, result, operators, launches):
        """Each job is the operator's that launched it; nobody's where that has no end. Sums are those of the jobs."""
        trace, made = reports.trace, owners(result, operators)
        jobs = jobs_in(trace)
        assert len(jobs) == len(made) == sum(launches.values()), (len(jobs), len(made), launches)
        for job in jobs:
            assert job.arguments.get("operator") == made[job.arguments["value"]], (job.arguments, made[job.arguments["value"]])
        check_metadata(trace, jobs, collections.Counter({name: count for name, count in launches.items() if name}))
        counts, times = sums_by_operator(jobs)
        same({name: (count, times[name]) for name, count in counts.items()}, {name: (count, total) for name, count, total in reports.ask(
            "SELECT label, sum(jobs), sum(device_time) FROM operator_names GROUP BY 1") if count}, "jobs of operators in the database")

    def check_done(self, result, runs, operators, ended, recorded):
        """Each recorded run of a thread has what the thread says it executed, in its order; launches by label."""
        launches = collections.Counter()
        for thread in result["threads"]:
            tid, each = thread["tid"], len(ended)
            assert len(thread["done"]) == each * self.runs, "the program has not done what it was asked to"
            made = [(NUMBERED[name], int(address, 16)) for name, address in thread["done"][:each]]
            mine = [run for run in runs if run.tid == tid]
            assert len(mine) == recorded, "%d runs of thread %d, %d are recorded" % (self.runs, tid, len(mine))
            wanted = [(one, count) for one, count in zip(made, ended) if count is not None]
            inside = collections.defaultdict(list)
            for span in sorted((span for span in operators if span.tid == tid), key=lambda span: span.end):
                assert span.run and not span.unassigned, "%s is in no run" % span
                inside[span.run].append(span)
            for one in mine:
                found = [(span.label.split("#")[0], int(span.object, 16)) for span in inside[one]]
                assert found == [each for each, _ in wanted], "run at %d: %s, made %s" % (one.start, found, wanted)
                for span, (_, count) in zip(inside[one], wanted):
                    launches[span.label] += count
        return launches

    def check_outputs(self, reports, operators, launches):
        """Database, table and summaries have the operators of the trace."""
        depths = collections.Counter((span.label, span.tid, span.start, span.duration) for span in operators)
        same(depths, collections.Counter(reports.ask(
            "SELECT n.label, t.tid, o.start + c.monotonic, o.duration FROM operators o JOIN operator_names n ON n.id = o.operator "
            "JOIN threads t ON t.id = o.thread, recording c")), "operators of trace and database")
        assert not reports.ask("SELECT 1 FROM operators o LEFT JOIN inferences i ON i.id = o.inference WHERE i.id IS NULL OR o.start < "
                               "i.start OR o.start + o.duration > i.start + i.duration OR o.thread != i.thread")
        assert not reports.ask("SELECT 1 FROM operators WHERE cpu_time + waited_time + blocked_time > duration")
        rows = {row["name"]: (row["recorded"], row["self_ns"], row.get("launches", 0)) for row in merged(reports.trace)}
        same(rows, {row[0]: row[1:] for row in reports.ask(
            "SELECT label, sum(recorded), sum(self_time), coalesce(sum(launches), 0) FROM operator_names GROUP BY 1")}, "sums of operators")
        same({name: row[2] for name, row in rows.items()}, {name: count for name, count in launches.items() if name},
             "launches in the metadata")
        shown = collections.Counter()
        for part in reports.text.split("\nOPERATOR ")[1:]:
            for line in part.partition("\n\n")[0].splitlines()[1:]:
                if not line.startswith("("):  # the rest, or how many more there are than are shown
                    shown[line.split()[0], int(line.split()[2])] += 1
        wrong = shown - collections.Counter((row["name"], row["recorded"]) for row in reports.trace.metadata["operators"])
        assert not wrong, "counts in the summary: %s" % wrong
        assert bool(shown) == bool(operators)
        kernels = collections.Counter()
        for chain, _ in self.chains:
            for _, count in chain:
                kernels["multiply"] += -(-count // 2)
                kernels["add_bias"] += count // 2
        found = collections.Counter()
        for program in reports.summary["programs"]:
            found[program["name"] if program["runtime"] == "cuda" else "toy"] += program["inferences"]
        if self.sample == 1:
            same(found, {"toy": self.runs * self.threads, **{name: count * self.runs * self.threads for name, count in kernels.items()}},
                 "inferences of the summary")
            runs = [row for row in reports.rows if row["runtime"] == "toy"]
            assert len(runs) == self.runs * self.threads, "%d rows" % len(runs)
        else:
            assert found["toy"] == self.runs * self.threads, found


def merged(trace):
    """One row a name: threads have a program each, whose operators are numbered alike."""
    rows = {}
    for row in trace.metadata["operators"]:
        known = rows.setdefault(row["name"], {"name": row["name"], "recorded": 0, "self_ns": 0, "launches": 0})
        for name in ("recorded", "self_ns", "launches"):
            known[name] += row.get(name, 0)
    return rows.values()


# ---- regions ----

class Regions:
    """Threads that start and stop regions in any order, also ones that are not open, or more than are followed."""

    def __init__(self, number):
        chance = random.Random("regions %d" % number)
        self.names = ["r%d" % i if chance.random() < 0.8 else "same" for i in range(chance.choice((1, 2, 4, 9)))]
        self.threads, self.times = chance.choice((1, 1, 2, 5)), chance.choice((1, 3, 40))
        self.words = self.nested(chance) if chance.random() < 0.5 else self.wild(chance)
        self.enabled = chance.random() < 0.5
        self.late = self.threads == self.times == 1 and chance.random() < 0.7
        self.rate = chance.choice((1, 2, 5))
        self.every = chance.choice(("20ms", "100ms", "1s"))
        self.options = ["--drivers=none"] + tracing_options(chance)

    def nested(self, chance):
        words, opened = [], []
        for _ in range(chance.choice((2, 10, 60))):
            if opened and chance.random() < 0.5:
                words.append("-%d" % opened.pop())
            else:
                opened.append(chance.randrange(len(self.names)))
                words.append("+%d" % opened[-1])
        return words + ["-%d" % one for one in reversed(opened)]

    def wild(self, chance):
        more = chance.choice((0.5, 0.5, 0.6, 0.9))
        words = ["%s%d" % ("+" if chance.random() < more else "-", chance.randrange(len(self.names))) for _ in range(
            chance.choice((3, 20, 90)))]
        if self.threads == 1 and chance.random() < 0.4:
            for _ in range(3):
                words.insert(chance.randrange(len(words)), "%d=%d" % (chance.randrange(len(self.names)), chance.randrange(len(self.names))))
        return words

    def command(self, waits):
        return marks(self.names, *(["wait"] if waits else []), *self.words, threads=self.threads, times=self.times)

    def __str__(self):
        return "%s, %s: %s" % (self.names, " ".join(self.options), " ".join(self.command(False)[2:]) + (" late" if self.late else ""))

    def check(self, folder):
        path = os.path.join(folder, "out.xpt")
        environment = {name: value for name, value in os.environ.items() if name != "XPUTRACE_REGIONS"}
        if self.enabled:
            environment["XPUTRACE_REGIONS"] = "enabled"
        made = Made(self.names, self.words, self.times)
        streamed = None
        if self.late:
            program = Workload(self.command(True), env=environment)
            recorder = Recorder("-p", program.pid, *self.options, output=path)
            stream = Stream("-p", program.pid, "--match", "^region:", "--sample-every", self.rate, "--report-every", self.every)
            program.go()
            results = program.results()
            streamed = stream.blocks()
            assert recorder.wait() == 0, recorder.stderr
        else:
            recorder = Recorder(*self.options, "--", *self.command(False), wait=False, output=path, env=environment)
            assert recorder.wait() == 0, recorder.stderr
            results = results_in(recorder.stdout)
        reports = Reports(path)
        if reports.late:
            return True
        reports.check_losses({"depth": made.forgotten * self.threads} if made.forgotten else {})
        assert reports.trace.complete
        ended = collections.Counter({name: count * self.threads for name, count in made.ended.items()})
        same(counted(reports.trace), ended, "regions of the trace")
        self.check_order(reports.trace)
        self.check_outputs(reports, ended)
        if streamed is not None:
            self.check_stream(streamed, ended)
        return self.enabled and not self.check_kept(results, made, reports.trace)

    def check_order(self, trace):
        """Of each thread: the regions begin and end in the order in which the words do so."""
        begun, ended, opened, names, step = [], [], [], list(self.names), 0
        for word in self.words * self.times:
            step += 1
            if "=" in word:
                to, source = map(int, word.split("="))
                names[to] = names[source]
            elif word[0] == "+":
                opened = opened[-63:] + [(int(word), names[int(word)], step)]
            else:
                found = [i for i, (region, _, _) in enumerate(opened) if region == -int(word)]
                if found:
                    _, name, start = opened.pop(found[-1])
                    ended.append(name)
                    begun.append((start, name))
        threads = collections.defaultdict(list)
        for span in region_spans(trace):
            threads[span[1]].append(span)
        assert not ended or len(threads) == self.threads, threads.keys()
        for tid, found in threads.items():
            assert [span[0] for span in found] == ended, "ends of thread %d: %s" % (tid, [span[0] for span in found][:40])
            assert [span[0] for span in sorted(found, key=lambda span: span[2])] == [name for _, name in sorted(begun)], (
                "begins of thread %d" % tid)

    @staticmethod
    def check_outputs(reports, ended):
        """Counts and sums of summaries and database are those of the events."""
        totals, extremes = collections.Counter(), {}
        for name, _, start, end in region_spans(reports.trace):
            totals[name] += end - start
            least, most = extremes.get(name, (end - start, end - start))
            extremes[name] = min(least, end - start), max(most, end - start)
        found = {region["name"]: region for region in reports.summary["regions"]}
        same({name: region["calls"] for name, region in found.items()}, ended, "regions of the summary")
        for name, region in found.items():
            times = region["duration_ns"]
            assert region["recorded"] == times["count"] == ended[name] and (times["min"], times["max"]) == extremes[name], region
            assert abs(times["mean"] - totals[name] / ended[name]) <= 1, (region, totals[name])
            assert times["min"] <= times["p50"] <= times["p95"] <= times["p99"] <= times["max"], region
        same({region["name"]: region["duration_ns"]["sum"] for region in reports.trace.metadata["regions"]}, totals, "times of regions")
        rows = reports.ask("SELECT s.text, count(*), sum(duration) FROM regions r JOIN strings s ON s.id = r.name GROUP BY 1")
        same({name: (count, total) for name, count, total in rows}, {name: (ended[name], totals[name]) for name in ended}, "the database")
        shown = {row["REGION"]: int(row["COUNT"]) for row in table(reports.text, "REGION")} if ended else {}
        same(shown, ended, "regions of the table")

    def check_stream(self, blocks, ended):
        """The intervals add up to all of them; samples are one in so many."""
        for what, wanted in (("inferences", ended), ("taken", {name: -(-count // self.rate) for name, count in ended.items()})):
            found = collections.Counter()
            for block in blocks:
                assert not block.lost and block.every == self.rate, vars(block)
                found[block.name.partition("region:")[2]] += getattr(block, what)
            same(found, wanted, what + " of the reports")

    def check_kept(self, results, made, trace):
        """What the regions have kept themselves: entries exactly; whether times are close: a thread may have to wait between the two."""
        result, = results
        for number, (entries, _, unmatched) in enumerate(kept_of(result)):
            assert entries == made.by_region[number] * self.threads, (number, entries, made.by_region)
        assert sum(unmatched for _, _, unmatched in kept_of(result)) == made.unmatched * self.threads
        # The probes are around its clock readings; the first ones of a thread take long.
        added = sum(end - start for _, _, start, end in region_spans(trace)) - sum(total for _, total, _ in kept_of(result))
        count = sum(made.ended.values()) * self.threads
        assert added >= 0, "%d regions are %d ns shorter in the trace" % (count, -added)
        return added <= SLOW * (20000 * count + 200000 * self.threads)


def kept_of(result):
    return [tuple(region.values()) for region in result["regions"]]


# ---- several tools on one process ----

RUNTIMES = ("nrt", "qaic", "vaccel", "hip", "cuda", "cudart", "pjrt", "llama")
WARNED = ("llama",)  # a status that is not 0 may be a warning


class Tools:
    """A recording, streams of two kinds and an agent on one process: each has the same numbers."""

    def __init__(self, number):
        chance = random.Random("tools %d" % number)
        self.runtime = chance.choice(RUNTIMES)
        self.words = ["--calls", str(chance.choice((1, 8, 61, 200, 500))), "--threads", str(chance.choice((1, 2, 4))),
                      "--programs", str(chance.choice((1, 2, 5))), "--duration-us", str(chance.choice((0, 20, 500)))]
        self.words += chance.choice(([], ["--fail-every", str(chance.choice((2, 5, 19)))]))
        self.words += ["--callbacks"] if self.runtime == "hip" and chance.random() < 0.3 else []
        self.words += ["--reload"] if chance.random() < 0.2 else []
        self.rate = chance.choice((1, 2, 4, 9))
        self.every = [chance.choice(("10ms", "50ms", "200ms", "2s")) for _ in range(2)]
        self.options = ["--drivers=none"] + tracing_options(chance)
        self.apart = chance.random() < 0.4  # each starts the program itself
        # Children of PJRT's get probes that follow from memory a moment later.
        if self.apart and "--reload" not in self.words and self.runtime != "pjrt":
            self.words += chance.choice(([], ["--fork", str(chance.choice((1, 2, 3)))], ["--exec"]))

    def command(self):
        return [workload_path("workload"), self.runtime, *self.words]

    def __str__(self):
        return "%s, one in %d, %s: %s" % (" ".join(self.command()[1:]), self.rate, " ".join(self.every), " ".join(self.options))

    def check(self, folder):
        if self.apart:
            return self.check_apart(folder)
        path, textfile, summary = (os.path.join(folder, name) for name in ("out.xpt", "agent.prom", "stream.json"))
        workload = standin(self.runtime, *self.words)
        target = "-p", workload.pid
        tools = [Stream(*target, "--sample-every", self.rate, "--report-every", self.every[0], "--summary-json", summary),
                 Stream(*target, "--summary", "--report-every", self.every[1])]
        recorder = Recorder(*target, *self.options, output=path)
        agent = agent_of(textfile, *target)
        workload.go()
        results = workload.results()
        assert recorder.wait() == 0 and agent.wait() == 0, recorder.stderr + agent.stderr
        reports = Reports(path)
        if reports.late:
            return True
        reports.check_losses({})
        blocks = tools[0].blocks()
        check_totals(blocks, made_by(results), self.rate)
        by_name, failed = sums_by_name(results)
        with open(summary, encoding="utf-8") as file:
            self.check_stream(json.load(file), blocks, by_name)
        self.check_rows(read_summary(tools[1].end().text()), by_name, failed)
        with open(textfile, encoding="utf-8") as file:
            self.check_agent(parse(file.read()), by_name, failed, reports)
        self.check_recording(reports, by_name)
        return False

    def check_apart(self, folder):
        """A stream and an agent with a program each."""
        textfile = os.path.join(folder, "agent.prom")
        stream = Stream("--append", "--sample-every", self.rate, "--report-every", self.every[0], "--drivers=none", *WAITING, "--", *self.command(),
                        output=os.path.join(folder, "stream.csv"), wait=False)
        agent = agent_of(textfile, "--", *self.command())
        blocks = stream.blocks()
        assert agent.wait() == 0, agent.stderr
        if any("did not wait any longer" in tool.stderr for tool in (stream, agent)):
            return True
        check_totals(blocks, made_by(results_in(stream.stdout)), self.rate)
        by_name, failed = sums_by_name(results_in(agent.stdout))
        with open(textfile, encoding="utf-8") as file:
            samples = parse(file.read())
        self.check_agent(samples, by_name, failed)
        return False

    def errors_are_known(self):
        return self.runtime not in WARNED and self.runtime != "pjrt"

    def check_stream(self, summary, blocks, by_name):
        """Its summary adds up its reports."""
        counts, times = collections.Counter(), collections.Counter()
        for block in blocks:
            for sample in block.samples:
                times[plain(block.name)] += sample.duration or 0
        total = collections.Counter()
        for program in summary["programs"]:
            counts[plain(program["name"])] += program["inferences"]
            latency = program.get("latency_ns", {"count": 0, "mean": 0})
            assert not program["lost"] and latency["count"] <= program["recorded"], program
            total[plain(program["name"])] += round(latency["mean"] * latency["count"])
        same(counts, by_name, "inferences of the stream's summary")
        for name, each in total.items():
            assert abs(each - times[name]) <= by_name[name], "%s: %d ns in the summary, %d in the rows" % (name, each, times[name])

    def check_rows(self, rows, by_name, failed):
        """Of a stream's summary of each interval."""
        found, errors = collections.Counter(), collections.Counter()
        for row in rows:
            found[plain(row["name"])] += int(row["inferences"])
            errors[plain(row["name"])] += int(row["failed"])
            assert row["lost"] == "0" and row["inferences"] == row["samples"], row
        same(found, by_name, "inferences of the rows")
        if self.errors_are_known():
            same(errors, failed, "failed ones of the rows")

    def check_agent(self, samples, by_name, failed, reports=None):
        """Its counters; as many have a duration as in the recording: not launches that have failed, as they do not end."""
        for name in ("inferences_total", "inferences_recorded_total"):
            same(by_program(samples, "xputrace_" + name), by_name, name)
        if reports:
            timed = collections.Counter(plain(row["program"]) for row in reports.rows if row["duration_us"])
            same(by_program(samples, "xputrace_inference_duration_seconds_count"), timed, "durations of the agent")
        if self.errors_are_known():
            same(by_program(samples, "xputrace_inference_errors_total"), failed, "errors of the agent")
        check_histograms(samples)
        assert not sum(by_program(samples, "xputrace_inferences_lost_total").values())
        assert "xputrace_events_lost_total" not in samples, samples["xputrace_events_lost_total"]

    @staticmethod
    def check_recording(reports, by_name):
        found = collections.Counter()
        for program in reports.summary["programs"]:
            found[plain(program["name"])] += program["inferences"]
        same(found, by_name, "inferences of the recording")
        same(collections.Counter(plain(row["program"]) for row in reports.rows), by_name, "rows of the table")


def sums_by_name(results):
    """Executions of each program, and of them those that failed."""
    made, failed = collections.Counter(), collections.Counter()
    for entry in run_entries(results):
        made[entry["program"]] += entry["count"]
        failed[entry["program"]] += entry["count"] if entry.get("status") else 0
    return made, failed


def plain(name):
    """Without the number of one that has the name of another at the same time."""
    head, _, number = name.rpartition(" #")
    return head if head and number.isdecimal() else name


def agent_of(textfile, *options):
    """An agent that ends with its targets, and leaves what it has counted in the file."""
    agent = Process([XPUTRACE, "agent", "--listen", "none", "--textfile", textfile, "--budget", "none", "--interval", "200ms", "--kernels", *WAITING,
                     *(str(option) for option in options)])
    if "-p" in options:
        agent.wait_line("stderr", "attached")
    return agent


# ---- jobs of a device ----


def near(found, made, count, what):
    """Times of so many jobs, which events and device tell some microseconds apart; threads may have to wait between the two."""
    assert abs(found - made) <= SLOW * (0.05 * made + 1000000 * count), "%s: %d us, by the device %d" % (what, found / 1000, made / 1000)


class Jobs:
    """Executions that are jobs of a device, on several engines, with failures, and ends that are not reported."""

    def __init__(self, number):
        chance = random.Random("jobs %d" % number)
        self.runtime = chance.choice(("nrt", "qaic", "cuda"))
        self.words = ["--calls", chance.choice((1, 4, 15)), "--threads", chance.choice((1, 2, 4)), "--programs", chance.choice((1, 2, 3)),
                      "--jobs", chance.choice((1, 2, 3, 7)), "--engines", chance.choice((1, 2, 3))]
        self.words += chance.choice(([], ["--fail-jobs", chance.choice((1, 2, 5))]))
        self.words = [str(word) for word in self.words]
        self.duration = chance.choice((200, 800, 2500))
        self.device = ["engines=3", "slots=%d" % chance.choice((1, 1, 2, 4))] + chance.choice(([], ["apart"]))
        self.sample = chance.choice((1, 1, 1, 2, 3))
        self.options = ["--sample", str(self.sample)] if self.sample > 1 else []
        self.options += tracing_options(chance)
        self.beside = chance.random() < 0.4  # a stream and an agent

    def command(self):
        return device_command(self.runtime, *self.words, duration_us=self.duration, device=",".join(self.device))

    def __str__(self):
        return "%s, %s" % (" ".join(self.command()[1:]), " ".join(self.options))

    def check(self, folder):
        path, textfile = os.path.join(folder, "out.xpt"), os.path.join(folder, "agent.prom")
        if self.beside:
            workload = Workload(self.command() + ["--wait-for-go"])
            target = "-p", workload.pid
            recorder = Recorder(*EMULATED, *self.options, *target, output=path)
            stream = Stream(*target, *EMULATED, "--report-every", "50ms")
            agent = agent_of(textfile, *target, *EMULATED)
            workload.go()
            results = workload.results()
        else:
            recorder = Recorder(*EMULATED, *self.options, "--", *self.command(), wait=False, output=path)
        assert recorder.wait() == 0, recorder.stderr
        if not self.beside:
            results = results_in(recorder.stdout)
        reports = Reports(path)
        # The process that is the device is the first child of one that was traced alone.
        children = {"late_probes": 1} if self.beside and "apart" in self.device else {}
        if reports.late and reports.trace.losses() != children:
            return True
        reports.check_losses(children)
        trace = reports.trace
        trace.check()
        pairs = pair(check(results), jobs_in(trace))
        for reported, job in pairs:
            assert job.arguments["value"] == reported["number"] and job.failed == bool(reported["error"]), (reported, job.arguments)
        assert len(check_times(pairs)) == len(pairs)
        runs = runs_around(trace)
        recorded = [(reported, job) for reported, job in pairs if runs(reported)]
        assert self.sample > 1 or len(recorded) == len(pairs)
        for reported, job in pairs:
            assert job.program == (reported["program"] if runs(reported) else None), (reported, job.arguments)
        check_counted(trace, recorded)
        self.check_programs(reports, recorded)
        self.check_queues(reports, pairs)
        self.check_inferences(reports, recorded, runs)
        if self.beside:
            self.check_stream(stream.blocks(), [reported for reported, _ in pairs])
            assert agent.wait() == 0, agent.stderr
            with open(textfile, encoding="utf-8") as file:
                self.check_agent(parse(file.read()), [reported for reported, _ in pairs])
        return False

    @staticmethod
    def check_stream(blocks, jobs):
        """The reports add up to all jobs, and their times about to those that the device has reported."""
        counts, times = collections.Counter(), collections.Counter()
        for block in blocks:
            assert not block.lost, vars(block)
            for sample in block.samples:
                counts[block.name] += int(sample.row["jobs"])
                for column in ("deviceTime(Us)", "queueTime(Us)"):
                    times[block.name, column] += round(float(sample.row[column]) * 1000) if sample.row[column] != "N/A" else 0
        same(counts, collections.Counter(job["program"] for job in jobs), "jobs of the stream")
        for name, count in counts.items():
            mine = [job for job in jobs if job["program"] == name]
            known = all(sample.row["deviceTime(Us)"] != "N/A" for block in blocks if block.name == name for sample in block.samples)
            if known:
                near(times[name, "deviceTime(Us)"], sum(job["finished_ns"] - job["started_ns"] for job in mine), count, "device time of " + name)
                near(times[name, "queueTime(Us)"], sum(job["started_ns"] - job["queued_ns"] for job in mine), count, "queue time of " + name)

    @staticmethod
    def check_agent(samples, jobs):
        device = str(NOBODY + os.getpid())
        found = {name: sum(value for labels, value in samples["xputrace_process_device_" + name] if labels["hw_id"] == device)
                 for name in ("jobs_total", "queue_seconds_total", "seconds_total")}
        assert found["jobs_total"] == len(jobs), (found, len(jobs))
        near(found["queue_seconds_total"] * 1e9, sum(job["started_ns"] - job["queued_ns"] for job in jobs), len(jobs), "queue time")
        for name, field in (("device_seconds_total", "finished_ns"), ("queue_seconds_total", "started_ns")):
            begin = "started_ns" if field == "finished_ns" else "queued_ns"
            for program, value in by_program(samples, "xputrace_" + name).items():
                mine = [job for job in jobs if job["program"] == program]
                near(value * 1e9, sum(job[field] - job[begin] for job in mine), len(mine), "%s of %s" % (name, program))

    @staticmethod
    def check_programs(reports, recorded):
        """Times of each program are the sums of its jobs, to the ns."""
        found = {"device_ns": collections.Counter(), "queue_ns": collections.Counter()}
        made = {"device_ns": collections.Counter(), "queue_ns": collections.Counter()}
        for program in reports.trace.metadata["programs"]:
            for name, counts in found.items():
                counts[program["name"]] += program.get(name, 0)
        for _, job in recorded:
            made["device_ns"][job.program] += job.ended - job.began
            made["queue_ns"][job.program] += job.began - job.queued
        for name, counts in found.items():
            same(counts, made[name], name + " of programs")
        shown = {row["PROGRAM ON DEVICE"]: (int(row["JOBS"]), int(row["FAILED"])) for row in table(reports.text, "PROGRAM ON DEVICE")}
        jobs = collections.Counter(job.program for _, job in recorded)
        failed = collections.Counter(job.program for _, job in recorded if job.failed)
        same(shown, {name: (count, failed[name]) for name, count in jobs.items()}, "jobs of programs in the summary")

    def check_queues(self, reports, pairs):
        """Of this device: other programs may use others."""
        device = str(NOBODY + os.getpid())
        queues = {queue["engine"].rpartition(".")[2]: queue for queue in reports.trace.metadata["queues"]
                  if queue["device"] == device}
        assert set(queues) == {str(reported["engine"]) for reported, _ in pairs}, queues
        for engine, queue in queues.items():
            mine = [job for reported, job in pairs if str(reported["engine"]) == engine]
            failed = sum(job.failed for job in mine)
            assert queue["jobs"] == queue["target_jobs"] == len(mine) and queue["failed_jobs"] == failed, queue
            busy = covered((job.began, job.ended) for job in mine)
            assert abs(nanoseconds(queue["busy_us"]) - busy) <= 1 and abs(queue["busy_us"] - queue["target_us"]) <= 0.001, (queue, busy)
            row, = reports.ask("SELECT q.jobs, q.failed, q.target_jobs, q.busy_time FROM queues q JOIN devices d ON d.id = q.device "
                               "WHERE d.name = ? AND q.engine = ?", device, queue["engine"])
            assert row[:3] == (len(mine), failed, len(mine)) and abs(row[3] - busy) <= 1, (row, queue)
            used = reports.ask("SELECT sum(jobs), sum(failed), sum(device_time), sum(queue_time) FROM device_use WHERE device = ? AND engine = ?",
                               device, queue["engine"])
            assert used == [(len(mine), failed, sum(job.ended - job.began for job in mine), sum(job.began - job.queued for job in mine))], used

    @staticmethod
    def check_inferences(reports, recorded, runs):
        """Each inference of the database and the table has its jobs, as far as they had ended with it, and their times."""
        made = collections.defaultdict(list)
        for reported, job in recorded:
            call = runs(reported)[0]
            made[call.pid, call.tid, nanoseconds(call.start)].append(job)
        wanted = collections.Counter((tid, start, len(jobs)) for (_, tid, start), jobs in made.items())
        same(wanted, collections.Counter(reports.ask(
            "SELECT t.tid, i.start + c.monotonic, i.jobs FROM inferences i JOIN threads t ON t.id = i.thread, recording c WHERE i.jobs > 0")), "jobs of inferences")
        same(collections.Counter((tid, start) for (_, tid, start), jobs in made.items() for _ in jobs), collections.Counter(reports.ask(
            "SELECT t.tid, i.start + c.monotonic FROM jobs j JOIN inferences i ON i.id = j.inference JOIN threads t ON t.id = i.thread, "
            "recording c")), "jobs' inferences")
        for tid, start, unfinished, failed, device, queue in reports.ask(
                "SELECT t.tid, i.start + c.monotonic, coalesce(i.unfinished_jobs, 0), coalesce(i.failed_jobs, 0), i.device_time, i.queue_time "
                "FROM inferences i JOIN threads t ON t.id = i.thread, recording c WHERE i.jobs > 0"):
            jobs, = [jobs for (_, owner, begun), jobs in made.items() if (owner, begun) == (tid, start)]
            if not unfinished:
                sums = sum(job.failed for job in jobs), sum(job.ended - job.began for job in jobs), sum(job.began - job.queued for job in jobs)
                assert (failed, device, queue) == sums, ((failed, device, queue), sums)
        total = collections.Counter()
        for row in reports.rows:
            total[row["program"]] += int(row["jobs"] or 0)
        same(total, collections.Counter(job.program for _, job in recorded), "jobs of the table")


KINDS = {"operators": Operators, "regions": Regions, "tools": Tools, "jobs": Jobs}
