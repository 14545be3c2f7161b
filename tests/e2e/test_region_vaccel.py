# SPDX-License-Identifier: BSD-2-Clause
"""vAccel's own regions: by pointer and by name, with its profiling on and off, as its versions call them."""

import os

from harness import Recorder, alone, cases, workload_path
from region_programs import UNNAMED, again, check_near, counted, printed, spans, times

COUNT = 25
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith("VACCEL_PROF")}
MADE = dict.fromkeys(("static", "made", "second", "again", UNNAMED), COUNT)


def recorded(generation, **environment):
    recorder = Recorder("--", workload_path("vaccel_regions"), generation, str(COUNT), wait=False,
                        env=dict(PLAIN, **environment))
    return recorder, recorder.finish()


def check_calls(trace):
    """What was named, written out and released; of an array the elements may be, too."""
    made = [call.role for call in trace.calls]
    assert made.count("region.name") == 4 and made.count("region.print") == 5, made
    assert 3 <= made.count("region.release") <= 5, made


@cases("now", "before")
def test_off(generation):
    """Profiling is off: what was initialised has no name of its own, and is called as it was to be."""
    recorder, trace = recorded(generation)
    trace.check()
    assert not printed(recorder.stderr), recorder.stderr
    assert counted(trace) == MADE, counted(trace)
    check_calls(trace)


@alone("measures time")
@cases("VACCEL_PROFILING_ENABLED=1", "VACCEL_PROF_ENABLED=enabled")
@again
def test_on(setting):
    """Profiling is on: the same, and as often and as long as vAccel's lines say."""
    recorder, trace = recorded("now" if "PROFILING" in setting else "before", **dict([setting.split("=")]))
    trace.check()
    assert counted(trace) == MADE, counted(trace)
    check_calls(trace)
    reported = printed(recorder.stderr)
    assert {name: entries for name, (entries, _) in reported.items()} == {
        "made": COUNT, "static": COUNT, "first": 0, "second": COUNT, "again": COUNT}, reported
    assert {name: entries for name, (entries, _) in printed(recorder.stdout).items()} == {"first": 0, "second": COUNT}
    for name, (entries, total) in reported.items():
        if entries:
            inside = COUNT if name == "made" else 0  # what the probes of "static" take is in "made" by both clocks
            check_near(name, entries + inside, total, times(trace)[1][name], "the trace")


def test_nesting():
    """Each "static" lies inside of its "made"; what comes after the release has another name."""
    _, trace = recorded("now")
    found = spans(trace)
    for inner, outer in zip(found[0:2 * COUNT:2], found[1:2 * COUNT:2]):
        assert (inner[0], outer[0]) == ("static", "made"), (inner, outer)
        assert outer[2] <= inner[2] <= inner[3] <= outer[3], (inner, outer)
    names = [name for name, *_ in found[2 * COUNT:]]
    assert names[:2 * COUNT] == ["second"] * COUNT + ["again"] * COUNT, names
    assert all(name.startswith("0x") for name in names[2 * COUNT:]), names
