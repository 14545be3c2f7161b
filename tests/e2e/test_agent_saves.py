# SPDX-License-Identifier: BSD-2-Clause
"""xputrace agent --save-on: files of slow inferences, and the spans that name them, against what workloads have logged."""

import contextlib
import os
import shutil
import signal

from harness import XPUTRACE, cases, need, run, scratch, standin, wait_until
from reports import DRIFT, wall_clock
from saved_files import MS, Collector, Saved, executions, executions_in
from test_agent import free_port, made_programs, watching
from test_continuous_on_save import GETS, program
from test_otlp import JSON, Server, as_hex, decode, environment, latest, metrics_of, pairs, pushing, spans_of, sums

SLOW_CALL = 40
TRIGGER = ("--save-on", "latency > 80ms")  # the slow one of tests/workload/standin takes 100 ms longer
FILE = {"file.path", "file.size", "xputrace.save.reason"}


def slow_workload():
    return standin("qaic", "--calls", "0", "--programs", "1", "--rate", "200", "--slow", str(SLOW_CALL), "--log-times")


def figures(agent):
    """The counters of saves: saved, failed, suppressed, bytes."""
    samples = agent.samples()
    return [samples["xputrace_" + name + "_total"][0][1] for name in ("saves", "saves_failed", "saves_suppressed", "saved_bytes")]


def spans_at(server):
    return [span for message in decode(server.accepted("traces"), "trace") for span in spans_of(message)]


def split(span):
    """Attributes that are text, and those of the file: path, size, reason; None: it has none."""
    of_file = {one["key"]: one["value"] for one in span["attributes"] if one["key"] in FILE}
    rest = pairs([one for one in span["attributes"] if one["key"] not in FILE])
    if not of_file:
        return rest, None
    assert set(of_file) == FILE, span
    return rest, (of_file["file.path"]["stringValue"], int(of_file["file.size"]["intValue"]), of_file["xputrace.save.reason"]["stringValue"])


def files(folder):
    return sorted(os.path.join(folder, name) for name in os.listdir(folder))


def check_file(path, log):
    """A recording that has the slow execution; its end."""
    trace = Saved(path).trace
    trace.check()
    found, cause = executions_in(trace, log), log[SLOW_CALL - 1]
    assert cause in found and cause.end - cause.begin >= 100 * MS, (cause, len(found))
    return trace.metadata["tracing"]["stopped_by"]


def is_of(span, cause, offset):
    start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
    return cause.begin + offset - DRIFT < start < end < cause.end + offset + DRIFT


@cases("waits", "there", "json")
def test_slow_inference(case):
    """The inference that met a trigger has a span, with the file that was saved for it, which is made some intervals later or was before;
    others have none without --otlp-traces."""
    folder, settings = os.path.join(scratch(), "saved"), {}
    timing = ("--interval", "1s", "--after", "0") if case == "there" else ("--interval", "100ms", "--after", "700ms")
    if case == "json":
        settings = {"EXPORTER_OTLP_PROTOCOL": "http/json"}
    workload = slow_workload()
    with Server() as server, pushing(server, *TRIGGER, "-o", folder, *timing, settings=settings, pids=[workload.pid]) as agent:
        offset = wall_clock()
        workload.go()
        wait_until(lambda: server.accepted("traces"), "a span came")
        log = executions(workload.stop()[0])
        saved, failed, suppressed, size = figures(agent)
        path, = files(folder)
        assert "files are saved into " + folder in agent.stderr, agent.stderr
    spans = spans_at(server)
    slow = [one for one in log if one.end - one.begin > 80 * MS]  # more than one where the machine is busy
    span, = [one for one in spans if is_of(one, log[SLOW_CALL - 1], offset)]
    assert len(spans) <= len(slow), (spans, slow)
    attributes, file = split(span)
    assert attributes["xputrace.inference"] == str(SLOW_CALL - 1) and attributes["process.pid"] == str(workload.pid), span
    stopped_by = check_file(path, log)
    assert file == (path, os.path.getsize(path), stopped_by.removeprefix("saved, ")) and "latency of" in stopped_by, (file, stopped_by)
    assert (saved, failed, size) == (1, 0, file[1]) and suppressed <= len(slow) - 1, (saved, failed, suppressed, size)
    assert all(message[1]["Content-Type"] == JSON for message in server.accepted()) or case != "json"
    metrics = latest(server)
    assert metrics["xputrace.saves"][:3] == ("sum", "{file}", True) and sums(metrics, "xputrace.saves") == {"": 1}
    assert metrics["xputrace.saves.suppressed"].unit == "{trigger}" and metrics["xputrace.saved"].unit == "By", metrics
    exemplars = [as_hex(one["spanId"], case) for message in decode(server.accepted())
                 if "xputrace.inference.duration" in metrics_of(message)[1]
                 for point in metrics_of(message)[1]["xputrace.inference.duration"].points for one in point.exemplars if "spanId" in one]
    assert as_hex(span["spanId"], case) in exemplars, exemplars


def test_faster_than_saves():
    """With --otlp-traces, spans from the slow one on name the file if they are in it; those before had been sent; none is lost."""
    folder = scratch()
    workload = slow_workload()
    with Server() as server, pushing(server, *TRIGGER, "-o", folder, "--after", "500ms", "--otlp-traces", "1us", "--interval", "100ms",
                                     pids=[workload.pid]) as agent:
        offset = wall_clock()
        workload.go()
        wait_until(lambda: figures(agent)[0], "it is saved")
        path, = files(folder)
        wait_until(lambda: any(split(one)[1] is None for one in spans_at(server)), "spans of later ones came")
        log = executions(workload.stop()[0])
        wait_until(lambda: agent.samples()["xputrace_agent_otlp_sent_spans_total"][0][1] >= 5, "counted")
    spans = sorted(spans_at(server), key=lambda one: int(one["endTimeUnixNano"]))
    exemplars = {as_hex(one["spanId"], "") for message in decode(server.accepted()) if "xputrace.inference.duration" in metrics_of(message)[1]
                 for point in metrics_of(message)[1]["xputrace.inference.duration"].points for one in point.exemplars if "spanId" in one}
    assert {as_hex(one["spanId"], "") for one in spans} == exemplars and len(exemplars) == len(spans)
    inside, cause, named = executions_in(Saved(path).trace, log), log[SLOW_CALL - 1], set()
    for span in spans:
        attributes, file = split(span)
        one = log[int(attributes["xputrace.inference"])]
        assert is_of(span, one, offset), (span, one)
        if file:
            assert one in inside, span
            named.add(one)
        else:
            assert not cause.begin <= one.begin < cause.end + 500 * MS, span
    assert cause in named and len(named) > 2, named


def test_server_is_down():
    """The file is saved all the same, the span comes when there is a server."""
    folder, port = scratch(), free_port()
    workload = slow_workload()
    with pushing(None, *TRIGGER, "-o", folder, "--after", "100ms", url="http://127.0.0.1:%d" % port, pids=[workload.pid]) as agent:
        agent.wait_line("stderr", "cannot send metrics")
        workload.go()
        wait_until(lambda: figures(agent)[0] == 1, "it is saved")
        log = executions(workload.stop()[0])
        path, = files(folder)
        check_file(path, log)
        agent.wait_line("stderr", "cannot send spans")
        with Server(port=port) as server:
            wait_until(lambda: server.accepted("traces"), "the span came")
    span, = [one for one in spans_at(server) if split(one)[0]["xputrace.inference"] == str(SLOW_CALL - 1)]
    assert split(span)[1][0] == path, span


def test_no_file():
    """A file that cannot be written: counted, and the span comes without it; what the limits refuse is counted, too."""
    above = scratch()
    workload = slow_workload()
    with Server() as server, pushing(server, *TRIGGER, "--save-on", "latency > 1us", "-o", os.path.join(above, "saved"), "--after", "300ms",
                                     "--interval", "100ms", "--cooldown", "1h", pids=[workload.pid]) as agent:
        shutil.rmtree(above)
        workload.go()
        wait_until(lambda: figures(agent)[1] == 1, "it has failed")
        wait_until(lambda: figures(agent)[2] > 0, "others are refused")
        agent.wait_line("stderr", "cannot be saved: No such file")
        wait_until(lambda: server.accepted("traces"), "a span came")
        assert figures(agent)[:2] == [0, 1] and figures(agent)[3] == 0
        workload.stop()
    assert all(split(one)[1] is None for one in spans_at(server))


def test_no_spans():
    """OTEL_TRACES_EXPORTER=none, and a server of metrics alone: no spans for triggers, and no complaint."""
    for settings in ({"TRACES_EXPORTER": "none"}, None):
        folder = scratch()
        workload = slow_workload()
        with Server() as server, contextlib.ExitStack() as stack:
            if settings:
                agent = stack.enter_context(pushing(server, *TRIGGER, "-o", folder, "--after", "0", settings=settings, pids=[workload.pid]))
            else:
                only = environment(EXPORTER_OTLP_METRICS_ENDPOINT=server.url + "/v1/metrics")
                agent = stack.enter_context(watching(*TRIGGER, "-o", folder, "--after", "0", "--budget", "none", pids=[workload.pid], env=only))
            workload.go()
            wait_until(lambda: figures(agent)[0] == 1, "it is saved")
            made = made_programs(workload.stop())
            wait_until(lambda: server.accepted() and sums(latest(server), "xputrace.inferences") == made, "all inferences came")
            assert "trace_id" not in agent.get(headers="Accept: application/openmetrics-text\r\n")[1]
            assert "spans are sent" not in agent.stderr and "warning" not in agent.stderr, agent.stderr
        assert not server.accepted("traces")


def test_signal_and_program():
    """SIGUSR2 saves, and the program of --on-save gets the file; both belong to who is told by sudo."""
    place, above = scratch(), scratch()
    folder = os.path.join(above, "saved")
    workload = standin("nrt", "--calls", "20", "--linger")
    caller = {**os.environ, "SUDO_UID": "1234", "SUDO_GID": "4321"}
    os.chown(above, 1234, 4321)
    with watching("--save-on", "error", "-o", folder, "--after", "0", "--on-save", program(GETS, place), pids=[workload.pid], env=caller) as agent:
        workload.go()
        agent.signal(signal.SIGUSR2)
        wait_until(lambda: os.path.exists(os.path.join(place, "ran")), "the program has run")
        with open(os.path.join(place, "ran"), encoding="utf-8") as file:
            number, given, *rest = file.read().split("\0")
        variables = dict(one.split("=", 1) for one in rest if one)
        path, = files(folder)
        assert (number, given) == ("1", path) and variables["XPUTRACE_REASON"] == "signal" and variables["XPUTRACE_INSTANCE"] == "agent"
        assert {(os.stat(one).st_uid, os.stat(one).st_gid) for one in (folder, path)} == {(1234, 4321)}
        assert os.stat(path).st_mode & 0o777 == 0o600
        wait_until(lambda: figures(agent)[0] == 1, "counted")
    workload.kill()


def test_claims():
    """What an agent saves no other recorder does, nor the other way round; an agent that saves nothing disturbs nobody."""
    workload = standin("nrt", "--calls", "20", "--linger")
    with watching("--save-on", "error", "-o", scratch(), pids=[workload.pid]):
        refused = run([need(XPUTRACE, "collector"), "continuous", "start", "-p", str(workload.pid), "-o", scratch()])
        assert refused.status == 1 and "profiled continuously already" in refused.stderr, refused.stderr
        with watching(pids=[workload.pid]):
            pass
    recorder = Collector("-p", workload.pid)
    refused = run([XPUTRACE, "agent", "-p", str(workload.pid), "--listen", "unix:" + os.path.join(scratch(), "s"), "--save-on", "error"])
    assert refused.status == 1 and "profiled continuously already" in refused.stderr, refused.stderr
    with watching(pids=[workload.pid]) as agent:
        assert "xputrace_saves_total" not in agent.samples()
    recorder.stop()
    workload.kill()


def test_options():
    """Refused: a trigger that is none, and options of files without one, but for the directory, which a service gives in any case."""
    for options, text in ((["--save-on", "latency > 20"], "--save-on"), (["--cooldown", "1s"], "require --save-on TRIGGER"),
                          (["--level", "detailed"], "require --save-on TRIGGER"), (["--on-save", "/bin/true"], "require --save-on TRIGGER"),
                          (["--on-save-limit", "5s"], "require --save-on TRIGGER")):
        done = run([XPUTRACE, "agent", *options])
        assert done.status == 2 and text in done.stderr, (options, done.stderr)
    folder = os.path.join(scratch(), "saved")
    done = run([need(XPUTRACE, "collector"), "agent", "-o", folder, "--listen", "unix:" + os.path.join(scratch(), "s"), "--duration", "1ms",
                "-p", str(os.getpid())])
    assert done.status == 0 and not os.path.exists(folder), done.stderr
