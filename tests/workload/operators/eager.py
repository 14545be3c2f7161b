# SPDX-License-Identifier: BSD-2-Clause
"""eager.py ROUNDS THREADS: PyTorch without TorchScript, and one line of JSON that says what its own profiler has seen.

The profiler watches the main thread; the others do the same, after a first round by which it is known from where
operators are called. Every round ends with an operator that throws.
"""

import json
import os
import sys
import threading

import torch
from torch.autograd.profiler import profile

PREFIX = "aten::"


def work(rounds):
    """The message of the last exception."""
    message = None
    for _ in range(rounds):
        linear = torch.nn.Linear(64, 64)
        model = torch.nn.Sequential(linear, torch.nn.ReLU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 4))
        images = torch.nn.functional.conv2d(torch.randn(2, 3, 8, 8), torch.ones(4, 3, 3, 3))
        loss = model(torch.randn(8, 64)).softmax(1).sum() + images.mean()
        loss.backward()
        with torch.no_grad():
            linear.weight -= 0.1 * linear.weight.grad
            torch.cat([linear.weight, linear.weight[:2]]).matmul(linear.bias)
        try:
            torch.ones(2, 3) @ torch.ones(2, 3)
        except RuntimeError as error:
            message = str(error)
    return message


def names():
    """Of the classes in at::_ops, with what the profiler calls them: overloads are one to it."""
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith(PREFIX):
            short = schema.name[len(PREFIX):]
            found[short + ("_" + schema.overload_name if schema.overload_name else "")] = short
    return found


def times(event):
    """Start and duration in us; since 2.3 they are in ns."""
    if hasattr(event, "start_ns"):
        return event.start_ns() / 1000, event.duration_ns() / 1000
    return event.start_us(), event.duration_us()


def main():
    rounds, threads = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    others = [threading.Thread(target=work, args=(rounds,)) for _ in range(threads - 1)]
    if others:
        work(1)
    for other in others:
        other.start()
    with profile() as seen:
        message = work(rounds)
    for other in others:
        other.join()
    print(json.dumps({
        "runtime": "libtorch", "pid": os.getpid(), "tids": [other.native_id for other in others], "error": message,
        "seen": [[event.name()[len(PREFIX):], *times(event)]
                 for event in seen.kineto_results.events() if event.name().startswith(PREFIX)],
        "names": names()}))


main()
