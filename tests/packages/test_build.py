# SPDX-License-Identifier: BSD-2-Clause
"""The source as an archive, and what is built of it."""

import filecmp
import os
import re
import subprocess

from support import BUILD, ROOT, SCRATCH, VERSION, make, output

ARCHIVE = os.path.join(BUILD, "xputrace-%s.tar.gz" % VERSION)


def build(folder, umask, **environment):
    """The archive, unpacked, built and installed as for /usr in a folder; the folders of the build and of what is installed."""
    os.makedirs(folder)
    surroundings = {"env": {**os.environ, **environment}, "preexec_fn": lambda: os.umask(umask)}
    output("tar", "-xzf", ARCHIVE, "-C", folder, **surroundings)
    source, installed = os.path.join(folder, "xputrace-" + VERSION), os.path.join(folder, "installed")
    make("-C", source, "-j%d" % os.cpu_count(), "install", "prefix=/usr", "DESTDIR=" + installed, "CFLAGS=-O2 -g", **surroundings)
    return os.path.join(source, "build"), installed


def files(folder):
    return sorted(os.path.relpath(os.path.join(place, name), folder) for place, _, names in os.walk(folder) for name in names)


def same(first, second, wanted):
    """The files of two folders are equal, wanted among them."""
    names = files(first)
    assert names == files(second), set(names) ^ set(files(second))
    assert not wanted - set(names), wanted - set(names)
    differ = [name for name in names if not filecmp.cmp(os.path.join(first, name), os.path.join(second, name), shallow=False)]
    assert not differ, differ


def test_reproducible():
    """Builds in two folders, under another umask, locale and time zone, are equal: what is installed, and the BPF objects."""
    make("-C", ROOT, "dist")
    place = os.path.join(SCRATCH, "reproducible")
    first, first_installed = build(os.path.join(place, "one"), 0o22, LC_ALL="C", TZ="UTC")
    second, second_installed = build(os.path.join(place, "another", "with_a_longer_name"), 0o2, LC_ALL="C.UTF-8", TZ="Pacific/Kiritimati")
    same(first_installed, second_installed, {
        "usr/bin/xputrace", "usr/lib/libxputrace.a", "usr/lib/libxputrace.so.0", "usr/share/man/man1/xputrace.1",
        "usr/share/man/man3/xpt_session_create.3"})
    same(os.path.join(first, "bpf"), os.path.join(second, "bpf"), {"xputrace.bpf.o", "session.bpf.o", "part/session.bpf.o"})
    for path in ("usr/bin/xputrace", "usr/lib/libxputrace.so.0"):
        with open(os.path.join(first_installed, path), "rb") as file:
            assert place.encode() not in file.read(), path + " names the folder in which it was built"
    check_version(os.path.join(first_installed, "usr", "bin", "xputrace"))


def check_version(command):
    """The version has the commit of the repository, or of the archive that this is."""
    shown = output(command, "--version")
    match = re.fullmatch(r"xputrace %s \(([0-9a-f]{12})(-dirty)?\)\n" % re.escape(VERSION), shown)
    if not os.path.exists(os.path.join(ROOT, ".git")):
        with open(os.path.join(ROOT, "user", "packaging", "commit"), encoding="utf-8") as file:
            noted = re.match(r"[0-9a-f]{12}", file.read())
        assert bool(noted) == bool(match) and (not noted or noted.group(0) == match.group(1)), shown
        return
    changed = output("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no") != ""
    assert match and output("git", "-C", ROOT, "rev-parse", "HEAD").startswith(match.group(1)), shown
    assert bool(match.group(2)) == changed, shown


def test_without_commit():
    """An archive that knows no commit shows the version alone; SOURCE_DATE_EPOCH decides the dates of its files."""
    archive = os.path.join(SCRATCH, "plain.tar.gz")
    output(os.path.join(ROOT, "user", "packaging", "dist.sh"), VERSION, "", 86400, archive)
    listed = subprocess.run(["tar", "--utc", "-tvzf", archive], stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()
    assert len(listed) > 500 and all(" 1970-01-02 00:00 " in line for line in listed), listed[:3]
    output("tar", "-xzf", archive, "-C", SCRATCH)
    shown = make("-C", os.path.join(SCRATCH, "xputrace-" + VERSION), "-n", "build/obj/user/cli/main.o")
    assert "user/cli/main.c" in shown and "XPT_COMMIT" not in shown, shown
