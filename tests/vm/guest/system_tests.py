# SPDX-License-Identifier: BSD-2-Clause
"""What only a machine of one's own can do to a collector: it is suspended, and its process numbers are used again at once."""

import contextlib
import os
import time

from harm import Target, program
from harness import SLOW, Recorder, Skip, compare, scratch, standin
from reports import DRIFT, Stream, wall_clock

ALARM = "/sys/class/rtc/rtc0/wakealarm"
SLEEP = 3  # s
CHILDREN, PARALLEL, NUMBERS = 900, 30, 320  # at most so many numbers are left: each is used three times at least


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def asleep():
    """What CLOCK_MONOTONIC has not counted since the machine has started, s."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


def suspend():
    """To idle; its clock wakes it up. How long it slept, s."""
    if not os.path.exists(ALARM) or "freeze" not in read("/sys/power/state"):
        raise Skip("this machine cannot be suspended")
    before = asleep()
    write(ALARM, "+%d" % SLEEP)
    write("/sys/power/state", "freeze")
    return asleep() - before


def test_suspend(kernel):
    """While calls run: all are there with the times that the workload has of CLOCK_MONOTONIC, which does not count sleep; what is reported
    after it has the time of day."""
    del kernel
    workload = standin("nrt", "--calls", 80, "--rate", 20, "--programs", 1, "--log-times")
    recorder = Recorder("-p", workload.pid, "--why", output=os.path.join(scratch(), "trace.json"))
    stream = Stream("-p", workload.pid, "--sample-every", 1, "--report-every", "500ms")
    workload.go()
    time.sleep(1)
    slept = suspend()
    assert slept > SLEEP / 2, "it slept for %.1f s only" % slept
    offset = wall_clock()
    results = workload.results()
    trace = recorder.finish()
    compare("nrt", results, trace)
    made = sorted(zip(results[0]["times"], results[0]["ends"]))
    seen = sorted((call.start, call.end) for call in trace.calls if call.role == "execute")
    assert len(seen) == len(made)
    for (start, end), (begun, ended) in zip(seen, made):
        assert begun - DRIFT < start * 1000 and end * 1000 < ended + DRIFT, (start, end, begun, ended)
    blocks = stream.blocks()
    assert sum(block.inferences for block in blocks) == len(made)
    assert abs(blocks[-1].samples[-1].end - offset - made[-1][1]) < 100e6 * SLOW, (blocks[-1].samples[-1].end, offset, made[-1])


@contextlib.contextmanager
def few_numbers():
    path = "/proc/sys/kernel/pid_max"
    before = read(path)
    write(path, str(NUMBERS))
    try:
        yield
    finally:
        write(path, before)


def test_process_numbers(kernel):
    """Numbers of children that have ended are those of new ones at once: each call of each child is there, and nothing else is lost."""
    del kernel
    target = Target(program("storm", "call", CHILDREN, PARALLEL))
    recorder = Recorder("-p", target.pid, "--budget", "none")
    with few_numbers():
        target.go()
        outcome = target.outcome()
    trace = recorder.finish()
    assert outcome.status == 0, outcome.result
    losses, seen = trace.losses(), len(trace.of("nrt_tensor_write"))
    made = outcome.result["family"]["nrt_tensor_write"]
    assert set(losses) <= {"thread", "nested"} and made >= CHILDREN, (losses, made)
    assert seen <= made <= seen + losses.get("thread", 0) + 3 * losses.get("nested", 0), (seen, made, losses)
    assert len({call.pid for call in trace.of("nrt_tensor_write")}) <= NUMBERS


def discover(kernel):
    return [("system." + function.__name__[5:], function, (kernel,)) for function in (test_suspend, test_process_numbers)]
