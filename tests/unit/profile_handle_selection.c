/* SPDX-License-Identifier: BSD-2-Clause */

#include "profile_support.h"

/* Which programs a stream is for, while they come, go, and are added and removed. */

static struct stage *stage;

static void setup(void)
{
	stage = stage_make(0);
}

static void teardown(void)
{
	stage_end(stage);
}

TestSuite(profile_handle_selection, .init = setup, .fini = teardown);

#define NAME(text) (&(struct xpt_program_choice){ .name = text })

static const struct xpt_program_report *in_last(const struct toy *toy)
{
	return program_in(got(stage, stage->got_count - 1), toy->program.id);
}

Test(profile_handle_selection, by_expression_as_they_are_created)
{
	struct handle *stream = stream_make(stage, "^res.*50$", 500 * MS, 1);
	struct toy *before = toy_make(stage, 0, 1, "resnet50"), *other = toy_make(stage, 0, 2, "bert");
	struct toy *later = toy_make(stage, 1, 3, "resnext50"), *others = toy_make(stage, 0, 0, "(others)");

	toy_load(stage, before, T0);
	toy_load(stage, other, T0);
	handle_start(stream, T0 + 10, OFFSET);
	stage_read(stage, T0 + 11);
	toy_load(stage, later, T0 + MS);
	toy_run(stage, before, T0 + 2 * MS, T0 + 3 * MS);
	toy_run(stage, other, T0 + 2 * MS, T0 + 3 * MS);
	toy_run(stage, others, T0 + 2 * MS, T0 + 3 * MS);
	toy_run(stage, later, T0 + 2 * MS, T0 + 3 * MS);
	toy_unload(stage, later, T0 + 4 * MS);
	stage_read(stage, T0 + 500 * MS);
	cr_assert_eq(got(stage, 0)->program_count, 2);
	cr_assert_eq(in_last(before)->taken, 1);
	cr_assert_not(in_last(before)->released);
	cr_assert_eq(in_last(later)->taken, 1);
	cr_assert(in_last(later)->released);
	stage_read(stage, T0 + 1000 * MS);
	cr_assert_eq(got(stage, 1)->program_count, 0);
	cr_assert_eq(profiling_program_count(stage->profiling), 2);
	handle_free(stream);
}

Test(profile_handle_selection, released_without_having_run)
{
	struct handle *stream = stream_make(stage, "net", 500 * MS, 1);
	struct toy *toy = toy_make(stage, 0, 1, "net");

	handle_start(stream, T0, OFFSET);
	toy_load(stage, toy, T0 + 1);
	toy_unload(stage, toy, T0 + 2);
	stage_read(stage, T0 + 500 * MS);
	cr_assert_eq(got(stage, 0)->program_count, 1);
	cr_assert_eq(in_last(toy)->inferences, 0);
	cr_assert(in_last(toy)->released);
	cr_assert_not_null(in_last(toy)->latencies);
	handle_free(stream);
}

/* A late count of a program that is long forgotten is counted, and tells of no second release. */
Test(profile_handle_selection, counts_after_it_was_forgotten)
{
	struct handle *stream = stream_make(stage, "net", 500 * MS, 1);
	struct toy *toy = toy_make(stage, 0, 1, "net");

	handle_start(stream, T0, OFFSET);
	toy_load(stage, toy, T0 + 1);
	toy_unload(stage, toy, T0 + 2);
	stage_until(stage, T0 + 3 * SECOND);
	cr_assert_eq(stage->profiling->programs.released_count, 0);
	toy->calls = 5;
	toy_count(stage, toy, T0 + 3100 * MS, false);
	stage_read(stage, T0 + 3500 * MS);
	cr_assert_eq(got(stage, stage->got_count - 1)->program_count, 0);
	toy->calls = toy->lost = 8;
	toy_count(stage, toy, T0 + 3600 * MS, false);
	stage_read(stage, T0 + 4000 * MS);
	cr_assert_eq(in_last(toy)->lost, 8);
	cr_assert(in_last(toy)->released);
	handle_free(stream);
}

Test(profile_handle_selection, handle_used_again)
{
	struct handle *stream = stream_make(stage, NULL, 500 * MS, 1);
	struct toy *one = toy_make(stage, 0, 1, "net"), *two = toy_make(stage, 0, 1, "net2");

	handle_add(stream, &(struct xpt_program_choice){ .handle = 1 });
	handle_start(stream, T0, OFFSET);
	toy_load(stage, one, T0 + 1);
	toy_run(stage, one, T0 + 2, T0 + 3);
	toy_unload(stage, one, T0 + 4);
	toy_load(stage, two, T0 + 5);
	toy_run(stage, two, T0 + 6, T0 + 7);
	toy_run(stage, two, T0 + 8, T0 + 9);
	stage_read(stage, T0 + 500 * MS);
	cr_assert_eq(in_last(one)->taken, 1);
	cr_assert(in_last(one)->released);
	cr_assert_str_eq(in_last(one)->name, "net");
	cr_assert_eq(in_last(two)->taken, 2);
	cr_assert_not(in_last(two)->released);
	cr_assert_str_eq(in_last(two)->name, "net2");
	cr_assert_eq(in_last(two)->generation, 1);
	handle_free(stream);
}

Test(profile_handle_selection, added_and_removed_while_it_runs)
{
	struct handle *stream = stream_make(stage, NULL, 500 * MS, 1), *all = stream_make(stage, "", 500 * MS, 1);
	struct toy *toy = toy_make(stage, 0, 1, "net");
	size_t i;

	toy_load(stage, toy, T0);
	handle_start(stream, T0 + 1, OFFSET);
	handle_start(all, T0 + 1, OFFSET);
	stage_read(stage, T0 + 2);
	toy->lost = 100;
	toy_run(stage, toy, T0 + 3, T0 + 4);
	cr_assert_eq(handle_add(stream, NAME("net")), 0);
	cr_assert_leq(profiling_due(stage->profiling), T0 + 5, "its counts so far have to be known");
	stage_read(stage, T0 + 5);
	for (i = 0; i < 7; i++)
		toy_run(stage, toy, T0 + 10 + i, T0 + 20 + i);
	toy->lost += 3;
	cr_assert_eq(handle_remove(stream, NAME("net")), 0);
	cr_assert_leq(profiling_due(stage->profiling), T0 + 50);
	/* It ended before the counts were read. */
	toy_run(stage, toy, T0 + 11, T0 + 50);
	profiling_read(stage->profiling, T0 + 50, OFFSET);
	toy_run(stage, toy, T0 + 12, T0 + 51);
	stage_counts(stage, T0 + 50);
	toy_run(stage, toy, T0 + 13, T0 + 52);
	toy->lost += 1;
	stage_read(stage, T0 + 500 * MS);
	for (i = 0; i < 2; i++) {
		const struct xpt_program_report *program = program_in(got(stage, i), toy->program.id);

		if (stage->got[i].handle == stream) {
			cr_assert_eq(program->taken, 8);
			cr_assert_eq(program->lost, 3);
			cr_assert_eq(program->inferences, 11);
		} else {
			cr_assert_eq(program->taken, 11);
			cr_assert_eq(program->lost, 104);
		}
	}
	cr_assert_eq(toy->sample_every ?: stage->sample_every, 1);
	handle_free(all);
	cr_assert_eq(toy->sample_every ?: stage->sample_every, XPT_SAMPLE_NONE);
	/* And back again. */
	stage_forget_reports(stage);
	cr_assert_eq(handle_add(stream, NAME("net")), 0);
	stage_read(stage, T0 + 501 * MS);
	toy_run(stage, toy, T0 + 502 * MS, T0 + 503 * MS);
	stage_read(stage, T0 + 1000 * MS);
	cr_assert_eq(in_last(toy)->taken, 1);
	cr_assert_eq(in_last(toy)->inferences, 1);
	handle_free(stream);
}

Test(profile_handle_selection, answers)
{
	struct handle *stream = stream_make(stage, NULL, 500 * MS, 1),
		      *matching = stream_make(stage, "net", 500 * MS, 1);
	struct handle *counted = counted_make(stage, "net", 1);
	struct toy *toy = toy_make(stage, 0, 1, "net");
	char name[16];
	size_t i;

	toy_load(stage, toy, T0);
	cr_assert_eq(handle_add(stream, &(struct xpt_program_choice){ .pid = 3 }), -EINVAL);
	cr_assert_eq(handle_remove(stream, &(struct xpt_program_choice){ .pid = 3 }), -EINVAL);
	cr_assert_eq(handle_add(counted, NAME("net")), -EINVAL);
	cr_assert_eq(handle_remove(counted, NAME("net")), -EINVAL);
	cr_assert_eq(handle_remove(stream, NAME("net")), -ENOENT);
	cr_assert_eq(handle_add(stream, NAME("net")), 0);
	cr_assert_eq(handle_add(stream, NAME("net")), -EEXIST);
	cr_assert_eq(handle_add(stream, &(struct xpt_program_choice){ .name = "net", .pid = 100 }), 0);
	cr_assert_eq(handle_remove(stream, NAME("bert")), -ENOENT);
	cr_assert_eq(handle_remove(stream, &(struct xpt_program_choice){ .handle = 1 }), 0,
		     "it was chosen by its name");
	cr_assert_eq(handle_remove(stream, &(struct xpt_program_choice){ .handle = 1 }), -ENOENT);
	cr_assert_eq(handle_add(stream, NAME("net")), 0, "it was removed since");
	cr_assert_eq(handle_remove(matching, NAME("bert")), 0, "an exclusion");
	cr_assert_eq(handle_remove(matching, NAME("bert")), -ENOENT);
	for (i = 2; i <= XPT_CHOICES_MAX; i++) {
		snprintf(name, sizeof(name), "%zu", i);
		cr_assert_eq(handle_add(matching, NAME(name)), 0);
	}
	cr_assert_eq(handle_add(matching, NAME("one more")), -ENOSPC);
	cr_assert_eq(handle_remove(matching, NAME("17")), 0);
	handle_free(stream);
	handle_free(matching);
	handle_free(counted);
}

/* The latest word on a program counts, and a removal outlives the program. */
Test(profile_handle_selection, exclusions_are_remembered)
{
	struct handle *stream = stream_make(stage, "net", 500 * MS, 1);
	struct toy *one = toy_make(stage, 0, 1, "net"), *two = toy_make(stage, 0, 2, "net"),
		   *three = toy_make(stage, 0, 3, "resnet"), *four = toy_make(stage, 0, 4, "net");

	handle_start(stream, T0, OFFSET);
	handle_remove(stream, NAME("net"));
	toy_load(stage, one, T0 + 1);
	toy_load(stage, three, T0 + 1);
	toy_run(stage, one, T0 + 2, T0 + 3);
	toy_run(stage, three, T0 + 2, T0 + 3);
	handle_add(stream, &(struct xpt_program_choice){ .name = "net", .handle = 2 });
	toy_load(stage, two, T0 + 4);
	toy_run(stage, two, T0 + 5, T0 + 6);
	toy_unload(stage, one, T0 + 7);
	toy_load(stage, four, T0 + 8);
	toy_run(stage, four, T0 + 9, T0 + 10);
	stage_read(stage, T0 + 500 * MS);
	cr_assert_null(in_last(one));
	cr_assert_eq(in_last(two)->taken, 1);
	cr_assert_eq(in_last(three)->taken, 1);
	cr_assert_null(in_last(four));
	handle_add(stream, NAME("net"));
	toy_run(stage, four, T0 + 501 * MS, T0 + 502 * MS);
	stage_read(stage, T0 + 1000 * MS);
	cr_assert_eq(in_last(four)->taken, 1);
	handle_free(stream);
}

/* Names come after the first call, or change. */
Test(profile_handle_selection, named_later)
{
	struct handle *stream = stream_make(stage, "^net$", 500 * MS, 1);
	struct toy *toy = toy_make(stage, 0, 0x51, "0x51");
	struct event named = { .kind = EVENT_PROGRAM };

	handle_start(stream, T0, OFFSET);
	stage_read(stage, T0 + 1);
	toy_load(stage, toy, T0 + 2);
	named.program.program = &toy->program;
	named.program.time = T0 + 3;
	snprintf(toy->name, sizeof(toy->name), "net");
	stage_event(stage, named);
	toy_run(stage, toy, T0 + 4, T0 + 5);
	stage_read(stage, T0 + 500 * MS);
	cr_assert_eq(in_last(toy)->taken, 1);
	cr_assert_eq(in_last(toy)->inferences, 1);
	toy_run(stage, toy, T0 + 500 * MS, T0 + 501 * MS);
	snprintf(toy->name, sizeof(toy->name), "bert");
	stage_event(stage, named);
	stage_read(stage, T0 + 502 * MS);
	toy_run(stage, toy, T0 + 503 * MS, T0 + 504 * MS);
	stage_read(stage, T0 + 1000 * MS);
	cr_assert_eq(in_last(toy)->taken, 1);
	cr_assert_str_eq(in_last(toy)->name, "bert");
	cr_assert_str_eq(program_in(got(stage, 0), toy->program.id)->name, "net", "finished reports stay as they are");
	handle_free(stream);
}

Test(profile_handle_selection, process_renamed)
{
	struct handle *stream = stream_make(stage, "net", 500 * MS, 1);
	struct toy *toy = toy_make(stage, 2, 1, "net");

	handle_start(stream, T0, OFFSET);
	toy_load(stage, toy, T0 + 2);
	toy_run(stage, toy, T0 + 4, T0 + 5);
	stage->processes[2].name = "server";
	stage_event(stage, (struct event){ .kind = EVENT_PROCESS, .process = &stage->processes[2] });
	stage_read(stage, T0 + 500 * MS);
	cr_assert_str_eq(in_last(toy)->process, "server");
	handle_free(stream);
}

Test(profile_handle_selection, hostile_expression_and_name)
{
	struct handle *stream = stream_make(stage, "(a+)+$", 500 * MS, 1);
	struct toy *toy = toy_make(stage, 0, 1, ""), *good = toy_make(stage, 0, 2, "aaa"), *again;
	char name[1000];

	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 2] = 'b';
	name[sizeof(name) - 1] = '\0';
	toy->program.name = name;
	handle_start(stream, T0, OFFSET);
	toy_load(stage, toy, T0 + 1);
	cr_assert_neq(strlen(stage->messages), 0);
	stage->messages[0] = '\0';
	again = toy_make(stage, 0, 3, "");
	again->program.name = name;
	toy_load(stage, again, T0 + 1);
	cr_assert_str_empty(stage->messages, "said once");
	toy_load(stage, good, T0 + 2);
	toy_run(stage, toy, T0 + 4, T0 + 5);
	toy_run(stage, good, T0 + 4, T0 + 5);
	stage_read(stage, T0 + 500 * MS);
	cr_assert_null(in_last(toy));
	cr_assert_eq(in_last(good)->taken, 1);
	handle_free(stream);
}

static struct stage *stage;

static void setup_rates(void)
{
	stage = stage_make(0);
}

static void teardown_rates(void)
{
	stage_end(stage);
}

TestSuite(profile_handle_selection_rates, .init = setup_rates, .fini = teardown_rates);

/* What the kernel does with the program's calls. */
static __u32 rate(const struct toy *toy)
{
	return toy->sample_every ?: stage->sample_every;
}

/* One that has run, so that the kernel knows it. */
static struct toy *toy_there(__u64 handle, const char *name)
{
	struct toy *toy = toy_make(stage, 0, handle, name);

	toy_load(stage, toy, T0);
	toy->calls = toy->reported_calls = 1;
	stage_event(stage, toy_call(toy, &stage->execute, T0, T0 + 1));
	return toy;
}

Test(profile_handle_selection_rates, nothing_without_handles)
{
	cr_assert_eq(stage->sample_every, XPT_SAMPLE_NONE);
	cr_assert_eq(stage->roles, 1u << XPT_ROLE_PROGRAM_LOAD | 1u << XPT_ROLE_PROGRAM_READY |
					   1u << XPT_ROLE_PROGRAM_NAME | 1u << XPT_ROLE_PROGRAM_UNLOAD |
					   1u << XPT_ROLE_RESOLVE | 1u << XPT_ROLE_TABLE | 1u << XPT_ROLE_LOADER);
	toy_there(1, "net");
	cr_assert_eq(stage->defaults_said, 1);
	cr_assert_eq(stage->rates_said, 0);
}

Test(profile_handle_selection_rates, the_greatest_common_divisor)
{
	static const struct {
		__u32 one, other, both;
	} table[] = { { 4, 6, 2 }, { 8, 16, 8 }, { 3, 5, 1 }, { 1, 16, 1 }, { 1000000, 999999, 1 }, { 12, 18, 6 } };
	struct toy *toy = toy_there(1, "net"), *other = toy_there(2, "bert");
	struct handle *one, *two;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		one = stream_make(stage, "net", 500 * MS, table[i].one);
		two = stream_make(stage, "n.t", 500 * MS, table[i].other);
		handle_start(one, T0, OFFSET);
		cr_assert_eq(rate(toy), table[i].one);
		handle_start(two, T0, OFFSET);
		cr_assert_eq(rate(toy), table[i].both);
		cr_assert_eq(stage->sample_every, table[i].both);
		cr_assert_eq(rate(other), XPT_SAMPLE_NONE);
		handle_free(one);
		cr_assert_eq(rate(toy), table[i].other);
		handle_free(two);
		cr_assert_eq(rate(toy), XPT_SAMPLE_NONE);
	}
}

/* Five hundred a second come and go: those that match cost no call. */
Test(profile_handle_selection_rates, matching_ones_need_no_word)
{
	struct handle *stream = stream_make(stage, "net", 500 * MS, 4);
	struct toy *toy;
	size_t i;

	handle_start(stream, T0, OFFSET);
	for (i = 0; i < 40; i++)
		toy_there(10 + i, "net");
	cr_assert_eq(stage->rates_said, 0);
	toy = toy_there(60, "bert");
	cr_assert_eq(rate(toy), XPT_SAMPLE_NONE);
	/* The kernel had no entry for it at first. */
	cr_assert_eq(stage->rates_said, 2);
	cr_assert_eq(toy->rates_said, 1);
	handle_free(stream);
}

/* The kernel takes a handle that is named for that of another program, and forgets its rate. */
Test(profile_handle_selection_rates, said_again_after_the_handle_is_named)
{
	struct handle *stream = stream_make(stage, "net", 500 * MS, 4);
	struct toy *toy = toy_there(1, "bert");
	struct model_function name = { .name = "toy_name", .runtime = "toy", .role = XPT_ROLE_PROGRAM_NAME };

	handle_start(stream, T0, OFFSET);
	cr_assert_eq(rate(toy), XPT_SAMPLE_NONE);
	toy->sample_every = 0;
	stage_event(stage, toy_call(toy, &name, T0 + 2, T0 + 3));
	cr_assert_eq(rate(toy), XPT_SAMPLE_NONE);
	handle_free(stream);
}

Test(profile_handle_selection_rates, retries_are_bounded)
{
	struct handle *stream = stream_make(stage, "net", 500 * MS, 4);
	struct toy *toy = toy_make(stage, 0, 1, "bert");
	size_t i;

	handle_start(stream, T0, OFFSET);
	toy_load(stage, toy, T0);
	for (i = 0; i < 100000; i++)
		stage_event(stage, toy_call(toy, &stage->execute, T0 + i, T0 + i + 1));
	cr_assert_lt(stage->rates_said, 200);
	cr_assert_gt(stage->rates_said, 50);
	toy->calls = 1;
	for (i = 0; i < 1024; i++)
		stage_event(stage, toy_call(toy, &stage->execute, T0 + i, T0 + i + 1));
	cr_assert_eq(rate(toy), XPT_SAMPLE_NONE);
	handle_free(stream);
}

Test(profile_handle_selection_rates, counted_ones_want_all_until_they_are_bound)
{
	struct toy *toy = toy_there(1, "net"), *other = toy_there(2, "bert");
	struct handle *handle = counted_make(stage, "net", 2);

	handle_start(handle, T0, OFFSET);
	cr_assert_eq(stage->sample_every, 1);
	cr_assert_eq(rate(toy), 1);
	cr_assert_eq(rate(other), XPT_SAMPLE_NONE);
	toy_run(stage, toy, T0 + 1, T0 + 2);
	cr_assert_eq(stage->sample_every, XPT_SAMPLE_NONE, "another one is not of interest any more");
	cr_assert_eq(rate(toy), 1);
	toy_run(stage, toy, T0 + 1, T0 + 2);
	stage_read(stage, T0 + 3);
	cr_assert_eq(rate(toy), XPT_SAMPLE_NONE);
	handle_free(handle);
}

Test(profile_handle_selection_rates, defaults_change_nothing_that_was_promised)
{
	struct handle *streams[4];
	struct toy *toys[4];
	static const char *const names[4] = { "a", "b", "c", "d" };
	static const __u32 rates[4] = { 2, 4, 1, 16 };
	size_t i, j;

	for (i = 0; i < 4; i++) {
		toys[i] = toy_there(1 + i, names[i]);
		streams[i] = stream_make(stage, names[i], 500 * MS, rates[i]);
	}
	for (i = 0; i < 4; i++) {
		handle_start(streams[i], T0, OFFSET);
		for (j = 0; j < 4; j++)
			cr_assert_eq(rate(toys[j]), j <= i ? rates[j] : XPT_SAMPLE_NONE, "%zu %zu", i, j);
	}
	cr_assert_eq(stage->sample_every, 1);
	handle_free(streams[2]);
	cr_assert_eq(stage->sample_every, 2);
	for (j = 0; j < 4; j++)
		cr_assert_eq(rate(toys[j]), j == 2 ? XPT_SAMPLE_NONE : rates[j]);
	handle_free(streams[0]);
	handle_free(streams[1]);
	handle_free(streams[3]);
}

/* Until the counts have been read nothing changes: what is left out meanwhile would be counted as theirs. */
Test(profile_handle_selection_rates, stop_waits_for_the_reading)
{
	struct handle *stream = stream_make(stage, "net", 500 * MS, 4);
	struct toy *toy = toy_there(1, "net");

	handle_start(stream, T0, OFFSET);
	stage_read(stage, T0 + 1);
	handle_stop(stream, T0 + 5);
	cr_assert_eq(rate(toy), 4);
	profiling_read(stage->profiling, T0 + 6, OFFSET);
	cr_assert_eq(rate(toy), XPT_SAMPLE_NONE);
	cr_assert_eq(stage->roles & 1u << XPT_ROLE_EXECUTE, 0);
	profiling_delivered(stage->profiling, T0 + 6);
	handle_free(stream);
}

Test(profile_handle_selection_rates, roles)
{
	struct handle_options options = { .stream = true, .type = XPT_PROFILE_TRACE };
	struct handle *latency = stream_make(stage, NULL, 500 * MS, 4), *trace;
	__u32 wanted = 1u << XPT_ROLE_EXECUTE | 1u << XPT_ROLE_ENQUEUE | 1u << XPT_ROLE_WAIT | 1u << XPT_ROLE_LAUNCH;
	/* Launches end with these, too. */
	__u32 ends = 1u << XPT_ROLE_MARK | 1u << XPT_ROLE_STREAM | 1u << XPT_ROLE_COPY;

	cr_assert_eq(handle_create(stage->profiling, &options, &trace), 0);
	handle_start(latency, T0, OFFSET);
	cr_assert_eq(stage->roles & (wanted | ends), wanted | ends);
	cr_assert_eq(stage->roles & (1u << XPT_ROLE_ALLOC | 1u << XPT_ROLE_REGION_END), 0);
	cr_assert_eq(stage->sample_every, XPT_SAMPLE_NONE, "nothing was added to it");
	handle_start(trace, T0, OFFSET);
	cr_assert_eq(stage->roles, ~0u);
	handle_free(trace);
	cr_assert_eq(stage->roles & 1u << XPT_ROLE_ALLOC, 0);
	handle_free(latency);
}
