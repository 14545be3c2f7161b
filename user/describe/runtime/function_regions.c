/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/function_regions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"

#define SOURCE "--region" /* in messages, in place of a file's name */

static int add_call(const struct log *log, struct text *json, const char *region)
{
	const char *colon = strchr(region, ':');
	char *file;

	if (!colon || colon == region || colon[1] == ':' || !colon[1]) {
		log_error(log, "region '%s': expected FILE:FUNCTION, such as 'libdecode.so*:decode_*'", region);
		return -EINVAL;
	}
	file = strndup(region, (size_t)(colon - region));
	if (!file)
		return -ENOMEM;
	json_begin(json, NULL, '{');
	json_add_string(json, "symbol", colon + 1);
	json_add_string(json, "file", file);
	json_add_string(json, "role", "region");
	json_end(json, '}');
	free(file);
	return 0;
}

int function_regions_describe(const struct log *log, const char *const *regions, size_t count,
			      struct description **result)
{
	struct text json = {};
	int error = 0;

	json_begin(&json, NULL, '{');
	json_add_unsigned(&json, "schema", 1);
	json_add_string(&json, "runtime", "function");
	json_add_string(&json, "title", "Functions");
	json_begin(&json, "calls", '[');
	for (size_t i = 0; i < count && !error; i++)
		error = add_call(log, &json, regions[i]);
	json_end(&json, ']');
	json_end(&json, '}');
	if (!error)
		error = json.error ?: description_parse(log, SOURCE, json.data, json.length, result);
	text_free(&json);
	return error;
}
