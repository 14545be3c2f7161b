# SPDX-License-Identifier: BSD-2-Clause
"""Builds the tests' own kernel module, tests/vm/driver, for a kernel: outside the emulated machine, with the compiler
of the one that this runs on.

Debian's headers bring programs that run while a module is built (modpost, objtool). They were made for the same release
of Debian as the kernel: where this machine's C library is too old for them, they get the libraries of their release.
"""

import glob
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "driver")
NAME = "xptaccel"
KEPT_LINES = 30  # of what a failed build said

# The kernel's configuration tells what the compiler knows that Debian has built it with; this machine's may be older.
COMPILERS = {"amd64": ["CC=gcc", "CROSS_COMPILE="],
             "arm64": ["CC=aarch64-linux-gnu-gcc", "CROSS_COMPILE=aarch64-linux-gnu-", "ARCH=arm64",
                       "CC_FLAGS_FTRACE="]}  # older compilers do not align functions as ftrace of AArch64 wants
OPTIONS = [
    "CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=",  # gcc 14; without, functions are aligned in another way
    "KCFLAGS=-Wno-attributes",  # counted_by: gcc 15
    "CONFIG_DEBUG_INFO_BTF_MODULES=",  # types of this module are of no use, and need pahole
]


class Failed(Exception):
    """There is no module for this kernel; the text says why."""


def one(pattern, what):
    found = glob.glob(pattern)
    if len(found) != 1:
        raise Failed("the kernel's headers have %d times %s" % (len(found), what))
    return found[0]


def runs_here(program):
    """Whether this machine's libraries are what an ELF file needs."""
    listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
    return "not found" not in listed.stdout


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def wrap(program, root):
    """Puts a script in a program's place that starts it with the dynamic loader and the libraries below root."""
    here = os.path.dirname(program)
    loader = os.path.relpath(os.path.join(root, "usr", "lib64", "ld-linux-x86-64.so.2"), here)
    libraries = os.path.relpath(os.path.join(root, "usr", "lib", "x86_64-linux-gnu"), here)
    os.rename(program, program + ".elf")
    with open(program, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nhere=$(dirname \"$0\")\n"
                   "exec \"$here/%s\" --library-path \"$here/%s\" \"$0.elf\" \"$@\"\n" % (loader, libraries))
    os.chmod(program, 0o755)


def prepare(root):
    """Makes the programs below root run here. Does nothing the second time: a script is no ELF file."""
    for folder, _, names in os.walk(os.path.join(root, "usr", "lib")):
        if "linux-kbuild-" not in folder:
            continue
        for path in (os.path.join(folder, name) for name in names if not name.endswith(".elf")):
            if not os.path.islink(path) and is_elf(path) and not runs_here(path):
                wrap(path, root)


def up_to_date(product, sources):
    return os.path.exists(product) and all(os.path.getmtime(product) >= os.path.getmtime(path) for path in sources)


def build(kernel, folder):
    """The module for a kernel, in folder; made again when a source is newer, or the kernel is another one."""
    sources = [path for ending in ("Kbuild", "*.c", "*.h") for path in glob.glob(os.path.join(SOURCES, ending))]
    place = os.path.abspath(os.path.join(folder, "driver-" + kernel.release))
    product = os.path.join(place, NAME + ".ko")
    if up_to_date(product, sources + [os.path.abspath(__file__)]):
        return product
    prepare(kernel.headers)
    configured = one(os.path.join(kernel.headers, "usr", "src", "linux-headers-*-" + kernel.architecture),
                     "a configuration")
    common = one(os.path.join(kernel.headers, "usr", "src", "linux-headers-*-common"), "the common part")
    for old in glob.glob(os.path.join(folder, "driver-*")):
        shutil.rmtree(old)
    os.makedirs(place)
    for path in sources:
        shutil.copy(path, place)
    # Debian's own Makefile in the configured folder says the same with the paths of installed packages.
    made = subprocess.run(["make", "-s", "-C", configured, "-f", os.path.join(common, "Makefile"),
                           "KBUILD_OUTPUT=" + configured, "M=" + place] + COMPILERS[kernel.architecture] + OPTIONS + ["modules"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
    if made.returncode != 0:
        raise Failed("the module was not built for %s:\n%s" % (
            kernel.release, "\n".join(made.stdout.splitlines()[-KEPT_LINES:])))
    return product
