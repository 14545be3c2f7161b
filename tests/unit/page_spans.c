/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include "page/spans.h"

static struct page_names names;
static struct page_spans spans;

static void init(void)
{
	page_names_init(&names);
	page_spans_init(&spans, &names);
}

static void fini(void)
{
	page_spans_free(&spans);
	page_names_free(&names);
}

TestSuite(page_spans, .init = init, .fini = fini);

static void add_region(__u64 start, const char *name)
{
	const struct event event = {
		.kind = EVENT_REGION, .region = { .tgid = 7, .tid = 70, .name = name, .start = start, .end = start + 5 }
	};

	cr_assert_eq(page_spans_event(&spans, &event), 0);
}

Test(page_spans, all_are_kept_while_they_have_room)
{
	for (__u64 i = 0; i < 1000; i++)
		add_region(1000 + i * PAGE_WINDOW / 3, "a");
	cr_expect_eq(spans.count, 1000);
	cr_expect_eq(spans.seen, 1000);
	cr_expect_eq(spans.every, 1);
	cr_expect_eq(spans.all[999].duration, 5);
}

Test(page_spans, of_too_many_whole_windows_are_kept)
{
	const __u64 all = 3 * PAGE_SPANS_MAX, step = PAGE_WINDOW / 100, origin = 12345;
	__u64 shown = 0, kept = 0;

	for (__u64 i = 0; i < all; i++)
		add_region(origin + i * step, "a");
	cr_expect_eq(spans.seen, all);
	cr_expect_eq(spans.every, 4);
	cr_expect_leq(spans.count, PAGE_SPANS_MAX);
	for (__u64 i = 0; i < all; i++)
		shown += page_spans_shown(&spans, origin + i * step);
	for (size_t i = 0; i < spans.count; i++)
		kept += page_spans_shown(&spans, spans.all[i].start);
	cr_expect_eq(kept, spans.count);
	cr_expect_eq(shown, spans.count, "what began in such a window is all there");
	cr_expect_eq((__s64)(shown - all / 4) / 100, 0);
}

Test(page_spans, what_is_late_has_its_window_too)
{
	add_region(100 * PAGE_WINDOW, "first");
	spans.every = 2;
	cr_expect(page_spans_shown(&spans, 100 * PAGE_WINDOW));
	cr_expect_not(page_spans_shown(&spans, 100 * PAGE_WINDOW - 1));
	cr_expect(page_spans_shown(&spans, 98 * PAGE_WINDOW));
	cr_expect_not(page_spans_shown(&spans, 101 * PAGE_WINDOW));
}

Test(page_spans, one_window_with_too_many_ends_early)
{
	for (__u64 i = 0; i < PAGE_SPANS_MAX + 10; i++)
		add_region(1000, "a");
	cr_expect_eq(spans.count, PAGE_SPANS_MAX);
	cr_expect_eq(spans.seen, PAGE_SPANS_MAX + 10);
}

Test(page_spans, times_off_cpu_are_two)
{
	const struct event event = { .kind = EVENT_OFF_CPU,
				     .off_cpu = { .reason = XPT_OFF_CPU_FUTEX,
						  .tgid = 7,
						  .tid = 70,
						  .start = 100,
						  .woken = 140,
						  .end = 150,
						  .next = "ffmpeg",
						  .waker = "worker" } };

	cr_assert_eq(page_spans_event(&spans, &event), 0);
	cr_assert_eq(spans.count, 2);
	cr_expect_eq(spans.all[0].kind, PAGE_BLOCKED);
	cr_expect_eq(spans.all[0].duration, 40);
	cr_expect_eq(spans.all[0].name, page_name(&names, "worker"));
	cr_expect_eq(spans.all[1].kind, PAGE_WAITED);
	cr_expect_eq(spans.all[1].start, 140);
	cr_expect_eq(spans.all[1].duration, 10);
	cr_expect_eq(spans.all[1].name, page_name(&names, "ffmpeg"));
}

Test(page_spans, jobs_run_from_where_they_are_seen)
{
	const struct model_queue queue = { .id = 3 };
	struct event event = { .kind = EVENT_JOB,
			       .job = { .queue = &queue, .name = "gemm", .queued = 100, .runs = 4196, .done = 5000 } };

	cr_assert_eq(page_spans_event(&spans, &event), 0);
	event.job.runs = 0;
	cr_assert_eq(page_spans_event(&spans, &event), 0);
	event.job.done = 0;
	cr_assert_eq(page_spans_event(&spans, &event), 0);
	cr_assert_eq(spans.count, 2);
	cr_expect_eq(spans.all[0].start, 4196);
	cr_expect_eq(spans.all[0].detail, 4);
	cr_expect_eq(spans.all[1].start, 100);
	cr_expect_eq(spans.all[1].detail, 0);
	cr_expect_eq(spans.all[1].duration, 4900);
}

static void add_device_event(enum xpt_event_role role, __u64 time, __u64 size)
{
	const struct event event = { .kind = EVENT_DEVICE,
				     .device = { .driver = "toy",
						 .event = "toy:event",
						 .role = role,
						 .device = "0",
						 .engine = "",
						 .time = time,
						 .have = 1u << XPT_FIELD_SIZE,
						 .size = size } };

	cr_assert_eq(page_spans_event(&spans, &event), 0);
}

Test(page_spans, failed_jobs_are_counted_by_status)
{
	const struct model_queue queue = { .id = 3, .driver = "toy", .device = "0", .engine = "" };
	struct event event = { .kind = EVENT_JOB,
			       .job = { .queue = &queue,
					.name = "gemm",
					.queued = 100,
					.done = 5000,
					.time = 5000,
					.failed = true,
					.have = 1u << XPT_FIELD_STATUS,
					.status = -5 } };

	cr_assert_eq(page_spans_event(&spans, &event), 0);
	cr_assert_eq(page_spans_event(&spans, &event), 0);
	event.job.status = -110;
	cr_assert_eq(page_spans_event(&spans, &event), 0);
	event.job.failed = false;
	cr_assert_eq(page_spans_event(&spans, &event), 0);
	cr_assert_eq(spans.driver_total_count, 2);
	cr_expect_eq(spans.driver_totals[0].kind, PAGE_JOB_FAILED);
	cr_expect_eq(spans.driver_totals[0].count, 2);
	cr_expect_eq(spans.driver_totals[0].status, -5);
	cr_expect_eq(spans.driver_totals[1].count, 1);
	cr_expect_eq(spans.count, 4);
}

Test(page_spans, memory_events_take_no_room_of_errors)
{
	const __u64 all = PAGE_DRIVER_EVENTS_MAX + 1000;

	for (__u64 i = 0; i < all; i++)
		add_device_event(XPT_EVENT_MEMORY, 1000 + i, 16);
	add_device_event(XPT_EVENT_ERROR, 5, 0);
	cr_assert_eq(spans.driver_total_count, 2);
	cr_expect_eq(spans.driver_totals[0].count, all);
	cr_expect_eq(spans.driver_totals[0].bytes, 16 * all);
	cr_expect_eq(spans.driver_totals[0].first, 1000);
	cr_expect_eq(spans.driver_totals[0].last, 999 + all);
	cr_expect_eq(spans.driver_totals[1].kind, PAGE_DRIVER_ERROR);
	cr_expect_eq(spans.driver_event_count, PAGE_DRIVER_EVENTS_MAX + 1);
	cr_expect_eq(spans.driver_seen[0], all);
	cr_expect_eq(spans.driver_kept[1], 1);
}
