/* SPDX-License-Identifier: BSD-2-Clause */
/* What works without root: columns, histograms, report files, and the refusal of wrong options. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <xputrace/check.h>
#include <xputrace/continuous.h>
#include <xputrace/inspect.h>
#include <xputrace/profile.h>
#include <xputrace/recording.h>
#include <xputrace/report.h>
#include <xputrace/stream.h>

#include "check.h"

/* The headings of the Cloud AI 100 report, and what language models have. */
static const char *const headings[] = {
	"queueDepth",	      "numInfInQueue",	   "devInfPerSec",	 "devExec(Us)",	       "devInWaitTime(Us)",
	"devOutWaitTime(Us)", "hostRoundTrip(Us)", "enqTime(Us)",	 "preProcTime(Us)",    "submitTime(Us)",
	"execTotal(Us)",      "exectoVc(Us)",	   "execToComplete(Us)", "postProc(Us)",       "totalRoundtripTime(Us)",
	"prefillTokens",      "decodeTokens",	   "tokensPerSec",	 "firstTokenTime(Us)", "outputTokenTime(Us)",
	"cpuTime(Us)",	      "waitedTime(Us)",	   "blockedTime(Us)",
};

static void test_columns(void)
{
	struct xpt_sample sample = { .size = sizeof(sample), .time = { 1000000, 0, 0, 0, 0, 1234567 } };
	uint64_t value = 0;
	int i;

	CHECK_IS(sizeof(headings) / sizeof(headings[0]), XPT_COLUMNS);
	for (i = 0; i < XPT_COLUMNS; i++)
		CHECK(!strcmp(xpt_column_name((enum xpt_column)i), headings[i]), "column %d", i);
	CHECK(!xpt_column_name((enum xpt_column)XPT_COLUMNS), "there is one column more");
	CHECK_IS(xpt_sample_column(&sample, XPT_COLUMN_TOTAL_ROUND_TRIP, &value), 0);
	CHECK_IS(value, 234567);
	CHECK_IS(xpt_sample_column(&sample, XPT_COLUMN_DEVICE_EXECUTE, &value), -ENODATA);
	CHECK_IS(xpt_sample_column(&sample, (enum xpt_column)XPT_COLUMNS, &value), -EINVAL);
	sample.time[XPT_TIME_DEVICE_RUNS] = 1100000;
	sample.time[XPT_TIME_DEVICE_DONE] = 1150000;
	CHECK_IS(xpt_sample_column(&sample, XPT_COLUMN_DEVICE_EXECUTE, &value), 0);
	CHECK_IS(value, 50000);
	sample.size = 0;
	CHECK_IS(xpt_sample_column(&sample, XPT_COLUMN_DEVICE_EXECUTE, &value), -EINVAL);
}

static void test_latencies(void)
{
	struct xpt_latencies *all = xpt_latencies_create(),
			     *parts[2] = { xpt_latencies_create(), xpt_latencies_create() };
	struct xpt_column_summary sum = { .size = sizeof(sum) }, merged = { .size = sizeof(merged) };
	const double bounds[] = { 0.5, 250, 1000 };
	uint64_t i, counts[3];

	/* 1 to 1000 us: every figure is known. */
	for (i = 1; i <= 1000; i++) {
		struct xpt_sample sample = { .size = sizeof(sample), .time = { 1000, 0, 0, 0, 0, 1000 + i * 1000 } };

		CHECK_IS(xpt_latencies_add(all, &sample), 0);
		CHECK_IS(xpt_latencies_add(parts[i % 2], &sample), 0);
	}
	CHECK_IS(xpt_latencies_merge(parts[0], parts[1]), 0);
	CHECK_IS(xpt_latencies_get(all, XPT_COLUMN_TOTAL_ROUND_TRIP, &sum), 0);
	CHECK_IS(xpt_latencies_get(parts[0], XPT_COLUMN_TOTAL_ROUND_TRIP, &merged), 0);
	CHECK_IS(sum.count, 1000);
	CHECK(fabs(sum.min - 1) < 1e-9 && fabs(sum.max - 1000) < 1e-9, "%f to %f", sum.min, sum.max);
	CHECK(fabs(sum.mean - 500.5) < 1e-6, "%f", sum.mean);
	CHECK(fabs(sum.deviation - sqrt(1000 * 1001 / 12.0)) < 1e-3, "%f", sum.deviation);
	CHECK(fabs(sum.p50 - 500) <= 5.5 && fabs(sum.p90 - 900) <= 9.5, "%f, %f", sum.p50, sum.p90);
	CHECK(fabs(sum.p95 - 950) <= 10 && fabs(sum.p99 - 990) <= 10.5, "%f, %f", sum.p95, sum.p99);
	CHECK(sum.count == merged.count && fabs(sum.p99 - merged.p99) < 1e-9 && fabs(sum.p50 - merged.p50) < 1e-9,
	      "merging changes the quantiles");
	CHECK(fabs(sum.mean - merged.mean) < 1e-6 && fabs(sum.deviation - merged.deviation) < 1e-3,
	      "merging changes mean or deviation");
	CHECK_IS(xpt_latencies_buckets(all, XPT_COLUMN_TOTAL_ROUND_TRIP, bounds, 3, counts), 0);
	CHECK(counts[0] == 0 && counts[1] >= 247 && counts[1] <= 253 && counts[2] == 1000, "%llu of 250",
	      (unsigned long long)counts[1]);
	CHECK_IS(xpt_latencies_buckets(all, XPT_COLUMN_SUBMIT, bounds, 3, counts), -ENODATA);
	CHECK_IS(xpt_latencies_buckets(all, (enum xpt_column)XPT_COLUMNS, bounds, 3, counts), -EINVAL);
	CHECK_IS(xpt_latencies_get(all, XPT_COLUMN_SUBMIT, &sum), -ENODATA);
	CHECK_IS(xpt_latencies_get(all, (enum xpt_column)XPT_COLUMNS, &sum), -EINVAL);
	xpt_latencies_free(all);
	xpt_latencies_free(parts[0]);
	xpt_latencies_free(parts[1]);
	xpt_latencies_free(NULL);
}

/* A report of two samples of one program, as the library would deliver it. */
struct made_report {
	struct xpt_sample samples[2];
	struct xpt_program_report program;
	struct xpt_profile_report report;
};

static void make_report(struct made_report *made, uint64_t sequence)
{
	memset(made, 0, sizeof(*made));
	made->samples[0].size = made->samples[1].size = sizeof(made->samples[0]);
	made->samples[0].time[XPT_TIME_CALL_BEGINS] = 5000000000u;
	made->samples[0].time[XPT_TIME_CALL_ENDS] = 5000100000u;
	made->samples[1].time[XPT_TIME_CALL_BEGINS] = 5000200000u;
	made->samples[1].time[XPT_TIME_CALL_ENDS] = 5000450000u;
	made->program.id = 1;
	made->program.pid = 4711;
	made->program.process = "server";
	made->program.runtime = "nrt";
	made->program.name = "resnet, \"large\"";
	made->program.handle = 0x1234;
	made->program.sample_every = 1;
	made->program.samples = made->samples;
	made->program.sample_count = made->program.inferences = made->program.taken = 2;
	made->program.latencies = xpt_latencies_create();
	xpt_latencies_add((struct xpt_latencies *)made->program.latencies, &made->samples[0]);
	xpt_latencies_add((struct xpt_latencies *)made->program.latencies, &made->samples[1]);
	made->report.size = sizeof(made->report);
	made->report.name = "";
	made->report.sequence = sequence;
	made->report.start = 5000000000u;
	made->report.end = 5500000000u;
	made->report.start_realtime = 1700000000000000000u;
	made->report.end_realtime = 1700000000500000000u;
	made->report.programs = &made->program;
	made->report.program_count = 1;
}

static void free_report(struct made_report *made)
{
	xpt_latencies_free((struct xpt_latencies *)made->program.latencies);
}

static char text[65536]; /* of the file that was read last */

static size_t read_text(const char *path)
{
	int file = open(path, O_RDONLY);
	ssize_t length = file < 0 ? 0 : read(file, text, sizeof(text) - 1);

	if (file >= 0)
		close(file);
	text[length > 0 ? length : 0] = '\0';
	return length > 0 ? (size_t)length : 0;
}

/* How many lines of the text begin like that. */
static int lines_with(const char *begin)
{
	const char *line = text;
	int count = 0;

	while (line) {
		count += !strncmp(line, begin, strlen(begin));
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return count;
}

static void test_report_write(void)
{
	char path[] = "report-XXXXXX";
	int file = mkstemp(path);
	struct made_report made;

	make_report(&made, 0);
	CHECK_IS(xpt_profile_report_write(&made.report, XPT_FORMAT_SAMPLES, file), 0);
	CHECK(read_text(path) > 0, "nothing was written");
	CHECK_IS(lines_with("Sample,queueDepth,numInfInQueue,devInfPerSec,devExec(Us),"), 1);
	CHECK_IS(lines_with("1,") + lines_with("2,"), 2);
	CHECK(strstr(text, ",100.000,") && strstr(text, ",250.000,"), "the times are missing: %.200s", text);
	CHECK(strstr(text, "\"resnet, \"\"large\"\"\""), "the name is not quoted: %.200s", text);
	CHECK(strstr(text, "N/A"), "what was not observed is not N/A: %.200s", text);
	CHECK_IS(ftruncate(file, 0), 0);
	CHECK_IS(lseek(file, 0, SEEK_SET), 0);
	CHECK_IS(xpt_profile_report_write(&made.report, XPT_FORMAT_SUMMARY, file), 0);
	read_text(path);
	CHECK(strstr(text, "totalRoundtripTime(Us)_mean") && strstr(text, ",175.000,"), "no mean of 175 us: %.200s",
	      text);
	CHECK_IS(xpt_profile_report_write(&made.report, XPT_FORMAT_TRACE, file), -EINVAL);
	CHECK_IS(xpt_profile_report_write(&made.report, XPT_FORMAT_SAMPLES, -1), -EBADF);
	close(file);
	unlink(path);
	free_report(&made);
}

static int exists(const char *path)
{
	return !access(path, F_OK);
}

static struct xpt_report_files *open_files(const char *path, int append, uint64_t rotate_bytes, unsigned int keep)
{
	struct xpt_report_files_options options = {
		.size = sizeof(options), .path = path, .append = append, .rotate_bytes = rotate_bytes, .keep = keep
	};
	struct xpt_report_files *files = NULL;

	CHECK_IS(xpt_report_files_create(&options, &files), 0);
	return files;
}

static void test_report_files(void)
{
	struct xpt_report_files *files;
	struct made_report made;
	uint64_t i;

	files = open_files("numbered.csv", 0, 0, 2);
	CHECK(!*xpt_report_files_path(files), "a file is named before there is one");
	for (i = 0; i < 4; i++) {
		make_report(&made, i);
		CHECK_IS(xpt_report_files_write(files, &made.report), 0);
		free_report(&made);
	}
	CHECK(!exists("numbered-000001.csv") && !exists("numbered-000002.csv"), "old files are kept");
	CHECK(exists("numbered-000003.csv") && exists("numbered-000004.csv"), "the last files are missing");
	CHECK(!strcmp(xpt_report_files_path(files), "numbered-000004.csv"), "%s", xpt_report_files_path(files));
	CHECK_IS(xpt_report_files_close(files), 0);

	files = open_files("appended.csv", 1, 0, 0);
	for (i = 0; i < 3; i++) {
		make_report(&made, i);
		CHECK_IS(xpt_report_files_write(files, &made.report), 0);
		free_report(&made);
	}
	read_text("appended.csv");
	CHECK_IS(lines_with("1,"), 3);
	CHECK_IS(xpt_report_files_bytes(files), strlen(text));
	CHECK_IS(xpt_report_files_close(files), 0);

	files = open_files("rotated.csv", 1, 4096, 1);
	for (i = 0; i < 40; i++) {
		make_report(&made, i);
		CHECK_IS(xpt_report_files_write(files, &made.report), 0);
		free_report(&made);
	}
	CHECK_IS(xpt_report_files_close(files), 0);
	CHECK(read_text("rotated.csv") <= 4096 && lines_with("Sample,") > 0, "the file has %zu bytes", strlen(text));
	CHECK(read_text("rotated.csv.1") <= 4096 && lines_with("Sample,") > 0, "the old file has %zu bytes",
	      strlen(text));
	CHECK(!exists("rotated.csv.2"), "more old files are kept than wanted");
}

static void test_files_options(void)
{
	struct xpt_report_files_options options = { .size = sizeof(options), .path = "x.csv", .rotate_bytes = 100000 };
	struct xpt_report_files *files;

	CHECK_IS(xpt_report_files_create(&options, &files), -EINVAL);
	options.rotate_bytes = 0;
	options.path = NULL;
	CHECK_IS(xpt_report_files_create(&options, &files), -EINVAL);
	options.path = "no/such/folder/x.csv";
	options.append = 1;
	CHECK_IS(xpt_report_files_create(&options, &files), -ENOENT);
	options.size = 0;
	CHECK_IS(xpt_report_files_create(&options, &files), -EINVAL);
}

static void test_match(void)
{
	char reason[100] = "";
	size_t position = 999;

	CHECK_IS(xpt_stream_check_match("", &position, reason, sizeof(reason)), 0);
	CHECK_IS(xpt_stream_check_match("^(bert|resnet)-[0-9]+$", &position, reason, sizeof(reason)), 0);
	CHECK_IS(xpt_stream_check_match("bert(x", &position, reason, sizeof(reason)), -EINVAL);
	CHECK(position >= 4 && position <= 6, "position %zu", position);
	CHECK(reason[0], "no reason");
	reason[0] = reason[1] = reason[2] = 'x';
	CHECK_IS(xpt_stream_check_match("[z-a]", &position, reason, 2), -EINVAL);
	CHECK(reason[1] == '\0' && reason[2] == 'x', "the reason is longer than its place");
}

/* Options are looked at before privileges. */
static void test_session_options(void)
{
	struct {
		struct xpt_session_options options;
		char later[8]; /* a field that this library does not know */
	} newer = { .options = { .all_processes = 1 }, .later = { 0, 1 } };
	struct xpt_session_options options = { .size = sizeof(options) };
	char *empty[] = { NULL };
	struct xpt_session *session;
	pid_t pid = getpid();

	CHECK_IS(xpt_session_create(&options, &session), -EINVAL);
	options.size = 0;
	options.all_processes = 1;
	CHECK_IS(xpt_session_create(&options, &session), -EINVAL);
	options.size = sizeof(options);
	options.pids = &pid;
	options.pid_count = 1;
	CHECK_IS(xpt_session_create(&options, &session), -EINVAL);
	options.pid_count = 0;
	options.all_processes = 0;
	options.command = empty;
	CHECK_IS(xpt_session_create(&options, &session), -EINVAL);
	newer.options.size = sizeof(newer);
	CHECK_IS(xpt_session_create(&newer.options, &session), -E2BIG);
}

static int check_setting(const char *name, const char *value)
{
	char setting[100];

	snprintf(setting, sizeof(setting), "%s=%s", name, value);
	return xpt_inspect_check(setting);
}

static void test_inspect_options(void)
{
	const char *settings[] = { "ENABLE=0", "OUTPUT_DIR=there" };
	XPT_OPTS(xpt_session_options, targets, .all_processes = 1);
	XPT_OPTS(xpt_inspect_options, options, .targets = &targets, .settings = settings, .setting_count = 2);
	const struct xpt_inspect_event_type *types;
	const struct xpt_inspect_activity *activities;
	struct xpt_inspect *inspect;
	struct {
		struct xpt_inspect_options options;
		char later[8];
	} newer = { .options = { .size = sizeof(newer) }, .later = { 1 } };
	size_t count, i;

	CHECK_IS(check_setting("OUTPUT_DIR", ""), -EINVAL);
	CHECK_IS(check_setting("SESSION_ID", "-1"), -EINVAL);
	CHECK_IS(check_setting("MAX_EVENTS_PER_CORE", "0"), -EINVAL);
	CHECK_IS(check_setting("EVENT_FILTER_CORE", "0-8191"), 0);
	CHECK_IS(check_setting("EVENT_FILTER_CORE", "8192"), -EINVAL);
	CHECK_IS(check_setting("EVENT_FILTER_NC", "1"), -EINVAL);
	/* What is listed is what settings name. */
	types = xpt_inspect_event_types(&count);
	CHECK(count > 10, "%zu types", count);
	CHECK_IS(types->size, sizeof(*types));
	for (i = 0; i < count; i++) {
		CHECK_IS(check_setting("EVENT_FILTER_TYPE", XPT_AT(types, types->size, i)->name), 0);
		CHECK_IS(check_setting("EVENT_FILTER_TYPE", XPT_AT(types, types->size, i)->group), 0);
	}
	CHECK_IS(check_setting("EVENT_FILTER_TYPE", "nothing"), -EINVAL);
	activities = xpt_inspect_activities(&count);
	CHECK_IS(count, 4);
	CHECK_IS(activities->size, sizeof(*activities));
	for (i = 0; i < count; i++)
		CHECK_IS(check_setting("ACTIVITIES", XPT_AT(activities, activities->size, i)->name), 0);
	CHECK_IS(check_setting("ACTIVITIES", "all"), 0);
	CHECK_IS(check_setting("ACTIVITIES", "none"), -EINVAL);
	/* Nothing is to be done, which needs no rights. */
	CHECK_IS(xpt_inspect_create(&newer.options, &inspect), -E2BIG);
	CHECK_IS(xpt_inspect_create(&options, &inspect), 0);
	CHECK_IS(xpt_inspect_start(inspect), 0);
	CHECK_IS(xpt_inspect_wait(inspect, XPT_FOREVER), 1);
	CHECK_IS(xpt_inspect_stop(inspect), 0);
	xpt_inspect_destroy(inspect);
	settings[1] = "OUTPUT_DIR";
	CHECK_IS(xpt_inspect_create(&options, &inspect), -EINVAL);
}

static void test_continuous_options(void)
{
	XPT_OPTS(xpt_session_options, targets, .all_processes = 1);
	XPT_OPTS(xpt_continuous_options, options, .targets = &targets, .window_bytes = XPT_WINDOW_BYTES_MIN - 1);
	struct xpt_continuous *continuous;
	struct {
		struct xpt_continuous_options options;
		char later[8];
	} newer = { .options = { .size = sizeof(newer), .targets = &targets }, .later = { 1 } };
	char reason[100] = "";
	uint64_t duration = 0;

	CHECK_IS(xpt_continuous_create(&newer.options, &continuous), -E2BIG);
	CHECK_IS(xpt_continuous_create(&options, &continuous), -EINVAL);
	options.window_bytes = 0;
	options.targets = NULL;
	CHECK_IS(xpt_continuous_create(&options, &continuous), -EINVAL);
	CHECK_IS(xpt_trigger_check("p99 > 10ms over 5s", NULL, 0), 0);
	CHECK_IS(xpt_trigger_check("p99 > 10ms", reason, sizeof(reason)), -EINVAL);
	CHECK(reason[0], "no reason");
	CHECK_IS(xpt_trigger_latency("latency >= 20ms", &duration), 0);
	CHECK_IS(duration, 20000000);
	CHECK_IS(xpt_trigger_latency("latency > 1.5us", &duration), 0);
	CHECK_IS(duration, 1501);
	CHECK_IS(xpt_trigger_latency("waited > 5ms", &duration), -ENODATA);
	CHECK_IS(xpt_trigger_latency("max > 5ms over 1s", &duration), -ENODATA);
	CHECK_IS(xpt_trigger_latency("latency", &duration), -EINVAL);
	CHECK_IS(xpt_trigger_latency(NULL, &duration), -EINVAL);
}

static const struct test tests[] = {
	{ "columns", test_columns, 0 },
	{ "latencies", test_latencies, 0 },
	{ "report_write", test_report_write, 0 },
	{ "report_files", test_report_files, 0 },
	{ "files_options", test_files_options, 0 },
	{ "match", test_match, 0 },
	{ "session_options", test_session_options, 0 },
	{ "inspect_options", test_inspect_options, 0 },
	{ "continuous_options", test_continuous_options, 0 },
};

int main(void)
{
	return run_tests("values", tests, sizeof(tests) / sizeof(tests[0])) != 0;
}
