/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bundles of clang: a table of targets, and for each an object. Compressed ones ("CCOB", with another header) are not
 * read: they have neither parts nor functions, which is no error.
 */
#include <errno.h>
#include <string.h>

#include "code/format/readers.h"

#define MAGIC "__CLANG_OFFLOAD_BUNDLE__"
#define MAGIC_SIZE 24
#define HEADER_SIZE (MAGIC_SIZE + 8) /* u64 number of entries */
#define ENTRY_SIZE 24		     /* u64 offset, size, length of the name, which follows */
#define ENTRIES_READ_MAX 256	     /* for the size: each is a read */

#define COMPRESSED_MAGIC "CCOB"
#define COMPRESSED_HEADER_SIZE \
	16 /* magic, u16 version, u16 method; of what follows: the size, u32 in version 2, u64 in 3 */

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
	return *size < COMPRESSED_HEADER_SIZE ? -EBADMSG : 0;
}

static int read_compressed(struct code_reading *reading)
{
	__u64 size;

	if (reading->size < COMPRESSED_HEADER_SIZE) {
		code_set_error(reading->contents, "it ends inside of its header");
		return 0;
	}
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

static int read_entry(struct code_reading *reading, const char *name, size_t length, const struct code_part *part)
{
	/* The host has no object of its own most of the time. */
	return part->size ? code_read_inside(reading, name, length, part) :
			    code_add_part(reading->contents, name, length, part);
}

int code_read_bundle(struct code_reading *reading)
{
	__u64 count, at = HEADER_SIZE;

	if (reading->size >= 4 && !memcmp(reading->bytes, COMPRESSED_MAGIC, 4))
		return read_compressed(reading);
	if (reading->size < HEADER_SIZE) {
		code_set_error(reading->contents, "it ends inside of its header");
		return 0;
	}
	count = code_u64(reading->bytes + MAGIC_SIZE);
	for (__u64 i = 0; i < count; i++) {
		const unsigned char *entry = reading->bytes + at;
		struct code_part part = { .kind = CODE_UNKNOWN };
		__u64 length;
		int error;

		if (!code_inside(at, ENTRY_SIZE, reading->size) ||
		    !code_inside(at + ENTRY_SIZE, code_u64(entry + 16), reading->size)) {
			code_set_error(reading->contents, "entry %llu lies behind the end", i);
			return 0;
		}
		part.offset = code_u64(entry);
		part.size = code_u64(entry + 8);
		length = code_u64(entry + 16);
		at += ENTRY_SIZE + length;
		if (!code_inside(part.offset, part.size, reading->size)) {
			code_set_error(reading->contents, "the object of entry %llu lies behind the end", i);
			continue;
		}
		error = read_entry(reading, (const char *)entry + ENTRY_SIZE, length, &part);
		if (error)
			return error;
	}
	return 0;
}

static int table_size(code_read_fn read, void *context, __u64 limit, __u64 *size)
{
	unsigned char bytes[ENTRY_SIZE];
	__u64 count, told = HEADER_SIZE, at = HEADER_SIZE;
	int error = read(context, MAGIC_SIZE, bytes, 8);

	if (error)
		return error;
	count = code_u64(bytes);
	if (count > ENTRIES_READ_MAX)
		return -EBADMSG;
	for (__u64 i = 0; i < count; i++) {
		__u64 end;

		error = read(context, at, bytes, ENTRY_SIZE);
		if (error)
			return error;
		if (__builtin_add_overflow(at + ENTRY_SIZE, code_u64(bytes + 16), &at) ||
		    __builtin_add_overflow(code_u64(bytes), code_u64(bytes + 8), &end))
			return -EBADMSG;
		told = end > told ? end : told;
		told = at > told ? at : told;
	}
	if (told > limit)
		return -EFBIG;
	*size = told;
	return 0;
}

int code_bundle_size(code_read_fn read, void *context, __u64 limit, __u64 *size)
{
	unsigned char header[MAGIC_SIZE];
	bool compressed;
	__u64 told;
	int error = read(context, 0, header, 4);

	if (error)
		return error;
	compressed = !memcmp(header, COMPRESSED_MAGIC, 4);
	if (!compressed && memcmp(header, MAGIC, 4) != 0)
		return -ENODATA;
	error = read(context, 0, header, compressed ? COMPRESSED_HEADER_SIZE : MAGIC_SIZE);
	if (error)
		return error;
	if (!compressed)
		return memcmp(header, MAGIC, MAGIC_SIZE) ? -ENODATA : table_size(read, context, limit, size);
	error = compressed_size(header, &told);
	if (!error && told > limit)
		error = -EFBIG;
	if (!error)
		*size = told;
	return error;
}
