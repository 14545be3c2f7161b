#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the libraries offer what the installed headers declare, and nothing else, and that they and the command
are built with the compiler's checks: exports.py PREFIX."""

import os
import pathlib
import re
import subprocess
import sys

import tests

PREFIX = pathlib.Path(sys.argv[1])
MAP = pathlib.Path(__file__).resolve().parents[2] / "user" / "libxputrace.map"


def declared():
    """Functions that the headers mark as part of the interface."""
    names = set()
    for header in (PREFIX / "include" / "xputrace").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
        names.update(re.findall(r"\bXPT_(?:REGION_)?API\b[^;({]*?\b(\w+)\s*\(", text))
    return names


def symbols(library, *options):
    """Names of the symbols that nm lists, without versions and undefined ones."""
    text = subprocess.run(["nm", "--defined-only", *options, str(PREFIX / "lib" / library)], stdout=subprocess.PIPE,
                          check=True, text=True).stdout
    lines = [line.split() for line in text.splitlines()]
    return {words[2].split("@")[0] for words in lines if len(words) == 3 and words[1] != "A"}


def same(what, found):
    wanted = declared()
    assert len(wanted) > 40, "only %d functions in the headers" % len(wanted)
    missing, more = sorted(wanted - found), sorted(found - wanted)
    assert not missing, "%s lacks %s" % (what, ", ".join(missing))
    assert not more, "%s has %s, too" % (what, ", ".join(more))


def shared():
    """The shared library has the declared functions and no other symbol."""
    same("libxputrace.so", symbols("libxputrace.so", "--dynamic"))


def listed():
    """The map has each name, in order, and no pattern that would export what nobody has decided about."""
    names = re.findall(r"^\t(\S+);$", MAP.read_text(encoding="utf-8").split("local:")[0], re.MULTILINE)
    same("libxputrace.map", set(names))
    assert names == sorted(set(names)), "libxputrace.map: names are not sorted, or stand twice"


def static():
    """So has the archive: nothing in it can clash with a name of the program."""
    same("libxputrace.a", symbols("libxputrace.a", "--extern-only"))


def versions():
    """Every one has a version, so that a later library can keep it."""
    text = subprocess.run(["readelf", "--dyn-syms", "--wide", str(PREFIX / "lib" / "libxputrace.so")],
                          stdout=subprocess.PIPE, check=True, text=True).stdout
    bare = [name for name in re.findall(r"\s(xpt_\w+)$", text, re.MULTILINE)]
    assert not bare, "without a version: %s" % ", ".join(bare)
    assert "@@XPUTRACE_0" in text, "no versions at all"


def manuals():
    """Every function has a manual page of section 3 with a text of its own."""
    texts = {}
    folder = PREFIX / "share" / "man" / "man3"
    for page in folder.glob("xputrace_*.h.3"):
        part = page.read_text(encoding="utf-8").partition('.SH "Function Documentation"')[2].partition('.SH "Author"')[0]
        for heading, text in re.findall(r'^\.SS "(.*)"\n((?:(?!\.S[SH]).*\n)*)', part, re.MULTILINE):
            texts[re.search(r"(xpt_\w+)(?:\\fP)? \(", heading)[1]] = text.replace(".PP", "").strip()
    missing = sorted(name for name in declared() if not texts.get(name) and not name.startswith("xpt_region"))
    assert not missing, "no text on %s" % ", ".join(missing)
    for name in sorted(declared()):
        page = (folder / (name + ".3")).read_text(encoding="utf-8")
        link = re.match(r"\.so (man3/\S+)", page)
        assert link is None or (folder.parent / link[1]).exists(), "%s.3 refers to %s" % (name, link[1])


def hardened():
    """Each file checks its stack and the lengths of its buffers; every object marks the targets of branches."""
    for file in ("lib/libxputrace.so", "lib/libxputrace.a", "bin/xputrace"):
        text = subprocess.run(["nm", "--undefined-only", str(PREFIX / file)], stdout=subprocess.PIPE, check=True,
                              text=True).stdout
        assert "__stack_chk_fail" in text, "%s does not check its stack" % file
        assert re.search(r"__\w*(?:mem|str|print)\w*_chk\b", text) or unoptimised(), "%s: no _FORTIFY_SOURCE" % file
    objects = pathlib.Path(os.environ["XPUTRACE_BUILD"], "obj/user/cli").glob("*.o")
    for file in [PREFIX / "lib/libxputrace.a", *objects]:
        text = subprocess.run(["readelf", "--notes", str(file)], stdout=subprocess.PIPE, check=True, text=True).stdout
        assert re.search(r"feature: (IBT, SHSTK|BTI, PAC)", text), "%s: branches are not protected" % file


def unoptimised():
    """The C library has these checks only where the compiler optimises."""
    flags = pathlib.Path(os.environ["XPUTRACE_BUILD"], "flags").read_text(encoding="utf-8").split()
    return flags[:flags.index("-target")].count("-O0") > 0


CASES = (shared, listed, static, versions, manuals, hardened)
sys.exit(1 if tests.run("exports", [(case.__name__, case) for case in CASES]) else 0)
