/* SPDX-License-Identifier: BSD-2-Clause */
/* What readers add to the contents of an object, and the end of that. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "code/format/readers.h"

#define ERROR_MAX 256 /* bytes, with the terminator */

static char *copy(const char *name, size_t length)
{
	char *to = malloc(length + 1);

	if (!to)
		return NULL;
	if (length)
		memcpy(to, name, length);
	to[length] = '\0';
	return to;
}

int code_add_function(struct code_contents *contents, const char *name, size_t length,
		      const struct code_function *function)
{
	struct code_function *added;

	if (contents->function_count == CODE_FUNCTIONS_MAX) {
		contents->functions_left_out++;
		return 0;
	}
	if (vec_reserve(contents->functions, contents->function_count))
		return -ENOMEM;
	added = &contents->functions[contents->function_count];
	*added = *function;
	added->name = copy(name, length);
	if (!added->name)
		return -ENOMEM;
	contents->function_count++;
	return 0;
}

int code_add_part(struct code_contents *contents, const char *name, size_t length, const struct code_part *part)
{
	struct code_part *added;

	if (contents->part_count == CODE_PARTS_MAX) {
		contents->parts_left_out++;
		return 0;
	}
	if (vec_reserve(contents->parts, contents->part_count))
		return -ENOMEM;
	added = &contents->parts[contents->part_count];
	*added = *part;
	added->name = copy(name, length);
	if (!added->name)
		return -ENOMEM;
	contents->part_count++;
	return 0;
}

/* Without memory for the text no error is set. */
void code_set_error(struct code_contents *contents, const char *format, ...)
{
	char text[ERROR_MAX];
	va_list arguments;

	if (contents->error)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	contents->error = strdup(text);
}

void code_contents_free(struct code_contents *contents)
{
	for (size_t i = 0; i < contents->function_count; i++)
		free(contents->functions[i].name);
	for (size_t i = 0; i < contents->part_count; i++)
		free(contents->parts[i].name);
	free(contents->functions);
	free(contents->parts);
	free(contents->machine);
	free(contents->name);
	free(contents->error);
	memset(contents, 0, sizeof(*contents));
}
