/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/operator/operators.h"

#include "model_records.h"

static void name_cut(struct fixture *f, __u32 tgid, __u64 number, const char *text, __u64 time, bool truncated)
{
	struct {
		struct xpt_record_region_name record;
		char text[XPT_STRING_MAX];
	} named = { .record = { .header = { XPT_RECORD_REGION_NAME, XPT_ALIGN8(sizeof(named.record) + strlen(text)),
					    tgid, time },
				.name = number,
				.length = strlen(text),
				.truncated = truncated } };

	memcpy(named.record.text, text, strlen(text));
	cr_assert_eq(model_feed(f->model, &named.record.header), 0);
}

static void name(struct fixture *f, __u32 tgid, __u64 number, const char *text, __u64 time)
{
	name_cut(f, tgid, number, text, time, false);
}

static int feed_region(struct fixture *f, __u32 tgid, __u32 tid, __u64 handle, __u64 number, __u64 start, __u64 end)
{
	const struct xpt_record_region record = { .header = { XPT_RECORD_REGION, sizeof(record), tgid, end },
						  .start = start,
						  .tid = tid,
						  .spec = TOY_BEGIN,
						  .handle = handle,
						  .name = number };

	return model_feed(f->model, &record.header);
}

static void region(struct fixture *f, __u32 tid, __u64 handle, __u64 number, __u64 start, __u64 end)
{
	cr_assert_eq(feed_region(f, 1, tid, handle, number, start, end), 0);
}

static void tell(struct fixture *f, unsigned int spec, __u64 handle, const char *text, __u64 start)
{
	struct call_record record = call_make(spec, 1, 7, start, start + 1, 1, handle);

	record.call.valid = text ? 3 : 1;
	if (text)
		cr_assert_eq(feed_string(f, spec, 1, 1, 7, start, text, strlen(text)), 0);
	cr_assert_eq(feed_call(f, record), 0);
}

static void check(struct fixture *f, size_t nth, const char *text, __u64 start, __u64 finish)
{
	const struct seen *seen = seen_nth(f, EVENT_REGION, nth);

	cr_assert_not_null(seen, "region %zu", nth);
	cr_assert_str_eq(seen->name, text);
	cr_assert_eq(seen->event.region.start, start);
	cr_assert_eq(seen->event.region.end, finish);
	cr_assert_str_eq(seen->event.region.runtime, "toy");
}

static void flush(struct fixture *f)
{
	cr_assert_eq(model_flush(f->model), 0);
}

Test(model_operator_regions, span_and_total)
{
	struct fixture *f = fixture_toy();

	name(f, 1, 99, "decode", 100);
	region(f, 7, 5, 99, 101, 200);
	region(f, 8, 5, 99, 150, 201);
	flush(f);
	check(f, 0, "decode", 101, 200);
	check(f, 1, "decode", 150, 201);
	cr_assert_eq(seen_nth(f, EVENT_REGION, 0)->event.region.tid, 7);
	cr_assert_eq(model_region_total_count(f->model), 1);
	cr_assert_str_eq(model_region_total(f->model, 0)->name, "decode");
	cr_assert_str_eq(model_region_total(f->model, 0)->runtime, "toy");
	cr_assert_eq(model_region_total(f->model, 0)->process->tgid, 1);
	cr_assert_eq(statistics_sum(model_region_total(f->model, 0)->duration), 99 + 51);
	cr_assert_eq(model_program_count(f->model), 0, "the handle of a region is no program");
	fixture_free(f);
}

Test(model_operator_regions, a_name_that_was_cut_is_marked)
{
	struct fixture *f = fixture_toy();

	name(f, 1, 99, "whole", 100);
	name_cut(f, 1, 98, "cu", 101, true);
	region(f, 7, 5, 99, 102, 110);
	region(f, 7, 6, 98, 111, 120);
	region(f, 7, 7, 0, 121, 130);
	flush(f);
	cr_assert_not(seen_nth(f, EVENT_REGION, 0)->event.region.name_truncated);
	cr_assert(seen_nth(f, EVENT_REGION, 1)->event.region.name_truncated);
	cr_assert_not(seen_nth(f, EVENT_REGION, 2)->event.region.name_truncated);
	fixture_free(f);
}

Test(model_operator_regions, handle_stands_in_for_a_name)
{
	struct fixture *f = fixture_toy();

	region(f, 7, 0xabc, 0, 100, 110);
	region(f, 7, 0xabc, 98, 120, 130); /* whose record was lost */
	flush(f);
	check(f, 0, "0xabc", 100, 110);
	check(f, 1, "0xabc", 120, 130);
	cr_assert_eq(model_region_total_count(f->model), 1);
	fixture_free(f);
}

Test(model_operator_regions, a_name_that_was_given_counts_until_release)
{
	struct fixture *f = fixture_toy();

	name(f, 1, 99, "whatever lay there", 90);
	tell(f, TOY_REGION_NAME, 5, "given", 100);
	region(f, 7, 5, 99, 110, 120);
	region(f, 7, 6, 99, 121, 122);
	tell(f, TOY_REGION_NAME, 5, "given again", 130);
	region(f, 7, 5, 0, 140, 150);
	tell(f, TOY_REGION_RELEASE, 5, NULL, 160);
	region(f, 7, 5, 0, 170, 180);
	flush(f);
	check(f, 0, "given", 110, 120);
	check(f, 1, "whatever lay there", 121, 122);
	check(f, 2, "given again", 140, 150);
	check(f, 3, "0x5", 170, 180);
	cr_assert_eq(model_program_count(f->model), 0);
	fixture_free(f);
}

Test(model_operator_regions, names_are_of_their_process_until_it_runs_another_program)
{
	struct fixture *f = fixture_toy();

	name(f, 1, 99, "mine", 100);
	name(f, 2, 99, "yours", 101);
	region(f, 7, 5, 99, 110, 120);
	cr_assert_eq(feed_region(f, 2, 2, 5, 99, 110, 121), 0);
	cr_assert_eq(feed_task(f, XPT_TASK_EXEC, 1, 0, 130, "x"), 0);
	region(f, 7, 5, 99, 140, 150);
	flush(f);
	check(f, 0, "mine", 110, 120);
	check(f, 1, "yours", 110, 121);
	check(f, 2, "0x5", 140, 150);
	fixture_free(f);
}

Test(model_operator_regions, damaged_records)
{
	struct xpt_record_region_name named = { .header = { XPT_RECORD_REGION_NAME, sizeof(named), 1, 10 },
						.length = 8 };
	struct xpt_record_region record = {
		.header = { XPT_RECORD_REGION, sizeof(record), 1, 20 },
		.start = 30,
		.spec = TOY_BEGIN,
	};
	struct fixture *f = fixture_toy();

	cr_assert_eq(model_feed(f->model, &named.header), -EBADMSG, "shorter than its text");
	cr_assert_eq(model_feed(f->model, &record.header), 0);
	flush(f);
	check(f, 0, "0x0", 30, 30); /* ends before it begins: no negative time */
	record.header.time = 40;
	record.spec = XPT_SPEC_MAX - 1;
	cr_assert_eq(model_feed(f->model, &record.header), 0);
	cr_assert_eq(model_flush(f->model), -EBADMSG, "never described");
	fixture_free(f);
}

Test(model_operator_regions, names_are_bounded)
{
	struct fixture *f = fixture_toy();
	char text[32];
	__u64 i, time;

	f->quiet = true;
	for (i = 0, time = 100000; i < REGION_TOTALS_MAX + 5; i++, time += 10) {
		snprintf(text, sizeof(text), "region %llu", i);
		name(f, 1, i + 1, text, time);
		region(f, 8, 5, i + 1, time + 1, time + 6);
	}
	for (; i < REGION_NAMES_MAX + 5; i++)
		name(f, 1, i + 1, "more", time++);
	region(f, 8, 5, 1, time + 1, time + 6);
	flush(f);
	cr_assert_eq(model_region_total_count(f->model), REGION_TOTALS_MAX + 1);
	cr_assert_str_eq(model_region_total(f->model, REGION_TOTALS_MAX)->name, "(others)");
	cr_assert_eq(statistics_count(model_region_total(f->model, REGION_TOTALS_MAX)->duration), 5 + 1);
	fixture_free(f);
}

Test(model_operator_regions, requests_are_of_the_region_that_they_are_in)
{
	struct fixture *f = fixture_toy();

	name(f, 1, 5, "decode", 1);
	name(f, 1, 6, "request=abc", 1);
	region(f, 7, 0x1001, 6, 110, 190); /* just inside of the next one */
	region(f, 8, 0x1001, 6, 110, 190); /* of another thread, which begins too late for its region */
	region(f, 7, 0x1000, 5, 100, 200);
	region(f, 7, 0x1000, 5, 210, 220); /* the same without one */
	region(f, 8, 0x1000, 5, 150, 200);
	region(f, 7, 0x2001, 5, 230, 236); /* of another name */
	region(f, 7, 0x2000, 5, 225, 240);
	region(f, 7, 0, 6, 250, 260); /* by its name alone it is a region */
	flush(f);
	cr_assert_eq(f->kinds[EVENT_REGION], 6);
	for (size_t i = 0; i < 5; i++)
		cr_expect_eq(!seen_nth(f, EVENT_REGION, i)->event.region.request, i != 0, "region %zu", i);
	check(f, 0, "decode", 100, 200);
	check(f, 5, "request=abc", 250, 260);
	cr_assert_eq(model_region_total_count(f->model), 2);
	fixture_free(f);
}

Test(model_operator_regions, requests_are_bounded_and_displace_no_names)
{
	struct fixture *f = fixture_toy();
	char text[32];

	name(f, 1, 1, "decode", 1);
	for (__u64 i = 0; i < REGION_NAMES_MAX + 10; i++) {
		snprintf(text, sizeof(text), "request=%llu", i);
		name(f, 1, 10 + i, text, 2);
		if (i >= 10 && i < 9000)			    /* the first ones have made room */
			region(f, 7, 0x1001 + 8 * i, 10 + i, 3, 4); /* none of their regions ends */
	}
	region(f, 7, 0x1000, 1, 5, 6);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_REGION], 1);
	check(f, 0, "decode", 5, 6);
	fixture_free(f);
}
