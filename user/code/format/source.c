/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words of source text as C-like languages have them (OpenCL C, PTX): without white space, comments, strings and lines of
 * the preprocessor; and the functions that are in it.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "code/format/readers.h"

struct source {
	const char *at, *end;
	bool line_begun; /* its line has something before at */
};

/* An identifier or number, of letters, digits and _ $ % . @; else one character. */
struct source_word {
	const char *text;
	size_t length;
	bool name; /* letters or digits, not one other character */
};

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

static void source_start(struct source *source, const void *text, size_t size)
{
	*source = (struct source){ .at = text, .end = (const char *)text + size };
}

/* false: the text has ended. */
static bool source_next(struct source *source, struct source_word *word)
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

static bool source_is(const struct source_word *word, const char *text)
{
	return word->length == strlen(text) && memcmp(word->text, text, word->length) == 0;
}

/* After an opening ( was read: skips to behind its ). false: there is none. */
static bool source_skip_group(struct source *source)
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

/* ---- PTX ---- */

/* Every module begins with its version. */
bool code_is_ptx(const unsigned char *bytes, size_t size)
{
	struct source source;
	struct source_word word;

	source_start(&source, bytes, size);
	return source_next(&source, &word) && source_is(&word, ".version");
}

/* From behind the name to where the body begins. false: it is only declared, or the text ends. */
static bool ptx_has_body(struct source *source)
{
	struct source_word word;
	bool pragma = false; /* the only directive there that ends with a semicolon */

	while (source_next(source, &word)) {
		if (source_is(&word, "{"))
			return true;
		if (source_is(&word, ";") && !pragma)
			return false;
		if (source_is(&word, "(") && !source_skip_group(source))
			return false;
		pragma = source_is(&word, ".pragma") || (pragma && !source_is(&word, ";"));
	}
	return false;
}

/* After .entry or .func. The result of a function precedes its name. */
static int read_function(struct code_reading *reading, struct source *source, bool kernel)
{
	struct code_function function = { .kernel = kernel };
	struct source_word name;

	if (!source_next(source, &name))
		return 0;
	if (source_is(&name, "(") && (!source_skip_group(source) || !source_next(source, &name)))
		return 0;
	if (!name.name || *name.text == '.') /* of a directive: .func .attribute(...) */
		return 0;
	return ptx_has_body(source) ? code_add_function(reading->contents, name.text, name.length, &function) : 0;
}

int code_read_ptx(struct code_reading *reading)
{
	struct code_contents *contents = reading->contents;
	struct source source;
	struct source_word word;
	int error = 0;

	source_start(&source, reading->bytes, reading->size);
	while (!error && source_next(&source, &word)) {
		if (source_is(&word, ".entry") || source_is(&word, ".func")) {
			error = read_function(reading, &source, source_is(&word, ".entry"));
		} else if (source_is(&word, ".target") && !contents->machine && source_next(&source, &word)) {
			contents->machine = strndup(word.text, word.length);
			error = contents->machine ? 0 : -ENOMEM;
		}
	}
	return error;
}

/* ---- OpenCL C ---- */

/* Kernels of OpenCL C: what is declared as one and has a body. Names that macros put together are not seen. */

/* Skips "(...)" when it comes next. */
static bool skip_arguments(struct source *source, struct source_word *word)
{
	return source_next(source, word) && source_is(word, "(") && source_skip_group(source);
}

/* From behind __kernel to the ( of its parameters; name is the word before that. */
static bool find_name(struct source *source, struct source_word *name)
{
	struct source_word word;

	name->length = 0;
	while (source_next(source, &word)) {
		if (source_is(&word, "__attribute__")) {
			if (!skip_arguments(source, &word))
				return false;
		} else if (source_is(&word, "(")) {
			return name->length;
		} else if (!word.name) {
			return false;
		} else {
			*name = word;
		}
	}
	return false;
}

/* From behind the parameters to the body; attributes may be in between. */
static bool opencl_has_body(struct source *source)
{
	struct source_word word;

	while (source_next(source, &word)) {
		if (source_is(&word, "{"))
			return true;
		if (source_is(&word, "__attribute__") ? !skip_arguments(source, &word) : !word.name)
			return false;
	}
	return false;
}

int code_read_opencl(struct code_reading *reading)
{
	const struct code_function kernel = { .kernel = true };
	struct source source;
	struct source_word word, name = { 0 };
	int error = 0;

	source_start(&source, reading->bytes, reading->size);
	while (!error && source_next(&source, &word))
		if ((source_is(&word, "__kernel") || source_is(&word, "kernel")) && find_name(&source, &name) &&
		    source_skip_group(&source) && opencl_has_body(&source))
			error = code_add_function(reading->contents, name.text, name.length, &kernel);
	return error;
}
