#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Copies the BTF blob out of a kernel boot image: extract_btf.py VMLINUZ OUTPUT

The image may be a bzImage (x86), an EFI zboot image, a gzip file or the plain arm64 Image. The blob is found by its
own header, so no ELF section table is needed: boot images have none.
"""
import lzma
import struct
import subprocess
import sys
import zlib

BTF_MAGIC = b"\x9f\xeb\x01\x00"  # magic 0xeb9f, version 1, flags 0, little endian
BTF_HEADER = struct.Struct("<HBBIIIII")  # magic, version, flags, header length, then offset and length of types, strings
MODULE_BTF_MAX = 1 << 20  # smaller blobs belong to something else than vmlinux


def decompress(data):
    """The decompressed data, the method being told by its first bytes; data itself when none matches."""
    if data.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data)
    if data.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(data)
    if data.startswith(b"\x5d\x00\x00"):
        return lzma.LZMADecompressor(lzma.FORMAT_ALONE).decompress(data)
    for magic, tool in ((b"\x28\xb5\x2f\xfd", "zstd"), (b"\x02\x21\x4c\x18", "lz4")):
        if data.startswith(magic):
            # The kernel appends the decompressed size: the tool complains about it after it has written everything.
            return subprocess.run([tool, "-dc"], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  check=False).stdout
    return data


def payload(image):
    """The kernel proper inside a boot image."""
    if image[0x1FE:0x200] == b"\x55\xaa" and image[0x202:0x206] == b"HdrS":
        setup_sectors = image[0x1F1] or 4
        offset, length = struct.unpack_from("<II", image, 0x248)
        start = (setup_sectors + 1) * 512 + offset
        return decompress(image[start:start + length])
    if image[:2] == b"MZ" and image[4:8] == b"zimg":
        offset, length = struct.unpack_from("<II", image, 8)
        return decompress(image[offset:offset + length])
    return decompress(image)


def find_btf(image):
    """The largest BTF blob of the image whose header agrees with itself, or None."""
    best = None
    at = image.find(BTF_MAGIC)
    while at >= 0:
        if at + BTF_HEADER.size <= len(image):
            _, _, _, length, type_offset, type_length, string_offset, string_length = BTF_HEADER.unpack_from(image, at)
            end = at + length + string_offset + string_length
            sound = length == BTF_HEADER.size and type_offset == 0 and string_offset == type_length
            if sound and end <= len(image) and end - at > MODULE_BTF_MAX and image[end - 1] == 0:
                if best is None or end - at > len(best):
                    best = image[at:end]
        at = image.find(BTF_MAGIC, at + 1)
    return best


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as file:
        blob = find_btf(payload(file.read()))
    if blob is None:
        sys.exit(f"extract_btf.py: {sys.argv[1]}: no BTF found")
    with open(sys.argv[2], "wb") as file:
        file.write(blob)


if __name__ == "__main__":
    main()
