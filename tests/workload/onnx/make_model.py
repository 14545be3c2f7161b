#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes one of some ONNX models: make_model.py NAME FILE [SIZE=N]...

Names and sizes are the functions in MODELS with their arguments. FILE.json tells the inputs and the nodes, as
onnx_writer.py says.
"""

import sys

from onnx_writer import BOOL, FLOAT, INT64, Graph, write_model

INPUTS, OUTPUTS = 64, 10


def gemm(graph, source, name, inputs, outputs, seed):
    return graph.node("Gemm", [source, graph.weights(name + "_weight", [inputs, outputs], seed),
                               graph.weights(name + "_bias", [outputs], seed + 1)], name)


def small(hidden=256, batch=1):
    """Three layers."""
    graph = Graph("small")
    value = graph.input("input", [batch, INPUTS])
    value = graph.node("Relu", [gemm(graph, value, "hidden1", INPUTS, hidden, 1)], "active1")
    value = graph.node("Relu", [gemm(graph, value, "hidden2", hidden, hidden, 3)], "active2")
    graph.node("MatMul", [value, graph.weights("weight3", [hidden, OUTPUTS], 5)], "output")
    graph.output("output", [batch, OUTPUTS])
    return graph


def unnamed(hidden=64, batch=1):
    """Nodes without a name."""
    graph = Graph("unnamed")
    graph.named = False
    value = graph.input("input", [batch, INPUTS])
    value = graph.node("MatMul", [value, graph.weights("weight1", [INPUTS, hidden], 1)], "hidden")
    value = graph.node("Softmax", [value], "share", axis=-1)
    graph.node("MatMul", [value, graph.weights("weight2", [hidden, OUTPUTS], 2)], "output")
    graph.output("output", [batch, OUTPUTS])
    return graph


def external(hidden=256, batch=1):
    """Two layers, whose weights lie in two files."""
    graph = Graph("external")
    value = graph.input("input", [batch, INPUTS])
    value = graph.node("MatMul", [value, graph.weights("weight1", [INPUTS, hidden], 1, "first.weights")], "hidden")
    graph.node("MatMul", [value, graph.weights("weight2", [hidden, OUTPUTS], 2, "second.weights")], "output")
    graph.output("output", [batch, OUTPUTS])
    return graph


def mlp(hidden=384, batch=1):
    """Of its 15 nodes 9 are left when ONNX Runtime has joined every Gemm and its Relu."""
    graph = Graph("mlp")
    value = graph.input("input", [batch, INPUTS])
    for layer in range(1, 7):
        if layer == 5:
            value = graph.node("Add", ["active1", value], "residual")
        value = gemm(graph, value, "hidden%d" % layer, hidden if layer > 1 else INPUTS, hidden, 2 * layer)
        value = graph.node("Relu", [value], "active%d" % layer)
    value = graph.node("MatMul", [value, graph.weights("weight7", [hidden, OUTPUTS], 14)], "scores")
    graph.node("Softmax", [value], "output", axis=-1)
    graph.output("output", [batch, OUTPUTS])
    return graph


def conv(size=32, channels=16):
    """Two convolutions over a square picture of so many pixels a side."""
    graph = Graph("conv")
    value, inputs = graph.input("input", [1, 3, size, size]), 3
    for layer in (1, 2):
        name, outputs = "conv%d" % layer, channels * layer
        weight = graph.weights(name + "_weight", [outputs, inputs, 3, 3], 2 * layer)
        bias = graph.weights(name + "_bias", [outputs], 2 * layer + 1)
        value = graph.node("Conv", [value, weight, bias], name, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        value = graph.node("Relu", [value], "active%d" % layer)
        value = graph.node("MaxPool", [value], "pool%d" % layer, kernel_shape=[2, 2], strides=[2, 2])
        inputs = outputs
    value = graph.node("GlobalAveragePool", [value], "average")
    value = graph.node("Flatten", [value], "flat")
    gemm(graph, value, "output", inputs, OUTPUTS, 6)
    graph.output("output", [1, OUTPUTS])
    return graph


def normalised(graph, source, name, width, seed):
    return graph.node("LayerNormalization", [source, graph.weights(name + "_scale", [width], seed),
                                             graph.weights(name + "_shift", [width], seed + 1)], name)


def dense(graph, source, name, inputs, outputs, seed):
    value = graph.node("MatMul", [source, graph.weights(name + "_weight", [inputs, outputs], seed)], name + "_product")
    return graph.node("Add", [value, graph.weights(name + "_bias", [outputs], seed + 1)], name)


def attention(length=16, width=64, heads=4):
    """A layer of a transformer."""
    graph = Graph("attention")
    source = graph.input("input", [1, length, width])
    value = normalised(graph, source, "before", width, 1)
    split = graph.constant("split_shape", [1, length, heads, width // heads])
    parts = []
    for name, order, seed in (("query", [0, 2, 1, 3], 3), ("key", [0, 2, 3, 1], 5), ("value", [0, 2, 1, 3], 7)):
        part = graph.node("Reshape", [dense(graph, value, name, width, width, seed), split], name + "_split")
        parts.append(graph.node("Transpose", [part], name + "_heads", perm=order))
    value = graph.node("MatMul", parts[:2], "match")
    value = graph.node("Div", [value, graph.constant("root", (width / heads)**0.5, FLOAT)], "match_scaled")
    value = graph.node("Softmax", [value], "share", axis=-1)
    value = graph.node("Transpose", [graph.node("MatMul", [value, parts[2]], "mix")], "mix_back", perm=[0, 2, 1, 3])
    value = graph.node("Reshape", [value, graph.constant("join_shape", [1, length, width])], "joined")
    value = graph.node("Add", [dense(graph, value, "projected", width, width, 9), source], "attended")
    inner = dense(graph, normalised(graph, value, "between", width, 11), "wide", width, 4 * width, 13)
    inner = dense(graph, graph.node("Relu", [inner], "wide_active"), "narrow", 4 * width, width, 15)
    graph.node("Add", [value, inner], "output")
    graph.output("output", [1, length, width])
    return graph


def lstm(length=8, hidden=32):
    """A recurrent layer over a sequence, of which the last state is classified."""
    graph = Graph("lstm")
    source = graph.input("input", [length, 1, INPUTS])
    shapes = (("weight", INPUTS), ("recurrent", hidden))
    tensors = [graph.weights("lstm_" + name, [1, 4 * hidden, size], size) for name, size in shapes]
    graph.node("LSTM", [source, *tensors, graph.weights("lstm_bias", [1, 8 * hidden], 3)], "states", "last",
               hidden_size=hidden)
    value = graph.node("Squeeze", ["last", graph.constant("axis", [0])], "state")
    gemm(graph, value, "output", hidden, OUTPUTS, 4)
    graph.output("output", [1, OUTPUTS])
    return graph


def nested(name, times, width, make):
    """A graph of one node over a value of the graph around it: a branch of an If."""
    graph = Graph(name, times)
    graph.output(make(graph), [1, width])
    return graph


def loop_body(trips, width):
    """In even iterations another branch than in odd ones."""
    body = Graph("body", trips)
    iteration, going = body.input("iteration", [], INT64), body.input("going", [], BOOL)
    state = body.input("state", [1, width])
    rest = body.node("Mod", [iteration, body.constant("two", 2)], "rest")
    even = body.node("Equal", [rest, body.constant("none", 0)], "even")
    step = body.weights("step", [width], 1)
    added = nested("when_even", (trips + 1) // 2, width, lambda graph: graph.node(
        "Tanh", [graph.node("Add", [state, step], "stepped")], "even_state"))
    shrunk = nested("when_odd", trips // 2, width, lambda graph: graph.node("Mul", [state, step], "odd_state"))
    body.output(body.node("Identity", [going], "going_on"), [], BOOL)
    body.output(body.node("If", [even], "next_state", then_branch=added, else_branch=shrunk), [1, width])
    return body


def scan_body(length, width):
    body = Graph("row_body", length)
    total, row = body.input("total", [1, width]), body.input("row", [1, width])
    body.output(body.node("Add", [total, row], "next_total"), [1, width])
    body.output(body.node("Sigmoid", ["next_total"], "seen"), [1, width])
    return body


def control(trips=5, length=4, width=16):
    """An If, a Loop with an If inside, a Scan. The input that is fed is positive: the If takes its first branch."""
    graph = Graph("control")
    source = graph.input("input", [1, width])
    total = graph.node("ReduceSum", [source], "sum", keepdims=0)
    positive = graph.node("Greater", [total, graph.constant("zero", 0.0, FLOAT)], "positive")
    scale = graph.weights("scale", [width], 2)
    value = graph.node("If", [positive], "chosen",
                       then_branch=nested("when_positive", 1, width,
                                          lambda inner: inner.node("Mul", [source, scale], "scaled")),
                       else_branch=nested("otherwise", 0, width, lambda inner: inner.node("Neg", [source], "negative")))
    value = graph.node("Loop", [graph.constant("trips", trips), graph.constant("start", True, BOOL), value], "looped",
                       body=loop_body(trips, width))
    rows = graph.weights("rows", [length, 1, width], 3)
    graph.node("Scan", [value, rows], "scanned", "all_seen", body=scan_body(length, width), num_scan_inputs=1)
    mean = graph.node("ReduceMean", ["all_seen"], "mean", axes=[0], keepdims=0)
    graph.node("Add", ["scanned", mean], "output")
    graph.output("output", [1, width])
    return graph


def deep(nodes=2000, width=16):
    """A chain of cheap operators that none can be joined with the next."""
    graph = Graph("deep")
    value, other = graph.input("input", [1, width]), graph.weights("other", [width], 1)
    for index in range(nodes):
        operator = ("Add", "Tanh", "Mul", "Neg")[index % 4]
        name = "value%d" % index if index < nodes - 1 else "output"
        value = graph.node(operator, [value, other] if operator in ("Add", "Mul") else [value], name)
    graph.output("output", [1, width])
    return graph


def branches(count=6, hidden=256):
    """Branches that do not depend on each other: ONNX Runtime can run them in parallel."""
    graph = Graph("branches")
    source, ends = graph.input("input", [1, INPUTS]), []
    for index in range(1, count + 1):
        value = gemm(graph, source, "first%d" % index, INPUTS, hidden, 4 * index)
        value = gemm(graph, graph.node("Tanh", [value], "bent%d" % index), "second%d" % index, hidden, hidden,
                     4 * index + 2)
        ends.append(graph.node("Softmax", [value], "end%d" % index, axis=-1))
    gemm(graph, graph.node("Concat", ends, "all", axis=1), "output", count * hidden, OUTPUTS, 2)
    graph.output("output", [1, OUTPUTS])
    return graph


def failing():
    """Its last operator throws, since the shape that it is given does not fit what is fed."""
    graph = Graph("failing")
    source = graph.input("input", [1, INPUTS])
    total = graph.node("Cast", [graph.node("ReduceSum", [source], "sum", keepdims=1)], "whole", to=INT64)
    graph.node("Reshape", [source, graph.node("Squeeze", [total, graph.constant("axis", [0])], "shape")], "output")
    graph.output("output", [1])
    return graph


MODELS = {function.__name__: function
          for function in (small, unnamed, external, mlp, conv, attention, lstm, control, deep, branches, failing)}


def main():
    try:
        make, path = MODELS[sys.argv[1]], sys.argv[2]
        sizes = {name: int(value) for name, value in (word.split("=") for word in sys.argv[3:])}
    except (IndexError, KeyError, ValueError):
        sys.exit("usage: make_model.py %s FILE [SIZE=N]..." % "|".join(MODELS))
    write_model(make(**sizes), path)


if __name__ == "__main__":
    main()
