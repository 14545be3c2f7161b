/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/table/summary.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "report_records.h"

static char *summary(const struct model *model, unsigned int width)
{
	char *printed;
	size_t size;
	FILE *out = open_memstream(&printed, &size);

	cr_assert_eq(summary_write(model, out, width, 0), 0);
	fclose(out);
	return printed;
}

/* Programs are called as their handles are, so that a name is one word. */
static void name_handle(struct model *model, __u64 handle)
{
	char name[24];

	snprintf(name, sizeof(name), "0x%llx", handle);
	feed_text(model, XPT_RECORD_NAMED, RECORDS_TGID, handle, 1, name);
}

static struct model *model_with_calls(__u64 handle, unsigned int count, __u64 duration)
{
	struct model *model;
	unsigned int i;

	cr_assert_eq(model_create(NULL, &model), 0);
	feed_descriptions(model);
	name_handle(model, handle);
	for (i = 0; i < count; i++)
		feed_call(model, SPEC_EXECUTE, 1240, 1000000 + i * 2 * duration, 1000000 + (i * 2 + 1) * duration,
			  handle, 0);
	return model;
}

/* The words of the first line that begins with name. */
static int words(const char *printed, const char *name, char word[20][64])
{
	const char *line = printed;
	int count = 0, used;

	while (line && strncmp(line, name, strlen(name)))
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
	cr_assert_not_null(line, "no line '%s' in\n%s", name, printed);
	while (count < 20 && *line != '\n' && sscanf(line, "%63s%n", word[count], &used) == 1) {
		line += used;
		count++;
		while (*line == ' ')
			line++;
	}
	return count;
}

Test(report_table_summary, figures_of_programs_and_functions)
{
	struct model *model = model_with_calls(0x5000, 100, 1500000);
	char word[20][64], *printed;

	feed_call(model, SPEC_COPY, 1240, 900000000, 900002000, 1048576, 0);
	feed_call(model, SPEC_COPY, 1240, 900010000, 900014000, 8, 5);
	feed_text(model, XPT_RECORD_END, 0, 0, 2000000000, RECORDS_END);
	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 0);
	/* PROGRAM RUNTIME PID COUNT RATE/s MIN MEAN P50 P95 P99 MAX STDDEV ERRORS */
	cr_assert_eq(words(printed, "PROGRAM", word), 13);
	cr_assert_eq(words(printed, "0x5000", word), 13);
	cr_assert_str_eq(word[1], "nrt");
	cr_assert_str_eq(word[2], "1234");
	cr_assert_str_eq(word[3], "100");
	cr_assert_str_eq(word[4], "50.0", "100 calls in the 2 s of the END record");
	cr_assert_str_eq(word[5], "1.500ms");
	cr_assert_str_eq(word[6], "1.500ms");
	cr_assert_str_eq(word[10], "1.500ms");
	cr_assert_str_eq(word[11], "0ns");
	cr_assert_str_eq(word[12], "0");
	/* FUNCTION RUNTIME PID COUNT TIME MEAN MAX BYTES ERRORS */
	cr_assert_eq(words(printed, "FUNCTION", word), 9);
	cr_assert_eq(words(printed, "nrt_tensor_write", word), 9);
	cr_assert_str_eq(word[3], "2");
	cr_assert_str_eq(word[4], "6.000us");
	cr_assert_str_eq(word[5], "3.000us");
	cr_assert_str_eq(word[6], "4.000us");
	cr_assert_str_eq(word[7], "1.00MiB");
	cr_assert_str_eq(word[8], "1");
	cr_assert_not_null(strstr(printed, "lost: nothing\n"));
	cr_assert_not_null(strstr(printed, "recorded 2.00s, stopped by: duration\n"
					   "probes: placed in 1ns, removed in 1ns\n"),
			   "%s", printed);
	cr_assert_not_null(strstr(printed, "cost: 500ns a call, 0.00% of the time (estimated); "
					   "collector 30.0ms CPU, 12.0MiB memory\n"),
			   "%s", printed);
	free(printed);
	model_free(model);
}

Test(report_table_summary, exact_count_beside_the_recorded_one)
{
	struct model *model = model_with_calls(0x5000, 10, 1000);
	char word[20][64], *printed;

	feed_total(model, (struct xpt_program_key){ RECORDS_TGID, 3, 0, 0x5000 },
		   (struct xpt_program_count){ .calls = 165, .left_out = 150, .lost = 5 }, 1900000);
	feed_lost(model, XPT_LOSS_RING_FULL, 5, 1, 1900000);
	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 0);
	cr_assert_eq(words(printed, "PROGRAM", word), 14);
	cr_assert_str_eq(word[4], "RECORDED");
	words(printed, "0x5000", word);
	cr_assert_str_eq(word[3], "165");
	cr_assert_str_eq(word[4], "10");
	cr_assert_not_null(strstr(printed, "lost: 5 "));
	cr_assert_not_null(strstr(printed, "(ring_full)\n"));
	cr_assert_not_null(strstr(printed, "cut short"));
	free(printed);
	model_free(model);
}

/* Two launches of 2 us; the wait for their stream comes 9 ms later, and none for another stream. */
Test(report_table_summary, launches_have_the_time_to_completion_and_their_call)
{
	static const char meanings[] =
		"\"role\":\"%s\",\"success\":1,\"fetches\":[{\"meaning\":\"%s\",\"type\":\"u64\"},"
		"{\"meaning\":\"stream\",\"type\":\"u64\"}]}";
	struct model *model = model_with_calls(0x5000, 1, 1500000);
	char text[256], spec[400], word[20][64], *printed;

	snprintf(text, sizeof(text), meanings, "launch", "program");
	snprintf(spec, sizeof(spec), "{\"runtime\":3,\"function\":\"go\",%s", text);
	feed_text(model, XPT_RECORD_SPEC, 0, 5, 1, spec);
	snprintf(text, sizeof(text), meanings, "wait", "count");
	snprintf(spec, sizeof(spec), "{\"runtime\":3,\"function\":\"sync\",%s", text);
	feed_text(model, XPT_RECORD_SPEC, 0, 6, 1, spec);
	name_handle(model, 0x20);
	name_handle(model, 0x30);
	feed_call(model, 5, 1240, 100000000, 100002000, 0x20, 1);
	feed_call(model, 5, 1240, 101000000, 101002000, 0x30, 2);
	feed_call(model, 6, 1240, 102000000, 109000000, 1, 1);
	feed_text(model, XPT_RECORD_END, 0, 0, 2000000000, RECORDS_END);
	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 0);
	cr_assert_eq(words(printed, "PROGRAM", word), 14);
	cr_assert_str_eq(word[12], "CALL");
	cr_assert_eq(words(printed, "0x20", word), 14);
	cr_assert_str_eq(word[6], "9.000ms");
	cr_assert_str_eq(word[12], "2.000us");
	cr_assert_eq(words(printed, "0x30", word), 14);
	cr_assert_str_eq(word[5], "N/A");
	cr_assert_str_eq(word[11], "N/A");
	cr_assert_str_eq(word[12], "2.000us");
	words(printed, "0x5000", word);
	cr_assert_str_eq(word[6], "1.500ms");
	cr_assert_str_eq(word[12], "1.500ms", "the call is all of it");
	cr_assert_not_null(strstr(printed, "not seen to end: 1 of 2 launches; their latency is not known\n"), "%s",
			   printed);
	free(printed);
	model_free(model);
}

Test(report_table_summary, nothing_ran)
{
	struct model *model;
	char *printed;

	cr_assert_eq(model_create(NULL, &model), 0);
	printed = summary(model, 80);
	cr_assert_not_null(strstr(printed, "no program was run"));
	cr_assert_not_null(strstr(printed, "lost: nothing"));
	free(printed);
	model_free(model);
}

Test(report_table_summary, many_programs_are_cut_the_most_expensive_first)
{
	struct model *model = model_with_calls(0x1, 1, 1);
	char *printed, *first, *second;
	unsigned int i;

	for (i = 2; i <= 60; i++) {
		name_handle(model, i);
		feed_call(model, SPEC_EXECUTE, 1240, 5000000 + i * 1000000, 5000000 + i * 1000000 + i * 1000, i, 0);
	}
	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 0);
	cr_assert_not_null(strstr(printed, "(20 more; see the trace's metadata)\n"));
	first = strstr(printed, "\n0x3c ");
	second = strstr(printed, "\n0x3b ");
	cr_assert(first && second && first < second);
	cr_assert_not_null(strstr(printed, "\n0x15 "));
	cr_assert_null(strstr(printed, "\n0x14 "));
	free(printed);
	model_free(model);
}

/* A program that is loaded again under the same name is one row, with all its calls; one that is there meanwhile is another. */
Test(report_table_summary, same_name_is_one_row)
{
	struct model *model = model_with_calls(0x10, 3, 1000);
	char word[20][64], *printed;

	feed_text(model, XPT_RECORD_SPEC, 0, 5, 1,
		  "{\"runtime\":3,\"function\":\"nrt_unload\",\"role\":\"program.unload\",\"success\":1,\"fetches\":"
		  "[{\"meaning\":\"program\",\"type\":\"u64\"},{\"meaning\":\"status\",\"type\":\"s32\"}]}");
	feed_text(model, XPT_RECORD_NAMED, RECORDS_TGID, 0x10, 1500000, "resnet");
	feed_text(model, XPT_RECORD_NAMED, RECORDS_TGID, 0x20, 1500000, "resnet");
	feed_text(model, XPT_RECORD_NAMED, RECORDS_TGID, 0x30, 1500000, "resnet");
	feed_call(model, SPEC_EXECUTE, 1240, 1600000, 1601000, 0x30, 0);
	feed_call(model, SPEC_EXECUTE, 1240, 2010000, 2015000, 0x10, 3);
	feed_call(model, 5, 1240, 2020000, 2021000, 0x10, 0);
	feed_call(model, SPEC_EXECUTE, 1240, 2030000, 2035000, 0x20, 0);
	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 0);
	words(printed, "resnet #2", word);
	cr_assert_str_eq(word[4], "1");
	words(printed, "resnet  ", word);
	cr_assert_str_eq(word[3], "5");
	cr_assert_str_eq(word[5], "1.000us");
	cr_assert_str_eq(word[6], "2.600us");
	cr_assert_str_eq(word[10], "5.000us");
	cr_assert_str_eq(word[12], "1");
	free(printed);
	model_free(model);
}

/*
 * In a recording of 2 s: 20 calls of a program, of 2 ms each, with a job of 1 ms that has waited 100 us; the last one fails.
 * Another process has the same queue for 100 ms.
 */
static struct model *model_with_jobs(bool total)
{
	struct model *model;
	__u64 i, start;

	cr_assert_eq(model_create(NULL, &model), 0);
	feed_descriptions(model);
	feed_driver(model);
	name_handle(model, 0x5000);
	for (i = 1; i <= 20; i++) {
		start = i * 10000000;
		feed_event(model, EVENT_QUEUED, 1240, start + 100000, i, "gfx_0");
		feed_event(model, EVENT_RUNS, 0, start + 200000, i, NULL);
		if (i == 20)
			feed_event(model, EVENT_FAILED, 0, start + 1100000, i, NULL);
		feed_event(model, EVENT_DONE, 0, start + 1200000, i, NULL);
		feed_call(model, SPEC_EXECUTE, 1240, start, start + 2000000, 0x5000, 0);
	}
	feed_event(model, EVENT_QUEUED, 0, 1000000000, 77, "gfx_0");
	feed_event(model, EVENT_RUNS, 0, 1000000000, 77, NULL);
	feed_event(model, EVENT_DONE, 0, 1100000000, 77, NULL);
	if (total)
		feed_total(model, (struct xpt_program_key){ RECORDS_TGID, 3, 0, 0x5000 },
			   (struct xpt_program_count){ .calls = 100, .left_out = 80 }, 1900000000);
	feed_text(model, XPT_RECORD_END, 0, 0, 2000000000, RECORDS_END);
	cr_assert_eq(model_flush(model), 0);
	return model;
}

Test(report_table_summary, work_of_devices)
{
	struct model *model = model_with_jobs(false);
	char word[20][64], *printed = summary(model, 0), *table = strstr(printed, "PROGRAM ON DEVICE");

	cr_assert_not_null(table, "%s", printed);
	/* Name, runtime, pid, jobs, failed, time, mean, queued, busy. */
	cr_assert_eq(words(table, "0x5000", word), 9, "%s", table);
	cr_assert_str_eq(word[1], "nrt");
	cr_assert_str_eq(word[3], "20");
	cr_assert_str_eq(word[4], "1");
	cr_assert_str_eq(word[5], "20.00ms");
	cr_assert_str_eq(word[6], "1.000ms");
	cr_assert_str_eq(word[7], "2.000ms");
	cr_assert_str_eq(word[8], "1.00%", "20 ms of 2 s");
	/* QUEUE DEVICE DRIVER JOBS FAILED BUSY TARGET */
	cr_assert_eq(words(table, "QUEUE ", word), 7);
	cr_assert_eq(words(table, "gfx_0", word), 7);
	cr_assert_str_eq(word[1], "0000:03:00.0");
	cr_assert_str_eq(word[2], "toy");
	cr_assert_str_eq(word[3], "21");
	cr_assert_str_eq(word[4], "1");
	cr_assert_str_eq(word[5], "6.00%", "20 and 100 ms of 2 s");
	cr_assert_str_eq(word[6], "1.00%");
	free(printed);
	model_free(model);
}

/* One call in five was recorded: the times are those of all, the jobs those that were seen. */
Test(report_table_summary, work_of_devices_for_calls_that_were_left_out)
{
	struct model *model = model_with_jobs(true);
	char word[20][64], *printed = summary(model, 0);

	words(strstr(printed, "PROGRAM ON DEVICE"), "0x5000", word);
	cr_assert_str_eq(word[3], "20");
	cr_assert_str_eq(word[4], "1");
	cr_assert_str_eq(word[5], "100.0ms");
	cr_assert_str_eq(word[6], "1.000ms");
	cr_assert_str_eq(word[7], "10.00ms");
	cr_assert_str_eq(word[8], "5.00%");
	words(printed, "gfx_0", word);
	cr_assert_str_eq(word[5], "6.00%", "queues see all jobs");
	free(printed);
	model_free(model);
}

/* What has no jobs has no table; and queues whose events do not tell when a job runs have no share. */
Test(report_table_summary, jobs_of_which_little_is_known)
{
	struct model *model = model_with_calls(0x5000, 3, 1000);
	char word[20][64], *printed;

	feed_driver(model);
	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 0);
	cr_assert_null(strstr(printed, "QUEUE"));
	cr_assert_null(strstr(printed, "DEVICE"));
	free(printed);
	model_free(model);
	model = model_with_calls(0x5000, 3, 1000);
	feed_driver(model);
	feed_event(model, EVENT_QUEUED, 1240, 1000100, 1, "");
	feed_event(model, EVENT_DONE, 0, 1000200, 1, NULL);
	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 0);
	cr_assert_eq(words(strstr(printed, "PROGRAM ON DEVICE"), "0x5000", word), 9, "%s", printed);
	cr_assert_str_eq(word[3], "1");
	cr_assert_str_eq(word[5], "-");
	cr_assert_str_eq(word[6], "-");
	cr_assert_str_eq(word[7], "-");
	cr_assert_str_eq(word[8], "-");
	cr_assert_eq(words(printed, "queue ", word), 7, "%s", printed);
	cr_assert_str_eq(word[5], "-");
	cr_assert_str_eq(word[6], "-");
	free(printed);
	model_free(model);
}

Test(report_table_summary, many_queues_are_cut_the_busiest_first)
{
	struct model *model = model_with_calls(0x1, 1, 1);
	char name[32], *printed, *first, *second;
	unsigned int i;

	feed_driver(model);
	for (i = 1; i <= 60; i++) {
		snprintf(name, sizeof(name), "ring\x1b%u", i);
		feed_event(model, EVENT_QUEUED, 0, 5000000 + i, i, name);
		feed_event(model, EVENT_RUNS, 0, 5000100 + i, i, NULL);
	}
	for (i = 1; i <= 60; i++)
		feed_event(model, EVENT_DONE, 0, 6000000 + i * 1000, i, NULL);
	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 0);
	cr_assert_not_null(strstr(printed, "(20 more; see the trace's metadata)\n"), "%s", printed);
	first = strstr(printed, "\nring\\x1b60 ");
	second = strstr(printed, "\nring\\x1b59 ");
	cr_assert(first && second && first < second, "%s", printed);
	cr_assert_not_null(strstr(printed, "\nring\\x1b21 "));
	cr_assert_null(strstr(printed, "\nring\\x1b20 "));
	free(printed);
	model_free(model);
}

static size_t longest_line(const char *printed)
{
	size_t longest = 0;

	while (*printed) {
		size_t length = strcspn(printed, "\n");
		size_t columns = 0, i;

		for (i = 0; i < length; i++)
			columns += ((unsigned char)printed[i] & 0xc0) != 0x80;
		if (columns > longest)
			longest = columns;
		printed += length + (printed[length] == '\n');
	}
	return longest;
}

Test(report_table_summary, fits_a_terminal_and_shows_hostile_names_harmlessly)
{
	struct model *model = model_with_calls(0x10, 3, 12345678);
	char *printed;
	size_t i;

	feed_text(model, XPT_RECORD_NAMED, RECORDS_TGID, 0x10, 1500000,
		  "a\x1b[2J very long name that has to be cut somewhere, because no terminal is as wide as this");
	feed_text(model, XPT_RECORD_END, 0, 0, 2000000000, RECORDS_END);
	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 100);
	cr_assert_leq(longest_line(printed), 100, "%s", printed);
	cr_assert_not_null(strstr(printed, "a\\x1b[2J"));
	for (i = 0; printed[i]; i++)
		cr_assert(printed[i] == '\n' || (unsigned char)printed[i] >= ' ');
	free(printed);
	printed = summary(model, 80);
	*strstr(printed, "\n\n") = 0; /* the table; the lines behind it are sentences */
	cr_assert_leq(longest_line(printed), 80, "%s", printed);
	free(printed);
	printed = summary(model, 0);
	cr_assert_not_null(strstr(printed, "no terminal is as wide as this"), "cut without need");
	free(printed);
	model_free(model);
}

Test(report_table_summary, output_that_takes_nothing)
{
	struct model *model = model_with_calls(0x10, 3, 1000);
	FILE *full = fopen("/dev/full", "w");

	cr_assert_eq(model_flush(model), 0);
	cr_assert_eq(summary_write(model, full, 80, 0), -ENOSPC);
	fclose(full);
	model_free(model);
}

/* 100 inferences of 1.5 ms, of which probes took cost. */
static char *summary_of_cost(unsigned int cost)
{
	struct model *model;
	char text[64], *printed;

	cr_assert_eq(model_create(NULL, &model), 0);
	feed_descriptions(model);
	snprintf(text, sizeof(text), "{\"cost_ns\":%u,\"inside_ns\":%u}", cost, cost);
	feed_text(model, XPT_RECORD_COST, 0, SPEC_EXECUTE, 1, text);
	for (__u64 i = 0; i < 100; i++)
		feed_call(model, SPEC_EXECUTE, 1240, 1000000 + i * 3000000, 2500000 + i * 3000000, 0x5000, 0);
	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 0);
	model_free(model);
	return printed;
}

Test(report_table_summary, tracing)
{
	static const char warning[] =
		"warning: tracing is more than a third of an inference of nrt model 1: use --sample N\n";
	char *printed = summary_of_cost(480000);

	cr_expect_not_null(strstr(printed,
				  "tracing: about 480us of the 1.50ms of an inference (32.00%): nrt model 1\n"),
			   "%s", printed);
	cr_expect_null(strstr(printed, "warning"), "%s", printed);
	free(printed);
	printed = summary_of_cost(510000);
	cr_expect_not_null(strstr(printed, "(34.00%): nrt model 1\n"), "%s", printed);
	cr_expect_not_null(strstr(printed, warning), "%s", printed);
	free(printed);
	printed = summary_of_cost(2000000);
	cr_expect_not_null(strstr(printed, "about 1.50ms of the 1.50ms of an inference (100.00%)"),
			   "never more than all: %s", printed);
	free(printed);
}

/* Old recordings, and machines where it could not be measured. */
Test(report_table_summary, tracing_is_unknown)
{
	struct model *model = model_with_calls(0x5000, 10, 1000);
	char *printed;

	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 0);
	cr_expect_null(strstr(printed, "tracing"), "%s", printed);
	free(printed);
	model_free(model);
}

/* ---- the budget ---- */

#define BUDGET_END                                                                                                    \
	"{\"duration_ns\":30000000000,\"detach_ns\":1000000000,\"budget\":{\"percent\":2,\"targets_ns\":10000000000," \
	"\"added_ns\":140000000,\n\"collector_ns\":30000000,\"changes\":5,\"coldness\":0.4,"                          \
	"\"targets\":[{\"tgid\":1234,\"cpu_ns\":9000000000,\"added_ns\":90000000},"                                   \
	"{\"tgid\":0,\"cpu_ns\":1000000000,\"added_ns\":50000000}],"                                                  \
	"\"sites\":[{\"tgid\":1234,\"function\":\"nrt_execute\",\"class\":\"emulated\",\"hits\":126000,"              \
	"\"added_ns\":126000000}]}}"

static void feed_budget(struct model *model, __u32 tgid, double seconds, const char *text)
{
	feed_text(model, XPT_RECORD_BUDGET, tgid, 0, (__u64)(seconds * 1e9), text);
}

/* It has begun at 100 s. */
static void feed_changes(struct model *model)
{
	feed_budget(model, RECORDS_TGID, 112.4,
		    "{\"action\":\"sampling\",\"every\":8,\"programs\":2,\"runtime\":3,\"handle\":20480,"
		    "\"cost\":4.1,\"budget\":2}");
	feed_budget(model, 0, 113.4, "{\"action\":\"operators\",\"on\":false,\"cost\":3.2,\"budget\":2}");
	feed_budget(model, 123, 114.4, "{\"action\":\"site\",\"on\":false,\"function\":\"nrt_execute\"}");
	feed_budget(model, 0, 115, "{\"action\":\"site\",\"on\":false,\"function\":\"nrt_execute\"}");
	feed_budget(model, 123, 124.4,
		    "{\"action\":\"site\",\"on\":true,\"function\":\"nrt_execute\",\"since\":114400000000}");
	feed_budget(model, 124, 125, "{\"action\":\"site\",\"on\":true,\"function\":\"f\",\"since\":90000000000}");
	feed_budget(model, 9, 126, "{\"action\":\"sampling\",\"every\":1,\"programs\":3,\"cost\":0.034}");
	feed_budget(model, 0, 127, "{\"action\":\"operators\",\"on\":true,\"cost\":0}");
}

Test(report_table_summary, budget)
{
	struct model *model = model_with_calls(0x5000, 1, 1500000);
	char *printed;

	feed_changes(model);
	feed_text(model, XPT_RECORD_END, 0, 0, 131000000000, BUDGET_END);
	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 0);
	cr_assert_not_null(
		strstr(printed,
		       "budget: 2 %; tracing took about 1.7 % of the CPU time of the targets (1.4 % in them, 0.3 % collector)\n"
		       "budget: at 12.4s, 4.1 %: 1 inference in 8 of 0x5000 and of 1 more program or function is recorded\n"
		       "budget: at 13.4s, 3.2 %: operators are not traced\n"
		       "budget: nrt_execute of process 123 was not traced or counted from 14.4s to 24.4s\n"
		       "budget: nrt_execute of several processes was not traced or counted from 15.0s on\n"
		       "budget: f of process 124 was not traced or counted from the begin to 25.0s\n"
		       "budget: at 26.0s, 0.03 %: each call of 3 programs or functions is recorded\n"
		       "budget: at 27.0s, 0 %: operators are traced again\n"
		       "budget: counts lack the calls of functions while they were not traced\n"
		       "budget: about 1 % of the CPU time of process 1234\n"
		       "budget: about 5 % of the CPU time of several processes\n"
		       "budget: about 90 % of that for nrt_execute of process 1234: 126000 hits of 1.00us, emulated\n"
		       "budget: measured: hits times the cost of a probe of its kind on this machine, with caches 40 % cold (0 %: "
		       "warm; 100 %: 2 MB displaced before each)\n"),
		"%s", printed);
	free(printed);
	model_free(model);
}

Test(report_table_summary, more_changes_than_are_shown)
{
	struct model *model = model_with_calls(0x5000, 1, 1500000);
	char *printed, *line;
	unsigned int lines = 0;

	for (int i = 0; i < 25; i++)
		feed_budget(model, 0, 0.011 + i, "{\"action\":\"operators\",\"on\":false,\"cost\":3}");
	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 0);
	for (line = printed; (line = strstr(line, ": operators are not traced\n")); line++)
		lines++;
	cr_expect_eq(lines, 10);
	cr_expect_not_null(strstr(printed, "budget: at 10.0ms, 3 %: operators are not traced\n"),
			   "from the first call on:\n%s", printed);
	cr_expect_not_null(strstr(printed, "budget: and 15 more changes\n"));
	cr_expect_null(strstr(printed, "measured"));
	cr_expect_null(strstr(printed, "budget: counts"));
	free(printed);
	model_free(model);
}

/* Those that are detached and attached again at once have one line. */
Test(report_table_summary, functions_that_are_detached_together)
{
	struct model *model = model_with_calls(0x5000, 1, 1500000);
	char text[128], *printed;

	for (int i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "{\"action\":\"site\",\"on\":false,\"function\":\"f%d\"}", i);
		feed_budget(model, 7, 1.001 + i * 1e-6, text);
	}
	feed_budget(model, 8, 1.0011, "{\"action\":\"site\",\"on\":false,\"function\":\"f0\"}");
	feed_budget(model, 7, 11.001, "{\"action\":\"site\",\"on\":true,\"function\":\"f0\"}");
	feed_budget(model, 7, 11.0011, "{\"action\":\"site\",\"on\":true,\"function\":\"f1\"}");
	feed_budget(model, 7, 12.001, "{\"action\":\"site\",\"on\":false,\"function\":\"f0\"}");
	feed_budget(model, 7, 13, "{\"action\":\"site\",\"on\":false,\"function\":\"f1\"}");
	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 0);
	cr_assert_not_null(strstr(printed,
				  "budget: f0, f1 of process 7 were not traced or counted from 1.00s to 11.0s\n"
				  "budget: f2, f3, f4 of process 7 were not traced or counted from 1.00s on\n"
				  "budget: f0 of process 8 was not traced or counted from 1.00s on\n"
				  "budget: f0 of process 7 was not traced or counted from 12.0s on\n"
				  "budget: f1 of process 7 was not traced or counted from 13.0s on\n"
				  "budget: counts lack"),
			   "%s", printed);
	free(printed);
	for (int i = 0; i < 9; i++) {
		snprintf(text, sizeof(text), "{\"action\":\"site\",\"on\":false,\"function\":\"g%d\"}", i);
		feed_budget(model, 9, 20.001, text);
	}
	cr_assert_eq(model_flush(model), 0);
	printed = summary(model, 0);
	cr_assert_not_null(strstr(printed, "budget: g0, g1, g2 and 6 more functions of process 9 were not traced or "
					   "counted from 20.0s on\n"),
			   "%s", printed);
	free(printed);
	model_free(model);
}

/* What a recording has is shown, whatever it is. */
Test(report_table_summary, hostile_budgets)
{
	static const char *const ends[] = {
		"{\"budget\":7}",
		"{\"budget\":{\"percent\":1e400,\"targets\":7,\"sites\":{}}}",
		"{\"duration_ns\":9e17,\"budget\":{\"percent\":0.3,\"targets_ns\":-1,\"added_ns\":1e17,\"targets\":[7,null]}}",
		"{\"budget\":{\"percent\":2,\"sites\":[{\"tgid\":1e17,\"added_ns\":1,\"function\":\"\\u001b[2J\"}]}}",
	};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct model *model = model_with_calls(0x5000, 1, 1500000);
		char *printed, *json;

		feed_budget(model, 7, 1, "{\"action\":\"site\",\"on\":false,\"function\":\"\\u001b[2J\\n\"}");
		feed_text(model, XPT_RECORD_END, 0, 0, 2000000000, ends[i]);
		cr_assert_eq(model_flush(model), 0);
		printed = summary(model, 0);
		cr_expect_null(strchr(printed, 0x1b), "%s", printed);
		cr_expect_not_null(strstr(printed, " was not traced or counted from "));
		cr_assert_eq(summary_json(model, 0, &json), 0);
		cr_expect_null(strchr(json, '\n'));
		free(json);
		free(printed);
		model_free(model);
	}
}
