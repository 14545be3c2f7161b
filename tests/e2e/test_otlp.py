# SPDX-License-Identifier: BSD-2-Clause
"""xputrace agent --otlp: what a server gets, as OpenTelemetry's own messages read it, against what workloads did; servers that are down,
busy, wrong or gone."""

import base64
import bisect
import collections
import contextlib
import gzip
import http.server
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import threading
import time

import python_root
from harness import BUILD, ROOT, XPUTRACE, Process, Skip, cases, need, run, scratch, standin, wait_until
from reports import DRIFT, wall_clock
from test_agent import free_port, made_programs, open_line, query, watching
from test_top import failures

MESSAGES = os.path.join(BUILD, "npm-otlp/node_modules/@opentelemetry/otlp-transformer/build/src/generated/root.js")
PROTOBUF, JSON = "application/x-protobuf", "application/json"
SUFFIXES = {"s": "_seconds", "By": "_bytes", "J": "_joules", "Hz": "_hertz"}

Point = collections.namedtuple("Point", "attributes start time value count buckets bounds exemplars")
Metric = collections.namedtuple("Metric", "kind unit monotonic points")


# ---- a server ----

class Server:
    """Answers requests with the script's entries, one after the other, and all further ones with 200. An entry is a status, with headers
    and a body where it needs them, or "cut": the connection ends without an answer."""

    def __init__(self, *script, port=0, context=None, hold=None):
        self.script = list(script)
        self.requests = []  # path, headers, body, status, when it came
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if hold:
                    hold.wait()
                status, headers, answer = server.next()
                server.requests.append((self.path, dict(self.headers), body, status, time.monotonic()))
                if status == "cut":
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in {"Content-Length": len(answer), "Content-Type": self.headers["Content-Type"], **headers}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(answer)

            def handle(self):
                with contextlib.suppress(OSError):  # who has been answered may go without a word
                    super().handle()

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.http.daemon_threads = True
        if context:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = "%s://127.0.0.1:%d" % ("https" if context else "http", self.http.server_address[1])
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def next(self):
        entry = self.script.pop(0) if self.script else 200
        return (entry, {}, b"") if isinstance(entry, int | str) else (*entry, b"")[:3]

    def accepted(self, signal="metrics"):
        return [request for request in list(self.requests) if request[3] == 200 and signal in request[0]]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


def environment(**settings):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return {**kept, **{"OTEL_" + name: value for name, value in settings.items()}}


# ---- what it got ----

def decode(requests, signal="metrics"):
    """The messages of requests of one kind: those in protobuf read by OpenTelemetry's own ones."""
    folder, messages, packed = scratch(passing=True), [None] * len(requests), {}
    for number, (_, headers, body, _, _) in enumerate(requests):
        if headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if headers["Content-Type"] == JSON:
            messages[number] = json.loads(body)
            continue
        assert headers["Content-Type"] == PROTOBUF, headers
        packed[number] = os.path.join(folder, str(number))
        with open(packed[number], "wb") as file:
            file.write(body)
    if packed:
        if not os.path.exists(MESSAGES):
            raise Skip("npm has not fetched OpenTelemetry's messages: `make npm-releases`")
        result = run(["node", os.path.join(ROOT, "tests/workload/otlp/decode.mjs"), signal, MESSAGES, *packed.values()])
        assert result.status == 0, result.stderr
        for number, line in zip(packed, result.stdout.splitlines(), strict=True):
            messages[number] = json.loads(line)
    return messages


def pairs(listed):
    found = {one["key"]: one["value"]["stringValue"] for one in listed}
    assert len(found) == len(listed), listed
    return found


def point_of(point):
    count, bounds, positive = point.get("count"), point.get("explicitBounds", []), point.get("positive", point)
    buckets = [int(one) for one in positive.get("bucketCounts", [])]
    if "scale" in point:  # number i ends at base ** (i + 1)
        base = 2 ** 2 ** -point["scale"]
        bounds, buckets = [base ** (positive["offset"] + i) for i in range(len(buckets) + 1)], [0, *buckets, 0]
    assert count is None or int(count) == sum(buckets), point
    start, when = int(point.get("startTimeUnixNano", 0)), int(point["timeUnixNano"])
    assert start <= when, point
    return Point(pairs(point["attributes"]), start, when, point["sum"] if count is not None else point["asDouble"],
                 None if count is None else int(count), buckets, bounds, point.get("exemplars", []))


def metrics_of(message):
    """Resource, and metrics by name."""
    (resource,), found = message["resourceMetrics"], {}
    (scope,) = resource["scopeMetrics"]
    assert scope["scope"]["name"] == "xputrace" and scope["scope"]["version"]
    for metric in scope["metrics"]:
        kind, = {"sum", "gauge", "histogram", "exponentialHistogram"} & set(metric)
        data = metric[kind]
        assert metric["name"] not in found and metric["description"] and data["dataPoints"], metric
        assert kind == "gauge" or data["aggregationTemporality"] == 2, metric
        found[metric["name"]] = Metric(kind, metric.get("unit", ""), data.get("isMonotonic"), [point_of(one) for one in data["dataPoints"]])
    return pairs(resource["resource"]["attributes"]), found


def latest(server):
    """The metrics that came last."""
    return metrics_of(decode(server.accepted()[-1:])[0])[1]


def sums(metrics, name, key="xputrace.program"):
    found = collections.Counter()
    for point in metrics[name].points if name in metrics else []:
        found[point.attributes.get(key, "")] += point.value if point.count is None else point.count
    return dict(found)


def count_points(messages):
    return sum(len(metric.points) for message in messages for metric in metrics_of(message)[1].values())


def prometheus_name(name, metric):
    """As Prometheus' receiver, and the collector's exporter for it, call it."""
    name = name.replace(".", "_") + SUFFIXES.get(metric.unit, "_ratio" if metric.unit == "1" and metric.kind == "gauge" else "")
    return name + ("_total" if metric.monotonic else "")


@contextlib.contextmanager
def pushing(server, *options, settings=None, pids=(), url=None):
    with watching("--otlp", url or server.url, "--budget", "none", *options, pids=pids, env=environment(**(settings or {}))) as agent:
        yield agent


# ---- figures ----

@cases("protobuf", "json", "gzip", "exponential", "exponential json")
def test_counts(case):
    """Inferences, errors, durations; names, units, times; what /metrics has under the names that a Prometheus makes of these."""
    settings = {"RESOURCE_ATTRIBUTES": "deployment.environment.name=a%20b, host.name=given", "SERVICE_NAME": "mine"}
    if "json" in case:
        settings["EXPORTER_OTLP_PROTOCOL"] = "http/json"
    elif case == "gzip":
        settings.update(EXPORTER_OTLP_COMPRESSION="none", EXPORTER_OTLP_METRICS_COMPRESSION="gzip")
    if "exponential" in case:
        settings["EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"] = "base2_exponential_bucket_histogram"
    workload = standin("nrt", "--calls", 150, "--threads", 2, "--fail-every", 7, "--rate", 300)
    began = time.time_ns()
    with Server() as server, pushing(server, settings=settings, pids=[workload.pid]) as agent:
        workload.go()
        results = workload.results()
        made = made_programs(results)
        wait_until(lambda: server.accepted() and sums(latest(server), "xputrace.inferences") == made, "all inferences came")
        resource, metrics = metrics_of(decode(server.accepted()[-1:])[0])
        path, headers, _, _, _ = server.accepted()[-1]
        assert path == "/v1/metrics" and headers["Content-Type"] == (JSON if "json" in case else PROTOBUF), headers
        assert headers.get("Content-Encoding") == ("gzip" if case == "gzip" else None)
        assert resource["service.name"] == "mine" and resource["host.name"] == "given", resource
        assert resource["deployment.environment.name"] == "a b" and resource["os.type"] == "linux", resource
        assert resource["service.instance.id"] == os.uname().nodename and resource["service.version"], resource
        assert sums(metrics, "xputrace.inference.errors") == dict(failures(results))
        assert sums(metrics, "xputrace.inference.duration") == made
        check_metrics(metrics, began, "exponentialHistogram" if "exponential" in case else "histogram")
        check_exemplars(metrics["xputrace.inference.duration"], made, workload.pid)
        text = {name for name in agent.samples() if not name.endswith(("_bucket", "_sum", "_count"))}
        names = {prometheus_name(name, metric) for name, metric in metrics.items() if not metric.kind.endswith("istogram")}
        assert names == text, names ^ text
    assert "xputrace.inference.duration" in metrics and not agent.stderr.count("warning"), agent.stderr


def check_exemplars(duration, made, pid):
    """Each program's slowest one of an interval: an inference that there was, in a bucket that has some."""
    for point in duration.points:
        one, = point.exemplars
        attributes = pairs(one["filteredAttributes"])
        assert set(attributes) == {"xputrace.inference", "process.pid"} and attributes["process.pid"] == str(pid), one
        assert int(attributes["xputrace.inference"]) < made[point.attributes["xputrace.program"]], one
        assert point.start < int(one["timeUnixNano"]) < point.time and 0 < one["asDouble"] <= point.value, (one, point)
        assert point.buckets[bisect.bisect_left(point.bounds, one["asDouble"])], (one, point)


def spans_of(message):
    (resource,) = message["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    assert pairs(resource["resource"]["attributes"])["service.name"] == "xputrace" and scope["scope"]["name"] == "xputrace", message
    return scope["spans"]


def as_hex(field, case):
    return field if case == "json" else base64.b64decode(field).hex()


@cases("protobuf", "json")
def test_traces(case):
    """The slowest inferences as spans, with the times that the workload has logged of them; the exemplars of all formats refer to them."""
    workload = standin("nrt", "--calls", 90, "--threads", 1, "--programs", 1, "--rate", 100, "--log-times")
    settings = {"EXPORTER_OTLP_TRACES_PROTOCOL": "http/json", "EXPORTER_OTLP_METRICS_PROTOCOL": "http/json"} if case == "json" else {}
    with Server() as server, pushing(server, "--otlp-traces", "1us", "--interval", "300ms", settings=settings, pids=[workload.pid]) as agent:
        offset = wall_clock()
        workload.go()
        result, = workload.results()
        made = made_programs([result])
        wait_until(lambda: server.accepted() and sums(latest(server), "xputrace.inferences") == made, "all inferences came")
        openmetrics = agent.get(headers="Accept: application/openmetrics-text\r\n")[1]
        spans = [span for message in decode(server.accepted("traces"), "trace") for span in spans_of(message)]
        exemplars = {as_hex(one["spanId"], case): (as_hex(one["traceId"], case), one)
                     for message in decode(server.accepted()) if "xputrace.inference.duration" in metrics_of(message)[1]
                     for point in metrics_of(message)[1]["xputrace.inference.duration"].points for one in point.exemplars}
        samples = agent.samples()
        assert samples["xputrace_agent_otlp_sent_spans_total"][0][1] == len(spans) > len(made), (samples, len(spans))
    assert {span["name"] for span in spans} == set(made), spans
    for span in spans:
        start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        trace, exemplar = exemplars.pop(as_hex(span["spanId"], case))
        assert trace == as_hex(span["traceId"], case) and int(exemplar["timeUnixNano"]) == end, (span, exemplar)
        attributes = pairs(span["attributes"])
        assert attributes["xputrace.program"] == span["name"] and attributes["process.pid"] == str(workload.pid), span
        assert attributes["process.executable.name"] == "workload" and span["kind"] == 1, span
        number = int(attributes["xputrace.inference"])
        assert result["times"][number] + offset - DRIFT < start < end < result["ends"][number] + offset + DRIFT, (span, number)
    assert not exemplars, exemplars
    assert len(set(re.findall(r'trace_id="([0-9a-f]{32})",span_id="[0-9a-f]{16}"', openmetrics))) == len(made), openmetrics


def test_traces_of_slow_ones_only():
    """Faster inferences have no spans, and exemplars without IDs; it says where spans would go, and refuses to send them nowhere."""
    workload = standin("nrt", "--calls", 40, "--rate", 200)
    with Server() as server, pushing(server, "--otlp-traces", "1h", pids=[workload.pid]) as agent:
        workload.go()
        made = made_programs(workload.results())
        wait_until(lambda: server.accepted() and sums(latest(server), "xputrace.inferences") == made, "all inferences came")
        assert not server.accepted("traces") and "trace_id" not in agent.get(headers="Accept: application/openmetrics-text\r\n")[1]
        assert "spans are sent to %s/v1/traces" % server.url in agent.stderr, agent.stderr
    refused = run([XPUTRACE, "agent", "--otlp-traces", "1ms"], env=environment(EXPORTER_OTLP_METRICS_ENDPOINT="http://127.0.0.1:1"))
    assert refused.status == 2 and "--otlp-traces requires --otlp URL" in refused.stderr, refused


def test_traces_go_nowhere():
    """A server that takes no spans gets all metrics: what it refuses is dropped, reported and counted."""
    workload = standin("nrt", "--calls", 40, "--rate", 200)
    with Server() as server, Server(*[404] * 100) as other:
        settings = {"EXPORTER_OTLP_TRACES_ENDPOINT": other.url + "/spans", "EXPORTER_OTLP_ENDPOINT": server.url}
        with watching("--otlp-traces", "1us", "--budget", "none", pids=[workload.pid], env=environment(**settings)) as agent:
            workload.go()
            made = made_programs(workload.results())
            wait_until(lambda: server.accepted() and sums(latest(server), "xputrace.inferences") == made, "all inferences came")
            wait_until(lambda: {path for path, *_ in other.requests} == {"/spans"}, "spans are tried")
            refused = sum(len(spans_of(message)) for message in decode(other.requests, "trace"))
            wait_until(lambda: own(latest(server), "dropped.spans", cause="refused") == refused, "counted")
            assert agent.stderr.count("spans for %s/spans: the server answers 404" % other.url) == 1, agent.stderr
            assert own(latest(server), "dropped.points") == 0 and not server.accepted("traces")


def check_metrics(metrics, began, kind):
    duration = metrics["xputrace.inference.duration"]
    assert duration.kind == kind and duration.unit == "s", duration
    assert metrics["xputrace.inferences"][:3] == ("sum", "{inference}", True)
    assert metrics["xputrace.process.resident_memory"][:2] == ("gauge", "By")
    for name, metric in metrics.items():
        for point in metric.points:
            assert began < point.time < time.time_ns() and (metric.kind == "gauge" or began < point.start < point.time), (name, point)
            assert len(point.bounds) == max(len(point.buckets) - 1, 0) and list(point.bounds) == sorted(point.bounds), point
            assert not {key for key in point.attributes if "pid" in key or "address" in key}, point
    for point in metrics["xputrace.inferences"].points:
        assert set(point.attributes) == {"xputrace.program", "xputrace.runtime", "process.executable.name"}, point
        assert point.attributes["process.executable.name"] == "workload", point


# ---- servers ----

def own(metrics, name, **wanted):
    """A counter of the agent about its sending."""
    return sum(point.value for point in metrics["xputrace.agent.otlp." + name].points
               if all(point.attributes.get("xputrace." + key) == value for key, value in wanted.items()))


def wait_all_counted(server, **dropped):
    """Until a message says that all before it have come, as they have."""
    def counted():
        messages = decode(server.accepted())
        for number, message in enumerate(messages):
            metrics = metrics_of(message)[1]
            if number and own(metrics, "sent.points") == count_points(messages[:number]) and \
                    all(own(metrics, "dropped.points", cause=cause) >= least for cause, least in dropped.items()):
                return metrics
        return None

    wait_until(counted, "what was sent is what came")
    return counted()


def test_retries():
    """Busy for some requests, and gone during others: the same body comes again, and nothing is lost."""
    script = [503, (429, {"Retry-After": "1"}), "cut", 502]
    with Server(*script) as server, pushing(server) as agent:
        wait_until(lambda: len(server.accepted()) > 2, "accepted")
        tried = server.requests[:len(script) + 1]
        assert len({body for _, _, body, _, _ in tried}) == 1, "another body came before the first one was accepted"
        assert tried[2][4] - tried[1][4] >= 1, "Retry-After"
        metrics = wait_all_counted(server)
        assert own(metrics, "dropped.points") == 0 and own(metrics, "retries") >= len(script) - 1, metrics  # curl itself may repeat one
        assert agent.stderr.count("cannot send metrics to %s/v1/metrics: the server answers 503" % server.url) == 1, agent.stderr
        assert agent.stderr.count("metrics are sent again") == 1, agent.stderr


def test_down():
    """Nobody listens when it starts: what was counted meanwhile comes when somebody does, from the first interval on."""
    port = free_port()
    workload = standin("nrt", "--calls", 50, "--rate", 200)
    with pushing(None, url="http://127.0.0.1:%d" % port, pids=[workload.pid]) as agent:
        agent.wait_line("stderr", "cannot send metrics")
        workload.go()
        made = made_programs(workload.results())
        before = time.time_ns()
        with Server(port=port) as server:
            wait_until(lambda: server.accepted() and sums(latest(server), "xputrace.inferences") == made, "all inferences came")
            metrics = wait_all_counted(server)
            first = metrics_of(decode(server.accepted()[:1])[0])[1]
            assert first["xputrace.calls"].points[0].time < before and own(first, "sent.points") == 0
            assert own(metrics, "dropped.points") == 0


def test_queue_full():
    """The oldest are dropped and counted when there is no room, which is reported once; what fits comes."""
    port = free_port()
    with pushing(None, "--otlp-queue", "64K", "--interval", "100ms", url="http://127.0.0.1:%d" % port) as agent:
        agent.wait_line("stderr", "the queue (--otlp-queue) is full")
        samples = agent.samples()
        assert samples["xputrace_agent_otlp_queue_bytes"][0][1] <= 65536, samples
        wait_until(lambda: sum(value for labels, value in agent.samples()["xputrace_agent_otlp_dropped_points_total"]
                               if labels["cause"] == "queue_full") > 200, "more is dropped")
        with Server(port=port) as server:
            wait_all_counted(server, queue_full=200)
        assert agent.stderr.count("is full; they are dropped, and counted") == 1, agent.stderr
        assert agent.stderr.count("cannot send") == 1, agent.stderr


def test_refused():
    """What a server never wants is not sent again; what it rejects of a request is counted; nothing follows a redirect."""
    rejected = b"\x0a\x0b\x08\x03\x12\x07too old"
    status = b"\x08\x03\x12\x0cwrong\x1b[1mkey"
    with Server((400, {}, status), (307, {"Location": "/elsewhere"}), 500, (200, {}, rejected), (200, {}, b"x" * 200000)) as server, \
            pushing(server) as agent:
        wait_until(lambda: len(server.requests) > 6, "requests")
        bodies = [body for _, _, body, _, _ in server.requests]
        assert len(set(bodies)) == len(bodies) and {path for path, *_ in server.requests} == {"/v1/metrics"}
        refused = count_points(decode(server.requests[:3]))
        wait_until(lambda: own(latest(server), "dropped.points", cause="rejected"), "counted")
        metrics = latest(server)
        assert own(metrics, "dropped.points", cause="refused") == refused and own(metrics, "dropped.points", cause="rejected") == 3
        assert own(metrics, "retries") == 0
        assert "the server answers 400, wrong\\x1b[1mkey; they are dropped" in agent.stderr, agent.stderr
        assert agent.stderr.count("they are dropped") == 2 and "too old" in agent.stderr, agent.stderr


def test_end():
    """The last values come when it ends; a server that is down, or does not answer, does not hold it up."""
    workload = standin("nrt", "--calls", 40, "--rate", 200)
    with Server() as server:
        with pushing(server, "--interval", "1h", pids=[workload.pid]):
            workload.go()
            made = made_programs(workload.results())
        assert len(server.requests) == 1 and sums(latest(server), "xputrace.inferences") == made
    released = threading.Event()
    with Server(hold=released) as server:
        with pushing(server, settings={"EXPORTER_OTLP_TIMEOUT": "600000"}) as agent:
            threads = "/proc/%d/task" % agent.pid
            thread, = [one for one in os.listdir(threads) if open_line(os.path.join(threads, one, "status"), "Name:") == "xpt-otlp"]
            assert int(open_line(os.path.join(threads, thread, "status"), "CapEff:"), 16) == 0
            wait_until(lambda: agent.samples()["xputrace_agent_otlp_queue_bytes"][0][1] > 10000, "some wait")
        released.set()
        assert "data points that were not sent in time are dropped" in agent.stderr, agent.stderr
    with pushing(None, url="http://127.0.0.1:%d" % free_port()) as agent:
        agent.wait_line("stderr", "cannot send metrics")
    assert "data points that were not sent in time are dropped" in agent.stderr, agent.stderr


# ---- a real server ----

def test_victoria_metrics():
    """VictoriaMetrics of Debian's next release: what it answers is what the workload did, under the names that /metrics has."""
    port = free_port()
    server = Process(python_root.direct("-storageDataPath", os.path.join(scratch(), "data"), "-httpListenAddr", "127.0.0.1:%d" % port,
                                        "-opentelemetry.usePrometheusNaming", "-search.latencyOffset=0s", "-search.disableCache",
                                        program="victoria-metrics", folder=os.path.join(BUILD, "victoria-metrics")))
    wait_until(lambda: query(port, "vector(1)"), "it answers")
    workload = standin("nrt", "--calls", 200, "--threads", 2, "--rate", 200)
    with pushing(None, url="http://127.0.0.1:%d/opentelemetry" % port, pids=[workload.pid],
                 settings={"EXPORTER_OTLP_COMPRESSION": "gzip"}) as agent:
        workload.go()
        made = made_programs(workload.results())

        def stored(name):
            return {one["metric"]["xputrace_program"]: float(one["value"][1]) for one in query(port, name)}

        wait_until(lambda: stored("xputrace_inferences_total") == made, "stored: %s" % made)
        wait_until(lambda: stored("xputrace_inference_duration_seconds_count") == made, "durations: %s" % made)
        found = query(port, "histogram_quantile(0.5, sum by (le) (xputrace_inference_duration_seconds_bucket))")
        assert 0 < float(found[0]["value"][1]) < 10, found
        labels = query(port, "xputrace_inferences_total")[0]["metric"]
        assert labels["service_name"] == "xputrace" and labels["host_name"] == os.uname().nodename, labels
        names = {one["metric"]["__name__"] for one in query(port, '{service_name="xputrace"}')}
        assert names == set(agent.samples()), names ^ set(agent.samples())
        assert "cannot send" not in agent.stderr and "dropped" not in agent.stderr, agent.stderr
    server.signal(signal.SIGTERM)
    server.wait()


# ---- settings ----

def openssl(folder, *words):
    result = subprocess.run(["openssl", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert result.returncode == 0, result.stdout


def make_certificates():
    """Of an authority, and of a server and a client that it has signed."""
    if not shutil.which("openssl"):
        raise Skip("openssl is not there")
    folder = scratch()
    options = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    openssl(folder, "req", "-x509", *options, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=tests")
    for name in ("server", "client"):
        openssl(folder, "req", "-x509", "-CA", "ca.pem", "-CAkey", "ca.key", *options, "-keyout", name + ".key", "-out", name + ".pem",
                "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE")
    return folder


def test_https():
    """A certificate that nobody trusts is refused; one of the given authority is not, and the client shows its own; nothing secret is
    printed."""
    folder = make_certificates()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "server.pem"), os.path.join(folder, "server.key"))
    with Server(context=context) as server, pushing(server) as agent:
        assert "certificate" in agent.wait_line("stderr", "cannot send metrics"), agent.stderr
        assert not server.requests
    context.load_verify_locations(os.path.join(folder, "ca.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    settings = {"EXPORTER_OTLP_CERTIFICATE": os.path.join(folder, "ca.pem"),
                "EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE": os.path.join(folder, "client.pem"),
                "EXPORTER_OTLP_CLIENT_KEY": os.path.join(folder, "client.key"),
                "EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20s3cret,X-Scope= a "}
    with Server(context=context) as server:
        url = server.url.replace("://", "://name:passw0rd@") + "/base/?key=t0ken"
        with pushing(server, "-v", settings=settings, url=url) as agent:
            wait_until(server.accepted, "accepted")
            path, headers, _, _, _ = server.accepted()[0]
            assert path == "/base/v1/metrics?key=t0ken" and headers["Authorization"] == "Bearer s3cret", headers
            assert headers["X-Scope"] == "a" and headers["User-Agent"].startswith("xputrace/"), headers
        assert server.url + "/base/v1/metrics\n" in agent.stderr, agent.stderr
        assert not [word for word in ("s3cret", "passw0rd", "t0ken", "name:") if word in agent.stderr], agent.stderr


def test_settings():
    """Variables as OpenTelemetry's specification has them: that of metrics is used as it is, and counts more; wrong ones are ignored."""
    wrong = {"EXPORTER_OTLP_PROTOCOL": "grpc", "EXPORTER_OTLP_TIMEOUT": "soon", "EXPORTER_OTLP_COMPRESSION": "br",
             "EXPORTER_OTLP_HEADERS": "a=s3cret%0aX: 1", "RESOURCE_ATTRIBUTES": "s3cret"}
    with Server() as server:
        for settings, path in (({"EXPORTER_OTLP_ENDPOINT": server.url + "/a"}, "/a/v1/metrics"),
                               ({"EXPORTER_OTLP_ENDPOINT": server.url + "/a", "EXPORTER_OTLP_METRICS_ENDPOINT": server.url + "/b", **wrong},
                                "/b")):
            server.requests.clear()
            done = run([need(XPUTRACE, "collector"), "agent", "--listen", "none", "--duration", "1ms", "-p", str(os.getpid())],
                       env=environment(**settings))
            assert done.status == 0 and [request[0] for request in server.requests] == [path], (done.stderr, server.requests)
        for name in wrong:
            assert "warning: OTEL_%s is ignored: expected " % name in done.stderr, done.stderr
        assert "s3cret" not in done.stderr and "X" not in server.requests[0][1], done.stderr
    for options, settings, text in ((["--otlp", "nowhere"], {}, "expected a URL that begins with http:// or https://"),
                                    (["--otlp", "ftp://x"], {}, "expected a URL"), (["--otlp-queue", "1"], {}, "--otlp-queue"),
                                    ([], {"EXPORTER_OTLP_ENDPOINT": "localhost:4317"}, "OTEL_EXPORTER_OTLP_ENDPOINT: expected a URL"),
                                    (["--listen", "none"], {"EXPORTER_OTLP_ENDPOINT": ""}, "requires --textfile FILE.prom or --otlp URL")):
        done = run([XPUTRACE, "agent", *options], env=environment(**settings))
        assert done.status == 2 and text in done.stderr, (options, done.stderr)
