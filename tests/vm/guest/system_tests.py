# SPDX-License-Identifier: BSD-2-Clause
"""What only a machine of one's own can do to a collector: its process numbers are used again at once."""

import contextlib

from harm import Target, program
from harness import Recorder

CHILDREN, PARALLEL, NUMBERS = 900, 30, 320  # at most so many numbers are left: each is used three times at least


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


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
    return [("system." + function.__name__[5:], function, (kernel,)) for function in (test_process_numbers,)]
