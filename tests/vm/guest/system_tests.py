# SPDX-License-Identifier: BSD-2-Clause
"""What only a machine of one's own can do to a collector: its process numbers are used again at once."""

import contextlib

from harm import program, record_command

CHILDREN, PARALLEL, NUMBERS = 900, 30, 450  # those from 300 on are given again: each is used six times


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
    with few_numbers():
        outcome, trace = record_command(program("storm", "call", CHILDREN, PARALLEL))
    losses, calls = trace.losses(), trace.of("nrt_tensor_write")
    made = outcome.result["family"]["nrt_tensor_write"]
    assert set(losses) <= {"thread", "nested"} and made >= CHILDREN, (losses, made)
    assert len(calls) <= made <= len(calls) + losses.get("thread", 0) + 3 * losses.get("nested", 0), (len(calls), made, losses)
    assert len({call.pid for call in calls}) <= NUMBERS


def discover(kernel):
    return [("system." + function.__name__[5:], function, (kernel,)) for function in (test_process_numbers,)]
