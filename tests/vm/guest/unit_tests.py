# SPDX-License-Identifier: BSD-2-Clause
"""The unit tests, built for another architecture; a test for each room of the source."""

import os
import re

from harness import BUILD, run

PROGRAM = os.path.join(BUILD, "test-unit")
# A million programs each: longer than an emulated processor may take.
LEFT_OUT = "a_million_programs_stay_within_the_limit", "a_session_without_end_stays_as_large_as_it_was"


def test_room(room):
    """All unit tests of the room pass, and there are some."""
    result = run([PROGRAM, "--verbose=1", "--filter", "%s*/!(%s)" % (room, "|".join(LEFT_OUT))])
    lines = (result.stdout + result.stderr).splitlines()
    found = re.search(r"Tested: (\d+) \| Passing: (\d+) \|", "\n".join(lines))
    assert result.status == 0 and found and found.group(1) == found.group(2) != "0", "\n".join(
        line for line in lines if not re.match(r"\[(RUN |PASS|====)\]|.*: Test is disabled$", line) or "Synthesis" in line)


def discover():
    """None where make test-unit runs them."""
    if not os.path.exists(PROGRAM):
        return []
    rooms = set(re.findall(r"^([a-z]+_[a-z0-9]+)\w*: \d+ tests?$", run([PROGRAM, "--list"]).stdout, re.M))
    assert rooms, "%s lists no tests" % PROGRAM
    return [("unit.%s" % room, test_room, (room,)) for room in sorted(rooms)]
