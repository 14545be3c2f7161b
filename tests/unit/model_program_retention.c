/* SPDX-License-Identifier: BSD-2-Clause */
#include "model_records.h"

#include <malloc.h>

static const struct model_program *others(const struct fixture *f, __u32 tgid)
{
	size_t i;

	for (i = 0; i < model_program_count(f->model); i++)
		if (!strcmp(model_program(f->model, i)->name, "(others)") &&
		    model_program(f->model, i)->process->tgid == tgid)
			return model_program(f->model, i);
	return NULL;
}

struct sum {
	__u64 recorded, calls, latencies;
};

static struct sum sum_up(const struct fixture *f)
{
	const struct model_program *program;
	struct sum sum = {};
	size_t i;

	for (i = 0; i < model_program_count(f->model); i++) {
		program = model_program(f->model, i);
		sum.recorded += program->recorded;
		sum.calls += program->total.calls;
		sum.latencies += program->latency ? statistics_count(program->latency) : 0;
	}
	return sum;
}

static void load_run_unload(struct fixture *f, __u64 handle, __u64 time)
{
	toy_load(f, handle, NULL, time, time + 1);
	toy_execute(f, 1, handle, time + 2, time + 3);
	toy_unload(f, handle, time + 4, time + 5);
	cr_assert_eq(feed_total(f, 1, 0, 0, handle, time + 6, 2), 0);
}

#if defined(__SANITIZE_ADDRESS__) /* five times as slow, and a tenth has all that it looks for */
#define MILLION 100000
#else
#define MILLION 1000000
#endif

Test(model_program_retention, a_million_programs_stay_within_the_limit, .timeout = 120)
{
	struct fixture *f = fixture_toy();
	const __u64 programs = MILLION;
	struct sum sum;
	__u64 i, time;

	f->quiet = true;
	for (i = 0, time = 1; i < programs; i++, time += 10) {
		if (i % 10000 == 0)
			cr_assert_eq(feed_pass(f, time), 0);
		load_run_unload(f, 0x1000 + i * 16, time);
		cr_assert_leq(model_program_count(f->model), MODEL_PROGRAMS_MAX + 1);
	}
	cr_assert_eq(model_flush(f->model), 0);
	sum = sum_up(f);
	cr_assert_eq(sum.recorded, programs);
	cr_assert_eq(sum.calls, 2 * programs);
	cr_assert_eq(sum.latencies, programs);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_NAMES), 0, "nothing had to be lumped together while it ran");
	cr_assert_not_null(others(f, 1));
	cr_assert_not_null(toy_program(f, 1, 0x1000 + (programs - 1) * 16, 0), "the newest is still kept apart");
	fixture_free(f);
}

Test(model_program_retention, more_at_once_than_are_kept_apart)
{
	struct fixture *f = fixture_toy();
	const __u64 programs = MODEL_PROGRAMS_MAX + 500;
	__u64 i;

	for (i = 0; i < programs; i++)
		toy_execute(f, 1, 0x1000 + i * 16, i * 10, i * 10 + 5);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_program_count(f->model), MODEL_PROGRAMS_MAX + 1);
	cr_assert_eq(others(f, 1)->recorded, 500);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_NAMES), 500);
	cr_assert_eq(f->kinds[EVENT_LOST], 1, "reported once a batch, not once a call");
	cr_assert_eq(seen_nth(f, EVENT_LOST, 0)->event.lost.count, 500);
	cr_assert_eq(sum_up(f).recorded, programs);
	fixture_free(f);
}

/* PyTorch registers 22,000 kernels, and a model launches a dozen. */
Test(model_program_retention, names_of_kernels_that_nothing_launches)
{
	struct fixture *f = fixture_toy();
	const __u64 kernels = 3 * MODEL_PROGRAMS_MAX;
	char name[32];

	f->quiet = true;
	for (__u64 i = 0; i < kernels; i++) {
		snprintf(name, sizeof(name), "kernel_%llu", i);
		cr_assert_eq(feed_string(f, TOY_NAME, 1, 1, 1, i * 10, name, strlen(name)), 0);
		CALL_1(f, TOY_NAME, 1, 1, i * 10, i * 10 + 5, 1, 0x1000 + i * 16);
	}
	for (__u64 i = 1; i < kernels; i += 1000)
		toy_execute(f, 1, 0x1000 + i * 16, kernels * 10 + i * 10, kernels * 10 + i * 10 + 5);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_NAMES), 0);
	for (__u64 i = 1; i < kernels; i += 1000) {
		const struct model_program *program = toy_program(f, 1, 0x1000 + i * 16, 0);

		snprintf(name, sizeof(name), "kernel_%llu", i);
		cr_assert_not_null(program);
		cr_expect_str_eq(program->name, name);
		cr_expect_eq(program->recorded, 1);
	}
	fixture_free(f);
}

Test(model_program_retention, one_with_an_inference_under_way_stays)
{
	struct fixture *f = fixture_toy();
	__u64 i, time = 100;

	f->quiet = true;
	CALL_1(f, TOY_ENQUEUE, 1, 1, 10, 20, 4, U(5), U(77), U(0), U(0));
	toy_unload(f, 5, 30, 40);
	for (i = 0; i < MODEL_PROGRAMS_MAX + 5000; i++, time += 10)
		load_run_unload(f, 0x1000 + i * 16, time);
	f->quiet = false;
	CALL_1(f, TOY_WAIT, 1, 1, time, time + 1, 3, U(77), U(1), U(0));
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(toy_program(f, 1, 5, 0)->recorded, 1);
	cr_assert_eq(seen_nth(f, EVENT_INFERENCE, 0)->event.inference.program, toy_program(f, 1, 5, 0));
	fixture_free(f);
}

Test(model_program_retention, processes_without_end, .timeout = 120)
{
	struct fixture *f = fixture_toy();
	const __u32 processes = 50000;
	struct call_record copy;
	struct xpt_record_region region = { .header = { .kind = XPT_RECORD_REGION, .size = sizeof(region) },
					    .spec = TOY_BEGIN,
					    .handle = 3 };
	__u64 time = 100, copies = 0;
	struct sum sum;
	__u32 tgid;
	size_t i;

	f->quiet = true;
	for (tgid = 10; tgid < 10 + processes; tgid++, time += 100) {
		cr_assert_eq(feed_task(f, XPT_TASK_FORK, tgid, 1, time, "child"), 0);
		toy_execute(f, tgid, 5, time + 1, time + 2);
		copy = call_make(TOY_COPY, tgid, tgid, time + 3, time + 4, 2, U(10), U(0));
		cr_assert_eq(feed_call(f, copy), 0);
		region.header.tgid = region.tid = tgid;
		region.start = time + 5;
		region.header.time = time + 8;
		cr_assert_eq(model_feed(f->model, &region.header), 0);
		cr_assert_eq(feed_task(f, XPT_TASK_EXIT, tgid, 0, time + 9, "child"), 0);
		cr_assert_eq(feed_total(f, tgid, 0, 0, 5, time + 10, 2), 0);
		if (tgid % 1000 == 0)
			cr_assert_eq(feed_pass(f, time), 0);
	}
	cr_assert_eq(model_flush(f->model), 0);
	sum = sum_up(f);
	cr_assert_eq(sum.recorded, processes);
	cr_assert_eq(sum.calls, 2ull * processes);
	cr_assert_eq(sum.latencies, processes);
	for (i = 0; i < model_call_total_count(f->model); i++)
		if (model_call_total(f->model, i)->function->role == XPT_ROLE_COPY)
			copies += model_call_total(f->model, i)->bytes;
	cr_assert_eq(copies, 10ull * processes);
	cr_assert_leq(model_program_count(f->model), MODEL_PROCESSES_MAX + 1);
	cr_assert_leq(model_call_total_count(f->model), MODEL_CALL_TOTALS_MAX);
	for (i = 0, copies = 0; i < model_region_total_count(f->model); i++)
		copies += statistics_count(model_region_total(f->model, i)->duration);
	cr_assert_eq(copies, processes, "regions");
	cr_assert_not_null(others(f, 0));
	fixture_free(f);
}

/* The process that runs them lives on; the handles come again, as an allocator gives them. */
static void session_program(struct fixture *f, __u64 number, __u64 time)
{
	const __u64 handle = 0x1000 + number % 48 * 16;

	toy_load(f, handle, NULL, time, time + 10);
	toy_execute(f, 1, handle, time + 20, time + 30);
	/* Of every third the counts are read while it runs, every fifth has not run at all. */
	if (number % 3 == 0)
		cr_assert_eq(feed_count(f, count_make(1, 0, handle, time + 20, time + 40, 2, 1, 0)), 0);
	if (number % 5)
		cr_assert_eq(feed_final(f, count_make(1, 0, handle, 0, time + 99, 16, 15, 0)), 0);
	toy_unload(f, handle, time + 100, time + 110);
}

/* The sanitizer's allocator always says 0: then only the number of what is kept is checked. */
static size_t bytes_in_use(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

Test(model_program_retention, a_session_without_end_stays_as_large_as_it_was, .timeout = 120)
{
	const __u64 programs = MILLION, apart = 2000000; /* ns: 500 a second */
	struct fixture *f = fixture_toy();
	size_t at_first = 0, kept;
	struct sum sum;
	__u64 i;

	f->quiet = true;
	model_keep_released(f->model, 256);
	for (i = 0; i < programs; i++) {
		if (i % 50 == 0)
			cr_assert_eq(feed_pass(f, 1 + i * apart), 0);
		session_program(f, i, 1 + i * apart);
		/* 10 s of those that may yet get a total, beside the others */
		kept = model_program_count(f->model);
		cr_assert_leq(kept, 256 + 1000 + 102, "%zu", kept);
		if (i == 10000)
			at_first = bytes_in_use();
		if (i == 100000 || i == programs - 1)
			cr_assert_leq(bytes_in_use(), at_first + at_first / 20, "%zu, %zu at first", bytes_in_use(),
				      at_first);
	}
	cr_assert_eq(model_flush(f->model), 0);
	sum = sum_up(f);
	cr_assert_eq(sum.recorded, programs);
	cr_assert_eq(sum.latencies, programs);
	/* Of those without a total a third was read, once. */
	cr_assert_eq(sum.calls, programs / 5 * 4 * 16 + (programs / 5 + 2) / 3 * 2);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_NAMES), 0);
	fixture_free(f);
}

Test(model_program_retention, one_whose_total_has_not_come_is_kept)
{
	struct fixture *f = fixture_toy();
	__u64 i, time = 1000;

	model_keep_released(f->model, 16);
	toy_load(f, 5, "waits", 100, 110);
	toy_execute(f, 1, 5, 120, 130);
	toy_unload(f, 5, 140, 150);
	toy_load(f, 6, "read", 200, 210);
	cr_assert_eq(feed_count(f, count_make(1, 0, 6, 220, 230, 7, 0, 0)), 0);
	toy_unload(f, 6, 240, 250);
	for (i = 0; i < 100; i++, time += 10)
		load_run_unload(f, 0x1000 + i * 16, time);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_leq(model_program_count(f->model), 20);
	cr_assert_not_null(toy_program(f, 1, 5, 0));
	cr_assert_not_null(toy_program(f, 1, 6, 0));
	cr_assert_eq(feed_final(f, count_make(1, 0, 5, 0, time, 3, 0, 0)), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(toy_program(f, 1, 5, 0)->total.calls, 3);
	/* After 10 s the total is not expected any more, unless a reading has shown that there is something to tell. */
	time += 10000000000ull;
	for (i = 0; i < 100; i++, time += 10)
		load_run_unload(f, 0x10000 + i * 16, time);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_null(toy_program(f, 1, 5, 0));
	cr_assert_not_null(toy_program(f, 1, 6, 0));
	cr_assert_eq(feed_final(f, count_make(1, 0, 6, 0, time, 9, 0, 0)), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(toy_program(f, 1, 6, 0)->total.calls, 9);
	cr_assert_eq(sum_up(f).calls, 3 + 9 + 200 * 2);
	fixture_free(f);
}

/* It ends all at once: the totals of its programs come later than all of them. */
Test(model_program_retention, the_programs_of_a_process_that_has_exited_wait_for_their_totals)
{
	const __u64 programs = 3000;
	struct fixture *f = fixture_toy();
	__u64 i;

	f->quiet = true;
	model_keep_released(f->model, 256);
	for (i = 0; i < programs; i++)
		toy_execute(f, 1, 0x1000 + i * 16, 10 + i, 12 + i);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 1, 0, 10000, "x"), 0);
	toy_execute(f, 2, 5, 11000, 11010);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(model_program_count(f->model), programs + 1);
	for (i = 0; i < programs; i++)
		cr_assert_eq(feed_final(f, count_make(1, 0, 0x1000 + i * 16, 0, 20000 + i, 4, 0, 0)), 0);
	toy_execute(f, 2, 5, 200000000, 200000010);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_leq(model_program_count(f->model), 256 + 3);
	cr_assert_eq(sum_up(f).calls, 4 * programs);
	cr_assert_eq(sum_up(f).recorded, programs + 2);
	fixture_free(f);
}

Test(model_program_retention, processes_of_a_session_without_end, .timeout = 120)
{
	const __u64 apart = 10000000; /* ns: 100 a second */
	const __u32 processes = 50000;
	struct fixture *f = fixture_toy();
	__u64 time = 100, copies = 0;
	size_t at_first = 0, i;
	__u32 tgid;

	f->quiet = true;
	model_keep_released(f->model, 256);
	for (tgid = 10; tgid < 10 + processes; tgid++, time += apart) {
		cr_assert_eq(feed_task(f, XPT_TASK_FORK, tgid, 1, time, "child"), 0);
		toy_execute(f, tgid, 5, time + 1, time + 2);
		CALL_1(f, TOY_COPY, tgid, tgid, time + 3, time + 4, 2, U(10), U(0));
		CALL_1(f, TOY_ENQUEUE, tgid, tgid, time + 5, time + 6, 4, U(5), U(9), U(3), U(0));
		CALL_1(f, TOY_ALLOC, tgid, tgid, time + 6, time + 7, 2, U(100), U(7));
		cr_assert_eq(feed_count(f, count_make(tgid, 0, 5, time + 1, time + 8, 2, 0, 0)), 0);
		cr_assert_eq(feed_count(f, count_make(tgid, TOY_COPY + 1, 0, time + 1, time + 8, 1, 0, 0)), 0);
		cr_assert_eq(feed_task(f, XPT_TASK_EXIT, tgid, 0, time + 9, "child"), 0);
		cr_assert_eq(feed_final(f, count_make(tgid, 0, 5, 0, time + 1000, 3, 0, 0)), 0);
		cr_assert_eq(feed_final(f, count_make(tgid, TOY_COPY + 1, 0, 0, time + 1001, 1, 0, 0)), 0);
		if (tgid % 50 == 0)
			cr_assert_eq(feed_pass(f, time), 0);
		if (tgid == 5000)
			at_first = bytes_in_use();
		if (tgid == processes)
			cr_assert_leq(bytes_in_use(), at_first + at_first / 20, "%zu, %zu at first", bytes_in_use(),
				      at_first);
	}
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_leq(model_program_count(f->model), 256 + 3);
	cr_assert_eq(sum_up(f).recorded, 2ull * processes);
	cr_assert_eq(sum_up(f).calls, 3ull * processes);
	for (i = 0; i < model_call_total_count(f->model); i++)
		if (model_call_total(f->model, i)->function->role == XPT_ROLE_COPY)
			copies += model_call_total(f->model, i)->total.calls;
	cr_assert_eq(copies, processes);
	cr_assert_leq(model_call_total_count(f->model), 2 * (256 + 3), "those that have exited are gone");
	cr_assert_eq(f->kinds[EVENT_UNPAIRED], processes);
	cr_assert_eq(model_lost(f->model, XPT_LOSS_NAMES), 0);
	fixture_free(f);
}

Test(model_program_retention, a_process_waits_for_the_totals_of_what_was_read)
{
	const __u64 second = 1000000000;
	struct fixture *f = fixture_toy();
	__u64 time = 1000;
	__u32 tgid;

	model_keep_released(f->model, 8);
	toy_execute(f, 1, 5, 100, 110);
	CALL_1(f, TOY_COPY, 2, 2, 100, 110, 2, U(10), U(0));
	cr_assert_eq(feed_count(f, count_make(1, 0, 5, 100, 200, 7, 0, 0)), 0);
	cr_assert_eq(feed_count(f, count_make(2, TOY_COPY + 1, 0, 100, 200, 7, 0, 0)), 0);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 1, 0, 300, "x"), 0);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 2, 0, 300, "x"), 0);
	for (tgid = 10; tgid < 100; tgid++, time += second) {
		toy_execute(f, tgid, 5, time, time + 1);
		cr_assert_eq(feed_task(f, XPT_TASK_EXIT, tgid, 0, time + 2, "x"), 0);
		cr_assert_eq(feed_final(f, count_make(tgid, 0, 5, 0, time + 3, 1, 0, 0)), 0);
	}
	cr_assert_eq(feed_final(f, count_make(1, 0, 5, 0, time, 9, 0, 0)), 0);
	cr_assert_eq(feed_final(f, count_make(2, TOY_COPY + 1, 0, 0, time, 9, 0, 0)), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(toy_program(f, 1, 5, 0)->total.calls, 9);
	cr_assert_eq(sum_up(f).calls, 9 + 90);
	cr_assert_eq(model_call_total_count(f->model), 1);
	cr_assert_eq(model_call_total(f->model, 0)->total.calls, 9);
	fixture_free(f);
}

/* What the kernel counts of a handle is not forgotten with the newest program that had it, while an older one stays. */
Test(model_program_retention, an_older_generation_carries_the_counts_on)
{
	struct fixture *f = fixture_toy();
	__u64 i, time = 1000;

	model_keep_released(f->model, 8);
	CALL_1(f, TOY_ENQUEUE, 1, 1, 10, 20, 4, U(5), U(77), U(0), U(0)); /* stays open */
	toy_unload(f, 5, 30, 40);
	toy_load(f, 5, "newest", 50, 60);
	cr_assert_eq(feed_final(f, count_make(1, 0, 5, 0, 99, 3, 0, 0)), 0);
	toy_unload(f, 5, 100, 110);
	for (i = 0; i < 100; i++, time += 10)
		load_run_unload(f, 0x1000 + i * 16, time);
	cr_assert_eq(feed_count(f, count_make(1, 0, 5, 70, time, 3, 0, 0)), 0);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_null(toy_program(f, 1, 5, 1));
	cr_assert_eq(toy_program(f, 1, 5, 0)->total.calls, 0);
	cr_assert_eq(sum_up(f).calls, 3 + 200);
	fixture_free(f);
}
