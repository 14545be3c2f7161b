/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fat binaries of CUDA: a header, then entries that follow each other, each with a header and one cubin or PTX text.
 * Most are compressed, and then only their place is listed. Layout by the public descriptions of what cuobjdump reads,
 * and by what nvcc 13 writes.
 */
#include <errno.h>
#include <stdio.h>

#include "code/format/readers.h"

#define FATBIN_MAGIC 0xba55ed50u
#define HEADER_SIZE 16 /* magic, u16 version, u16 size of the header, u64 size of all entries */
#define ENTRY_SIZE 64  /* at least; newer ones have more */
#define KIND_PTX 1     /* u16 at 0 */
#define KIND_ELF 2     /* others are identified by their bytes */
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

static const char *suffix(__u64 flags)
{
	return flags & MACHINE_ONLY ? "a" : flags & FAMILY ? "f" : "";
}

/* place, size: of what follows the entry's header. */
static int read_entry(struct code_reading *reading, const unsigned char *entry, __u64 place, __u64 size)
{
	struct code_part part = { .kind = entry_kind(entry), .offset = place, .size = size };
	__u32 packed = code_u32(entry + 0x10);
	__u64 flags = code_u64(entry + 0x28);
	char target[24];
	int length = snprintf(target, sizeof(target), "sm_%u%s", code_u32(entry + 0x1c), suffix(flags));

	if (!(flags & COMPRESSED))
		return code_read_inside(reading, target, length, &part);
	if (packed && packed < size)
		part.size = packed; /* the rest is padding */
	return code_add_part(reading->contents, target, length, &part);
}

/* The entry at an offset, and where the next one is. false: it cannot be. */
static bool find_entry(const struct code_reading *reading, __u64 at, __u64 end, __u64 *place, __u64 *next)
{
	__u64 size;

	if (!code_inside(at, ENTRY_SIZE, end))
		return false;
	*place = at + code_u32(reading->bytes + at + 4);
	size = code_u64(reading->bytes + at + 8);
	*next = *place + size;
	return *place - at >= ENTRY_SIZE && code_inside(*place, size, end);
}

int code_read_fatbin(struct code_reading *reading)
{
	__u64 at, end, place, next;
	int error = 0;

	if (reading->size < HEADER_SIZE || code_u16(reading->bytes + 6) < HEADER_SIZE) {
		code_set_error(reading->contents, "its header cannot be");
		return 0;
	}
	at = code_u16(reading->bytes + 6);
	if (__builtin_add_overflow(at, code_u64(reading->bytes + 8), &end) || end > reading->size) {
		code_set_error(reading->contents, "entries lie behind the end");
		end = reading->size;
	}
	for (unsigned int i = 0; at < end && !error; i++, at = next) {
		if (!find_entry(reading, at, end, &place, &next)) {
			code_set_error(reading->contents, "entry %u lies behind the end", i);
			return 0;
		}
		error = read_entry(reading, reading->bytes + at, place, next - place);
	}
	return error;
}

int code_fatbin_size(code_read_fn read, void *context, __u64 limit, __u64 *size)
{
	unsigned char header[HEADER_SIZE];
	__u64 told;
	int error = read(context, 0, header, 4);

	if (!error)
		error = code_u32(header) == FATBIN_MAGIC ? read(context, 0, header, sizeof(header)) : -ENODATA;
	if (error)
		return error;
	if (code_u16(header + 6) < HEADER_SIZE ||
	    __builtin_add_overflow(code_u64(header + 8), code_u16(header + 6), &told))
		return -EBADMSG;
	if (told > limit)
		return -EFBIG;
	*size = told;
	return 0;
}
