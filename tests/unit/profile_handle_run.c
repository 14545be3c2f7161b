/* SPDX-License-Identifier: BSD-2-Clause */
/* Counted runs, and how runs of one handle follow one another. */
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

TestSuite(profile_handle_run, .init = setup, .fini = teardown);

/* The nth inference takes n + 1 us and ends n + 1 ms after begin. */
static void run_many(struct toy *toy, __u64 begin, size_t count)
{
	size_t i;

	for (i = 1; i <= count; i++)
		toy_run(stage, toy, begin + i * MS - i * 1000, begin + i * MS);
}

Test(profile_handle_run, stops_by_itself)
{
	struct handle *handle = counted_make(stage, "net", 3);
	struct toy *other = toy_make(stage, 0, 7, "nets"), *toy = toy_make(stage, 0, 8, "net");
	const struct xpt_program_report *program;
	size_t i;

	cr_assert_eq(handle_start(handle, T0, OFFSET), 0);
	cr_assert_eq(handle_start(handle, T0, OFFSET), -EALREADY);
	cr_assert_leq(profiling_due(stage->profiling), T0);
	stage_read(stage, T0 + 1);
	cr_assert_eq(profiling_due(stage->profiling), NEVER);
	toy_load(stage, other, T0 + 5);
	toy_load(stage, toy, T0 + 6);
	run_many(other, T0 + MS, 5);
	run_many(toy, T0 + 10 * MS, 5);
	cr_assert_not(handle_runs(handle));
	cr_assert_not(handle_settled(handle));
	cr_assert_eq(stage->got_count, 0, "losses are not known yet");
	stage_until(stage, T0 + SECOND);
	cr_assert(handle_settled(handle));
	cr_assert_eq(stage->got_count, 1);
	cr_assert_eq(got(stage, 0)->end_reason, XPT_PROFILE_COMPLETE);
	cr_assert_eq(got(stage, 0)->start, T0);
	cr_assert_eq(got(stage, 0)->end, T0 + 13 * MS);
	cr_assert_eq(got(stage, 0)->end_realtime, T0 + 13 * MS + OFFSET);
	cr_assert_eq(got(stage, 0)->program_count, 1);
	program = got(stage, 0)->programs;
	cr_assert_eq(program->id, toy->program.id);
	cr_assert_str_eq(program->name, "net");
	cr_assert_str_eq(program->process, "toy");
	cr_assert_eq(program->pid, 100);
	cr_assert_eq(program->requested, 3);
	cr_assert_eq(program->sample_count, 3);
	cr_assert_eq(program->taken, 3);
	cr_assert_eq(program->inferences, 3);
	cr_assert_eq(program->lost, 0);
	cr_assert_not(program->released);
	for (i = 0; i < 3; i++) {
		cr_assert_eq(program->samples[i].number, i);
		cr_assert_eq(program->samples[i].time[XPT_TIME_CALL_BEGINS], T0 + (11 + i) * MS - (i + 1) * 1000);
		cr_assert_eq(program->samples[i].time[XPT_TIME_CALL_ENDS], T0 + (11 + i) * MS);
	}
	handle_free(handle);
}

Test(profile_handle_run, starts_again_as_the_first_time)
{
	struct handle *handle = counted_make(stage, "net", 2);
	struct toy *toy = toy_make(stage, 0, 8, "net");
	size_t i;

	toy_load(stage, toy, T0 - 5);
	for (i = 0; i < 3; i++) {
		cr_assert_eq(handle_start(handle, T0 + i * SECOND, OFFSET), 0);
		stage_read(stage, T0 + i * SECOND + 1);
		run_many(toy, T0 + i * SECOND + MS, 4);
		/* The third one begins while the second is still closing. */
		if (i != 1)
			stage_read(stage, T0 + i * SECOND + 100 * MS);
	}
	cr_assert_eq(stage->got_count, 3);
	for (i = 0; i < 3; i++) {
		cr_assert_eq(got(stage, i)->sequence, 0);
		cr_assert_eq(got(stage, i)->end_reason, XPT_PROFILE_COMPLETE);
		cr_assert_eq(got(stage, i)->start, T0 + i * SECOND);
		cr_assert_eq(got(stage, i)->programs->taken, 2);
		cr_assert_eq(got(stage, i)->programs->samples[0].time[XPT_TIME_CALL_ENDS], T0 + i * SECOND + 2 * MS);
	}
	handle_free(handle);
}

Test(profile_handle_run, skip_and_delay)
{
	struct handle_options options = { .program = { .handle = 8 }, .samples = 2, .skip = 3, .delay = 10 * MS };
	struct toy *toy = toy_make(stage, 0, 8, "net");
	struct handle *handle;

	cr_assert_eq(handle_create(stage->profiling, &options, &handle), 0);
	toy_load(stage, toy, T0 - 5);
	handle_start(handle, T0, OFFSET);
	cr_assert_eq(profiling_due(stage->profiling), T0 + 10 * MS);
	stage_read(stage, T0 + 1);
	toy->lost = 5;
	run_many(toy, T0, 10); /* the tenth begins 10 us before the delay is over */
	stage_read(stage, T0 + 10 * MS);
	toy->lost += 1;
	run_many(toy, T0 + 10 * MS, 8);
	stage_read(stage, T0 + 30 * MS);
	cr_assert_eq(stage->got_count, 1);
	cr_assert_eq(got(stage, 0)->programs->skipped, 3);
	cr_assert_eq(got(stage, 0)->programs->taken, 2);
	cr_assert_eq(got(stage, 0)->programs->samples[0].number, 13);
	cr_assert_eq(got(stage, 0)->programs->samples[1].number, 14);
	cr_assert_eq(got(stage, 0)->programs->lost, 1, "what was lost in the delay is not its own");
	cr_assert_eq(got(stage, 0)->programs->inferences, 3);
	handle_free(handle);
}

Test(profile_handle_run, released_before)
{
	struct handle *handle = counted_make(stage, "net", 10);
	struct toy *toy = toy_make(stage, 0, 8, "net");

	handle_start(handle, T0, OFFSET);
	stage_read(stage, T0 + 1);
	toy_load(stage, toy, T0 + 5);
	run_many(toy, T0 + MS, 4);
	toy_unload(stage, toy, T0 + 20 * MS);
	cr_assert_not(handle_runs(handle));
	stage_read(stage, T0 + 30 * MS);
	cr_assert_eq(stage->got_count, 1);
	cr_assert_eq(got(stage, 0)->end_reason, XPT_PROFILE_RELEASED);
	cr_assert_eq(got(stage, 0)->end, T0 + 20 * MS);
	cr_assert_eq(got(stage, 0)->programs->taken, 4);
	cr_assert(got(stage, 0)->programs->released);
	handle_free(handle);
}

/* All of it was warm-up: the report says so, instead of never coming. */
Test(profile_handle_run, released_in_the_delay)
{
	struct handle_options options = { .program = { .name = "net" }, .samples = 2, .delay = SECOND };
	struct toy *toy = toy_make(stage, 0, 8, "net"), *idle = toy_make(stage, 0, 9, "net");
	struct handle *handle;

	cr_assert_eq(handle_create(stage->profiling, &options, &handle), 0);
	handle_start(handle, T0, OFFSET);
	toy_load(stage, idle, T0 + 5);
	toy_unload(stage, idle, T0 + 6);
	cr_assert(handle_runs(handle), "one that never ran is not the one that is waited for");
	toy_load(stage, toy, T0 + 7);
	run_many(toy, T0 + MS, 4);
	toy_unload(stage, toy, T0 + 20 * MS);
	stage_read(stage, T0 + 30 * MS);
	cr_assert_eq(stage->got_count, 1);
	cr_assert_eq(got(stage, 0)->end_reason, XPT_PROFILE_RELEASED);
	cr_assert_eq(got(stage, 0)->programs->taken, 0);
	cr_assert_eq(got(stage, 0)->programs->inferences, 0);
	handle_free(handle);
}

Test(profile_handle_run, process_exit_is_a_release)
{
	struct handle *handle = counted_make(stage, "net", 10), *stream = stream_make(stage, "net", 500 * MS, 1);
	struct toy *toy = toy_make(stage, 1, 8, "net");

	handle_start(handle, T0, OFFSET);
	handle_start(stream, T0, OFFSET);
	toy_load(stage, toy, T0 + 5);
	run_many(toy, T0 + MS, 4);
	toy->program.released = T0 + 9 * MS;
	toy->lost = 2;
	stage_event(stage, (struct event){ .kind = EVENT_TASK,
					   .task = { .tgid = 101, .time = T0 + 9 * MS, .what = XPT_TASK_EXIT } });
	cr_assert_eq(profiling_program_count(stage->profiling), 0);
	/* User space takes the last counts after that. */
	toy_count(stage, toy, T0 + 11 * MS, false);
	stage_read(stage, T0 + 30 * MS);
	stage_read(stage, T0 + 501 * MS);
	cr_assert_eq(stage->got_count, 2);
	cr_assert_eq(got(stage, 0)->end_reason, XPT_PROFILE_RELEASED);
	cr_assert_eq(got(stage, 0)->programs->taken, 4);
	cr_assert_eq(got(stage, 0)->programs->lost, 2);
	cr_assert(got(stage, 1)->programs->released);
	cr_assert_eq(got(stage, 1)->programs->inferences, 6);
	cr_assert_eq(got(stage, 1)->programs->lost, 2);
	handle_free(handle);
	handle_free(stream);
}

Test(profile_handle_run, stopped_early)
{
	struct handle *handle = counted_make(stage, "net", 10);
	struct toy *toy = toy_make(stage, 0, 8, "net");

	cr_assert_eq(handle_stop(handle, T0), -EALREADY);
	handle_start(handle, T0, OFFSET);
	toy_load(stage, toy, T0 + 5);
	run_many(toy, T0 + MS, 4);
	cr_assert_eq(handle_stop(handle, T0 + 6 * MS), 0);
	toy_run(stage, toy, T0 + 5 * MS, T0 + 6 * MS);
	toy_run(stage, toy, T0 + 5 * MS, T0 + 6 * MS + 1);
	stage_read(stage, T0 + 30 * MS);
	cr_assert_eq(stage->got_count, 1);
	cr_assert_eq(got(stage, 0)->end_reason, XPT_PROFILE_STOPPED);
	cr_assert_eq(got(stage, 0)->end, T0 + 6 * MS);
	cr_assert_eq(got(stage, 0)->programs->taken, 5);
	/* Nothing there: nothing comes. */
	handle_start(handle, T0 + SECOND, OFFSET);
	stage_read(stage, T0 + SECOND + 1);
	cr_assert_eq(handle_stop(handle, T0 + SECOND + 2), 0);
	cr_assert_not(handle_settled(handle));
	stage_read(stage, T0 + SECOND + 3);
	cr_assert(handle_settled(handle));
	cr_assert_eq(stage->got_count, 1);
	handle_free(handle);
}

Test(profile_handle_run, first_that_runs)
{
	struct handle *handle = counted_make(stage, "net", 2);
	struct toy *one = toy_make(stage, 0, 8, "net"), *two = toy_make(stage, 1, 8, "net");

	handle_start(handle, T0, OFFSET);
	toy_load(stage, one, T0 + 1);
	toy_load(stage, two, T0 + 2);
	run_many(two, T0 + MS, 1);
	run_many(one, T0 + 2 * MS, 5);
	cr_assert(handle_runs(handle));
	run_many(two, T0 + 10 * MS, 1);
	stage_read(stage, T0 + 30 * MS);
	cr_assert_eq(got(stage, 0)->program_count, 1);
	cr_assert_eq(got(stage, 0)->programs->id, two->program.id);
	cr_assert_eq(got(stage, 0)->programs->taken, 2);
	handle_free(handle);
}

/* The same handle later is another program. */
Test(profile_handle_run, stays_with_its_program)
{
	struct handle_options options = { .program = { .handle = 8 }, .samples = 5 };
	struct toy *one = toy_make(stage, 0, 8, "net"), *two = toy_make(stage, 0, 8, "net");
	struct handle *handle;

	cr_assert_eq(handle_create(stage->profiling, &options, &handle), 0);
	handle_start(handle, T0, OFFSET);
	toy_load(stage, one, T0 + 1);
	run_many(one, T0 + MS, 2);
	/* Nobody tells that the first one is gone. */
	toy_load(stage, two, T0 + 10 * MS);
	cr_assert_not(handle_runs(handle));
	run_many(two, T0 + 10 * MS, 5);
	stage_read(stage, T0 + 30 * MS);
	cr_assert_eq(stage->got_count, 1);
	cr_assert_eq(got(stage, 0)->end_reason, XPT_PROFILE_RELEASED);
	cr_assert_eq(got(stage, 0)->programs->generation, 0);
	cr_assert_eq(got(stage, 0)->programs->taken, 2);
	handle_free(handle);
}

Test(profile_handle_run, no_room_ends_too)
{
	struct handle *handle;
	struct toy *toy;
	size_t i;

	stage_end(stage);
	stage = stage_make(16 << 10);
	handle = counted_make(stage, "net", 1000);
	toy = toy_make(stage, 0, 8, "net");
	handle_start(handle, T0, OFFSET);
	toy_load(stage, toy, T0 + 5);
	for (i = 0; i < 100; i++)
		run_many(toy, T0 + i * 10 * MS, 10);
	cr_assert_not(handle_runs(handle));
	stage_read(stage, T0 + 2 * SECOND);
	cr_assert_eq(stage->got_count, 1);
	cr_assert_lt(got(stage, 0)->programs->taken, 150);
	cr_assert_gt(got(stage, 0)->programs->taken, 50);
	cr_assert_eq(got(stage, 0)->programs->taken + got(stage, 0)->programs->lost, 1000);
	cr_assert_eq(got(stage, 0)->programs->inferences, 1000);
	handle_free(handle);
}

Test(profile_handle_run, stream_started_again_while_it_closes)
{
	struct handle *stream = stream_make(stage, "net", 500 * MS, 1);
	struct toy *toy = toy_make(stage, 0, 8, "net");
	size_t i, seen = 0;

	handle_start(stream, T0, OFFSET);
	toy_load(stage, toy, T0 + 5);
	run_many(toy, T0, 100);
	handle_stop(stream, T0 + 100 * MS);
	cr_assert_eq(handle_start(stream, T0 + 100 * MS, OFFSET), 0);
	cr_assert_not(handle_settled(stream));
	run_many(toy, T0 + 100 * MS, 50);
	handle_stop(stream, T0 + 150 * MS);
	cr_assert_eq(handle_start(stream, T0 + 150 * MS, OFFSET), 0);
	stage_read(stage, T0 + 151 * MS);
	cr_assert(handle_settled(stream));
	cr_assert(handle_runs(stream));
	cr_assert_eq(stage->got_count, 2);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(got(stage, i)->sequence, 0);
		cr_assert_eq(got(stage, i)->end_reason, XPT_PROFILE_STOPPED);
		seen += got(stage, i)->programs->sample_count;
	}
	cr_assert_eq(seen, 150);
	cr_assert_eq(got(stage, 1)->programs->sample_count, 50);
	handle_free(stream);
}

Test(profile_handle_run, freed_while_it_runs)
{
	struct handle *stream = stream_make(stage, "net", 500 * MS, 1), *counted = counted_make(stage, "net", 1000);
	struct toy *toy = toy_make(stage, 0, 8, "net");

	handle_start(stream, T0, OFFSET);
	handle_start(counted, T0, OFFSET);
	toy_load(stage, toy, T0 + 5);
	run_many(toy, T0, 100);
	handle_stop(stream, T0 + 100 * MS);
	handle_start(stream, T0 + 100 * MS, OFFSET);
	handle_free(stream);
	handle_free(counted);
	cr_assert_eq(stage->profiling->budget.used, 0);
	cr_assert_eq(stage->sample_every, XPT_SAMPLE_NONE);
	run_many(toy, T0 + 100 * MS, 100);
	stage_read(stage, T0 + SECOND);
	cr_assert_eq(stage->got_count, 0);
	cr_assert_eq(stage->profiling->budget.spare_bytes, 0, "nothing runs: nothing is kept");
}

/* Probes are placed after the handle was started: its time begins when all are there. */
Test(profile_handle_run, begins_when_the_recording_does)
{
	struct handle *handle = counted_make(stage, "net", 2);
	struct toy *toy = toy_make(stage, 0, 8, "net");

	cr_assert_eq(handle_start(handle, T0, OFFSET), 0);
	stage_read(stage, T0 + 1);
	toy_load(stage, toy, T0 + 6);
	cr_assert_eq(profiling_begin(stage->profiling, T0 + 200 * MS, OFFSET), 0);
	run_many(toy, T0 + 200 * MS, 2);
	stage_until(stage, T0 + SECOND);
	cr_assert_eq(stage->got_count, 1);
	cr_assert_eq(got(stage, 0)->start, T0 + 200 * MS);
	cr_assert_eq(got(stage, 0)->start_realtime, T0 + 200 * MS + OFFSET);
	cr_assert_eq(got(stage, 0)->end, T0 + 202 * MS);
	cr_assert_eq(got(stage, 0)->programs[0].taken, 2);
	handle_free(handle);
}
