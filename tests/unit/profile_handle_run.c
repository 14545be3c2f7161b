/* SPDX-License-Identifier: BSD-2-Clause */

#include "profile_support.h"

/* Counted runs, and how runs of one handle follow one another. */

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

#define START (T0 + 4400 * MS) /* 700004.4 s on the clock */

static struct stage *stage;
static struct handle *stream;

static void setup_intervals(void)
{
	stage = stage_make(0);
	stream = stream_make(stage, ".", 500 * MS, 1);
	cr_assert_eq(handle_start(stream, START, OFFSET), 0);
}

static void teardown_intervals(void)
{
	handle_free(stream);
	stage_end(stage);
}

TestSuite(profile_handle_run_intervals, .init = setup_intervals, .fini = teardown_intervals);

static __u64 lost_in(size_t report, const struct toy *toy)
{
	const struct xpt_program_report *program = program_in(got(stage, report), toy->program.id);

	return program ? program->lost : 0;
}

/* Each report begins where the one before ended. */
static void check_chain(void)
{
	size_t i;

	for (i = 0; i < stage->got_count; i++) {
		cr_assert_eq(got(stage, i)->sequence, i);
		cr_assert_gt(got(stage, i)->end, got(stage, i)->start);
		if (i)
			cr_assert_eq(got(stage, i)->start, got(stage, i - 1)->end);
	}
}

Test(profile_handle_run_intervals, first_comes_at_the_next_boundary)
{
	stage_until(stage, START);
	cr_assert_eq(profiling_due(stage->profiling), T0 + 4500 * MS);
	stage_until(stage, T0 + 5700 * MS);
	cr_assert_eq(stage->got_count, 3);
	cr_assert_eq(got(stage, 0)->start, START);
	cr_assert_eq(got(stage, 0)->end, T0 + 4500 * MS);
	cr_assert_eq(got(stage, 0)->end_realtime, 700004500 * MS);
	cr_assert_eq(got(stage, 1)->end_realtime, 700005000 * MS);
	cr_assert_eq(got(stage, 2)->end_realtime, 700005500 * MS);
	cr_assert_eq(got(stage, 2)->start_realtime, 700005000 * MS);
	cr_assert_eq(got(stage, 2)->end_reason, XPT_PROFILE_INTERVAL);
	cr_assert_eq(got(stage, 2)->program_count, 0, "a report comes even when nothing ran");
	cr_assert_str_eq(got(stage, 2)->name, "stream");
	check_chain();
}

Test(profile_handle_run_intervals, start_on_a_boundary_takes_a_whole_interval)
{
	struct handle *other = stream_make(stage, ".", 500 * MS, 1);

	handle_start(other, T0 + 4500 * MS, OFFSET);
	stage_until(stage, T0 + 4999 * MS);
	cr_assert_eq(stage->got_count, 1);
	cr_assert_eq(stage->got[0].handle, stream);
	stage_until(stage, T0 + 5000 * MS);
	cr_assert_eq(stage->got_count, 3);
	handle_free(other);
}

Test(profile_handle_run_intervals, nothing_is_closed_before_all_is_delivered)
{
	stage_until(stage, T0 + 4499 * MS);
	profiling_read(stage->profiling, T0 + 4507 * MS, OFFSET);
	profiling_delivered(stage->profiling, T0 + 4506 * MS);
	cr_assert_eq(stage->got_count, 0);
	profiling_delivered(stage->profiling, T0 + 4507 * MS);
	cr_assert_eq(stage->got_count, 1);
	cr_assert_eq(got(stage, 0)->end, T0 + 4500 * MS);
}

Test(profile_handle_run_intervals, an_end_on_the_boundary_is_before_it)
{
	struct toy *toy = toy_make(stage, 0, 1, "net");

	toy_load(stage, toy, START + 1);
	toy_run(stage, toy, START + 2, T0 + 4500 * MS);
	toy_run(stage, toy, START + 3, T0 + 4500 * MS + 1);
	stage_read(stage, T0 + 4501 * MS);
	stage_read(stage, T0 + 5001 * MS);
	cr_assert_eq(program_in(got(stage, 0), toy->program.id)->sample_count, 1);
	cr_assert_eq(program_in(got(stage, 0), toy->program.id)->samples[0].number, 0);
	cr_assert_eq(program_in(got(stage, 1), toy->program.id)->sample_count, 1);
	cr_assert_eq(program_in(got(stage, 1), toy->program.id)->samples[0].number, 1);
}

/* What is read just after a boundary was counted before it, but for next to nothing. */
Test(profile_handle_run_intervals, counts_go_to_what_the_reading_closes)
{
	struct toy *toy = toy_make(stage, 0, 1, "net");

	toy_load(stage, toy, START + 1);
	toy->calls = toy->lost = 10;
	profiling_read(stage->profiling, T0 + 4502 * MS, OFFSET);
	stage_counts(stage, T0 + 4502 * MS);
	/* A second reading, for another stream, while the first report is still open: it is closed by the one before. */
	toy->calls = toy->lost += 100;
	profiling_read(stage->profiling, T0 + 4504 * MS, OFFSET);
	stage_counts(stage, T0 + 4504 * MS);
	profiling_delivered(stage->profiling, T0 + 4504 * MS);
	/* Final ones belong to where they were taken. */
	toy->calls = toy->lost += 1000;
	toy_count(stage, toy, T0 + 5000 * MS, false);
	toy->calls = toy->lost += 10000;
	toy_count(stage, toy, T0 + 5000 * MS + 1, false);
	stage_read(stage, T0 + 5001 * MS);
	stage_read(stage, T0 + 5501 * MS);
	cr_assert_eq(lost_in(0, toy), 10);
	cr_assert_eq(lost_in(1, toy), 1100);
	cr_assert_eq(lost_in(2, toy), 10000);
}

/* Nobody knows when it ended: it is where it was given up. */
Test(profile_handle_run_intervals, unpaired_ones)
{
	struct toy *toy = toy_make(stage, 0, 1, "net");
	struct event event = { .kind = EVENT_UNPAIRED,
			       .inference = {
				       .program = &toy->program, .function = &stage->enqueue, .start = START + 2 } };

	toy_load(stage, toy, START + 1);
	toy_run(stage, toy, START + 2, T0 + 4600 * MS);
	stage_event(stage, event);
	stage_read(stage, T0 + 4601 * MS);
	stage_read(stage, T0 + 5001 * MS);
	cr_assert_eq(lost_in(0, toy), 0);
	cr_assert_eq(lost_in(1, toy), 1);
	cr_assert_eq(program_in(got(stage, 1), toy->program.id)->inferences, 2);
}

Test(profile_handle_run_intervals, late_ones_are_reported)
{
	struct toy *toy = toy_make(stage, 0, 1, "net");

	toy_load(stage, toy, START + 1);
	stage_read(stage, T0 + 4501 * MS);
	toy_run(stage, toy, START + 2, T0 + 4400 * MS + 3);
	toy_run(stage, toy, START - 2, START);
	stage_read(stage, T0 + 5001 * MS);
	cr_assert_eq(got(stage, 0)->late, 0);
	cr_assert_eq(got(stage, 1)->late, 1);
	cr_assert_eq(program_in(got(stage, 1), toy->program.id)->sample_count, 1,
		     "what ended before the start is not in it");
}

Test(profile_handle_run_intervals, a_stalled_caller_gets_all_reports)
{
	struct toy *toy = toy_make(stage, 0, 1, "net");
	__u64 i;

	toy_load(stage, toy, START + 1);
	for (i = 0; i < 100; i++)
		toy_run(stage, toy, START + i * 100 * MS, START + i * 100 * MS + 50 * MS);
	stage_read(stage, T0 + 14600 * MS);
	cr_assert_eq(stage->got_count, 21); /* 4.5 to 14.5 s */
	check_chain();
	cr_assert_eq(program_in(got(stage, 0), toy->program.id)->sample_count, 1);
	for (i = 1; i < 20; i++)
		cr_assert_eq(program_in(got(stage, i), toy->program.id)->sample_count, 5, "%llu", i);
}

/* Hours with nobody there, and times that cannot be: bounded work. */
Test(profile_handle_run_intervals, stall_without_end, .timeout = 20)
{
	struct handle *fast = stream_make(stage, ".", 10 * MS, 1);
	struct toy *toy = toy_make(stage, 0, 1, "net");
	__u64 last = T0 + 5 * SECOND;
	size_t i;

	handle_start(fast, START, OFFSET);
	stage_read(stage, T0 + 5 * SECOND);
	stage_forget_reports(stage);
	handle_free(stream);
	stream = fast;
	toy_run(stage, toy, START, NEVER);
	toy_run(stage, toy, START, NEVER - 5 * MS);
	stage_read(stage, T0 + 3600 * SECOND);
	cr_assert_gt(stage->got_count, 1000);
	cr_assert_lt(stage->got_count, 4096 + 10);
	for (i = 0; i < stage->got_count; i++) {
		cr_assert_eq(got(stage, i)->start, last);
		last = got(stage, i)->end;
	}
	cr_assert_eq(last, T0 + 3600 * SECOND);
}

Test(profile_handle_run_intervals, clock_set_forwards)
{
	stage_until(stage, T0 + 5000 * MS);
	/* 5.2 s became 7.4 s. */
	stage->offset = OFFSET + 2200 * (__s64)MS;
	stage_read(stage, T0 + 5200 * MS);
	stage_until(stage, T0 + 7000 * MS);
	check_chain();
	cr_assert_eq(got(stage, 1)->end, T0 + 5000 * MS);
	cr_assert_eq(got(stage, 2)->end, T0 + 5300 * MS); /* 7.5 s */
	cr_assert_eq(got(stage, 2)->end_realtime, 700007500 * MS);
	cr_assert_eq(got(stage, 3)->end_realtime, 700008000 * MS);
}

Test(profile_handle_run_intervals, clock_set_backwards)
{
	stage_until(stage, T0 + 5000 * MS);
	/* 5.2 s became 4.9 s: 5.0 s is too near. */
	stage->offset = OFFSET - 300 * (__s64)MS;
	stage_read(stage, T0 + 5200 * MS);
	stage_until(stage, T0 + 7000 * MS);
	check_chain();
	cr_assert_eq(got(stage, 2)->start, T0 + 5000 * MS);
	cr_assert_eq(got(stage, 2)->end, T0 + 5300 * MS);
	cr_assert_eq(got(stage, 2)->end_realtime, 700005000 * MS);
}

/* Whatever happens to the clock: no gap, no overlap, no short report, boundaries on the clock as it was. */
Test(profile_handle_run_intervals, clock_set_at_random)
{
	__u64 time = START, seed = 7;
	size_t i;

	for (i = 0; i < 2000; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		time += (seed >> 33) % (300 * MS);
		if ((seed >> 20) % 4 == 0)
			stage->offset += (__s64)((seed >> 30) % (4 * SECOND)) - (__s64)(2 * SECOND);
		stage_read(stage, time);
	}
	check_chain();
	cr_assert_gt(stage->got_count, 300);
	for (i = 0; i < stage->got_count; i++) {
		cr_assert_eq(got(stage, i)->end_realtime % (500 * MS), 0, "%zu", i);
		if (i)
			cr_assert_geq(got(stage, i)->end - got(stage, i)->start, 250 * MS, "%zu", i);
	}
}

/* The two clocks are never read at the same moment. */
Test(profile_handle_run_intervals, jitter_moves_no_boundary)
{
	size_t i;

	for (i = 1; i < 400; i++) {
		stage->offset = OFFSET + (__s64)(i * 7919 % 20001) - 10000;
		stage_read(stage, START + i * 50 * MS + i * 7919 % 100000);
	}
	check_chain();
	cr_assert_eq(stage->got_count, 40); /* 4.5 to 24.0 s */
	for (i = 0; i < stage->got_count; i++)
		cr_assert_eq(got(stage, i)->end_realtime, (700004500 + i * 500) * MS);
}

Test(profile_handle_run_intervals, stop_ends_the_last_one)
{
	struct toy *toy = toy_make(stage, 0, 1, "net");

	toy_load(stage, toy, START + 1);
	stage_until(stage, T0 + 5000 * MS);
	toy_run(stage, toy, T0 + 5010 * MS, T0 + 5100 * MS);
	cr_assert_eq(handle_stop(stream, T0 + 5200 * MS), 0);
	cr_assert_eq(handle_stop(stream, T0 + 5200 * MS), -EALREADY);
	cr_assert_not(handle_runs(stream));
	cr_assert_not(handle_settled(stream));
	toy_run(stage, toy, T0 + 5010 * MS, T0 + 5200 * MS);
	toy_run(stage, toy, T0 + 5010 * MS, T0 + 5200 * MS + 1);
	cr_assert_leq(profiling_due(stage->profiling), T0 + 5200 * MS);
	stage_read(stage, T0 + 5201 * MS);
	cr_assert(handle_settled(stream));
	cr_assert_eq(stage->got_count, 3);
	check_chain();
	cr_assert_eq(got(stage, 2)->end, T0 + 5200 * MS);
	cr_assert_eq(got(stage, 2)->end_reason, XPT_PROFILE_STOPPED);
	cr_assert_eq(program_in(got(stage, 2), toy->program.id)->sample_count, 2);
	cr_assert_eq(profiling_due(stage->profiling), NEVER);
}

Test(profile_handle_run_intervals, stop_after_missed_boundaries)
{
	stage_until(stage, START);
	cr_assert_eq(handle_stop(stream, T0 + 6 * SECOND), 0);
	stage_read(stage, T0 + 6001 * MS);
	check_chain();
	cr_assert_eq(stage->got_count, 4); /* 4.5, 5.0, 5.5, and 6.0 s, where it was stopped */
	cr_assert_eq(got(stage, 2)->end_reason, XPT_PROFILE_INTERVAL);
	cr_assert_eq(got(stage, 3)->end, T0 + 6 * SECOND);
	cr_assert_eq(got(stage, 3)->end_reason, XPT_PROFILE_STOPPED);
}

/* Who stops looked at the clock before later events came. */
Test(profile_handle_run_intervals, stop_before_what_is_known)
{
	struct toy *toy = toy_make(stage, 0, 1, "net");

	toy_load(stage, toy, START + 1);
	toy_run(stage, toy, START + 1, T0 + 4499 * MS);
	stage_event(stage, toy_call(toy, &stage->load, T0 + 4600 * MS, T0 + 4700 * MS));
	stage_read(stage, T0 + 4499 * MS);
	handle_stop(stream, T0 + 4450 * MS);
	stage_read(stage, T0 + 4800 * MS);
	cr_assert_eq(stage->got_count, 1);
	cr_assert_eq(got(stage, 0)->end, T0 + 4499 * MS);
	cr_assert_eq(program_in(got(stage, 0), toy->program.id)->sample_count, 1);
}

static __u64 inferences_of_all(void)
{
	__u64 inferences = 0;
	size_t i, program;

	for (i = 0; i < stage->got_count; i++)
		for (program = 0; program < got(stage, i)->program_count; program++)
			inferences += got(stage, i)->programs[program].inferences;
	return inferences;
}

/* Receivers that don't free reports: intervals go on, memory does not. */
Test(profile_handle_run_intervals, full_memory_lengthens_intervals)
{
	struct toy *toy;
	__u64 i, seen = 0;

	handle_free(stream);
	stage_end(stage);
	stage = stage_make(64 << 10);
	stream = stream_make(stage, ".", 10 * MS, 1);
	handle_start(stream, T0, OFFSET);
	toy = toy_make(stage, 0, 1, "net");
	toy_load(stage, toy, T0 + 1);
	for (i = 0; i < 1000; i++) {
		toy_run(stage, toy, T0 + i * 10 * MS + 1, T0 + i * 10 * MS + MS);
		stage_read(stage, T0 + i * 10 * MS + 10 * MS);
	}
	cr_assert_lt(stage->got_count, 100);
	cr_assert_lt(stage->profiling->budget.used, 80 << 10);
	seen = inferences_of_all();
	stage_forget_reports(stage);
	stage_read(stage, T0 + 11000 * MS);
	handle_stop(stream, T0 + 11000 * MS);
	stage_read(stage, T0 + 11001 * MS);
	cr_assert_gt(got(stage, 0)->end - got(stage, 0)->start, 1 * SECOND);
	cr_assert_eq(seen + inferences_of_all(), 1000);
}
