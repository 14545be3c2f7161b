# SPDX-License-Identifier: BSD-2-Clause
"""Writes containers of code and models, by their published layouts or, where none is published, by what is known of them."""

import gzip
import io
import struct
import tarfile

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


def neff(files, name="", link=None, archive=None):
    """A NEFF with files in its archive: path -> bytes; archive: is there in place of these."""
    if archive is None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for path, data in files.items():
                member = tarfile.TarInfo(path)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
            if link:
                member = tarfile.TarInfo(link[0])
                member.type, member.linkname = tarfile.SYMTYPE, link[1]
                tar.addfile(member)
        archive = gzip.compress(packed.getvalue(), mtime=0)
    header = bytearray(1024)
    struct.pack_into("<5Q128s", header, 0, 2, 1024, len(archive), 2, 0, b"2.1")
    header[0xDC:0xDC + len(name)] = name.encode()
    return bytes(header) + archive


def qpc(images, base=0x7F0012340000):
    """A container of Cloud AI. images: name -> bytes; base: address at which its writer had it."""
    names, place = {}, 40 + 32 * len(images)
    data = b""
    for name in images:
        names[name] = place + len(data)
        data += name.encode() + bytes(8 - len(name) % 8)
    table = b""
    for name, content in images.items():
        table += struct.pack("<QQQQ", len(content), 0, base + names[name], base + place + len(data))
        data += content + bytes(-len(content) % 8)
    return struct.pack("<IBBHQQQQ", 0x00A1CD7C, 0, 1, 1, place + len(data), base, len(images), base + 40) + table + data


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(pairs, version=3, tensors=0):
    """Metadata of a model. pairs: (key, type, encoded value)."""
    body = b"".join(gguf_string(key) + struct.pack("<I", kind) + value for key, kind, value in pairs)
    return struct.pack("<4sIQQ", b"GGUF", version, tensors, len(pairs)) + body
