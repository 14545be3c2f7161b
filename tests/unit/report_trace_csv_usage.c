/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/trace/csv_text.h"
#include "report_csv.h"

#define ALL (USAGE_CPU | USAGE_MEMORY)

static const struct process_usage first = {
	.time = 1000000000,
	.have = ALL,
	.threads = 3,
	.cpu = 123456789,
	.user = 100000000,
	.system = 20000000,
	.resident = 4096,
	.peak = 8192,
	.anonymous = 1024,
	.swap = 0,
};

static void expect(const struct text *text, const char *expected)
{
	cr_assert_eq(text->error, 0);
	cr_assert(text->length == strlen(expected) && !memcmp(text->data, expected, text->length),
		  "'%.*s'\nis not\n'%s'", (int)text->length, text->data, expected);
}

Test(report_trace_csv_usage, to_the_letter)
{
	struct process_usage second = first, third;
	struct text text = { 0 };

	second.time += 500000000;
	second.cpu += 1250000000;
	second.user += 1250000000;
	second.resident = 1ull << 40;
	third = second;
	third.time += 100000000;
	setlocale(LC_ALL, "de_DE.UTF-8");
	usage_csv_heading(&text);
	usage_csv_row(&text, &first, NULL);
	usage_csv_row(&text, &second, &first);
	usage_csv_row(&text, &third, &second);
	expect(&text, "time_ns,threads,cpu_ns,cpu_user_ns,cpu_system_ns,cpu_percent,"
		      "rss_bytes,peak_rss_bytes,anonymous_bytes,swap_bytes\n"
		      "1000000000,3,123456789,100000000,20000000,N/A,4096,8192,1024,0\n"
		      "1500000000,3,1373456789,1350000000,20000000,250.000,1099511627776,8192,1024,0\n"
		      "1600000000,3,1373456789,1350000000,20000000,0.000,1099511627776,8192,1024,0\n");
	text_free(&text);
}

/* Field 5 of the row after first. */
static void expect_percent(struct process_usage second, struct process_usage before, const char *expected)
{
	struct text text = { 0 };
	struct csv csv;

	usage_csv_heading(&text);
	usage_csv_row(&text, &second, &before);
	csv = csv_read(text.data, text.length);
	cr_assert_eq(csv.count, 2);
	cr_assert_eq(csv.record[1].count, csv.record[0].count);
	cr_expect_str_eq(csv.record[1].field[5], expected);
	csv_free(&csv);
	text_free(&text);
}

Test(report_trace_csv_usage, percent)
{
	struct process_usage second = first;

	expect_percent(second, first, "N/A"); /* no time between them */
	second.time += 3;
	second.cpu += 1;
	expect_percent(second, first, "33.333");
	second.cpu += 1;
	expect_percent(second, first, "66.667");
	second.cpu += 1;
	expect_percent(second, first, "100.000");
	expect_percent(first, second, "N/A"); /* in the wrong order */
	second.have = USAGE_MEMORY;
	expect_percent(second, first, "N/A");
	second.have = ALL;
	second.time = UINT64_MAX;
	second.cpu = UINT64_MAX;
	expect_percent(second, (struct process_usage){ .have = ALL }, "100.000");
	second.cpu = first.cpu - 1;
	expect_percent(second, first, "N/A");
}

Test(report_trace_csv_usage, what_is_not_known_is_no_number)
{
	struct process_usage usage = first;
	struct text text = { 0 };

	usage.have = USAGE_CPU;
	usage_csv_row(&text, &usage, NULL);
	expect(&text, "1000000000,3,123456789,100000000,20000000,N/A,N/A,N/A,N/A,N/A\n");
	text_clear(&text, SIZE_MAX);
	usage.have = USAGE_MEMORY;
	usage_csv_row(&text, &usage, &first);
	expect(&text, "1000000000,3,N/A,N/A,N/A,N/A,4096,8192,1024,0\n");
	text_clear(&text, SIZE_MAX);
	usage.have = 0;
	usage_csv_row(&text, &usage, NULL);
	expect(&text, "1000000000,3,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A\n");
	text_free(&text);
}
