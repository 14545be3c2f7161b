/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/function_regions.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE "--region" /* in messages, where a file's name would stand */

static int add_call(const struct log *log, cJSON *calls, const char *region)
{
	const char *colon = strchr(region, ':');
	cJSON *call;
	char *file;

	if (!colon || colon == region || colon[1] == ':' || !colon[1]) {
		log_error(log, "region '%s': must be FILE:FUNCTION, such as 'libdecode.so*:decode_*'", region);
		return -EINVAL;
	}
	file = strndup(region, (size_t)(colon - region));
	call = cJSON_CreateObject();
	cJSON_AddStringToObject(call, "symbol", colon + 1);
	cJSON_AddStringToObject(call, "file", file ?: "");
	cJSON_AddStringToObject(call, "role", "region");
	if (!cJSON_AddItemToArray(calls, call) || !file) {
		cJSON_Delete(file ? call : NULL);
		free(file);
		return -ENOMEM;
	}
	free(file);
	return 0;
}

int function_regions_describe(const struct log *log, const char *const *regions, size_t count,
			      struct description **result)
{
	cJSON *document = cJSON_CreateObject(), *calls;
	char *text = NULL;
	int error = 0;

	cJSON_AddNumberToObject(document, "schema", 1);
	cJSON_AddStringToObject(document, "runtime", "function");
	cJSON_AddStringToObject(document, "title", "Functions");
	calls = cJSON_AddArrayToObject(document, "calls");
	for (size_t i = 0; i < count && !error; i++)
		error = add_call(log, calls, regions[i]);
	if (!error)
		text = cJSON_PrintUnformatted(document);
	if (!error)
		error = text ? description_parse(log, SOURCE, text, strlen(text), result) : -ENOMEM;
	cJSON_free(text);
	cJSON_Delete(document);
	return error;
}
