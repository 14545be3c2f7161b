/* SPDX-License-Identifier: BSD-2-Clause */
/* Template arguments, and what template parameters stand for. */
#include "target/elf/type_name_internal.h"

#include <string.h>

struct type type_name_read_parameter(struct reader *reader)
{
	struct context *context = &reader->context;
	struct type type = { 0 };
	unsigned int index, elements = 0;
	bool found = false;

	type_name_expect(reader, "T");
	index = type_name_read_ordinal(reader);
	reader->uses++;
	if (context->in_lambda) {
		type_name_append_number(reader, &type.left, "auto:%u", index + 1);
		return type;
	}
	for (size_t i = context->first; i < context->end; i++) {
		const struct argument *argument = &reader->arguments[i];

		if (argument->index != index)
			continue;
		if (!argument->in_pack)
			return argument->type;
		if (!elements || elements == context->element)
			type = argument->type;
		elements += !argument->type.nothing;
		context->length = (int)elements;
		found = true;
	}
	/* Elsewhere than in an expansion a pack has no meaning. */
	if (!found || !context->in_expansion)
		type_name_fail(reader);
	return type;
}

static bool is_builtin_number(char code)
{
	return code && strchr("ijlmxy", code);
}

static const char *number_suffix(char code)
{
	static const char *const suffixes[] = {
		['i'] = "", ['j'] = "u", ['l'] = "l", ['m'] = "ul", ['x'] = "ll", ['y'] = "ull",
	};

	return suffixes[(unsigned char)code];
}

static void append_digits(struct reader *reader, struct slice *slice)
{
	const char *first;

	if (type_name_take(reader, "n"))
		type_name_append(reader, slice, "-");
	for (first = reader->at; type_name_is_digit(*reader->at); reader->at++)
		;
	if (reader->at == first)
		type_name_fail(reader);
	type_name_append_bytes(reader, slice, first, (size_t)(reader->at - first));
}

/* The bytes of a floating-point number in hexadecimal. */
static void append_float(struct reader *reader, struct slice *slice)
{
	const char *first = reader->at;

	while (type_name_is_digit(*reader->at) || (*reader->at >= 'a' && *reader->at <= 'f'))
		reader->at++;
	if (reader->at == first)
		type_name_fail(reader);
	type_name_append(reader, slice, "[");
	type_name_append_bytes(reader, slice, first, (size_t)(reader->at - first));
	type_name_append(reader, slice, "]");
}

/* After the 'L'. */
static struct type read_literal(struct reader *reader)
{
	char code = *reader->at;
	struct type type, literal = { 0 };

	if (type_name_take(reader, "b0E"))
		return type_name_plain_type(reader, "false");
	if (type_name_take(reader, "b1E"))
		return type_name_plain_type(reader, "true");
	if (type_name_take(reader, "DnE"))
		return type_name_plain_type(reader, "decltype(nullptr)");
	type = type_name_read_type(reader);
	if (is_builtin_number(code)) {
		append_digits(reader, &literal.left);
		type_name_append(reader, &literal.left, number_suffix(code));
	} else {
		type_name_append(reader, &literal.left, "(");
		type_name_append_type(reader, &literal.left, &type);
		type_name_append(reader, &literal.left, ")");
		if (code == 'f' || code == 'd' || code == 'e')
			append_float(reader, &literal.left);
		else
			append_digits(reader, &literal.left);
	}
	type_name_expect(reader, "E");
	return literal;
}

static void add_argument(struct reader *reader, struct type type, unsigned int index, bool in_pack)
{
	if (reader->failed)
		return;
	if (reader->argument_count == ARGUMENT_MAX) {
		type_name_fail(reader);
		return;
	}
	reader->arguments[reader->argument_count++] = (struct argument){ type, index, in_pack };
}

static void read_argument(struct reader *reader, unsigned int index, bool in_pack)
{
	struct type type = type_name_take(reader, "L") ? read_literal(reader) : type_name_read_type(reader);

	add_argument(reader, type, index, in_pack);
}

static void read_pack(struct reader *reader, unsigned int index)
{
	if (type_name_take(reader, "E")) {
		add_argument(reader, (struct type){ .nothing = true }, index, true);
		return;
	}
	while (!reader->failed && !type_name_take(reader, "E"))
		read_argument(reader, index, true);
}

static void append_arguments(struct reader *reader, struct name *name)
{
	struct slice list = { 0 };

	for (size_t i = 0; i < name->argument_count; i++)
		type_name_append_item(reader, &list, &reader->arguments[name->arguments + i].type);
	type_name_append(reader, &name->type.left,
			 type_name_last_character(reader, name->type.left) == '<' ? " <" : "<");
	type_name_append_slice(reader, &name->type.left, list);
	type_name_append(reader, &name->type.left,
			 type_name_last_character(reader, name->type.left) == '>' ? " >" : ">");
}

void type_name_read_arguments(struct reader *reader, struct name *name)
{
	size_t first = reader->argument_count;
	unsigned int count = 0;

	for (; !reader->failed && !type_name_take(reader, "E"); count++) {
		if (type_name_take(reader, "J"))
			read_pack(reader, count);
		else
			read_argument(reader, count, false);
	}
	name->arguments = first;
	name->argument_count = reader->argument_count - first;
	name->is_template = true;
	name->type.qualifiers = 0;
	name->type.reference = 0;
	append_arguments(reader, name);
	reader->argument_count = first;
}

void type_name_open_context(struct reader *reader, struct context context)
{
	reader->context = context;
	reader->context.id = ++reader->contexts;
}
