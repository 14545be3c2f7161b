/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/regions.h"

#include "model_records.h"

static void begin(struct fixture *f, __u32 tid, __u64 handle, const char *name, __u64 start)
{
	struct call_record record = call_make(TOY_BEGIN, 1, tid, start, start + 1, 1, handle);

	record.call.valid = name ? 3 : 1;
	if (name)
		cr_assert_eq(feed_string(f, TOY_BEGIN, 1, 1, tid, start, name, strlen(name)), 0);
	cr_assert_eq(feed_call(f, record), 0);
}

static void end(struct fixture *f, __u32 tid, __u64 handle, __u64 start)
{
	CALL_1(f, TOY_END, 1, tid, start, start + 1, 1, handle);
}

static void by_name(struct fixture *f, unsigned int spec, __u32 tid, const char *name, __u64 start)
{
	cr_assert_eq(feed_string(f, spec, 0, 1, tid, start, name, strlen(name)), 0);
	CALL_1(f, spec, 1, tid, start, start + 1, 0);
}

static void check(struct fixture *f, size_t nth, const char *name, __u64 start, __u64 finish)
{
	const struct seen *seen = seen_nth(f, EVENT_REGION, nth);

	cr_assert_not_null(seen, "region %zu", nth);
	cr_assert_str_eq(seen->name, name);
	cr_assert_eq(seen->event.region.start, start);
	cr_assert_eq(seen->event.region.end, finish);
	cr_assert_str_eq(seen->event.region.runtime, "toy");
}

static void flush(struct fixture *f)
{
	cr_assert_eq(model_flush(f->model), 0);
}

Test(model_regions, from_the_return_of_begin_to_the_call_of_end)
{
	struct fixture *f = fixture_toy();

	begin(f, 7, 5, "decode", 100);
	end(f, 7, 5, 200);
	flush(f);
	check(f, 0, "decode", 101, 200);
	cr_assert_eq(seen_nth(f, EVENT_REGION, 0)->event.region.tid, 7);
	cr_assert_eq(model_region_total_count(f->model), 1);
	cr_assert_str_eq(model_region_total(f->model, 0)->name, "decode");
	cr_assert_str_eq(model_region_total(f->model, 0)->runtime, "toy");
	cr_assert_eq(model_region_total(f->model, 0)->process->tgid, 1);
	cr_assert_eq(statistics_sum(model_region_total(f->model, 0)->duration), 99);
	cr_assert_eq(model_program_count(f->model), 0, "the handle of a region is no program");
	cr_assert_eq(f->kinds[EVENT_CALL], 2);
	fixture_free(f);
}

Test(model_regions, recursion_ends_the_innermost_first)
{
	struct fixture *f = fixture_toy();

	begin(f, 7, 5, "r", 100);
	begin(f, 7, 5, "r", 110);
	begin(f, 7, 6, NULL, 120);
	end(f, 7, 5, 130);
	end(f, 7, 5, 140);
	end(f, 7, 6, 150);
	end(f, 7, 6, 160); /* nothing is left */
	flush(f);
	check(f, 0, "r", 111, 130);
	check(f, 1, "r", 101, 140);
	check(f, 2, "0x6", 121, 150);
	cr_assert_null(seen_nth(f, EVENT_REGION, 3));
	cr_assert_eq(model_region_total_count(f->model), 2);
	fixture_free(f);
}

Test(model_regions, by_name_when_there_is_no_handle)
{
	struct fixture *f = fixture_toy();

	by_name(f, TOY_BEGIN_NAMED, 7, "a", 100);
	by_name(f, TOY_BEGIN_NAMED, 7, "b", 110);
	by_name(f, TOY_END_NAMED, 7, "a", 120);
	by_name(f, TOY_END_NAMED, 7, "c", 130);
	by_name(f, TOY_END_NAMED, 7, "b", 140);
	flush(f);
	check(f, 0, "a", 101, 120);
	check(f, 1, "b", 111, 140);
	cr_assert_null(seen_nth(f, EVENT_REGION, 2));
	fixture_free(f);
}

Test(model_regions, threads_do_not_meet)
{
	struct fixture *f = fixture_toy();

	begin(f, 7, 5, "r", 100);
	end(f, 8, 5, 110);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_REGION], 0);
	end(f, 7, 5, 120);
	flush(f);
	check(f, 0, "r", 101, 120);
	fixture_free(f);
}

Test(model_regions, the_process_ends_inside_one)
{
	struct fixture *f = fixture_toy();

	begin(f, 7, 5, "r", 100);
	cr_assert_eq(feed_task(f, XPT_TASK_EXEC, 1, 0, 110, "x"), 0);
	end(f, 7, 5, 120);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_REGION], 0);
	fixture_free(f);
}

Test(model_regions, open_ones_and_names_are_bounded)
{
	struct fixture *f = fixture_toy();
	char name[32];
	__u64 i, time;

	f->quiet = true;
	for (i = 0; i < REGIONS_OPEN_MAX + 5; i++)
		begin(f, 7, i, "never ended", 10 + i * 2);
	for (i = 0, time = 100000; i < REGION_TOTALS_MAX + 5; i++, time += 10) {
		snprintf(name, sizeof(name), "region %llu", i);
		begin(f, 8, i, name, time);
		end(f, 8, i, time + 5);
	}
	flush(f);
	cr_assert_eq(model_region_total_count(f->model), REGION_TOTALS_MAX + 1);
	cr_assert_str_eq(model_region_total(f->model, REGION_TOTALS_MAX)->name, "(others)");
	cr_assert_eq(statistics_count(model_region_total(f->model, REGION_TOTALS_MAX)->duration), 5);
	fixture_free(f);
}
