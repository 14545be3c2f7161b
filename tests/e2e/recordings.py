# SPDX-License-Identifier: BSD-2-Clause
"""A second reader and writer of recordings, from user/record/FORMAT.md and bpf/wire.h: for what no report shows, and nothing records."""

import collections
import json
import struct

CALL, TASK, SPEC, PROCESS, LOST, PASS, NAMED, END = 1, 3, 16, 17, 19, 21, 22, 24
EXIT = 3  # of a TASK
CODE_OBJECT, CODE_UNLOADED, SYMBOL, BUDGET = 36, 37, 38, 41
MODULE, FRAME, STACK, STACK_SAMPLE = 42, 43, 44, 45
PARTIAL = 1 << 0
NUMBERED, INSIDE = 1 << 3, 1 << 5

Call = collections.namedtuple("Call", "tgid tid spec start end flags sample program number")
Code = collections.namedtuple("Code", "tgid handle time text")  # text: what its JSON says; None: it was unloaded
Stack = collections.namedtuple("Stack", "frames flags")  # frames: what the JSON of each says, the innermost first
StackSample = collections.namedtuple("StackSample", "tgid time call_start operator_start stack weight tid reason")


class Recording:
    """All records of a file, which must be whole: each chunk in its turn, nothing behind the last one."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        assert data[:8] == b"XPUTRACE", "%s is no recording" % path
        header_length, info_offset, info_length = struct.unpack_from("<III", data, 16)
        self.info = json.loads(data[info_offset:info_offset + info_length])
        self.calls, self.specs, self.lost, self.end, self.kinds = [], {}, 0, None, collections.Counter()
        self.losses = collections.Counter()  # by cause
        self.code, self.symbols = [], {}  # symbols: (tgid, address): name
        self.modules, self.frames, self.stacks, self.stack_samples = {}, {}, {}, []
        self.processes = 0
        self.running = {}  # processes whose end is not recorded, by tgid: the time of what describes them
        sequence, at = 0, header_length
        while at < len(data):
            magic, number, length, records = struct.unpack_from("<4sIII", data, at)
            assert magic == b"XPCK" and number == sequence, "%s: chunk %d is wrong" % (path, sequence)
            assert at + 24 + length <= len(data), "%s: chunk %d is cut off" % (path, sequence)
            assert self._read(data, at + 24, length) == records, "%s: chunk %d has other records" % (path, sequence)
            sequence += 1
            at += 24 + length

    def _read(self, data, at, length):
        end, count = at + length, 0
        while at < end:
            kind, size, tgid, time = struct.unpack_from("<HHIQ", data, at)
            assert self.end is None or kind == PASS, "something follows the end"
            self.kinds[kind] += 1
            if kind == CALL:
                self.calls.append(self._call(data, at, size, tgid, time))
            elif kind == PROCESS:
                self.processes += 1
                self.running[tgid] = max(time, self.running.get(tgid, 0))
            elif kind == TASK and data[at + 20] == EXIT and self.running.get(tgid, time + 1) <= time:
                del self.running[tgid]
            elif kind in (SPEC, END):
                number, text_length = struct.unpack_from("<QI", data, at + 16)
                text = json.loads(data[at + 32:at + 32 + text_length])
                if kind == SPEC:
                    self.specs[number] = text
                else:
                    self.end = text
            elif kind in (MODULE, FRAME):
                number, text_length = struct.unpack_from("<QI", data, at + 16)
                known = self.modules if kind == MODULE else self.frames
                assert number not in known, "record %d of kind %d comes twice" % (number, kind)
                known[number] = json.loads(data[at + 32:at + 32 + text_length])
            elif kind == STACK:
                number, frames, flags = struct.unpack_from("<QII", data, at + 16)
                assert number not in self.stacks, "stack %d comes twice" % number
                frames = struct.unpack_from("<%dI" % frames, data, at + 32)
                self.stacks[number] = Stack([self.frames[frame] for frame in frames], flags)
            elif kind == STACK_SAMPLE:
                fields = struct.unpack_from("<QQQQII", data, at + 16)
                self.stack_samples.append(StackSample(tgid, time, fields[0], fields[1], self.stacks[fields[2]], *fields[3:]))
            elif kind in (CODE_OBJECT, CODE_UNLOADED, SYMBOL):
                handle, text_length = struct.unpack_from("<QI", data, at + 16)
                text = data[at + 32:at + 32 + text_length]
                if kind == SYMBOL:
                    self.symbols[tgid, handle] = text.decode(errors="surrogateescape")
                else:
                    self.code.append(Code(tgid, handle, time, json.loads(text) if kind == CODE_OBJECT else None))
            elif kind == LOST:
                count_lost, cause = struct.unpack_from("<QI", data, at + 24)
                self.lost += count_lost
                self.losses[cause] += count_lost
            at += size
            count += 1
        assert at == end
        return count

    @staticmethod
    def _call(data, at, size, tgid, time):
        start, tid, spec, _, flags, _, values, _, sample = struct.unpack_from("<QIHBBBBHI", data, at + 16)
        number, program = None, None
        if values:
            program, = struct.unpack_from("<Q", data, at + 40)
        if flags & NUMBERED:
            number, = struct.unpack_from("<Q", data, at + 40 + 8 * values)
        return Call(tgid, tid, spec, start, time, flags, sample, program, number)

    def of_role(self, role):
        return [call for call in self.calls if self.specs[call.spec]["role"] == role]


# ---- writing ----

def crc32c(data):
    """Castagnoli, reflected."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def text_record(kind, tgid, time, text, number=0):
    text = text if isinstance(text, bytes) else json.dumps(text, separators=(",", ":")).encode()
    padded = text + bytes(-len(text) % 8)
    return struct.pack("<HHIQQII", kind, 32 + len(padded), tgid, time, number, len(text), 0) + padded


def rewrite(path, output, change):
    """A recording of one chunk as change() makes it from a list of records: (kind, tgid, time, bytes)."""
    with open(path, "rb") as file:
        data = file.read()
    begin, = struct.unpack_from("<I", data, 16)
    end = begin + 24 + struct.unpack_from("<I", data, begin + 8)[0]
    assert end == len(data), "%s has several chunks" % path
    at, records = begin + 24, []
    while at < end:
        kind, size, tgid, time = struct.unpack_from("<HHIQ", data, at)
        records.append((kind, tgid, time, data[at:at + size]))
        at += size
    records = change(records)
    body = b"".join(record[3] for record in records)
    header = b"XPCK" + struct.pack("<III", 0, len(body), len(records))
    with open(output, "wb") as file:
        file.write(data[:begin] + header + struct.pack("<II", crc32c(header + bytes(8) + body), 0) + body)


BUDGET_FIGURES = {"percent": 2, "targets_ns": 10000000, "added_ns": 140000, "collector_ns": 30000, "changes": 6, "coldness": 0.4,
                  "targets": [{"tgid": 31023, "cpu_ns": 9000000, "added_ns": 140000}],
                  "sites": [{"tgid": 31023, "function": "nrt_execute", "class": "emulated", "hits": 2, "added_ns": 2400}]}


def with_budget(path, output):
    """kept/counted.xpt as if it had a budget: with a change every ms from 13 ms on. When it began, ns."""
    whole = Recording(path)
    program, = {call.program for call in whole.of_role("execute")}
    runtime, = {spec["runtime"] for spec in whole.specs.values()}

    def change(records):
        (kind, tgid, time, record), = [one for one in records if one[0] == END]
        start = time - whole.end["detach_ns"] - whole.end["duration_ns"]
        costs = {"cost": 4.1, "budget": 2}
        changes = [(31023, {"action": "sampling", "every": 8, "programs": 2, "runtime": runtime, "handle": program}),
                   (31023, {"action": "site", "on": False, "function": "nrt_execute"}),
                   (7, {"action": "site", "on": False, "function": "other"}),
                   (31023, {"action": "site", "on": True, "function": "nrt_execute", "since": start + 14000000}),
                   (0, {"action": "operators", "on": False}), (0, {"action": "operators", "on": True})]
        begin.append(start)
        times = [start + ms * 1000000 for ms in range(13, 19)]  # behind the calls
        added = [(BUDGET, tgid, time, text_record(BUDGET, tgid, time, {**text, **costs}))
                 for time, (tgid, text) in zip(times, changes)]
        end = (kind, tgid, time, text_record(END, tgid, time, {**whole.end, "budget": BUDGET_FIGURES}))
        at = [one[0] for one in records].index(END)
        return records[:at] + added + [end] + records[at + 1:]

    begin = []
    rewrite(path, output, change)
    return begin[0]


# ---- stacks ----

AT_CALL, OFF_CPU, ON_CPU = 1, 2, 3  # why a stack was taken
TGID, TID, EXECUTE, ENQUEUE, WAIT = 31023, 31023, 228, 230, 231  # as in kept/counted.xpt


def call_record(spec, start, end, values, tid=TID, depth=0, flags=0):
    return struct.pack("<HHIQQIHBBBBHI", CALL, 40 + 8 * len(values), TGID, end, start, tid, spec, depth, flags,
                       (1 << len(values)) - 1, len(values), 0, 1) + struct.pack("<%dQ" % len(values), *values)


def stack_record(number, frames, partial=False):
    padded = struct.pack("<%dI" % len(frames), *frames)
    padded += bytes(-len(padded) % 8)
    return struct.pack("<HHIQQII", STACK, 32 + len(padded), 0, 0, number, len(frames), partial) + padded


def sample_record(stack, reason, time, call_start, weight, operator_start=0, tid=TID):
    return struct.pack("<HHIQQQQQII", STACK_SAMPLE, 56, TGID, time, call_start, operator_start, stack, weight, tid, reason)


def with_records(path, output, names, added):
    """kept/counted.xpt without its calls, but with these records; names: of programs by their handles."""
    def change(records):
        end, = [one for one in records if one[0] == END]
        kept = [one for one in records if one[0] not in (CALL, 2, 20, 30, END)]
        named = [(NAMED, TGID, 0, text_record(
            NAMED, TGID, 0, name if isinstance(name, bytes) else name.encode(), handle)) for handle, name in names.items()]
        return kept + named + [struct.unpack_from("<HxxIQ", one) + (one,) for one in added] + [end]

    rewrite(path, output, change)


DRIVER, DRIVER_EVENT, EVENT = 27, 28, 4


def with_driver_events(path, output, statuses, sizes):
    """kept/jobs.xpt, of whose jobs the first ones fail with these statuses; then memory events of these sizes, and a reset."""
    def described(number, role, event, fields):
        text = {"driver": 12, "event": event, "role": role, "key": 2 if fields[0][0] == 1 else 0, "by_thread": False,
                "fields": [{"meaning": meaning, "name": name, "text": False, "signed": signed} for meaning, name, signed in fields]}
        return (DRIVER_EVENT, 0, 0, text_record(DRIVER_EVENT, 0, 0, text, number))

    def event(like, number, time, values):
        head = struct.pack("<HHIQIHBB", EVENT, 24 + 8 * len(values), like[1], time, 0, number, 0, (1 << len(values)) - 1)
        return (EVENT, like[1], time, head + struct.pack("<%dq" % len(values), *values))

    def change(records):
        at = next(i for i, one in enumerate(records) if one[0] == EVENT)
        events = [described(10, 4, "told:failed", [(1, "a", False), (1, "b", False), (11, "error", True)]),
                  described(11, 6, "told:alloc", [(7, "bytes", False)]), described(12, 5, "told:reset", [(2, "device", False)])]
        made, left = records[:at] + events, list(statuses)
        for one in records[at:]:
            if one[0] == EVENT and struct.unpack_from("<H", one[3], 20)[0] == 1 and left:  # done
                made.append(event(one, 10, one[2] - 1, [*struct.unpack_from("<2q", one[3], 24), left.pop(0)]))
            made.append(one)
            if one[0] == EVENT:
                last = len(made), one
        more = [event(last[1], 11, last[1][2] + 1 + i, [size]) for i, size in enumerate(sizes)]
        return made[:last[0]] + more + [event(last[1], 12, last[1][2] + 100, [1073741831])] + made[last[0]:]

    rewrite(path, output, change)
