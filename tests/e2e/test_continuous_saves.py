# SPDX-License-Identifier: BSD-2-Clause
"""xputrace continuous: what makes it save by itself, and that saving disturbs nothing."""

import concurrent.futures
import os
import signal

from saved_files import (MS, Collector, calls_by_execution, check_suffix, clock_now, collector, executions,
                        executions_in)
from harness import SLOW, cases, standin

ALL = ("--window-time", "0")
SLOW_NS = 100 * MS  # of tests/workload/standin/device.c


def stopped_by(saved):
    return saved.trace.metadata["tracing"]["stopped_by"]


def wait_files(watcher, count):
    """The files, when there are so many of them and the collector has counted them."""
    watcher.wait_status(lambda now: now["saves"] >= count, "%d files are saved" % count)
    return watcher.files()


# ---- triggers ----

def run_until_saved(workload, watcher):
    """Its log, and the file that was saved while it ran."""
    workload.go()
    saved, = wait_files(watcher, 1)
    result, = workload.stop()
    status = watcher.stop()  # what comes later comes too soon
    assert status["saves"] == 1 == status["triggered"] - status["suppressed"], status
    return executions(result), saved


def check_losses(trace, threads=1):
    """At most what each thread had under way when the file was made."""
    lost = trace.losses()
    assert set(lost) <= {"unpaired"} and lost.get("unpaired", 0) <= threads, lost


def check_around(log, saved, cause, after):
    """All executions from the first on up to the cause and so much time behind it."""
    saved.trace.check()
    check_losses(saved.trace)
    found = executions_in(saved.trace, log)
    behind = [one for one in log if one.begin > cause.end]
    assert found == set(log[:len(found)]) and cause in found, "of %d not all up to some time" % len(found)
    assert {one for one in behind if one.end < cause.end + after} <= found, "it ends too early after the cause"
    assert log[0] in found and log.index(cause) > 10, "nothing came before"
    assert len(found) < len(log), "it was saved at the end"


@cases("latency > 80ms", "latency >= 100ms", "p99 > 80ms over 5s", "max > 80ms over 1s")
def test_slow_inference(trigger):
    """One of many is slow, at a known moment: the file has it, what was before it, and what came shortly after it."""
    slow = 40
    workload = standin("qaic", "--calls", "0", "--rate", "200", "--slow", str(slow), "--log-times")
    watcher = Collector("-p", workload.pid, *ALL, "--save-on", trigger, "--after", "150ms")
    log, saved = run_until_saved(workload, watcher)
    cause = log[slow - 1]
    assert cause.end - cause.begin >= SLOW_NS and cause.number == slow - 1, cause
    check_around(log, saved, cause, 150 * MS)
    assert "cloud-0.1" in stopped_by(saved), stopped_by(saved)


@cases("nrt", "qaic")
def test_error(runtime):
    """The first inference that fails, a call that runs it or one that enqueues it."""
    workload = standin(runtime, "--calls", "0", "--rate", "200", "--fail-every", "31", "--log-times")
    watcher = Collector("-p", workload.pid, *ALL, "--save-on", "error", "--after", "100ms")
    log, saved = run_until_saved(workload, watcher)
    cause = log[30]
    check_around(log, saved, cause, 100 * MS)
    failed = [call for call in saved.trace.runs() if call.failed]
    assert calls_by_execution(saved.trace, log)[cause].count(failed[0]) == 1, "%s has not failed" % (cause,)


def test_no_trigger():
    """What does not happen saves nothing."""
    workload = standin("qaic", "--calls", "100", "--fail-every", "0")
    watcher = Collector("-p", workload.pid, "--save-on", "latency > 30s", "--save-on", "error", "--save-on",
                        "p99 > 20s over 1s", "--after", "0")
    workload.go()
    workload.results()
    status = watcher.wait_inferences(100)
    assert status["triggered"] == 0 and not watcher.files(), status
    watcher.stop()


def test_signal():
    """SIGUSR2 saves as a trigger does."""
    workload = standin("nrt", "--calls", "0", "--rate", "400", "--log-times")
    watcher = Collector("-p", workload.pid, *ALL, "--after", "100ms")
    workload.go()
    watcher.wait_inferences(20)
    before = clock_now()
    watcher.signal(signal.SIGUSR2)
    saved, = wait_files(watcher, 1)
    log = executions(workload.stop()[0])
    found = executions_in(saved.trace, log)
    assert found == set(log[:len(found)]) and {one for one in log if one.end < before + 100 * MS} <= found
    assert "signal" in stopped_by(saved), stopped_by(saved)
    status = watcher.stop()
    assert (status["saves"], status["triggered"], status["suppressed"]) == (1, 1, 0), status


@cases(("--cooldown", "1h"), ("--cooldown", "0", "--max-files", "2"), ("--cooldown", "0", "--max-bytes", "1K"),
       ("--cooldown", "0", "--max-files", "0", "--max-bytes", "0"))
def test_limits(options):
    """Too soon, too many files, too many bytes: counted, and no further file."""
    wanted = {"1h": 1, "2": 2, "1K": 1, "0": 4}[options[-1]]
    workload = standin("qaic", "--calls", "20", "--linger")
    watcher = Collector("-p", workload.pid, *ALL, "--after", "0", *options)
    workload.go()
    watcher.wait_inferences(20)
    for number in range(1, 5):
        watcher.signal(signal.SIGUSR2)
        status = watcher.wait_status(lambda now, number=number: now["triggered"] == number and
                                     now["saves"] == min(number, wanted), "signal %d is taken" % number)
        assert status["suppressed"] == max(0, number - wanted), status
    assert len(watcher.files()) == wanted
    assert sum(os.path.getsize(one.path) for one in watcher.files()) == status["saved_bytes"]
    watcher.save()
    assert len(watcher.files()) == wanted + 1, "what is asked for is saved all the same"
    workload.wait_line("stdout", '{"runtime"')
    workload.go()
    workload.results()
    watcher.stop()


# ---- saving while all goes on ----

SAVES, LOOK_EVERY = 100 if SLOW == 1 else 12, 24 if SLOW == 1 else 6


def test_saves_in_a_row():
    """Many while two threads run at full speed: nothing is lost, each can be read and has all of its time."""
    workload = standin("nrt", "--calls", "0", "--threads", "2", "--duration-us", "1", "--log-times")
    watcher = Collector("-p", workload.pid, "-w", "2M", "-b", "32M")
    workload.go()
    watcher.wait_status(lambda now: now["evicted_inferences"] > 0, "the window is full")
    saves = [watcher.save() for _ in range(SAVES)]
    result, = workload.stop()
    log = executions(result)
    status = watcher.stop()
    assert status["saves"] == SAVES and status["saved_bytes"] == sum(saved.bytes for saved in saves), status
    assert len({saved.path for saved in saves}) == SAVES == len(watcher.files())
    assert saves == sorted(saves, key=lambda saved: saved.path) and saves[0].end < saves[-1].begin
    assert log[-1].end > saves[-1].end, "the workload had ended"
    assert all(saved.lost == 0 and saved.begin < saved.end for saved in saves)
    with concurrent.futures.ThreadPoolExecutor(2) as readers:
        for summary in readers.map(lambda saved: collector("report", saved.path), saves):
            assert summary.status == 0 and "PROGRAM" in summary.stdout, summary.stdout + summary.stderr
    for saved in saves[::LOOK_EVERY]:
        saved.trace.check()
        check_losses(saved.trace, threads=2)
        assert len(check_suffix(saved, log)) > 100
