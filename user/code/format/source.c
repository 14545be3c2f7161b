/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/format/source.h"

#include <ctype.h>
#include <string.h>

static bool is_word(unsigned char character)
{
	return isalnum(character) || (character && strchr("_$%.@", character)) || character >= 0x80;
}

static bool starts(const struct source *source, const char *text)
{
	return source->end - source->at >= (ptrdiff_t)strlen(text) && memcmp(source->at, text, strlen(text)) == 0;
}

/* To the end of the line, or of the last line that a backslash joins to it. */
static void skip_line(struct source *source)
{
	for (; source->at < source->end && *source->at != '\n'; source->at++)
		if (*source->at == '\\' && source->end - source->at > 1)
			source->at++;
}

static void skip_comment(struct source *source)
{
	source->at += 2;
	while (source->at < source->end && !starts(source, "*/"))
		source->at++;
	source->at += source->at < source->end ? 2 : 0;
}

/* A string or character ends at its quote, or with its line. */
static void skip_string(struct source *source)
{
	char quote = *source->at++;

	for (; source->at < source->end && *source->at != '\n'; source->at++) {
		if (*source->at == quote) {
			source->at++;
			return;
		}
		if (*source->at == '\\' && source->end - source->at > 1)
			source->at++;
	}
}

/* Skips one thing that is no word. */
static bool skip_other(struct source *source)
{
	char first = *source->at;

	if (first == '\n') {
		source->line_begun = false;
		source->at++;
	} else if (!first || isspace((unsigned char)first)) {
		source->at++;
	} else if (starts(source, "//") || (first == '#' && !source->line_begun)) {
		skip_line(source);
	} else if (starts(source, "/*")) {
		skip_comment(source);
	} else if (first == '"' || first == '\'') {
		source->line_begun = true;
		skip_string(source);
	} else {
		return false;
	}
	return true;
}

void source_start(struct source *source, const void *text, size_t size)
{
	*source = (struct source){ .at = text, .end = (const char *)text + size };
}

bool source_next(struct source *source, struct source_word *word)
{
	while (source->at < source->end && skip_other(source))
		;
	if (source->at == source->end)
		return false;
	source->line_begun = true;
	word->text = source->at++;
	word->name = is_word(*word->text);
	while (word->name && source->at < source->end && is_word(*source->at))
		source->at++;
	word->length = source->at - word->text;
	return true;
}

bool source_is(const struct source_word *word, const char *text)
{
	return word->length == strlen(text) && memcmp(word->text, text, word->length) == 0;
}

bool source_skip_group(struct source *source)
{
	struct source_word word;

	for (size_t depth = 1; depth;) {
		if (!source_next(source, &word))
			return false;
		depth += source_is(&word, "(");
		depth -= source_is(&word, ")");
	}
	return true;
}
