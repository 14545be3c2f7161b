/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stream/records.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* A record that knows when it was put in. */
struct numbered {
	struct xpt_record_header header;
	__u64 number;
};

static void put(struct reorder_buffer *order, unsigned int kind, __u64 time, __u64 number)
{
	struct numbered record = { .header = { (__u16)kind, sizeof(record), 1, time }, .number = number };

	cr_assert_not_null(reorder_stage(order, &record, sizeof(record)));
	cr_assert_eq(reorder_keep(order), 0);
}

static __u64 number_at(const struct reorder_buffer *order, size_t index)
{
	return ((const struct numbered *)reorder_record(order, index))->number;
}

static __u64 time_at(const struct reorder_buffer *order, size_t index)
{
	return reorder_record(order, index)->time;
}

static void check_sorted(const struct reorder_buffer *order, size_t count)
{
	size_t i;

	for (i = 1; i < count; i++) {
		cr_assert_leq(time_at(order, i - 1), time_at(order, i));
		if (time_at(order, i - 1) == time_at(order, i))
			cr_assert_lt(number_at(order, i - 1), number_at(order, i),
				     "records of one time changed places");
	}
}

static __u64 state = 42;

static __u64 random_next(void)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 33;
}

Test(model_stream_records, sorts_any_order_and_keeps_the_order_of_equal_times)
{
	struct reorder_buffer order = {};
	__u64 i, count;

	for (count = 0; count < 200; count += 7) {
		for (i = 0; i < count; i++)
			put(&order, XPT_RECORD_CALL, random_next() % 50, i);
		cr_assert_eq(reorder_due(&order, REORDER_KEY_LAST), count);
		check_sorted(&order, count);
		reorder_drop(&order, REORDER_KEY_LAST);
		cr_assert_eq(order.count, 0);
	}
	reorder_free(&order);
}

Test(model_stream_records, merges_rings_that_are_a_little_out_of_order)
{
	enum { RINGS = 7, EACH = 3000 };
	struct reorder_buffer order = {};
	__u64 i, ring, number = 0;

	for (ring = 0; ring < RINGS; ring++)
		for (i = 0; i < EACH; i++)
			put(&order, XPT_RECORD_CALL, 1000 + i * 10 + random_next() % 40, number++);
	cr_assert_eq(reorder_due(&order, REORDER_KEY_LAST), RINGS * EACH);
	check_sorted(&order, RINGS * EACH);
	reorder_free(&order);
}

/* Rings in rounds; half of the records of a round in one burst, and now and then one with a time of long ago or far ahead. */
Test(model_stream_records, rounds_of_many_rings_with_bursts_and_outliers)
{
	enum { RINGS = 32, EACH = 400, ROUNDS = 6, ROUND = 10000 };
	struct reorder_buffer order = {};
	__u64 ring, i, round, time, number = 0, due, delivered = 0, before = 0;

	for (round = 0; round < ROUNDS; round++) {
		for (ring = 0; ring < RINGS; ring++) {
			for (i = 0; i < EACH; i++) {
				time = (round + 1) * ROUND + (i < EACH / 2 ? 5000 + i / 50 : i * 25);
				if (random_next() % 1000 == 0)
					time = random_next() % 2 ? random_next() % 100 : 1ULL << 60;
				put(&order, XPT_RECORD_CALL, time, number++);
			}
		}
		due = reorder_due(&order, reorder_key_until((round + 1) * ROUND));
		check_sorted(&order, due);
		for (i = 0; i < due; i++) {
			cr_assert_leq(time_at(&order, i), (round + 1) * ROUND);
			cr_assert(time_at(&order, i) < 100 || time_at(&order, i) > before, "came too late");
		}
		before = (round + 1) * ROUND;
		delivered += due;
		reorder_drop(&order, reorder_key_until(before));
		cr_assert_eq(order.count, number - delivered);
	}
	due = reorder_due(&order, REORDER_KEY_LAST);
	check_sorted(&order, due);
	cr_assert_eq(delivered + due, number);
	reorder_free(&order);
}

Test(model_stream_records, descending_times)
{
	struct reorder_buffer order = {};
	__u64 i;

	for (i = 0; i < 5000; i++)
		put(&order, XPT_RECORD_CALL, 5000 - i, i);
	cr_assert_eq(reorder_due(&order, reorder_key_until(100)), 100);
	check_sorted(&order, 100);
	cr_assert_eq(time_at(&order, 99), 100);
	cr_assert_eq(reorder_due(&order, REORDER_KEY_LAST), 5000);
	check_sorted(&order, 5000);
	reorder_free(&order);
}

Test(model_stream_records, gives_what_is_due_and_keeps_the_rest)
{
	struct reorder_buffer order = {};
	__u64 i;

	for (i = 0; i < 1000; i++)
		put(&order, XPT_RECORD_CALL, i * 7 % 1000, i);
	cr_assert_eq(reorder_due(&order, reorder_key_until(299)), 300);
	cr_assert_eq(time_at(&order, 0), 0);
	cr_assert_eq(time_at(&order, 299), 299);
	reorder_drop(&order, reorder_key_until(299));
	cr_assert_eq(order.count, 700);
	cr_assert_eq(order.used, 700 * sizeof(struct numbered));
	put(&order, XPT_RECORD_CALL, 5, 1000); /* late */
	cr_assert_eq(reorder_due(&order, REORDER_KEY_LAST), 701);
	cr_assert_eq(time_at(&order, 0), 5);
	for (i = 1; i < 701; i++) {
		cr_assert_eq(time_at(&order, i), 299 + i);
		cr_assert_eq(number_at(&order, i) * 7 % 1000, 299 + i, "the record's body went astray");
	}
	reorder_free(&order);
}

Test(model_stream_records, at_one_time_strings_come_before_calls_and_the_end_last)
{
	static const unsigned int kinds[] = { XPT_RECORD_END, XPT_RECORD_TASK, XPT_RECORD_CALL, XPT_RECORD_STRING };
	struct reorder_buffer order = {};
	unsigned int i;

	for (i = 0; i < 4; i++)
		put(&order, kinds[i], 77, i);
	cr_assert_eq(reorder_due(&order, reorder_key_until(76)), 0);
	cr_assert_eq(reorder_due(&order, reorder_key_until(77)), 4);
	cr_assert_eq(reorder_record(&order, 0)->kind, XPT_RECORD_STRING);
	cr_assert_eq(reorder_record(&order, 1)->kind, XPT_RECORD_CALL);
	cr_assert_eq(reorder_record(&order, 2)->kind, XPT_RECORD_TASK);
	cr_assert_eq(reorder_record(&order, 3)->kind, XPT_RECORD_END);
	reorder_free(&order);
}

Test(model_stream_records, absurd_times_are_sorted_last)
{
	struct reorder_buffer order = {};

	put(&order, XPT_RECORD_CALL, ~(__u64)0, 0);
	put(&order, XPT_RECORD_CALL, 1ULL << 63, 1);
	put(&order, XPT_RECORD_CALL, 5, 2);
	cr_assert_eq(reorder_due(&order, reorder_key_until(1000)), 1);
	cr_assert_eq(reorder_due(&order, reorder_key_until(~(__u64)0)), 3);
	cr_assert_eq(number_at(&order, 0), 2);
	reorder_free(&order);
}

Test(model_stream_records, says_when_it_is_full)
{
	static const size_t size = 65528;
	char *record = calloc(1, size);
	struct reorder_buffer order = {};
	size_t held = 0;

	((struct xpt_record_header *)record)->size = (__u16)size;
	cr_assert_not(reorder_full(&order, size));
	while (!reorder_full(&order, size)) {
		cr_assert_not_null(reorder_stage(&order, record, size));
		cr_assert_eq(reorder_keep(&order), 0);
		held += size;
	}
	cr_assert_leq(held, REORDER_BYTES_MAX);
	cr_assert_gt(held + size, REORDER_BYTES_MAX);
	/* One that is fed although it is full must still fit: the model stages before it looks at the record. */
	cr_assert_not_null(reorder_stage(&order, record, size));
	reorder_free(&order);
	free(record);
}

Test(model_stream_records, what_is_staged_only_is_not_held)
{
	struct numbered record = { .header = { XPT_RECORD_CALL, sizeof(record), 1, 9 } };
	struct reorder_buffer order = {};

	reorder_stage(&order, &record, sizeof(record));
	put(&order, XPT_RECORD_CALL, 10, 1);
	cr_assert_eq(reorder_due(&order, REORDER_KEY_LAST), 1);
	cr_assert_eq(number_at(&order, 0), 1);
	reorder_free(&order);
}

/* Counts that are read at the time of a load's return are those of the program that it has made. */
Test(model_stream_records, counts_come_after_calls_of_the_same_time)
{
	struct reorder_buffer order = {};

	put(&order, XPT_RECORD_COUNT, 10, 3);
	put(&order, XPT_RECORD_TOTAL, 10, 4);
	put(&order, XPT_RECORD_CALL, 10, 2);
	put(&order, XPT_RECORD_STRING, 10, 1);
	cr_assert_eq(reorder_due(&order, REORDER_KEY_LAST), 4);
	check_sorted(&order, 4);
	reorder_free(&order);
}
