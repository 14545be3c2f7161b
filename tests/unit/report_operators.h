/* SPDX-License-Identifier: BSD-2-Clause */
/* The made-up runtime of model_records.h with operators, and files of its events that are read again. */
#ifndef XPT_TESTS_REPORT_OPERATORS_H
#define XPT_TESTS_REPORT_OPERATORS_H

#include <sys/stat.h>
#include <unistd.h>

#include "model_records.h"
#include "report/trace/event_file.h"

#define TOY_OPERATOR 40 /* object 0, class 1, program 2, inference 3 */
#define TOY_CLASS 0x7000
#define TOY_INNER_CLASS 0x7100

static inline struct fixture *fixture_operators(void)
{
	struct fixture *f = fixture_toy();

	feed_spec(f, TOY_OPERATOR, 0, "toy_compute", "operator", XPT_SUCCESS_ALWAYS,
		  F("object", "u64") "," F("class", "u64") "," F("program", "u64") "," F("inference", "u64"));
	cr_assert_eq(feed_text(f, XPT_RECORD_CLASS, 1, 0, TOY_CLASS, "toy::contrib::FusedGemm<float>"), 0);
	cr_assert_eq(feed_text(f, XPT_RECORD_CLASS, 1, 0, TOY_INNER_CLASS, "toy::If"), 0);
	return f;
}

/* Of process 1. inference 0: of none that is known. */
static inline void toy_operator(struct fixture *f, __u32 tid, __u64 object, __u64 class, __u64 inference, __u64 start,
				__u64 end)
{
	struct call_record record = call_make(TOY_OPERATOR, 1, tid, start, end, 4, object, class, U(0x10), inference);

	if (!inference)
		record.call.valid = 3;
	cr_assert_eq(feed_call(f, record), 0);
}

/* What a NODE record says of an object of process 1. */
static inline void toy_node(struct fixture *f, __u64 object, const char *members)
{
	char text[512];

	snprintf(text, sizeof(text), "{\"class\":%u,%s}", TOY_CLASS, members);
	cr_assert_eq(feed_text(f, XPT_RECORD_NODE, 1, 0, object, text), 0);
}

/* ---- files ---- */

static inline char *file_path(void)
{
	char *path = strdup("/tmp/report_events.XXXXXX");

	close(mkstemp(path));
	return path;
}

static inline char *file_text(const char *path, size_t *length)
{
	struct stat status;
	FILE *file = fopen(path, "r");
	char *text;

	cr_assert_not_null(file);
	cr_assert_eq(fstat(fileno(file), &status), 0);
	text = malloc((size_t)status.st_size + 1);
	*length = fread(text, 1, (size_t)status.st_size, file);
	text[*length] = '\0';
	fclose(file);
	return text;
}

static inline struct event_file *file_of(struct fixture *f, const struct event_format *format, const char *path,
					 __u64 begin)
{
	const struct recording_info info = { .monotonic_time = begin };
	struct event_file *file;

	cr_assert_eq(event_file_create(NULL, format, path, -1, &info, &file), 0);
	cr_assert_eq(model_add_sink(f->model, event_file_sink(file)), 0);
	return file;
}

/* Frees the fixture and gives back what has been written. */
static inline char *file_finish(struct fixture *f, struct event_file *file, const char *path, size_t *length)
{
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(event_file_close(file, f->model), 0);
	fixture_free(f);
	return file_text(path, length);
}

#endif
