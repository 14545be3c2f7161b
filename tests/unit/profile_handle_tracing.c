/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile_support.h"

static struct stage *stage;

static void setup(void)
{
	stage = stage_make(0);
}

static void teardown(void)
{
	stage_end(stage);
}

TestSuite(profile_handle_tracing, .init = setup, .fini = teardown);

static struct run *start(bool stream, __u32 sample_every, __u64 samples, __u64 skip)
{
	const struct handle_options options = { .stream = stream,
						.type = XPT_PROFILE_TRACE,
						.sample_every = sample_every,
						.match = "net",
						.program = { .name = "net" },
						.samples = samples,
						.skip = skip };
	struct handle *handle;

	cr_assert_eq(handle_create(stage->profiling, &options, &handle), 0);
	cr_assert_eq(handle_start(handle, T0, OFFSET), 0);
	return handle->current;
}

static struct event enqueue(struct toy *toy, __u64 number)
{
	struct event event = toy_call(toy, &stage->enqueue, T0 + 10 + number, T0 + 20 + number);

	event.call.numbered = true;
	event.call.number = number;
	event.call.flow_out = number + 1;
	return event;
}

Test(profile_handle_tracing, what_a_stream_wants)
{
	struct toy *toy = toy_make(stage, 0, 1, "net"), *other = toy_make(stage, 0, 2, "bert");
	struct run *run = start(true, 2, 0, 0);
	struct event event;

	toy_load(stage, toy, T0 + 1);
	toy_load(stage, other, T0 + 1);
	event = enqueue(toy, 4);
	cr_assert(take_wanted(run, &event));
	event = enqueue(toy, 5);
	cr_assert_not(take_wanted(run, &event));
	event = enqueue(other, 4);
	cr_assert_not(take_wanted(run, &event));
	event = enqueue(toy, 4);
	event.call.function = &stage->launch;
	cr_assert(take_wanted(run, &event), "as what is enqueued");
	event = toy_call(toy, &stage->unload, T0 + 1, T0 + 2);
	cr_assert(take_wanted(run, &event));
	event = toy_call(other, &stage->unload, T0 + 1, T0 + 2);
	cr_assert_not(take_wanted(run, &event));
	event = toy_call(toy, &stage->wait, T0 + 1, T0 + 2);
	cr_assert_not(take_wanted(run, &event));
	event = toy_call(toy, &stage->execute, T0 + 1, T0 + 2);
	event.call.layer = true;
	cr_assert_not(take_wanted(run, &event));
	event = (struct event){ .kind = EVENT_COUNTER };
	cr_assert_not(take_wanted(run, &event));
	handle_free(run->handle);
}

Test(profile_handle_tracing, what_a_counted_run_wants)
{
	struct toy *toy = toy_make(stage, 0, 1, "net"), *twin = toy_make(stage, 0, 2, "net");
	struct run *run = start(false, 0, 2, 1);
	struct event event;
	__u64 i;

	toy_load(stage, toy, T0 + 1);
	toy_load(stage, twin, T0 + 1);
	for (i = 0; i < 5; i++) {
		event = enqueue(toy, i);
		stage_event(stage, event);
		cr_assert_eq(take_wanted(run, &event), i == 1 || i == 2, "%llu", i);
	}
	toy_run(stage, toy, T0 + 10, T0 + 20);
	toy_run(stage, toy, T0 + 11, T0 + 30);
	cr_assert_eq(run->bound, toy->program.id);
	event = enqueue(twin, 1);
	cr_assert_not(take_wanted(run, &event));
	handle_free(run->handle);
}

static size_t spans(const struct xpt_profile_report *report, const char *name)
{
	const char *at = report->trace;
	size_t count = 0;

	while ((at = strstr(at, name))) {
		at++;
		count++;
	}
	return count;
}

/* Each report has the samples of its interval in its document, and no rows. */
Test(profile_handle_tracing, documents)
{
	struct toy *toy = toy_make(stage, 0, 1, "net"), *other = toy_make(stage, 0, 2, "bert");
	struct run *run = start(true, 2, 0, 0);
	__u64 i;

	toy_load(stage, toy, T0 + 1);
	toy_load(stage, other, T0 + 1);
	for (i = 0; i < 100; i++) {
		toy_run(stage, toy, T0 + i * 10 * MS + 1, T0 + i * 10 * MS + 5 * MS);
		toy_run(stage, other, T0 + i * 10 * MS + 1, T0 + i * 10 * MS + 5 * MS);
		stage_until(stage, T0 + i * 10 * MS + 10 * MS);
	}
	stage_until(stage, T0 + 2000 * MS);
	cr_assert_eq(stage->got_count, 4);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(got(stage, i)->type, XPT_PROFILE_TRACE);
		cr_assert_eq(got(stage, i)->program_count, 1);
		cr_assert_eq(got(stage, i)->programs->taken, 25);
		cr_assert_eq(got(stage, i)->programs->inferences, 50);
		cr_assert_eq(got(stage, i)->programs->sample_count, 0);
		cr_assert_eq(spans(got(stage, i), "toy_execute"), 25);
	}
	/* A document also when nothing ran. */
	cr_assert_gt(got(stage, 3)->trace_length, 2);
	cr_assert_eq(spans(got(stage, 3), "toy_execute"), 0);
	handle_free(run->handle);
}

Test(profile_handle_tracing, without_room_samples_are_lost)
{
	struct toy *toy;
	struct run *run;
	const struct xpt_program_report *program;
	__u64 i;

	stage_end(stage);
	stage = stage_make(1 << 20);
	toy = toy_make(stage, 0, 1, "net");
	run = start(true, 1, 0, 0);
	toy_load(stage, toy, T0 + 1);
	for (i = 0; i < 20000; i++)
		toy_run(stage, toy, T0 + i * 1000 + 1, T0 + i * 1000 + 500);
	stage_read(stage, T0 + 500 * MS);
	program = program_in(got(stage, 0), toy->program.id);
	cr_assert_eq(program->inferences, 20000);
	cr_assert_gt(program->lost, 5000);
	cr_assert_eq(program->taken + program->lost, 20000);
	cr_assert_eq(spans(got(stage, 0), "toy_execute"), program->taken);
	cr_assert_lt(report_bytes(stage->got[0].report), 3 << 20);
	handle_free(run->handle);
}
