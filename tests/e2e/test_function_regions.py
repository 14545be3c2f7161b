# SPDX-License-Identifier: BSD-2-Clause
"""--region FILE:FUNCTION: functions of any program as regions, against what the program counted itself."""

import collections
import os
import re

from harness import XPUTRACE, Process, Trace, cases, run, scratch, workload_path

WORKLOAD = "functions/functions"
MEMBERS, PLAIN = "functions:app::*", "functions:plain_*"
DEPTH = 3  # of decode's recursion: calls of itself that the program does not count

Tally = collections.namedtuple("Tally", "called returned ns")


def tallies(text):
    """What the program printed, by function."""
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r"(.*) called (\d+) returned (\d+) ns (\d+)", line)
        if match:
            found[match[1]] = Tally(*map(int, match.groups()[1:]))
    assert found, text
    return found


def spans(trace):
    """Regions of functions in the trace, by name: durations in microseconds."""
    found = collections.defaultdict(list)
    for event in trace.events:
        if event["ph"] == "X" and event.get("cat") == "region,function":
            found[event["name"]].append(event["dur"])
    return found


def expected(made, name, made_by_tail=0):
    """How many spans there are to be: calls that were left by a return."""
    return made[name].returned * (DEPTH if name.endswith("decode") else 1) + made_by_tail


def record(rounds, *options):
    """The program under record; what it counted, and the trace."""
    folder = scratch()
    done = run([XPUTRACE, "record", "-o", os.path.join(folder, "trace.json"), *options, "--", workload_path(WORKLOAD),
                str(rounds)])
    assert done.status == 0, done.stderr
    return tallies(done.stdout), Trace(os.path.join(folder, "trace.json")), done


@cases("session", "multi", "perf")
def test_counts_and_times(link):
    """Every call that returned is there, and none that was left by an exception or longjmp; times are those that the caller saw."""
    made, trace, done = record(12, "--link", link, "--region", MEMBERS, "--region", PLAIN)
    found = spans(trace)
    assert set(found) == {name for name, tally in made.items() if tally.returned}, sorted(found)
    for name, durations in found.items():
        tail = made["plain_tail"].returned if name == "plain_target" else 0
        if name == "plain_jump" and os.uname().machine == "aarch64":  # where longjmp leads, the code behind the call follows
            tail = made[name].called - made[name].returned
        assert len(durations) == expected(made, name, tail), (name, len(durations), made[name])
    for name in ("app::Decoder::fail", "app::Scale<float>::apply", "plain_tail"):
        assert sum(found[name]) * 1000 <= made[name].ns, (name, sum(found[name]), made[name])
    assert min(found["app::Scale<float>::apply"]) >= 50 and min(found["plain_tail"]) >= 300
    assert "app::Decoder::deep" not in found and "no program was run" in done.stdout


def test_chosen_ones_only():
    """Patterns choose by file and by name."""
    made, trace, _ = record(5, "--region", "functions:app::Decoder::decode", "--region", "libm.so*:*")
    assert set(spans(trace)) == {"app::Decoder::decode"}
    assert len(spans(trace)["app::Decoder::decode"]) == expected(made, "app::Decoder::decode")


def test_symbols_and_paths():
    """By the symbol as it is in the file, and by the path of the file."""
    made, trace, _ = record(5, "--region", "*/functions/functions:_ZN3app*6decodeEi")
    assert len(spans(trace)["app::Decoder::decode"]) == expected(made, "app::Decoder::decode")


def test_running_process():
    """Attached to while it runs: only calls are missed that return before the place behind them has its probe."""
    process = Process([workload_path(WORKLOAD), "1500", "wait"])
    process.wait_line("stdout", "ready")
    folder = scratch()
    tracer = Process([XPUTRACE, "record", "-p", str(process.pid), "-o", os.path.join(folder, "trace.json"),
                      "--region", MEMBERS])
    tracer.wait_line("stderr", "attached")
    process.send("\n")
    assert process.wait() == 0 and tracer.wait() == 0
    made, found = tallies(process.stdout), spans(Trace(os.path.join(folder, "trace.json")))
    for name in ("app::Decoder::decode", "app::Decoder::fail", "app::Scale<float>::apply"):
        wanted = expected(made, name)
        assert wanted * 0.8 <= len(found[name]) <= wanted, (name, len(found[name]), wanted)


def test_the_program_is_the_same():
    """Exceptions, longjmp and jumps end where they did; the exit status is the program's."""
    alone = tallies(run([workload_path(WORKLOAD), "20"]).stdout)
    traced, _, _ = record(20, "--region", MEMBERS, "--region", PLAIN)
    assert {name: tally[:2] for name, tally in alone.items()} == {name: tally[:2] for name, tally in traced.items()}


def test_profile_takes_them_as_programs():
    """A function that is a region can be profiled as a program."""
    done = run([XPUTRACE, "profile", "-P", "region:app::Decoder::decode", "--samples", "6", "--region", MEMBERS,
                "--layout", "qaic", "--", workload_path(WORKLOAD), "10"])
    assert "samples,6,requested,6" in done.stdout, done.stdout
    assert "region:app::Decoder::decode" in done.stdout


def test_nothing_of_that_name():
    """A pattern that no function fits is said, with the pattern."""
    _, _, done = record(1, "--region", "functions:no_such_*", "--region", MEMBERS)
    assert "functions:no_such_*" in done.stderr and MEMBERS not in done.stderr, done.stderr


@cases("decode", "decode:", ":decode", "app::run")
def test_wrong_usage(region):
    """What is no FILE:FUNCTION is refused before anything is done."""
    done = run([XPUTRACE, "record", "--region", region, "--", "true"])
    assert done.status == 2 and "FILE:FUNCTION" in done.stderr, done.stderr


def test_too_many():
    """A pattern that would make a program crawl gets no probe, and that is said."""
    _, trace, done = record(1, "--region", "libc.so*:*", "--region", MEMBERS)
    assert "matches more than 1024 functions" in done.stderr, done.stderr
    assert set(spans(trace)) <= {"app::Decoder::decode", "app::Decoder::fail", "app::Scale<float>::apply"}
