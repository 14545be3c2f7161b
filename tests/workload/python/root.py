#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's next release with Python and what it runs models with, in a folder of its own.

root.py FOLDER PACKAGE... fetches the packages, with all that they depend on, by an apt with lists and sources of its own, and
unpacks them into FOLDER; nothing is installed. What is there already is left.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "vm"))
from packages import Apt, Unavailable, output_of

SUITE = "trixie"
READY = "fetched.json"  # python_root.py of the end-to-end tests looks for it
# Not needed to import anything, and large.
WITHOUT = re.compile(r"^(python3-(sympy|networkx|mpmath)|libtorch-test|dpkg|tar|perl-base|util-linux|tzdata)_")
# Where alternatives would lead to when the packages were installed.
LINKS = {"libblas.so.3": "blas/libblas.so.3", "liblapack.so.3": "lapack/liblapack.so.3"}


def unpack(archives, root):
    for directory in ("bin", "lib", "lib64", "sbin"):
        os.makedirs(os.path.join(root, "usr", directory))
        os.symlink("usr/" + directory, os.path.join(root, directory))
    for directory in ("dev", "proc", "sys", "tmp"):
        os.makedirs(os.path.join(root, directory))
    for archive in archives:
        output_of(["dpkg-deb", "--extract", archive, root])
    for place in glob.glob(os.path.join(root, "usr", "lib", "*-linux-gnu")):
        for link, target in LINKS.items():
            if os.path.exists(os.path.join(place, target)) and not os.path.lexists(os.path.join(place, link)):
                os.symlink(target, os.path.join(place, link))


def fetch(folder, wanted):
    if os.path.exists(os.path.join(folder, READY)):
        return
    if os.uname().machine != "x86_64":
        raise Unavailable("packages are fetched for x86-64 only")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with tempfile.TemporaryDirectory(prefix="xputrace-apt-") as place:
        os.chmod(place, 0o755)
        try:
            apt = Apt(place, [SUITE])
            apt.run("apt-get", "-q", "update")
            apt.run("apt-get", "-q", "-y", "--no-install-recommends", "--download-only", "install", *wanted)
            archives = [path for path in sorted(glob.glob(os.path.join(place, "cache", "archives", "*.deb")))
                        if not WITHOUT.match(os.path.basename(path))]
            unpack(archives, folder)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Unavailable((getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1]) from error
    with open(os.path.join(folder, READY), "w", encoding="utf-8") as file:
        json.dump({"suite": SUITE, "packages": [os.path.basename(path) for path in archives]}, file, indent="\t")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    try:
        fetch(sys.argv[1], sys.argv[2:])
    except Unavailable as reason:
        sys.exit("%s: %s" % (" ".join(sys.argv[2:]), reason))
