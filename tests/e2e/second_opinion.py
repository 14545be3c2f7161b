# SPDX-License-Identifier: BSD-2-Clause
"""Kinds of random cases of test_truth.py in which perf or bpftrace has probes on the same functions at the same time.

Three have to agree: what the workload says it called, what the other tool counted, and what xputrace recorded. Functions that the
workload knows nothing of, because the library calls them itself, are compared between the two tools. What each of them counts:

- perf stat -p: the process with all its threads (and children that it forks from then on, which are left out here: see limitations.md);
- perf stat -a, perf record -a, bpftrace: every process that has mapped the library, which here are those of the workload, forked and
  executed ones, too. perf stat has the sums of all, perf record and bpftrace tell processes apart. (perf record -p may lose the last
  calls of a process that ends, so it is not used.)

Times are compared call by call with perf record, by sums and histograms with bpftrace. All use CLOCK_MONOTONIC, but each reads it in
its own probe: of two tools the one whose probe comes second has the first one's handler in its time, or not. Measured with perf on a
machine with a load of 16: half of all times 0.4 us apart, 90 % up to 9 us (a probe on an instruction that is single-stepped, beside one of
xputrace's on the next), 99 % up to 18 us. More than APART is a thread that had nothing of its own in the caches, or has lost its CPU
between the probes, for which there is no bound: STRAY of the calls and FEW, and sums by as many turns of others."""

import collections
import json
import os
import random
import shutil
import statistics

from harness import (REQUIRED, RUNNING, SLOW, TIMEOUT, Process, Recorder, Skip, Trace, Workload, entries_of, library_path, results_in, run, tracefs, wait_end,
                     workload_path)

# Libraries of each runtime's stand-in, with how names of their functions begin. Functions of PJRT have no symbols, and those of the
# driver that cudart calls by an address which it has asked for are not the exported ones.
LIBRARIES = {
    "nrt": {"libnrt.so.1": "nrt"},
    "qaic": {"libQAic.so": "qaic"},
    "vaccel": {"libvaccel.so": "vaccel"},
    "hip": {"libamdhip64.so.6": ("hip", "__hip"), "libhsa-runtime64.so.1": "hsa"},
    "cuda": {"libcuda.so.1": "cu"},
    "cudart": {"libcudart.so.12": ("cuda", "__cuda")},
    "llama": {"libllama.so.0": "llama"},
}
APART = 50000 * SLOW  # ns
STRAY, FEW = 0.05, 5  # of the calls: a share, and so many


def symbols(runtime):
    """Name to library of the exported functions of the runtime, as nm says."""
    found = {}
    for name, begins in LIBRARIES[runtime].items():
        for line in run(["nm", "-D", "--defined-only", library_path(name)]).stdout.splitlines():
            function = line.split()[-1].partition("@")[0]
            if function.startswith(begins):
                found[function] = name
    return found


def plain(symbol):
    """The function's name; it has a variant for a stream of each thread."""
    return symbol.removesuffix("_ptsz")


def same(one, other, what):
    """Two counters, of which what is 0 may be missing."""
    one, other = +collections.Counter(one), +collections.Counter(other)
    assert one == other, "%s: %s against %s" % (what, dict(one - other), dict(other - one))


class Second:
    """A workload that xputrace and another tool trace."""

    tool = None

    def __init__(self, number):
        chance = random.Random("%s %d" % (self.tool, number))
        self.runtime = chance.choice(list(LIBRARIES))
        self.words = ["--calls", str(chance.choice((1, 7, 40, 150, 400))), "--threads", str(chance.choice((1, 1, 2, 4))),
                      "--programs", str(chance.choice((1, 2, 5))), "--duration-us", str(chance.choice((0, 20, 200)))]
        self.words += chance.choice(([], [], ["--fail-every", str(chance.choice((2, 3, 11)))]))
        self.late = chance.random() < 0.5  # xputrace attaches to what runs; else it starts the command
        # A process that was traced alone until it forks has children whose first calls are missed (limitations.md).
        more = [["--reload"]] + ([] if self.late else [["--fork", str(chance.choice((1, 2, 3)))], ["--exec"]])
        self.words += chance.choice([[], [], *more])
        self.sample = chance.choice((1, 1, 1, 3))
        self.options = ["--drivers=none"] + (["--sample", str(self.sample)] if self.sample > 1 else [])
        self.options += chance.choice(([], [], ["--link", chance.choice(("session", "multi", "perf"))]))
        self.options += ["--why"] if chance.random() < 0.2 else []
        self.first = chance.random() < 0.5  # the other tool is there before xputrace
        found = symbols(self.runtime)
        always = sorted(name for name in found if plain(name) in RUNNING)
        self.libraries = {name: found[name] for name in always + chance.sample(
            sorted(set(found) - set(always)), min(4, len(found) - len(always)))}
        self.functions = list(dict.fromkeys(map(plain, self.libraries)))
        self.choose(chance)

    def choose(self, chance):
        """More that is left to chance."""

    def __str__(self):
        return "%s %s, %s: %s%s%s" % (self.runtime, " ".join(self.words), " ".join(self.options), " ".join(self.functions),
                                      " late" if self.late else "", " first" if self.first else "")

    def check(self, folder):
        self.folder = folder
        # Files of its own, which no other program has mapped.
        shutil.copy(workload_path("workload"), folder)
        shutil.copytree(os.path.dirname(library_path("libnrt.so.1")), os.path.join(folder, "lib"))
        self.paths = {name: os.path.join(folder, "lib", library) for name, library in self.libraries.items()}
        self.prepare()
        try:
            results = self.trace()
        finally:
            self.remove()
        trace = Trace(os.path.join(folder, "out.json"))
        made = collections.Counter()
        for result in results:
            for entry in entries_of([result]):
                made[result["pid"], entry["function"]] += entry["count"]
        known = {function for _, function in made}
        counted = self.counted()
        # Whatever xputrace has done, these two have to agree.
        self.same({key: count for key, count in made.items() if key[1] in self.functions},
                  {key: count for key, count in counted.items() if key[1] in known}, "calls made, counted by " + self.tool)
        if set(trace.losses()) & {"late_probes", "unreadable"}:
            return True
        assert trace.complete and not trace.losses(), trace.losses()
        self.check_calls(trace, counted)
        return False

    def trace(self):
        """What the processes of the workload say."""
        command = [os.path.join(self.folder, "workload"), self.runtime, *self.words]
        output = os.path.join(self.folder, "out.json")
        if not self.late:
            self.attach(None)
            recorder = Recorder(*self.options, "--", *command, wait=False, output=output)
            assert recorder.wait() == 0, recorder.stderr
            self.end()
            return results_in(recorder.stdout)
        workload = Workload(command + ["--wait-for-go"])
        if self.first:
            self.attach(workload.pid)
        recorder = Recorder("-p", workload.pid, *self.options, output=output)
        if not self.first:
            self.attach(workload.pid)
        workload.go()
        results = workload.results()
        assert recorder.wait() == 0, recorder.stderr
        self.end()
        return results

    def check_calls(self, trace, counted):
        """Recorded calls of each function; of sampled ones, as many as the kernel has counted."""
        spans, traced, sampled = collections.defaultdict(list), collections.Counter(), RUNNING if self.sample > 1 else ()
        for call in trace.calls:
            traced[call.pid, call.function] += 1
            spans[call.function].append(call)
        described = (set(REQUIRED[self.runtime].split()) | set(spans)) & set(self.functions)
        assert described & RUNNING, "nothing is compared: %s" % described
        self.same({key: count for key, count in traced.items() if key[1] in described and key[1] not in sampled},
                  {key: count for key, count in counted.items() if key[1] in described and key[1] not in sampled},
                  "calls recorded, counted by " + self.tool)
        layers = {call.function for call in trace.calls if call.layer}
        total = collections.Counter()
        for program in trace.metadata["programs"]:
            total[program["pid"], "executions"] += program.get("calls", 0) if program["runtime"] == self.runtime else 0
        ran = collections.Counter()
        for (pid, function), count in counted.items():
            ran[pid, "executions"] += count if function in RUNNING - layers else 0
        self.same(total, ran, "executions in the totals, counted by " + self.tool)
        for function in described - set(sampled):
            self.check_times(function, spans[function])

    # Of each tool:

    def same(self, one, other, what):
        same(one, other, what)

    def prepare(self):
        """What is there before the tool begins."""

    def remove(self):
        """What prepare() has made."""

    def attach(self, pid):
        """Returns when the tool counts."""
        raise NotImplementedError

    def end(self):
        """When all processes have ended."""
        raise NotImplementedError

    def counted(self):
        """(process, function) to number of calls."""
        raise NotImplementedError

    def check_times(self, function, calls):
        """Against those that xputrace has recorded."""


class Perf(Second):
    """perf stat, or perf record, with a uprobe at the begin of each function and one where it returns."""

    tool = "perf"

    def choose(self, chance):
        self.how = chance.choice(("record", "stat -a", "stat -p" if self.late else "stat -a"))
        self.group = "e2e_%d" % os.getpid()

    def __str__(self):
        return "%s: %s" % (self.how, super().__str__())

    def prepare(self):
        if not shutil.which("perf"):
            raise Skip("perf is not installed")
        for function, path in self.paths.items():
            place = run(["perf", "probe", "-q", "-x", path, "-D", function])
            assert place.status == 0, place.stderr
            place = place.stdout.split()[1]
            # By hand: perf would place returns on entries of the PLT with the function's name, too.
            self.write_events("p:%s/%s %s" % (self.group, function, place), "r:%s/%s__return %s" % (self.group, function, place))

    def remove(self):
        if hasattr(self, "process"):
            self.process.kill()
        for function in self.paths:
            self.write_events("-:%s/%s" % (self.group, function), "-:%s/%s__return" % (self.group, function))

    @staticmethod
    def write_events(*lines):
        events = os.open(os.path.join(tracefs(), "uprobe_events"), os.O_WRONLY | os.O_APPEND)
        for line in lines:
            os.write(events, line.encode() + b"\n")
        os.close(events)

    def attach(self, pid):
        control, answers = (os.path.join(self.folder, name) for name in ("control", "answers"))
        for path in (control, answers):
            os.mkfifo(path)
        self.output = os.path.join(self.folder, "perf.data")
        words = ["record", "-q", "-B", "-N", "-k", "CLOCK_MONOTONIC", "-m", "4096", "-a"] if self.how == "record" else [
            "stat", "-x", "\t", *(["-p", str(pid)] if self.how == "stat -p" else ["-a"])]
        self.process = Process(["perf", *words, "-o", self.output, "-e", self.group + ":*", "-D", "-1", "--control",
                                "fifo:%s,%s" % (control, answers)])
        with open(control, "w", encoding="ascii") as to, open(answers, encoding="ascii") as answer:
            to.write("enable\n")
            to.flush()
            assert answer.readline() == "ack\n", self.process.stderr

    def end(self):
        if self.how != "stat -p":
            self.process.signal(2)
        status = self.process.wait()
        assert status in (0, -2), self.process.stderr

    def same(self, one, other, what):
        """perf stat has the sums of all processes."""
        if self.how == "record":
            same(one, other, what)
            return
        sums = [collections.Counter() for _ in range(2)]
        for total, counts in zip(sums, (one, other)):
            for (_, function), count in counts.items():
                total[function] += count
        same(*sums, what)

    def counted(self):
        counts = {end: collections.Counter() for end in ("", "__return")}
        if self.how == "record":
            self.read_events()
            for (pid, _, event), times in self.times.items():
                function, returned, _ = event.partition("__return")
                counts[returned][pid, function] += len(times)
        else:
            with open(self.output, encoding="ascii") as file:
                rows = [line.split("\t") for line in file if self.group in line]
            assert len(rows) == 2 * len(self.paths), rows
            for count, _, event, *_ in rows:
                function, returned, _ = event.partition(":")[2].partition("__return")
                counts[returned][0, plain(function)] += int(count)
        same(*counts.values(), "calls and returns")
        return counts[""]

    def read_events(self):
        """(process, thread, event) to times in ns, in order."""
        script = run(["perf", "script", "-i", self.output, "-F", "pid,tid,time,event", "--ns", "--show-lost-events"])
        assert script.status == 0, script.stderr
        self.times = collections.defaultdict(list)
        for line in script.stdout.splitlines():
            assert "LOST" not in line, line
            ids, time, event = line.split()
            seconds, _, part = time.rstrip(":").partition(".")
            pid, tid = map(int, ids.split("/"))
            self.times[pid, tid, event.split(":")[1].replace("_ptsz", "")].append(int(seconds) * 10 ** 9 + int(part))

    def check_times(self, function, calls):
        """Of each call perf has the begin and the end, and of the next one in the thread neither."""
        if self.how != "record":
            return
        threads = collections.defaultdict(list)
        for call in calls:
            threads[call.pid, call.tid].append((round(call.start * 1000), round(call.end * 1000), call.entry_only))
        apart = []
        for (pid, tid), spans in threads.items():
            begins, ends = sorted(self.times[pid, tid, function]), sorted(self.times[pid, tid, function + "__return"])
            assert len(spans) == len(begins) == len(ends), (function, pid, tid, len(spans), len(begins), len(ends))
            before = 0
            for (start, end, entry_only), begin, returned in zip(sorted(spans), begins, ends):
                pairs = [(start, begin)] + ([] if entry_only else [(end, returned)])
                assert before < min(pairs[0]) and max(pairs[0]) <= min(pairs[1:] or [(returned,)])[0], (function, before, pairs)
                before = max(pairs[-1] + (returned,))
                apart += [abs(one - other) for one, other in pairs]
        check_apart(function, apart)


def check_apart(function, apart):
    far = [one for one in apart if one > APART]
    assert len(far) <= STRAY * len(apart) + FEW, "%s: %d of %d times are apart, half of all by %d ns" % (
        function, len(far), len(apart), statistics.median(apart))


class Bpftrace(Second):
    """bpftrace with a uprobe and a uretprobe on each function: calls, values, sums and histograms of durations."""

    tool = "bpftrace"

    def program(self):
        # By number: keys with texts of any length do not pass the verifier.
        return "".join("""
uprobe:%(path)s:%(name)s { @calls[%(number)d, pid] = count(); @begin%(number)d[tid] = nsecs; }
uretprobe:%(path)s:%(name)s /@begin%(number)d[tid]/ {
    $time = nsecs - @begin%(number)d[tid];
    delete(@begin%(number)d[tid]);
    @returns[%(number)d, pid] = count();
    @values[%(number)d, pid, (int32)retval] = count();
    @sums[%(number)d] = sum($time);
    @times[%(number)d] = hist($time);
}""" % {"path": path, "name": name, "number": self.functions.index(plain(name))} for name, path in self.paths.items())

    def prepare(self):
        if not shutil.which("bpftrace"):
            raise Skip("bpftrace is not installed")

    def attach(self, pid):
        """BEGIN comes before the probes are attached."""
        self.process = Process(["bpftrace", "-f", "json", "-e", self.program()],
                               env={**os.environ, "__BPFTRACE_NOTIFY_PROBES_ATTACHED": "1"})
        self.process.wait_line("stderr", "__BPFTRACE_NOTIFY_PROBES_ATTACHED")

    def end(self):
        # It heeds a signal only if that interrupts its waiting.
        for _ in range(int(TIMEOUT / 5)):
            self.process.signal(2)
            if wait_end(self.process.child, 5):
                break
        assert self.process.wait() == 0, self.process.stderr
        self.maps = {"@calls": {}, "@returns": {}, "@values": {}, "@sums": {}, "@times": {}}
        for line in self.process.stdout.splitlines():
            document = json.loads(line) if line.startswith("{") else {}
            if document.get("type") in ("map", "hist"):
                self.maps.update(document["data"])

    def counted(self):
        counts = []
        for map_name in ("@calls", "@returns"):
            keys = [(tuple(map(int, key.split(","))), count) for key, count in self.maps[map_name].items()]
            counts.append(collections.Counter({(pid, self.functions[number]): count for (number, pid), count in keys}))
        same(*counts, "calls and returns")
        return counts[0]

    def check_times(self, function, calls):
        calls = [call for call in calls if not call.entry_only]
        if not calls:
            return
        number = str(self.functions.index(function))
        if all(call.status is not None for call in calls):
            values = {key: count for key, count in self.maps["@values"].items() if key.startswith(number + ",")}
            same(collections.Counter("%s,%d,%d" % (number, call.pid, call.status) for call in calls), values, "values returned")
        durations = [round(call.duration * 1000) for call in calls]
        strays = STRAY * len(durations) + FEW
        below = 0
        for bucket in self.maps["@times"][number]:
            # As many are below its begin, but for those that may be so far away on either side.
            least = sum(one < bucket["min"] - APART for one in durations)
            most = sum(one < bucket["min"] + APART for one in durations)
            assert least - strays <= below <= most + strays, "%s: %d of %d below %d ns, recorded %d to %d" % (
                function, below, len(durations), bucket["min"], least, most)
            below += bucket["count"]
        assert below == len(durations), (below, len(durations))
        # Whoever has lost its CPU between two probes waits for a turn of others.
        bound = APART * len(durations) + strays * 20e6 * SLOW
        assert abs(sum(durations) - self.maps["@sums"][number]) <= bound, "%s: %d ns recorded, %d by bpftrace, of %d calls" % (
            function, sum(durations), self.maps["@sums"][number], len(durations))


KINDS = {"perf": Perf, "bpftrace": Bpftrace}
