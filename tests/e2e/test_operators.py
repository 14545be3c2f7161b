# SPDX-License-Identifier: BSD-2-Clause
"""xputrace list operators: classes of stripped libraries, against the symbols that the library had before."""

import json
import os
import re
import shutil
import subprocess

from harness import XPUTRACE, Skip, cases, need, run, scratch
from onnx_models import RELEASES, library
from type_information import compare_operators

SOURCE = r"""
namespace rt {
struct Kernel {
	virtual ~Kernel();
	virtual int Compute(void *) const = 0;
	virtual bool IsAsync() const;
	virtual int ComputeAsync(void *) const;
};
Kernel::~Kernel() {}
bool Kernel::IsAsync() const { return false; }
int Kernel::ComputeAsync(void *) const { return 2; }

template <class T> struct Gemm : Kernel { int Compute(void *p) const override { return p ? sizeof(T) : 77; } };
template struct Gemm<float>;
template struct Gemm<double>;

struct Relu : Kernel { int Compute(void *p) const override; };
int Relu::Compute(void *p) const { return p != 0; }
struct Leaky : Relu { ~Leaky(); };  /* has what Relu has */
Leaky::~Leaky() {}

struct Middle : Kernel { ~Middle(); };  /* still abstract */
Middle::~Middle() {}
struct Deep : Middle { int Compute(void *p) const override; };
int Deep::Compute(void *p) const { return p == 0; }

struct Other { virtual ~Other(); virtual int Compute(void *); long field[3]; };
Other::~Other() {}
int Other::Compute(void *) { return 9; }
struct Second : Other, Kernel { int Compute(void *p) const override; };  /* Kernel is not its first base */
int Second::Compute(void *p) const { return p != this; }
struct Third : Second { ~Third(); };
Third::~Third() {}

struct Loop : Kernel { int Compute(void *) const override; int ComputeAsync(void *) const override; };
int Loop::Compute(void *) const { return 4; }
int Loop::ComputeAsync(void *) const { return 5; }

struct Shared : virtual Kernel { int Compute(void *) const override; };  /* no fixed place */
int Shared::Compute(void *) const { return 6; }
}
namespace {
struct Hidden : rt::Kernel { int Compute(void *) const override; };
int Hidden::Compute(void *) const { return 8; }
}
struct Unrelated { virtual ~Unrelated(); virtual int Compute(void *) const; };
Unrelated::~Unrelated() {}
int Unrelated::Compute(void *) const { return 3; }
extern "C" __attribute__((visibility("default"))) void *toy_run(void *p) { return p ? (void *)new Hidden : new rt::Third; }
"""
DESCRIPTION = {
    "schema": 1, "runtime": "toy", "title": "Toy", "identify": ["toy_run"],
    "operators": {"base": "rt::Kernel", "methods": [{"name": "Compute", "slot": 2, "object": "arg0"},
                                                     {"name": "ComputeAsync", "slot": 4, "object": "arg0"}]},
    "calls": [{"symbol": "toy_run", "role": "execute", "fetch": {"program": "arg0"}}]}
# Class and the function that it has in the slot, as c++filt writes them.
COMPUTE = {
    "rt::Gemm<float>": "rt::Gemm<float>::Compute(void*) const",
    "rt::Gemm<double>": "rt::Gemm<double>::Compute(void*) const",
    "rt::Relu": "rt::Relu::Compute(void*) const",
    "rt::Leaky": "rt::Relu::Compute(void*) const",
    "rt::Deep": "rt::Deep::Compute(void*) const",
    "rt::Second": "non-virtual thunk to rt::Second::Compute(void*) const",
    "rt::Third": "non-virtual thunk to rt::Second::Compute(void*) const",
    "rt::Loop": "rt::Loop::Compute(void*) const",
    "(anonymous namespace)::Hidden": "(anonymous namespace)::Hidden::Compute(void*) const",
}
ASYNC = {"rt::Loop": "rt::Loop::ComputeAsync(void*) const"}  # the others have what the base has


def tool(name):
    path = shutil.which(name)
    if not path:
        raise Skip("%s is not installed" % name)
    return path


def output(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout


def build(folder, *flags):
    """A library with its symbols, and the same without."""
    source, full, bare = (os.path.join(folder, name) for name in ("toy.cpp", "full.so", "bare.so"))
    with open(source, "w", encoding="ascii") as file:
        file.write(SOURCE)
    built = subprocess.run([tool("g++"), "-O1", "-fPIC", "-shared", "-o", full, source, *flags],
                           stderr=subprocess.PIPE, text=True, check=False)
    if built.returncode:
        raise Skip("cannot be built here: " + built.stderr.splitlines()[0])
    subprocess.run([tool("strip"), "-s", "-o", bare, full], check=True)
    assert "no symbols" in subprocess.run(["nm", bare], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                          check=False).stdout
    return full, bare


def described(folder):
    path = os.path.join(folder, "toy.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(DESCRIPTION, file)
    return path


def file_offsets(full):
    """From the name of each function to its offset in the file."""
    segments = [[int(word, 16) for word in match] for match in re.findall(
        r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", output("readelf", "-lW", full))]
    found = {}
    for line in output("nm", "-C", full).splitlines():
        match = re.match(r"(\w{16}) [TtWw] (.*)", line)
        if match:
            address = int(match[1], 16)
            found[match[2]] = next(offset + address - start for offset, start, size in segments
                                   if start <= address < start + size)
    return found


def operators(path, *options):
    result = run([need(XPUTRACE, "collector"), "list", "operators", "-f", path, "--format", "json", *options])
    assert result.status == 0, result.stderr
    return json.loads(result.stdout), result.stderr


@cases("", "-fvisibility=hidden", "-Wl,-z,pack-relative-relocs", "-Wl,-Bsymbolic")
def test_classes(flag):
    """Every class with the base, by its readable name, and the function that it really has."""
    folder = scratch()
    full, bare = build(folder, *flag.split())
    rows, said = operators(bare, "-r", described(folder), "--only", "toy")
    offsets = file_offsets(full)
    for method, wanted in (("Compute", COMPUTE), ("ComputeAsync", ASYNC)):
        found = {row["operator"]: row["function_offset"] for row in rows if row["method"] == method}
        assert len(found) == len([row for row in rows if row["method"] == method]), rows
        assert {name: offsets[function] for name, function in wanted.items()} == found, (method, found, offsets)
    assert {row["operator"]: row["shared"] for row in rows if row["method"] == "Compute"}["rt::Leaky"] == 2
    assert "10 classes derived from rt::Kernel" in said and "as the base has it: 9; not there: 1;" in said and said.endswith("left out: 1\n"), said


@cases(*["%s/%s" % (release, machine) for release in RELEASES for machine in ("x64", "arm64")])
def test_onnxruntime(case):
    """Real libraries without symbols: the classes, their names and methods that another reader finds."""
    path = library(*case.split("/"))
    rows, said = operators(path)
    found = compare_operators(path, rows, said)
    assert {"onnxruntime::Gemm<float>", "onnxruntime::If", "onnxruntime::Loop"} <= set(found)
    if case.endswith("x64"):  # AArch64's first instructions are others
        assert sum(row["class"] == "stepped" for row in rows) < 0.1 * len(rows)


def test_no_type_information():
    """Built without it, as some do for size: why nothing is listed is reported."""
    folder = scratch()
    result = run([XPUTRACE, "list", "operators", "-f", build(folder, "-fno-rtti")[1], "-r", described(folder)])
    assert result.status == 1 and not result.stdout, result.stdout
    assert "no type information of a class rt::Kernel" in result.stderr, result.stderr


def test_nothing_there():
    """A library of another kind, one without the class, and what is no library."""
    for words, status in ((["-f", XPUTRACE], 1), (["-f", "/dev/null"], 1), ([], 2)):
        result = run([XPUTRACE, "list", "operators", *words])
        assert result.status == status and result.stderr.strip(), (words, result.stderr)
