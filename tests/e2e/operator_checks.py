# SPDX-License-Identifier: BSD-2-Clause
"""The operators of a trace: counted, laid beside the profile that ONNX Runtime has written, and added up once more."""

import bisect
import collections
import statistics

# Identity of a node in both. Those of nested graphs may have that of others; so does their row in a report.
Node = collections.namedtuple("Node", "name operator index provider")


class Span:
    """Of an operator or an inference, in ns."""

    def __init__(self, call):
        arguments = call.event["args"]
        self.pid, self.tid, self.program = call.pid, call.tid, arguments.get("program_id")
        self.start = round(call.start * 1000)
        self.end = self.start + round(call.duration * 1000)
        self.node = Node(arguments.get("node"), arguments.get("op_name"), arguments.get("node_index"),
                         arguments.get("provider"))
        self.label = call.event["name"]
        self.object = arguments.get("object")
        self.unassigned = arguments.get("unassigned", False)
        self.run = None  # the inference that it is in, as check_places() finds it

    @property
    def duration(self):
        return self.end - self.start

    def inside(self, other):
        return other.start <= self.start and self.end <= other.end

    def overlaps(self, other):
        return self.start < other.end and other.start < self.end

    def __repr__(self):
        return "%s of thread %d, %d to %d ns" % (self.label, self.tid, self.start, self.end)


def spans(trace, role="operator", pid=None):
    """In the order of their begins, outer ones first."""
    found = [Span(call) for call in trace.calls if call.role == role and (pid is None or call.pid == pid)]
    return sorted(found, key=lambda span: (span.start, -span.end))


def difference(made, traced):
    return "\n".join("  %s: made %d, traced %d" % (key, made[key], traced[key])
                     for key in list((made - traced) + (traced - made))[:20])


# ---- against ONNX Runtime's own profile ----

def profile_counts(profile):
    counts = collections.Counter()
    for node in profile.nodes.values():
        counts[Node(node.name, node.operator, node.index, node.provider)] += node.count
    return counts


def traced_counts(operators):
    return collections.Counter(span.node for span in operators)


def check_counts(profile, operators):
    """Every node as often, with the same name, operator, index and provider."""
    made, traced = profile_counts(profile), traced_counts(operators)
    assert sum(made.values()) and made == traced, "nodes:\n" + difference(made, traced)


def executions(profile, operators):
    """Each execution in the profile with its span: the n-th of a node is the n-th, whatever runs at the same time."""
    traced = collections.defaultdict(list)
    for span in operators:
        traced[span.node].append(span)
    for node in profile.nodes.values():
        found = traced[Node(node.name, node.operator, node.index, node.provider)]
        yield from zip(sorted(node.events), found)


def check_times(profile, operators):
    """There is one difference of the clocks with which every span lies inside the profiler's own measurement of it.

    The profiler cuts both the begin and the duration to whole us. Its time starts when the session is made."""
    least, most, first, last = -float("inf"), float("inf"), None, None
    for event, span in executions(profile, operators):
        assert event.tid == span.tid, "%s: the profiler says thread %d" % (span, event.tid)
        if span.start - event.start * 1000 < most:
            most, first = span.start - event.start * 1000, span
        if span.end - (event.start + event.duration + 2) * 1000 > least:
            least, last = span.end - (event.start + event.duration + 2) * 1000, span
    assert least <= most, "no difference of the clocks fits: for %s at most %d, for %s at least %d" % (
        first, most, last, least)


def check_profile(profile, operators):
    check_counts(profile, operators)
    check_times(profile, operators)


def check_runs(profiles, calls):
    """As long as the runs in ONNX Runtime's profiles: the application's clock has waits for its interpreter in it."""
    own = sorted(run.duration for profile in profiles for run in profile.runs)[-len(calls):]  # failed ones are short
    pairs = zip(statistics.quantiles([call.duration for call in calls]), statistics.quantiles(own))
    for traced, profiled in list(pairs)[:2]:
        assert profiled - 1 <= traced <= 1.02 * profiled + 20, "ONNX Runtime has %.1f us, the trace %.1f us" % (profiled, traced)


# ---- where operators lie ----

def around(runs, starts, span):
    """The inference that the span's own thread is in, if any; starts: of the thread's runs."""
    index = bisect.bisect_right(starts, span.start) - 1
    return runs[index] if index >= 0 and span.inside(runs[index]) else None


def check_places(runs, operators):
    """Those on a thread that is in an inference belong to that one; else to the only one that runs, if there is one."""
    threads = {tid: [run for run in runs if run.tid == tid] for tid in {span.tid for span in operators}}
    starts = {tid: [run.start for run in own] for tid, own in threads.items()}
    for span in operators:
        own = around(threads[span.tid], starts[span.tid], span)
        if own:
            assert not span.unassigned and span.program == own.program, (span, own)
            span.run = own
        elif not span.unassigned:
            near = [run for run in runs if run.overlaps(span)]
            assert len(near) == 1 and span.inside(near[0]), "%s is assigned, around it are %s" % (span, near)
            assert span.program == near[0].program, (span, near)
            span.run = near[0]


def check_objects(operators, unloads):
    """An object is a part of one program and stands for one node; its address may be another object's when a program has been
    unloaded since, as one was at each of the times."""
    known = {}
    for span in sorted(operators, key=lambda one: one.start):
        if span.unassigned:
            continue
        what, last = known.get(span.object, ((span.program, span.node), span.start))
        assert what == (span.program, span.node) or any(last < time < span.start for time in unloads), (
            "%s is of %s, and of %s" % (span, what, (span.program, span.node)))
        known[span.object] = (span.program, span.node), span.start


def parents(operators):
    """The operator around each, None where there is none, by thread."""
    stacks = collections.defaultdict(list)
    for span in operators:
        stack = stacks[span.pid, span.tid]
        while stack and not span.inside(stack[-1]):
            stack.pop()
        yield span, stack[-1] if stack else None
        stack.append(span)


# ---- sums ----

def union(operators):
    """ns during which at least one of them runs; in the order of their begins."""
    total, until = 0, 0
    for span in operators:
        total += max(0, span.end - max(span.start, until))
        until = max(until, span.end)
    return total


def check_sums(trace, operators, pid):
    """What the metadata says of each operator is what its events add up to, to the ns."""
    recorded, unassigned, own = collections.Counter(), collections.Counter(), collections.Counter()
    assigned = {span.object for span in operators if not span.unassigned}
    for span, parent in parents(operators):
        recorded[span.label] += 1
        unassigned[span.label] += span.unassigned
        if span.object not in assigned or not span.unassigned:
            own[span.label] += span.duration
        if parent and (parent.object not in assigned or not parent.unassigned):
            own[parent.label] -= span.duration
    reported = [collections.Counter() for _ in range(4)]
    for row in trace.metadata["operators"]:
        if row["pid"] == pid:
            for counts, value in zip(reported, (row["recorded"], row["duration_ns"]["count"], row["unassigned"],
                                            row["self_ns"])):
                counts[row["name"]] += value
    for made, counts in zip((recorded, recorded, unassigned, own), reported):
        assert +made == +counts, difference(made, counts)


def check_covered(trace, runs, operators, pid):
    """Of programs of which every operator has been assigned."""
    unassigned = {span.object for span in operators if span.unassigned}
    within = collections.defaultdict(list)
    for span in operators:
        within[span.run].append(span)
    for program in trace.programs(pid=pid):
        inferences = [run for run in runs if run.program == program["id"] and within[run]]
        members = [span for span in operators if span.program == program["id"]]
        if not inferences or unassigned & {span.object for span in members}:
            continue
        assert members or "operators" not in program, program
        if not members:
            continue
        sums = program["operators"]
        assert sums["inferences"] == len(inferences), program
        assert sums["inference_ns"] == sum(run.duration for run in inferences), program
        covered = sum(union(within[run]) for run in inferences)
        assert sums["covered_ns"] == covered <= sums["inference_ns"], (program, covered)


def check_operators(trace, pid):
    """Everything that must be true of the operators of a process in any trace without losses; returns them."""
    trace.check()
    assert not trace.losses(), "something was lost: %s" % trace.losses()
    runs, operators = spans(trace, "execute", pid), spans(trace, pid=pid)
    check_places(runs, operators)
    check_objects(operators, [call.start * 1000 for call in trace.calls if call.pid == pid and call.role == "program.unload"])
    check_sums(trace, operators, pid)
    check_covered(trace, runs, operators, pid)
    return operators
