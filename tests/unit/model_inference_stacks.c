/* SPDX-License-Identifier: BSD-2-Clause */
#include "model_records.h"

#include "model/inference/stacks.h"

/* What a stack's event had, with the names of its frames. */
struct met {
	char frames[256]; /* "inner<outer" */
	char program[32], op[32];
	struct event_stack stack;
	bool partial, known;
};

struct stacks_fixture {
	struct fixture *f;
	struct met met[64];
	size_t count;
};

static int on_stack(void *context, const struct event *event)
{
	struct stacks_fixture *s = context;
	struct met *met = &s->met[s->count];
	const struct event_stack *stack = &event->stack;

	if (event->kind != EVENT_STACK || s->count == 64)
		return 0;
	s->count++;
	met->stack = *stack;
	met->partial = stack->stack->partial;
	met->known = stack->function;
	for (size_t i = 0; i < stack->stack->count && i < 4; i++) {
		const struct model_frame *frame = stack->stack->frames[i];

		snprintf(met->frames + strlen(met->frames), sizeof(met->frames) - strlen(met->frames), "%s%s",
			 i ? "<" : "", frame->function ?: frame_kind_name(frame->kind));
	}
	snprintf(met->program, sizeof(met->program), "%s", stack->program ? stack->program->name : "");
	snprintf(met->op, sizeof(met->op), "%s", stack->op ? stack->op->label : "");
	return 0;
}

static void feed_stack(struct fixture *f, __u64 id, unsigned int flags, unsigned int count, const __u32 *frames)
{
	char bytes[4096] __attribute__((aligned(8))) = {};
	struct xpt_record_stack *record = (void *)bytes;

	record->header.kind = XPT_RECORD_STACK;
	record->header.size = (__u16)XPT_ALIGN8(sizeof(*record) + count * sizeof(*frames));
	record->id = id;
	record->frames = count;
	record->flags = flags;
	memcpy(record->frame, frames, count * sizeof(*frames));
	cr_assert_eq(model_feed(f->model, &record->header), 0);
}

static int feed_sample(struct fixture *f, unsigned int reason, __u64 time, __u64 call_start, __u64 operator_start,
		       __u64 stack, __u64 weight)
{
	const struct xpt_record_stack_sample record = {
		.header = { XPT_RECORD_STACK_SAMPLE, sizeof(record), 7, time },
		.call_start = call_start,
		.operator_start = operator_start,
		.stack = stack,
		.weight = weight,
		.tid = 70,
		.reason = reason,
	};

	return model_feed(f->model, &record.header);
}

static void stacks_begin(struct stacks_fixture *s)
{
	*s = (struct stacks_fixture){ .f = fixture_toy() };
	cr_assert_eq(model_want_stacks(s->f->model), 0);
	cr_assert_eq(model_add_sink(s->f->model, (struct event_sink){ on_stack, s }), 0);
	feed_text(s->f, XPT_RECORD_MODULE, 0, 0, 1, "{\"path\":\"/lib/a.so\",\"build_id\":\"0f\"}");
	feed_text(s->f, XPT_RECORD_FRAME, 0, 0, 1,
		  "{\"kind\":\"native\",\"function\":\"run\",\"module\":1,\"offset\":16,\"file\":\"a.c\",\"line\":3}");
	feed_text(s->f, XPT_RECORD_FRAME, 0, 0, 2, "{\"kind\":\"python\",\"function\":\"main\"}");
	feed_stack(s->f, 5, 0, 3, (const __u32[]){ 1, 2, 9 });
}

static void stacks_end(struct stacks_fixture *s)
{
	fixture_free(s->f);
}

Test(model_inference_stacks, joins_calls_that_come_before_and_after)
{
	struct stacks_fixture s;

	stacks_begin(&s);
	feed_text(s.f, XPT_RECORD_NAMED, 0, 1, 0xa, "ranker");
	CALL_1(s.f, TOY_EXECUTE, 7, 70, U(100), U(200), 1, U(0xa));
	cr_assert_eq(feed_sample(s.f, XPT_STACK_CALL, 100, 100, 0, 5, 16), 0);
	cr_assert_eq(feed_sample(s.f, XPT_STACK_CALL, 300, 300, 0, 5, 2), 0);
	cr_assert_eq(feed_sample(s.f, XPT_STACK_OFF_CPU, 310, 300, 0, 5, 99), 0);
	CALL_1(s.f, TOY_EXECUTE, 7, 70, U(300), U(350), 1, U(0xa));
	model_flush(s.f->model);
	/* Later than everything else. */
	cr_assert_eq(feed_sample(s.f, XPT_STACK_ON_CPU, 150, 100, 0, 5, 10), 0);
	model_flush(s.f->model);
	cr_assert_eq(s.count, 4);
	for (size_t i = 0; i < s.count; i++) {
		cr_expect_str_eq(s.met[i].frames, "run<main<unknown");
		cr_expect_str_eq(s.met[i].program, "ranker");
		cr_expect(!s.met[i].partial && s.met[i].stack.tid == 70);
	}
	cr_expect_eq(s.met[0].stack.duration, 100);
	cr_expect_eq(s.met[0].stack.weight, 16);
	cr_expect_eq(s.met[3].stack.reason, XPT_STACK_ON_CPU);
	cr_expect_eq(s.met[3].stack.duration, 100);
	cr_expect_eq(s.met[1].stack.duration, 50);
	cr_expect_eq(s.met[2].stack.duration, 50);
	stacks_end(&s);
}

Test(model_inference_stacks, asynchronous_inferences_weigh_until_their_end)
{
	struct stacks_fixture s;

	stacks_begin(&s);
	cr_assert_eq(feed_sample(s.f, XPT_STACK_CALL, 100, 100, 0, 5, 1), 0);
	cr_assert_eq(feed_sample(s.f, XPT_STACK_ON_CPU, 110, 100, 0, 5, 1), 0);
	CALL_1(s.f, TOY_ENQUEUE, 7, 70, U(100), U(120), 3, U(0xa), U(4), U(0));
	model_flush(s.f->model);
	cr_assert_eq(s.count, 2); /* it never ends: that has no time */
	cr_expect_eq(s.met[0].stack.reason, XPT_STACK_ON_CPU);
	cr_expect(s.met[1].known && !s.met[1].stack.duration);
	stacks_end(&s);

	stacks_begin(&s);
	CALL_1(s.f, TOY_ENQUEUE, 7, 70, U(100), U(120), 3, U(0xa), U(4), U(0));
	cr_assert_eq(feed_sample(s.f, XPT_STACK_CALL, 100, 100, 0, 5, 1), 0);
	CALL_1(s.f, TOY_WAIT, 7, 71, U(130), U(400), 2, U(4), U(1));
	model_flush(s.f->model);
	cr_assert_eq(s.count, 1);
	cr_expect_eq(s.met[0].stack.duration, 300);
	stacks_end(&s);
}

Test(model_inference_stacks, operators_are_those_that_were_open)
{
	struct stacks_fixture s;

	stacks_begin(&s);
	cr_assert_eq(feed_sample(s.f, XPT_STACK_OFF_CPU, 130, 100, 120, 5, 8), 0);
	cr_assert_eq(feed_sample(s.f, XPT_STACK_OFF_CPU, 170, 100, 160, 5, 8), 0); /* of one that is not there */
	CALL_1(s.f, TOY_OPERATOR, 7, 70, U(120), U(140), 4, U(0x70), U(0x80), U(0xa), U(100));
	CALL_1(s.f, TOY_EXECUTE, 7, 70, U(100), U(200), 1, U(0xa));
	model_flush(s.f->model);
	cr_assert_eq(s.count, 2);
	cr_expect_neq(!*s.met[0].op, !*s.met[1].op);
	stacks_end(&s);
}

Test(model_inference_stacks, unknown_ids_and_damaged_records_do_no_harm)
{
	struct stacks_fixture s;
	__u32 many[XPT_STACK_FRAMES_MAX + 8] = {};

	stacks_begin(&s);
	cr_expect_eq(feed_text(s.f, XPT_RECORD_FRAME, 0, 0, 3,
			       "{\"kind\":7,\"function\":7,\"module\":-1,\"offset\":\"\"}"),
		     0);
	cr_expect_eq(feed_text(s.f, XPT_RECORD_FRAME, 0, 0, 4, "{"), -EBADMSG);
	cr_expect_eq(feed_text(s.f, XPT_RECORD_FRAME, 0, 0, 1, "{\"kind\":\"kernel\",\"function\":\"second\"}"), 0);
	feed_stack(s.f, 6, 0, XPT_STACK_FRAMES_MAX + 8, many);
	feed_stack(s.f, 7, XPT_STACK_PARTIAL, 1, (const __u32[]){ 3 });
	CALL_1(s.f, TOY_EXECUTE, 7, 70, U(100), U(200), 1, U(0xa));
	model_flush(s.f->model);
	cr_assert_eq(feed_sample(s.f, XPT_STACK_CALL, 100, 100, 0, 77, 1), 0);
	cr_assert_eq(feed_sample(s.f, XPT_STACK_CALL, 100, 100, 0, 6, 1), 0);
	cr_assert_eq(feed_sample(s.f, XPT_STACK_CALL, 100, 100, 0, 7, 1), 0);
	cr_assert_eq(feed_sample(s.f, XPT_STACK_CALL, 100, 100, 0, 5, 1), 0);
	cr_assert_eq(feed_sample(s.f, XPT_STACK_CALL, 101, 90, 0, 5, 1), 0); /* of a call that is not there */
	feed_sample(s.f, 9, 100, 100, 0, 5, 1);
	model_flush(s.f->model);
	cr_assert_eq(s.count, 5);
	cr_expect(s.met[0].partial && s.met[0].stack.stack->count == 0);
	cr_expect(s.met[1].partial && s.met[1].stack.stack->count == XPT_STACK_FRAMES_MAX);
	cr_expect(s.met[2].partial);
	cr_expect_str_eq(s.met[2].frames, "unknown");
	cr_expect_str_eq(s.met[3].frames, "run<main<unknown", "the first definition holds");
	cr_expect(!s.met[4].known && !s.met[4].stack.duration);
	stacks_end(&s);
}

Test(model_inference_stacks, samples_without_a_call_are_bounded)
{
	struct stacks_fixture s;

	stacks_begin(&s);
	for (__u64 i = 0; i < STACK_SAMPLES_MAX + 3; i++)
		cr_assert_eq(feed_sample(s.f, XPT_STACK_OFF_CPU, 1000 + i, 1000 + i, 0, 5, 1), 0);
	feed_pass(s.f, 1000000);
	feed_pass(s.f, 1000001);
	cr_expect_eq(s.count, 3, "%zu", s.count);
	stacks_end(&s);
}

Test(model_inference_stacks, nothing_is_kept_that_nobody_wants)
{
	struct fixture *f = fixture_toy();

	cr_assert_eq(feed_text(f, XPT_RECORD_FRAME, 0, 0, 1, "{"), 0);
	feed_stack(f, 5, 0, 1, (const __u32[]){ 1 });
	CALL_1(f, TOY_EXECUTE, 7, 70, U(100), U(200), 1, U(0xa));
	cr_assert_eq(feed_sample(f, XPT_STACK_CALL, 100, 100, 0, 5, 1), 0);
	model_flush(f->model);
	cr_expect_eq(f->kinds[EVENT_STACK], 0);
	fixture_free(f);
}
