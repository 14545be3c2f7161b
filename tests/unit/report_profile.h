/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports made by hand, a folder to write them to, and what is in its files. */
#ifndef XPT_TESTS_REPORT_PROFILE_H
#define XPT_TESTS_REPORT_PROFILE_H

#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xputrace/profile_report.h>

/* ---- reports ---- */

struct made_report {
	struct xpt_profile_report report;
	struct xpt_program_report program;
	struct xpt_sample *samples;
	char name[32];
	char trace[512];
};

/* The report of one program "pNUMBER" with count samples. */
static inline struct made_report *make_report(unsigned int number, size_t count)
{
	struct made_report *made = calloc(1, sizeof(*made));
	struct xpt_latencies *latencies = xpt_latencies_create();

	snprintf(made->name, sizeof(made->name), "p%u", number);
	made->samples = calloc(count + 1, sizeof(*made->samples));
	for (size_t i = 0; i < count; i++) {
		made->samples[i] = (struct xpt_sample){ .size = sizeof(struct xpt_sample),
							.number = i,
							.time = { 1000 + i, 0, 0, 0, 0, 3000 + 2 * i } };
		xpt_latencies_add(latencies, &made->samples[i]);
	}
	made->program = (struct xpt_program_report){
		.id = number,
		.name = made->name,
		.process = "process",
		.runtime = "runtime",
		.samples = made->samples,
		.sample_count = count,
		.taken = count,
		.inferences = count + 5,
		.lost = 2,
		.latencies = latencies,
	};
	made->report = (struct xpt_profile_report){
		.size = sizeof(made->report),
		.start = 1000000 * number,
		.end = 1000000 * (number + 1),
		.start_realtime = 1700000000000000000ull,
		.end_realtime = 1700000000001000000ull,
		.programs = &made->program,
		.program_count = 1,
		.sequence = number,
	};
	return made;
}

/* The same with a trace of two events. */
static inline struct made_report *make_trace(unsigned int number)
{
	struct made_report *made = make_report(number, 1);
	struct xpt_profile_report *report = &made->report;
	char *events;

	report->type = XPT_PROFILE_TRACE;
	snprintf(made->trace, sizeof(made->trace),
		 "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"host\":\"h%u\"},\"traceEvents\":[\n"
		 "{\"name\":\"p%u\",\"ph\":\"X\",\"ts\":1,\"dur\":2,\"pid\":3,\"tid\":4},\n"
		 "{\"name\":\"q%u\",\"ph\":\"X\",\"ts\":5,\"dur\":2,\"pid\":3,\"tid\":4}"
		 "\n],\"metadata\":{\"complete\":true}}",
		 number, number, number);
	events = strchr(made->trace, '[') + 1;
	report->trace = made->trace;
	report->trace_length = strlen(made->trace);
	report->trace_events = events;
	report->trace_events_length = strstr(events, "\n]") - events;
	return made;
}

/* The same with two events that lie length bytes apart, at events, which the caller frees. */
static inline struct made_report *make_long_trace(unsigned int number, size_t length, char **events)
{
	struct made_report *made = make_trace(number);
	static const char first[] = "{\"a\":1},", last[] = "{\"b\":2}";

	*events = calloc(1, length + 1);
	memset(*events, ' ', length);
	*stpcpy(*events, first) = ' ';
	strcpy(*events + length - strlen(last), last);
	made->report.trace_events = *events;
	made->report.trace_events_length = length;
	return made;
}

static inline void free_report(struct made_report *made)
{
	xpt_latencies_free((struct xpt_latencies *)made->program.latencies);
	free(made->samples);
	free(made);
}

/* ---- files ---- */

static char folder[64];

static inline void make_folder(void)
{
	strcpy(folder, "/tmp/reports.XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
}

static inline const char *in_folder(const char *name)
{
	static char paths[8][512];
	static unsigned int next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static inline void remove_folder(void)
{
	DIR *open = opendir(folder);
	struct dirent *entry;

	while (open && (entry = readdir(open)))
		unlinkat(dirfd(open), entry->d_name, 0);
	if (open)
		closedir(open);
	rmdir(folder);
}

static inline int by_name(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

/* All names in the folder, with a blank between, in order: nothing else may be there. */
static inline void expect_names(const char *expected)
{
	struct dirent **entries;
	char names[4096] = "";
	int count = scandir(folder, &entries, NULL, by_name);

	for (int i = 0; i < count; i++) {
		if (entries[i]->d_name[0] != '.') {
			strcat(names, names[0] ? " " : "");
			strcat(names, entries[i]->d_name);
		}
		free(entries[i]);
	}
	free(entries);
	cr_assert_str_eq(names, expected);
}

struct content {
	char *bytes; /* terminated */
	size_t length;
};

static inline struct content read_content(const char *path)
{
	struct content content = { 0 };
	int file = open(path, O_RDONLY);
	struct stat status;

	cr_assert_geq(file, 0, "%s cannot be read", path);
	fstat(file, &status);
	content.bytes = calloc(1, status.st_size + 1);
	while (content.length < (size_t)status.st_size) {
		ssize_t got = read(file, content.bytes + content.length, status.st_size - content.length);

		cr_assert_gt(got, 0);
		content.length += got;
	}
	close(file);
	return content;
}

static inline void expect_content(const char *path, const char *expected)
{
	struct content content = read_content(path);

	cr_assert_str_eq(content.bytes, expected);
	free(content.bytes);
}

static inline void write_content(const char *path, const char *bytes)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	cr_assert_geq(file, 0);
	cr_assert_eq(write(file, bytes, strlen(bytes)), (ssize_t)strlen(bytes));
	close(file);
}

/* The whole file must be one JSON document, with nothing behind it. */
static inline cJSON *parse_trace(const char *path)
{
	struct content content = read_content(path);
	const char *end = NULL;
	cJSON *json = cJSON_ParseWithLengthOpts(content.bytes, content.length, &end, 0);

	cr_assert_not_null(json, "%s is not JSON: %.200s", path, content.bytes);
	cr_assert_eq(end, content.bytes + content.length, "%s goes on behind its end: %.200s", path, content.bytes);
	free(content.bytes);
	return json;
}

static inline int trace_events(const cJSON *json)
{
	const cJSON *events = cJSON_GetObjectItem(json, "traceEvents");

	cr_assert(cJSON_IsArray(events));
	return cJSON_GetArraySize(events);
}

static inline double trace_number(const cJSON *json, const char *name)
{
	const cJSON *item = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "metadata"), name);

	cr_assert(cJSON_IsNumber(item), "no %s in the metadata", name);
	return item->valuedouble;
}

static inline bool trace_complete(const cJSON *json)
{
	const cJSON *item = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "metadata"), "complete");

	cr_assert(cJSON_IsBool(item));
	return cJSON_IsTrue(item);
}

#endif
