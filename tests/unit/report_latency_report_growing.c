/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/latency/report_document.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "report_csv.h"
#include "report_profile.h"

TestSuite(report_latency_report_growing, .init = make_folder, .fini = remove_folder);

static struct report_growing open_growing(enum xpt_report_format format, __u64 rotate_bytes, unsigned int keep)
{
	struct report_growing growing = { .rotate_bytes = rotate_bytes, .keep = keep };

	cr_assert_eq(report_growing_open(&growing, in_folder("r"), -1, format), 0);
	/* in_folder() forgets. */
	growing.path = strdup(in_folder("r"));
	return growing;
}

static int write_report(struct report_growing *growing, struct made_report *made)
{
	int error = report_growing_write(growing, &made->report);

	free_report(made);
	return error;
}

static int close_growing(struct report_growing *growing)
{
	int error = report_growing_close(growing);

	free((char *)growing->path);
	return error;
}

/* The limit of this process only, and one that can be lifted again. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

Test(report_latency_report_growing, a_summary_has_its_heading_once)
{
	struct report_growing growing = open_growing(XPT_FORMAT_SUMMARY, 0, 0);
	struct content content = read_content(in_folder("r"));
	struct csv csv = csv_read(content.bytes, content.length);

	cr_assert_eq(csv.count, 1, "the heading, before there is a report");
	csv_free(&csv);
	free(content.bytes);
	for (unsigned int i = 1; i <= 3; i++)
		cr_assert_eq(write_report(&growing, make_report(i, 1)), 0);
	content = read_content(in_folder("r"));
	csv = csv_read(content.bytes, content.length);
	cr_assert_eq(csv.count, 4);
	cr_assert_str_eq(csv_get(&csv, 0, 3, "name"), "p3");
	cr_assert_eq(report_growing_bytes(&growing), content.length);
	csv_free(&csv);
	free(content.bytes);
	cr_assert_eq(close_growing(&growing), 0);
}

Test(report_latency_report_growing, a_trace_is_a_document_after_every_report)
{
	struct report_growing growing = open_growing(XPT_FORMAT_TRACE, 0, 0);
	cJSON *json;

	for (unsigned int i = 0; i <= 5; i++) {
		if (i)
			cr_assert_eq(write_report(&growing, make_trace(i)), 0);
		json = parse_trace(in_folder("r"));
		cr_assert_eq(trace_events(json), (int)(2 * i));
		cr_assert_not(trace_complete(json));
		cJSON_Delete(json);
	}
	cr_assert_eq(close_growing(&growing), 0);
	json = parse_trace(in_folder("r"));
	cr_assert_eq(trace_events(json), 10);
	cr_assert(trace_complete(json));
	cJSON_Delete(json);
}

Test(report_latency_report_growing, a_trace_without_reports_is_a_document)
{
	struct report_growing growing = open_growing(XPT_FORMAT_TRACE, 0, 0);
	cJSON *json;

	cr_assert_eq(close_growing(&growing), 0);
	json = parse_trace(in_folder("r"));
	cr_assert_eq(trace_events(json), 0);
	cr_assert(trace_complete(json));
	cJSON_Delete(json);
}

/* What reports a file holds: "1 2 3". Every file must be complete by itself. */
static void expect_summary(const char *name, const char *expected)
{
	struct content content = read_content(in_folder(name));
	struct csv csv = csv_read(content.bytes, content.length);
	char names[256] = "";

	for (size_t i = 1; i < csv.count; i++) {
		strcat(names, i > 1 ? " " : "");
		strcat(names, csv_get(&csv, 0, i, "program"));
	}
	cr_assert_str_eq(names, expected, "%s holds %s, not %s", name, names, expected);
	csv_free(&csv);
	free(content.bytes);
}

Test(report_latency_report_growing, rotation_keeps_so_many)
{
	struct report_growing growing = open_growing(XPT_FORMAT_SUMMARY, 6300, 2);
	struct stat status, two;

	/* A heading has about 4.4 kB, a row about 0.9 kB: two rows fit. */
	for (unsigned int i = 1; i <= 9; i++) {
		cr_assert_eq(write_report(&growing, make_report(i, 1)), 0);
		cr_assert_eq(stat(in_folder("r"), &status), 0);
		cr_assert_leq(status.st_size, 6300);
		cr_assert_eq(status.st_mode & 07777, 0600);
	}
	expect_names("r r.1 r.2");
	expect_summary("r", "9");
	expect_summary("r.1", "7 8");
	expect_summary("r.2", "5 6");
	/* Four files with two rows, one with one; those that have been deleted count, too. */
	cr_assert_eq(stat(in_folder("r.1"), &two), 0);
	cr_assert_eq(report_growing_bytes(&growing), (__u64)(4 * two.st_size + status.st_size));
	cr_assert_eq(close_growing(&growing), 0);
}

Test(report_latency_report_growing, rotated_traces_are_complete)
{
	struct report_growing growing = open_growing(XPT_FORMAT_TRACE, 700, 0);
	double reports = 0;
	cJSON *json;
	char name[16];
	struct stat status;
	unsigned int files;

	for (unsigned int i = 1; i <= 20; i++)
		cr_assert_eq(write_report(&growing, make_trace(i)), 0);
	cr_assert_eq(close_growing(&growing), 0);
	for (files = 0;; files++) {
		snprintf(name, sizeof(name), files ? "r.%u" : "r", files);
		if (stat(in_folder(name), &status))
			break;
		cr_assert_leq(status.st_size, 700);
		json = parse_trace(in_folder(name));
		cr_assert(trace_complete(json));
		cr_assert_eq(trace_events(json), (int)(2 * trace_number(json, "reports")));
		reports += trace_number(json, "reports");
		cJSON_Delete(json);
	}
	cr_assert_gt(files, 3);
	cr_assert_eq(reports, 20);
}

Test(report_latency_report_growing, a_report_that_is_too_large_has_a_file_of_its_own)
{
	struct report_growing growing = open_growing(XPT_FORMAT_SAMPLES, 4096, 0);

	cr_assert_eq(write_report(&growing, make_report(1, 1)), 0);
	cr_assert_eq(write_report(&growing, make_report(2, 20000)), 0);
	cr_assert_eq(write_report(&growing, make_report(3, 1)), 0);
	cr_assert_eq(write_report(&growing, make_report(4, 1)), 0);
	expect_names("r r.1 r.2");
	cr_assert_eq(close_growing(&growing), 0);
	for (unsigned int i = 0; i < 3; i++) {
		static const char *const names[] = { "r.2", "r.1", "r" };
		static const char *const first[] = { "program,1,", "program,2,", "program,3," };
		struct content content = read_content(in_folder(names[i]));

		cr_assert_eq(strncmp(content.bytes, first[i], strlen(first[i])), 0, "%s", names[i]);
		cr_assert_eq(content.length > 100000, i == 1);
		free(content.bytes);
	}
}

Test(report_latency_report_growing, files_of_others_move_on_but_stay)
{
	struct report_growing growing = open_growing(XPT_FORMAT_SUMMARY, 3500, 1);

	write_content(in_folder("r.1"), "other one");
	write_content(in_folder("r.2"), "other two");
	for (unsigned int i = 1; i <= 6; i++)
		cr_assert_eq(write_report(&growing, make_report(i, 1)), 0);
	cr_assert_eq(close_growing(&growing), 0);
	expect_summary("r", "6");
	expect_summary("r.1", "5");
	expect_names("r r.1 r.3 r.4");
	expect_content(in_folder("r.3"), "other one");
	expect_content(in_folder("r.4"), "other two");
}

Test(report_latency_report_growing, a_full_disk_leaves_what_was)
{
	struct report_growing growing = open_growing(XPT_FORMAT_SAMPLES, 0, 0);
	struct content before, after;

	cr_assert_eq(write_report(&growing, make_report(1, 3)), 0);
	before = read_content(in_folder("r"));
	/* Some pieces of the report go in before one does not. */
	limit_files(2500000);
	cr_assert_eq(write_report(&growing, make_report(2, 40000)), -EFBIG);
	after = read_content(in_folder("r"));
	cr_assert(after.length == before.length && !strcmp(after.bytes, before.bytes));
	cr_assert_eq(report_growing_bytes(&growing), before.length);
	free(before.bytes);
	free(after.bytes);
	/* A smaller one fits, and a large one when there is room again. */
	cr_assert_eq(write_report(&growing, make_report(3, 3)), 0);
	limit_files(RLIM_INFINITY);
	cr_assert_eq(write_report(&growing, make_report(4, 40000)), 0);
	after = read_content(in_folder("r"));
	cr_assert_null(strstr(after.bytes, "program,2,"));
	cr_assert_not_null(strstr(after.bytes, "program,3,"));
	cr_assert_not_null(strstr(after.bytes, "program,4,"));
	cr_assert_not_null(strstr(after.bytes, "\n40000,"));
	free(after.bytes);
	cr_assert_eq(close_growing(&growing), -EFBIG);
}

Test(report_latency_report_growing, a_full_disk_leaves_a_trace_loadable)
{
	struct report_growing growing = open_growing(XPT_FORMAT_TRACE, 0, 0);
	char *events;
	struct made_report *large = make_long_trace(9, 3 * REPORT_PIECE, &events);
	cJSON *json;

	/* Also when it would have been the first one. */
	for (int i = 0; i <= 4; i += 2) {
		limit_files(2 * REPORT_PIECE);
		cr_assert_eq(report_growing_write(&growing, &large->report), -EFBIG);
		json = parse_trace(in_folder("r"));
		cr_assert_eq(trace_events(json), i);
		cJSON_Delete(json);
		limit_files(RLIM_INFINITY);
		cr_assert_eq(write_report(&growing, make_trace(i)), 0);
	}
	cr_assert_eq(close_growing(&growing), -EFBIG);
	json = parse_trace(in_folder("r"));
	cr_assert_eq(trace_events(json), 6);
	cr_assert_not(trace_complete(json), "three reports are missing");
	cr_assert_eq(trace_number(json, "reports_left_out"), 3);
	cJSON_Delete(json);
	free(events);
	free_report(large);
}

Test(report_latency_report_growing, a_rotation_that_fails_changes_no_file)
{
	struct report_growing growing = open_growing(XPT_FORMAT_SAMPLES, 4096, 1);
	struct content before, after;

	for (unsigned int i = 1; i <= 12; i++)
		cr_assert_eq(write_report(&growing, make_report(i, 1)), 0);
	expect_names("r r.1");
	before = read_content(in_folder("r"));
	limit_files(100000);
	cr_assert_eq(write_report(&growing, make_report(99, 5000)), -EFBIG);
	limit_files(RLIM_INFINITY);
	expect_names("r r.1");
	after = read_content(in_folder("r"));
	cr_assert(after.length == before.length && !strcmp(after.bytes, before.bytes));
	free(before.bytes);
	free(after.bytes);
	cr_assert_eq(write_report(&growing, make_report(100, 5000)), 0);
	expect_names("r r.1");
	cr_assert_eq(close_growing(&growing), 0);
}

Test(report_latency_report_growing, rotation_when_the_file_was_taken_away)
{
	struct report_growing growing = open_growing(XPT_FORMAT_SUMMARY, 3500, 2);

	cr_assert_eq(write_report(&growing, make_report(1, 1)), 0);
	unlink(in_folder("r"));
	cr_assert_eq(write_report(&growing, make_report(2, 1)), 0);
	expect_names("r");
	expect_summary("r", "2");
	cr_assert_eq(close_growing(&growing), 0);
}

Test(report_latency_report_growing, a_pipe_gets_one_document)
{
	struct report_growing growing = { 0 };
	char bytes[4096];
	ssize_t length;
	int pipes[2];
	cJSON *json;

	cr_assert_eq(pipe(pipes), 0);
	cr_assert_eq(report_growing_open(&growing, NULL, pipes[1], XPT_FORMAT_TRACE), 0);
	cr_assert_not(report_growing_is_file(&growing));
	cr_assert_eq(write_report(&growing, make_trace(1)), 0);
	cr_assert_eq(write_report(&growing, make_trace(2)), 0);
	cr_assert_eq(report_growing_close(&growing), 0);
	length = read(pipes[0], bytes, sizeof(bytes) - 1);
	cr_assert_gt(length, 0);
	bytes[length] = '\0';
	json = cJSON_ParseWithOpts(bytes, NULL, 1);
	cr_assert_not_null(json, "%s", bytes);
	cr_assert_eq(trace_events(json), 4);
	cr_assert(trace_complete(json));
	cJSON_Delete(json);
	close(pipes[0]);
}

Test(report_latency_report_growing, a_device_cannot_be_rotated)
{
	struct report_growing growing = { .rotate_bytes = 4096 };

	cr_assert_eq(report_growing_open(&growing, "/dev/full", -1, XPT_FORMAT_SUMMARY), -EINVAL);
	growing.rotate_bytes = 0;
	cr_assert_eq(report_growing_open(&growing, "/dev/full", -1, XPT_FORMAT_SUMMARY), 0);
	cr_assert_eq(write_report(&growing, make_report(1, 1)), -ENOSPC);
	cr_assert_eq(write_report(&growing, make_report(1, 1)), -ENOSPC);
	cr_assert_eq(report_growing_close(&growing), -ENOSPC);
	cr_assert_eq(report_growing_open(&growing, NULL, -1, XPT_FORMAT_SUMMARY), -EBADF);
}
