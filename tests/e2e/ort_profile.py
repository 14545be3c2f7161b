#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reads what ONNX Runtime's own profiler has written.

ort_profile.py FILE... prints the nodes of each: how often it ran, for how long in all, operator, index, provider, name.
"""

import collections
import glob
import json
import sys

SUFFIX = "_kernel_time"  # of the events of nodes; those of releases before 1.21 had other events beside
RUN = "model_run"

# One execution of a node or of the model. Times are in us, whole numbers; start counts from the session's making.
Event = collections.namedtuple("Event", "start duration tid")


class Node:
    """A node of the graph that runs, the loaded one as ONNX Runtime has optimised it, or of one nested in it."""

    def __init__(self, name, index, arguments):
        self.name = name
        self.index = index  # in its graph: those of nested graphs begin with 0 again
        self.operator = arguments["op_name"]
        self.provider = arguments.get("provider", "")
        self.events = []

    @property
    def count(self):
        return len(self.events)

    @property
    def duration(self):
        """Of all executions together, with those of the nested graphs' nodes."""
        return sum(event.duration for event in self.events)


class Profile:
    """One session's: nodes by name and index, in the order in which they ran for the first time, and its runs.

    Nodes that the model does not name have their operator as name, so that several may have the same."""

    def __init__(self, path):
        self.nodes = {}
        self.runs = []
        with open(path, encoding="utf-8") as file:
            for event in json.load(file):
                self._take(event)

    def _take(self, event):
        happened = Event(event["ts"], event["dur"], event["tid"])
        if event["cat"] == "Node" and event["name"].endswith(SUFFIX):
            name, index = event["name"][:-len(SUFFIX)], int(event["args"]["node_index"])
            self.nodes.setdefault((name, index), Node(name, index, event["args"])).events.append(happened)
        elif event["cat"] == "Session" and event["name"] == RUN:
            self.runs.append(happened)

    def counts(self):
        """By name and operator, as a tracer can know them that does not see the index."""
        counts = collections.Counter()
        for node in self.nodes.values():
            counts[node.name, node.operator] += node.count
        return counts


def profiles(prefix):
    """Those of serve.mjs --profile PREFIX, in the order in which the sessions were made."""
    found = glob.glob(glob.escape(prefix) + "-[0-9]*_*.json")
    files = {int(path[len(prefix) + 1:].split("_")[0]): path for path in found}
    return [Profile(files[number]) for number in sorted(files)]


def main():
    for path in sys.argv[1:]:
        profile = Profile(path)
        print("%s: %d runs, %d us" % (path, len(profile.runs), sum(run.duration for run in profile.runs)))
        for node in profile.nodes.values():
            print("%7d %9d us  %-20s %4d %s %s" % (node.count, node.duration, node.operator, node.index, node.provider,
                                                  node.name))


if __name__ == "__main__":
    main()
