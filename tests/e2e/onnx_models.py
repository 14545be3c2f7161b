# SPDX-License-Identifier: BSD-2-Clause
"""Models for ONNX Runtime, and its npm packages that run them."""

import glob
import json
import os
import shutil
import subprocess
import sys

from harness import BUILD, ROOT, Skip, scratch

SCRIPTS = os.path.join(ROOT, "tests", "workload", "onnx")
MODELS = ("small", "mlp", "conv", "attention", "lstm", "control", "deep", "branches")
RELEASES = ("npm", "npm-1.23.2", "npm-1.21.1")  # folders below the build's; the first is the newest
MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
_models = {}


def library(release=RELEASES[0], machine=None):
    """The shared library of a release, for this machine when none is given."""
    found = glob.glob(os.path.join(BUILD, release, "node_modules", "onnxruntime-node", "bin", "napi-v*", "linux",
                                   machine or MACHINES.get(os.uname().machine, "none"), "libonnxruntime.so.1"))
    if not found:
        raise Skip("onnxruntime-node is not installed in build/%s" % release)
    return found[0]


def model(name, **sizes):
    """The file with a model; make_model.py has the names and the sizes."""
    key = (name, *sorted(sizes.items()))
    if key not in _models:
        path = os.path.join(scratch(), "-".join([name, *["%s=%d" % size for size in sorted(sizes.items())]]) + ".onnx")
        subprocess.run([sys.executable, os.path.join(SCRIPTS, "make_model.py"), name, path,
                        *["%s=%d" % size for size in sizes.items()]], check=True)
        _models[key] = path
    return _models[key]


def nodes(path):
    """The nodes that a model was made with: by name and operator, how often each runs in an inference."""
    with open(path + ".json", encoding="utf-8") as file:
        return {(node["name"], node["operator"]): node["times"] for node in json.load(file)["nodes"]}


def serve(path, *options, release=RELEASES[0]):
    """The command that runs a model, or several with their names first among the options; serve.mjs has the others."""
    library(release)
    node = shutil.which("node")
    if not node:
        raise Skip("node is not installed")
    return ["env", "XPUTRACE_NPM=" + os.path.join(BUILD, release), node, os.path.join(SCRIPTS, "serve.mjs"), path,
            *[str(option) for option in options]]
