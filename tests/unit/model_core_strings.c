/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/core/state.h"

#include "model_records.h"

static void load(struct fixture *f, __u32 tid, __u64 start, __u64 handle)
{
	struct call_record record = call_make(TOY_LOAD, 1, tid, start, start + 1, 4, handle, U(0), U(0), U(0));

	record.call.valid &= ~4;
	cr_assert_eq(feed_call(f, record), 0);
}

Test(model_core_strings, joins_by_thread_function_and_start)
{
	struct fixture *f = fixture_toy();

	feed_string(f, TOY_LOAD, 0, 1, 7, 100, "seven", 5);
	feed_string(f, TOY_LOAD, 0, 1, 8, 100, "eight", 5);
	feed_string(f, TOY_LOAD, 0, 1, 7, 90, "nested around it", 16);
	feed_string(f, TOY_NAME, 1, 1, 7, 100, "other function", 14);
	load(f, 8, 100, 0x8);
	load(f, 7, 100, 0x7);
	load(f, 7, 90, 0x9);
	load(f, 9, 100, 0xa);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(toy_program(f, 1, 0x7, 0)->name, "seven");
	cr_assert_str_eq(toy_program(f, 1, 0x8, 0)->name, "eight");
	cr_assert_str_eq(toy_program(f, 1, 0x9, 0)->name, "nested around it");
	cr_assert_str_eq(toy_program(f, 1, 0xa, 0)->name, "toy model 1");
	fixture_free(f);
}

Test(model_core_strings, a_string_and_its_call_at_one_time_in_the_wrong_order)
{
	struct fixture *f = fixture_toy();
	struct call_record record = call_make(TOY_NAME, 1, 7, 100, 100, 1, U(5));

	cr_assert_eq(feed_call(f, record), 0);
	feed_string(f, TOY_NAME, 1, 1, 7, 100, "late", 4);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_str_eq(toy_program(f, 1, 5, 0)->name, "late");
	fixture_free(f);
}

static void add(struct keyed_table *strings, __u32 tid, __u64 start, const char *text)
{
	char bytes[sizeof(struct xpt_record_string) + XPT_STRING_MAX] __attribute__((aligned(8))) = {};
	struct xpt_record_string *record = (void *)bytes;

	record->header.tgid = tid / 10;
	record->tid = tid;
	record->call_start = start;
	record->length = (__u32)strlen(text);
	memcpy(record->text, text, strlen(text));
	cr_assert_eq(strings_add(strings, record), 0);
}

static struct string *taken; /* last */

static const struct string *take(struct keyed_table *strings, __u32 tid, __u64 start)
{
	const struct xpt_record_call call = { .tid = tid, .start = start };

	free(taken);
	return taken = strings_take(strings, &call, 0);
}

Test(model_core_strings, stale_ones_make_room)
{
	struct keyed_table strings;
	__u64 i;

	keyed_init(&strings, STRINGS_MAX, NULL, NULL);
	for (i = 0; i < STRINGS_MAX + 10; i++)
		add(&strings, 1, i, "x");
	cr_assert_eq(strings.map.count, STRINGS_MAX);
	cr_assert_null(take(&strings, 1, 9));
	cr_assert_not_null(take(&strings, 1, 10));
	cr_assert_null(take(&strings, 1, 10), "taken once");
	cr_assert_eq(strings.map.count, STRINGS_MAX - 1);
	keyed_free(&strings);
	free(taken);
}

Test(model_core_strings, those_of_a_process_that_ended_are_dropped)
{
	struct keyed_table strings;

	keyed_init(&strings, STRINGS_MAX, NULL, NULL);
	add(&strings, 11, 5, "one");
	add(&strings, 21, 5, "two");
	keyed_drop_owner(&strings, 1);
	cr_assert_null(take(&strings, 11, 5));
	cr_assert_str_eq(take(&strings, 21, 5)->text, "two");
	cr_assert_eq(strings.map.count, 0);
	keyed_free(&strings);
	free(taken);
}

Test(model_core_strings, the_longest_one_is_terminated)
{
	char longest[XPT_STRING_MAX + 1];
	const struct string *string;
	struct keyed_table strings;

	memset(longest, 'y', XPT_STRING_MAX);
	longest[XPT_STRING_MAX] = '\0';
	keyed_init(&strings, STRINGS_MAX, NULL, NULL);
	add(&strings, 11, 5, longest);
	string = take(&strings, 11, 5);
	cr_assert_eq(string->length, XPT_STRING_MAX);
	cr_assert_str_eq(string->text, longest);
	keyed_free(&strings);
	free(taken);
}
