/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/code_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_values.h"

#define NUMBER_MAX (1LL << 53) /* beyond, numbers of JSON are not exact */

static char *text_get(const cJSON *item, size_t most, int *error)
{
	const char *text = cJSON_GetStringValue(item);
	char *copy;

	if (!text || !*text || *error)
		return NULL;
	copy = strndup(text, most);
	if (!copy)
		*error = -ENOMEM;
	return copy;
}

static char *member_get(const cJSON *object, const char *key, int *error)
{
	return text_get(cJSON_GetObjectItemCaseSensitive(object, key),
			strcmp(key, "uri") ? CODE_TEXT_MAX : CODE_URI_MAX, error);
}

static __u64 number_get(const cJSON *object, const char *key, __s64 most)
{
	__s64 number;

	return json_integer_get(object, key, 0, most, &number) ? 0 : (__u64)number;
}

static void kernels_get(const cJSON *array, struct event_code *event, int *error)
{
	const char **names;
	const cJSON *item;

	if (!cJSON_IsArray(array) || !array->child)
		return;
	names = calloc(CODE_KERNELS_MAX, sizeof(*names));
	if (!names) {
		*error = -ENOMEM;
		return;
	}
	event->kernels = names;
	cJSON_ArrayForEach(item, array) {
		if (event->kernel_count == CODE_KERNELS_MAX)
			break;
		names[event->kernel_count] = text_get(item, CODE_TEXT_MAX, error);
		if (names[event->kernel_count])
			event->kernel_count++;
	}
}

int code_text_read(const struct xpt_record_text *record, struct event_code *event)
{
	cJSON *object;
	int error = json_parse(record->text, record->length, &object);

	*event = (struct event_code){};
	if (error)
		return error;
	event->kind = member_get(object, "kind", &error);
	if (!event->kind && !error)
		event->kind = strdup("unknown");
	event->machine = member_get(object, "machine", &error);
	event->name = member_get(object, "name", &error);
	event->uri = member_get(object, "uri", &error);
	event->sha256 = member_get(object, "sha256", &error);
	event->runtime = member_get(object, "runtime", &error);
	event->function = member_get(object, "function", &error);
	event->error = member_get(object, "error", &error);
	event->tid = (__u32)number_get(object, "tid", 0xffffffff);
	event->size = number_get(object, "size", NUMBER_MAX);
	event->functions = number_get(object, "functions", NUMBER_MAX);
	event->missing = number_get(object, "missing", NUMBER_MAX);
	event->waited = number_get(object, "waited_ns", NUMBER_MAX);
	kernels_get(cJSON_GetObjectItemCaseSensitive(object, "kernels"), event, &error);
	cJSON_Delete(object);
	if (!event->kind)
		error = -ENOMEM;
	if (error)
		code_text_free(event);
	return error;
}

void code_text_free(struct event_code *event)
{
	for (size_t i = 0; i < event->kernel_count; i++)
		free((char *)event->kernels[i]);
	free((void *)event->kernels);
	free((char *)event->kind);
	free((char *)event->machine);
	free((char *)event->name);
	free((char *)event->uri);
	free((char *)event->sha256);
	free((char *)event->runtime);
	free((char *)event->function);
	free((char *)event->error);
	*event = (struct event_code){};
}
