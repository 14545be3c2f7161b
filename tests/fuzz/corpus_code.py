#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the seeds of ELF, PTX, SPIR-V and OpenCL C for the fuzz target of code objects, in tests/fuzz/corpus/code.

Needs clang, lld and spirv-as; run again only when a reader learns something. The first byte of a seed is the hint.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))

import harness  # noqa: E402 (found only now)
import test_codeobj_elf as objects  # noqa: E402

OPENCL = 25  # 9, as no white space


def content(path):
    with open(path, "rb") as file:
        return file.read()


def main():
    amd = ("--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a")
    module = os.path.join(harness.scratch(), "module.spv")
    objects.output(objects.tool("spirv-as"), objects.write("module.spvasm", objects.SPIRV), "-o", module)
    linked = objects.compiled(*amd)
    objects.output(objects.tool("llvm-strip"), linked)
    seeds = {
        "hsaco": content(linked),
        "hsaco_relocatable": content(objects.compiled(*amd, "-c")),
        "cubin": objects.elf(0x500550, 7),
        "cubin_shifted": objects.elf(0x6006402, 8),
        "elf_big": objects.elf(0, 0, order=">", machine=22),
        "elf_narrow": objects.elf(0, 0, wide=False, machine=40),
        "ptx": content(objects.ptx()),
        "spirv": content(module),
        "opencl": objects.SOURCE.encode(),
    }
    folder = os.path.join(HERE, "corpus", "code")
    os.makedirs(folder, exist_ok=True)
    for name, data in seeds.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(bytes([OPENCL if name == "opencl" else 0]) + data)
        print(name, len(data) + 1)


main()
