/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>

#include "base/core/clock.h"

#include "report_csv.h"
#include "report_profile.h"

TestSuite(report_latency_report_files, .init = make_folder, .fini = remove_folder);

static unsigned int errors, warnings;
static char last_message[1024];

static void keep_message(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	errors += level == XPT_LOG_ERROR;
	warnings += level == XPT_LOG_WARN;
	snprintf(last_message, sizeof(last_message), "%s", text);
}

static int try_create(struct xpt_report_files_options options, struct xpt_report_files **files)
{
	options.size = options.size ?: sizeof(options);
	options.log = keep_message;
	return xpt_report_files_create(&options, files);
}

static struct xpt_report_files *create(struct xpt_report_files_options options)
{
	struct xpt_report_files *files = NULL;

	cr_assert_eq(try_create(options, &files), 0, "%s", last_message);
	cr_assert_not_null(files);
	return files;
}

static int write_report(struct xpt_report_files *files, struct made_report *made)
{
	int error = xpt_report_files_write(files, &made->report);

	free_report(made);
	return error;
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* ---- options ---- */

static void expect_refusal(struct xpt_report_files_options options, const char *advice)
{
	struct xpt_report_files *files = NULL;

	errors = 0;
	cr_assert_eq(try_create(options, &files), -EINVAL);
	cr_assert_null(files);
	cr_assert_eq(errors, 1);
	cr_assert_not_null(strstr(last_message, advice), "'%s' does not say '%s'", last_message, advice);
	expect_names("");
}

Test(report_latency_report_files, options_that_make_no_sense_together)
{
	const char *path = in_folder("r.csv");

	expect_refusal((struct xpt_report_files_options){ .path = NULL }, "a path is needed");
	expect_refusal((struct xpt_report_files_options){ .path = "" }, "a path is needed");
	expect_refusal((struct xpt_report_files_options){ .path = path, .format = XPT_FORMAT_PERFETTO + 1 }, "format");
	expect_refusal((struct xpt_report_files_options){ .path = path, .append = 1, .single = 1 },
		       "append and single");
	expect_refusal((struct xpt_report_files_options){ .path = path, .rotate_bytes = 100000 }, "needs append");
	expect_refusal((struct xpt_report_files_options){ .path = path, .append = 1, .rotate_bytes = 4095 }, "4096");
	expect_refusal((struct xpt_report_files_options){ .path = "-", .append = 1, .rotate_bytes = 4096 },
		       "standard output");
	expect_refusal((struct xpt_report_files_options){ .path = path, .append = 1, .keep = 3 }, "needs rotation");
	expect_refusal((struct xpt_report_files_options){ .path = path, .single = 1, .keep = 3 }, "only one file");
	expect_refusal((struct xpt_report_files_options){ .path = "-", .keep = 3 }, "only one file");
	expect_refusal((struct xpt_report_files_options){ .path = path, .keep = 1000001 }, "1000000");
}

Test(report_latency_report_files, options_of_other_versions)
{
	struct {
		struct xpt_report_files_options options;
		char tail[16];
	} newer = { .options = { .path = in_folder("r.csv") } };
	struct xpt_report_files *files = NULL;

	newer.options.size = sizeof(newer);
	newer.tail[3] = 1;
	cr_assert_eq(xpt_report_files_create(&newer.options, &files), -E2BIG);
	newer.tail[3] = 0;
	cr_assert_eq(xpt_report_files_create(&newer.options, &files), 0);
	cr_assert_eq(xpt_report_files_close(files), 0);
	/* Of an older library that knew no rotation: what is behind is not looked at. */
	newer.options.size = offsetof(struct xpt_report_files_options, rotate_bytes);
	newer.options.rotate_bytes = 7;
	cr_assert_eq(xpt_report_files_create(&newer.options, &files), 0);
	cr_assert_eq(xpt_report_files_close(files), 0);
	newer.options.size = 0;
	cr_assert_eq(xpt_report_files_create(&newer.options, &files), -EINVAL);
	cr_assert_eq(xpt_report_files_create(NULL, &files), -EINVAL);
	cr_assert_eq(xpt_report_files_close(NULL), 0);
}

Test(report_latency_report_files, places_that_cannot_be_written)
{
	struct xpt_report_files *files = NULL;

	for (int append = 0; append < 2; append++) {
		for (int single = 0; single < 2 - append; single++) {
			errors = 0;
			cr_assert_eq(try_create((struct xpt_report_files_options){ .path = in_folder("missing/r.csv"),
										   .append = append,
										   .single = single },
						&files),
				     -ENOENT);
			cr_assert_eq(try_create((struct xpt_report_files_options){ .path = folder,
										   .append = append,
										   .single = single },
						&files),
				     -EISDIR);
			cr_assert_eq(errors, 2);
		}
	}
	cr_assert_null(files);
}

/* ---- one file a report ---- */

static void expect_program(const char *name, const char *program)
{
	struct content content = read_content(in_folder(name));
	struct csv csv = csv_read(content.bytes, content.length);

	cr_assert_eq(csv.count, 6, "%s has one program with one sample", name);
	cr_assert_str_eq(csv.record[0].field[3], program);
	csv_free(&csv);
	free(content.bytes);
}

Test(report_latency_report_files, each_report_has_a_number)
{
	struct xpt_report_files *files = create((struct xpt_report_files_options){ .path = in_folder("r.csv") });
	struct made_report *empty = make_report(9, 0);
	struct stat status;
	uint64_t bytes = 0;

	cr_assert_str_eq(xpt_report_files_path(files), "");
	cr_assert_eq(xpt_report_files_bytes(files), 0);
	expect_names("");
	cr_assert_eq(write_report(files, make_report(1, 1)), 0);
	cr_assert_str_eq(xpt_report_files_path(files), in_folder("r-000001.csv"));
	cr_assert_eq(write_report(files, make_report(2, 1)), 0);
	/* Nothing ran: no file, but the report counts. */
	empty->report.program_count = 0;
	cr_assert_eq(write_report(files, empty), 0);
	cr_assert_eq(write_report(files, make_report(4, 1)), 0);
	cr_assert_str_eq(xpt_report_files_path(files), in_folder("r-000004.csv"));
	expect_names("r-000001.csv r-000002.csv r-000004.csv");
	expect_program("r-000001.csv", "p1");
	expect_program("r-000002.csv", "p2");
	expect_program("r-000004.csv", "p4");
	for (int i = 1; i <= 4; i++) {
		char name[32];

		snprintf(name, sizeof(name), "r-00000%d.csv", i);
		if (i == 3)
			continue;
		cr_assert_eq(stat(in_folder(name), &status), 0);
		cr_assert_eq(status.st_mode & 07777, 0600);
		bytes += status.st_size;
	}
	cr_assert_eq(xpt_report_files_bytes(files), bytes);
	cr_assert_eq(xpt_report_files_close(files), 0);
	expect_names("r-000001.csv r-000002.csv r-000004.csv");
}

Test(report_latency_report_files, the_newest_are_kept)
{
	struct xpt_report_files *files = create(
		(struct xpt_report_files_options){ .path = in_folder("r.csv"), .keep = 2 });

	write_content(in_folder("r-000000.csv"), "other");
	write_content(in_folder("r-000009.csv"), "other");
	write_content(in_folder("r.csv"), "other");
	for (unsigned int i = 1; i <= 6; i++)
		cr_assert_eq(write_report(files, make_report(i, 1)), 0);
	cr_assert_eq(xpt_report_files_close(files), 0);
	expect_names("r-000000.csv r-000005.csv r-000006.csv r-000009.csv r.csv");
	expect_content(in_folder("r.csv"), "other");
}

Test(report_latency_report_files, summaries_and_traces_stand_alone)
{
	struct xpt_report_files *files;
	struct content content;
	struct csv csv;
	cJSON *json;

	files = create((struct xpt_report_files_options){ .path = in_folder("r.csv"), .format = XPT_FORMAT_SUMMARY });
	cr_assert_eq(write_report(files, make_report(1, 1)), 0);
	cr_assert_eq(write_report(files, make_report(2, 1)), 0);
	cr_assert_eq(xpt_report_files_close(files), 0);
	content = read_content(in_folder("r-000002.csv"));
	csv = csv_read(content.bytes, content.length);
	cr_assert_eq(csv.count, 2);
	cr_assert_str_eq(csv_get(&csv, 0, 1, "name"), "p2");
	csv_free(&csv);
	free(content.bytes);
	files = create((struct xpt_report_files_options){ .path = in_folder("r.json"), .format = XPT_FORMAT_TRACE });
	cr_assert_eq(write_report(files, make_trace(1)), 0);
	cr_assert_eq(xpt_report_files_close(files), 0);
	json = parse_trace(in_folder("r-000001.json"));
	cr_assert_eq(trace_events(json), 2);
	cJSON_Delete(json);
}

Test(report_latency_report_files, a_single_file_is_replaced_whole)
{
	struct xpt_report_files *files;
	struct content before;
	struct stat status;
	int old;

	write_content(in_folder("real.csv"), "from before");
	cr_assert_eq(symlink("real.csv", in_folder("link.csv")), 0);
	old = open(in_folder("real.csv"), O_RDONLY);
	files = create((struct xpt_report_files_options){ .path = in_folder("link.csv"), .single = 1 });
	expect_content(in_folder("real.csv"), "from before");
	cr_assert_eq(write_report(files, make_report(1, 1)), 0);
	cr_assert_eq(write_report(files, make_report(2, 1)), 0);
	/* A report that fails leaves the one before. */
	limit_files(1000);
	cr_assert_eq(write_report(files, make_report(3, 5000)), -EFBIG);
	limit_files(RLIM_INFINITY);
	cr_assert_eq(xpt_report_files_close(files), -EFBIG);
	expect_names("link.csv real.csv real.csv.old");
	expect_content(in_folder("real.csv.old"), "from before");
	expect_program("real.csv", "p2");
	cr_assert_eq(lstat(in_folder("link.csv"), &status), 0);
	cr_assert(S_ISLNK(status.st_mode));
	/* Whoever had it open still has the old one. */
	before.bytes = calloc(1, 32);
	cr_assert_eq(read(old, before.bytes, 31), 11);
	cr_assert_str_eq(before.bytes, "from before");
	free(before.bytes);
	close(old);
	unlink(in_folder("real.csv"));
	cr_assert_eq(try_create((struct xpt_report_files_options){ .path = in_folder("link.csv"), .single = 1 },
				&files),
		     -ENOENT, "a link to nothing");
}

Test(report_latency_report_files, a_full_disk_leaves_reports_out)
{
	struct xpt_report_files *files = create((struct xpt_report_files_options){ .path = in_folder("r.csv") });

	cr_assert_eq(write_report(files, make_report(1, 1)), 0);
	limit_files(100000);
	errors = warnings = 0;
	for (unsigned int i = 2; i <= 4; i++)
		cr_assert_eq(write_report(files, make_report(i, 5000)), -EFBIG);
	cr_assert_eq(errors, 1, "said once");
	cr_assert_eq(write_report(files, make_report(5, 1)), 0);
	cr_assert_eq(warnings, 1);
	cr_assert_not_null(strstr(last_message, "3 were left out"), "%s", last_message);
	cr_assert_eq(write_report(files, make_report(6, 1)), 0);
	/* Again and again: nothing is said that has been said. */
	for (unsigned int i = 7; i <= 10; i++) {
		cr_assert_eq(write_report(files, make_report(i, 5000)), -EFBIG);
		cr_assert_eq(write_report(files, make_report(i, 1)), 0);
	}
	cr_assert_eq(errors, 1);
	cr_assert_eq(warnings, 1);
	expect_names("r-000001.csv r-000005.csv r-000006.csv r-000008.csv r-000010.csv r-000012.csv r-000014.csv");
	cr_assert_eq(xpt_report_files_close(files), -EFBIG, "the first error");
	cr_assert_not_null(strstr(last_message, "7 reports could not be written"), "%s", last_message);
}

Test(report_latency_report_files, only_traces_can_be_traces)
{
	struct xpt_report_files *files = create(
		(struct xpt_report_files_options){ .path = in_folder("r.json"), .format = XPT_FORMAT_TRACE });

	errors = 0;
	cr_assert_eq(write_report(files, make_report(1, 1)), -EINVAL);
	cr_assert_eq(errors, 1);
	cr_assert_eq(write_report(files, make_trace(2)), 0);
	cr_assert_eq(xpt_report_files_close(files), 0);
	expect_names("r-000001.json");
}

/* ---- reports that follow one another ---- */

Test(report_latency_report_files, appending_and_rotating)
{
	struct xpt_report_files *files = create((struct xpt_report_files_options){
		.path = in_folder("r.csv"), .append = 1, .rotate_bytes = 4096, .keep = 3 });
	struct stat status;

	cr_assert_eq(stat(in_folder("r.csv"), &status), 0);
	cr_assert_eq(status.st_mode & 07777, 0600);
	cr_assert_str_eq(xpt_report_files_path(files), "");
	for (unsigned int i = 1; i <= 60; i++)
		cr_assert_eq(write_report(files, make_report(i, 1)), 0);
	cr_assert_str_eq(xpt_report_files_path(files), in_folder("r.csv"));
	expect_names("r.csv r.csv.1 r.csv.2 r.csv.3");
	cr_assert_gt(xpt_report_files_bytes(files), 60 * 400);
	cr_assert_eq(xpt_report_files_close(files), 0);
}

Test(report_latency_report_files, appending_through_a_link_rotates_the_file)
{
	struct xpt_report_files *files;
	struct stat status;

	write_content(in_folder("real.csv"), "from before");
	cr_assert_eq(symlink("real.csv", in_folder("link.csv")), 0);
	files = create(
		(struct xpt_report_files_options){ .path = in_folder("link.csv"), .append = 1, .rotate_bytes = 4096 });
	for (unsigned int i = 1; i <= 10; i++)
		cr_assert_eq(write_report(files, make_report(i, 1)), 0);
	cr_assert_eq(xpt_report_files_close(files), 0);
	expect_names("link.csv real.csv real.csv.1 real.csv.old");
	cr_assert_eq(lstat(in_folder("link.csv"), &status), 0);
	cr_assert(S_ISLNK(status.st_mode));
}

Test(report_latency_report_files, an_appended_trace_survives_a_full_disk)
{
	struct xpt_report_files *files = create((struct xpt_report_files_options){
		.path = in_folder("r.json"), .append = 1, .format = XPT_FORMAT_TRACE });
	int written = 0;
	cJSON *json;

	errors = warnings = 0;
	limit_files(600);
	for (unsigned int i = 1; i <= 20; i++) {
		written += !write_report(files, make_trace(i));
		json = parse_trace(in_folder("r.json"));
		cr_assert_eq(trace_events(json), 2 * written);
		cJSON_Delete(json);
	}
	cr_assert_gt(written, 0);
	cr_assert_lt(written, 10);
	cr_assert_eq(errors, 1);
	limit_files(RLIM_INFINITY);
	cr_assert_eq(write_report(files, make_trace(21)), 0);
	cr_assert_eq(warnings, 1);
	cr_assert_eq(xpt_report_files_close(files), -EFBIG);
	json = parse_trace(in_folder("r.json"));
	cr_assert_eq(trace_events(json), 2 * written + 2);
	cr_assert_eq(trace_number(json, "reports_left_out"), 20 - written);
	cr_assert_not(trace_complete(json));
	cJSON_Delete(json);
}

/* A named pipe or device takes reports as standard output does, and is never replaced. */
Test(report_latency_report_files, what_is_no_file_is_written_to)
{
	struct xpt_report_files *files = NULL;
	struct stat status;
	char bytes[8192];
	ssize_t length;
	int reader;

	cr_assert_eq(mkfifo(in_folder("pipe"), 0600), 0);
	reader = open(in_folder("pipe"), O_RDWR | O_NONBLOCK);
	for (int single = 0; single < 2; single++) {
		struct csv csv;

		files = create((struct xpt_report_files_options){ .path = in_folder("pipe"), .single = single });
		cr_assert_eq(write_report(files, make_report(1, 1)), 0);
		cr_assert_eq(write_report(files, make_report(2, 1)), 0);
		cr_assert_eq(xpt_report_files_close(files), 0);
		length = read(reader, bytes, sizeof(bytes));
		cr_assert_gt(length, 0);
		csv = csv_read(bytes, length);
		cr_assert_eq(csv.count, 12);
		csv_free(&csv);
	}
	cr_assert_eq(try_create((struct xpt_report_files_options){ .path = in_folder("pipe"), .keep = 2 }, &files),
		     -EINVAL);
	cr_assert_eq(try_create((struct xpt_report_files_options){ .path = in_folder("pipe"),
								   .append = 1,
								   .rotate_bytes = 4096 },
				&files),
		     -EINVAL);
	expect_names("pipe");
	cr_assert_eq(lstat(in_folder("pipe"), &status), 0);
	cr_assert(S_ISFIFO(status.st_mode));
	close(reader);
}

/* What is stopped by somebody does not wait, and says how many reports are missing. */
Test(report_latency_report_files, a_pipe_that_nobody_reads)
{
	struct xpt_report_files *files;
	uint64_t stopped = 0, begin;
	char bytes[65536];
	int reader;

	cr_assert_eq(mkfifo(in_folder("pipe"), 0600), 0);
	reader = open(in_folder("pipe"), O_RDWR | O_NONBLOCK);
	files = create((struct xpt_report_files_options){ .path = in_folder("pipe"), .stopped = &stopped });
	errors = warnings = 0;
	/* One fits, the next one in part; it is not taken back. */
	for (int i = 1; i <= 3; i++)
		cr_assert_eq(write_report(files, make_report(i, i == 1 ? 1 : 5000)), 0);
	cr_assert_eq(errors, 0);
	stopped = begin = clock_monotonic();
	cr_assert_eq(xpt_report_files_close(files), -ETIMEDOUT);
	cr_assert_lt(clock_monotonic() - begin, 2000000000);
	cr_assert_eq(warnings, 1);
	cr_assert_not_null(strstr(last_message, "2 reports could not be written"), "%s", last_message);
	cr_assert_gt(read(reader, bytes, sizeof(bytes)), 4096);
	cr_assert_eq(strncmp(bytes, "program,", 8), 0);
	close(reader);
}

/* ---- standard output ---- */

Test(report_latency_report_files, a_closed_pipe_is_an_error_for_good)
{
	struct xpt_report_files *files;
	int pipes[2];

	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(pipe(pipes), 0);
	cr_assert_eq(dup2(pipes[1], STDOUT_FILENO), STDOUT_FILENO);
	close(pipes[1]);
	files = create((struct xpt_report_files_options){ .path = "-", .single = 1 });
	cr_assert_eq(write_report(files, make_report(1, 1)), 0);
	cr_assert_str_eq(xpt_report_files_path(files), "-");
	close(pipes[0]);
	errors = warnings = 0;
	cr_assert_eq(write_report(files, make_report(2, 1)), -EPIPE);
	cr_assert_eq(write_report(files, make_report(3, 1)), -EPIPE);
	cr_assert_eq(errors, 1);
	cr_assert_not_null(strstr(last_message, "no more reports"), "%s", last_message);
	cr_assert_eq(xpt_report_files_close(files), -EPIPE);
	cr_assert_eq(errors, 1);
}

Test(report_latency_report_files, standard_output_stays_open_and_takes_nothing_after_an_error)
{
	struct xpt_report_files *files;
	int output = open(in_folder("out"), O_RDWR | O_CREAT, 0600);
	struct content content;

	cr_assert_eq(dup2(output, STDOUT_FILENO), STDOUT_FILENO);
	cr_assert_eq(write(STDOUT_FILENO, "before\n", 7), 7);
	files = create((struct xpt_report_files_options){ .path = "-", .append = 1 });
	cr_assert_eq(write_report(files, make_report(1, 1)), 0);
	limit_files(100000);
	cr_assert_eq(write_report(files, make_report(2, 5000)), -EFBIG);
	limit_files(RLIM_INFINITY);
	cr_assert_eq(write_report(files, make_report(3, 1)), -EFBIG);
	cr_assert_eq(xpt_report_files_close(files), -EFBIG);
	cr_assert_eq(write(STDOUT_FILENO, "after\n", 6), 6, "the program's own output goes on");
	content = read_content(in_folder("out"));
	cr_assert_eq(strncmp(content.bytes, "before\nprogram,1,", 17), 0);
	cr_assert_null(strstr(content.bytes, "program,2,"));
	cr_assert_null(strstr(content.bytes, "program,3,"));
	cr_assert_str_eq(content.bytes + content.length - 6, "after\n");
	free(content.bytes);
	close(output);
}
