/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/latency/latency.h"

#include <math.h>

#include "report_csv.h"
#include "report_profile.h"

#define START 5000000000ull

static const struct xpt_sample samples[] = {
	{
		.size = sizeof(struct xpt_sample),
		.number = 7,
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
		.jobs = 3,
		.device_time = 40500,
		.queue_time = 7001,
		.counter = { 1.5, NAN },
	},
	/* Began before the interval; nothing else is known. */
	{ .size = sizeof(struct xpt_sample),
	  .number = 8,
	  .time = { START - 2000000000, 0, 0, 0, 0, START + 5 },
	  .tid = 78,
	  .has_status = 1,
	  .status = -5,
	  .failed = 1,
	  .counter = { NAN, NAN } },
};

static const struct xpt_report_counter counters[] = { { "power/energy-pkg/", "J", "" }, { "never,known", "", "" } };

struct made {
	struct xpt_program_report program;
	struct xpt_profile_report report;
};

static void make(struct made *made, const struct xpt_sample *from, size_t count)
{
	*made = (struct made){
		.program = { .id = 3,
			     .pid = 1234,
			     .process = "server",
			     .runtime = "opencl",
			     .name = "two\nlines, \"quoted\"",
			     .handle = 0x7f12ab,
			     .samples = from,
			     .sample_count = count,
			     .inferences = 12,
			     .taken = count,
			     .latencies = xpt_latencies_create() },
		.report = { .size = sizeof(made->report),
			    .start = START,
			    .end = START + 500000000,
			    .start_realtime = 1700000000123456789ull,
			    .end_realtime = 1700000000623456789ull,
			    .program_count = 1,
			    .counters = counters,
			    .counter_count = 2,
			    .host = "box" },
	};
	made->report.programs = &made->program;
	for (size_t i = 0; i < count; i++)
		xpt_latencies_add((struct xpt_latencies *)made->program.latencies, &from[i]);
}

static void expect_written(struct made *made, enum xpt_report_format format, const char *expected)
{
	make_folder();
	int file = open(in_folder("out"), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	cr_assert_eq(xpt_profile_report_write(&made->report, format, file), 0);
	close(file);
	expect_content(in_folder("out"), expected);
	remove_folder();
	xpt_latencies_free((struct xpt_latencies *)made->program.latencies);
}

#define NAME "\"two\\x0alines, \"\"quoted\"\"\""

Test(report_latency_flat_csv, rows_to_the_letter)
{
	struct made made;

	make(&made, samples, 2);
	expect_written(
		&made, XPT_FORMAT_CSV,
		"host,pid,process,runtime,program,start,duration_us,enqueue_us,prepare_us,submit_us,submit_to_run_us,"
		"device_us,complete_us,in_queue,jobs,jobs_device_us,jobs_queue_us,thread,core,bytes,status,failed,"
		"inference,program_id,handle,power/energy-pkg/(J)\n"
		"box,1234,server,opencl," NAME ",2023-11-14T22:13:20.123457789Z,1062.999,8.000,2.500,3.500,8.000,"
		"16.000,1032.999,12,3,40.500,7.001,77,-1,4096,CL_SUCCESS,0,7,3,0x7f12ab,1.5\n"
		"box,1234,server,opencl," NAME ",2023-11-14T22:13:18.123456789Z,2000000.005,,,,,,,,,,,78,,,-5,1,8,3,"
		"0x7f12ab,\n");
}

Test(report_latency_flat_csv, columns_without_values_are_left_out)
{
	struct made made;

	make(&made, samples + 1, 1);
	expect_written(
		&made, XPT_FORMAT_CSV,
		"host,pid,process,runtime,program,start,duration_us,thread,status,failed,inference,program_id,handle\n"
		"box,1234,server,opencl," NAME ",2023-11-14T22:13:18.123456789Z,2000000.005,78,-5,1,8,3,0x7f12ab\n");
}

Test(report_latency_flat_csv, programs_to_the_letter)
{
	struct made made;

	make(&made, samples + 1, 1);
	expect_written(&made, XPT_FORMAT_CSV_SUMMARY,
		       "host,pid,process,runtime,program,start,end,inferences,samples,lost,failed,rate_per_s,program_id,"
		       "handle,duration_us_count,duration_us_min,duration_us_mean,duration_us_p50,duration_us_p90,"
		       "duration_us_p95,duration_us_p99,duration_us_max,duration_us_stddev\n"
		       "box,1234,server,opencl," NAME
		       ",2023-11-14T22:13:20.123456789Z,2023-11-14T22:13:20.623456789Z,12,1,0,"
		       "0,24.000,3,0x7f12ab,1,2000000.005,2000000.005,2000000.005,2000000.005,2000000.005,2000000.005,"
		       "2000000.005,\n");
}

Test(report_latency_flat_csv, reports_that_follow_one_another_have_one_header)
{
	struct made first, second;
	struct text text = { 0 };
	struct csv csv;

	make(&first, samples + 1, 1);
	make(&second, samples, 2);
	for (int summary = 0; summary < 2; summary++) {
		flat_columns columns = flat_report_columns(&first.report, summary, true);
		struct latency_position position = { 0 };

		cr_assert_eq(columns, flat_report_columns(&second.report, summary, true));
		flat_report_header(&text, &first.report, summary, columns);
		while (flat_report(&text, &first.report, summary, columns, &position, text.length + 1))
			;
		position = (struct latency_position){ 0 };
		while (flat_report(&text, &second.report, summary, columns, &position, text.length + 1))
			;
		csv = csv_read(text.data, text.length);
		cr_assert_eq(csv.count, summary ? 3 : 4);
		for (size_t i = 1; i < csv.count; i++)
			cr_assert_eq(csv.record[i].count, csv.record[0].count);
		if (!summary)
			cr_assert_str_eq(csv_get(&csv, 0, 2, "jobs"), "3");
		csv_free(&csv);
		text_clear(&text, SIZE_MAX);
	}
	text_free(&text);
	xpt_latencies_free((struct xpt_latencies *)first.program.latencies);
	xpt_latencies_free((struct xpt_latencies *)second.program.latencies);
}

Test(report_latency_flat_csv, no_sample_gives_a_header_only)
{
	struct made made;

	make(&made, NULL, 0);
	expect_written(&made, XPT_FORMAT_CSV, "host,pid,process,runtime,program\n");
}
