# SPDX-License-Identifier: BSD-2-Clause
"""What xputrace says of the commands of a virtio GPU, a device of these machines, against the kernel's own trace."""

import collections
import glob
import json
import os
import sys

from accelerator import traced
from harness import Process, Recorder, run
from skipped import skipped_at_most

DRIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "drive_gpu.py")
BUFFERS, MOVES = 150, 100
QUEUE, DONE = "virtio_gpu_cmd_queue", "virtio_gpu_cmd_response"
ENGINES = {0: "control", 1: "cursor"}  # by the number of the queue, as the device's specification has them
# Both traces stamp an event one after the other. They lie some microseconds apart, unless the processor was taken away
# in between: half of the times must agree this well, and each must lie between those of the events around it.
APART_NS = 100000
ROUNDED_NS = 1000  # of a time that is printed in microseconds
NUMBERLESS = "6.1"  # does not number commands


def load():
    """The node of the virtio GPU."""
    loaded = run(["modprobe", "virtio_gpu"])
    assert loaded.status == 0, loaded.stderr
    nodes = [node for node in glob.glob("/dev/dri/card*") if os.path.basename(os.path.realpath(
        "/sys/class/drm/%s/device/driver" % os.path.basename(node))) in ("virtio_gpu", "virtio-pci")]
    assert len(nodes) == 1, "nodes of a virtio GPU: %s" % nodes
    return nodes[0]


def drive(node, buffers=BUFFERS, moves=MOVES):
    return [sys.executable, DRIVE, node, str(buffers), str(moves)]


# ---- the kernel's trace ----

class Command:
    """A command that was queued, and what the device has answered."""

    def __init__(self, event):
        self.tid, self.queued, self.fields = event.tid, event.time, event.fields
        self.answered = self.status = None

    @property
    def engine(self):
        return self.fields["name"]


def commands_in(events):
    """All commands of the kernel's trace in the order in which they were queued, each with its own answer."""
    commands, open_ones = [], collections.defaultdict(collections.deque)
    for event in sorted(events, key=lambda event: event.time):
        fields = event.fields
        assert fields["name"] == ENGINES[int(fields["vq"])], event.text
        key = fields["vdev"], fields["vq"], fields["seqno"] if "seqno" in fields else fields["fence_id"]
        if event.name == QUEUE:
            commands.append(Command(event))
            open_ones[key].append(commands[-1])
            assert "seqno" not in fields or len(open_ones[key]) == 1, "two commands are one: %s" % event.text
        elif event.name == DONE and open_ones[key]:  # else queued before the trace began
            command = open_ones[key].popleft()
            command.answered, command.status = event.time, int(fields["type"], 0)
    return commands


# ---- the trace of xputrace ----

class Job:
    """A job of any process in the trace."""

    def __init__(self, event, tracks):
        arguments = event["args"]
        self.event, self.arguments = event, arguments
        self.other = event["cat"] == "job,other,virtio_gpu"
        assert self.other or event["cat"] == "job,virtio_gpu", event
        self.pid, self.tid = arguments.get("pid"), arguments.get("tid")
        self.queued, self.done = (round(arguments[name] * 1000) if name in arguments else None
                                  for name in ("queued_us", "done_us"))
        self.device = tracks[event["pid"], event["pid"]]
        self.engine = tracks[event["pid"], event["tid"]].partition(" (")[0]


def jobs_in(trace):
    """In the order in which they were queued. What is true of each by itself is checked."""
    tracks = {}
    for event in trace.events:
        if event["ph"] == "M" and event["name"] in ("process_name", "thread_name"):
            tracks[event["pid"], event["tid"]] = event["args"]["name"]
    jobs = [Job(event, tracks) for event in trace.events if event.get("cat", "").startswith("job,")
            and event["ph"] in "Xib"]
    assert len({job.arguments["job"] for job in jobs}) == len(jobs), "a job is there twice"
    for job in jobs:
        assert job.queued and "run_us" not in job.arguments and "device_us" not in job.arguments, job.event
        assert abs(round(job.event["ts"] * 1000) - job.queued) <= 1, job.event
        assert (job.event["ph"] == "i") == (job.done is None), job.event
        if job.event["ph"] == "X":
            assert abs(round(job.event["dur"] * 1000) - (job.done - job.queued)) <= 2, job.event
        assert job.event.get("cname") == ("grey" if job.other else None), job.event
    return sorted(jobs, key=lambda job: job.queued)


# ---- one against the other ----

def check_stamps(found, expected, what):
    """Times of the same events in the same order, by two who have stamped them."""
    assert len(found) == len(expected)
    for i, time in enumerate(found):
        before = expected[i - 1] if i else 0
        after = expected[i + 1] if i + 1 < len(expected) else float("inf")
        assert before - ROUNDED_NS <= time <= after + ROUNDED_NS, "%s %d at %d ns, not between %d and %s" % (
            what, i, time, before, after)
    apart = sorted(abs(a - b) for a, b in zip(found, expected))
    if apart:
        assert apart[len(apart) // 2] <= APART_NS, "%s: half of them are %d us or more apart" % (
            what, apart[len(apart) // 2] // 1000)


def check_pairs(kernel, trace, pairs, until):
    """Each job is its command: queued by it, with its numbers and answer, on the track of its queue. Answers that came
    until then must be there."""
    check_stamps([job.queued for _, job in pairs], [command.queued for command, _ in pairs], "queued")
    for command, job in pairs:
        expected = {"value": int(command.fields["type"], 0), "tid": command.tid,
                    "context": hex(int(command.fields["ctx_id"]))}
        assert {name: job.arguments[name] for name in expected} == expected, (job.event, command.fields)
        assert job.engine == command.engine, (job.engine, command.fields)
        assert job.device == "device %s (virtio_gpu)" % command.fields["vdev"], (job.device, command.fields)
    unanswered = [job for command, job in pairs if command.answered is None and job.done]
    assert not unanswered, "an end that the kernel has not seen: %s" % unanswered[0].event
    missing = [command for command, job in pairs if command.answered and command.answered < until and not job.done]
    assert len(missing) <= skipped_at_most(kernel, trace, pairs), "%d of %d jobs have no end, lost: %s" % (
        len(missing), len(pairs), trace.losses())
    for engine in ENGINES.values():
        ended = sorted(((command, job) for command, job in pairs if job.done and job.engine == engine),
                       key=lambda pair: pair[0].answered)
        check_stamps([job.done for _, job in ended], [command.answered for command, _ in ended], engine + " done")
        for command, job in ended:
            assert job.arguments["status"] == command.status, (job.event, command.fields, command.status)


def check_queues(kernel, trace, commands, first, ended):
    """The closing numbers of each queue: commands since the target's first one that have been answered.

    Without numbers, answers are distinguished by their order: then all commands are followed from the beginning."""
    queues = {queue["engine"]: queue for queue in trace.metadata["queues"]}
    assert set(queues) >= {command.engine for command in commands if command.queued >= first}, queues
    for engine, queue in queues.items():
        answered = [command for command in commands if command.engine == engine and command.queued >= first
                    and command.answered]
        least = sum(command.answered <= ended for command in answered)
        assert queue["driver"] == "virtio_gpu" and queue["failed_jobs"] == 0, queue
        least -= skipped_at_most(kernel, trace, answered)
        most = len(answered) if kernel != NUMBERLESS else sum(
            command.engine == engine and bool(command.answered) for command in commands)
        assert least <= queue["jobs"] <= most, (queue, least, most)
        assert "busy_us" not in queue, "busy, though nobody has said when a job runs: %s" % queue


# ---- the tests ----

class Recorded:
    """The GPU driven while it is recorded, and compared for what is true in any case.

    beside: when another process begins to make it work, "begin" (before the target's first command) or "first" (after
    that); it ends before the recording. An emulated processor must not run through a tracepoint while that is patched:
    it may stop at a breakpoint that is gone, which the kernel does not survive. So nobody works then."""

    def __init__(self, node, beside=None):
        with traced("virtio_gpu") as events:
            recorder = Recorder("--drivers", "virtio_gpu", "--", *drive(node), "wait", wait=False)
            said = {}
            for place in ("begin", "first", "end"):
                said[place] = json.loads(recorder.wait_line("stdout", '"at": "%s"' % place))
                if place == beside:
                    self.other = Process(drive(node, 1000000, 0))
                    self.other.wait_line("stdout", '"first"')
                if place == "end" and beside:
                    self.other.kill()
                recorder.send("\n")
            self.trace = recorder.finish()
        target, self.ended = said["begin"], said["end"]["time"]
        self.commands = commands_in(events)
        self.own = [command for command in self.commands if command.tid == target["tid"]]
        assert len(self.own) >= 2 * BUFFERS + MOVES, "only %d commands" % len(self.own)
        assert {command.engine for command in self.own} == set(ENGINES.values())
        jobs = jobs_in(self.trace)
        self.mine, self.others = ([job for job in jobs if job.other == other] for other in (False, True))
        assert len(self.mine) == len(self.own), "%d commands, %d jobs" % (len(self.own), len(self.mine))
        assert {job.pid for job in self.mine} == {target["pid"]}
        assert target["pid"] not in {job.pid for job in self.others}

    def check_own(self, kernel):
        assert not set(self.trace.losses()) - {"nested"}, self.trace.losses()
        check_pairs(kernel, self.trace, list(zip(self.own, self.mine)), self.ended)
        ended = sum(queue["target_jobs"] for queue in self.trace.metadata["queues"])
        assert ended == sum(job.done is not None for job in self.mine), self.trace.metadata["queues"]


def test_one_to_one(kernel):
    """Each command that a program makes the GPU's driver queue is one job, which ends with the answer to it."""
    recorded = Recorded(load())
    recorded.check_own(kernel)
    check_queues(kernel, recorded.trace, recorded.commands, recorded.own[0].queued, recorded.ended)


def test_others(kernel):
    """Commands of a process that works at the same time are jobs just as well, as its own."""
    recorded = Recorded(load(), "first")
    recorded.check_own(kernel)
    check_queues(kernel, recorded.trace, recorded.commands, recorded.own[0].queued, recorded.ended)
    commands = [command for command in recorded.commands if command.tid == recorded.other.pid]
    jobs = [job for job in recorded.others if job.pid == recorded.other.pid]
    assert BUFFERS < len(commands) == len(jobs), "%d commands, %d jobs" % (len(commands), len(jobs))
    check_pairs(kernel, recorded.trace, list(zip(commands, jobs)), recorded.ended)


def test_busy_before(kernel):
    """The device has commands of another process when the target's first one comes: whose answers stay theirs."""
    recorded = Recorded(load(), "begin")
    recorded.check_own(kernel)
    assert recorded.other.pid in {job.pid for job in recorded.others}


def discover(kernel):
    """As kernel_tests.discover() has them."""
    return [("gpu." + name[5:], function, (kernel,)) for name, function in list(globals().items())
            if name.startswith("test_") and function.__module__ == __name__]
