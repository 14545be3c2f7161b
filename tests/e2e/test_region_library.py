# SPDX-License-Identifier: BSD-2-Clause
"""Regions through libxputrace: from Python, and in C beside regions that are compiled in."""

import json
import os
import re
import shutil
import sys

from harness import BUILD, ROOT, need, run, scratch
from region_probes import PROBES, Probes

PROGRAM = """
import json, sys, threading
sys.path.insert(0, %r)
from regions import Regions

regions = Regions(%r)
outer, inner = regions.region("outer"), regions.region("inner \\u00e4")

@inner
def work(depth):
    return work(depth - 1) if depth > 1 else sum(range(1000))

def loop():
    for _ in range(50):
        with outer:
            work(3)

threads = [threading.Thread(target=loop) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
try:
    with outer:
        raise ValueError
except ValueError:
    inner.stop()
print(json.dumps([regions.enabled(), outer.totals(), inner.totals()]))
outer.print()
inner.print()
"""


def library():
    return need(os.path.realpath(os.path.join(BUILD, "libxputrace.so")), "library")


def go(path, **environment):
    process = run([sys.executable, "-B", "-c", PROGRAM % (os.path.join(ROOT, "tests", "workload"), path)],
                  env=dict(os.environ, **environment))
    assert process.status == 0, process.stderr
    return process


def test_python():
    """Context manager, decorator, threads, recursion, an exception."""
    process = go(library(), XPUTRACE_REGIONS="enabled")
    enabled, outer, inner = json.loads(process.stdout)
    assert enabled and outer[0] == 201 and outer[4] == 0, outer
    assert inner[0] == 600 and inner[4] == 1, inner
    assert process.stderr == ("[prof] outer: total_time: %d nsec nr_entries: 201\n"
                              "[prof] inner \u00e4: total_time: %d nsec nr_entries: 600\n" % (outer[1], inner[1]))


def test_python_watched():
    """From outside, with nothing enabled inside. A copy: the probes count whoever uses the file."""
    path = shutil.copy(library(), scratch())
    with Probes(path) as probes:
        process = go(path)
        hits, trace = probes.hits(), probes.trace()
    assert json.loads(process.stdout) == [False, [0] * 5, [0] * 5], process.stdout
    assert hits == {"region_begin": 801, "region_end": 802}, hits
    named = re.findall(r"(region_\w+)_\d: .*region=(0x\w+) name=\"(.*)\"", trace)
    counted = {(probe, name): 0 for probe, _, name in named}
    for probe, _, name in named:
        counted[probe, name] += 1
    assert counted == {(PROBES[0], "outer"): 201, (PROBES[1], "outer"): 201, (PROBES[0], "inner \u00e4"): 600,
                       (PROBES[1], "inner \u00e4"): 601}, counted
    assert len({(region, name) for _, region, name in named}) == 2
