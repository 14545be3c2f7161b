/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a file holds a string. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf_internal.h"

#define CHUNK (256u << 10) /* bytes looked at together */

struct search {
	const char *string;
	size_t length; /* with its terminator */
	int (*visit)(void *context, __u64 address);
	void *context;
};

/* begins: nothing stands before the first byte. */
static int search_bytes(const struct search *search, const char *bytes, size_t length, __u64 address, bool begins)
{
	const char *at = bytes, *end = bytes + length;
	int error = 0;

	while (!error && (at = memmem(at, (size_t)(end - at), search->string, search->length))) {
		if (at == bytes ? begins : !at[-1] || at[-1] == '*')
			error = search->visit(search->context, address + (__u64)(at - bytes));
		at++;
	}
	return error;
}

/* Chunks overlap, so that each place is wholly in one and what stands before it too. */
static int search_segment(struct elf_file *file, const struct elf_segment *segment, const struct search *search,
			  char *buffer)
{
	size_t overlap = search->length;
	__u64 done = 0;
	int error = 0;

	while (done < segment->file_size && !error) {
		__u64 left = segment->file_size - done;
		size_t part = left < CHUNK ? (size_t)left : CHUNK;

		if (elf_file_read_offset(file, segment->offset + done, buffer, part))
			return 0; /* cut short */
		error = search_bytes(search, buffer, part, segment->address + done, !done);
		if (part == left)
			break;
		done += part - overlap;
	}
	return error;
}

int elf_file_each_string(struct elf_file *file, const char *string, int (*visit)(void *context, __u64 address),
			 void *context)
{
	const struct search search = { string, strlen(string) + 1, visit, context };
	char *buffer;
	int error = 0;

	if (search.length > ELF_NAME_MAX + 1)
		return -EINVAL;
	buffer = malloc(CHUNK);
	if (!buffer)
		return -ENOMEM;
	for (size_t i = 0; i < file->segment_count && !error; i++)
		if (!file->segments[i].writable)
			error = search_segment(file, &file->segments[i], &search, buffer);
	free(buffer);
	return error;
}
