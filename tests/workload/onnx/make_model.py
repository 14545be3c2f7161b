#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes a small ONNX model without any ONNX package: make_model.py FILE [HIDDEN [BATCH]].

A multi-layer perceptron: Gemm 64->HIDDEN, Relu, Gemm HIDDEN->HIDDEN, Relu, MatMul HIDDEN->10, for BATCH inputs at a
time; 256 and 1 when they are not given. The weights come from a fixed linear
congruential generator, so the file is the same everywhere. The encoding is that of protocol buffers: a field is a key
(number << 3 | type) followed by a varint (type 0) or a length and bytes (type 2).
"""

import struct
import sys

FLOAT = 1  # TensorProto.DataType
INPUTS, OUTPUTS = 64, 10
REPEAT = 65521  # large tensors repeat themselves after so many weights: Python is slow


def varint(number):
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def integer(field, value):
    return varint(field << 3) + varint(value)


def chunk(field, value):
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def weights(seed):
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield ((state >> 40) / 2**24 - 0.5) / 4


def tensor(name, shape, seed):
    """TensorProto: dims 1, data_type 2, name 8, raw_data 9."""
    count = 1
    for size in shape:
        count *= size
    source = weights(seed)
    few = [next(source) for _ in range(min(count, REPEAT))]
    raw = (struct.pack("<%df" % len(few), *few) * (count // len(few) + 1))[:4 * count]
    return b"".join(integer(1, size) for size in shape) + integer(2, FLOAT) + chunk(8, name) + chunk(9, raw)


def node(operator, inputs, output):
    """NodeProto: input 1, output 2, name 3, op_type 4."""
    return (b"".join(chunk(1, name) for name in inputs) + chunk(2, output) + chunk(3, output + "_node")
            + chunk(4, operator))


def value(name, shape):
    """ValueInfoProto: name 1, type 2; TypeProto: tensor_type 1 {elem_type 1, shape 2 {dim 1 {dim_value 1}}}."""
    dimensions = b"".join(chunk(1, integer(1, size)) for size in shape)
    return chunk(1, name) + chunk(2, chunk(1, integer(1, FLOAT) + chunk(2, dimensions)))


def model(hidden, batch):
    """ModelProto: ir_version 1, producer_name 2, graph 7, opset_import 8 {domain 1, version 2}.
    GraphProto: node 1, name 2, initializer 5, input 11, output 12."""
    nodes = [
        node("Gemm", ["input", "weight1", "bias1"], "hidden1"),
        node("Relu", ["hidden1"], "active1"),
        node("Gemm", ["active1", "weight2", "bias2"], "hidden2"),
        node("Relu", ["hidden2"], "active2"),
        node("MatMul", ["active2", "weight3"], "output"),
    ]
    tensors = [
        tensor("weight1", [INPUTS, hidden], 1), tensor("bias1", [hidden], 2),
        tensor("weight2", [hidden, hidden], 3), tensor("bias2", [hidden], 4),
        tensor("weight3", [hidden, OUTPUTS], 5),
    ]
    graph = (b"".join(chunk(1, item) for item in nodes) + chunk(2, "mlp")
             + b"".join(chunk(5, item) for item in tensors)
             + chunk(11, value("input", [batch, INPUTS])) + chunk(12, value("output", [batch, OUTPUTS])))
    return integer(1, 8) + chunk(2, "xputrace") + chunk(7, graph) + chunk(8, chunk(1, "") + integer(2, 13))


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit("usage: make_model.py FILE [HIDDEN [BATCH]]")
    hidden, batch = [int(text) for text in sys.argv[2:]] + [256, 1][len(sys.argv) - 2:]
    with open(sys.argv[1], "wb") as file:
        file.write(model(hidden, batch))


if __name__ == "__main__":
    main()
