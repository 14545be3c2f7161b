/* SPDX-License-Identifier: BSD-2-Clause */
/* code_read FILE [HINT]: what is read from a code object, as JSON. Its size is asked for as if only memory were known. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/text.h"
#include "code/format/object.h"

struct object {
	unsigned char *bytes;
	size_t size;
	unsigned int reads;
};

static int read_bytes(void *context, __u64 offset, void *to, size_t length)
{
	struct object *object = context;

	object->reads++;
	if (offset > object->size || length > object->size - offset)
		return -EFAULT;
	memcpy(to, object->bytes + offset, length);
	return 0;
}

static int load(const char *path, struct object *object)
{
	FILE *file = fopen(path, "rb");
	long size = -1;

	if (!file)
		return -errno;
	if (!fseek(file, 0, SEEK_END))
		size = ftell(file);
	rewind(file);
	object->size = size > 0 ? (size_t)size : 0;
	object->bytes = malloc(object->size + 1);
	if (size < 0 || !object->bytes || fread(object->bytes, 1, object->size, file) != object->size) {
		fclose(file);
		return -EIO;
	}
	fclose(file);
	return 0;
}

static void add_text(struct text *out, const char *name, const char *value)
{
	text_json_string(out, name);
	text_literal(out, ":");
	if (value)
		text_json_string(out, value);
	else
		text_literal(out, "null");
	text_literal(out, ",");
}

static void add_number(struct text *out, const char *name, __u64 value)
{
	text_json_string(out, name);
	text_literal(out, ":");
	text_unsigned(out, value);
	text_literal(out, ",");
}

static void add_functions(struct text *out, const struct code_contents *contents)
{
	text_literal(out, "\"functions\":[");
	for (size_t i = 0; i < contents->function_count; i++) {
		const struct code_function *function = &contents->functions[i];

		text_string(out, i ? ",{" : "{");
		add_text(out, "name", function->name);
		add_number(out, "offset", function->offset);
		add_number(out, "size", function->size);
		add_number(out, "address", function->address);
		text_string(out, function->kernel ? "\"kernel\":true}" : "\"kernel\":false}");
	}
	text_literal(out, "],");
}

static void add_parts(struct text *out, const struct code_contents *contents)
{
	text_literal(out, "\"parts\":[");
	for (size_t i = 0; i < contents->part_count; i++) {
		const struct code_part *part = &contents->parts[i];

		text_string(out, i ? ",{" : "{");
		add_text(out, "name", part->name);
		add_text(out, "kind", code_kind_name(part->kind));
		add_number(out, "offset", part->offset);
		add_number(out, "size", part->size);
		text_string(out, part->external ? "\"external\":true}" : "\"external\":false}");
	}
	text_literal(out, "]}\n");
}

int main(int argc, char **argv)
{
	struct object object = { 0 };
	struct code_contents contents;
	struct text out = { 0 };
	__u64 size = 0;
	int error;

	if (argc < 2 || load(argv[1], &object) != 0) {
		fprintf(stderr, "code_read FILE [HINT]\n");
		return 2;
	}
	if (code_read(object.bytes, object.size, argc > 2 ? code_kind_from_name(argv[2]) : CODE_UNKNOWN, &contents) !=
	    0)
		return 1;
	error = code_own_size(read_bytes, &object, 1ull << 40, &size);
	text_literal(&out, "{");
	add_text(&out, "kind", code_kind_name(contents.kind));
	add_text(&out, "machine", contents.machine);
	add_text(&out, "name", contents.name);
	add_text(&out, "error", contents.error);
	add_number(&out, "functions_left_out", contents.functions_left_out);
	add_number(&out, "parts_left_out", contents.parts_left_out);
	add_number(&out, "own_size", size);
	add_number(&out, "own_size_error", -error);
	add_number(&out, "reads", object.reads);
	add_functions(&out, &contents);
	add_parts(&out, &contents);
	fwrite(out.data, 1, out.length, stdout);
	text_free(&out);
	code_contents_free(&contents);
	free(object.bytes);
	return 0;
}
