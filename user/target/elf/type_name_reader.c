/* SPDX-License-Identifier: BSD-2-Clause */
/* What reading the parts needs: text in the arena, characters of the mangled name, substitutions. */
#include "target/elf/type_name_internal.h"

#include <stdio.h>
#include <string.h>

#define NUMBER_MAX 999999999

void type_name_fail(struct reader *reader)
{
	reader->failed = true;
	reader->at = reader->end;
}

/* A slice at the end of the arena grows in place. Those that share its beginning stay as they are. */
void type_name_append_bytes(struct reader *reader, struct slice *slice, const char *bytes, size_t length)
{
	bool in_place = slice->at + slice->length == reader->used;

	if (reader->failed || !length)
		return;
	if ((in_place ? 0 : slice->length) + length > ARENA_MAX - reader->used) {
		type_name_fail(reader);
		return;
	}
	if (!in_place) {
		memcpy(reader->arena + reader->used, reader->arena + slice->at, slice->length);
		slice->at = reader->used;
		reader->used += slice->length;
	}
	memcpy(reader->arena + reader->used, bytes, length);
	reader->used += length;
	slice->length += length;
}

void type_name_append(struct reader *reader, struct slice *slice, const char *text)
{
	type_name_append_bytes(reader, slice, text, strlen(text));
}

void type_name_append_slice(struct reader *reader, struct slice *slice, struct slice other)
{
	type_name_append_bytes(reader, slice, reader->arena + other.at, other.length);
}

void type_name_append_number(struct reader *reader, struct slice *slice, const char *format, unsigned int number)
{
	char text[64];

	snprintf(text, sizeof(text), format, number);
	type_name_append(reader, slice, text);
}

void type_name_append_type(struct reader *reader, struct slice *slice, const struct type *type)
{
	type_name_append_slice(reader, slice, type->left);
	type_name_append_slice(reader, slice, type->right);
}

void type_name_append_item(struct reader *reader, struct slice *list, const struct type *type)
{
	if (type->nothing)
		return;
	if (list->length)
		type_name_append(reader, list, ", ");
	type_name_append_type(reader, list, type);
}

char type_name_last_character(const struct reader *reader, struct slice slice)
{
	return slice.length ? reader->arena[slice.at + slice.length - 1] : '\0';
}

struct type type_name_plain_type(struct reader *reader, const char *text)
{
	struct type type = { 0 };

	type_name_append(reader, &type.left, text);
	return type;
}

bool type_name_take(struct reader *reader, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(reader->at, word, length) != 0)
		return false;
	reader->at += length;
	return true;
}

void type_name_expect(struct reader *reader, const char *word)
{
	if (!type_name_take(reader, word))
		type_name_fail(reader);
}

bool type_name_is_digit(char character)
{
	return character >= '0' && character <= '9';
}

unsigned int type_name_read_number(struct reader *reader)
{
	unsigned int number = 0;

	if (!type_name_is_digit(*reader->at))
		type_name_fail(reader);
	for (; type_name_is_digit(*reader->at); reader->at++) {
		if (number > NUMBER_MAX / 10) {
			type_name_fail(reader);
			return 0;
		}
		number = number * 10 + (*reader->at - '0');
	}
	return number;
}

unsigned int type_name_read_ordinal(struct reader *reader)
{
	unsigned int number = 0;

	if (type_name_take(reader, "_"))
		return 0;
	number = type_name_read_number(reader) + 1;
	type_name_expect(reader, "_");
	return number;
}

static bool is_name_character(char character)
{
	return type_name_is_digit(character) || (character >= 'a' && character <= 'z') ||
	       (character >= 'A' && character <= 'Z') || character == '_' || character == '$' || character == '.' ||
	       (unsigned char)character > 0x7f;
}

const char *type_name_read_identifier(struct reader *reader, size_t *length)
{
	const char *identifier;

	*length = type_name_read_number(reader);
	identifier = reader->at;
	if (!*length || *length > (size_t)(reader->end - identifier)) {
		type_name_fail(reader);
		return NULL;
	}
	for (size_t i = 0; i < *length; i++) {
		if (!is_name_character(identifier[i])) {
			type_name_fail(reader);
			return NULL;
		}
	}
	reader->at += *length;
	return identifier;
}

bool type_name_enter(struct reader *reader)
{
	if (reader->steps++ >= STEP_MAX || reader->depth >= DEPTH_MAX)
		type_name_fail(reader);
	if (reader->failed)
		return false;
	reader->depth++;
	return true;
}

struct mark type_name_mark_here(const struct reader *reader)
{
	return (struct mark){ reader->at, reader->substitution_count, reader->uses };
}

void type_name_add_substitution(struct reader *reader, const struct type *type, struct mark mark)
{
	if (reader->failed)
		return;
	if (reader->substitution_count == SUBSTITUTION_MAX) {
		type_name_fail(reader);
		return;
	}
	reader->substitutions[reader->substitution_count++] = (struct substitution){
		.type = *type, .mark = mark, .context = reader->context.id, .depends = reader->uses != mark.uses
	};
}

/*
 * Reading it again adds the substitutions within it again, at the places where they are: they have the text of the new
 * context then.
 */
static struct type substitute(struct reader *reader, size_t index)
{
	struct type type = { 0 };
	const struct substitution *substitution;
	const char *at = reader->at;
	size_t count = reader->substitution_count;

	if (index >= count) {
		type_name_fail(reader);
		return type;
	}
	substitution = &reader->substitutions[index];
	if (!substitution->depends)
		return substitution->type;
	reader->uses++;
	if (substitution->context == reader->context.id)
		return substitution->type;
	if (!substitution->mark.at) {
		type_name_fail(reader);
		return type;
	}
	reader->at = substitution->mark.at;
	reader->substitution_count = substitution->mark.count;
	type = type_name_read_type(reader);
	if (!reader->failed) {
		reader->at = at;
		reader->substitution_count = count;
	}
	return type;
}

/* After the 'S': "_" or a number to the base 36 and "_". */
static size_t read_substitution_index(struct reader *reader)
{
	size_t index = 0;

	if (type_name_take(reader, "_"))
		return 0;
	for (; type_name_is_digit(*reader->at) || (*reader->at >= 'A' && *reader->at <= 'Z'); reader->at++) {
		index = index * 36 + (type_name_is_digit(*reader->at) ? *reader->at - '0' : *reader->at - 'A' + 10);
		if (index > SUBSTITUTION_MAX)
			break;
	}
	type_name_expect(reader, "_");
	return index + 1;
}

static bool read_abbreviation(struct reader *reader, struct type *type)
{
	static const struct {
		const char *code, *text, *base;
	} abbreviations[] = {
		{ "Sa", "std::allocator", "allocator" },
		{ "Sb", "std::basic_string", "basic_string" },
		{ "Ss", "std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "basic_string" },
		{ "Si", "std::basic_istream<char, std::char_traits<char> >", "basic_istream" },
		{ "So", "std::basic_ostream<char, std::char_traits<char> >", "basic_ostream" },
		{ "Sd", "std::basic_iostream<char, std::char_traits<char> >", "basic_iostream" },
	};

	for (size_t i = 0; i < SIZE_OF(abbreviations); i++) {
		if (type_name_take(reader, abbreviations[i].code)) {
			*type = type_name_plain_type(reader, abbreviations[i].text);
			type_name_append(reader, &type->base, abbreviations[i].base);
			return true;
		}
	}
	return false;
}

struct type type_name_read_substitution(struct reader *reader)
{
	struct type type = { 0 };

	if (read_abbreviation(reader, &type))
		return type;
	type_name_expect(reader, "S");
	return substitute(reader, read_substitution_index(reader));
}
