/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/counters.h"

#include "model_records.h"

static void take(struct fixture *f, __u32 tgid, __u64 address, __u64 size, __u64 start, __u64 end)
{
	CALL_1(f, TOY_ALLOC, tgid, tgid, start, end, 2, size, address);
}

static void give(struct fixture *f, __u32 tgid, __u64 address, __u64 start, __u64 end)
{
	CALL_1(f, TOY_FREE, tgid, tgid, start, end, 1, address);
}

static void check(struct fixture *f, const __s64 *expected, size_t count)
{
	size_t i;

	cr_assert_eq(model_flush(f->model), 0);
	for (i = 0; i < count; i++) {
		cr_assert_not_null(seen_nth(f, EVENT_COUNTER, i), "%zu", i);
		cr_assert_eq(seen_nth(f, EVENT_COUNTER, i)->event.counter.value, expected[i], "%zu", i);
		cr_assert_str_eq(seen_nth(f, EVENT_COUNTER, i)->name, "device memory");
	}
	cr_assert_null(seen_nth(f, EVENT_COUNTER, count));
}

Test(model_device_counters_memory, sums_what_is_held)
{
	struct fixture *f = fixture_toy();

	take(f, 1, 0x1000, 100, 10, 11);
	take(f, 1, 0x2000, 50, 20, 21);
	give(f, 1, 0x1000, 30, 31);
	give(f, 1, 0x1000, 40, 41); /* unknown by now */
	give(f, 1, 0x9999, 50, 51); /* taken before the recording */
	give(f, 1, 0x2000, 60, 61);
	check(f, (const __s64[]){ 100, 150, 50, 0 }, 4);
	fixture_free(f);
}

Test(model_device_counters_memory, each_process_for_itself)
{
	struct fixture *f = fixture_toy();

	take(f, 1, 0x1000, 100, 10, 11);
	take(f, 2, 0x1000, 70, 20, 21);
	give(f, 2, 0x1000, 30, 31);
	check(f, (const __s64[]){ 100, 70, 0 }, 3);
	fixture_free(f);
}

Test(model_device_counters_memory, failed_and_layered_calls_take_nothing)
{
	struct fixture *f = fixture_toy();
	struct call_record record = call_make(TOY_ALLOC, 1, 1, 10, 11, 2, U(100), U(0));

	record.call.valid = 1; /* returned NULL */
	cr_assert_eq(feed_call(f, record), 0);
	record = call_make(TOY_ALLOC, 1, 1, 20, 21, 2, U(100), U(0x1000));
	record.call.flags = XPT_CALL_LAYER;
	cr_assert_eq(feed_call(f, record), 0);
	check(f, NULL, 0);
	fixture_free(f);
}

Test(model_device_counters_memory, the_same_address_again_replaces)
{
	struct fixture *f = fixture_toy();

	take(f, 1, 0x1000, 100, 10, 11);
	take(f, 1, 0x1000, 30, 20, 21);
	check(f, (const __s64[]){ 100, 30 }, 2);
	fixture_free(f);
}

/* One thread frees, another gets the same address before that call has returned. */
Test(model_device_counters_memory, a_free_that_returns_late_takes_nothing_from_the_next_owner)
{
	struct fixture *f = fixture_toy();

	take(f, 1, 0x1000, 100, 10, 11);
	give(f, 1, 0x1000, 20, 90);
	take(f, 1, 0x1000, 30, 40, 50);
	check(f, (const __s64[]){ 100, 30 }, 2);
	give(f, 1, 0x1000, 100, 110);
	check(f, (const __s64[]){ 100, 30, 0 }, 3);
	fixture_free(f);
}

Test(model_device_counters_memory, the_end_of_the_process_gives_all_back)
{
	struct fixture *f = fixture_toy();

	take(f, 1, 0x1000, 100, 10, 11);
	take(f, 1, 0x2000, 100, 10, 12);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 1, 0, 50, "x"), 0);
	check(f, (const __s64[]){ 100, 200, 0 }, 3);
	fixture_free(f);
}

Test(model_device_counters_memory, a_leak_is_bounded)
{
	struct fixture *f = fixture_toy();
	__u64 i;

	f->quiet = true;
	for (i = 0; i < MEMORY_ALLOCATIONS_MAX + 100; i++)
		take(f, 1, 0x1000 + i, 8, 10 + i * 2, 11 + i * 2);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_COUNTER], MEMORY_ALLOCATIONS_MAX);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_NAMES), 100);
	fixture_free(f);
}
