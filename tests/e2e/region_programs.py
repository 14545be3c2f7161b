# SPDX-License-Identifier: BSD-2-Clause
"""Programs that mark regions, what they say that they did, and what a trace says of it."""

import collections
import functools
import re

from harness import SLOW, Process, Workload, results_in, workload_path
from onnx_models import library, model
from reports import write_names

OPEN_MAX = 64  # regions that are followed on one thread
NAME_MAX = 256  # bytes of a name that are read, its end included
UNNAMED = "(its address)"
PICTURES = 200

# What two pairs of clock readings may lie apart, with probes between them, which take 1 to 3 us: a share of a total; or so
# much for each region, and for the first of a name, which makes room for its samples between the readings. (Where the host
# has to provide that memory, this takes up to 0.3 ms: less than what is allowed for all.)
NEAR_SHARE, NEAR_NS, FIRST_NS = 0.01, 4000 * SLOW, 20000 * SLOW
TRIES = 3


class Apart(AssertionError):
    """Two times of the same differ by too much."""


def check_near(name, count, one, other, what):
    if abs(one - other) > max(NEAR_SHARE * one, NEAR_NS * count + FIRST_NS):
        raise Apart("%s: the program says %d ns for %d, %s %d" % (name, one, count, what, other))


def again(function):
    """A test of times: a thread that has to wait between two clock readings spoils them, so it is made once more."""
    @functools.wraps(function)
    def repeated(*arguments):
        for _ in range(TRIES - 1):
            try:
                return function(*arguments)
            except Apart:
                pass
        return function(*arguments)
    return repeated


def marks(names, *words, threads=1, times=1):
    """The command that does what the words say; tests/workload/region/marks.c has them."""
    return [workload_path("marks"), write_names(names), str(threads), str(times), *words]


def classifier(count):
    return [str(word) for word in (workload_path("classify"), library(), model("conv", size=64, channels=16), count)]


def started(command, **options):
    """One that waits for a line before it does anything."""
    return Workload(command, **options)


def shown(name):
    """As a region of that name is called in a trace: cut, and every byte that is no UTF-8 by itself."""
    name = name if isinstance(name, bytes) else name.encode()
    if name in (b"", b"NULL"):
        return UNNAMED
    text = name[:NAME_MAX - 1].decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]", "\ufffd", text)


class Made:
    """What a thread makes of the words, as often as is said, by the rules of <xputrace/region.h>."""

    def __init__(self, names, words, times=1):
        self.names = list(names)
        self.open = []
        self.ended = collections.Counter()  # by the name that the region had when it began
        self.by_region = collections.Counter()
        self.unmatched = self.forgotten = 0
        for word in list(words) * times:
            self.follow(word)

    def follow(self, word):
        if "=" in word:
            to, source = map(int, word.split("="))
            self.names[to] = self.names[source]
        elif word[0] == "+":
            self.open.append((int(word), self.names[int(word)]))
            if len(self.open) > OPEN_MAX:
                del self.open[0]
                self.forgotten += 1
        elif word[0] == "-":
            found = [i for i, (region, _) in enumerate(self.open) if region == -int(word)]
            if not found:
                self.unmatched += 1
                return
            region, name = self.open.pop(found[-1])
            self.ended[shown(name)] += 1
            self.by_region[region] += 1


def kept(text):
    """What the regions of each process have kept themselves, in their order: entries, total, unmatched."""
    return {reported["pid"]: [tuple(region.values()) for region in reported["regions"]] for reported in results_in(text)}


def spans(trace, pid=None):
    """(name, tid, start, end) of every region, in ns, in the order of their ends."""
    found = [(event["name"], event["tid"], round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000))
             for event in trace.events if event["ph"] == "X" and event.get("cat", "").startswith("region,")
             and pid in (None, event["pid"])]
    return sorted(found, key=lambda span: span[3])


def named(name):
    return UNNAMED if re.fullmatch("0x[0-9a-f]+", name) else name


def counted(trace, pid=None):
    """Regions by name. The events of the trace and the totals of its metadata say the same."""
    events = collections.Counter(named(name) for name, *_ in spans(trace, pid))
    totals = collections.Counter()
    for region in trace.metadata["regions"]:
        if pid in (None, region["pid"]):
            totals[named(region["name"])] += region["duration_ns"]["count"]
    assert events == totals, "the events say %s, the totals %s" % (events, totals)
    return events


def times(trace):
    """ns in all of each name, from the metadata, and from the events."""
    events = collections.Counter()
    for name, _, start, end in spans(trace):
        events[name] += end - start
    return {region["name"]: region["duration_ns"]["sum"] for region in trace.metadata["regions"]}, dict(events)


def printed(text):
    """What vAccel's lines say: by name, how often and for how long (ns)."""
    return {name: (int(entries), int(total)) for name, total, entries in re.findall(
        r"^\[prof\] (.*): total_time: (\d+) nsec nr_entries: (\d+)$", text, re.M)}


def go(process):
    """Lets it run to its end; standard output."""
    assert isinstance(process, Process)
    process.send("\n")
    assert process.wait() == 0, process.stderr
    return process.stdout
