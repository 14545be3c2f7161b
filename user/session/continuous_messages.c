/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/continuous_messages.h"

#define EXACT_MAX 9007199254740992.0 /* whole numbers up to here are exact in JSON */

/* A number of a message: where it is in the structure. */
struct figure {
	const char *name;
	size_t offset;
};

#define SAVED(name)                                     \
	{                                               \
#name, offsetof(struct xpt_saved, name) \
	}
#define STATUS(name)                                                \
	{                                                           \
#name, offsetof(struct xpt_continuous_status, name) \
	}

static const struct figure saved_figures[] = {
	SAVED(bytes), SAVED(records), SAVED(inferences), SAVED(lost), SAVED(duration),
};

/* Nanoseconds of the real time are beyond what all readers of JSON keep exactly. */
static const struct figure saved_times[] = { SAVED(begin), SAVED(end) };

static const struct figure status_figures[] = {
	STATUS(elapsed),
	STATUS(calls),
	STATUS(lost),
	STATUS(window_time),
	STATUS(window_bytes),
	STATUS(window_records),
	STATUS(window_inferences),
	STATUS(evicted_records),
	STATUS(evicted_inferences),
	STATUS(saves),
	STATUS(saved_bytes),
	STATUS(failed_saves),
	STATUS(triggered),
	STATUS(suppressed),
	STATUS(cpu_time),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t *figure_in(void *structure, const struct figure *figure)
{
	return (uint64_t *)((char *)structure + figure->offset);
}

/* A message that lacks a member would say something else: where one cannot be added, there is none. */
static bool add_string(cJSON *object, const char *name, const char *value)
{
	return cJSON_AddStringToObject(object, name, value);
}

static bool add_number(cJSON *object, const char *name, double value)
{
	return cJSON_AddNumberToObject(object, name, value);
}

static cJSON *finish(cJSON *object, bool good)
{
	if (good)
		return object;
	cJSON_Delete(object);
	return NULL;
}

static bool add_figures(cJSON *object, const void *structure, const struct figure *figures, size_t count)
{
	bool good = true;

	for (size_t i = 0; i < count; i++)
		good &= add_number(object, figures[i].name, (double)*figure_in((void *)structure, &figures[i]));
	return good;
}

/* Whole ones only. */
static bool read_number(const cJSON *object, const char *name, double least, uint64_t *result)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);

	if (!value)
		return true;
	if (!cJSON_IsNumber(value) || value->valuedouble < least || value->valuedouble > EXACT_MAX ||
	    value->valuedouble != floor(value->valuedouble))
		return false;
	*result = (uint64_t)(int64_t)value->valuedouble;
	return true;
}

static int read_figures(const cJSON *object, void *structure, const struct figure *figures, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!read_number(object, figures[i].name, 0, figure_in(structure, &figures[i])))
			return -EINVAL;
	}
	return 0;
}

/* ---- numbers of 64 bits, as strings ---- */

static bool add_decimal(cJSON *object, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return add_string(object, name, text);
}

static bool read_decimal(const cJSON *object, const char *name, int base, uint64_t *result)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);
	const char *text = cJSON_GetStringValue(value);
	char *end;

	if (!value)
		return true;
	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*result = strtoull(text, &end, base);
	return !errno && !*end;
}

/* ---- messages ---- */

cJSON *message_save_request(const struct xpt_save_options *options)
{
	cJSON *object = cJSON_CreateObject();
	bool good = add_string(object, "do", "save");
	char handle[24];

	if (options->pid)
		good &= add_number(object, "pid", options->pid);
	if (options->program)
		good &= add_string(object, "program", options->program);
	if (options->handle) {
		snprintf(handle, sizeof(handle), "0x%" PRIx64, options->handle);
		good &= add_string(object, "handle", handle);
	}
	if (options->has_core)
		good &= add_number(object, "core", (double)options->core);
	if (options->inferences)
		good &= add_number(object, "inferences", (double)options->inferences);
	if (options->time)
		good &= add_number(object, "time", (double)options->time);
	return finish(object, good);
}

int message_read_save(const cJSON *object, struct xpt_save_options *options, const char **member)
{
	const cJSON *program = cJSON_GetObjectItemCaseSensitive(object, "program");
	uint64_t pid = 0, core = 0;

	*options = (struct xpt_save_options){ .size = sizeof(*options) };
	options->has_core = cJSON_GetObjectItemCaseSensitive(object, "core") != NULL;
	options->program = cJSON_GetStringValue(program);
	*member = "program";
	if (program && !options->program)
		return -EINVAL;
	*member = "pid";
	if (!read_number(object, *member, 1, &pid) || pid > INT32_MAX)
		return -EINVAL;
	*member = "core";
	if (!read_number(object, *member, -EXACT_MAX, &core))
		return -EINVAL;
	*member = "handle";
	if (!read_decimal(object, *member, 0, &options->handle))
		return -EINVAL;
	*member = "inferences";
	if (!read_number(object, *member, 1, &options->inferences))
		return -EINVAL;
	*member = "time";
	if (!read_number(object, *member, 1, &options->time))
		return -EINVAL;
	options->pid = (pid_t)pid;
	options->core = (int64_t)core;
	return 0;
}

cJSON *message_saved(const struct xpt_saved *saved)
{
	cJSON *object = cJSON_CreateObject();
	bool good = add_string(object, "path", saved->path) &&
		    add_figures(object, saved, saved_figures, COUNT(saved_figures));

	for (size_t i = 0; i < COUNT(saved_times); i++)
		good &= add_decimal(object, saved_times[i].name, *figure_in((void *)saved, &saved_times[i]));
	return finish(object, good);
}

int message_read_saved(const cJSON *object, struct xpt_saved *saved)
{
	const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "path"));
	struct xpt_saved read = { .size = saved->size };

	if (!path || strlen(path) >= sizeof(read.path))
		return -EINVAL;
	memcpy(read.path, path, strlen(path) + 1);
	for (size_t i = 0; i < COUNT(saved_times); i++) {
		if (!read_decimal(object, saved_times[i].name, 10, figure_in(&read, &saved_times[i])))
			return -EINVAL;
	}
	if (read_figures(object, &read, saved_figures, COUNT(saved_figures)))
		return -EINVAL;
	*saved = read;
	return 0;
}

cJSON *message_status(const struct xpt_continuous_status *status)
{
	cJSON *object = cJSON_CreateObject();

	return finish(object, add_number(object, "pid", status->pid) &&
				      add_number(object, "processes", status->processes) &&
				      add_figures(object, status, status_figures, COUNT(status_figures)));
}

int message_read_status(const cJSON *object, struct xpt_continuous_status *status)
{
	struct xpt_continuous_status read = { .size = status->size };
	uint64_t pid = 0, processes = 0;

	if (!read_number(object, "pid", 0, &pid) || pid > INT32_MAX ||
	    !read_number(object, "processes", 0, &processes) || processes > UINT32_MAX ||
	    read_figures(object, &read, status_figures, COUNT(status_figures)))
		return -EINVAL;
	read.pid = (pid_t)pid;
	read.processes = (unsigned int)processes;
	*status = read;
	return 0;
}
