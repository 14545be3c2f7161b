/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "code/format/readers.h"
#include "code/format/source.h"

/* Every module begins with its version. */
bool code_is_ptx(const unsigned char *bytes, size_t size)
{
	struct source source;
	struct source_word word;

	source_start(&source, bytes, size);
	return source_next(&source, &word) && source_is(&word, ".version");
}

/* From behind the name to where the body begins. false: it is only declared, or the text ends. */
static bool has_body(struct source *source)
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
	return has_body(source) ? code_add_function(reading->contents, name.text, name.length, &function) : 0;
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
