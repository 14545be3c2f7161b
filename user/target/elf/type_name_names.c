/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of types, and of the functions that types are declared in. */
#include "target/elf/type_name_internal.h"

#include <string.h>

/* A function as a scope: no return type, and none of its parameters where the name stands alone, as that of main(). */
static void read_encoding(struct reader *reader, struct slice *text)
{
	struct context context = reader->context;
	size_t argument_count = reader->argument_count;
	struct slice parameters;
	struct name name;

	type_name_read_name(reader, &name);
	*text = name.type.left;
	if (reader->failed || *reader->at == 'E')
		return;
	type_name_open_context(reader, (struct context){ .length = -1 });
	if (name.is_template) {
		reader->context.first = name.arguments;
		reader->context.end = name.arguments + name.argument_count;
		reader->argument_count = reader->context.end;
		if (name.has_return)
			type_name_read_type(reader);
	}
	parameters = type_name_read_parameters(reader);
	reader->argument_count = argument_count;
	reader->context = context;
	type_name_append(reader, text, "(");
	type_name_append_slice(reader, text, parameters);
	type_name_append(reader, text, ")");
	type_name_append_qualifiers(reader, text, name.qualifiers);
}

/* A part of a name begins. */
static void append_scope(struct reader *reader, struct name *name)
{
	if (name->type.left.length)
		type_name_append(reader, &name->type.left, "::");
	name->type.qualifiers = 0;
	name->type.reference = 0;
	name->is_template = false;
	name->has_return = true;
}

static bool is_anonymous(const char *identifier, size_t length)
{
	return length >= 10 && strncmp(identifier, "_GLOBAL_", 8) == 0 && strchr("_.$", identifier[8]) &&
	       identifier[9] == 'N';
}

static void read_source_name(struct reader *reader, struct name *name)
{
	size_t length = 0;
	const char *identifier = type_name_read_identifier(reader, &length);

	if (!identifier)
		return;
	name->type.base = (struct slice){ 0 };
	if (is_anonymous(identifier, length))
		type_name_append(reader, &name->type.base, "(anonymous namespace)");
	else
		type_name_append_bytes(reader, &name->type.base, identifier, length);
	append_scope(reader, name);
	type_name_append_slice(reader, &name->type.left, name->type.base);
}

/* After the "Ul". Template parameters among its parameters are its own. */
static void read_lambda(struct reader *reader, struct name *name)
{
	struct context context = reader->context;
	unsigned int uses = reader->uses;
	struct slice parameters;

	type_name_open_context(reader, (struct context){ .in_lambda = true, .length = -1 });
	parameters = type_name_read_parameters(reader);
	reader->context = context;
	reader->uses = uses;
	type_name_expect(reader, "E");
	append_scope(reader, name);
	type_name_append(reader, &name->type.left, "{lambda(");
	type_name_append_slice(reader, &name->type.left, parameters);
	type_name_append_number(reader, &name->type.left, ")#%u}", type_name_read_ordinal(reader) + 1);
}

static void read_unnamed(struct reader *reader, struct name *name)
{
	append_scope(reader, name);
	type_name_append_number(reader, &name->type.left, "{unnamed type#%u}", type_name_read_ordinal(reader) + 1);
}

static void read_constructor(struct reader *reader, struct name *name)
{
	bool destroys = type_name_take(reader, "D");
	struct slice base = name->type.base;

	if (!destroys)
		type_name_expect(reader, "C");
	if (*reader->at < '0' || *reader->at > '5' || !base.length) {
		type_name_fail(reader);
		return;
	}
	reader->at++;
	append_scope(reader, name);
	name->has_return = false;
	type_name_append(reader, &name->type.left, destroys ? "~" : "");
	type_name_append_slice(reader, &name->type.left, base);
}

static void read_conversion(struct reader *reader, struct name *name)
{
	struct type type = type_name_read_type(reader);

	append_scope(reader, name);
	name->has_return = false;
	type_name_append(reader, &name->type.left, "operator ");
	type_name_append_type(reader, &name->type.left, &type);
}

static void read_literal_operator(struct reader *reader, struct name *name)
{
	size_t length = 0;
	const char *identifier = type_name_read_identifier(reader, &length);

	append_scope(reader, name);
	type_name_append(reader, &name->type.left, "operator\"\" ");
	type_name_append_bytes(reader, &name->type.left, identifier, length);
}

static void read_operator(struct reader *reader, struct name *name)
{
	static const char operators[][14] = {
		"nw new", "na new[]", "dl delete", "da delete[]", "aw co_await", "ps+",	  "ng-",   "ad&",
		"de*",	  "co~",      "pl+",	   "mi-",	  "ml*",	 "dv/",	  "rm%",   "an&",
		"or|",	  "eo^",      "aS=",	   "pL+=",	  "mI-=",	 "mL*=",  "dV/=",  "rM%=",
		"aN&=",	  "oR|=",     "eO^=",	   "ls<<",	  "rs>>",	 "lS<<=", "rS>>=", "eq==",
		"ne!=",	  "lt<",      "gt>",	   "le<=",	  "ge>=",	 "ss<=>", "nt!",   "aa&&",
		"oo||",	  "pp++",     "mm--",	   "cm,",	  "pm->*",	 "pt->",  "cl()",  "ix[]",
	};

	if (type_name_take(reader, "cv")) {
		read_conversion(reader, name);
		return;
	}
	if (type_name_take(reader, "li")) {
		read_literal_operator(reader, name);
		return;
	}
	for (size_t i = 0; i < SIZE_OF(operators); i++) {
		if (strncmp(reader->at, operators[i], 2) == 0) {
			reader->at += 2;
			append_scope(reader, name);
			type_name_append(reader, &name->type.left, "operator");
			type_name_append(reader, &name->type.left, operators[i] + 2);
			return;
		}
	}
	type_name_fail(reader);
}

static void read_tags(struct reader *reader, struct name *name)
{
	while (type_name_take(reader, "B")) {
		size_t length = 0;
		const char *identifier = type_name_read_identifier(reader, &length);

		type_name_append(reader, &name->type.left, "[abi:");
		type_name_append_bytes(reader, &name->type.left, identifier, length);
		type_name_append(reader, &name->type.left, "]");
	}
}

/* One more part of a name. */
static void read_part(struct reader *reader, struct name *name)
{
	type_name_take(reader, "L"); /* internal linkage */
	if (type_name_is_digit(*reader->at))
		read_source_name(reader, name);
	else if (type_name_take(reader, "Ul"))
		read_lambda(reader, name);
	else if (type_name_take(reader, "Ut"))
		read_unnamed(reader, name);
	else if (*reader->at == 'C' || *reader->at == 'D')
		read_constructor(reader, name);
	else
		read_operator(reader, name);
	read_tags(reader, name);
}

/* What a nested name can begin with beside a part; false where there is none of these. */
static bool read_prefix(struct reader *reader, struct name *name)
{
	struct mark mark = type_name_mark_here(reader);

	if (type_name_take(reader, "St")) {
		name->type = type_name_plain_type(reader, "std");
		return true;
	}
	if (*reader->at == 'S') {
		name->type = type_name_read_substitution(reader);
	} else if (*reader->at == 'T') {
		name->type = type_name_read_parameter(reader);
		mark.at = NULL;
		type_name_add_substitution(reader, &name->type, mark);
	} else {
		return false;
	}
	if (name->type.right.length || name->type.nothing)
		type_name_fail(reader);
	return true;
}

/* After the 'N'. */
static void read_nested(struct reader *reader, struct name *name)
{
	struct mark mark = type_name_mark_here(reader);

	mark.at = NULL;
	name->qualifiers = type_name_read_qualifiers(reader) | type_name_read_reference_qualifier(reader);
	read_prefix(reader, name);
	do {
		bool has_text = name->type.left.length;

		if (has_text && !name->is_template && type_name_take(reader, "I")) {
			type_name_read_arguments(reader, name);
		} else {
			if (has_text)
				type_name_take(reader, "M"); /* a member that has the lambda in its initializer */
			read_part(reader, name);
		}
		if (*reader->at != 'E')
			type_name_add_substitution(reader, &name->type, mark);
	} while (!reader->failed && !type_name_take(reader, "E"));
}

static void skip_discriminator(struct reader *reader)
{
	if (type_name_take(reader, "__")) {
		type_name_read_number(reader);
		type_name_expect(reader, "_");
	} else if (type_name_take(reader, "_")) {
		if (type_name_is_digit(*reader->at))
			reader->at++;
		else
			type_name_fail(reader);
	}
}

/* After the 'Z': something within a function. */
static void read_local(struct reader *reader, struct name *name)
{
	struct slice text = { 0 };

	read_encoding(reader, &text);
	type_name_expect(reader, "E");
	type_name_append(reader, &text, "::");
	if (type_name_take(reader, "d")) {
		type_name_append_number(reader, &text, "{default arg#%u}::", type_name_read_ordinal(reader) + 1);
		type_name_read_name(reader, name);
	} else {
		type_name_read_name(reader, name);
		skip_discriminator(reader);
	}
	type_name_append_slice(reader, &text, name->type.left);
	name->type.left = text;
	name->is_known = false;
}

static void read_unscoped(struct reader *reader, struct name *name)
{
	struct mark mark = type_name_mark_here(reader);

	if (*reader->at == 'S' && reader->at[1] != 't') {
		name->type = type_name_read_substitution(reader);
		name->is_known = true;
	} else {
		if (type_name_take(reader, "St"))
			name->type = type_name_plain_type(reader, "std");
		read_part(reader, name);
	}
	if (!type_name_take(reader, "I"))
		return;
	if (!name->is_known)
		type_name_add_substitution(reader, &name->type, mark);
	if (name->type.right.length || name->type.nothing)
		type_name_fail(reader);
	name->is_known = false;
	name->has_return = true;
	type_name_read_arguments(reader, name);
}

void type_name_read_name(struct reader *reader, struct name *name)
{
	memset(name, 0, sizeof(*name));
	if (!type_name_enter(reader))
		return;
	if (type_name_take(reader, "N"))
		read_nested(reader, name);
	else if (type_name_take(reader, "Z"))
		read_local(reader, name);
	else
		read_unscoped(reader, name);
	reader->depth--;
}
