/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/latency/latency.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "report_csv.h"

#define START 5000000000ull
#define START_REALTIME 1700000000123456789ull

static const struct xpt_sample samples[] = {
	{
		.size = sizeof(struct xpt_sample),
		.time = { START + 1000, START + 3500, START + 7000, START + 15000, START + 31000, START + 1063999 },
		.enqueued = START + 9000,
		.bytes = 4096,
		.has_status = 1,
		.status_name = "CL_SUCCESS",
		.has_core = 1,
		.core = -1,
		.tid = 77,
		.in_queue = 12,
		.has_in_queue = 1,
		.has_states = 1,
		.cpu_time = 1000000,
		.waited_time = 60999,
		.blocked_time = 2000,
		.jobs = 3,
		.device_time = 40500,
		.queue_time = 7001,
	},
	/* Began before the interval; nothing else is known. */
	{ .size = sizeof(struct xpt_sample),
	  .time = { START - 2000000000, 0, 0, 0, 0, START + 5 },
	  .tid = 78,
	  .has_status = 1,
	  .status = -5,
	  .jobs = 1 },
	{ .size = sizeof(struct xpt_sample), .tid = 79 },
};

static struct xpt_program_report make_program(void)
{
	struct xpt_program_report program = {
		.id = 3,
		.pid = 1234,
		.process = "server",
		.runtime = "opencl",
		.name = "resnet50",
		.handle = 0x7f12ab,
		.generation = 2,
		.sample_every = 4,
		.requested = 100,
		.skipped = 7,
		.samples = samples,
		.sample_count = 3,
		.inferences = 12,
		.taken = 3,
		.lost = 1,
		.failed = 1,
		.latencies = xpt_latencies_create(),
	};

	for (size_t i = 0; i < 3; i++)
		xpt_latencies_add((struct xpt_latencies *)program.latencies, &samples[i]);
	return program;
}

static struct xpt_profile_report make_report(const struct xpt_program_report *programs, size_t count)
{
	return (struct xpt_profile_report){
		.size = sizeof(struct xpt_profile_report),
		.start = START,
		.end = START + 500000000,
		.start_realtime = START_REALTIME,
		.end_realtime = START_REALTIME + 500000000,
		.programs = programs,
		.program_count = count,
	};
}

static void free_program(struct xpt_program_report *program)
{
	xpt_latencies_free((struct xpt_latencies *)program->latencies);
}

static void get_samples(struct text *text, const struct xpt_profile_report *report, size_t piece)
{
	struct latency_position position = { 0 };

	while (latency_samples(text, report, &position, text->length + piece))
		;
	cr_assert_eq(text->error, 0);
}

static void get_summary(struct text *text, const struct xpt_profile_report *report, size_t piece)
{
	struct latency_position position = { 0 };

	latency_summary_heading(text);
	while (latency_summary(text, report, &position, text->length + piece))
		;
	cr_assert_eq(text->error, 0);
}

static void expect(const struct text *text, const char *expected)
{
	cr_assert(text->length == strlen(expected) && !memcmp(text->data, expected, text->length),
		  "'%.*s'\nis not\n'%s'", (int)text->length, text->data, expected);
}

static const char whole[] =
	"program,3,name,resnet50,generation,2\n"
	"process,1234,name,server,runtime,opencl,handle,0x7f12ab\n"
	"samples,3,requested,100,sampleEvery,4,skipped,7\n"
	"inferences,12,lost,1,start,1700000000.123456789,end,1700000000.623456789,ended,interval,released,no\n"
	"Sample,queueDepth,numInfInQueue,devInfPerSec,devExec(Us),devInWaitTime(Us),devOutWaitTime(Us),"
	"hostRoundTrip(Us),enqTime(Us),preProcTime(Us),submitTime(Us),execTotal(Us),exectoVc(Us),execToComplete(Us),"
	"postProc(Us),totalRoundtripTime(Us),prefillTokens,decodeTokens,tokensPerSec,firstTokenTime(Us),"
	"outputTokenTime(Us),cpuTime(Us),waitedTime(Us),blockedTime(Us),startTime(S),thread,core,bytes,status,jobs,"
	"deviceTime(Us),queueTime(Us)\n"
	"1,N/A,12,62500.000,16.000,N/A,N/A,1060.499,8.000,2.500,3.500,27.500,8.000,16.000,1032.999,1062.999,"
	"N/A,N/A,N/A,N/A,N/A,1000.000,60.999,2.000,"
	"1700000000.123457789,77,-1,4096,CL_SUCCESS,3,40.500,7.001\n"
	"2,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,2000000.005,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,1699999998.123456789,78,N/A,N/A,-5,"
	"1,N/A,N/A\n"
	"3,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,79,N/A,N/A,N/A,N/A,N/A,N/A\n";

Test(report_latency_latency, samples_to_the_letter)
{
	struct xpt_program_report program = make_program();
	struct xpt_profile_report report = make_report(&program, 1);
	struct text text = { 0 };

	get_samples(&text, &report, SIZE_MAX / 2);
	expect(&text, whole);
	text_free(&text);
	free_program(&program);
}

Test(report_latency_latency, pieces_of_any_size_give_the_same)
{
	struct xpt_program_report programs[3] = { make_program(), make_program(), make_program() };
	struct xpt_profile_report report = make_report(programs, 3);
	struct text all = { 0 }, pieces = { 0 };
	size_t piece;

	programs[1].sample_count = 0;
	get_samples(&all, &report, SIZE_MAX / 2);
	for (piece = 1; piece < 2000; piece += 37) {
		get_samples(&pieces, &report, piece);
		cr_assert_eq(pieces.length, all.length, "in pieces of %zu", piece);
		cr_assert_arr_eq(pieces.data, all.data, all.length);
		text_clear(&pieces, SIZE_MAX);
	}
	text_clear(&all, SIZE_MAX);
	get_summary(&all, &report, SIZE_MAX / 2);
	for (piece = 1; piece < 2000; piece += 37) {
		get_summary(&pieces, &report, piece);
		cr_assert_eq(pieces.length, all.length);
		cr_assert_arr_eq(pieces.data, all.data, all.length);
		text_clear(&pieces, SIZE_MAX);
	}
	text_free(&all);
	text_free(&pieces);
	for (size_t i = 0; i < 3; i++)
		free_program(&programs[i]);
}

Test(report_latency_latency, a_program_without_samples_has_its_header)
{
	struct xpt_program_report program = make_program();
	struct xpt_profile_report report = make_report(&program, 1);
	struct text text = { 0 };
	struct csv csv;

	program.sample_count = 0;
	program.requested = 0;
	program.released = 1;
	report.end_reason = XPT_PROFILE_RELEASED;
	get_samples(&text, &report, SIZE_MAX / 2);
	csv = csv_read(text.data, text.length);
	cr_assert_eq(csv.count, 5);
	cr_assert_str_eq(csv.record[2].field[3], "N/A", "no limit is no number");
	cr_assert_str_eq(csv.record[3].field[9], "released");
	cr_assert_str_eq(csv.record[3].field[10], "released");
	cr_assert_str_eq(csv.record[3].field[11], "yes");
	csv_free(&csv);
	text_free(&text);
	free_program(&program);
}

Test(report_latency_latency, how_it_ended)
{
	static const char *const names[] = { "interval", "complete", "stopped", "released" };
	struct xpt_program_report program = make_program();
	struct xpt_profile_report report = make_report(&program, 1);

	for (int end = XPT_PROFILE_INTERVAL; end <= XPT_PROFILE_RELEASED; end++) {
		struct text text = { 0 };
		struct csv csv;

		report.end_reason = end;
		get_samples(&text, &report, SIZE_MAX / 2);
		csv = csv_read(text.data, text.length);
		cr_assert_str_eq(csv.record[3].field[9], names[end]);
		csv_free(&csv);
		text_free(&text);
	}
	free_program(&program);
}

Test(report_latency_latency, nothing_comes_of_no_programs)
{
	struct xpt_profile_report report = make_report(NULL, 0);
	struct latency_position position = { 0 };
	struct text text = { 0 };

	cr_assert_not(latency_samples(&text, &report, &position, 1));
	cr_assert_not(latency_summary(&text, &report, &position, 1));
	cr_assert_eq(text.length, 0);
	text_free(&text);
}

/* What the program's name reads as in each format. */
static void expect_name(const char *name, const char *expected)
{
	struct xpt_program_report program = make_program();
	struct xpt_profile_report report = make_report(&program, 1);
	struct xpt_sample sample = samples[0];
	struct text text = { 0 };
	struct csv csv;

	sample.status_name = name;
	program.samples = &sample;
	program.sample_count = 1;
	program.name = program.process = program.runtime = name;
	get_samples(&text, &report, SIZE_MAX / 2);
	csv = csv_read(text.data, text.length);
	cr_assert_eq(csv.count, 6);
	cr_assert_str_eq(csv.record[0].field[3], expected, "%s is not %s", csv.record[0].field[3], expected);
	cr_assert_eq(csv.record[0].count, 6);
	cr_assert_str_eq(csv.record[1].field[3], expected);
	cr_assert_str_eq(csv.record[1].field[5], expected);
	cr_assert_eq(csv.record[1].count, 8);
	cr_assert_str_eq(csv_get(&csv, 4, 5, "status"), expected);
	csv_free(&csv);
	text_clear(&text, SIZE_MAX);
	get_summary(&text, &report, SIZE_MAX / 2);
	csv = csv_read(text.data, text.length);
	cr_assert_eq(csv.count, 2);
	cr_assert_str_eq(csv_get(&csv, 0, 1, "name"), expected);
	cr_assert_str_eq(csv_get(&csv, 0, 1, "process"), expected);
	cr_assert_str_eq(csv_get(&csv, 0, 1, "runtime"), expected);
	csv_free(&csv);
	text_free(&text);
	free_program(&program);
}

Test(report_latency_latency, names_come_back_from_their_quotes)
{
	expect_name("", "");
	expect_name("plain name", "plain name");
	expect_name("a,b", "a,b");
	expect_name("\"", "\"");
	expect_name("say \"no\", twice", "say \"no\", twice");
	expect_name("two\nlines\r\nand one", "two\nlines\r\nand one");
	expect_name("ends with\n", "ends with\n");
	expect_name("x\n1,N/A,\"", "x\n1,N/A,\"");
	expect_name("gr\xc3\xb6\xc3\x9f"
		    "e, \xe4\xb8\xad",
		    "gr\xc3\xb6\xc3\x9f"
		    "e, \xe4\xb8\xad");
}

Test(report_latency_latency, control_bytes_are_shown_not_sent)
{
	expect_name("\x1b]0;title\x07", "\\x1b]0;title\\x07");
	expect_name("a\tb\x7f", "a\\x09b\\x7f");
	expect_name("\xff\xfe,\xc3", "\\xff\\xfe,\\xc3");
	expect_name("\xc2\x9b"
		    "31m",
		    "\\u{9b}31m");
	expect_name("abc\xe2\x80\xae"
		    "def\"",
		    "abc\\u{202e}def\"");
}

Test(report_latency_latency, formulas_are_text)
{
	expect_name("=1+1", "'=1+1");
	expect_name("=cmd|' /C calc'!A0,\"", "'=cmd|' /C calc'!A0,\"");
	expect_name("+1", "'+1");
	expect_name("-model", "'-model");
	expect_name("@SUM(A1)", "'@SUM(A1)");
	expect_name("  =1", "'  =1");
	expect_name("\r=1", "'\r=1");
	expect_name("\n=1", "'\n=1");
	expect_name("\t=1", "\\x09=1");
	expect_name("\xef\xbc\x9d"
		    "1",
		    "'\xef\xbc\x9d"
		    "1");
	/* One apostrophe is always ours, so that the name can be distinguished. */
	expect_name("'=1", "''=1");
	expect_name("'quoted'", "'quoted'");
	expect_name("a=1", "a=1");
	expect_name("\xef\xbc", "\\xef\\xbc");
}

Test(report_latency_latency, any_bytes_give_fields_that_are_safe)
{
	char name[40];
	unsigned int seed = 1;

	for (int round = 0; round < 3000; round++) {
		struct xpt_program_report program = make_program();
		struct xpt_profile_report report = make_report(&program, 1);
		struct text text = { 0 };
		struct csv csv;
		size_t i;

		for (i = 0; i + 1 < sizeof(name); i++)
			name[i] = rand_r(&seed) % 3 ? rand_r(&seed) : "\",\r\n='"[rand_r(&seed) % 6];
		name[i] = '\0';
		program.name = name;
		program.sample_count = 0;
		get_samples(&text, &report, SIZE_MAX / 2);
		for (i = 0; i < text.length; i++)
			cr_assert((unsigned char)text.data[i] >= 0x20 || strchr("\r\n", text.data[i]));
		csv = csv_read(text.data, text.length);
		cr_assert_eq(csv.count, 5);
		cr_assert_eq(csv.record[0].count, 6);
		cr_assert_null(strchr("=+-@\r\n", csv.record[0].field[3][0] ?: 'x'));
		csv_free(&csv);
		text_free(&text);
		free_program(&program);
	}
}

static double number(const struct csv *csv, const char *column, const char *figure)
{
	char name[64], *end;
	const char *field;
	double value;

	snprintf(name, sizeof(name), "%s_%s", column, figure);
	field = csv_get(csv, 0, 1, name);
	value = strtod(field, &end);
	cr_assert(*field && !*end, "%s is '%s'", name, field);
	return value;
}

Test(report_latency_latency, summary_has_a_row_a_program)
{
	static const char *const figures[] = { "min", "mean", "p50", "p90", "p95", "p99", "max", "stddev" };
	struct xpt_program_report programs[2] = { make_program(), make_program() };
	struct xpt_profile_report report = make_report(programs, 2);
	struct text text = { 0 };
	struct csv csv;

	programs[1].requested = 0;
	get_summary(&text, &report, SIZE_MAX / 2);
	csv = csv_read(text.data, text.length);
	cr_assert_eq(csv.count, 3);
	cr_assert_eq(csv.record[0].count, 14 + 23 * 9);
	cr_assert_eq(csv.record[1].count, csv.record[0].count);
	cr_assert_str_eq(csv_get(&csv, 0, 1, "reportStart"), "1700000000.123456789");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "reportEnd"), "1700000000.623456789");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "program"), "3");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "pid"), "1234");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "handle"), "0x7f12ab");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "samples"), "3");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "requested"), "100");
	cr_assert_str_eq(csv_get(&csv, 0, 2, "requested"), "N/A");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "inferences"), "12");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "lost"), "1");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "failed"), "1");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "rate"), "24.000", "12 in half a second");
	/* Two samples had the times of the whole: 1062.999 and 2000000.005 us. */
	cr_assert_str_eq(csv_get(&csv, 0, 1, "totalRoundtripTime(Us)_count"), "2");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "totalRoundtripTime(Us)_min"), "1062.999");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "totalRoundtripTime(Us)_max"), "2000000.005");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "totalRoundtripTime(Us)_mean"), "1000531.502");
	cr_assert_float_eq(number(&csv, "totalRoundtripTime(Us)", "stddev"), (2000000.005 - 1062.999) / sqrt(2), 0.001);
	cr_assert_str_eq(csv_get(&csv, 0, 1, "numInfInQueue_p50"), "12");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "numInfInQueue_mean"), "12.000");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "devExec(Us)_p99"), "16.000");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "devExec(Us)_stddev"), "N/A", "one sample does not deviate");
	cr_assert_str_eq(csv_get(&csv, 0, 1, "queueDepth_count"), "0");
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		char name[64];

		snprintf(name, sizeof(name), "queueDepth_%s", figures[i]);
		cr_assert_str_eq(csv_get(&csv, 0, 1, name), "N/A");
	}
	csv_free(&csv);
	text_free(&text);
	free_program(&programs[0]);
	free_program(&programs[1]);
}

Test(report_latency_latency, an_interval_without_length_has_no_rate)
{
	struct xpt_program_report program = make_program();
	struct xpt_profile_report report = make_report(&program, 1);
	struct text text = { 0 };
	struct csv csv;

	report.end = report.start;
	get_summary(&text, &report, SIZE_MAX / 2);
	report.end = report.start + 1;
	program.inferences = UINT64_MAX;
	get_summary(&text, &report, SIZE_MAX / 2);
	csv = csv_read(text.data, text.length);
	cr_assert_str_eq(csv_get(&csv, 0, 1, "rate"), "N/A");
	cr_assert_str_eq(csv_get(&csv, 2, 3, "rate"), "N/A", "beyond what can be counted");
	csv_free(&csv);
	text_free(&text);
	free_program(&program);
}

/* Clocks that can't be right must not give a time that looks right. */
Test(report_latency_latency, start_times_outside_of_time)
{
	struct xpt_program_report program = make_program();
	struct xpt_profile_report report = make_report(&program, 1);
	struct xpt_sample hostile[2] = { { .size = sizeof(hostile[0]), .time = { 1 } },
					 { .size = sizeof(hostile[1]), .time = { UINT64_MAX } } };
	struct text text = { 0 };
	struct csv csv;

	program.samples = hostile;
	program.sample_count = 2;
	report.start_realtime = 100;
	get_samples(&text, &report, SIZE_MAX / 2);
	report.start = 50;
	report.start_realtime = UINT64_MAX - 10;
	get_samples(&text, &report, SIZE_MAX / 2);
	csv = csv_read(text.data, text.length);
	cr_assert_str_eq(csv_get(&csv, 4, 5, "startTime(S)"), "N/A", "before 1970");
	cr_assert_str_eq(csv_get(&csv, 4, 6, "startTime(S)"), "18446744068.709551715");
	cr_assert_str_eq(csv_get(&csv, 11, 13, "startTime(S)"), "N/A", "beyond 64 bits");
	cr_assert_str_eq(csv_get(&csv, 11, 12, "startTime(S)"), "18446744073.709551556");
	csv_free(&csv);
	text_free(&text);
	free_program(&program);
}

Test(report_latency_latency, out_of_memory_ends_it)
{
	struct xpt_program_report program = make_program();
	struct xpt_profile_report report = make_report(&program, 1);
	struct latency_position position = { 0 };
	struct text text = { .error = -ENOMEM };

	cr_assert_not(latency_samples(&text, &report, &position, SIZE_MAX));
	cr_assert_not(latency_summary(&text, &report, &position, SIZE_MAX));
	cr_assert_eq(text.error, -ENOMEM);
	text_free(&text);
	free_program(&program);
}

Test(report_latency_latency, counters_are_the_last_columns)
{
	static const struct xpt_report_counter counters[] = { { "xe/engine-active-ticks,gt=1/", "", "device" },
							      { "power/energy-pkg/", "J", "device" },
							      { "task-clock", "ns", "thread" },
							      { "page-faults", "", "thread" } };
	struct xpt_sample counted[] = { { .size = sizeof(counted[0]), .tid = 1, .counter = { 12, 0.25, 100, 3 } },
					{ .size = sizeof(counted[1]), .tid = 2, .counter = { NAN, -1e-7, 200, 4 } } };
	struct xpt_program_report program = make_program();
	const struct xpt_profile_report report = {
		.programs = &program, .program_count = 1, .counters = counters, .counter_count = 4
	};
	struct latency_position position = { 0 };
	struct text text = { 0 };

	program.samples = counted;
	program.sample_count = 2;
	cr_assert(!latency_samples(&text, &report, &position, SIZE_MAX));
	text_bytes(&text, "", 1);
	cr_assert_not_null(strstr(text.data, ",queueTime(Us),\"xe/engine-active-ticks,gt=1/(of device)\","
					     "power/energy-pkg/(J of device),task-clock(ns),page-faults\n"),
			   "%s", text.data);
	cr_assert_not_null(strstr(text.data, "N/A,N/A,12,0.25,100,3\n"), "%s", text.data);
	cr_assert_not_null(strstr(text.data, "N/A,N/A,N/A,-1e-07,200,4\n"), "%s", text.data);
	text_free(&text);
	xpt_latencies_free((struct xpt_latencies *)program.latencies);
}
