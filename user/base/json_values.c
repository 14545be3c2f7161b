/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/json_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
