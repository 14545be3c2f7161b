/* SPDX-License-Identifier: BSD-2-Clause */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"

int json_parse(const char *text, size_t length, struct cJSON **object)
{
	/* The parser wants a terminator, which the text of a record lacks. */
	char *copy = malloc(length + 1);

	*object = NULL;
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, length);
	copy[length] = '\0';
	errno = 0; /* the parser does not report why it fails, malloc() does */
	*object = cJSON_ParseWithLength(copy, length + 1);
	free(copy);
	if (cJSON_IsObject(*object))
		return 0;
	if (!*object && errno == ENOMEM)
		return -ENOMEM;
	cJSON_Delete(*object);
	*object = NULL;
	return -EBADMSG;
}

int json_string_get(const cJSON *object, const char *key, char **result)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));

	if (!text || !*text)
		return -EBADMSG;
	*result = strdup(text);
	return *result ? 0 : -ENOMEM;
}

int json_integer_get(const cJSON *object, const char *key, __s64 low, __s64 high, __s64 *result)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	if (!cJSON_IsNumber(item) || !(item->valuedouble >= (double)low && item->valuedouble <= (double)high))
		return -EBADMSG;
	*result = (__s64)item->valuedouble;
	return 0;
}
