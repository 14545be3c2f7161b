# SPDX-License-Identifier: BSD-2-Clause
"""Writes containers of code and models, by their published layouts or, where none is published, by what is known of them. Reads the sections
of ELF files."""

import collections
import gzip
import struct

Section = collections.namedtuple("Section", "name type flags address offset size")


def sections_of(data):
    """Those of a 64-bit ELF file, in the order of their headers."""
    table, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    text = data[headers[names][4]:][:headers[names][5]]
    return [Section(text[header[0]:].split(b"\0", 1)[0].decode(), *header[1:]) for header in headers]


PTX, ELF = 1, 2  # kinds of a fat binary's entries
LZ4, ZSTD = 0x2000, 0x8000  # flags
GGUF_UINT32, GGUF_STRING, GGUF_ARRAY, GGUF_FLOAT64 = 4, 8, 9, 12


def fatbin(entries):
    """A fat binary of CUDA. entries: (kind, sm, data, flags); packed data is padded, as cuobjdump's sources have it."""
    body = b""
    for kind, machine, data, flags in entries:
        padded = data + bytes(-len(data) % 8)
        packed = len(data) if flags & (LZ4 | ZSTD) else 0
        body += struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(padded), packed, 0, 7, 8, machine, 0, 0, flags, 0,
                            4 * packed) + padded
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def neff(content):
    """A NEFF with this in its archive."""
    archive = gzip.compress(content, mtime=0)
    return struct.pack("<5Q", 2, 1024, len(archive), 2, 0).ljust(1024, b"\0") + archive


def qpc(size):
    """A container of Cloud AI."""
    return struct.pack("<IBBHQ", 0x00A1CD7C, 0, 1, 1, size).ljust(size, b"\0")


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(pairs, version=3, tensors=0):
    """Metadata of a model. pairs: (key, type, encoded value)."""
    body = b"".join(gguf_string(key) + struct.pack("<I", kind) + value for key, kind, value in pairs)
    return struct.pack("<4sIQQ", b"GGUF", version, tensors, len(pairs)) + body
