/* SPDX-License-Identifier: BSD-2-Clause */
/* Chrome traces that are written to a file and read again by another parser. */
#ifndef XPT_TESTS_REPORT_TRACE_H
#define XPT_TESTS_REPORT_TRACE_H

#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/chrome/chrome.h"

static const struct recording_info info = {
	.monotonic_time = 9007199254740993, /* 2^53 + 1: not a double */
	.realtime = 1790000000123456789,
	.host = "host\"\n",
	.kernel = "6.1.0",
	.machine = "x86_64",
	.version = "0.1",
	.command = "xputrace record",
	.boot_id = "b",
	.cpus = 2,
};

static inline char *temporary(void)
{
	char *path = strdup("/tmp/report_chrome.XXXXXX");

	close(mkstemp(path));
	return path;
}

static inline char *read_file(const char *path, size_t *length)
{
	struct stat status;
	FILE *file = fopen(path, "r");
	char *text;

	cr_assert_not_null(file);
	cr_assert_eq(fstat(fileno(file), &status), 0);
	text = malloc(status.st_size + 1);
	*length = fread(text, 1, status.st_size, file);
	text[*length] = 0;
	fclose(file);
	return text;
}

static inline cJSON *parse_text(const char *text, size_t length)
{
	const char *end;
	cJSON *json = cJSON_ParseWithLengthOpts(text, length + 1, &end, true);

	cr_assert_not_null(json, "does not parse: ...%s", text + (length > 200 ? length - 200 : 0));
	cr_assert(cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(json, "traceEvents")));
	cr_assert_eq(text[length - 1], '}', "bytes after the document");
	return json;
}

static inline cJSON *parse_file(const char *path)
{
	size_t length;
	char *text = read_file(path, &length);
	cJSON *json = parse_text(text, length);

	free(text);
	return json;
}

static inline const cJSON *at(const cJSON *json, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(json, name);
}

static inline const char *string_at(const cJSON *json, const char *name)
{
	const char *value = cJSON_GetStringValue(at(json, name));

	cr_assert_not_null(value, "no string %s", name);
	return value;
}

static inline double number_at(const cJSON *json, const char *name)
{
	cr_assert(cJSON_IsNumber(at(json, name)), "no number %s", name);
	return at(json, name)->valuedouble;
}

static inline int count_events(const cJSON *json)
{
	return cJSON_GetArraySize(at(json, "traceEvents"));
}

static inline void write_event(struct event_file *writer, const struct event *event)
{
	struct event_sink sink = event_file_sink(writer);

	cr_assert_eq(sink.write(sink.context, event), 0);
}

static inline struct event_file *create(const char *path)
{
	struct event_file *writer;

	cr_assert_eq(event_file_create(NULL, &chrome_format, path, -1, &info, &writer), 0);
	return writer;
}

static inline struct model *empty_model(void)
{
	struct model *model;

	cr_assert_eq(model_create(NULL, &model), 0);
	return model;
}

/* Writes the events and gives back the document. */
static inline cJSON *document(const struct event *events, size_t count)
{
	char *path = temporary();
	struct event_file *writer = create(path);
	struct model *model = empty_model();
	cJSON *json;
	size_t i;

	for (i = 0; i < count; i++)
		write_event(writer, &events[i]);
	cr_assert_eq(event_file_close(writer, model), 0);
	model_free(model);
	json = parse_file(path);
	unlink(path);
	free(path);
	return json;
}

static inline const cJSON *event_at(const cJSON *json, int index)
{
	const cJSON *event = cJSON_GetArrayItem(at(json, "traceEvents"), index);

	cr_assert_not_null(event, "no event %d", index);
	return event;
}

#endif
