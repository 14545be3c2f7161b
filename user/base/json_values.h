/* SPDX-License-Identifier: BSD-2-Clause */
/* Values out of the JSON text of a record, which comes from outside. */
#ifndef XPT_BASE_JSON_VALUES_H
#define XPT_BASE_JSON_VALUES_H

#include <cjson/cJSON.h>
#include <linux/types.h>
#include <stddef.h>

#include "base/json.h"

/* A copy of the string; an empty or missing one is -EBADMSG. -ENOMEM. */
int json_string_get(const cJSON *object, const char *key, char **result);
/* A number that is missing or not within low and high is -EBADMSG. */
int json_integer_get(const cJSON *object, const char *key, __s64 low, __s64 high, __s64 *result);

#endif
