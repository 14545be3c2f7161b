#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The described symbols of HIP, HSA, OpenCL and Level Zero in Debian's own libraries, and the operators of its ONNX
Runtime. The libraries are unpacked and not run.

debian_symbols.py [--xputrace FILE] [--packages FOLDER]

Packages come from the sources of the running system, or from FOLDER, where they lie already; those of ONNX Runtime
from the suites that have it, or from FOLDER/SUITE. What is expected is taken from the descriptions and from what
readelf lists: symbols, segments, relocations. That knows nothing of xputrace.
Closing line: N passed, N failed, N skipped.
"""

import argparse
import collections
import functools
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from type_information import compare_operators

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("XPUTRACE_BUILD", os.path.join(ROOT, "build"))
sys.path.insert(0, os.path.join(ROOT, "tests", "vm"))
from packages import Apt, Unavailable

SUITES = ("trixie", "sid")  # that have ONNX Runtime, each another version
FAR = 64  # bytes that a probe may be moved from the entry

# Runtime, names of the package in different suites, the library in it.
LIBRARIES = [
    ("hip", ("libamdhip64-5", "libamdhip64-6", "libamdhip64-7"), "libamdhip64.so.*"),
    ("hsa", ("libhsa-runtime64-1",), "libhsa-runtime64.so.*"),
    ("opencl", ("ocl-icd-libopencl1",), "libOpenCL.so.*"),
    ("level_zero", ("libze1",), "libze_loader.so.*"),
]

# Described, and absent from some of Debian's versions: newer than these, or in another library of the runtime.
ABSENT = {
    "hip": {"hipDrvLaunchKernelEx", "hipExtModuleLaunchKernel", "hipGetProcAddress", "hipLaunchHostFunc",
            "hipLaunchKernelExC", "hipModuleLaunchCooperativeKernel", "hipModuleLoadFatBinary"},
    "hsa": {"hsa_amd_memory_async_batch_copy", "hsa_amd_memory_async_copy_on_engine", "hsa_amd_signal_wait_all",
            "hsa_amd_vmem_handle_create", "hsa_amd_vmem_handle_release"},
    "opencl": {"clIcdGetPlatformIDsKHR", "pocl_update_event_complete"},
    "level_zero": {"zeCommandListAppendLaunchKernelWithArguments", "zeCommandListAppendLaunchKernelWithParameters",
                   "zeCommandListHostSynchronize", "zeCommandListImmediateAppendCommandListsExp", "zeInitDrivers"},
}

Function = collections.namedtuple("Function", "name address")


class Skip(Exception):
    """Why there is nothing to look at."""


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300, check=False, **options)


def unpack(packages, folder, given):
    """Unpacks the first of the packages that can be had into the folder."""
    for package in packages:
        if given:
            files = sorted(glob.glob(os.path.join(given, package + "_*.deb")))
        else:
            result = run("apt-get", "download", package, cwd=folder)
            files = sorted(glob.glob(os.path.join(folder, package + "_*.deb")))
        if not files:
            continue
        result = run("dpkg", "-x", files[-1], os.path.join(folder, "root"))
        if result.returncode:
            raise AssertionError("dpkg -x %s: %s" % (files[-1], result.stderr.strip()))
        return os.path.basename(files[-1])
    reason = "not in %s" % given if given else (result.stderr.strip().splitlines() or ["no reason given"])[-1]
    raise Skip("%s: %s" % (" or ".join(packages), reason))


def find_library(folder, pattern):
    files = [file for file in glob.glob(os.path.join(folder, "root", "**", pattern), recursive=True)
             if not os.path.islink(file)]
    if len(files) != 1:
        raise AssertionError("%d files match %s" % (len(files), pattern))
    return files[0]


def defined_functions(library):
    """Name to address of every function that the library defines, as readelf sees it."""
    functions = collections.defaultdict(set)
    for line in run("readelf", "-W", "--dyn-syms", library).stdout.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[3] == "FUNC" and fields[6] != "UND":
            functions[fields[7].split("@")[0]].add(int(fields[1], 16))
    return functions


def segments(library):
    """File offset, address and size of each executable segment, as readelf sees it."""
    found = []
    for line in run("readelf", "-lW", library).stdout.splitlines():
        fields = line.split()
        if fields and fields[0] == "LOAD" and "E" in "".join(fields[6:-1]):
            found.append(tuple(int(field, 16) for field in (fields[1], fields[2], fields[4])))
    return found


def file_offset(parts, address):
    for offset, start, size in parts:
        if start <= address < start + size:
            return address - start + offset
    raise AssertionError("address %#x lies in no executable segment" % address)


def described(runtime):
    """For each function of the description: all its names, the first being how it is shown."""
    with open(os.path.join(ROOT, "user", "runtimes", runtime + ".json"), encoding="utf-8") as file:
        calls = json.load(file)["calls"]
    return [call.get("symbols") or [call["symbol"]] for call in calls if "symbol" in call or "symbols" in call]


def listed(xputrace, library, runtime):
    result = run(xputrace, "list", "sites", "--file", library, "--format", "json")
    if result.returncode:
        raise AssertionError("xputrace list sites: status %d: %s" % (result.returncode, result.stderr.strip()))
    return [site for site in json.loads(result.stdout) if site["runtime"] == runtime]


def check_described(runtime, sites, functions, parts):
    """Every described function that is there is listed where readelf has it, and what is not there is known."""
    mistakes, there, absent = [], 0, []
    have = {(site["function"], site["function_offset"]) for site in sites}
    for names in described(runtime):
        addresses = {address for name in names for address in functions.get(name, ())}
        if not addresses:
            absent.append(names[0])
            if not set(names) & ABSENT[runtime]:
                mistakes.append("%s is described and not defined" % names[0])
        for address in addresses:
            there += 1
            if (names[0], file_offset(parts, address)) not in have:
                mistakes.append("%s is defined at %#x and not listed there" % (names[0], address))
    return mistakes, there, absent


def check_sites(sites, functions, parts):
    """Nothing is listed that is not there, and no place is probed twice."""
    mistakes, probed = [], set()
    for site in sites:
        offsets = {file_offset(parts, address) for address in functions.get(site["symbol"], ())}
        if site["function_offset"] not in offsets:
            mistakes.append("%s is listed at %#x, where readelf has no such function" % (site["symbol"],
                                                                                        site["function_offset"]))
        if not 0 <= site["offset"] - site["function_offset"] < FAR:
            mistakes.append("%s has its probe at %#x" % (site["symbol"], site["offset"]))
        if site["class"] not in ("optimised", "emulated", "stepped") or site["found_by"] != "symbol":
            mistakes.append("%s: class %s, found by %s" % (site["symbol"], site["class"], site["found_by"]))
        if not site["shared"]:
            if site["offset"] in probed:
                mistakes.append("%s has the probe of another function" % site["symbol"])
            probed.add(site["offset"])
    return mistakes


def check_library(runtime, packages, pattern, options, folder):
    package = unpack(packages, folder, options.packages)
    library = find_library(folder, pattern)
    functions, parts = defined_functions(library), segments(library)
    sites = listed(options.xputrace, library, runtime)
    mistakes, there, absent = check_described(runtime, sites, functions, parts)
    mistakes += check_sites(sites, functions, parts)
    if not there:
        mistakes.append("none of the described functions is defined")
    classes = collections.Counter(site["class"] for site in sites)
    print("        %s: %d functions defined, %d of those described, %d listed (%s), absent: %s" % (
        package, len(functions), there, len(sites),
        ", ".join("%d %s" % (count, name) for name, count in sorted(classes.items())), ", ".join(absent) or "none"))
    if mistakes:
        raise AssertionError("\n".join(mistakes))


def onnxruntime_of(suite, folder, given):
    """Unpacks the suite's package into the folder; its file's name."""
    files = os.path.join(given, suite) if given else folder
    if not given:
        try:
            apt = Apt(os.path.join(folder, "apt"), [suite])
            apt.run("apt-get", "-q", "update")
            names = apt.run("apt-cache", "pkgnames", "libonnxruntime").split()
            apt.run("apt-get", "-q", "download", *[name for name in names if re.fullmatch(r"\D+[\d.]+", name)],
                    cwd=folder)
        except (Unavailable, subprocess.CalledProcessError) as error:
            raise Skip((getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1]) from error
    return unpack(["libonnxruntime[0-9]*"], folder, files)


def check_operators(suite, options, folder):
    package = onnxruntime_of(suite, folder, options.packages)
    library = find_library(folder, "libonnxruntime.so.*")
    result = run(options.xputrace, "list", "operators", "--file", library, "--format", "json")
    if result.returncode:
        raise AssertionError("xputrace list operators: status %d: %s" % (result.returncode, result.stderr.strip()))
    found = compare_operators(library, json.loads(result.stdout), result.stderr)
    print("        %s: %d classes with a method, %d functions" % (package, len(found), len(set(found.values()))))


def main():
    parser = argparse.ArgumentParser(description="Looks for described symbols in Debian's libraries.")
    parser.add_argument("--xputrace", default=os.path.join(BUILD, "xputrace"), help="the program to ask")
    parser.add_argument("--packages", help="folder with the packages; default: download them")
    options = parser.parse_args()
    if not os.access(options.xputrace, os.X_OK):
        parser.error("%s is missing: build it first" % options.xputrace)
    counts = collections.Counter()
    checks = [(runtime, functools.partial(check_library, runtime, packages, pattern))
              for runtime, packages, pattern in LIBRARIES]
    checks += [("onnxruntime_" + suite, functools.partial(check_operators, suite)) for suite in SUITES]
    for name, check in checks:
        folder = tempfile.mkdtemp(prefix="xputrace-debian-")
        os.chmod(folder, 0o777)  # apt downloads as a user of its own
        result, text = "passed", ""
        try:
            for tool in ("dpkg", "readelf") + (() if options.packages else ("apt-get",)):
                if not shutil.which(tool):
                    raise Skip("%s is not installed" % tool)
            check(options, folder)
        except Skip as skip:
            result, text = "skipped", str(skip)
        except (AssertionError, OSError, ValueError, subprocess.TimeoutExpired) as error:
            result, text = "failed", str(error) or type(error).__name__
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        counts[result] += 1
        print("%-7s debian_symbols.%s" % (result, name), flush=True)
        for line in text.splitlines():
            print("        " + line)
    print("%d passed, %d failed, %d skipped" % (counts["passed"], counts["failed"], counts["skipped"]))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
