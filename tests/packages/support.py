# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of packages share."""

import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build")
SCRATCH = os.path.join(BUILD, "packages")
VERSION = "0.1.0"


class Skip(Exception):
    """The test cannot run here; the text says why."""


def output(*command, **options):
    """What a command prints, both streams; CalledProcessError with it where it fails."""
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True, text=True,
                          **options).stdout


def make(*words, **options):
    return output(os.environ.get("MAKE", "make"), "--no-print-directory", *words, **options)
