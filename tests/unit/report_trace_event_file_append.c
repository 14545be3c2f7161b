/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace/event_file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "a,b\n"

static char path[64];

static void make(void)
{
	snprintf(path, sizeof(path), "/tmp/report_appended.XXXXXX");
	close(mkstemp(path));
}

static void clean(void)
{
	unlink(path);
}

TestSuite(report_trace_event_file_append, .init = make, .fini = clean);

static void fill(const char *text)
{
	FILE *file = fopen(path, "w");

	fputs(text, file);
	cr_assert_eq(fclose(file), 0);
}

static void expect(const char *expected)
{
	char text[256] = "";
	FILE *file = fopen(path, "r");

	cr_assert_not_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	cr_assert_str_eq(text, expected);
}

/* What the file is after "x\n" went to the descriptor. */
static void append(const char *expected)
{
	int descriptor = appended_file_open(path, HEAD);

	cr_assert_geq(descriptor, 0, "%d", descriptor);
	cr_assert_eq(write(descriptor, "x\n", 2), 2);
	close(descriptor);
	expect(expected);
}

Test(report_trace_event_file_append, goes_behind)
{
	append("x\n");
	fill(HEAD "1,2\n");
	append(HEAD "1,2\nx\n");
	append(HEAD "1,2\nx\nx\n");
	unlink(path);
	append("x\n");
}

Test(report_trace_event_file_append, cut_line_gets_its_end)
{
	fill(HEAD "1,2\n3,");
	append(HEAD "1,2\n3,\nx\n");
}

Test(report_trace_event_file_append, something_else_is_left_alone)
{
	static const char *const others[] = { "{\"traceEvents\":[]}", "a,b,c\n", "a,", "\n" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		fill(others[i]);
		cr_expect_eq(appended_file_open(path, HEAD), -EEXIST, "%s", others[i]);
		expect(others[i]);
	}
}

Test(report_trace_event_file_append, no_regular_file)
{
	int descriptor = appended_file_open("/dev/null", HEAD), reader;

	cr_assert_geq(descriptor, 0);
	close(descriptor);
	unlink(path);
	cr_assert_eq(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	descriptor = appended_file_open(path, HEAD);
	cr_assert_geq(descriptor, 0);
	cr_assert_eq(write(descriptor, "x", 1), 1);
	close(descriptor);
	close(reader);
	cr_assert_eq(appended_file_open("/nonexistent/file", HEAD), -ENOENT);
	cr_assert_eq(appended_file_open("/tmp", HEAD), -EISDIR);
}
