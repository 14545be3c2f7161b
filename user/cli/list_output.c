/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/list_output.h"

#include <stdio.h>

#include "base/text.h"
#include "cli/commands.h"

void list_row(struct list_output *output)
{
	printf(output->rows++ ? ",\n" : "[\n");
}

void list_string(const char *key, const char *value, const char *end)
{
	struct text text = {};

	text_json_string(&text, value);
	if (text.error)
		output_failed(text.error);
	printf("\"%s\":%.*s%s", key, (int)text.length, text.data ?: "\"\"", end);
	text_free(&text);
}
