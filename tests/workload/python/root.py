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
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "vm"))
from packages import Unavailable, fetch_root

SUITE = "trixie"
READY = "fetched.json"  # python_root.py of the end-to-end tests looks for it
# Not needed to import anything, and large.
WITHOUT = re.compile(r"^(python3-(sympy|networkx|mpmath)|libtorch-test|dpkg|tar|perl-base|util-linux|tzdata)_")
# Where alternatives would lead to when the packages were installed.
LINKS = {"libblas.so.3": "blas/libblas.so.3", "liblapack.so.3": "lapack/liblapack.so.3"}


def fetch(folder, wanted):
    if os.path.exists(os.path.join(folder, READY)):
        return
    if os.uname().machine != "x86_64":
        raise Unavailable("packages are fetched for x86-64 only")
    packages = fetch_root(folder, SUITE, "amd64", wanted, WITHOUT)
    for place in glob.glob(os.path.join(folder, "usr", "lib", "*-linux-gnu")):
        for link, target in LINKS.items():
            if os.path.exists(os.path.join(place, target)) and not os.path.lexists(os.path.join(place, link)):
                os.symlink(target, os.path.join(place, link))
    with open(os.path.join(folder, READY), "w", encoding="utf-8") as file:
        json.dump({"suite": SUITE, "packages": packages}, file, indent="\t")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    try:
        fetch(sys.argv[1], sys.argv[2:])
    except Unavailable as reason:
        sys.exit("%s: %s" % (" ".join(sys.argv[2:]), reason))
