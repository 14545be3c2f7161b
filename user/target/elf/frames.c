/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where functions begin and end. Stripped libraries keep that in their unwind tables: .eh_frame_hdr is a sorted array
 * of (function, description), each description in .eh_frame has the length.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "target/elf/internal.h"

/* DWARF pointer encodings: low four bits the format, the next three what it is relative to */
#define ENCODING_OMIT 0xff
#define ENCODING_FORMAT 0x0f
#define ENCODING_TABLE \
	0x3b /* relative to .eh_frame_hdr, signed 32 bits: the only one with a search table in practice */

#define AUGMENTATION_MAX 64
#define DESCRIPTION_MAX 256 /* bytes read of one CIE or FDE */
#define FRAMES_BEFORE 16    /* of which one has to be sound */

/* Bytes of a pointer of this encoding; 0: not a fixed size. */
static size_t encoded_size(unsigned int encoding)
{
	switch (encoding & ENCODING_FORMAT) {
	case 0x00: /* native */
	case 0x04:
	case 0x0c:
		return 8;
	case 0x02:
	case 0x0a:
		return 2;
	case 0x03:
	case 0x0b:
		return 4;
	}
	return 0;
}

static int load_frames(struct elf_file *file)
{
	__u64 at = file->frame_header.address, left = file->frame_header.size;
	unsigned char header[4];
	size_t pointer;
	__u32 count;

	file->frames_loaded = true;
	if (left < sizeof(header) + 8 || elf_file_read(file, at, header, sizeof(header)) || header[0] != 1)
		return 0;
	file->frames_omitted = header[2] == ENCODING_OMIT && header[3] == ENCODING_OMIT;
	pointer = header[1] == ENCODING_OMIT ? 0 : encoded_size(header[1]);
	if ((!pointer && header[1] != ENCODING_OMIT) || encoded_size(header[2]) != 4 || header[3] != ENCODING_TABLE)
		return 0;
	at += sizeof(header) + pointer;
	left -= sizeof(header) + pointer;
	if (left < 4 || elf_file_read(file, at, &count, sizeof(count)))
		return 0;
	file->frames_omitted = !count;
	if (count > ELF_FRAME_MAX || count > (left - 4) / 8)
		return 0;
	file->frames = malloc(8ull * count + 1);
	if (!file->frames)
		return -ENOMEM;
	if (elf_file_read(file, at + 4, file->frames, 8ull * count) == 0)
		file->frame_count = count;
	return 0;
}

/* The cursor of a CIE or FDE; going past the end sets failed and reads zeros. */
struct cursor {
	const unsigned char *bytes;
	size_t length, at;
	bool failed;
};

static unsigned int take_byte(struct cursor *cursor)
{
	if (cursor->at >= cursor->length) {
		cursor->failed = true;
		return 0;
	}
	return cursor->bytes[cursor->at++];
}

static void skip_leb128(struct cursor *cursor)
{
	while (take_byte(cursor) & 0x80)
		;
}

/* Reads the contents of a CIE or FDE, after its length; returns how many bytes are there, 0 when it is malformed. */
static size_t read_description(struct elf_file *file, __u64 address, unsigned char bytes[DESCRIPTION_MAX])
{
	__u32 length;

	if (elf_file_read(file, address, &length, sizeof(length)) || length == 0xffffffff || length < 4)
		return 0;
	if (length > DESCRIPTION_MAX)
		length = DESCRIPTION_MAX;
	return elf_file_read(file, address + 4, bytes, length) ? 0 : length;
}

/* How FDEs of the CIE at address encode addresses. */
static int address_encoding(struct elf_file *file, __u64 address, unsigned int *encoding)
{
	unsigned char bytes[DESCRIPTION_MAX];
	struct cursor cursor = { .bytes = bytes, .length = read_description(file, address, bytes) };
	char augmentation[AUGMENTATION_MAX];
	unsigned int version, letter;
	__u32 id;

	if (cursor.length < 8)
		return -ENOENT;
	memcpy(&id, bytes, sizeof(id));
	cursor.at = sizeof(id);
	version = take_byte(&cursor);
	if (id != 0 || (version != 1 && version != 3))
		return -ENOENT;
	for (size_t i = 0;; i++) {
		if (i == AUGMENTATION_MAX)
			return -ENOENT;
		augmentation[i] = (char)take_byte(&cursor);
		if (!augmentation[i])
			break;
	}
	skip_leb128(&cursor); /* code alignment */
	skip_leb128(&cursor); /* data alignment */
	if (version == 1)
		take_byte(&cursor); /* return address register */
	else
		skip_leb128(&cursor);
	*encoding = 0;
	if (augmentation[0] != 'z')
		return cursor.failed || augmentation[0] ? -ENOENT : 0;
	skip_leb128(&cursor);
	for (size_t i = 1; augmentation[i]; i++) {
		switch (augmentation[i]) {
		case 'R':
			*encoding = take_byte(&cursor);
			return cursor.failed ? -ENOENT : 0;
		case 'P':
			letter = take_byte(&cursor);
			cursor.at += encoded_size(letter);
			if (!encoded_size(letter))
				return -ENOENT;
			break;
		case 'L':
			take_byte(&cursor);
			break;
		case 'S':
		case 'B':
			break;
		default:
			return -ENOENT;
		}
	}
	return cursor.failed ? -ENOENT : 0;
}

#define RELATIVE 0x10 /* encodings: to its own place; otherwise, or with relocations, it is not known here */

/* Length of the function that the FDE at address describes, if that begins at start. */
static int frame_length(struct elf_file *file, __u64 address, __u64 start, __u64 *length)
{
	unsigned char bytes[DESCRIPTION_MAX];
	size_t have = read_description(file, address, bytes), size;
	unsigned int encoding;
	__u32 back;
	__s32 begin;

	if (have < 4)
		return -ENOENT;
	memcpy(&back, bytes, sizeof(back));
	if (!back || address_encoding(file, address + 4 - back, &encoding))
		return -ENOENT;
	size = encoded_size(encoding);
	if (!size || have < 4 + 2 * size)
		return -ENOENT;
	memcpy(&begin, bytes + 4, sizeof(begin));
	if (size == sizeof(begin) && (encoding & 0x70) == RELATIVE && start != address + 8 + (__u64)(__s64)begin)
		return -ENOENT;
	*length = 0;
	memcpy(length, bytes + 4 + size, size);
	return *length ? 0 : -ENOENT;
}

static __u64 from_header(const struct elf_file *file, __u32 distance)
{
	return file->frame_header.address + (__u64)(__s64)(__s32)distance;
}

/* How many functions of the table begin at or before address. */
static size_t frames_until(const struct elf_file *file, __u64 address)
{
	return vec_first(file->frame_count, i, from_header(file, file->frames[2 * i]) <= address);
}

/* The function of the table that has this index, if its description is about it. */
static int read_frame(struct elf_file *file, size_t index, __u64 *start, __u64 *size)
{
	*start = from_header(file, file->frames[2 * index]);
	return frame_length(file, from_header(file, file->frames[2 * index + 1]), *start, size);
}

static int bounds_from_frames(struct elf_file *file, __u64 address, __u64 *start, __u64 *size)
{
	size_t until = frames_until(file, address);

	if (!until || read_frame(file, until - 1, start, size))
		return -ENOENT;
	return address >= *start && address - *start < *size ? 0 : -ENOENT;
}

int elf_file_frame_before(struct elf_file *file, __u64 address, __u64 *start, __u64 *size)
{
	int error = file->frames_loaded ? 0 : load_frames(file);
	size_t until = error ? 0 : frames_until(file, address);

	if (error)
		return error;
	if (!file->frame_count)
		return file->frame_header.size && !file->frames_omitted ? -ENOENT : -ENODATA;
	for (size_t i = 0; i < until && i < FRAMES_BEFORE; i++)
		if (!read_frame(file, until - 1 - i, start, size) && *start <= address)
			return 0;
	return -ENOENT;
}

static int add_range(void *context, const struct elf_symbol *symbol)
{
	struct elf_file *file = context;

	if (!symbol->size)
		return 0;
	return vec_push(file->ranges, file->range_count,
			(struct elf_function_range){ .start = symbol->address, .size = symbol->size });
}

static int compare_ranges(const void *left, const void *right)
{
	const struct elf_function_range *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->size < b->size ? -1 : a->size > b->size;
}

static int load_ranges(struct elf_file *file)
{
	int error = elf_file_each_function(file, add_range, file);

	file->ranges_loaded = true;
	if (file->range_count)
		qsort(file->ranges, file->range_count, sizeof(*file->ranges), compare_ranges);
	return error;
}

/* Of several symbols with one start the largest counts. */
static int bounds_from_symbols(struct elf_file *file, __u64 address, __u64 *start, __u64 *size)
{
	size_t until = vec_first(file->range_count, i, file->ranges[i].start <= address);

	if (!until || address - file->ranges[until - 1].start >= file->ranges[until - 1].size)
		return -ENOENT;
	*start = file->ranges[until - 1].start;
	*size = file->ranges[until - 1].size;
	return 0;
}

int elf_file_function_bounds(struct elf_file *file, __u64 address, __u64 *start, __u64 *size)
{
	int error = file->frames_loaded ? 0 : load_frames(file);

	if (error)
		return error;
	if (bounds_from_frames(file, address, start, size) == 0)
		return 0;
	error = file->ranges_loaded ? 0 : load_ranges(file);
	return error ? error : bounds_from_symbols(file, address, start, size);
}
