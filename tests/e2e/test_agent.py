# SPDX-License-Identifier: BSD-2-Clause
"""xputrace agent: metrics against what workloads say they did; clients that are slow, wrong or gone; a real Prometheus."""

import collections
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import urllib.parse
import urllib.request

from devices import check, covered
from harness import (SLOW, WAITING, XPUTRACE, Process, Skip, Workload, cases, has_tracepoint, need, paired, run, scratch, standin,
                     wait_until, workload_path)
from reports import made_by, write_names
from test_tokens import PATIENT, batches
from test_top import failures

RUNS = "xputrace_inferences_total"
SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"')


def parse(text):
    """Samples by name: labels and value each. Every line is one, or a comment of a family."""
    samples = collections.defaultdict(list)
    for line in text.splitlines():
        if line.startswith("# "):
            assert re.match(r"# (HELP|TYPE|UNIT) [a-z_]+ .|# EOF$", line), line
            continue
        match = SAMPLE.match(line.partition(" # {")[0])
        assert match, line
        labels = {name: re.sub(r"\\(.)", lambda one: "\n" if one.group(1) == "n" else one.group(1), value)
                  for name, value in LABEL.findall(match.group(2) or "")}
        samples[match.group(1)].append((labels, float(match.group(3))))
    return samples


EXEMPLAR = re.compile(r'xputrace_inference_duration_seconds_bucket\{(.*),le="([^"]+)"\} (\d+) # \{(.*)\} (\S+) (\S+)$')


def check_exemplars(text, made, pids):
    """One a histogram, in the bucket of its value: an inference that there was, of the process."""
    started = parse(text)["xputrace_process_start_time_seconds"][0][1]
    least, found = {}, collections.Counter()
    for line in text.splitlines():
        match = EXEMPLAR.match(line)
        if match:
            labels = dict(LABEL.findall(match.group(4)))
            program = dict(LABEL.findall(match.group(1)))["program"]
            assert sum(len(name) + len(value) for name, value in labels.items()) <= 128
            assert set(labels) == {"inference", "pid"} and int(labels["inference"]) < made[program] and int(labels["pid"]) in pids, line
            value, time = float(match.group(5)), float(match.group(6))
            assert least.get(match.group(1), 0) < value <= float(match.group(2)), line
            assert started <= time <= started + 600, line
            found[program] += 1
        elif line.startswith("xputrace_inference_duration_seconds_bucket"):
            labels, _, rest = line.partition("{")[2].rpartition(",le=")
            least[labels] = float(rest.partition('"')[2].partition('"')[0])
    assert found == dict.fromkeys(made, 1), (found, made)


def by_program(samples, name=RUNS, **wanted):
    """Sums of a metric by program, of samples with these labels."""
    sums = collections.Counter()
    for labels, value in samples[name]:
        if all(labels.get(key) == each for key, each in wanted.items()):
            sums[labels["program"]] += value
    return dict(sums)


def made_programs(results):
    made = collections.Counter()
    for (_, name, _), count in made_by(results).items():
        made[name] += count
    return dict(made)


class Agent(Process):
    """Listens on a Unix socket of its own; traces everything that it is given."""

    def __init__(self, *options, pids=(), listen=None, prefix=(), **process_options):
        self.path = os.path.join(scratch(passing=True), "agent")
        words = [*prefix, need(XPUTRACE, "collector"), "agent", "--interval", "200ms", "--listen", listen or "unix:" + self.path, *WAITING]
        if pids:
            words += ["-p", ",".join(str(pid) for pid in pids)]
        super().__init__(words + [str(word) for word in options], **process_options)
        self.wait_line("stderr", "metrics are at")

    def request(self, text, timeout=20):
        """The whole answer to the bytes."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(timeout)
            client.connect(self.path)
            client.sendall(text.encode())
            answer = b""
            while True:
                part = client.recv(1 << 16)
                if not part:
                    return answer.decode()
                answer += part

    def get(self, path="/metrics", headers=""):
        """Status line with headers, and body."""
        head, _, body = self.request("GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (path, headers)).partition("\r\n\r\n")
        return head, body

    def samples(self):
        return parse(self.get()[1])

    def stop(self):
        self.signal(signal.SIGTERM)
        assert not self.wait(), self.stderr
        assert not os.path.exists(self.path), "its socket is left"


@contextlib.contextmanager
def watching(*options, pids=(), **agent_options):
    """An agent that goes on when its workload has ended, as another one is there."""
    idle = standin("nrt", "--calls", 1)
    agent = Agent(*options, pids=[idle.pid, *pids], **agent_options)
    yield agent
    agent.stop()
    idle.kill()


def check_histograms(samples, name="xputrace_inference_duration_seconds"):
    """Buckets do not fall, and the last one is the count."""
    buckets = collections.defaultdict(list)
    for labels, value in samples[name + "_bucket"]:
        key = tuple(sorted((label, each) for label, each in labels.items() if label != "le"))
        buckets[key].append((float(labels["le"]), value))
    counts = {tuple(sorted(labels.items())): value for labels, value in samples[name + "_count"]}
    assert set(buckets) == set(counts)
    for key, listed in buckets.items():
        assert listed == sorted(listed) and [value for _, value in listed] == sorted(value for _, value in listed), listed
        assert listed[-1] == (float("inf"), counts[key]), (listed, counts[key])


def promtool(*arguments, text):
    if not shutil.which("promtool"):
        raise Skip("promtool is not there (package prometheus)")
    done = subprocess.run(["promtool", *arguments], input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert not done.returncode and not done.stdout, done.stdout


# ---- figures ----

def test_counts():
    """Inferences, errors, durations and states of programs, in both formats; nothing is lost, and the textfile has the same."""
    textfile = os.path.join(scratch(), "x.prom")
    workload = standin("nrt", "--calls", 150, "--threads", 2, "--fail-every", 7, "--rate", 300)
    with watching("--textfile", textfile, "--budget", "none", pids=[workload.pid]) as agent:
        workload.go()
        results = workload.results()
        made = made_programs(results)
        wait_until(lambda: sum(by_program(agent.samples()).values()) == sum(made.values()), "all inferences are there")
        head, text = agent.get()
        assert "text/plain; version=0.0.4" in head, head
        samples = parse(text)
        assert by_program(samples, runtime="nrt", process="workload") == made
        assert by_program(samples, "xputrace_inference_errors_total") == dict(failures(results))
        assert by_program(samples, "xputrace_inference_duration_seconds_count") == made
        check_histograms(samples)
        for program, seconds in by_program(samples, "xputrace_inference_duration_seconds_sum").items():
            states = sum(by_program(samples, "xputrace_inference_%s_seconds_total" % state)[program]
                         for state in ("cpu", "waited", "blocked"))
            assert 0 < states <= 1.02 * seconds, (program, states, seconds)  # between enqueue and wait there is none
        assert "xputrace_overhead_ratio" not in samples and "xputrace_events_lost_total" not in samples, samples
        check_openmetrics(agent, made, {workload.pid})
    with open(textfile, encoding="utf-8") as file:
        assert by_program(parse(file.read())) == made
    assert stat.S_IMODE(os.stat(textfile).st_mode) == 0o644
    assert os.listdir(os.path.dirname(textfile)) == ["x.prom"]


def check_openmetrics(agent, made, pids):
    head, text = agent.get(headers="Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n")
    assert "application/openmetrics-text; version=1.0.0" in head and text.endswith("\n# EOF\n"), head
    samples = parse(text)
    assert by_program(samples) == made
    check_exemplars(text, made, pids)
    assert " # {" not in agent.get()[1], "the text format has no exemplars"
    started = samples["xputrace_process_start_time_seconds"][0][1]
    assert samples["xputrace_inferences_created"] and all(value >= started for _, value in samples["xputrace_inferences_created"])


def test_tokens():
    """Tokens of prompts and answers, and their times, of a command; the file has them when it has ended."""
    textfile = os.path.join(scratch(), "x.prom")
    done = run([need(XPUTRACE, "collector"), "agent", "--listen", "none", "--textfile", textfile, "--budget", "none", *PATIENT, "--",
                workload_path("tokens")])
    assert not done.status, done.stderr
    with open(textfile, encoding="utf-8") as file:
        text = file.read()
    samples = parse(text)
    listed = [batch for each in batches(done.stdout).values() for batch in each]
    for kind, phase in (("input", "prefill"), ("output", "decode")):
        said = sum(batch.tokens for batch in listed if batch.phase == phase)
        assert sum(by_program(samples, "xputrace_tokens_total", gen_ai_token_type=kind).values()) == said, samples
    for name, field in (("first_token", "time_to_first_token"), ("output_token", "time_per_output_token")):
        metric = "gen_ai_server_%s_seconds" % field
        check_histograms(samples, metric)
        assert samples[metric + "_count"][0][1] == sum(getattr(batch, name) is not None for batch in listed)
    promtool("check", "metrics", text=text)


@paired("what tracing takes decides what is traced")
def test_suspended():
    """Functions that the budget detaches are in a metric, and are attached again when there is room for them."""
    def suspended(agent):
        return sum(value for _, value in agent.samples()["xputrace_functions_suspended"])

    busy, quiet = standin("nrt", "--calls", 4000, "--rate", 2000), standin("nrt", "--calls", 20, "--rate", 10, "--programs", 1)
    with watching("--budget", "1", pids=[busy.pid, quiet.pid]) as agent:
        busy.go()
        wait_until(lambda: suspended(agent) > 0, "functions are detached")
        busy.results()
        wait_until(lambda: not suspended(agent), "they are attached again")
        before = sum(value for _, value in agent.samples()["xputrace_inferences_total"])
        quiet.go()
        quiet.results()
        wait_until(lambda: sum(value for _, value in agent.samples()["xputrace_inferences_total"]) == before + 20, "every call counts")


def test_overflow_and_names():
    """Programs beyond --max-series are one, whose sums are theirs; names with anything in them stay labels."""
    names = [b'quote" back\\slash\nline', "日本語-model".encode(), b"\xff\xfe", b"plain"]
    workload = standin("nrt", "--churn", 8, "--for", 1, "--rate", 100, "--names", write_names(names))
    with watching("--max-series", 2, "--budget", "none", pids=[workload.pid]) as agent:
        workload.go()
        workload.results()
        wait_until(lambda: agent.samples()["xputrace_series_dropped_total"][0][1] == 2, "two programs are dropped")
        head, text = agent.get()
        programs = by_program(parse(text))
        assert len(programs) == 3 and programs["other"] > 0 and "charset=utf-8" in head, programs
    workload = standin("nrt", "--churn", 8, "--for", 1, "--rate", 100, "--names", write_names(names))
    with watching("--budget", "none", pids=[workload.pid]) as agent:
        workload.go()
        workload.results()
        said = {name.decode("utf-8", "replace") for name in names}
        wait_until(lambda: said <= set(by_program(agent.samples())), "every name is a label")


def shares(jobs):
    """ns that each process had the engine: of n jobs that run at once each has 1/n of the time."""
    times = sorted({job[name] for job in jobs for name in ("started_ns", "finished_ns")})
    had = collections.Counter()
    for begin, end in zip(times, times[1:]):
        running = [job["pid"] for job in jobs if job["started_ns"] <= begin and end <= job["finished_ns"]]
        for pid in running:
            had[pid] += (end - begin) / len(running)
    return had


def until_next(jobs, lost):
    """The jobs as they are seen: the lost ones have ended when the next one of their context has."""
    seen = []
    for job in jobs:
        later = [one["finished_ns"] for one in jobs if one["fence"][0] == job["fence"][0] and one["fence"][1] > job["fence"][1]]
        seen.append(dict(job, finished_ns=min(later)) if job in lost else job)
    return seen


def sharers(device, calls, duration_us=5000):
    """Two programs with different names that use one engine of the device; each waits to be told to go."""
    folder, workloads = scratch(), {}
    for name, count in zip(("sharer-one", "sharer-two"), calls):
        os.symlink(workload_path("workload"), os.path.join(folder, name))
        workloads[name] = Workload([os.path.join(folder, name), "nrt", "--device", device, "--duration-us", str(duration_us), "--calls", str(count),
                                    "--jobs", "2", "--threads", "2", "--engines", "1", "--wait-for-go"])
    return workloads


def check_shared(agent, workloads, lost=lambda job: False, missing=lambda samples: 0, **wanted):
    """Jobs, time and queue time of each program on the device with these labels are as the device reports them, within 10 % and 10 ms, and
    together no more than the engine was busy, within 2 % and 10 ms. Without labels those of other processes are passed over.
    missing: how many ends more than the lost ones may not have been seen."""
    names, jobs = {}, []
    for name, workload in workloads.items():
        workload.go()
        names[workload.pid] = name
    for workload in workloads.values():
        jobs += check(workload.results())
    hidden = [job for job in jobs if lost(job)]
    made = collections.Counter(names[job["pid"]] for job in jobs if job not in hidden)

    def found(metric, samples):
        return collections.Counter({labels["process"]: value for labels, value in samples["xputrace_process_device_" + metric]
                                    if all(labels[name] == value for name, value in wanted.items()) and (wanted or labels["process"] in made)})

    def lacking(samples):
        return sum((made - found("jobs_total", samples)).values())

    def enough():
        samples.update(agent.samples())
        return lacking(samples) <= missing(samples)

    samples = collections.defaultdict(list)
    try:
        wait_until(enough, "all jobs are there", 60)
    except AssertionError as error:
        lost = [(labels["cause"], value) for labels, value in samples["xputrace_events_lost_total"] if value]
        raise AssertionError("%s: made %s, seen %s, lost %s" % (error, made, samples["xputrace_process_device_jobs_total"], lost)) from error
    time, queue, ended = (found(metric, samples) for metric in ("seconds_total", "queue_seconds_total", "jobs_total"))
    assert set(time) == set(queue) == set(made) and not ended - made, (time, queue, ended, made)
    # Each end that is missing may have cost or given a job's time.
    slack = 0.01 * SLOW + lacking(samples) * max(job["finished_ns"] - job["started_ns"] for job in jobs) / 1e9
    assert sum(time.values()) <= 1.02 * covered((job["started_ns"], job["finished_ns"]) for job in jobs) / 1e9 + slack
    for pid, had in shares(until_next(jobs, hidden)).items():
        waited = sum(job["started_ns"] - job["queued_ns"] for job in jobs if job["pid"] == pid)
        assert abs(time[names[pid]] - had / 1e9) < 0.1 * had / 1e9 + slack, (names[pid], time, had)
        assert abs(queue[names[pid]] - waited / 1e9) < 0.1 * waited / 1e9 + slack, (names[pid], queue, waited)
    assert not any("pid" in labels for each in samples.values() for labels, _ in each)
    return jobs


@cases("all", "lost")
def test_shared_device(ends):
    """Two processes on one engine. Of one job in ten the end is lost: it ends when the next one of its context does."""
    if not has_tracepoint("syscalls:sys_enter_kcmp"):
        raise Skip("the kernel has no syscalls:sys_enter_kcmp")
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "emulated.json"), encoding="utf-8") as file:
        description = json.load(file)
    for event in description["sets"][0]["events"][:2]:
        event["fields"]["timeline"] = "idx1:64"
    path = os.path.join(scratch(), "emulated.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(description, file)
    device = os.getpid()
    workloads = sharers("emulated:device=%d%s" % (device, ",lost=10" if ends == "lost" else ""), (60, 25))
    with watching("--budget", "none", "--driver", path, "--drivers", "emulated", pids=[workload.pid for workload in workloads.values()]) as agent:
        # Of an execution the first of two jobs: one that is the last of its context would be with the device for ever.
        jobs = check_shared(agent, workloads, lost=lambda job: ends == "lost" and (job["cookie"] & 0xffffffff) % 10 == 1,
                            driver="emulated", hw_id=str((1 << 30) + device))
    assert len(jobs) == 2 * 2 * (60 + 25)


def test_stale():
    """Series of a process that has ended go, and those of others count on."""
    one, other = (standin("nrt", "--calls", 20), standin("hip", "--calls", 0, "--rate", 50))
    with watching("--stale-after", "1s", "--budget", "none", pids=[one.pid, other.pid]) as agent:
        other.go()
        one.go()
        made = made_programs(one.results())
        wait_until(lambda: by_program(agent.samples(), runtime="nrt") == made, "all inferences are there")
        wait_until(lambda: by_program(agent.samples(), runtime="hip"), "the other process works")
        before = by_program(agent.samples(), runtime="hip")
        wait_until(lambda: not by_program(agent.samples(), runtime="nrt"), "the series have gone")
        samples = agent.samples()
        assert samples["xputrace_series_removed_total"][0][1] == len(made) and samples["xputrace_series"][0][1] >= 1
        after = by_program(samples, runtime="hip")
        assert after.keys() == before.keys() and all(after[name] >= before[name] for name in before), (before, after)
        other.stop()


def test_kernels():
    """Names of kernels are labels only where that is asked for."""
    workload = standin("hip", "--calls", 50)
    with watching("--budget", "none", pids=[workload.pid]) as agent, \
            watching("--budget", "none", "--kernels", pids=[workload.pid]) as other:
        workload.go()
        workload.results()
        wait_until(lambda: by_program(other.samples(), runtime="hip"), "kernels with names")
        named = by_program(other.samples(), runtime="hip")
        wait_until(lambda: sum(by_program(agent.samples(), runtime="hip").values()) == sum(named.values()), "the same kernels")
        assert "kernels" not in named and set(by_program(agent.samples(), runtime="hip")) == {"kernels"}, named


def test_container():
    """A control group as containerd makes them, and a process in it."""
    identity, pod = "8c2b1ae0cf1f5b6b" * 4, "2d3a5f0e-7c41-4b8e-9a52-0f6f2c7b1e9d"
    made = []
    workload = standin("nrt", "--calls", 0, "--rate", 100)
    try:
        for root in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
            if os.path.exists(os.path.join(root, "cgroup.procs")):
                break
        path = root
        for part in ("kubepods", "pod" + pod, identity):
            path = os.path.join(path, part)
            if not os.path.exists(path):
                os.mkdir(path)
                made.append(path)
        with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(workload.pid))
    except OSError as error:
        for path in reversed(made):
            os.rmdir(path)
        workload.kill()
        raise Skip("control groups cannot be made: %s" % error) from None
    try:
        with watching("--budget", "none", pids=[workload.pid]) as agent:
            workload.go()
            wait_until(lambda: agent.samples()[RUNS], "inferences")
            labels = agent.samples()[RUNS][0][0]
            assert (labels.get("container"), labels.get("pod_uid")) == (identity, pod), labels
            workload.stop()
    finally:
        for path in reversed(made):
            wait_until(lambda path=path: not os.path.exists(path) or remove(path), "the control group is empty")


def remove(path):
    try:
        os.rmdir(path)
    except OSError:
        return False
    return True


# ---- clients ----

def test_clients():
    """Half-open and slow clients hold up nobody, nor the end; wrong requests get an answer."""
    with watching() as agent:
        held = []
        for part in [b"", b"GET /metr", b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 1000] * 8:
            held.append(socket.socket(socket.AF_UNIX))
            held[-1].connect(agent.path)
            held[-1].sendall(part)
        assert "200 OK" in agent.get()[0]
        assert "404" in agent.get("/other")[0] and "200" in agent.get("/")[0]
        head = agent.request("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert "200 OK" in head and head.endswith("\r\n\r\n"), head
        answer = agent.request("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        assert "405" in answer and "Allow: GET, HEAD" in answer, answer
        with contextlib.suppress(OSError):  # it may be cut off before it has sent all
            assert " 4" in agent.request("GET /metrics HTTP/1.1\r\nX: %s\r\n\r\n" % ("y" * 100000)).partition("\r\n")[0]
        status = stat.S_IMODE(os.stat(agent.path).st_mode)
        assert status == 0o660, oct(status)
        threads = "/proc/%d/task" % agent.pid
        rights = {open_line(os.path.join(threads, thread, "status"), "CapEff:") for thread in os.listdir(threads)}
        assert "0000000000000000" in rights, "no thread is without capabilities: %s" % rights
    for client in held:
        client.close()


def open_line(path, key):
    with open(path, encoding="utf-8") as file:
        return next(line.split()[1] for line in file if line.startswith(key))


def test_wrong_use():
    """Refused with what is wrong; a socket in use, and a file in the way, are not taken."""
    for options, text in ((["--listen", "nowhere"], "expected PORT"), (["--listen", "localhost:1"], "expected PORT"),
                          (["--listen", "[::1:9"], "expected PORT"), (["--listen", "127.0.0.1:65536"], "expected PORT"),
                          (["--listen", "unix:"], "path of a socket"), (["--textfile", "x.txt"], ".prom"),
                          (["--listen", "none"], "--listen none requires --textfile"), (["--match", "("], "--match: "),
                          (["--max-series", "0"], "expected a number from 1 to 100000")):
        result = run([XPUTRACE, "agent"] + options)
        assert result.status == 2 and text in result.stderr and not result.stdout, (options, result.stderr)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run([XPUTRACE, "agent", "--listen", "%d" % taken.getsockname()[1]])
        assert result.status == 1 and "cannot listen on" in result.stderr, result.stderr
    path = os.path.join(scratch(), "file")
    with open(path, "w", encoding="ascii"):
        pass
    result = run([XPUTRACE, "agent", "--listen", "unix:" + path])
    assert result.status == 1 and os.path.isfile(path), result.stderr


# ---- a real Prometheus ----

def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def query(port, expression):
    url = "http://127.0.0.1:%d/api/v1/query?query=%s" % (port, urllib.parse.quote(expression))
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]["result"]
    except OSError:
        return []


def prometheus_ports():
    """That it is to scrape, and its own."""
    if not shutil.which("prometheus"):
        raise Skip("Prometheus is not there (package prometheus)")
    return free_port(), free_port()


def prometheus(scraped, port, *options):
    """A Prometheus that scrapes a port of this host twice a second."""
    folder = scratch()
    with open(os.path.join(folder, "prometheus.yml"), "w", encoding="ascii") as file:
        file.write("global: {scrape_interval: 500ms, scrape_timeout: 400ms}\nscrape_configs:\n  - job_name: xputrace\n"
                   "    static_configs: [{targets: ['127.0.0.1:%d']}]\n" % scraped)
    return Process(["prometheus", "--config.file", os.path.join(folder, "prometheus.yml"), "--storage.tsdb.path",
                    os.path.join(folder, "data"), "--web.listen-address", "127.0.0.1:%d" % port, *options])


def test_prometheus():
    """It scrapes; what it answers is what the workload did, and its quantiles are within their buckets."""
    ports = prometheus_ports()
    workload = standin("nrt", "--calls", 200, "--threads", 2, "--rate", 200)
    with watching("--budget", "none", pids=[workload.pid], listen=str(ports[0])) as agent:
        server = prometheus(*ports)
        wait_until(lambda: query(ports[1], "up == 1"), "scraped once")
        workload.go()
        made = made_programs(workload.results())

        def scraped():
            return {one["metric"]["program"]: float(one["value"][1]) for one in query(ports[1], RUNS)}

        wait_until(lambda: scraped() == made, "scraped: %s" % made)
        found = query(ports[1], "histogram_quantile(0.5, sum by (le) (xputrace_inference_duration_seconds_bucket))")
        assert 0 < float(found[0]["value"][1]) < 10, found
        assert query(ports[1], "up")[0]["value"][1] == "1"
        server.signal(signal.SIGTERM)
        server.wait()
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % ports[0], timeout=10) as answer:
            promtool("check", "metrics", text=answer.read().decode())
        assert "error" not in agent.stderr


def test_native_histograms():
    """Prometheus takes the protobuf format: native histograms with the counts of the workload, quantiles within the classic buckets, and
    exemplars."""
    ports = prometheus_ports()
    workload = standin("nrt", "--calls", 200, "--threads", 2, "--rate", 200)
    with watching("--budget", "none", pids=[workload.pid], listen=str(ports[0])) as agent:
        server = prometheus(*ports, "--enable-feature=native-histograms,exemplar-storage")
        wait_until(lambda: query(ports[1], "up == 1"), "scraped once")
        workload.go()
        made = made_programs(workload.results())

        def values(expression):
            return {one["metric"].get("program"): float(one["value"][1]) for one in query(ports[1], expression)}

        metric = "xputrace_inference_duration_seconds"
        wait_until(lambda: values("histogram_count(%s)" % metric) == made, "scraped: %s" % made)
        assert values(RUNS) == made and not values(metric + "_count"), "counters are the same, and the histogram is native"
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % ports[0], timeout=10) as answer:
            samples = parse(answer.read().decode())
        sums = by_program(samples, metric + "_sum")
        for program, value in values("histogram_sum(%s)" % metric).items():
            assert abs(value - sums[program]) <= 1e-9 * value, (value, sums)
        for program, count in made.items():
            bounds = sorted((float(labels["le"]), value) for labels, value in samples[metric + "_bucket"]
                            if labels["program"] == program)
            for quantile in (0.1, 0.5, 0.9):
                upper = next(bound for bound, value in bounds if value >= quantile * count)
                lower = max([bound for bound, value in bounds if value < quantile * count], default=0)
                (found,) = values("histogram_quantile(%f, %s{program='%s'})" % (quantile, metric, program)).values()
                assert lower / 1.1 <= found <= upper * 1.1, (program, quantile, lower, found, upper)
        url = "http://127.0.0.1:%d/api/v1/query_exemplars?query=%s&start=0&end=9999999999" % (ports[1], metric)
        with urllib.request.urlopen(url, timeout=10) as answer:
            exemplars = json.load(answer)["data"]
        assert {each["labels"]["pid"] for one in exemplars for each in one["exemplars"]} == {str(workload.pid)}, exemplars
        server.signal(signal.SIGTERM)
        server.wait()
        assert "error" not in agent.stderr
