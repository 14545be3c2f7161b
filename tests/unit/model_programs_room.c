/* SPDX-License-Identifier: BSD-2-Clause */
#include "model_records.h"

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

Test(model_programs_room, a_million_programs_stay_within_the_limit, .timeout = 120)
{
	struct fixture *f = fixture_toy();
	const __u64 programs = 1000000;
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

Test(model_programs_room, more_at_once_than_are_kept_apart)
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
	cr_assert_eq(f->kinds[EVENT_LOST], 1, "told once a batch, not once a call");
	cr_assert_eq(seen_nth(f, EVENT_LOST, 0)->event.lost.count, 500);
	cr_assert_eq(sum_up(f).recorded, programs);
	fixture_free(f);
}

Test(model_programs_room, one_with_an_inference_under_way_stays)
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

Test(model_programs_room, processes_without_end, .timeout = 120)
{
	struct fixture *f = fixture_toy();
	const __u32 processes = 50000;
	struct call_record copy;
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
		CALL_1(f, TOY_BEGIN, tgid, tgid, time + 5, time + 6, 1, U(3));
		CALL_1(f, TOY_END, tgid, tgid, time + 7, time + 8, 1, U(3));
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
