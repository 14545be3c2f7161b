/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code objects, whatever is in them: places lie inside the object, limits hold, and what a header says of the size is found in
 * a bounded number of reads. The first byte is the hint.
 */
#include <errno.h>
#include <string.h>

#include "code/format/object.h"
#include "tests/fuzz/require.h"

#define READS_MAX 1000
#define SIZE_LIMIT (1u << 30)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

struct memory {
	const unsigned char *bytes;
	size_t size;
	unsigned int reads;
};

static int read_memory(void *context, __u64 offset, void *to, size_t length)
{
	struct memory *memory = context;

	memory->reads++;
	if (offset > memory->size || length > memory->size - offset)
		return -EFAULT;
	memcpy(to, memory->bytes + offset, length);
	return 0;
}

static void check_place(__u64 offset, __u64 length, size_t size)
{
	require(offset <= size && length <= size - offset);
}

static void check_contents(const struct code_contents *contents, size_t size)
{
	require(contents->kind < CODE_KINDS && contents->function_count <= CODE_FUNCTIONS_MAX &&
		contents->part_count <= CODE_PARTS_MAX);
	for (size_t i = 0; i < contents->function_count; i++) {
		const struct code_function *function = &contents->functions[i];

		require(function->name && function->name[0]);
		if (function->offset)
			check_place(function->offset, function->size, size);
		require(!i || function[-1].offset <= function->offset);
	}
	for (size_t i = 0; i < contents->part_count; i++) {
		require(contents->parts[i].name != NULL && contents->parts[i].kind < CODE_KINDS);
		if (!contents->parts[i].external && contents->parts[i].offset)
			check_place(contents->parts[i].offset, contents->parts[i].size, size);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct memory memory = { .bytes = data + 1, .size = size - 1 };
	struct code_contents contents;
	__u64 own = 0;
	int error;

	if (!size)
		return 0;
	require(code_read(memory.bytes, memory.size, (enum code_kind)(data[0] % CODE_KINDS), &contents) == 0);
	check_contents(&contents, memory.size);
	code_contents_free(&contents);
	error = code_own_size(read_memory, &memory, SIZE_LIMIT, &own);
	require(memory.reads <= READS_MAX);
	require(error ? own == 0 : own > 0 && own <= SIZE_LIMIT);
	if (memory.size)
		(void)code_is_text(memory.bytes, memory.size);
	return 0;
}
