# SPDX-License-Identifier: BSD-2-Clause
"""Runs steps of a small model on an NVIDIA GPU, with PyTorch or JAX, and measures itself.

cuda.py layers|graph|jax STEPS

The first steps compile and load; then {"ready":true,"pid":N} is printed, and the steps begin when a line comes on standard input. At the
end one line: the steps, the longest and the median one in us; and of PyTorch the kernels of one step by name, as its own profiler counts
them before. graph: the step is a CUDA graph.
"""

import collections
import json
import os
import statistics
import sys
import time


def torch_steps(graph):
    """(one step, wait for the device, kernels of a step)"""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.set_grad_enabled(False)
    layers = [layer for _ in range(4) for layer in (
        torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.LayerNorm(1024))]
    model = torch.nn.Sequential(*layers).to("cuda").half().eval()
    given = torch.randn(256, 1024, device="cuda", dtype=torch.half)

    def step():
        model(given)

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    kernels = collections.Counter()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        step()
        torch.cuda.synchronize()
    for event in profiled.events():
        if event.device_type == torch.autograd.DeviceType.CUDA and not event.name.startswith("Mem"):
            kernels[event.name] += 1
    if not graph:
        return step, torch.cuda.synchronize, kernels
    captured = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(captured):
        step()
    return captured.replay, torch.cuda.synchronize, kernels


def jax_steps():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax
    import jax.numpy

    compute = jax.jit(lambda values: jax.numpy.tanh(values @ values).sum())
    values = jax.numpy.ones((512, 512))

    def step():
        compute(values).block_until_ready()

    for _ in range(5):
        step()
    return step, lambda: None, {}


def main():
    what, steps = sys.argv[1], int(sys.argv[2])
    step, wait, kernels = jax_steps() if what == "jax" else torch_steps(what == "graph")
    step()
    wait()
    print(json.dumps({"ready": True, "pid": os.getpid()}, separators=(",", ":")), flush=True)
    sys.stdin.readline()
    times = []
    for _ in range(steps):
        begin = time.monotonic_ns()
        step()
        wait()
        times.append((time.monotonic_ns() - begin) / 1000)
    print(json.dumps({"runtime": "cuda", "pid": os.getpid(), "steps": steps, "longest_us": max(times), "median_us":
                      statistics.median(times), "kernels": kernels}, separators=(",", ":")), flush=True)
    os._exit(0)  # what runtimes release at the end is not the subject


main()
