# SPDX-License-Identifier: BSD-2-Clause
"""Code objects of unmodified runtimes: OpenCL programs on PoCL, models of ONNX Runtime from its npm package."""

import hashlib
import json
import os

from codeobj_loads import Capture, check_whole
from harness import WORKLOADS, Skip, Workload, cases, plain_name, scratch
from onnx_models import model, serve
from test_opencl import program as opencl_program

KERNELS = [
    "kernel void vector_add(global const float *a, global float *b) {\n\tb[get_global_id(0)] += *a;\n}\n",
    "/* no kernel here: kernel void not_one(void) */\n#define FACTOR 2.0f\n",
    "kernel void vector_scale(global float *b) {\n\tb[get_global_id(0)] *= FACTOR;\n}\n",
    "float helper(float a) {\n\treturn a * FACTOR;\n}\n",
]


class Given:
    """The bytes of files, one behind the other."""

    def __init__(self, *paths):
        content = b""
        for path in paths:
            with open(path, "rb") as file:
                content += file.read()
        self.size = len(content)
        self.sha256 = hashlib.sha256(content).hexdigest()


def captured_by(capture):
    captured = capture.finish()
    captured.check()
    return captured


# ---- OpenCL ----

@cases("one string", "several strings", "a long string")
def test_opencl(how):
    """A program's source, from strings with lengths and without, and the binary that PoCL has made of it."""
    opencl_program()  # is there a device?
    path = os.path.join(WORKLOADS, "opencl_loads")
    if not os.path.exists(path):
        raise Skip("the OpenCL workload could not be built here")
    folder = scratch()
    texts = {"one string": ["".join(KERNELS)], "several strings": KERNELS,
             "a long string": ["".join(KERNELS) + "/* %s */\n" % ("long " * 100000)]}[how]
    paths = [os.path.join(folder, "%d.cl" % index) for index in range(len(texts))]
    for each, text in zip(paths, texts):
        with open(each, "w", encoding="ascii") as file:
            file.write(text)
    binary = os.path.join(folder, "binary")
    workload = Workload([path, binary, *paths], start_new_session=True)
    capture = Capture("-p", workload.pid)
    workload.go()
    status = workload.wait()
    assert status == 0, workload.stderr
    captured = captured_by(capture)
    source, made = [line for line in map(json.loads, workload.stdout.splitlines()) if "function" in line]
    load = check_whole(captured, source, Given(*paths))
    one = captured.object_of(load)
    assert one["kind"] == "opencl" and load["runtime"] == "opencl", (one, load)
    kernels = {function["name"] for function in one["functions"] if function.get("kernel")}
    assert kernels == {"vector_add", "vector_scale"}, one
    check_whole(captured, made, Given(binary))


# ---- ONNX Runtime ----

def session_again(*options):
    """A server that waits, and makes its session a second time after the go, for a second. What was captured of that."""
    server = Workload(serve(*options, "--wait", "--runs", 1, "--rate", 1, "--recreate"), start_new_session=True)
    capture = Capture("-p", server.pid)
    server.go()
    result, = server.results()
    assert result["runs"] == 2
    return server, captured_by(capture)


def model_load(captured, function):
    """Loads by a function of the table, whichever version of it was called."""
    found = [load for load in captured.loads() if plain_name(load["function"]) == function]
    assert len(found) == 1, captured.loads()
    return found[0], captured.object_of(found[0])


@cases("small", "mlp")
def test_onnx_path(name):
    """A session from a path: the model's file."""
    path = model(name)
    given = Given(path)
    _, captured = session_again(path)
    load, one = model_load(captured, "CreateSession")
    assert one.get("sha256") == given.sha256 and one["kind"] == "onnx" and one["size"] == given.size, one
    assert load["uri"] == "file://" + path and load["runtime"] == "onnxruntime", load
    assert one["name"] == name, one


@cases("small", "large")
def test_onnx_array(size):
    """A session from bytes in memory; a large one has 20 MB of weights."""
    path = model("small", hidden=2200) if size == "large" else model("small")
    given = Given(path)
    server, captured = session_again(path, "--array")
    load, one = model_load(captured, "CreateSessionFromArray")
    assert one.get("sha256") == given.sha256 and one["kind"] == "onnx" and one["size"] == given.size, one
    assert load["uri"].startswith("memory://%d#offset=0x" % server.pid), load
    assert one["name"] == "small", one


def test_onnx_external():
    """A model with weights in files of their own: they are named, with the place that is used."""
    path = model("external")
    _, captured = session_again(path)
    _, one = model_load(captured, "CreateSession")
    assert one.get("sha256") == Given(path).sha256, one
    named = {os.path.basename(part["name"]) for part in one["parts"] if part.get("external")}
    assert named == {"first.weights", "second.weights"}, one


def test_onnx_missing():
    """A model that is not there: the load has failed, the folder is in order."""
    path = model("small")
    moved = path + ".moved"
    server = Workload(serve(path, "--wait", "--runs", 1, "--recreate"), start_new_session=True)
    capture = Capture("-p", server.pid)
    os.rename(path, moved)
    try:
        server.go()
        assert server.wait() != 0
        captured = captured_by(capture)
    finally:
        os.rename(moved, path)
    load, one = model_load(captured, "CreateSession")
    assert load.get("status") and load.get("error", one.get("error")), (load, one)
