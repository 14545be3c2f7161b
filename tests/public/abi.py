#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compiles abi.c against headers of an older and of a newer version and runs it with the installed library: abi.py PREFIX."""

import pathlib
import re
import shutil
import subprocess
import sys

import tests

HERE = pathlib.Path(__file__).resolve().parent
PREFIX = pathlib.Path(sys.argv[1])
STRUCTS = ("xpt_session_options", "xpt_recording_options", "xpt_target_options", "xpt_session_status")


def newer(body):
    return body + "\n\tunsigned long long later;"


def older(body):
    """Without the last member."""
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL).rstrip()
    return body[:body.rindex(";", 0, -1) + 1]


def headers(name, change):
    """A copy of the installed headers, the structs changed."""
    folder = pathlib.Path(name) / "xputrace"
    shutil.copytree(PREFIX / "include" / "xputrace", folder)
    left = set(STRUCTS)
    for header in folder.glob("*.h"):
        text = header.read_text(encoding="utf-8")
        for struct in sorted(left):
            text, count = re.subn(r"(?<=\nstruct %s \{)(.*?)(?=\n\};)" % struct, lambda found: change(found[1]), text,
                                  flags=re.DOTALL)
            if count:
                left.remove(struct)
        header.write_text(text, encoding="utf-8")
    assert not left, "not in the headers: %s" % ", ".join(left)
    return folder.parent


def compiled(name, include, *options):
    command = ["cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", *options, "-I%s" % include,
               "-o", name + "-abi", str(HERE / "abi.c"), "-L%s" % (PREFIX / "lib"), "-lxputrace",
               "-Wl,-rpath,%s" % (PREFIX / "lib")]
    result = subprocess.run(command, stderr=subprocess.PIPE, check=False, text=True)
    assert result.returncode == 0, result.stderr
    return "./%s-abi" % name


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True, timeout=120).stdout


def works(name, change, sign, *options):
    program = compiled(name, headers(name, change), *options)
    own = output(compiled("same", PREFIX / "include"), "sizes").split()
    sizes = output(program, "sizes").split()
    assert len(own) == len(STRUCTS), own
    assert all((int(size) - int(same)) * sign > 0 for size, same in zip(sizes, own)), "%s, same: %s" % (sizes, own)
    tests.need_root()
    lines = output(program).splitlines()
    assert len(lines) == 3 and all(line.startswith("passed ") for line in lines), "; ".join(lines)


CASES = (("newer", lambda: works("newer", newer, 1, "-DABI_NEWER")), ("older", lambda: works("older", older, -1)))
sys.exit(1 if tests.run("abi", CASES) else 0)
