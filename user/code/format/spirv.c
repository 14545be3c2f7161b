/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points of SPIR-V modules, and functions that have names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "code/format/readers.h"

/* Numbers of the SPIR-V specification. */
#define HEADER_WORDS 5
#define OP_NAME 5
#define OP_MEMORY_MODEL 14
#define OP_ENTRY_POINT 15
#define OP_FUNCTION 54
#define MODEL_GL_COMPUTE 5
#define MODEL_KERNEL 6
#define PHYSICAL32 1
#define PHYSICAL64 2

struct module {
	struct code_reading *reading;
	bool big_endian;
	size_t words;
	char *text; /* room for the longest string of an instruction */
};

/* Names of instructions by the id that they are about. */
struct ids {
	__u32 *ids; /* sorted once all are there */
	size_t count;
};

static __u32 word_at(const struct module *module, size_t index)
{
	__u32 word = code_u32(module->reading->bytes + 4 * index);

	return module->big_endian ? __builtin_bswap32(word) : word;
}

static int compare_ids(const void *left, const void *right)
{
	__u32 a = *(const __u32 *)left, b = *(const __u32 *)right;

	return (a > b) - (a < b);
}

static void sort_ids(struct ids *ids)
{
	if (ids->count)
		qsort(ids->ids, ids->count, sizeof(*ids->ids), compare_ids);
}

static bool has_id(const struct ids *ids, __u32 id)
{
	return ids->count && bsearch(&id, ids->ids, ids->count, sizeof(id), compare_ids);
}

/* The string in words from first up to end; its length. */
static size_t string_at(const struct module *module, size_t first, size_t end)
{
	size_t length = 0;

	for (size_t i = first; i < end; i++) {
		__u32 word = word_at(module, i);

		for (unsigned int byte = 0; byte < 4; byte++) {
			module->text[length] = (char)(word >> 8 * byte);
			if (!module->text[length])
				return length;
			length++;
		}
	}
	return length;
}

static int add_function(struct module *module, size_t first, size_t end, bool kernel)
{
	const struct code_function function = { .kernel = kernel };
	size_t length = string_at(module, first, end);

	return length ? code_add_function(module->reading->contents, module->text, length, &function) : 0;
}

static int set_machine(struct module *module, __u32 addressing)
{
	struct code_contents *contents = module->reading->contents;

	if (contents->machine || (addressing != PHYSICAL32 && addressing != PHYSICAL64))
		return 0;
	contents->machine = strdup(addressing == PHYSICAL64 ? "64-bit" : "32-bit");
	return contents->machine ? 0 : -ENOMEM;
}

/* Calls visit for each instruction, which is count words at index. */
static int each_instruction(struct module *module, struct ids *functions, struct ids *entries,
			    int (*visit)(struct module *module, struct ids *functions, struct ids *entries,
					 size_t index, size_t count))
{
	int error = 0;

	for (size_t i = HEADER_WORDS; i < module->words && !error;) {
		size_t count = word_at(module, i) >> 16;

		if (!count || count > module->words - i)
			return code_set_error(module->reading->contents, "instruction at word %zu lies behind the end",
					      i);
		error = visit(module, functions, entries, i, count);
		i += count;
	}
	return error;
}

static int note_ids(struct module *module, struct ids *functions, struct ids *entries, size_t index, size_t count)
{
	switch (word_at(module, index) & 0xffff) {
	case OP_FUNCTION:
		return count > 2 ? vec_push(functions->ids, functions->count, word_at(module, index + 2)) : 0;
	case OP_ENTRY_POINT:
		return count > 3 ? vec_push(entries->ids, entries->count, word_at(module, index + 2)) : 0;
	case OP_MEMORY_MODEL:
		return count > 1 ? set_machine(module, word_at(module, index + 1)) : 0;
	default:
		return 0;
	}
}

static int add_names(struct module *module, struct ids *functions, struct ids *entries, size_t index, size_t count)
{
	__u32 operation = word_at(module, index) & 0xffff;

	if (operation == OP_ENTRY_POINT && count > 3) {
		__u32 model = word_at(module, index + 1);

		return add_function(module, index + 3, index + count,
				    model == MODEL_KERNEL || model == MODEL_GL_COMPUTE);
	}
	if (operation == OP_NAME && count > 2) {
		__u32 id = word_at(module, index + 1);

		return has_id(functions, id) && !has_id(entries, id) ?
			       add_function(module, index + 2, index + count, false) :
			       0;
	}
	return 0;
}

int code_read_spirv(struct code_reading *reading)
{
	struct module module = { .reading = reading, .words = reading->size / 4 };
	struct ids functions = { 0 }, entries = { 0 };
	int error;

	module.big_endian = reading->bytes[0] == 0x07;
	if (module.words < HEADER_WORDS)
		return code_set_error(reading->contents, "the header is cut off");
	/* An instruction has less than 65536 words. */
	module.text = malloc(4 * (module.words < 65536 ? module.words : 65536));
	error = module.text ? each_instruction(&module, &functions, &entries, note_ids) : -ENOMEM;
	sort_ids(&functions);
	sort_ids(&entries);
	if (!error)
		error = each_instruction(&module, &functions, &entries, add_names);
	free(module.text);
	free(functions.ids);
	free(entries.ids);
	return error;
}
