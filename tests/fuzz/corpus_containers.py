#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the seeds of containers and models for the fuzz target of code objects, in tests/fuzz/corpus/code: small ones that
have each structure that the readers know. Needs clang's bundler; run again only when a structure is added."""
import gzip
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", folder) for folder in ("e2e", os.path.join("workload", "onnx"))]

import code_files as made  # noqa: E402
import onnx_writer as onnx  # noqa: E402

PTX = b".version 8.0\n.target sm_80\n.visible .entry scale() { ret; }\n\0"


def bundle(*targets):
    with tempfile.TemporaryDirectory() as folder:
        for target, data in targets:
            with open(os.path.join(folder, target), "wb") as file:
                file.write(data)
        subprocess.run(["clang-offload-bundler-14", "--type=o", "--outputs=out", "--bundle-align=16",
                        "--targets=" + ",".join(target for target, _ in targets)]
                       + ["--inputs=" + target for target, _ in targets], cwd=folder, check=True)
        with open(os.path.join(folder, "out"), "rb") as file:
            return file.read()


def onnx_model():
    pairs = b"".join(onnx.chunk(13, onnx.chunk(1, key) + onnx.chunk(2, value))
                     for key, value in (("location", "w.bin"), ("offset", "16"), ("length", "4")))
    tensor = onnx.chunk(8, "w") + pairs + onnx.integer(14, 1)
    inner = onnx.Graph("inner")
    inner.parts.append(onnx.chunk(5, tensor))
    graph = onnx.Graph("outer")
    graph.parts += [onnx.chunk(5, tensor), onnx.chunk(15, onnx.chunk(1, tensor))]
    graph.node("If", ["w"], "out", then_branch=inner, alpha=1.5)
    return onnx.integer(1, 8) + onnx.chunk(7, graph.encoded()) + onnx.chunk(8, onnx.integer(2, 17))


CODE_ONNX = 12  # the hint, which stands before each object
HOST = "host-x86_64-unknown-linux-gnu"
GPU = "hipv4-amdgcn-amd-amdhsa--gfx90a"
SPIRV = struct.pack("<5I", 0x07230203, 0x10000, 0, 8, 0)
FATBIN = made.fatbin([(made.PTX, 80, PTX, 0), (made.ELF, 90, b"packed", made.LZ4),
                      (made.ELF, 75, b"\x7fELF\x02\x01", 0)])
STRINGS = struct.pack("<IQ", made.GGUF_STRING, 2) + made.gguf_string("a") + made.gguf_string("b")
SEEDS = {
    "fatbin": FATBIN,
    "bundle": bundle((HOST, b""), (GPU, b"BC\xc0\xde code"), ("hipv4-amdgcn-amd-amdhsa--gfx1100", SPIRV)),
    "bundle_nested": bundle((HOST, FATBIN), (GPU, bundle((HOST, b""), (GPU, SPIRV)))),
    "bundle_compressed_2": b"CCOB" + struct.pack("<HHIIQ", 2, 0, 44, 4, 0) + gzip.compress(b"code", mtime=0)[:20],
    "bundle_compressed_3": b"CCOB" + struct.pack("<HHQQQ", 3, 1, 52, 4, 0) + bytes(20),
    "neff": made.neff(b"archive"),
    "qpc": made.qpc(64),
    "gguf": made.gguf([("general.architecture", made.GGUF_STRING, made.gguf_string("llama")),
                       ("nested", made.GGUF_ARRAY, struct.pack("<IQ", made.GGUF_ARRAY, 2) + 2 * STRINGS),
                       ("scale", made.GGUF_FLOAT64, struct.pack("<d", 1.5)),
                       ("general.name", made.GGUF_STRING, made.gguf_string("tiny"))]),
    "onnx": onnx_model(),
    "mlir": b"ML\xefR\x00\x00",
}

FOLDER = os.path.join(HERE, "corpus", "code")
os.makedirs(FOLDER, exist_ok=True)
for name, seed in SEEDS.items():
    with open(os.path.join(FOLDER, name), "wb") as out:
        out.write(bytes([CODE_ONNX if name == "onnx" else 0]) + seed)
    print("%-20s %5d bytes" % (name, len(seed)))
