# SPDX-License-Identifier: BSD-2-Clause
"""Regions through the packages for Python and Node.js, with ids of requests: in traces, and found by `report --request`."""

import collections
import json
import os
import shutil
import sys

from harness import BUILD, ROOT, XPUTRACE, Skip, Trace, check_nesting, need, run, scratch
from test_region_library import library

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

PYTHON = """
import asyncio, json, os, threading, xputrace

@xputrace.region("inner")
def inner():
    return sum(range(100))

@xputrace.region("marked")
async def coroutine(milliseconds):
    with xputrace.region("coroutine", request=milliseconds):
        await asyncio.sleep(milliseconds / 1000)

def serve(request):
    with xputrace.region("d\\u00e9code", request=request):
        inner()

threads = [threading.Thread(target=serve, args=(name,)) for name in (%r, "b", "c")]
for thread in threads:
    thread.start()
    thread.join()
for i in range(20):
    serve("request %%d" %% i)
try:
    with xputrace.region("failing"):
        raise ValueError
except ValueError:
    pass

async def both():
    await asyncio.gather(coroutine(150), coroutine(50), coroutine(100))

asyncio.run(both())
print(json.dumps([xputrace.available, xputrace.enabled(), xputrace.region("inner").totals().entries]))
"""

JAVASCRIPT = """
import {available, begin, region} from %r;
const inner = () => region("inner", () => 7);
for (const request of [%r, "b", "c"])
  if (region("d\\u00e9code", inner, {request}) !== 7) throw new Error("no result");
for (let i = 0; i < 20; i++) region("d\\u00e9code", inner, {request: `request ${i}`});
try { region("failing", () => { throw new Error("on purpose"); }); } catch {}
const sleep = (ms) => region("coroutine", () => new Promise((done) => setTimeout(done, ms)), {request: ms});
await Promise.all([sleep(150), sleep(50), sleep(100)]);
const end = begin("ended twice");
end();
end();
console.log(JSON.stringify([available, false, 23]));
"""


def python(enabled=False):
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), XPUTRACE_LIBRARY=library(), PYTHONDONTWRITEBYTECODE="1")
    if enabled:
        environment["XPUTRACE_REGIONS"] = "enabled"
    return [sys.executable, "-c", PYTHON % PARENT], environment


def node():
    package = os.path.join(BUILD, "node", "index.mjs")
    if not os.path.exists(os.path.join(BUILD, "node", "xputrace.node")):
        raise Skip("Node's headers are not there")
    if not shutil.which("node"):
        raise Skip("node is not there")
    script = os.path.join(scratch(), "regions.mjs")
    with open(script, "w", encoding="utf-8") as file:
        file.write(JAVASCRIPT % (package, PARENT))
    return ["node", script], dict(os.environ)


def regions_of(trace):
    return [event for event in trace.events if event.get("cat", "").startswith("region")]


def check(trace, extra):
    """Each region once, with its request; those that overlap with their own times; nothing of what requests are made of."""
    assert trace.complete and not trace.losses(), trace.losses()
    regions = regions_of(trace)
    check_nesting([event for event in regions if event["name"] not in ("coroutine", "marked")])
    assert collections.Counter(event["name"] for event in regions) == {"décode": 23, "inner": 23, "failing": 1, "coroutine": 3, **extra}
    requests = collections.Counter(event.get("args", {}).get("request") for event in regions if event["name"] == "décode")
    assert requests == collections.Counter([PARENT, "b", "c"] + ["request %d" % i for i in range(20)]), requests
    assert {event.get("args", {}).get("request") for event in regions if event["name"] in ("inner", "failing")} == {None}
    times = {int(event["args"]["request"]): event["dur"] / 1000 for event in regions if event["name"] == "coroutine"}
    assert sorted(times) == [50, 100, 150] == sorted(times, key=times.get), times
    assert all(took > asked - 2 for asked, took in times.items()), times
    assert {one["name"] for one in trace.metadata["regions"]} == {"décode", "inner", "failing", "coroutine", *extra}


def check_request(path):
    """The region of the request, and what lies in it; one that is not there is an error."""
    output = os.path.join(scratch(), "request.json")
    result = run([need(XPUTRACE, "collector"), "report", path, "-q", "--request", PARENT, "-o", output])
    assert result.status == 0, result.stderr
    outer, inner = sorted(regions_of(Trace(output)), key=lambda event: event["ts"])
    assert (outer["name"], outer["args"], inner["name"]) == ("décode", {"request": PARENT}, "inner")
    assert outer["tid"] == inner["tid"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.001
    result = run([XPUTRACE, "report", path, "-q", "--request", "of nobody"])
    assert result.status == 1 and "request of nobody is not in the recording" in result.stderr, result


def trace_of(command, environment):
    path = os.path.join(scratch(), "regions.xpt")
    result = run([need(XPUTRACE, "collector"), "record", "-q", "-o", path, "--", *command], env=environment)
    assert result.status == 0, result.stderr
    output = path + ".json"
    assert run([XPUTRACE, "report", path, "-q", "-o", output]).status == 0
    return path, Trace(output), result.stdout


def test_python():
    path, trace, output = trace_of(*python())
    assert json.loads(output) == [True, False, 0]
    check(trace, {"marked": 3})
    check_request(path)


def test_python_counts():
    """Regions count for themselves where the environment asks for it; ids of requests change nothing."""
    command, environment = python(enabled=True)
    result = run(command, env=environment)
    assert result.status == 0 and json.loads(result.stdout) == [True, True, 23], (result.stdout, result.stderr)


def test_python_without_library():
    command, environment = python()
    result = run(command, env=dict(environment, XPUTRACE_LIBRARY="/nonexistent.so"))
    assert result.status == 0 and json.loads(result.stdout)[0] is False, (result.stdout, result.stderr)


def test_node():
    path, trace, output = trace_of(*node())
    assert json.loads(output) == [True, False, 23]
    check(trace, {"ended twice": 1})
    check_request(path)


def test_pip():
    """pip installs the package from the tree, without a network."""
    place = os.path.join(scratch(), "packages")
    if run([sys.executable, "-m", "pip", "--version"]).status:
        raise Skip("pip is not there")
    result = run([sys.executable, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", "--root-user-action=ignore",
                  "--target", place, os.path.join(ROOT, "python")])
    assert result.status == 0, result.stderr
    _, environment = python()
    result = run([sys.executable, "-c", "import xputrace; print(xputrace.available, xputrace.__file__)"],
                 env=dict(environment, PYTHONPATH=place))
    assert result.stdout.startswith("True " + place), (result.stdout, result.stderr)
