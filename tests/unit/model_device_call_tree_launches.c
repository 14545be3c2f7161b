/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/call_tree.h"

#include "model_records.h"

#define GEMM 0x7f0000001000u
#define SESSION U(0x5000)

/* Of process 1. With layer, the launch is the runtime's below. */
static void launch_of(struct fixture *f, __u32 tid, unsigned int depth, bool layer, __u64 kernel, __u64 start,
		      __u64 end)
{
	struct call_record record = call_make(layer ? LOW_LAUNCH : TOY_LAUNCH, 1, tid, start, end, layer ? 2 : 3,
					      kernel, U(9), U(0));

	record.call.depth = (__u8)depth;
	record.call.flags = layer ? XPT_CALL_LAYER : 0;
	if (!layer)
		record.call.valid = 3; /* no key */
	cr_assert_eq(feed_call(f, record), 0);
}

static void launch(struct fixture *f, unsigned int depth, __u64 kernel, __u64 start)
{
	launch_of(f, 7, depth, false, kernel, start, start + 2);
}

/* On thread 7. */
static void step(struct fixture *f, unsigned int depth, __u64 object, __u64 start, __u64 end)
{
	struct call_record record = call_make(TOY_OPERATOR, 1, 7, start, end, 4, object, U(GEMM), SESSION, U(100));

	record.call.depth = (__u8)depth;
	cr_assert_eq(feed_call(f, record), 0);
}

static void run(struct fixture *f, __u64 start, __u64 end)
{
	CALL_1(f, TOY_EXECUTE, 1, 7, start, end, 4, SESSION, U(0), U(0), U(0));
}

static void flush(struct fixture *f)
{
	cr_assert_eq(model_flush(f->model), 0);
}

static const struct event_launch *launch_nth(const struct fixture *f, size_t nth)
{
	const struct seen *seen = seen_nth(f, EVENT_LAUNCH, nth);

	cr_assert_not_null(seen, "there is no launch number %zu", nth);
	return &seen->event.launch;
}

/* The nth launch reported began at start, in the operator with this number, from 0; -1: in none. */
static void expect(const struct fixture *f, size_t nth, __u64 start, int op)
{
	const struct event_launch *launch = launch_nth(f, nth);

	cr_expect_eq(launch->start, start, "launch %zu: %llu", nth, launch->start);
	cr_expect_eq(launch->op, op < 0 ? NULL : model_operator(f->model, (size_t)op), "launch %zu", nth);
}

static size_t position(const struct fixture *f, enum event_kind kind, size_t nth)
{
	return (size_t)(seen_nth(f, kind, nth) - f->seen);
}

Test(model_device_call_tree_launches, in_their_operators)
{
	struct fixture *f = fixture_toy();

	launch(f, 2, 60, 110);
	launch(f, 2, 61, 120);
	step(f, 1, 0x10, 105, 130);
	launch(f, 1, 62, 140); /* between them */
	launch(f, 2, 60, 150);
	step(f, 1, 0x20, 145, 160);
	run(f, 100, 200);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_LAUNCH], 4);
	expect(f, 0, 110, 0);
	expect(f, 1, 120, 0);
	expect(f, 2, 150, 1);
	expect(f, 3, 140, -1);
	cr_expect_eq(launch_nth(f, 0)->end, 112);
	cr_expect_eq(launch_nth(f, 0)->tgid, 1);
	cr_expect_eq(launch_nth(f, 0)->tid, 7);
	cr_expect_eq(launch_nth(f, 0)->program, toy_program(f, 1, 60, 0));
	cr_expect_eq(launch_nth(f, 1)->program, toy_program(f, 1, 61, 0));
	cr_expect_str_eq(launch_nth(f, 0)->function->name, "toy_launch");
	cr_expect_eq(model_operator(f->model, 0)->launches, 2);
	cr_expect_eq(model_operator(f->model, 1)->launches, 1);
	/* Each behind its operator, the last one behind the inference: calls 2, 5 and 6. */
	cr_expect_gt(position(f, EVENT_LAUNCH, 0), position(f, EVENT_CALL, 2));
	cr_expect_lt(position(f, EVENT_LAUNCH, 1), position(f, EVENT_CALL, 3));
	cr_expect_gt(position(f, EVENT_LAUNCH, 3), position(f, EVENT_CALL, 6));
	fixture_free(f);
}

Test(model_device_call_tree_launches, the_innermost_operator_has_it)
{
	struct fixture *f = fixture_toy();

	launch(f, 2, 60, 106);
	launch(f, 3, 61, 120);
	step(f, 2, 0x10, 115, 130);
	launch(f, 2, 62, 140);
	step(f, 1, 0x20, 105, 160);
	run(f, 100, 200);
	flush(f);
	expect(f, 0, 120, 0);
	expect(f, 1, 106, 1);
	expect(f, 2, 140, 1);
	cr_expect_eq(model_operator(f->model, 0)->launches, 1);
	cr_expect_eq(model_operator(f->model, 1)->launches, 2);
	fixture_free(f);
}

/* One that was left by an exception has no end: what it launched is no later operator's, but of the one around it. */
Test(model_device_call_tree_launches, an_operator_without_an_end)
{
	struct fixture *f = fixture_toy();

	launch(f, 2, 60, 110);
	launch(f, 2, 61, 130);
	step(f, 1, 0x10, 125, 140);
	run(f, 100, 200);
	launch(f, 3, 62, 320);
	launch(f, 3, 63, 340);
	step(f, 2, 0x10, 335, 350);
	step(f, 1, 0x20, 305, 360);
	run(f, 300, 400);
	flush(f);
	expect(f, 0, 130, 0);
	expect(f, 1, 110, -1);
	expect(f, 2, 340, 0);
	expect(f, 3, 320, 1);
	fixture_free(f);
}

Test(model_device_call_tree_launches, other_threads_and_layers)
{
	struct fixture *f = fixture_toy();

	launch_of(f, 8, 1, false, 60, 110, 112); /* while the operator is open */
	launch_of(f, 7, 3, true, 61, 121, 122);
	launch(f, 2, 61, 120);
	step(f, 1, 0x10, 105, 130);
	run(f, 100, 200);
	CALL_1(f, TOY_EXECUTE, 1, 8, 90, 210, 4, SESSION, U(0), U(0), U(0));
	launch_of(f, 9, 0, false, 60, 220, 222);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_LAUNCH], 3, "a layer is no launch of its own");
	expect(f, 0, 120, 0);
	expect(f, 1, 110, -1);
	expect(f, 2, 220, -1);
	cr_expect_eq(model_operator(f->model, 0)->launches, 1);
	fixture_free(f);
}

/* Nothing is kept back: not with its process, not at the end. */
Test(model_device_call_tree_launches, what_never_returns)
{
	struct fixture *f = fixture_toy();

	launch(f, 2, 60, 110);
	cr_assert_eq(feed_task(f, XPT_TASK_EXEC, 1, 0, 120, "new"), 0);
	launch(f, 2, 61, 130);
	cr_assert_eq(feed_text(f, XPT_RECORD_END, 0, 140, 0, "{}"), 0);
	cr_assert_eq(f->kinds[EVENT_LAUNCH], 2);
	expect(f, 0, 110, -1);
	expect(f, 1, 130, -1);
	cr_expect_lt(position(f, EVENT_LAUNCH, 0), position(f, EVENT_TASK, 0));
	fixture_free(f);
}

Test(model_device_call_tree_launches, too_many)
{
	struct fixture *f = fixture_toy();

	f->quiet = true;
	for (__u64 i = 0; i < LAUNCHES_MAX + 10; i++)
		launch(f, 2, 60, 110 + 2 * i);
	step(f, 1, 0x10, 105, 1000000);
	run(f, 100, 2000000);
	flush(f);
	cr_expect_eq(f->kinds[EVENT_LAUNCH], LAUNCHES_MAX + 10);
	cr_expect_eq(model_operator(f->model, 0)->launches, LAUNCHES_MAX);
	fixture_free(f);
}
