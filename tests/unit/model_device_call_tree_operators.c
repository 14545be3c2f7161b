/* SPDX-License-Identifier: BSD-2-Clause */
/* Which operators have which jobs, and how long those took. */
#include "model/device/call_tree.h"

#include "model_driver_records.h"

enum { QUEUE, RUN, DONE, ERROR };

#define GEMM 0x7f0000001000u
#define SESSION U(5)
#define SECOND 1000000000ull

static struct fixture *fixture_jobs(void)
{
	struct fixture *f = fixture_toy();

	driver(f, 0, "one", XPT_PAIRING_UNIQUE, 64, "");
	driver_event(f, QUEUE, 0, XPT_EVENT_QUEUE, true, "kE");
	driver_event(f, RUN, 0, XPT_EVENT_RUN, false, "k");
	driver_event(f, DONE, 0, XPT_EVENT_DONE, false, "k");
	driver_event(f, ERROR, 0, XPT_EVENT_ERROR, false, "ks");
	return f;
}

/* Of process 1, thread 7, as all here. */
static void queue(struct fixture *f, __u64 key, __u64 time)
{
	TARGET(f, QUEUE, 1, 7, time, key, "gfx");
}

static void run_and_end(struct fixture *f, __u64 key, __u64 runs, __u64 done)
{
	OTHER(f, RUN, runs, key);
	OTHER(f, DONE, done, key);
}

static void launch(struct fixture *f, unsigned int depth, __u64 start, __u64 end)
{
	struct call_record record = call_make(TOY_LAUNCH, 1, 7, start, end, 3, U(60), U(9), U(0));

	record.call.depth = (__u8)depth;
	record.call.valid = 3;
	cr_assert_eq(feed_call(f, record), 0);
}

static void step(struct fixture *f, unsigned int depth, __u64 object, __u64 start, __u64 end)
{
	struct call_record record = call_make(TOY_OPERATOR, 1, 7, start, end, 4, object, U(GEMM), SESSION, U(100));

	record.call.depth = (__u8)depth;
	cr_assert_eq(feed_call(f, record), 0);
}

static void inference(struct fixture *f, __u64 start, __u64 end)
{
	CALL_1(f, TOY_EXECUTE, 1, 7, start, end, 4, SESSION, U(0), U(0), U(0));
}

static const struct model_operator *op(const struct fixture *f, size_t index)
{
	cr_assert_lt(index, model_operator_count(f->model));
	return model_operator(f->model, index);
}

/* Sums over all operators and all jobs reported that have one are the same, however they came about. */
static void check_sums(const struct fixture *f)
{
	__u64 jobs = 0, time = 0, reported = 0, reported_time = 0;

	for (size_t i = 0; i < model_operator_count(f->model); i++) {
		jobs += op(f, i)->jobs;
		time += op(f, i)->device_time;
	}
	for (size_t i = 0; i < f->kinds[EVENT_JOB]; i++) {
		const struct event_job *job = job_nth(f, i);

		reported += job->op && job->done;
		reported_time += job->op && job->runs && job->done ? job->done - job->runs : 0;
	}
	cr_expect_eq(jobs, reported, "%llu of %llu", jobs, reported);
	cr_expect_eq(time, reported_time, "%llu of %llu", time, reported_time);
}

/* Whether they end before their operator does or behind it. */
Test(model_device_call_tree_operators, counted_once_whenever_they_end)
{
	struct fixture *f = fixture_jobs();

	queue(f, 1, 111);
	launch(f, 2, 110, 112);
	queue(f, 2, 114);
	launch(f, 2, 113, 115);
	run_and_end(f, 1, 116, 119);
	step(f, 1, 0x10, 105, 120);
	OTHER(f, RUN, 125, U(2));
	queue(f, 3, 131);
	launch(f, 2, 130, 132);
	step(f, 1, 0x20, 128, 140);
	inference(f, 100, 200);
	OTHER(f, DONE, 225, U(2));
	run_and_end(f, 3, 230, 237);
	cr_assert_eq(model_flush(f->model), 0);
	cr_expect_eq(op(f, 0)->jobs, 2);
	cr_expect_eq(op(f, 0)->failed_jobs, 0);
	cr_expect_eq(op(f, 0)->device_time, 3 + 100);
	cr_expect_eq(op(f, 1)->jobs, 1);
	cr_expect_eq(op(f, 1)->device_time, 7);
	cr_assert_eq(f->kinds[EVENT_JOB], 3);
	cr_expect_eq(job_nth(f, 0)->op, op(f, 0));
	cr_expect_eq(job_nth(f, 0)->program, toy_program(f, 1, 60, 0), "the kernel's, too");
	cr_expect_eq(job_nth(f, 1)->op, op(f, 0));
	cr_expect_eq(job_nth(f, 2)->op, op(f, 1));
	cr_expect_eq(toy_program(f, 1, 60, 0)->device_time, 110);
	cr_expect_eq(toy_program(f, 1, 5, 0)->device_time, 110);
	check_sums(f);
	fixture_free(f);
}

Test(model_device_call_tree_operators, the_innermost_operator_has_it)
{
	struct fixture *f = fixture_jobs();

	queue(f, 1, 107);
	queue(f, 2, 116);
	run_and_end(f, 1, 117, 118);
	step(f, 2, 0x10, 115, 120);
	queue(f, 3, 121);
	run_and_end(f, 2, 122, 132);
	run_and_end(f, 3, 133, 233);
	step(f, 1, 0x20, 105, 140);
	inference(f, 100, 200);
	cr_assert_eq(model_flush(f->model), 0);
	cr_expect_eq(op(f, 0)->jobs, 1);
	cr_expect_eq(op(f, 0)->device_time, 10);
	cr_expect_eq(op(f, 1)->jobs, 2);
	cr_expect_eq(op(f, 1)->device_time, 1 + 100);
	check_sums(f);
	fixture_free(f);
}

/* Of no operator: before, between and behind them, on other threads, and of one that has no end. */
Test(model_device_call_tree_operators, outside_of_operators)
{
	struct fixture *f = fixture_jobs();

	queue(f, 1, 103);
	step(f, 1, 0x10, 105, 110);
	queue(f, 2, 112);
	TARGET(f, QUEUE, 1, 8, 117, U(3), "gfx");
	step(f, 1, 0x10, 115, 120);
	queue(f, 4, 125); /* in one that is left by an exception */
	queue(f, 5, 135);
	step(f, 1, 0x20, 130, 140);
	inference(f, 100, 200);
	queue(f, 6, 210);
	for (__u64 key = 1; key <= 6; key++)
		run_and_end(f, key, 300 + 10 * key, 301 + 11 * key);
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_JOB], 6);
	cr_expect_eq(op(f, 0)->jobs, 0);
	cr_expect_eq(op(f, 0)->device_time, 0);
	cr_expect_eq(op(f, 1)->jobs, 1);
	cr_expect_eq(op(f, 1)->device_time, 6);
	for (size_t i = 0; i < 6; i++)
		cr_expect_eq(job_nth(f, i)->op, job_nth(f, i)->queued == 135 ? op(f, 1) : NULL, "job %zu", i);
	check_sums(f);
	fixture_free(f);
}

Test(model_device_call_tree_operators, failed_given_up_and_without_times)
{
	struct fixture *f = fixture_jobs();

	queue(f, 1, 106);
	queue(f, 2, 107);
	queue(f, 3, 108);
	OTHER(f, RUN, 109, U(1));
	OTHER(f, ERROR, 110, U(1), U(5));
	step(f, 1, 0x10, 105, 120);
	inference(f, 100, 200);
	OTHER(f, DONE, 111, U(1));
	OTHER(f, DONE, 220, U(2)); /* was not seen to run */
	OTHER(f, RUN, 230, U(3));  /* does not end */
	cr_assert_eq(feed_end(f, 300), 0);
	cr_expect_eq(op(f, 0)->jobs, 2);
	cr_expect_eq(op(f, 0)->failed_jobs, 1);
	cr_expect_eq(op(f, 0)->device_time, 2);
	cr_assert_eq(f->kinds[EVENT_JOB], 3);
	cr_expect_eq(job_nth(f, 2)->op, op(f, 0));
	check_sums(f);
	fixture_free(f);
}

/* Too many operators: what they submit is not the one's around them. */
Test(model_device_call_tree_operators, of_operators_that_are_not_kept_apart)
{
	struct fixture *f = fixture_jobs();

	for (__u64 i = 0; i < MODEL_OPERATORS_MAX; i++)
		step(f, 1, 16 * (i + 2), 100 + i, 101 + i);
	queue(f, 1, 100003);
	step(f, 2, 0x1000000, 100002, 100005);
	queue(f, 2, 100006);
	step(f, 1, 16 * 2, 100001, 100010);
	inference(f, 100, 200000);
	run_and_end(f, 1, 200010, 200020);
	run_and_end(f, 2, 200030, 200035);
	cr_assert_eq(model_flush(f->model), 0);
	cr_expect_eq(model_operator_count(f->model), MODEL_OPERATORS_MAX);
	cr_expect_eq(op(f, 0)->jobs, 1);
	cr_expect_eq(op(f, 0)->device_time, 5);
	check_sums(f);
	fixture_free(f);
}

/* A job that ends when its process is long forgotten finds no operator. */
Test(model_device_call_tree_operators, of_a_process_that_is_forgotten)
{
	struct fixture *f = fixture_jobs();

	f->quiet = true;
	model_keep_released(f->model, 2);
	queue(f, 1, 106);
	step(f, 1, 0x10, 105, 120);
	inference(f, 100, 200);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 1, 0, 300, "one"), 0);
	for (__u64 i = 0; i < 100; i++) {
		const __u64 time = (i + 1) * SECOND / 4; /* within the grace of the job */
		const __u32 tgid = (__u32)(100 + i);

		toy_execute(f, tgid, 7, time, time + 5);
		cr_assert_eq(feed_task(f, XPT_TASK_EXIT, tgid, 0, time + 6, "other"), 0);
	}
	cr_assert_eq(feed_pass(f, 40 * SECOND), 0);
	cr_assert_eq(feed_pass(f, 40 * SECOND), 0);
	cr_expect_eq(model_operator_count(f->model), 0);
	run_and_end(f, 1, 45 * SECOND, 50 * SECOND);
	cr_assert_eq(model_flush(f->model), 0);
	cr_expect_eq(f->kinds[EVENT_JOB], 1);
	fixture_free(f);
}

/* ---- times off the CPU ---- */

static void off_cpu(struct fixture *f, enum xpt_off_cpu reason, __u64 start, __u64 woken, __u64 end)
{
	struct xpt_record_off_cpu record = {
		.header = { XPT_RECORD_OFF_CPU, sizeof(record), 1, end },
		.start = start,
		.woken = woken,
		.tid = 7,
		.syscall = 202,
		.reason = (__u8)reason,
		.next_tgid = 90,
		.next_tid = 91,
		.next = "ffmpeg",
		.waker_tgid = 80,
		.waker_tid = 81,
		.waker = "worker",
	};

	cr_assert_eq(model_feed(f->model, &record.header), 0);
}

/* With what its thread did, blocked in it for all but waited of off. */
static void inference_off(struct fixture *f, __u64 start, __u64 end, __u64 off, __u64 waited)
{
	struct {
		struct call_record call;
	} room = { call_make(TOY_EXECUTE, 1, 7, start, end, 4, SESSION, U(0), U(0), U(0)) };
	const struct xpt_task_state state = { off, waited, 1, 1, 0, 0 };

	room.call.call.depth = XPT_CALL_STATES | XPT_CALL_STATES_FOLLOW;
	memcpy(&room.call.value[4], &state, sizeof(state));
	room.call.call.header.size += sizeof(state);
	cr_assert_eq(feed_call(f, room.call), 0);
}

static const struct event_off_cpu *off_nth(const struct fixture *f, size_t nth)
{
	const struct seen *seen = seen_nth(f, EVENT_OFF_CPU, nth);

	cr_assert_not_null(seen, "number %zu", nth);
	return &seen->event.off_cpu;
}

/* The innermost call shows each once; sums of the inference have all of them. */
Test(model_device_call_tree_operators, times_off_the_cpu)
{
	struct fixture *f = fixture_jobs();
	const struct model_states *states;
	const struct model_program *program;

	off_cpu(f, XPT_OFF_CPU_FUTEX, 50, 60, 70); /* before the inference: of nothing that is recorded */
	off_cpu(f, XPT_OFF_CPU_FUTEX, 110, 130, 135);
	step(f, 1, 0x10, 105, 140);
	off_cpu(f, XPT_OFF_CPU_PREEMPTED, 150, 150, 160);
	off_cpu(f, XPT_OFF_CPU_IO, 165, 0, 170); /* nobody was seen to wake it */
	inference_off(f, 100, 200, 45, 12);
	off_cpu(f, XPT_OFF_CPU_FUTEX, 210, 220, 230); /* of a call that never returns */
	cr_assert_eq(model_flush(f->model), 0);
	cr_assert_eq(f->kinds[EVENT_OFF_CPU], 3);
	cr_expect(off_nth(f, 0)->op == op(f, 0) && off_nth(f, 0)->woken == 130 && off_nth(f, 0)->end == 135);
	cr_expect(off_nth(f, 1)->reason == XPT_OFF_CPU_PREEMPTED && off_nth(f, 1)->woken == 150 && !off_nth(f, 1)->op);
	cr_expect(off_nth(f, 2)->reason == XPT_OFF_CPU_IO && off_nth(f, 2)->woken == 170);
	program = off_nth(f, 1)->program;
	cr_assert_not_null(program);
	states = &program->states;
	/* 45 off the CPU, of which the kernel counted 12 as waiting: but it was 3 more that it took to run again. */
	cr_expect_eq(states->cpu, 55);
	cr_expect_eq(states->waited, 15);
	cr_expect_eq(states->blocked, 30);
	cr_expect_eq(states->blocked_by[XPT_OFF_CPU_FUTEX], 20);
	cr_expect_eq(states->blocked_by[XPT_OFF_CPU_IO], 5);
	cr_expect_eq(states->blocked_by[XPT_OFF_CPU_OTHER], 5, "what no record shows");
	cr_assert_eq(program->neighbour_count, 2);
	cr_expect_str_eq(program->neighbours[0].name, "worker");
	cr_expect(program->neighbours[0].woke == 2 && program->neighbours[0].woke_time == 25);
	cr_expect_str_eq(program->neighbours[1].name, "ffmpeg");
	cr_expect(program->neighbours[1].preempted == 1 && program->neighbours[1].preempted_time == 10);
	fixture_free(f);
}

Test(model_device_call_tree_operators, times_off_the_cpu_that_are_damaged_or_too_many)
{
	struct fixture *f = fixture_jobs();
	struct xpt_record_off_cpu record = { .header = { XPT_RECORD_OFF_CPU, sizeof(record), 1, 120 }, .start = 110 };

	cr_expect_eq(model_feed(f->model, &record.header), -EBADMSG, "no reason");
	record.reason = XPT_OFF_CPU_OTHER + 1;
	cr_expect_eq(model_feed(f->model, &record.header), -EBADMSG);
	record.reason = XPT_OFF_CPU_IO;
	record.start = 121;
	cr_expect_eq(model_feed(f->model, &record.header), -EBADMSG, "ends before it begins");
	f->quiet = true;
	for (__u64 i = 0; i < 2 * OFF_CPU_MAX + 100; i++)
		off_cpu(f, XPT_OFF_CPU_SLEEP, 1000 + 10 * i, 1005 + 10 * i, 1008 + 10 * i);
	inference_off(f, 100, 200000, 100000, 10);
	cr_assert_eq(model_flush(f->model), 0);
	cr_expect_geq(f->kinds[EVENT_OFF_CPU], OFF_CPU_MAX / 2);
	cr_expect_leq(f->kinds[EVENT_OFF_CPU], OFF_CPU_MAX);
	fixture_free(f);
}

Test(model_device_call_tree_operators, neighbours_that_are_too_many)
{
	struct fixture *f = fixture_jobs();
	const struct model_program *program;
	__u64 preempted = 0;

	for (__u32 i = 0; i < MODEL_NEIGHBOURS_MAX + 50; i++) {
		struct xpt_record_off_cpu record = { .header = { XPT_RECORD_OFF_CPU, sizeof(record), 1, 120 + i },
						     .start = 119 + i,
						     .tid = 7,
						     .reason = XPT_OFF_CPU_PREEMPTED,
						     .next_tgid = 500 + i,
						     .next_tid = 500 + i };

		memset(record.next, 'x', sizeof(record.next)); /* not terminated */
		cr_assert_eq(model_feed(f->model, &record.header), 0);
	}
	inference_off(f, 100, 1000, 100, 100);
	cr_assert_eq(model_flush(f->model), 0);
	program = off_nth(f, 0)->program;
	cr_assert_eq(program->neighbour_count, MODEL_NEIGHBOURS_MAX);
	for (size_t i = 0; i < program->neighbour_count; i++)
		preempted += program->neighbours[i].preempted;
	cr_expect_eq(preempted, MODEL_NEIGHBOURS_MAX + 50);
	cr_expect_str_eq(program->neighbours[MODEL_NEIGHBOURS_MAX - 1].name, "(others)");
	fixture_free(f);
}
