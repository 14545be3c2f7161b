/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/table/rows.h"

#include "model_driver_records.h"
#include "report_operators.h"

/* Frees the fixture. */
static char *print(struct fixture *f, size_t width)
{
	char *printed;
	size_t size;
	FILE *out = open_memstream(&printed, &size);

	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(summary_operators(f->model, out, width), 0);
	fclose(out);
	fixture_free(f);
	return printed;
}

static size_t count_lines(const char *text)
{
	size_t lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

/* The line with this number, from 0, has to be these words, however many blanks are between. */
static void expect_line(const char *printed, size_t number, const char *words)
{
	char line[512] = "", *to = line;

	while (number-- && printed)
		printed = strchr(printed, '\n') ? strchr(printed, '\n') + 1 : NULL;
	cr_assert_not_null(printed);
	for (; *printed != '\n' && to < line + sizeof(line) - 1; printed++) {
		if (*printed != ' ' || (to > line && to[-1] != ' '))
			*to++ = *printed;
	}
	while (to > line && to[-1] == ' ')
		to--;
	*to = '\0';
	cr_assert_str_eq(line, words);
}

static void feed_inference(struct fixture *f, __u64 start, __u64 scale)
{
	toy_operator(f, 7, 0x100, TOY_CLASS, start, start + 1000, start + 1000 + scale);
	toy_operator(f, 7, 0x200, TOY_CLASS, start, start + 50000, start + 50000 + 3 * scale);
	CALL_1(f, TOY_EXECUTE, 1, 7, start, start + 100000, 4, U(0x10), U(64), U(2), U(0));
}

Test(report_table_operators, none)
{
	struct fixture *f = fixture_operators();
	char *printed;

	toy_execute(f, 1, 0x10, 1000, 2000);
	printed = print(f, 0);
	cr_assert_str_eq(printed, "");
	free(printed);
}

Test(report_table_operators, figures)
{
	struct fixture *f = fixture_operators();
	char *printed;

	cr_assert_eq(feed_text(f, XPT_RECORD_PROCESS, 1, 0, 0, "{\"name\":\"node\"}"), 0);
	toy_node(f, 0x200, "\"name\":\"/fc/Gemm\",\"type\":\"Gemm\"");
	toy_load(f, 0x10, "model", 100, 1000);
	feed_inference(f, 1000000, 10000);
	feed_inference(f, 2000000, 10000);
	toy_execute(f, 1, 0x10, 2500000, 2600000); /* has no operators */
	/* Of no inference: after the others, with a share of their own. */
	toy_operator(f, 7, 0x400, TOY_INNER_CLASS, 0, 3000000, 3005000);
	printed = print(f, 0);
	expect_line(printed, 0, "operators of model, node (1): 2 inferences; no operator was seen in 1 more");
	expect_line(printed, 1, "OPERATOR TYPE COUNT SHARE MEAN P50 P99 STDDEV");
	/* 2 * 30 us of 2 * 100 us */
	expect_line(printed, 2, "/fc/Gemm Gemm 2 30.00% 30.00us 30.00us 30.00us 0ns");
	expect_line(printed, 3, "FusedGemm#1 FusedGemm 2 10.00% 10.00us 10.00us 10.00us 0ns");
	expect_line(printed, 4, "(in no operator) 2 60.00% 60.00us - - -");
	expect_line(printed, 5, "");
	expect_line(printed, 6, "operators of no known inference, node (1)");
	expect_line(printed, 8, "If#1 If 1 100.00% 5.000us 5.000us 5.000us 0ns");
	cr_assert_eq(count_lines(printed), 10);
	free(printed);
}

/* An operator inside another one is not counted for both. */
Test(report_table_operators, nested)
{
	struct fixture *f = fixture_operators();
	char *printed;
	struct call_record outer = call_make(TOY_OPERATOR, 1, 1, 1010000, 1090000, 4, U(0x300), U(TOY_INNER_CLASS),
					     U(0x10), U(1000000));
	struct call_record inner = call_make(TOY_OPERATOR, 1, 1, 1020000, 1050000, 4, U(0x100), U(TOY_CLASS), U(0x10),
					     U(1000000));

	toy_load(f, 0x10, "model", 100, 1000);
	outer.call.depth = 1;
	inner.call.depth = 2;
	cr_assert_eq(feed_call(f, inner), 0);
	cr_assert_eq(feed_call(f, outer), 0);
	toy_execute(f, 1, 0x10, 1000000, 1100000);
	printed = print(f, 0);
	expect_line(printed, 2, "If#1 If 1 50.00% 80.00us 80.00us 80.00us 0ns");
	expect_line(printed, 3, "FusedGemm#1 FusedGemm 1 30.00% 30.00us 30.00us 30.00us 0ns");
	expect_line(printed, 4, "(in no operator) 1 20.00% 20.00us - - -");
	free(printed);
}

enum { QUEUE, RUN, DONE };

static void feed_launch(struct fixture *f, __u64 start, __u64 job)
{
	struct call_record launch = call_make(TOY_LAUNCH, 1, 7, start, start + 500, 3, U(0x60), U(1), U(0));

	launch.call.depth = 2;
	launch.call.valid = 3;
	if (job)
		TARGET(f, QUEUE, 1, 7, start + 100, job);
	cr_assert_eq(feed_call(f, launch), 0);
}

static void feed_step(struct fixture *f, __u64 object, __u64 inference, __u64 start, __u64 end)
{
	struct call_record record = call_make(TOY_OPERATOR, 1, 7, start, end, 4, object, U(TOY_CLASS), U(0x10),
					      inference);

	record.call.depth = 1;
	cr_assert_eq(feed_call(f, record), 0);
}

static struct fixture *fixture_launches(__u64 jobs)
{
	struct fixture *f = fixture_operators();

	driver(f, 0, "one", XPT_PAIRING_UNIQUE, 64, "");
	driver_event(f, QUEUE, 0, XPT_EVENT_QUEUE, true, "k");
	driver_event(f, RUN, 0, XPT_EVENT_RUN, false, "k");
	driver_event(f, DONE, 0, XPT_EVENT_DONE, false, "k");
	toy_load(f, 0x10, "model", 100, 1000);
	for (__u64 i = 0; i < 2; i++) {
		const __u64 start = (i + 1) * 1000000;

		feed_launch(f, start + 2000, jobs * (2 * i + 1));
		feed_launch(f, start + 3000, jobs * (2 * i + 2));
		feed_step(f, 0x100, start, start + 1000, start + 41000);
		feed_step(f, 0x200, start, start + 50000, start + 60000);
		CALL_1(f, TOY_EXECUTE, 1, 7, start, start + 100000, 4, U(0x10), U(64), U(2), U(0));
	}
	return f;
}

/* 5 us and 7 us of the first inference, 5 us of the second one behind its end; the fourth job is not seen to end. */
Test(report_table_operators, device_time)
{
	struct fixture *f = fixture_launches(1);
	char *printed;

	OTHER(f, RUN, 1010000, U(1));
	OTHER(f, DONE, 1015000, U(1));
	OTHER(f, RUN, 1015000, U(2));
	OTHER(f, DONE, 1022000, U(2));
	OTHER(f, RUN, 2200000, U(3));
	OTHER(f, DONE, 2205000, U(3));
	OTHER(f, RUN, 2206000, U(4));
	printed = print(f, 0);
	expect_line(printed, 1, "OPERATOR TYPE COUNT SHARE MEAN P50 P99 STDDEV LAUNCHES DEVICE DEVICE/RUN");
	expect_line(printed, 2, "FusedGemm#1 FusedGemm 2 40.00% 40.00us 40.00us 40.00us 0ns 4 17.00us 8.500us");
	expect_line(printed, 3, "FusedGemm#2 FusedGemm 2 10.00% 10.00us 10.00us 10.00us 0ns 0 - -");
	expect_line(printed, 4, "(in no operator) 2 50.00% 50.00us - - - - - -");
	free(printed);
}

/* What a column has nothing to say about, it does not say. */
Test(report_table_operators, launches_without_device_times)
{
	char *printed = print(fixture_launches(0), 0);

	expect_line(printed, 1, "OPERATOR TYPE COUNT SHARE MEAN P50 P99 STDDEV LAUNCHES");
	expect_line(printed, 2, "FusedGemm#1 FusedGemm 2 40.00% 40.00us 40.00us 40.00us 0ns 4");
	expect_line(printed, 4, "(in no operator) 2 50.00% 50.00us - - - -");
	free(printed);
}

Test(report_table_operators, many_are_cut)
{
	struct fixture *f = fixture_operators();
	char *printed;

	toy_load(f, 0x10, "model", 100, 1000);
	for (__u64 i = 0; i < 45; i++)
		toy_operator(f, 1, 0x1000 + i * 16, TOY_CLASS, 1000000, 1000000 + i * 1000, 1000500 + i * 1000);
	toy_execute(f, 1, 0x10, 1000000, 1100000);
	printed = print(f, 0);
	/* Title, heading, 40 operators, what is in none, how many more, an empty line. */
	cr_assert_eq(count_lines(printed), 45);
	expect_line(printed, 43, "(5 more; see the trace's metadata)");
	/* All 45 count: 45 * 0.5 us of 100 us. */
	expect_line(printed, 42, "(in no operator) 1 77.50% 77.50us - - -");
	free(printed);
}

Test(report_table_operators, narrow_terminals_and_hostile_names)
{
	struct fixture *f = fixture_operators();
	char *printed, *line;

	toy_load(f, 0x10, "model", 100, 1000);
	toy_node(f, 0x100, "\"name\":\"evil\\u001b[2J\\nname with more than fits on a narrow terminal at all\"");
	toy_operator(f, 1, 0x100, TOY_CLASS, 1000000, 1001000, 1002000);
	toy_execute(f, 1, 0x10, 1000000, 1100000);
	printed = print(f, 60);
	cr_assert_null(strchr(printed, '\033'));
	cr_assert_eq(count_lines(printed), 5);
	cr_assert_not_null(strstr(printed, "evil\\x1b"));
	for (line = printed; *line; line = strchr(line, '\n') + 1)
		cr_assert(line == printed || strcspn(line, "\n") <= 60 + 4, "%s", line);
	free(printed);
}

/* A mean without what probes took of it; what is measured may be more than all. */
Test(report_table_operators, net)
{
	struct fixture *f = fixture_operators();
	struct call_record record;
	char *printed;

	cr_assert_eq(feed_text(f, XPT_RECORD_COST, 0, 0, TOY_OPERATOR, "{\"cost_ns\":7000,\"inside_ns\":4000}"), 0);
	cr_assert_eq(feed_text(f, XPT_RECORD_COST, 0, 0, TOY_EXECUTE, "{\"cost_ns\":5000,\"inside_ns\":2000}"), 0);
	toy_load(f, 0x10, "model", 100, 1000);
	for (__u64 start = 1000000; start <= 2000000; start += 1000000) {
		for (__u64 object = 1; object <= 2; object++) {
			record = call_make(TOY_OPERATOR, 1, 7, start + object * 20000,
					   start + object * 20000 + (object == 1 ? 10000 : 3000), 4, object,
					   U(TOY_CLASS), U(0x10), start);
			record.call.depth = 1;
			cr_assert_eq(feed_call(f, record), 0);
		}
		CALL_1(f, TOY_EXECUTE, 1, 7, start, start + 100000, 4, U(0x10), U(64), U(2), U(0));
	}
	printed = print(f, 0);
	expect_line(printed, 1, "OPERATOR TYPE COUNT SHARE MEAN NET P50 P99 STDDEV");
	expect_line(printed, 2, "FusedGemm#1 FusedGemm 2 10.00% 10.00us 6.000us 10.00us 10.00us 0ns");
	expect_line(printed, 3, "FusedGemm#2 FusedGemm 2 3.00% 3.000us 0ns 3.000us 3.000us 0ns");
	/* 100 - 13 us; without 2 us of the inference's own, and 2 * (7 - 4) us around the operators. */
	expect_line(printed, 4, "(in no operator) 2 87.00% 87.00us 79.00us - - -");
	free(printed);
}
