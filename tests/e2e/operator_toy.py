# SPDX-License-Identifier: BSD-2-Clause
"""The toy runtime whose programs are made of operators (tests/workload/operators)."""

import json
import os

from harness import scratch, workload_path

DESCRIPTION = {
    "schema": 1, "runtime": "toy", "title": "Toy", "identify": ["toy_run"],
    "operators": {"base": "rt::Kernel", "methods": [{"name": "Compute", "slot": 2, "object": "arg0"}]},
    "calls": [{"symbol": "toy_run", "role": "execute", "fetch": {"program": "arg0"}}]}
_described = []


def description():
    """The file that describes the runtime."""
    if not _described:
        path = os.path.join(scratch(), "toy.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(DESCRIPTION, file)
        _described.append(path)
    return _described[0]


def toy(text, runs=1, threads=1):
    """The command that runs it."""
    return [workload_path("operators/main"), text, str(runs), str(threads)]
