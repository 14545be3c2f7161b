/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace/csv_text.h"

#include <criterion/criterion.h>

static struct operator_buffer hold;

static void add(__u32 tid, __u64 inference, __u64 start, __u64 end, const char *label)
{
	const struct event_call call = { .tgid = 1, .tid = tid, .inference = inference, .start = start, .end = end };

	cr_assert_eq(operator_buffer_add(&hold, &call, label), 0);
}

/* Takes an inference; its labels have to be these, with blanks between. */
static void expect(__u32 tid, __u64 inference, const char *labels)
{
	struct held_operators *held = operator_buffer_take(&hold, 1, tid, inference);
	char found[256] = "";

	for (size_t i = 0; held && i < held->count; i++) {
		strcat(found, i ? " " : "");
		strcat(found, held->labels.data + held->op[i].label);
	}
	cr_assert_str_eq(found, labels);
	cr_assert(!*labels == !held);
	held_operators_free(held);
}

static void empty(void)
{
	operator_buffer_free(&hold);
	cr_assert_eq(hold.bytes, 0);
}

TestSuite(report_trace_csv_text_operator_buffer, .fini = empty);

Test(report_trace_csv_text_operator_buffer, in_order_of_their_begin)
{
	operator_buffer_init(&hold);
	add(1, 10, 12, 13, "inner");
	add(1, 10, 14, 14, "instant");
	add(1, 10, 14, 16, "inner2");
	add(1, 10, 12, 17, "outer");
	add(1, 10, 18, 20, "last");
	expect(1, 10, "outer inner inner2 instant last");
	expect(1, 10, "");
	cr_assert_eq(hold.bytes, 0);
}

Test(report_trace_csv_text_operator_buffer, inferences_are_kept_apart)
{
	operator_buffer_init(&hold);
	add(1, 10, 11, 12, "a");
	add(2, 10, 11, 12, "b");
	add(1, 20, 21, 22, "c");
	expect(2, 10, "b");
	expect(3, 10, "");
	expect(1, 20, "c");
	expect(1, 10, "a");
	add(1, 10, 11, 12, "again");
	expect(1, 10, "again");
}

Test(report_trace_csv_text_operator_buffer, oldest_inferences_go)
{
	__u64 i;

	operator_buffer_init(&hold);
	for (i = 1; i <= OPERATOR_BUFFER_INFERENCES + 3; i++) {
		add(1, i, i, i, "a");
		add(1, i, i, i, "b");
	}
	cr_assert_eq(hold.inferences.map.count, OPERATOR_BUFFER_INFERENCES);
	cr_assert_eq(hold.dropped, 6);
	expect(1, 3, "");
	expect(1, 4, "a b");
	expect(1, OPERATOR_BUFFER_INFERENCES + 3, "a b");
	cr_assert_eq(hold.dropped, 6);
}

Test(report_trace_csv_text_operator_buffer, bytes_are_bounded)
{
	char label[1000];
	__u64 i, added = 100000, kept = 0;

	operator_buffer_init(&hold);
	memset(label, 'x', sizeof(label) - 1);
	label[sizeof(label) - 1] = '\0';
	for (i = 0; i < added; i++) {
		add(1, 1 + i / 1000, i, i, label);
		cr_assert_lt(hold.bytes, OPERATOR_BUFFER_BYTES + 100000);
	}
	for (i = 0; i <= added / 1000; i++) {
		struct held_operators *held = operator_buffer_take(&hold, 1, 1, i);

		kept += held ? held->count : 0;
		held_operators_free(held);
	}
	cr_assert_eq(kept + hold.dropped, added);
	cr_assert_gt(kept, OPERATOR_BUFFER_BYTES / 2 / sizeof(label));
}
