# SPDX-License-Identifier: BSD-2-Clause
"""What user/packaging/ has for fleets: rules and a dashboard for Prometheus, rights of the DaemonSet and of the systemd unit."""

import json
import os
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from harness import ROOT, Skip, cases, scratch, standin, wait_until, workload_path
from test_agent import Agent, by_program, made_programs, parse, prometheus, prometheus_ports, query, watching

PACKAGING = os.path.join(ROOT, "user", "packaging")
FLEET = os.path.join(PACKAGING, "fleet")
METRIC = re.compile(r"\b(?:xputrace|hw|gen_ai)_[a-z_]+[a-z]\b")
# Of the metrics that the workload brings about; a host has the others with accelerators, or when something goes wrong.
WITH_RESULTS_MIN = 20


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def promtool(*arguments, **options):
    if not shutil.which("promtool"):
        raise Skip("promtool is not there (package prometheus)")
    done = subprocess.run(["promtool", *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)
    assert not done.returncode, done.stdout
    return done.stdout


def test_alerts():
    """The rules are valid, fire when they are to, and are all tested."""
    folder = scratch()
    shutil.copy(os.path.join(FLEET, "alerts.yml"), folder)
    shutil.copy(os.path.join(ROOT, "tests", "e2e", "fleet_alerts.yml"), folder)
    rules = read(folder, "alerts.yml")
    names = re.findall(r"- alert: (\w+)", rules)
    assert "SUCCESS: %d rules found" % len(names) in promtool("check", "rules", os.path.join(folder, "alerts.yml"))
    promtool("test", "rules", "fleet_alerts.yml", cwd=folder)
    tested = re.findall(r"alertname: (\w+)\n\s+eval_time: \w+\n\s+exp_alerts:\n", read(folder, "fleet_alerts.yml"))
    assert set(tested) == set(names), set(names) ^ set(tested)


def expressions():
    """Title and expression of each query of the dashboard, as for a host that is asked about all programs."""
    for panel in json.loads(read(FLEET, "dashboard.json"))["panels"]:
        for target in panel.get("targets", []):
            text = target["expr"].replace("$__rate_interval", "30s").replace("$instance", ".*").replace("$program", ".*")
            assert "$" not in text, text
            yield panel["title"], text


def plain(name):
    """The metric without what one sample of a histogram has behind it."""
    return re.sub(r"(_seconds)_(bucket|sum|count)$", r"\1", name)


def test_metrics_documented():
    """The rules and the dashboard name metrics that there are."""
    documented = set(METRIC.findall(read(ROOT, "user", "report", "SCHEMA.md")))
    texts = [text for _, text in expressions()] + [read(FLEET, "alerts.yml")]
    named = {plain(name) for text in texts for name in METRIC.findall(text)} - {"gen_ai_token_type", "hw_name"}
    assert len(named) > 25 and named <= documented, named - documented


def answer(port, expression):
    url = "http://127.0.0.1:%d/api/v1/query?query=%s" % (port, urllib.parse.quote(expression))
    try:
        with urllib.request.urlopen(url, timeout=20) as response:
            return json.load(response)["data"]["result"]
    except urllib.error.HTTPError as error:
        raise AssertionError("%s: %s" % (expression, error.read().decode())) from error


def test_dashboard():
    """A real Prometheus answers each query, and with something where the agent has all metrics in it."""
    ports = prometheus_ports()
    stop = os.path.join(scratch(), "stop")
    agent = Agent("--budget", 100, "--", "sh", "-c", '"$0" "$@" & while ! [ -e "$STOP" ]; do "$TOKENS"; sleep 0.2; done; kill $!; wait',
                  workload_path("workload"), "nrt", "--calls", 0, "--threads", 2, "--fail-every", 7, "--rate", 200, listen=str(ports[0]),
                  env={**os.environ, "STOP": stop, "TOKENS": workload_path("tokens")})
    server = prometheus(*ports)
    for metric in ("xputrace_tokens_total", "xputrace_inference_errors_total"):
        wait_until(lambda name=metric: query(ports[1], "sum(rate(%s[30s])) > 0" % name), metric + " has a rate")
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % ports[0], timeout=10) as served:
        there = set(parse(served.read().decode()))
    results = {text: answer(ports[1], text) for _, text in expressions()}
    empty = [text for text, found in results.items() if not found and set(METRIC.findall(text)) - {"gen_ai_token_type"} <= there]
    assert not empty, empty
    assert sum(map(bool, results.values())) >= WITH_RESULTS_MIN, results
    for variable in json.loads(read(FLEET, "dashboard.json"))["templating"]["list"][1:]:
        metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()
        assert query(ports[1], 'group by (%s) (%s{%s!=""})' % (label, metric, label)), variable
    server.signal(signal.SIGTERM)
    server.wait()
    with open(stop, "w", encoding="ascii"):
        pass
    assert not agent.wait(), agent.stderr


def daemonset():
    """The pod of the DaemonSet."""
    try:
        import yaml
    except ImportError as error:
        raise Skip("Python's YAML parser is not there (package python3-yaml)") from error
    documents = list(yaml.safe_load_all(read(FLEET, "daemonset.yaml")))
    assert [one["kind"] for one in documents] == ["Namespace", "DaemonSet"]
    spaces = {documents[0]["metadata"]["name"], documents[1]["metadata"]["namespace"]}
    assert len(spaces) == 1, spaces
    spec = documents[1]["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    return spec["template"]["spec"]


def test_daemonset():
    """It sees the host's processes, changes nothing, and has the rights that it names and no others."""
    pod = daemonset()
    assert pod["hostPID"] is True and pod["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostIPC"} & set(pod)
    container, = pod["containers"]
    security = container["securityContext"]
    assert security["privileged"] is False and security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True and security["capabilities"]["drop"] == ["ALL"]
    assert set(security["capabilities"]["add"]) == {"BPF", "PERFMON", "SYS_PTRACE", "CHECKPOINT_RESTORE", "DAC_READ_SEARCH"}
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert all(mount["readOnly"] is True for mount in mounts.values()), mounts
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
    assert {name: mount["mountPath"] for name, mount in mounts.items()} == paths
    assert set(paths.values()) == {"/sys/kernel/tracing", "/sys/fs/cgroup"}
    assert "memory" in container["resources"]["limits"]
    port = container["args"][container["args"].index("--listen") + 1].rpartition(":")[2]
    assert [str(one["containerPort"]) for one in container["ports"]] == [port]
    assert container["readinessProbe"]["httpGet"]["port"] == container["ports"][0]["name"]


def named_rights(where):
    if where == "daemonset":
        return [name.lower() for name in daemonset()["containers"][0]["securityContext"]["capabilities"]["add"]]
    unit = read(PACKAGING, "xputrace-agent.service.in")
    return [name[4:].lower() for name in re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M).group(1).split()]


@cases("daemonset", "unit")
def test_rights(where):
    """The agent counts all inferences with the capabilities that are named, and no new ones."""
    names = ["-all"] + ["+" + name for name in named_rights(where)]
    workload = standin("nrt", "--calls", 40)
    prefix = ["setpriv", "--no-new-privs", "--inh-caps", ",".join(names), "--bounding-set", ",".join(names)]
    with watching("--budget", "none", pids=[workload.pid], prefix=prefix) as agent:
        with open("/proc/%d/status" % agent.pid, encoding="ascii") as file:
            bounds = int(re.search(r"^CapBnd:\s*(\w+)", file.read(), re.M).group(1), 16)
        assert bin(bounds).count("1") == len(names) - 1, hex(bounds)
        workload.go()
        made = made_programs(workload.results())
        wait_until(lambda: by_program(agent.samples(), runtime="nrt", process="workload") == made, "all inferences are there")
