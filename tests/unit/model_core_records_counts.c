/* SPDX-License-Identifier: BSD-2-Clause */
#include "model_records.h"

static void read_count(struct fixture *f, __u64 handle, __u64 since, __u64 time, __u64 calls, __u64 left_out)
{
	cr_assert_eq(feed_count(f, count_make(1, 0, handle, since, time, calls, left_out, 0)), 0);
}

static void final_count(struct fixture *f, __u64 handle, __u64 time, __u64 calls, __u64 left_out)
{
	cr_assert_eq(feed_final(f, count_make(1, 0, handle, 0, time, calls, left_out, 0)), 0);
}

static void flush(struct fixture *f)
{
	cr_assert_eq(model_flush(f->model), 0);
}

static const struct event_count *reported(const struct fixture *f, size_t nth)
{
	const struct seen *seen = seen_nth(f, EVENT_COUNT, nth);

	return seen ? &seen->event.count : NULL;
}

Test(model_core_records_counts, what_was_added_is_reported)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "a", 10, 20);
	toy_execute(f, 1, 5, 100, 110);
	read_count(f, 5, 99, 200, 10, 7);
	read_count(f, 5, 99, 300, 10, 7); /* nothing new */
	read_count(f, 5, 99, 400, 12, 9);
	final_count(f, 5, 499, 13, 9);
	toy_unload(f, 5, 500, 510);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_COUNT], 3);
	cr_assert_eq(reported(f, 0)->time, 200);
	cr_assert_eq(reported(f, 0)->delta.calls, 10);
	cr_assert_eq(reported(f, 0)->delta.left_out, 7);
	cr_assert(reported(f, 0)->reading);
	cr_assert_str_eq(seen_nth(f, EVENT_COUNT, 0)->program, "a");
	cr_assert_eq(reported(f, 1)->delta.calls, 2);
	cr_assert_eq(reported(f, 1)->delta.left_out, 2);
	cr_assert_eq(reported(f, 2)->time, 499);
	cr_assert_not(reported(f, 2)->reading);
	cr_assert_eq(reported(f, 2)->delta.calls, 1);
	cr_assert_eq(reported(f, 2)->delta.left_out, 0);
	cr_assert_eq(toy_program(f, 1, 5, 0)->total.calls, 13);
	cr_assert_eq(toy_program(f, 1, 5, 0)->total.left_out, 9);
	/* the final counts come before the release */
	cr_assert_lt(seen_nth(f, EVENT_COUNT, 2) - f->seen, seen_nth(f, EVENT_PROGRAM, 1) - f->seen);
	fixture_free(f);
}

Test(model_core_records_counts, the_total_is_known_with_the_first_reading)
{
	struct fixture *f = fixture_toy();

	toy_execute(f, 1, 5, 100, 110);
	flush(f);
	cr_assert_not(toy_program(f, 1, 5, 0)->total_known);
	read_count(f, 5, 99, 200, 1, 0);
	flush(f);
	cr_assert(toy_program(f, 1, 5, 0)->total_known);
	cr_assert_eq(toy_program(f, 1, 5, 0)->total.calls, 1);
	final_count(f, 5, 300, 0, 0);
	flush(f);
	cr_assert_eq(f->kinds[EVENT_COUNT], 1, "nothing was added");
	fixture_free(f);
}

Test(model_core_records_counts, a_program_of_which_no_call_was_recorded)
{
	struct fixture *f = fixture_toy();

	toy_execute(f, 1, 6, 10, 20); /* its process is known */
	read_count(f, 5, 150, 200, 3, 3);
	CALL_1(f, TOY_EXECUTE, 1, 1, 160, 230, 4, U(5), U(0), U(0), U(0)); /* began before the reading */
	toy_load(f, 7, NULL, 100, 180);
	read_count(f, 7, 50, 190, 1, 1);
	flush(f);
	cr_assert_eq(toy_program(f, 1, 5, 0)->total.calls, 3);
	cr_assert_eq(toy_program(f, 1, 5, 0)->recorded, 1);
	cr_assert_eq(f->kinds[EVENT_COUNT], 2);
	fixture_free(f);
}

/* What was counted before the load began is another program; what was counted since is the load's own. */
Test(model_core_records_counts, a_load_adopts_what_was_counted_inside_it_only)
{
	struct fixture *f = fixture_toy();

	toy_execute(f, 1, 9, 10, 20);
	read_count(f, 5, 120, 150, 1, 1);
	toy_load(f, 5, "warm", 100, 200);
	read_count(f, 6, 90, 150, 1, 1);
	toy_load(f, 6, "new", 101, 210);
	flush(f);
	cr_assert_str_eq(toy_program(f, 1, 5, 0)->name, "warm");
	cr_assert_null(toy_program(f, 1, 5, 1));
	cr_assert_eq(toy_program(f, 1, 6, 0)->total.calls, 1);
	cr_assert_str_eq(toy_program(f, 1, 6, 1)->name, "new");
	cr_assert_eq(toy_program(f, 1, 6, 1)->total.calls, 0);
	fixture_free(f);
}

Test(model_core_records_counts, readings_belong_to_the_generation_of_their_time)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "a", 10, 20);
	read_count(f, 5, 30, 100, 10, 0);
	final_count(f, 5, 199, 12, 0);
	read_count(f, 5, 30, 205, 12, 0); /* read while it was taken out */
	toy_unload(f, 5, 200, 210);
	toy_load(f, 5, "b", 300, 400);
	read_count(f, 5, 350, 450, 4, 0);
	/* no unload was seen: the load cuts the counts, and they go on from there */
	final_count(f, 5, 599, 6, 0);
	toy_load(f, 5, "c", 500, 600);
	read_count(f, 5, 599, 600, 1, 0);
	read_count(f, 5, 350, 605, 6, 0); /* late */
	read_count(f, 5, 599, 700, 3, 0);
	flush(f);
	cr_assert_eq(toy_program(f, 1, 5, 0)->total.calls, 12);
	cr_assert_eq(toy_program(f, 1, 5, 1)->total.calls, 6);
	cr_assert_eq(toy_program(f, 1, 5, 2)->total.calls, 3);
	cr_assert_eq(f->kinds[EVENT_COUNT], 6);
	cr_assert_str_eq(seen_nth(f, EVENT_COUNT, 3)->program, "b");
	cr_assert_str_eq(seen_nth(f, EVENT_COUNT, 4)->program, "c");
	fixture_free(f);
}

/* A reading in the middle of a load is reported for the program before; the total of the same counting is the new one's. */
Test(model_core_records_counts, a_generation_that_begins_between_reading_and_total_counts_nothing_twice)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "old", 10, 20);
	read_count(f, 5, 30, 100, 5, 0);
	CALL_1(f, TOY_UNLOAD, 1, 1, 110, 120, 2, U(5), U(0)); /* its total was not sent: the ring was full */
	toy_load(f, 5, "new", 200, 300);
	read_count(f, 5, 30, 400, 8, 0);
	final_count(f, 5, 500, 9, 0);
	flush(f);
	cr_assert_eq(toy_program(f, 1, 5, 0)->total.calls, 5);
	cr_assert_eq(toy_program(f, 1, 5, 1)->total.calls, 4);
	fixture_free(f);
}

Test(model_core_records_counts, of_a_process_that_has_exited)
{
	struct fixture *f = fixture_toy();

	toy_load(f, 5, "a", 10, 20);
	toy_execute(f, 1, 5, 30, 40);
	read_count(f, 5, 30, 50, 1, 0);
	cr_assert_eq(feed_task(f, XPT_TASK_EXIT, 1, 0, 100, "x"), 0);
	read_count(f, 5, 30, 150, 3, 0);
	final_count(f, 5, 200, 4, 0);
	final_count(f, 6, 200, 2, 2); /* all of its calls were left out */
	read_count(f, 7, 60, 210, 1, 1);
	final_count(f, 7, 220, 1, 1);
	flush(f);
	cr_assert_eq(model_program_count(f->model), 3);
	cr_assert_eq(toy_program(f, 1, 5, 0)->released, 100);
	cr_assert_eq(toy_program(f, 1, 5, 0)->total.calls, 4);
	cr_assert_eq(f->kinds[EVENT_COUNT], 5);
	cr_assert_eq(toy_program(f, 1, 6, 0)->released, 100, "it is gone as the others are");
	cr_assert_eq(toy_program(f, 1, 7, 0)->released, 100);
	cr_assert_eq(f->kinds[EVENT_PROGRAM], 5, "loaded, and two that became known after the end, and were gone");
	cr_assert_not(seen_nth(f, EVENT_PROGRAM, 1)->event.program.released);
	cr_assert(seen_nth(f, EVENT_PROGRAM, 2)->event.program.released);
	fixture_free(f);
}

Test(model_core_records_counts, processes_that_are_not_known_are_passed_over)
{
	struct fixture *f = fixture_toy();

	read_count(f, 5, 30, 50, 1, 0);
	flush(f);
	cr_assert_eq(f->count, 0);
	cr_assert_eq(model_program_count(f->model), 0);
	fixture_free(f);
}

Test(model_core_records_counts, names_that_the_user_gave)
{
	struct fixture *f = fixture_toy();

	toy_execute(f, 1, 6, 10, 20);
	cr_assert_eq(feed_text(f, XPT_RECORD_NAMED, 0, 0, 5, "given"), 0);
	read_count(f, 5, 30, 50, 1, 1);
	flush(f);
	cr_assert_str_eq(seen_nth(f, EVENT_COUNT, 0)->program, "given");
	fixture_free(f);
}

Test(model_core_records_counts, of_functions_go_to_the_call_totals)
{
	struct fixture *f = fixture_toy();
	const struct model_call_total *total;

	CALL_1(f, TOY_COPY, 1, 1, 100, 110, 2, U(1000), U(0));
	cr_assert_eq(feed_count(f, count_make(1, TOY_COPY + 1, 0, 90, 200, 7, 0, 0)), 0);
	cr_assert_eq(feed_count(f, count_make(1, TOY_COPY + 1, 0, 90, 300, 9, 0, 2)), 0);
	flush(f);
	total = model_call_total(f->model, 0);
	cr_assert_eq(total->total.calls, 9);
	cr_assert_eq(total->total.lost, 2);
	cr_assert(total->total_known);
	cr_assert_eq(feed_final(f, count_make(1, TOY_COPY + 1, 0, 0, 400, 10, 0, 2)), 0);
	cr_assert_eq(feed_count(f, count_make(1, TOY_COPY + 1, 0, 90, 500, 10, 0, 2)), 0);
	flush(f);
	cr_assert_eq(total->total.calls, 10);
	cr_assert_eq(total->total.lost, 2);
	cr_assert_eq(f->kinds[EVENT_COUNT], 0);
	fixture_free(f);
}

/* ---- a kernel that counts ---- */

#define HANDLES 6

struct entry {
	bool there;
	__u64 calls, left_out, since;
};

struct kernel {
	struct fixture *f;
	struct entry entries[HANDLES];
	bool alive;
	struct xpt_record_count stale[HANDLES]; /* read some time ago */
	bool forgets;				/* then nothing stale comes but right behind a total */
	__u64 time, calls, left_out;		/* all that was ever counted */
	__u64 state;
};

static unsigned int pick(struct kernel *kernel, unsigned int below)
{
	kernel->state = kernel->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned int)(kernel->state >> 33) % below;
}

static void kernel_call(struct kernel *kernel, unsigned int i, unsigned int every)
{
	struct entry *entry = &kernel->entries[i];
	__u64 start = kernel->time += 10;

	if (!entry->there)
		*entry = (struct entry){ .there = true, .since = start + 1 };
	kernel->calls++;
	if (entry->calls++ % every) {
		entry->left_out++;
		kernel->left_out++;
		return;
	}
	toy_execute(kernel->f, 1, 100 + i, start, start + 5);
}

static void kernel_cut(struct kernel *kernel, unsigned int i, __u64 time, bool keep)
{
	struct entry *entry = &kernel->entries[i];

	if (!entry->there)
		return;
	if (entry->calls)
		final_count(kernel->f, 100 + i, time, entry->calls, entry->left_out);
	/* The reader may still find what is just being cut; not so when it takes the counts of a dead process itself. */
	if (entry->calls && kernel->alive)
		read_count(kernel->f, 100 + i, entry->since, time + 1, entry->calls, entry->left_out);
	*entry = (struct entry){ .there = keep, .since = time };
}

static void kernel_load(struct kernel *kernel, unsigned int i)
{
	__u64 start = kernel->time += 10;

	kernel_cut(kernel, i, start + 4, true);
	toy_load(kernel->f, 100 + i, NULL, start, start + 5);
}

static void kernel_unload(struct kernel *kernel, unsigned int i)
{
	__u64 start = kernel->time += 10;

	kernel_cut(kernel, i, start - 1, false);
	toy_unload(kernel->f, 100 + i, start, start + 5);
}

static void kernel_read(struct kernel *kernel)
{
	__u64 time = kernel->time += 10;
	const struct entry *entry;
	unsigned int i;

	for (i = 0; i < HANDLES; i++) {
		entry = &kernel->entries[i];
		/* Once in a while what was read some time ago comes again. */
		if (!kernel->forgets && kernel->stale[i].header.kind && !pick(kernel, 4)) {
			kernel->stale[i].header.time = time;
			cr_assert_eq(feed_count(kernel->f, kernel->stale[i]), 0);
		}
		if (!entry->there)
			continue;
		if (!pick(kernel, 3))
			kernel->stale[i] = count_make(1, 0, 100 + i, entry->since, time, entry->calls, entry->left_out,
						      0);
		read_count(kernel->f, 100 + i, entry->since, time, entry->calls, entry->left_out);
	}
}

static struct xpt_program_count sum_of_programs(const struct fixture *f)
{
	struct xpt_program_count sum = {};
	size_t i;

	for (i = 0; i < model_program_count(f->model); i++) {
		sum.calls += model_program(f->model, i)->total.calls;
		sum.left_out += model_program(f->model, i)->total.left_out;
	}
	return sum;
}

static struct xpt_program_count sum_of_events(const struct fixture *f)
{
	struct xpt_program_count sum = {};
	size_t i;

	for (i = 0; i < f->count; i++) {
		if (f->seen[i].event.kind != EVENT_COUNT)
			continue;
		sum.calls += f->seen[i].event.count.delta.calls;
		sum.left_out += f->seen[i].event.count.delta.left_out;
	}
	return sum;
}

static void kernel_check(const struct kernel *kernel)
{
	struct xpt_program_count programs = sum_of_programs(kernel->f), events = sum_of_events(kernel->f);

	cr_assert_eq(programs.calls, kernel->calls, "%llu of %llu calls", programs.calls, kernel->calls);
	cr_assert_eq(programs.left_out, kernel->left_out);
	cr_assert_eq(events.calls, kernel->calls);
	cr_assert_eq(events.left_out, kernel->left_out);
}

static void kernel_run(__u64 seed, unsigned int every, size_t keep)
{
	struct kernel kernel = { .f = fixture_toy(), .time = 1000, .state = seed, .alive = true, .forgets = keep };
	unsigned int step, i;

	if (keep)
		model_keep_released(kernel.f->model, keep);
	toy_execute(kernel.f, 1, 99, 1, 2); /* the process is known */
	for (step = 0; step < 4000; step++) {
		i = pick(&kernel, HANDLES);
		switch (pick(&kernel, 16)) {
		case 0:
			kernel_load(&kernel, i);
			break;
		case 1:
			kernel_unload(&kernel, i);
			break;
		case 2:
			kernel_read(&kernel);
			flush(kernel.f);
			kernel_check(&kernel);
			break;
		case 3:
			/* A second of silence, so that some of what is gone has settled. */
			kernel.time += 1000000000;
			break;
		default:
			kernel_call(&kernel, i, every);
			break;
		}
	}
	cr_assert_eq(feed_task(kernel.f, XPT_TASK_EXIT, 1, 0, kernel.time += 10, "x"), 0);
	kernel.alive = false;
	for (i = 0; i < HANDLES; i++)
		kernel_cut(&kernel, i, kernel.time + 10, false);
	flush(kernel.f);
	kernel_check(&kernel);
	if (keep)
		cr_assert_leq(model_program_count(kernel.f->model), keep + HANDLES + 3);
	fixture_free(kernel.f);
}

Test(model_core_records_counts, sums_are_those_of_the_kernel_at_every_reading)
{
	__u64 seed;

	for (seed = 1; seed <= 12; seed++)
		kernel_run(seed, 1 << seed % 5, 0);
}

Test(model_core_records_counts, sums_stay_exact_when_programs_are_forgotten)
{
	__u64 seed;

	for (seed = 1; seed <= 12; seed++)
		kernel_run(seed, 1 << seed % 5, seed);
}
