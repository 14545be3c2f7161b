# SPDX-License-Identifier: BSD-2-Clause
"""What a traced call costs the target, by first instruction and tool."""

import os

from results import AT_LEAST
from tools import FUNCTIONS, LOOP, Bpftrace, EmptyProbe, Loop, Perf, Tracer, Xputrace, list_sites

SAMPLE = 16
TITLES = {
    "x86_64": ("push", "endbr64; push", "5-byte nop", "lea"),
    "aarch64": ("stp", "bti c; stp", "nop", "add"),
}
FULL, SAMPLED = "xputrace, all calls", "xputrace, 1 call in %d" % SAMPLE
UNTRACED, ENTRY, BOTH = Tracer.name, "empty probe at entry", "empty probe at entry and return"
FLOOR = "the least that a record needs"  # two clocks, the thread, the site, a place for the begin, 64 bytes in a ring
COLD = "bench_plain"  # also called with 2 MB of the caches displaced before each call
RECORDED_LIMIT, SAMPLED_LIMIT = 1.2, 1.1


class Costs:
    """ns a call by tracer and function, one for each repetition; the share of calls that each tracer has seen."""

    def __init__(self, tracers, functions):
        self.tracers = tracers
        self.functions = functions
        self.missing = {tracer.name: tracer.missing() for tracer in tracers}
        self.costs = {(tracer.name, function): [] for tracer in tracers for function in functions}
        self.cold = {tracer.name: [] for tracer in tracers}
        self.seen = {tracer.name: [] for tracer in tracers}

    def measure(self, loop, milliseconds):
        """One repetition: all tracers in turn. Another tool that fails is left out from then on."""
        for tracer in self.tracers:
            if self.missing[tracer.name]:
                continue
            try:
                tracer.start(loop)
                measured = [loop.cost(function, milliseconds) for function in self.functions]
                cold = loop.cold_cost(COLD, milliseconds)
                share = tracer.stop(sum(calls for _, calls in measured + [cold]))
                loop.wait_traced(False)
            except (AssertionError, RuntimeError, OSError) as error:
                if isinstance(tracer, Xputrace):
                    raise
                self.missing[tracer.name] = "failed: " + str(error).strip().splitlines()[-1]
                tracer.abandon()
                continue
            for function, (cost, _) in zip(self.functions, measured):
                self.costs[tracer.name, function].append(cost)
            self.cold[tracer.name].append(cold[0])
            if share is not None:
                self.seen[tracer.name].append(share * 100)


def measure_costs(tracers, settings, functions=FUNCTIONS):
    measured = Costs(tracers, functions)
    loop = Loop()
    try:
        for _ in range(settings.repetitions):
            measured.measure(loop, settings.cost_milliseconds)
    finally:
        loop.close()
    return measured


def ratios(costs, first, second):
    """Of the pairs that were measured one after the other."""
    return [a / b for a, b in zip(costs[first], costs[second])]


def added(costs):
    """To an untraced call, which has the reading of the clock in it, too."""
    return {name: [cost - plain for cost, plain in zip(each, costs[UNTRACED])] for name, each in costs.items()}


def cost_section(results, settings, folder):
    results.section("cost of a call: CPU time of the calling thread, which is pinned; the tools take turns, not pinned")
    tracers = [Tracer(), EmptyProbe("entry", ENTRY), EmptyProbe("both", BOTH), EmptyProbe("floor", FLOOR),
               Xputrace(folder, FULL), Xputrace(folder, SAMPLED, "-s", str(SAMPLE)), Bpftrace(), Perf(folder)]
    measured = measure_costs(tracers, settings)
    sites = list_sites(LOOP)
    titles = dict(zip(FUNCTIONS, TITLES.get(os.uname().machine, FUNCTIONS)))
    for function in FUNCTIONS:
        for tracer in tracers:
            note = measured.missing[tracer.name] or ""
            if tracer.name == FULL and not note:
                moved = sites[function]["offset"] - sites[function]["function_offset"]
                note = sites[function]["class"] + (", probe moved by %d bytes" % moved if moved else "")
            results.add("%s: %s" % (titles[function], tracer.name), measured.costs[tracer.name, function], "ns",
                        note=note)
    for tracer in tracers:
        results.add("%s, cold: %s" % (titles[COLD], tracer.name), measured.cold[tracer.name], "ns",
                    note=measured.missing[tracer.name] or "")
    for tracer in tracers:
        if measured.seen[tracer.name]:
            results.add("calls seen by %s" % tracer.name, measured.seen[tracer.name], "%")
    add_limits(results, measured.costs, titles)
    warm = {tracer.name: measured.costs[tracer.name, COLD] for tracer in tracers}
    for state, costs in (("", warm), (", cold", measured.cold)):
        for name, empty, limit in ((FULL, BOTH, RECORDED_LIMIT), (SAMPLED, ENTRY, SAMPLED_LIMIT)):
            results.add("%s / %s, %s%s" % (name, empty, titles[COLD], state),
                        ratios(added(costs), name, empty), "times", limit)
        results.add("%s / %s, %s%s" % (FLOOR, BOTH, titles[COLD], state), ratios(added(costs), FLOOR, BOTH), "times")


def add_limits(results, costs, titles):
    plain, landing = "bench_plain", "bench_landing"
    bpftrace = Bpftrace.name
    results.add("xputrace, %s / %s" % (titles[landing], titles[plain]),
                ratios(costs, (FULL, landing), (FULL, plain)), "times", 1.15)
    results.add("bpftrace / xputrace, %s" % titles[landing],
                ratios(costs, (bpftrace, landing), (FULL, landing)), "times", 10, AT_LEAST)
    results.add("xputrace / bpftrace, %s" % titles[plain],
                ratios(costs, (FULL, plain), (bpftrace, plain)), "times", 1)
    for function in (plain, landing, "bench_nop"):
        results.add("xputrace, sampled / all, %s" % titles[function],
                    ratios(costs, (SAMPLED, function), (FULL, function)), "times", 0.7)
