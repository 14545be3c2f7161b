/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words of source text as C-like languages have them (OpenCL C, PTX): without white space, comments, strings and lines of
 * the preprocessor. Included by files of this folder only.
 */
#ifndef XPT_CODE_FORMAT_SOURCE_H
#define XPT_CODE_FORMAT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

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

void source_start(struct source *source, const void *text, size_t size);
/* false: the text has ended. */
bool source_next(struct source *source, struct source_word *word);
bool source_is(const struct source_word *word, const char *text);
/* After an opening ( was read: skips to behind its ). false: there is none. */
bool source_skip_group(struct source *source);

#endif
