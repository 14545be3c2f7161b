/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace/event_file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "report_operators.h"

struct count {
	unsigned int events;
	__u64 origin;
	bool ready;
};

static int begin(void *context, const struct recording_info *info, struct text *text)
{
	struct count *count = context;

	(void)text;
	count->origin = info->monotonic_time;
	count->ready = true;
	return 0;
}

static void add_number(void *context, struct text *text, const struct event *event)
{
	struct count *count = context;

	cr_assert(count->ready);
	text_string(text, count->events++ ? ",\n" : "\n");
	text_signed(text, event->counter.value + (__s64)count->origin);
}

static void add_line(void *state, struct text *text, const struct event *event)
{
	((struct count *)state)->events++;
	text_signed(text, event->counter.value);
	text_literal(text, ",two\n");
}

static void report(const void *state, const struct log *log)
{
	log_warn(log, "there were %u", ((const struct count *)state)->events);
}

static unsigned int cleared;

static void clear(void *state)
{
	(void)state;
	cleared++;
}

static const struct event_format array = {
	.head = "[",
	.tail = "\n]\n",
	.state_size = sizeof(struct count),
	.begin = begin,
	.add = add_number,
};
static const struct event_format lines = {
	.head = "one,two\n",
	.tail = "",
	.append = true,
	.state_size = sizeof(struct count),
	.add = add_line,
	.report = report,
	.clear = clear,
};

static char said[256];

static void hear(void *context, enum xpt_log_level level, const char *message)
{
	(void)context;
	(void)level;
	snprintf(said, sizeof(said), "%s", message);
}

static const struct recording_info origin = { .monotonic_time = 1000 }, none;
static const struct log ear = { .write = hear, .level = XPT_LOG_WARN };

static struct event_file *open_events(const struct event_format *format, const char *path)
{
	struct event_file *file;

	cr_assert_eq(event_file_create(&ear, format, path, -1, &origin, &file), 0);
	return file;
}

static int add(struct event_file *file, __s64 value)
{
	const struct event event = { .kind = EVENT_COUNTER, .counter = { .value = value } };
	const struct event_sink sink = event_file_sink(file);

	return sink.write(sink.context, &event);
}

static void expect(const char *path, const char *expected)
{
	size_t length;
	char *text = file_text(path, &length);

	cr_assert_str_eq(text, expected);
	free(text);
}

Test(report_trace_event_file, every_flush_leaves_a_document)
{
	char *path = file_path();
	struct event_file *file = open_events(&array, path);

	expect(path, "[\n]\n");
	cr_assert_eq(add(file, 1), 0);
	cr_assert_eq(event_file_flush(file), 0);
	expect(path, "[\n1001\n]\n");
	cr_assert_eq(add(file, 2), 0);
	expect(path, "[\n1001\n]\n");
	cr_assert_eq(event_file_bytes(file), 9);
	cr_assert_eq(event_file_close(file, NULL), 0);
	expect(path, "[\n1001,\n1002\n]\n");
	/* A trace is made anew. */
	cr_assert_eq(event_file_close(open_events(&array, path), NULL), 0);
	expect(path, "[\n]\n");
	unlink(path);
	free(path);
}

Test(report_trace_event_file, lines_go_behind)
{
	char *path = file_path();
	struct event_file *file;

	for (int i = 0; i < 3; i++) {
		file = open_events(&lines, path);
		cr_assert_eq(add(file, i), 0);
		cr_assert_eq(event_file_bytes(file), i ? 0 : strlen(lines.head));
		cr_assert_eq(event_file_close(file, NULL), 0);
	}
	expect(path, "one,two\n0,two\n1,two\n2,two\n");
	cr_assert_str_eq(said, "there were 1");
	cr_assert_eq(cleared, 3);
	/* Nothing goes behind something else. */
	cr_assert_eq(event_file_close(open_events(&array, path), NULL), 0);
	cr_assert_eq(event_file_create(&ear, &lines, path, -1, &none, &file), -EEXIST);
	cr_assert_not_null(strstr(said, "not of this format"), "%s", said);
	expect(path, "[\n]\n");
	unlink(path);
	free(path);
}

/* What is there when a disk is full is whole, and what was there before is not touched. */
static void fill_disk(const struct event_format *format, const char *path, rlim_t limit)
{
	struct rlimit before, size;
	struct event_file *file;
	int error = 0, i;

	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	size = (struct rlimit){ limit, before.rlim_max };
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &size), 0);
	file = open_events(format, path);
	for (i = 0; i < 10000 && !error; i++) {
		error = add(file, i);
		if (!error && i % 3 == 0)
			error = event_file_flush(file);
	}
	cr_assert_eq(error, -EFBIG);
	cr_assert_not_null(strstr(said, "no more events"), "%s", said);
	cr_assert_eq(add(file, 1), -EFBIG);
	cr_assert_eq(event_file_flush(file), -EFBIG);
	cr_assert_eq(event_file_close(file, NULL), -EFBIG);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
}

Test(report_trace_event_file, full_disk)
{
	char *path = file_path(), *text, *line;
	size_t length;
	int count;
	cJSON *json;

	signal(SIGXFSZ, SIG_IGN);
	for (rlim_t limit = 100; limit < 130; limit++) {
		fill_disk(&array, path, limit);
		text = file_text(path, &length);
		cr_assert_leq(length, limit);
		json = cJSON_ParseWithOpts(text, NULL, true);
		count = cJSON_GetArraySize(json);
		cr_assert_geq(count, 10, "%s", text);
		for (int i = 0; i < count; i++)
			cr_assert_eq((int)cJSON_GetArrayItem(json, i)->valuedouble, 1000 + i);
		cJSON_Delete(json);
		free(text);
		unlink(path);
		fill_disk(&lines, path, limit);
		text = file_text(path, &length);
		cr_assert_leq(length, limit);
		cr_assert_gt(length, limit - 30);
		cr_assert_eq(strncmp(text, lines.head, strlen(lines.head)), 0);
		count = 0;
		for (line = text + strlen(lines.head); *line; line = strchr(line, '\n') + 1) {
			cr_assert_eq(atoi(line), count++);
			cr_assert_eq(strncmp(strchr(line, ','), ",two\n", 5), 0, "%s", line);
		}
		free(text);
	}
	unlink(path);
	free(path);
}

Test(report_trace_event_file, outputs_that_take_nothing)
{
	struct event_file *file;

	cr_assert_eq(event_file_create(NULL, &array, "/dev/full", -1, &none, &file), -ENOSPC);
	cr_assert_eq(event_file_create(NULL, &lines, "/dev/full", -1, &none, &file), -ENOSPC);
	cr_assert_eq(event_file_create(NULL, &array, "/nonexistent/file", -1, &none, &file), -ENOENT);
	cr_assert_eq(event_file_create(NULL, &lines, "/nonexistent/file", -1, &none, &file), -ENOENT);
	cr_assert_eq(event_file_create(NULL, &array, NULL, -1, &none, &file), -EBADF);
}

Test(report_trace_event_file, a_pipe_gets_its_end_last)
{
	int ends[2];
	char text[64] = "";
	struct event_file *file;

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(event_file_create(NULL, &array, NULL, ends[1], &none, &file), 0);
	cr_assert_eq(add(file, 7), 0);
	cr_assert_eq(event_file_flush(file), 0);
	cr_assert_eq(read(ends[0], text, sizeof(text)), 3);
	cr_assert_str_eq(text, "[\n7");
	cr_assert_eq(event_file_close(file, NULL), 0);
	cr_assert_eq(read(ends[0], text, sizeof(text)), 3);
	cr_assert_eq(read(ends[0], text, sizeof(text)), 0);
	cr_assert_eq(strncmp(text, "\n]\n", 3), 0);
	close(ends[0]);
}
