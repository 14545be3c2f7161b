# SPDX-License-Identifier: BSD-2-Clause
"""A second reader of recordings, from user/record/FORMAT.md and bpf/wire.h: for what no report shows."""

import collections
import json
import struct

CALL, SPEC, LOST, PASS, END = 1, 16, 19, 21, 24
CODE_OBJECT, CODE_UNLOADED, SYMBOL = 36, 37, 38
NUMBERED = 1 << 3

Call = collections.namedtuple("Call", "tgid tid spec start end flags sample program number")
Code = collections.namedtuple("Code", "tgid handle time text")  # text: what its JSON says; None: it was unloaded


class Recording:
    """All records of a file, which must be whole: each chunk in its turn, nothing behind the last one."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        assert data[:8] == b"XPUTRACE", "%s is no recording" % path
        header_length, info_offset, info_length = struct.unpack_from("<III", data, 16)
        self.info = json.loads(data[info_offset:info_offset + info_length])
        self.calls, self.specs, self.lost, self.end, self.kinds = [], {}, 0, None, collections.Counter()
        self.code, self.symbols = [], {}  # symbols: (tgid, address): name
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
            elif kind in (SPEC, END):
                number, text_length = struct.unpack_from("<QI", data, at + 16)
                text = json.loads(data[at + 32:at + 32 + text_length])
                if kind == SPEC:
                    self.specs[number] = text
                else:
                    self.end = text
            elif kind in (CODE_OBJECT, CODE_UNLOADED, SYMBOL):
                handle, text_length = struct.unpack_from("<QI", data, at + 16)
                text = data[at + 32:at + 32 + text_length]
                if kind == SYMBOL:
                    self.symbols[tgid, handle] = text.decode(errors="surrogateescape")
                else:
                    self.code.append(Code(tgid, handle, time, json.loads(text) if kind == CODE_OBJECT else None))
            elif kind == LOST:
                self.lost += struct.unpack_from("<Q", data, at + 24)[0]
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
