/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile_support.h"

#define FRAMES 3

/* A stack of three frames, of which the innermost is called as the test wants. */
struct made_stack {
	struct model_frame frames[FRAMES];
	const struct model_frame *pointers[FRAMES];
	struct model_stack stack;
	char name[32];
};

static const struct model_module module = { .path = "/usr/lib/libtoy.so" };

static struct made_stack *stack_make(const char *name)
{
	struct made_stack *made = calloc(1, sizeof(*made));

	snprintf(made->name, sizeof(made->name), "%s", name);
	made->frames[0] = (struct model_frame){ .kind = FRAME_NATIVE, .function = made->name };
	made->frames[1] = (struct model_frame){
		.kind = FRAME_PYTHON, .function = "decode", .file = "/srv/model.py", .line = 12
	};
	made->frames[2] = (struct model_frame){
		.kind = FRAME_UNKNOWN, .module = &module, .has_offset = true, .offset = 16
	};
	for (size_t i = 0; i < FRAMES; i++)
		made->pointers[i] = &made->frames[i];
	made->stack = (struct model_stack){ .frames = made->pointers, .count = FRAMES };
	return made;
}

static void put(struct stage *stage, const struct toy *toy, const struct made_stack *made, enum xpt_stack_reason reason,
		__u64 time, __u64 weight)
{
	stage_event(stage, (struct event){ .kind = EVENT_STACK,
					   .stack = { .time = time,
						      .stack = &made->stack,
						      .reason = reason,
						      .weight = weight,
						      .call_start = time,
						      .function = &stage->execute,
						      .program = &toy->program,
						      .duration = 100 } });
}

static struct handle *stream_with_stacks(struct stage *stage, bool stacks)
{
	const struct handle_options options = { .stream = true,
						.match = "",
						.report_every = SECOND,
						.sample_every = 1,
						.name = "stream",
						.stacks = stacks };
	struct handle *handle = NULL;

	cr_assert_eq(handle_create(stage->profiling, &options, &handle), 0);
	cr_assert_eq(handle_start(handle, T0, OFFSET), 0);
	return handle;
}

static void check(const struct xpt_report_stack *stack, enum xpt_report_stack_kind kind, const char *innermost,
		  __u64 count, __u64 time)
{
	cr_expect_eq(stack->kind, kind);
	cr_expect_eq(stack->count, count, "%llu", (unsigned long long)stack->count);
	cr_expect_eq(stack->time, time, "%llu", (unsigned long long)stack->time);
	if (!innermost) {
		cr_assert_eq(stack->frame_count, 0);
		return;
	}
	cr_assert_eq(stack->frame_count, FRAMES);
	cr_expect_str_eq(stack->frames[0], innermost);
	cr_expect_str_eq(stack->frames[1], "decode (model.py:12)");
	cr_expect_str_eq(stack->frames[2], "[unknown] (libtoy.so+0x10)");
}

Test(profile_handle_stacks, samples_with_the_same_stack_are_one)
{
	struct stage *stage = stage_make(0);
	struct handle *with = stream_with_stacks(stage, true), *without = stream_with_stacks(stage, false);
	struct toy *toy = toy_make(stage, 0, 0x10, "net"), *other = toy_make(stage, 0, 0x20, "other");
	struct made_stack *one = stack_make("one"), *two = stack_make("two");
	const struct xpt_program_report *program;
	struct event inner;

	toy_load(stage, toy, T0 + MS);
	toy_load(stage, other, T0 + MS);
	put(stage, toy, one, XPT_STACK_ON_CPU, T0 + 2 * MS, 1000);
	put(stage, toy, two, XPT_STACK_ON_CPU, T0 + 3 * MS, 1000);
	put(stage, toy, two, XPT_STACK_ON_CPU, T0 + 4 * MS, 1000);
	put(stage, toy, two, XPT_STACK_CALL, T0 + 5 * MS, 3); /* three inferences of 100 ns */
	put(stage, toy, one, XPT_STACK_OFF_CPU, T0 + 6 * MS, 77);
	put(stage, other, one, XPT_STACK_ON_CPU, T0 + 7 * MS, 5);
	put(stage, toy, one, XPT_STACK_ON_CPU, T0 - MS, 1000); /* before the start */
	/* A call inside an inference is none of its own. */
	inner = (struct event){ .kind = EVENT_STACK,
				.stack = { .time = T0 + 8 * MS,
					   .stack = &one->stack,
					   .reason = XPT_STACK_CALL,
					   .weight = 9,
					   .function = &stage->execute,
					   .program = &toy->program,
					   .inside = true,
					   .duration = 100 } };
	stage_event(stage, inner);
	stage_until(stage, T0 + SECOND);
	cr_assert_eq(stage->got_count, 2);
	for (size_t i = 0; i < 2; i++) {
		program = program_in(got(stage, i), toy->program.id);
		if (stage->got[i].handle == without) {
			cr_assert(!program || !program->stack_count);
			continue;
		}
		cr_assert_eq(program->stack_count, 4, "%zu", program->stack_count);
		cr_assert_eq(program->stack_size, sizeof(struct xpt_report_stack));
		check(&program->stacks[0], XPT_REPORT_STACK_CALL, "two", 3, 300);
		check(&program->stacks[1], XPT_REPORT_STACK_OFF_CPU, "one", 1, 77);
		check(&program->stacks[2], XPT_REPORT_STACK_CPU, "two", 2, 2000);
		check(&program->stacks[3], XPT_REPORT_STACK_CPU, "one", 1, 1000);
		program = program_in(got(stage, i), other->program.id);
		cr_assert_eq(program->stack_count, 1);
		check(&program->stacks[0], XPT_REPORT_STACK_CPU, "one", 1, 5);
	}
	handle_free(with);
	handle_free(without);
	stage_end(stage);
	free(one);
	free(two);
}

/* One that comes when the report of its time has gone is in the next one. */
Test(profile_handle_stacks, late_ones_are_in_the_next_report)
{
	struct stage *stage = stage_make(0);
	struct handle *handle = stream_with_stacks(stage, true);
	struct toy *toy = toy_make(stage, 0, 0x10, "net");
	struct made_stack *one = stack_make("one");

	toy_load(stage, toy, T0 + MS);
	put(stage, toy, one, XPT_STACK_ON_CPU, T0 + 2 * MS, 1000);
	stage_until(stage, T0 + SECOND);
	put(stage, toy, one, XPT_STACK_ON_CPU, T0 + 3 * MS, 1000);
	put(stage, toy, one, XPT_STACK_ON_CPU, T0 + SECOND + MS, 1000);
	stage_until(stage, T0 + 2 * SECOND);
	cr_assert_eq(stage->got_count, 2);
	check(program_in(got(stage, 0), toy->program.id)->stacks, XPT_REPORT_STACK_CPU, "one", 1, 1000);
	check(program_in(got(stage, 1), toy->program.id)->stacks, XPT_REPORT_STACK_CPU, "one", 2, 2000);
	handle_free(handle);
	stage_end(stage);
	free(one);
}

#define MANY 5000 /* more than a row keeps, and than a report shows */

static void check_many(size_t report_bytes)
{
	struct stage *stage = stage_make(report_bytes);
	struct handle *handle = stream_with_stacks(stage, true);
	struct toy *toy = toy_make(stage, 0, 0x10, "net");
	struct made_stack **made = calloc(MANY, sizeof(*made));
	const struct xpt_program_report *program;
	__u64 count = 0, time = 0;
	char name[32];

	toy_load(stage, toy, T0 + MS);
	for (size_t i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "s%zu", i);
		made[i] = stack_make(name);
		put(stage, toy, made[i], XPT_STACK_ON_CPU, T0 + 2 * MS, MANY - i);
	}
	stage_until(stage, T0 + SECOND);
	program = program_in(got(stage, 0), toy->program.id);
	cr_assert_leq(program->stack_count, XPT_REPORT_STACKS_MAX + 1);
	cr_assert_geq(program->stack_count, 2);
	for (size_t i = 0; i < program->stack_count; i++) {
		count += program->stacks[i].count;
		time += program->stacks[i].time;
		snprintf(name, sizeof(name), "s%zu", i);
		if (i + 1 < program->stack_count)
			check(&program->stacks[i], XPT_REPORT_STACK_CPU, name, 1, MANY - i);
	}
	cr_assert_eq(program->stacks[program->stack_count - 1].frame_count, 0);
	cr_assert_eq(count, MANY);
	cr_assert_eq(time, (__u64)MANY * (MANY + 1) / 2);
	handle_free(handle);
	stage_end(stage);
	for (size_t i = 0; i < MANY; i++)
		free(made[i]);
	free(made);
}

/* The heaviest stay, the sum is that of all; also where the reports have little memory. */
Test(profile_handle_stacks, further_ones_are_together)
{
	check_many(0);
	check_many(16 << 10);
}

Test(profile_handle_stacks, sums_do_not_overflow)
{
	struct stage *stage = stage_make(0);
	struct handle *handle = stream_with_stacks(stage, true);
	struct toy *toy = toy_make(stage, 0, 0x10, "net");
	struct made_stack *one = stack_make("one");

	toy_load(stage, toy, T0 + MS);
	put(stage, toy, one, XPT_STACK_ON_CPU, T0 + 2 * MS, UINT64_MAX);
	put(stage, toy, one, XPT_STACK_ON_CPU, T0 + 2 * MS, 2);
	put(stage, toy, one, XPT_STACK_CALL, T0 + 2 * MS, UINT64_MAX);
	stage_until(stage, T0 + SECOND);
	check(&program_in(got(stage, 0), toy->program.id)->stacks[0], XPT_REPORT_STACK_CALL, "one", UINT64_MAX,
	      UINT64_MAX);
	check(&program_in(got(stage, 0), toy->program.id)->stacks[1], XPT_REPORT_STACK_CPU, "one", 2, UINT64_MAX);
	handle_free(handle);
	stage_end(stage);
	free(one);
}
