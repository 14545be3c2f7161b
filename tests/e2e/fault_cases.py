# SPDX-License-Identifier: BSD-2-Clause
"""Commands whose faults are tested."""

import contextlib
import gzip
import json
import os
import re
import socket
import sqlite3
import subprocess
import time

import faults
import harm
import harness
import test_agent
import test_otlp
from faults import TIME_LIMIT, Case, finished, outcome_of
from operator_toy import description, toy

WAITING = ["--wait-limit", "10s"]  # what is made is complete however busy the machine is
_made = {}


def once(function):
    """Made when it is needed for the first time."""
    def get():
        if function not in _made:
            _made[function] = function()
        return _made[function]
    return get


def read(path):
    with open(path, "rb") as file:
        return file.read()


def read_rows(path):
    """Of a database: where SQLite has less memory it analyses tables in another order."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        return "\n".join(sorted(database.iterdump()))


# ---- without root ----

@once
def recording():
    """Operators, launches and kernels, names, code objects."""
    path = os.path.join(harness.scratch(), "made.xpt")
    words = [harness.XPUTRACE, "record", "-q", "--ops", "--codeobj", "-r", description(), "-o", path, "--"] + toy("2gr(3gl)s", 3, 2)
    subprocess.run(words, check=True, capture_output=True)
    return path


@once
def trace():
    path = os.path.join(harness.scratch(), "made.json")
    subprocess.run([harness.XPUTRACE, "report", "-q", recording(), "-o", path], check=True, capture_output=True)
    return path


@once
def profiler_trace():
    """As PyTorch's profiler writes, of the same time."""
    path = os.path.join(harness.scratch(), "kineto.json")
    with open(trace(), encoding="utf-8") as file:
        clock = json.load(file)["metadata"]["clock"]
    begin = int(clock["realtime_ns"]) // 1000
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 2, "ts": 10 * number, "dur": 5,
               "args": {"External id": number}} for number in range(20)]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schemaVersion": 1, "baseTimeNanoseconds": begin * 1000, "displayTimeUnit": "ms", "traceEvents": events}, file)
    return path


def writes(words, output, environment, option="-o"):
    """One file, in a new folder."""
    path = os.path.join(harness.scratch(passing=True), output)

    def made(stdout):
        stdout = re.sub(rb'"time":"[^"]*"', b"", stdout)  # of a summary
        return {"stdout": stdout.replace(path.encode(), b"FILE"), "file": contents(path)}
    contents = read_rows if output.endswith(".db") and environment["FAULTS_KIND"] == "memory" else read
    return finished(words + [option, path], environment, made)


for name, output, *format_words in (("", "trace.json"), ("_ort", "trace.json", "--format", "ort"), ("_csv", "trace.csv", "--format", "qnn-csv"),
                                    ("_perfetto", "trace.pftrace"), ("_html", "page.html"), ("_sqlite", "trace.db"),
                                    ("_inferences", "latency.csv", "--format", "csv"), ("_json", "trace.json", "--summary-json", "-")):
    Case("report" + name, lambda environment, words=format_words, output=output: writes(["report", recording(), *words], output, environment),
         root=False)


@once
def studied():
    """As short as it can be, with operators of several inferences."""
    path = os.path.join(harness.scratch(), "studied.xpt")
    words = [harness.XPUTRACE, "record", "-q", "--ops", "-r", description(), "-o", path, "--"] + toy("2gr", 4, 1)
    subprocess.run(words, check=True, capture_output=True)
    return path


def study(words, environment):
    """The document, but for when it was made."""
    def made(stdout):
        document = json.loads(stdout)
        return {name: value for name, value in document.items() if name != "time"}
    return finished(words + ["--json", "-"], environment, made)


Case("explain_text", lambda environment: finished(["explain", studied()], environment), root=False)
Case("diff_html", lambda environment: writes(["diff", "-q", studied(), studied()], "page.html", environment, "--html"), root=False)
Case("explain", lambda environment: study(["explain", studied()], environment), root=False)
Case("diff", lambda environment: study(["diff", studied(), studied()], environment), root=False)
Case("merge", lambda environment: writes(["merge", trace(), profiler_trace()], "both.json", environment), root=False)


@once
def target():
    """A process that waits."""
    workload = harness.standin("hip", "--load-first", "--linger")
    harness.Process.running.remove(workload)  # lives as long as all tests
    return workload


for what in ("runtimes", "drivers"):
    Case("list_" + what, lambda environment, what=what: finished(["list", what], environment), root=False)
# What a driver answers in sysfs is its own affair, and to be read it need not be.
Case("list_counters", lambda environment: finished(["list", "counters"], environment), root=False, calls="openat")
for what in ("runtimes", "sites"):
    Case("list_%s_pid" % what, lambda environment, what=what: finished(["list", what, "-p", target().pid], environment))
Case("list_operators", lambda environment: finished(
    ["list", "operators", "-r", description(), "-f", harness.workload_path("operators/libtoy.so")], environment), root=False)


def check(environment):
    """Why something is missing is its output."""
    said = []
    outcome = finished(["check"], environment, said=said)
    return outcome._replace(stderr=outcome.stderr + "".join("xputrace: %s\n" % line for line in said[0].decode().splitlines()))


Case("check", check)


# ---- tracing ----

class Attached:
    """A collector of a workload that goes on once it has attached; made: from what the workload says."""

    def __init__(self, environment, runtime, words, line="attached", stop=False, options=("--calls", "20")):
        self.folder = harness.scratch(passing=True)
        self.workload = harness.standin(runtime, *options)
        words = [str(word).replace("PID", str(self.workload.pid)).replace("FOLDER", self.folder) for word in words + WAITING]
        self.process = harness.Process([harness.XPUTRACE] + words, env=environment)
        self.line, self.stop = line, stop

    def wait_attached(self):
        deadline = time.monotonic() + TIME_LIMIT
        while self.process.child.poll() is None and self.line not in self.process.stderr and time.monotonic() < deadline:
            time.sleep(0.002)

    def run(self, made, meanwhile=None):
        self.wait_attached()
        faults.held.update(harm.held_by(self.process.pid))
        self.workload.go()
        if meanwhile:
            self.workload.wait_line("stdout", '"runtime"')
            meanwhile(self)
            self.workload.send("\n")
        self.results = self.workload.results()
        status = self.end()
        return outcome_of(status, self.process.stderr, lambda: made(self))

    def end(self):
        if self.stop and self.process.child.poll() is None:
            self.process.signal(2)
        if not harness.wait_end(self.process.child, TIME_LIMIT):
            self.process.kill()
            return None
        return self.process.wait()


def compared(runtime, results, path, totals_in="calls"):
    """The trace of a stand-in is whole."""
    harness.compare(runtime, results, harness.Trace(path), totals_in=totals_in)
    return True


def record(environment):
    return Attached(environment, "nrt", ["record", "-p", "PID", "-o", "FOLDER/t.json"]).run(
        lambda attached: compared("nrt", attached.results, attached.folder + "/t.json"))


def record_codes(environment):
    return Attached(environment, "hip", ["record", "-p", "PID", "--codeobj", "-o", "FOLDER/t.json"]).run(
        lambda attached: compared("hip", attached.results, attached.folder + "/t.json"))


def record_command(environment):
    folder = harness.scratch(passing=True)
    path = os.path.join(folder, "t.json")
    words = ["record", "-o", path, *WAITING, "--", harness.workload_path("workload"), "nrt", "--calls", "20"]
    return finished(words, environment, lambda stdout: compared("nrt", harness.results_in(stdout.decode()), path))


def record_ops(environment):
    path = os.path.join(harness.scratch(passing=True), "t.json")

    def made(_):
        result = harness.Trace(path)
        result.check()
        return sorted((one["name"], one["recorded"]) for one in result.metadata["operators"])
    return finished(["record", "--ops", "-r", description(), "-o", path, *WAITING, "--"] + toy("2gr", 3, 1), environment, made)


def sampled(attached):
    """Every inference is a sample with a row, or counted as lost."""
    figures = re.search(r"(\d+) inferences, (?:(\d+) samples, )?(\d+) lost", attached.process.stderr)
    rows = read(attached.folder + "/l.csv").splitlines()[1:]
    if not figures:  # right only where the write that fails was theirs
        return {"samples and lost": len(rows), "figures": False}
    inferences, samples, lost = map(int, figures.groups(-1))
    if samples < 0:
        samples = int(re.search(r"(\d+) of 10 samples", attached.process.stderr).group(1))
    assert len(rows) == samples, "%d rows of %d samples" % (len(rows), samples)
    return {"inferences": inferences, "samples and lost": samples + lost, "figures": True}


def profile(environment):
    return Attached(environment, "nrt", ["profile", "-p", "PID", "--program", "neuron-0.0", "--samples", "10", "-o", "FOLDER/l.csv"]).run(
        sampled)


def stream(environment):
    return Attached(environment, "nrt", ["stream", "-p", "PID", "--append", "-o", "FOLDER/l.csv"]).run(
        sampled)


def given_by(index, one):
    """Whether a call has given the object; which libraries were mapped before the first look depends on the moment."""
    return any(load.get("function") for load in index["loads"] if load["object"] == one["id"])


def codeobj(environment):
    """What it lacks is in the last line of the list on standard output."""
    folder, said = os.path.join(harness.scratch(passing=True), "codes"), []

    def made(_):
        index = json.loads(read(os.path.join(folder, "index.json")))
        files = {name: len(read(os.path.join(folder, name))) for name in sorted(os.listdir(folder)) if name != "index.json"}
        return {"files": files, "objects": sorted((one["kind"], one.get("sha256", "")) for one in index["objects"] if given_by(index, one))}
    outcome = finished(["codeobj", "-o", folder, *WAITING, "--", harness.workload_path("workload"), "hip", "--calls", "3"], environment, made,
                       said=said)
    lacks = re.findall(r", (\d+ (?:incomplete|lost|not kept for a limit))", said[0].decode())
    return outcome._replace(stderr=outcome.stderr + "".join("\nlost: " + one for one in lacks))


def continuous(environment):
    name = "e2e-faults-%d" % os.getpid()

    def meanwhile(attached):
        attached.saved = harness.run([harness.XPUTRACE, "continuous", "save", "--instance", name])

    def made(attached):
        assert attached.saved.status == 0, attached.saved.stderr
        path = os.path.join(attached.folder, "t.json")
        subprocess.run([harness.XPUTRACE, "report", attached.saved.stdout.strip(), "-q", "-o", path], check=True, capture_output=True)
        return compared("nrt", attached.results, path, "recorded")
    attached = Attached(environment, "nrt", ["continuous", "start", "-p", "PID", "--instance", name, "-o", "FOLDER", "--budget", "none"],
                        "recording into memory", stop=True, options=("--calls", "20", "--linger"))
    outcome = attached.run(made, meanwhile)
    # A save that fails says why to whoever has asked for it.
    return outcome._replace(stderr=outcome.stderr + attached.saved.stderr if outcome.status == 0 else outcome.stderr)


def inspect(environment):
    def made(attached):
        folder, = os.scandir(attached.folder + "/inspected")
        index = json.loads(read(os.path.join(folder, "index.json")))
        assert set(index["files"]) | {"index.json"} == set(os.listdir(folder)), index
        return compared("nrt", attached.results, os.path.join(folder, "trace.json"), "recorded")
    return Attached(environment, "nrt", ["inspect", "-p", "PID", "-o", "FOLDER/inspected"], "recording into memory").run(made)


def agent(environment):
    """What it answers, the file that it writes, what it sends, and what it saves."""
    def meanwhile(attached):
        with contextlib.suppress(AssertionError):
            harness.wait_until(lambda: attached.process.child.poll() is not None or os.listdir(attached.folder + "/saved") or
                               "cannot be saved" in attached.process.stderr, "saved", TIME_LIMIT / 10)
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.settimeout(TIME_LIMIT)
            client.connect(attached.folder + "/socket")
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            while client.recv(1 << 16):
                pass

    def made(attached):
        text = read(attached.folder + "/x.prom").decode()
        sent = test_otlp.metrics_of(json.loads(gzip.decompress(server.accepted()[-1][2])))[1]
        spans = [span for request in server.accepted("traces") for span in test_otlp.spans_of(json.loads(gzip.decompress(request[2])))]
        paths = {one["value"]["stringValue"] for span in spans for one in span["attributes"] if one["key"] == "file.path"}
        programs = test_agent.made_programs(attached.results)
        return {"text": test_agent.by_program(test_agent.parse(text)) == programs, "sent": test_otlp.sums(sent, "xputrace.inferences") == programs,
                "spans": len(spans) > 0, "saved": paths == {one.path for one in os.scandir(attached.folder + "/saved")} and len(paths)}
    with test_otlp.Server() as server:
        settings = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}
        return Attached({**environment, **settings}, "nrt", [
            "agent", "-p", "PID", "--budget", "none", "--interval", "100ms", "--listen", "unix:FOLDER/socket", "--textfile", "FOLDER/x.prom",
            "--otlp", server.url, "--save-on", "latency > 1ns", "--after", "200ms", "--cooldown", "1h", "-o", "FOLDER/saved"],
            "files are saved into", options=("--calls", "20", "--linger")).run(made, meanwhile)


Case("record_pid", record)
Case("inspect", inspect)
Case("agent", agent)
Case("record_codeobj", record_codes)
Case("record_command", record_command, failure=125)
Case("record_ops", record_ops, failure=125)
Case("profile", profile)
Case("stream", stream)
Case("codeobj", codeobj)
Case("continuous", continuous)

NAMES = tuple(Case.all)
