/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One pass over the mangled name, from left to right. What has been read is kept as text, so that a substitution costs
 * as much as the text that it stands for, and doubling it again and again ends where the arena does. Only what names a
 * template parameter means something else in another place: that is read once more there.
 */
#include "target/elf/type_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/type_name_internal.h"

#define MANGLED_MAX 8192

void type_name_append_qualifiers(struct reader *reader, struct slice *slice, unsigned int qualifiers)
{
	static const char *const texts[] = {
		" noexcept", " const", " volatile", " restrict", " &", " &&",
	};
	static const unsigned int order[] = { QUALIFIER_NOEXCEPT, QUALIFIER_CONST,     QUALIFIER_VOLATILE,
					      QUALIFIER_RESTRICT, QUALIFIER_REFERENCE, QUALIFIER_RVALUE };

	for (size_t i = 0; i < SIZE_OF(order); i++)
		if (qualifiers & order[i])
			type_name_append(reader, slice, texts[i]);
}

unsigned int type_name_read_qualifiers(struct reader *reader)
{
	unsigned int qualifiers = 0;

	if (type_name_take(reader, "r"))
		qualifiers |= QUALIFIER_RESTRICT;
	if (type_name_take(reader, "V"))
		qualifiers |= QUALIFIER_VOLATILE;
	if (type_name_take(reader, "K"))
		qualifiers |= QUALIFIER_CONST;
	return qualifiers;
}

static bool at_end_of_parameters(const struct reader *reader)
{
	const char *at = reader->at;

	return *at == 'E' || ((*at == 'R' || *at == 'O') && at[1] == 'E');
}

struct slice type_name_read_parameters(struct reader *reader)
{
	struct slice list = { 0 };
	const char *first = reader->at;

	if (type_name_take(reader, "v")) {
		if (at_end_of_parameters(reader))
			return list;
		reader->at = first;
	}
	do {
		struct type type = type_name_read_type(reader);

		type_name_append_item(reader, &list, &type);
	} while (!reader->failed && !at_end_of_parameters(reader));
	return list;
}

unsigned int type_name_read_reference_qualifier(struct reader *reader)
{
	if (type_name_take(reader, "R"))
		return QUALIFIER_REFERENCE;
	return type_name_take(reader, "O") ? QUALIFIER_RVALUE : 0;
}

/* At the 'F'. What a function returns is written around it where that has two halves. */
static struct type read_function(struct reader *reader, unsigned int qualifiers)
{
	struct type type, result = { .kind = KIND_FUNCTION };
	struct slice parameters;

	type_name_expect(reader, "F");
	type_name_take(reader, "Y"); /* extern "C" */
	type = type_name_read_type(reader);
	parameters = type_name_read_parameters(reader);
	qualifiers |= type_name_read_reference_qualifier(reader);
	type_name_expect(reader, "E");
	if (type.kind != KIND_PLAIN)
		type_name_fail(reader);
	result.left = type.left;
	if (!type.right.length)
		type_name_append(reader, &result.left, " ");
	type_name_append(reader, &result.right, "(");
	type_name_append_slice(reader, &result.right, parameters);
	type_name_append(reader, &result.right, ")");
	type_name_append_qualifiers(reader, &result.right, qualifiers);
	type_name_append_slice(reader, &result.right, type.right);
	return result;
}

static void add_qualifiers(struct reader *reader, struct type *type, unsigned int qualifiers)
{
	qualifiers &= ~type->qualifiers;
	if (type->kind == KIND_FUNCTION)
		type_name_fail(reader);
	type_name_append_qualifiers(reader, &type->left, qualifiers);
	type->qualifiers |= qualifiers;
	type->reference = 0;
}

/* Puts a declarator between the halves, in parentheses where it would belong to what a function returns otherwise. */
static void add_declarator(struct reader *reader, struct type *type, const char *space, struct slice declarator)
{
	struct slice right = { 0 };

	if (type->kind != KIND_PLAIN) {
		type_name_append(reader, &type->left, space);
		type_name_append(reader, &type->left, "(");
		type_name_append(reader, &right, ")");
		type_name_append_slice(reader, &right, type->right);
		type->right = right;
	}
	type_name_append_slice(reader, &type->left, declarator);
	type->kind = KIND_PLAIN;
	type->qualifiers = 0;
	type->reference = 0;
}

static void add_pointer(struct reader *reader, struct type *type, const char *symbol)
{
	bool close = type->kind == KIND_FUNCTION && strchr(" (*", type_name_last_character(reader, type->left));
	struct slice declarator = { 0 };

	type_name_append(reader, &declarator, symbol);
	add_declarator(reader, type, close ? "" : " ", declarator);
}

/* A reference to a reference is one: '&' wins. */
static void add_reference(struct reader *reader, struct type *type, unsigned int count)
{
	if (reader->failed)
		return;
	if (type->reference > count) {
		type->left.length -= type->reference - count;
	} else if (!type->reference) {
		add_pointer(reader, type, count == 1 ? "&" : "&&");
	} else {
		return;
	}
	type->reference = count;
}

/* After the 'M'. */
static struct type read_member_pointer(struct reader *reader)
{
	struct type scope = type_name_read_type(reader), type = type_name_read_type(reader);
	struct slice declarator = { 0 };

	if (type.kind == KIND_PLAIN)
		type_name_append(reader, &declarator, " ");
	type_name_append_type(reader, &declarator, &scope);
	type_name_append(reader, &declarator, "::*");
	add_declarator(reader, &type, type_name_last_character(reader, type.left) == ' ' ? "" : " ", declarator);
	return type;
}

/* After the 'A'. */
static struct type read_array(struct reader *reader)
{
	const char *first = reader->at;
	size_t length;
	struct slice right = { 0 }, inner;
	struct type type;

	while (type_name_is_digit(*reader->at))
		reader->at++;
	length = (size_t)(reader->at - first);
	type_name_expect(reader, "_");
	type = type_name_read_type(reader);
	if (type.kind == KIND_FUNCTION)
		type_name_fail(reader);
	type_name_append(reader, &right, " [");
	type_name_append_bytes(reader, &right, first, length);
	type_name_append(reader, &right, "]");
	inner = type.right;
	/* Dimensions are adjacent. */
	if (type.kind == KIND_ARRAY && inner.length) {
		inner.at++;
		inner.length--;
	}
	type_name_append_slice(reader, &right, inner);
	type.right = right;
	type.kind = KIND_ARRAY;
	type.reference = 0;
	return type;
}

/* Packs with unknown elements: those of a lambda, or what is no pack. */
static void append_pattern(struct reader *reader, struct type *list, const struct type *pattern)
{
	if (pattern->nothing)
		type_name_fail(reader);
	type_name_append(reader, &list->left, "(");
	type_name_append_type(reader, &list->left, pattern);
	type_name_append(reader, &list->left, ")...");
}

/* After the "Dp": the pattern once for each element of the packs in it; as it is where their elements are not known. */
static struct type read_expansion(struct reader *reader)
{
	struct context context = reader->context;
	struct mark mark = type_name_mark_here(reader);
	struct type list = { 0 };
	int length;

	for (size_t i = 0;; i++) {
		struct type type;

		type_name_open_context(reader, context);
		reader->context.in_expansion = true;
		reader->context.element = i;
		reader->context.length = -1;
		type = type_name_read_type(reader);
		length = reader->context.length;
		if (reader->failed || length == 0)
			break;
		if (length < 0) {
			append_pattern(reader, &list, &type);
			break;
		}
		type_name_append_item(reader, &list.left, &type);
		if (i + 1 >= (size_t)length)
			break;
		reader->at = mark.at;
		reader->substitution_count = mark.count;
	}
	reader->context = context;
	list.nothing = length == 0;
	return list;
}

/* After the "Dv". */
static struct type read_vector(struct reader *reader)
{
	unsigned int count = type_name_read_number(reader);
	struct type type;

	type_name_expect(reader, "_");
	type = type_name_read_type(reader);
	if (type.kind != KIND_PLAIN)
		type_name_fail(reader);
	type_name_append_number(reader, &type.left, " __vector(%u)", count);
	type.qualifiers = 0;
	type.reference = 0;
	return type;
}

/* After the "DF". */
static struct type read_float(struct reader *reader)
{
	struct type type = { 0 };
	unsigned int bits;

	if (type_name_take(reader, "16b"))
		return type_name_plain_type(reader, "std::bfloat16_t");
	bits = type_name_read_number(reader);
	type_name_append_number(reader, &type.left, "_Float%u", bits);
	if (type_name_take(reader, "x"))
		type_name_append(reader, &type.left, "x");
	else
		type_name_expect(reader, "_");
	return type;
}

/* Types that every program knows: they are never substituted. */
static bool read_builtin(struct reader *reader, struct type *type)
{
	static const char *const letters['z' + 1] = {
		['v'] = "void",	       ['w'] = "wchar_t",
		['b'] = "bool",	       ['c'] = "char",
		['a'] = "signed char", ['h'] = "unsigned char",
		['s'] = "short",       ['t'] = "unsigned short",
		['i'] = "int",	       ['j'] = "unsigned int",
		['l'] = "long",	       ['m'] = "unsigned long",
		['x'] = "long long",   ['y'] = "unsigned long long",
		['n'] = "__int128",    ['o'] = "unsigned __int128",
		['f'] = "float",       ['d'] = "double",
		['e'] = "long double", ['g'] = "__float128",
		['z'] = "...",
	};
	static const char *const after_d['z' + 1] = {
		['n'] = "decltype(nullptr)",
		['i'] = "char32_t",
		['s'] = "char16_t",
		['u'] = "char8_t",
		['a'] = "auto",
		['c'] = "decltype(auto)",
		['d'] = "decimal64",
		['e'] = "decimal128",
		['f'] = "decimal32",
		['h'] = "half",
	};
	const char *const *texts = *reader->at == 'D' ? after_d : letters;
	const char *at = reader->at + (*reader->at == 'D');

	if (type_name_take(reader, "DF")) {
		*type = read_float(reader);
		return true;
	}
	if ((unsigned char)*at > 'z' || !texts[(unsigned char)*at])
		return false;
	reader->at = at + 1;
	*type = type_name_plain_type(reader, texts[(unsigned char)*at]);
	return true;
}

/* After the 'u' or 'U': what a compiler calls a type or qualifier of its own. */
static struct type read_vendor(struct reader *reader)
{
	size_t length = 0;
	const char *identifier = type_name_read_identifier(reader, &length);
	struct type type = { 0 };

	type_name_append_bytes(reader, &type.left, identifier, length);
	return type;
}

/* A type with text appended to it. */
static struct type read_suffixed(struct reader *reader, const char *suffix, struct type said)
{
	struct type type = type_name_read_type(reader);

	if (type.kind != KIND_PLAIN)
		type_name_fail(reader);
	type_name_append(reader, &type.left, suffix);
	type_name_append_slice(reader, &type.left, said.left);
	type.qualifiers = 0;
	type.reference = 0;
	return type;
}

static struct type read_qualified(struct reader *reader)
{
	unsigned int qualifiers = type_name_read_qualifiers(reader);
	struct type type;

	if (type_name_take(reader, "Do"))
		qualifiers |= QUALIFIER_NOEXCEPT;
	if (*reader->at == 'F')
		return read_function(reader, qualifiers);
	if (qualifiers & QUALIFIER_NOEXCEPT)
		type_name_fail(reader);
	type = type_name_read_type(reader);
	add_qualifiers(reader, &type, qualifiers);
	return type;
}

/* A template parameter, which may be a template. */
static struct type read_parameter_type(struct reader *reader, struct mark mark)
{
	struct name name = { .type = type_name_read_parameter(reader) };

	if (!type_name_take(reader, "I"))
		return name.type;
	mark.at = NULL;
	type_name_add_substitution(reader, &name.type, mark);
	if (name.type.right.length || name.type.nothing)
		type_name_fail(reader);
	type_name_read_arguments(reader, &name);
	return name.type;
}

static struct type read_named(struct reader *reader, bool *is_known)
{
	struct name name;

	type_name_read_name(reader, &name);
	*is_known = name.is_known;
	type_name_append_qualifiers(reader, &name.type.left, name.qualifiers);
	name.type.qualifiers |= name.qualifiers;
	return name.type;
}

static bool take_pointer(struct reader *reader, struct type *type)
{
	if (type_name_take(reader, "P")) {
		*type = type_name_read_type(reader);
		add_pointer(reader, type, "*");
	} else if (type_name_take(reader, "R")) {
		*type = type_name_read_type(reader);
		add_reference(reader, type, 1);
	} else if (type_name_take(reader, "O")) {
		*type = type_name_read_type(reader);
		add_reference(reader, type, 2);
	} else if (type_name_take(reader, "M")) {
		*type = read_member_pointer(reader);
	} else {
		return false;
	}
	return true;
}

static bool take_compound(struct reader *reader, struct type *type)
{
	if (strchr("rVKF", *reader->at) || strncmp(reader->at, "Do", 2) == 0)
		*type = read_qualified(reader);
	else if (type_name_take(reader, "A"))
		*type = read_array(reader);
	else if (type_name_take(reader, "Dp"))
		*type = read_expansion(reader);
	else if (type_name_take(reader, "Dv"))
		*type = read_vector(reader);
	else if (type_name_take(reader, "C"))
		*type = read_suffixed(reader, " _Complex", (struct type){ 0 });
	else if (type_name_take(reader, "G"))
		*type = read_suffixed(reader, " _Imaginary", (struct type){ 0 });
	else if (type_name_take(reader, "u"))
		*type = read_vendor(reader);
	else if (type_name_take(reader, "U"))
		*type = read_suffixed(reader, " ", read_vendor(reader));
	else
		return false;
	return true;
}

struct type type_name_read_type(struct reader *reader)
{
	struct mark mark = type_name_mark_here(reader);
	struct type type = { 0 };
	bool is_known = false;

	if (!type_name_enter(reader))
		return type;
	if (!*reader->at) {
		type_name_fail(reader);
	} else if (!take_pointer(reader, &type) && !take_compound(reader, &type)) {
		if (*reader->at == 'T')
			type = read_parameter_type(reader, mark);
		else if (type_name_is_digit(*reader->at) || strchr("NSZL", *reader->at))
			type = read_named(reader, &is_known);
		else if (read_builtin(reader, &type))
			is_known = true;
		else
			type_name_fail(reader);
	}
	if (!is_known)
		type_name_add_substitution(reader, &type, mark);
	reader->depth--;
	return type;
}

static int write_text(const struct reader *reader, const struct type *type, char *text, size_t size)
{
	size_t left = type->left.length, right = type->right.length;

	if (reader->failed || type->nothing || left + right >= size)
		return -ENOTSUP;
	memcpy(text, reader->arena + type->left.at, left);
	memcpy(text + left, reader->arena + type->right.at, right);
	text[left + right] = '\0';
	return 0;
}

static int write_type(struct reader *reader, char *text, size_t size)
{
	struct type type = type_name_read_type(reader);

	return *reader->at ? -ENOTSUP : write_text(reader, &type, text, size);
}

static int write_name(struct reader *reader, char *text, size_t size)
{
	struct name name;

	type_name_read_name(reader, &name);
	return write_text(reader, &name.type, text, size);
}

/* What write() makes of the mangled name. */
static int read_mangled(const char *mangled, int (*write)(struct reader *reader, char *text, size_t size), char *text,
			size_t size)
{
	size_t length = strnlen(mangled, MANGLED_MAX);
	struct reader *reader;
	int error;

	if (mangled[length])
		return -ENOTSUP;
	reader = malloc(sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	/* Tables and arena have nothing in them that their counts do not cover. */
	memset(reader, 0, offsetof(struct reader, substitutions));
	reader->at = mangled;
	reader->end = mangled + length;
	reader->context.length = -1;
	error = write(reader, text, size);
	free(reader);
	return error;
}

int type_name_read(const char *mangled, char *text, size_t size)
{
	if (size)
		text[0] = '\0';
	return read_mangled(mangled + (*mangled == '*'), write_type, text, size);
}

int type_name_read_function(const char *symbol, char *text, size_t size)
{
	size_t length = strnlen(symbol, size);

	if (size)
		text[0] = '\0';
	if (!strncmp(symbol, "_Z", 2))
		return read_mangled(symbol + 2, write_name, text, size);
	if (length == size)
		return -ENOTSUP;
	memcpy(text, symbol, length + 1);
	return 0;
}
