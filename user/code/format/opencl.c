/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels of OpenCL C: what is declared as one and has a body. Names that macros put together are not seen. */
#include "code/format/readers.h"
#include "code/format/source.h"

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
static bool has_body(struct source *source)
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
		    source_skip_group(&source) && has_body(&source))
			error = code_add_function(reading->contents, name.text, name.length, &kernel);
	return error;
}
