# SPDX-License-Identifier: BSD-2-Clause
"""What is read in containers of code and in models, against what they were made of and what other tools say."""

import glob
import gzip
import json
import os
import shutil
import struct
import subprocess
import sys

import code_files
from codeobj_loads import neff
from harness import BUILD, Skip, cases, need, scratch
from onnx_models import MODELS, SCRIPTS, model

sys.path.append(SCRIPTS)

import onnx_writer  # noqa: E402

CUDA = """extern "C" __global__ void scale(float *x, float f) { x[threadIdx.x] *= f; }
extern "C" __device__ __noinline__ float helper(float a) { return a * a + 1; }
extern "C" __global__ void square(float *x) { x[threadIdx.x] = helper(x[threadIdx.x]); }
"""


def read(data, kind=None):
    """What the library says of bytes, or of the file of a path. kind: the hint."""
    program = os.path.join(BUILD, "test-code-read")
    need(program, "make test-e2e")
    path = data
    if isinstance(data, bytes):
        path = os.path.join(scratch(), "object")
        with open(path, "wb") as file:
            file.write(data)
    done = subprocess.run([program, path] + ([kind] if kind else []), stdout=subprocess.PIPE, timeout=20, check=True)
    return json.loads(done.stdout)


def check_parts(found, expected):
    """expected: name -> bytes, in their order. Each lies where its bytes are."""
    assert [part["name"] for part in found["parts"]] == list(expected), (found, list(expected))
    for part, data in zip(found["parts"], expected.values()):
        assert part["size"] == len(data), part


def bundle(targets, *options):
    """A bundle of clang with bytes for each target, and what clang lists in it."""
    found = sorted(glob.glob("/usr/bin/clang-offload-bundler-*"))  # some distributions have the name without a version, too
    if not found:
        raise Skip("clang-offload-bundler is not installed")
    folder = scratch()
    path = os.path.join(folder, "bundle")
    names = []
    for number, data in enumerate(targets.values()):
        names.append(os.path.join(folder, "part-%d" % number))
        with open(names[-1], "wb") as file:
            file.write(data)
    subprocess.run([found[-1], "--type=o", "--targets=" + ",".join(targets), *options, "--outputs=" + path]
                   + ["--inputs=" + name for name in names], check=True)
    listed = subprocess.run([found[-1], "--list", "--type=o", "--inputs=" + path], stdout=subprocess.PIPE, text=True,
                            check=True)
    with open(path, "rb") as file:
        return file.read(), listed.stdout.split()


def test_bundle():
    """Targets as clang lists them, each with the bytes that it was given, and the size up to the last one."""
    targets = {"host-x86_64-unknown-linux-gnu": b"", "hipv4-amdgcn-amd-amdhsa--gfx90a": b"BC\xc0\xde" * 100,
               "hipv4-amdgcn-amd-amdhsa--gfx1100": bytes(range(256)) * 10}
    data, listed = bundle(targets, "--bundle-align=4096")
    found = read(data)
    assert (found["kind"], found["error"], found["own_size"]) == ("bundle", None, len(data)), found
    assert {part["name"] for part in found["parts"]} == set(listed), (found, listed)
    check_parts(found, targets)
    for part, content in zip(found["parts"], targets.values()):
        assert data[part["offset"]:part["offset"] + part["size"]] == content, part
    assert [part["kind"] for part in found["parts"]] == ["unknown", "bitcode", "unknown"]


def test_bundle_compressed():
    """Nothing is reported of what is in it, but its size is, where its version has that."""
    packed = gzip.compress(b"code")
    for version, sizes, known in ((1, struct.pack("<I", 4), False), (2, None, True), (3, None, True)):
        form = "<II" if version == 2 else "<QQ"
        size = 8 + struct.calcsize(form) + 8 + len(packed)
        header = b"CCOB" + struct.pack("<HH", version, 0) + (sizes or struct.pack(form, size, 4)) + bytes(8)
        found = read(header + packed)
        assert (found["kind"], found["error"], found["parts"]) == ("bundle", None, []), found
        assert found["own_size"] == (len(header + packed) if known else 0), found


def test_fatbin():
    """Texts are read as such, what is packed is reported with its place."""
    ptx = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry scale() { ret; }\n\0"
    data = code_files.fatbin([(code_files.PTX, 80, ptx, 0), (code_files.ELF, 90, b"packed bytes", code_files.LZ4),
                              (code_files.ELF, 100, b"others", code_files.ZSTD)])
    found = read(data + b"behind it")
    assert (found["kind"], found["error"], found["own_size"]) == ("fatbin", None, len(data)), found
    assert [(part["name"], part["kind"]) for part in found["parts"]] == [
        ("sm_80", "ptx"), ("sm_90", "cubin"), ("sm_100", "cubin")], found
    for part, content in zip(found["parts"], (ptx, b"packed bytes", b"others")):
        assert data[part["offset"]:part["offset"] + part["size"]].rstrip(b"\0") == content.rstrip(b"\0"), part


def nvcc(*options):
    """What NVIDIA's compiler makes of two kernels and a function."""
    if not shutil.which("nvcc"):
        raise Skip("nvcc is not installed")
    folder = scratch()
    with open(os.path.join(folder, "kernels.cu"), "w", encoding="ascii") as file:
        file.write(CUDA)
    subprocess.run(["nvcc", *options, "kernels.cu", "-o", "made"], cwd=folder, check=True, timeout=60)
    with open(os.path.join(folder, "made"), "rb") as file:
        return file.read()


def test_fatbin_of_nvcc():
    """As the compiler writes them: for one machine, its family, and PTX; each cubin is what it makes without a container."""
    data = nvcc("-fatbin", "--no-compress", "-gencode=arch=compute_80,code=sm_80",
                "-gencode=arch=compute_90a,code=[sm_90a,compute_90a]", "-gencode=arch=compute_100f,code=sm_100f")
    found = read(data)
    assert (found["kind"], found["error"], found["own_size"]) == ("fatbin", None, len(data)), found
    assert [(part["name"], part["kind"]) for part in found["parts"]] == [
        ("sm_80", "cubin"), ("sm_90a", "cubin"), ("sm_90a", "ptx"), ("sm_100f", "cubin")], found["parts"]
    cubins = [part for part in found["parts"] if part["kind"] == "cubin"]
    for part, target in zip(cubins, ("80", "90a", "100f")):
        cubin = nvcc("-cubin", "-arch=sm_" + target)
        assert data[part["offset"]:part["offset"] + part["size"]] == cubin, part
        inside = [function for function in found["functions"] if part["offset"] <= function["offset"]
                  < part["offset"] + part["size"]]
        assert {function["name"] for function in inside if function["kernel"]} == {"scale", "square"}, inside
        for function in inside:
            function["offset"] -= part["offset"]
        assert inside == read(cubin)["functions"], part
    text, = [function for function in found["functions"] if function["name"] == "square" and not function["offset"]]
    assert text["kernel"], text


@cases("size", "speed", "balance")
def test_fatbin_packed(mode):
    """Compressed as the compiler does it: whole cubins or texts have their place and no functions."""
    data = nvcc("-fatbin", "--compress-mode=" + mode, "-gencode=arch=compute_80,code=[sm_80,compute_80]")
    found = read(data)
    assert (found["error"], found["own_size"]) == (None, len(data)), found
    assert [(part["name"], part["kind"]) for part in found["parts"]] == [("sm_80", "cubin"), ("sm_80", "ptx")], found
    assert not [function for function in found["functions"] if not function["offset"]], found["functions"]


def test_unpublished():
    """Of formats without a published layout: kind and size."""
    for kind, data in (("neff", neff(5000, 1)), ("neff", code_files.neff(b"archive")), ("qpc", code_files.qpc(300))):
        found = read(data)
        assert (found["kind"], found["error"], found["name"]) == (kind, None, None), found
        assert not found["parts"] and not found["functions"], found
    assert read(code_files.neff(b"archive") + b"behind it")["own_size"] == len(code_files.neff(b"archive"))
    assert read(code_files.qpc(300) + b"behind it")["own_size"] == 300


def test_onnx():
    """Models that ONNX Runtime runs in other tests: the name of the graph, nothing outside."""
    for name in MODELS:
        path = model(name)
        with open(path + ".json", encoding="utf-8") as file:
            expected = json.load(file)["model"]
        found = read(path, "onnx")
        assert (found["kind"], found["name"], found["error"], found["parts"]) == ("onnx", expected, None, []), found


def external(name, location, offset=None, length=None):
    """A tensor whose weights are in a file; the keys stand before what says that they count."""
    pairs = [("location", location)] + [(key, str(value)) for key, value in (("offset", offset), ("length", length))
                                        if value is not None]
    return onnx_writer.chunk(8, name) + b"".join(
        onnx_writer.chunk(13, onnx_writer.chunk(1, key) + onnx_writer.chunk(2, value)) for key, value in pairs)


def test_onnx_external():
    """Each file once, with what is used of it, those of nested graphs too; what does not count is left out."""
    outside = onnx_writer.integer(14, 1)
    inner = onnx_writer.Graph("inner")
    inner.parts.append(onnx_writer.chunk(5, external("c", "nested.bin", 16, 4) + outside))
    graph = onnx_writer.Graph("outer")
    graph.parts += [onnx_writer.chunk(5, tensor) for tensor in (
        external("a", "weights.bin", 4096, 100) + outside, external("b", "../up/other.bin") + outside,
        external("d", "weights.bin", 8192, 200) + outside, external("e", "not.bin"))]
    graph.node("If", ["a"], "out", then_branch=inner)
    path = os.path.join(scratch(), "external.onnx")
    onnx_writer.write_model(graph, path)
    found = read(path, "onnx")
    assert (found["name"], found["error"]) == ("outer", None), found
    assert [(part["name"], part["external"], part["offset"], part["size"]) for part in found["parts"]] == [
        ("weights.bin", True, 4096, 8392 - 4096), ("../up/other.bin", True, 0, 0), ("nested.bin", True, 16, 4)], found
    with open(path, "rb") as file:
        data = file.read()
    found = read(data[:-100], "onnx")
    assert "cannot be read" in found["error"], found


def test_gguf():
    """The name of the model, behind values of every shape."""
    strings = struct.pack("<IQ", code_files.GGUF_STRING, 2) + code_files.gguf_string("a") + code_files.gguf_string("b")
    pairs = [("general.architecture", code_files.GGUF_STRING, code_files.gguf_string("llama")),
             ("split.count", code_files.GGUF_UINT32, struct.pack("<I", 2)),
             ("tokens", code_files.GGUF_ARRAY, strings),
             ("nested", code_files.GGUF_ARRAY, struct.pack("<IQ", code_files.GGUF_ARRAY, 2) + 2 * strings),
             ("scale", code_files.GGUF_FLOAT64, struct.pack("<d", 1.5)),
             ("general.name", code_files.GGUF_STRING, code_files.gguf_string("Tiny \u00fc"))]
    for version in (2, 3):
        found = read(code_files.gguf(pairs, version))
        assert (found["kind"], found["name"], found["machine"], found["error"]) == ("gguf", "Tiny \u00fc", None,
                                                                                   None), found
    assert "cannot be read" in read(code_files.gguf(pairs)[:-4])["error"]
    assert "version" in read(code_files.gguf(pairs, 1))["error"]


def test_mlir():
    """Bytecode is reported, and nothing in it."""
    found = read(b"ML\xefR" + bytes(20))
    assert (found["kind"], found["error"], found["functions"]) == ("mlir", None, []), found
