/* SPDX-License-Identifier: BSD-2-Clause */
/* Containers of objects. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "code/format/readers.h"

/*
 * Fat binaries of CUDA: a header, then entries that follow each other, each with a header and one cubin or PTX text.
 * Most are compressed, and then only their place is listed. Layout by the public descriptions of what cuobjdump reads,
 * and by what nvcc 13 writes.
 */

#define FATBIN_MAGIC 0xba55ed50u
#define FATBIN_HEADER 16 /* magic, u16 version, u16 size of the header, u64 size of all entries */
#define FATBIN_ENTRY 64	 /* at least; newer ones have more */
#define KIND_PTX 1	 /* u16 at 0 */
#define KIND_ELF 2	 /* others are identified by their bytes */
/* Flags, u64 at 0x28. */
#define COMPRESSED 0xa000 /* LZ4, Zstandard */
#define MACHINE_ONLY (1 << 20)
#define FAMILY (1 << 21)

static enum code_kind entry_kind(const unsigned char *entry)
{
	switch (code_u16(entry)) {
	case KIND_PTX:
		return CODE_PTX;
	case KIND_ELF:
		return CODE_CUBIN;
	}
	return CODE_UNKNOWN;
}

static const char *target_suffix(__u64 flags)
{
	return flags & MACHINE_ONLY ? "a" : flags & FAMILY ? "f" : "";
}

/* place, size: of what follows the entry's header. */
static int read_fatbin_entry(struct code_reading *reading, const unsigned char *entry, __u64 place, __u64 size)
{
	struct code_part part = { .kind = entry_kind(entry), .offset = place, .size = size };
	__u32 packed = code_u32(entry + 0x10);
	__u64 flags = code_u64(entry + 0x28);
	char target[24];
	int length = snprintf(target, sizeof(target), "sm_%u%s", code_u32(entry + 0x1c), target_suffix(flags));

	if (!(flags & COMPRESSED))
		return code_read_inside(reading, target, length, &part);
	if (packed && packed < size)
		part.size = packed; /* the rest is padding */
	return code_add_part(reading->contents, target, length, &part);
}

/* The entry at an offset, and where the next one is. false: it cannot be. */
static bool find_fatbin_entry(const struct code_reading *reading, __u64 at, __u64 end, __u64 *place, __u64 *next)
{
	__u64 size;

	if (!code_inside(at, FATBIN_ENTRY, end))
		return false;
	*place = at + code_u32(reading->bytes + at + 4);
	size = code_u64(reading->bytes + at + 8);
	*next = *place + size;
	return *place - at >= FATBIN_ENTRY && code_inside(*place, size, end);
}

int code_read_fatbin(struct code_reading *reading)
{
	__u64 at, end, place, next;
	int error = 0;

	if (reading->size < FATBIN_HEADER || code_u16(reading->bytes + 6) < FATBIN_HEADER)
		return code_set_error(reading->contents, "its header cannot be");
	at = code_u16(reading->bytes + 6);
	if (__builtin_add_overflow(at, code_u64(reading->bytes + 8), &end) || end > reading->size) {
		code_set_error(reading->contents, "entries lie behind the end");
		end = reading->size;
	}
	for (unsigned int i = 0; at < end && !error; i++, at = next) {
		if (!find_fatbin_entry(reading, at, end, &place, &next))
			return code_set_error(reading->contents, "entry %u lies behind the end", i);
		error = read_fatbin_entry(reading, reading->bytes + at, place, next - place);
	}
	return error;
}

int code_fatbin_size(code_read_fn read, void *context, __u64 limit, __u64 *size)
{
	unsigned char header[FATBIN_HEADER];
	__u64 own;
	int error = read(context, 0, header, 4);

	if (!error)
		error = code_u32(header) == FATBIN_MAGIC ? read(context, 0, header, sizeof(header)) : -ENODATA;
	if (error)
		return error;
	if (code_u16(header + 6) < FATBIN_HEADER ||
	    __builtin_add_overflow(code_u64(header + 8), code_u16(header + 6), &own))
		return -EBADMSG;
	if (own > limit)
		return -EFBIG;
	*size = own;
	return 0;
}

/*
 * Bundles of clang: a table of targets, and for each an object. Compressed ones ("CCOB", with another header) are not
 * read: they have neither parts nor functions, which is no error.
 */

#define BUNDLE_MAGIC "__CLANG_OFFLOAD_BUNDLE__"
#define BUNDLE_MAGIC_SIZE 24
#define BUNDLE_HEADER (BUNDLE_MAGIC_SIZE + 8) /* u64 number of entries */
#define BUNDLE_ENTRY 24			      /* u64 offset, size, length of the name, which follows */
#define ENTRIES_READ_MAX 256		      /* for the size: each is a read */

#define COMPRESSED_MAGIC "CCOB"
#define COMPRESSED_HEADER 16 /* magic, u16 version, u16 method; of what follows: the size, u32 in version 2, u64 in 3 */

/* Bytes of a compressed bundle; -ENODATA: its version does not have it. */
static int compressed_size(const unsigned char *header, __u64 *size)
{
	switch (code_u16(header + 4)) {
	case 1:
		return -ENODATA;
	case 2:
		*size = code_u32(header + 8);
		break;
	case 3:
		*size = code_u64(header + 8);
		break;
	default:
		return -EBADMSG;
	}
	return *size < COMPRESSED_HEADER ? -EBADMSG : 0;
}

static int read_compressed(struct code_reading *reading)
{
	__u64 size;

	if (reading->size < COMPRESSED_HEADER)
		return code_set_error(reading->contents, "it ends inside of its header");
	switch (compressed_size(reading->bytes, &size)) {
	case -EBADMSG:
		code_set_error(reading->contents, "its header cannot be: version %u", code_u16(reading->bytes + 4));
		break;
	case 0:
		if (size > reading->size)
			code_set_error(reading->contents, "its header says %llu bytes, and there are %zu", size,
				       reading->size);
		break;
	}
	return 0;
}

static int read_bundle_entry(struct code_reading *reading, const char *name, size_t length,
			     const struct code_part *part)
{
	/* The host has no object of its own most of the time. */
	return part->size ? code_read_inside(reading, name, length, part) :
			    code_add_part(reading->contents, name, length, part);
}

int code_read_bundle(struct code_reading *reading)
{
	__u64 count, at = BUNDLE_HEADER;

	if (reading->size >= 4 && !memcmp(reading->bytes, COMPRESSED_MAGIC, 4))
		return read_compressed(reading);
	if (reading->size < BUNDLE_HEADER)
		return code_set_error(reading->contents, "it ends inside of its header");
	count = code_u64(reading->bytes + BUNDLE_MAGIC_SIZE);
	for (__u64 i = 0; i < count; i++) {
		const unsigned char *entry = reading->bytes + at;
		struct code_part part = { .kind = CODE_UNKNOWN };
		__u64 length;
		int error;

		if (!code_inside(at, BUNDLE_ENTRY, reading->size) ||
		    !code_inside(at + BUNDLE_ENTRY, code_u64(entry + 16), reading->size))
			return code_set_error(reading->contents, "entry %llu lies behind the end", i);
		part.offset = code_u64(entry);
		part.size = code_u64(entry + 8);
		length = code_u64(entry + 16);
		at += BUNDLE_ENTRY + length;
		if (!code_inside(part.offset, part.size, reading->size)) {
			code_set_error(reading->contents, "the object of entry %llu lies behind the end", i);
			continue;
		}
		error = read_bundle_entry(reading, (const char *)entry + BUNDLE_ENTRY, length, &part);
		if (error)
			return error;
	}
	return 0;
}

static int bundle_table_size(code_read_fn read, void *context, __u64 limit, __u64 *size)
{
	unsigned char bytes[BUNDLE_ENTRY];
	__u64 count, own = BUNDLE_HEADER, at = BUNDLE_HEADER;
	int error = read(context, BUNDLE_MAGIC_SIZE, bytes, 8);

	if (error)
		return error;
	count = code_u64(bytes);
	if (count > ENTRIES_READ_MAX)
		return -EBADMSG;
	for (__u64 i = 0; i < count; i++) {
		__u64 end;

		error = read(context, at, bytes, BUNDLE_ENTRY);
		if (error)
			return error;
		if (__builtin_add_overflow(at + BUNDLE_ENTRY, code_u64(bytes + 16), &at) ||
		    __builtin_add_overflow(code_u64(bytes), code_u64(bytes + 8), &end))
			return -EBADMSG;
		own = end > own ? end : own;
		own = at > own ? at : own;
	}
	if (own > limit)
		return -EFBIG;
	*size = own;
	return 0;
}

int code_bundle_size(code_read_fn read, void *context, __u64 limit, __u64 *size)
{
	unsigned char header[BUNDLE_MAGIC_SIZE];
	bool compressed;
	__u64 own;
	int error = read(context, 0, header, 4);

	if (error)
		return error;
	compressed = !memcmp(header, COMPRESSED_MAGIC, 4);
	if (!compressed && memcmp(header, BUNDLE_MAGIC, 4) != 0)
		return -ENODATA;
	error = read(context, 0, header, compressed ? COMPRESSED_HEADER : BUNDLE_MAGIC_SIZE);
	if (error)
		return error;
	if (!compressed)
		return memcmp(header, BUNDLE_MAGIC, BUNDLE_MAGIC_SIZE) ? -ENODATA :
									 bundle_table_size(read, context, limit, size);
	error = compressed_size(header, &own);
	if (!error && own > limit)
		error = -EFBIG;
	if (!error)
		*size = own;
	return error;
}
