# SPDX-License-Identifier: BSD-2-Clause
"""What the scripts of this folder share: one line a test, as the programs print it."""

import os
import traceback


class Skip(Exception):
    """The test cannot be made here; the text says why."""


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


def run(script, tests):
    """tests: (name, function). The number of those that failed."""
    failed = 0
    for name, function in tests:
        try:
            function()
            print("passed %s.%s" % (script, name), flush=True)
        except Skip as skip:
            print("skipped %s.%s: %s" % (script, name, skip), flush=True)
        except AssertionError as error:
            print("failed %s.%s: %s" % (script, name, error), flush=True)
            failed += 1
        except Exception:  # a bug of a test must not end the others
            print("failed %s.%s: %s" % (script, name, traceback.format_exc()), flush=True)
            failed += 1
    return failed
