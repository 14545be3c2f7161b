# SPDX-License-Identifier: BSD-2-Clause
"""Writes ONNX models without any ONNX package.

A model is a message of protocol buffers: its fields are a key (number << 3 | type) followed by a varint (type 0), by
a length and as many bytes (type 2), or by four bytes (type 5). Field numbers are those of onnx.proto.
"""

import json
import os
import struct

FLOAT, INT64, BOOL = 1, 7, 9  # TensorProto.DataType
IR_VERSION, OPSET = 8, 17
REPEAT = 65521  # large tensors repeat themselves after so many weights: Python is slow


def varint(number):
    encoded = bytearray()
    number &= 2**64 - 1
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


def chunks(field, values):
    return b"".join(chunk(field, value) for value in values)


def weights(seed):
    """Numbers between -1/8 and 1/8 from a linear congruential generator: the same everywhere."""
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield ((state >> 40) / 2**24 - 0.5) / 4


def tensor(name, kind, shape, raw):
    """TensorProto: dims 1, data_type 2, name 8, raw_data 9."""
    return b"".join(integer(1, size) for size in shape) + integer(2, kind) + chunk(8, name) + chunk(9, raw)


def tensor_elsewhere(name, kind, shape, **where):
    """TensorProto whose bytes lie in a file: external_data 13 {key 1, value 2}, data_location 14."""
    return b"".join(integer(1, size) for size in shape) + integer(2, kind) + chunk(8, name) + \
        chunks(13, [chunk(1, key) + chunk(2, str(value)) for key, value in where.items()]) + integer(14, 1)


def attribute(name, value):
    """AttributeProto: name 1, f 2, i 3, s 4, g 6, ints 8, type 20."""
    if isinstance(value, Graph):
        encoded, kind = chunk(6, value.encoded()), 5
    elif isinstance(value, str):
        encoded, kind = chunk(4, value), 3
    elif isinstance(value, float):
        encoded, kind = varint(2 << 3 | 5) + struct.pack("<f", value), 1
    elif isinstance(value, int):
        encoded, kind = integer(3, value), 2
    else:
        encoded, kind = b"".join(integer(8, each) for each in value), 7
    return chunk(1, name) + encoded + integer(20, kind)


def value_info(name, shape, kind):
    """ValueInfoProto: name 1, type 2; TypeProto: tensor_type 1 {elem_type 1, shape 2 {dim 1 {dim_value 1}}}."""
    dimensions = chunks(1, [integer(1, size) for size in shape])
    return chunk(1, name) + chunk(2, chunk(1, integer(1, kind) + chunk(2, dimensions)))


class Graph:
    """A graph, or one nested in a node of another. Names of nodes and values are unique in the whole model."""

    named = True  # nodes have names

    def __init__(self, name, times=1):
        """times: how often the graph runs in one inference."""
        self.name = name
        self.times = times
        self.parts = []  # encoded fields
        self.inputs = []  # as in the description
        self.nodes = []  # those of nested graphs too, as in the description
        self.files = {}  # beside the model: name, bytes

    def input(self, name, shape, kind=FLOAT):
        self.inputs.append({"name": name, "shape": shape})
        self.parts.append(chunk(11, value_info(name, shape, kind)))
        return name

    def output(self, name, shape, kind=FLOAT):
        self.parts.append(chunk(12, value_info(name, shape, kind)))

    def weights(self, name, shape, seed, file=None):
        """A tensor with weights that only the seed decides, in the model or at the end of a file beside it."""
        count = 1
        for size in shape:
            count *= size
        source = weights(seed)
        few = [next(source) for _ in range(min(count, REPEAT))]
        raw = (struct.pack("<%df" % len(few), *few) * (count // len(few) + 1))[:4 * count]
        if file:
            offset = len(self.files.setdefault(file, b""))
            self.files[file] += raw
            self.parts.append(chunk(5, tensor_elsewhere(name, FLOAT, shape, location=file, offset=offset, length=len(raw))))
        else:
            self.parts.append(chunk(5, tensor(name, FLOAT, shape, raw)))
        return name

    def constant(self, name, values, kind=INT64):
        """A tensor of one dimension, or of none for a single value."""
        shape = [len(values)] if isinstance(values, list) else []
        few = values if isinstance(values, list) else [values]
        raw = struct.pack("<%d%s" % (len(few), {FLOAT: "f", INT64: "q", BOOL: "?"}[kind]), *few)
        self.parts.append(chunk(5, tensor(name, kind, shape, raw)))
        return name

    def node(self, operator, inputs, *outputs, **attributes):
        """NodeProto: input 1, output 2, name 3, op_type 4, attribute 5. Named by its first output, which it returns."""
        name = outputs[0] + "_node" if self.named else ""
        self.parts.append(chunk(1, chunks(1, inputs) + chunks(2, outputs) + chunk(3, name) + chunk(4, operator)
                                + chunks(5, [attribute(*each) for each in attributes.items()])))
        self.nodes.append({"name": name, "operator": operator, "times": self.times})
        for nested in attributes.values():
            if isinstance(nested, Graph):
                self.nodes += nested.nodes
        return outputs[0]

    def encoded(self):
        """GraphProto: node 1, name 2, initializer 5, input 11, output 12."""
        return b"".join(self.parts) + chunk(2, self.name)


def write_model(graph, path):
    """Writes the model, and beside it its files, and FILE.json: its inputs, which are of type float, and its nodes with how
    often each runs in an inference.

    ModelProto: ir_version 1, producer_name 2, graph 7, opset_import 8 {domain 1, version 2}."""
    with open(path, "wb") as file:
        file.write(integer(1, IR_VERSION) + chunk(2, "xputrace") + chunk(7, graph.encoded())
                   + chunk(8, chunk(1, "") + integer(2, OPSET)))
    for name, content in graph.files.items():
        with open(os.path.join(os.path.dirname(path), name), "wb") as file:
            file.write(content)
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump({"model": graph.name, "inputs": graph.inputs, "nodes": graph.nodes}, file, indent="\t")
        file.write("\n")
