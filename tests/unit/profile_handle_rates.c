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

TestSuite(profile_handle_rates, .init = setup, .fini = teardown);

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
	toy->calls = toy->told_calls = 1;
	stage_event(stage, toy_call(toy, &stage->execute, T0, T0 + 1));
	return toy;
}

Test(profile_handle_rates, nothing_without_handles)
{
	cr_assert_eq(stage->sample_every, XPT_SAMPLE_NONE);
	cr_assert_eq(stage->roles, 1u << XPT_ROLE_PROGRAM_LOAD | 1u << XPT_ROLE_PROGRAM_READY |
					   1u << XPT_ROLE_PROGRAM_NAME | 1u << XPT_ROLE_PROGRAM_UNLOAD |
					   1u << XPT_ROLE_RESOLVE | 1u << XPT_ROLE_TABLE | 1u << XPT_ROLE_LOADER);
	toy_there(1, "net");
	cr_assert_eq(stage->defaults_said, 1);
	cr_assert_eq(stage->rates_said, 0);
}

Test(profile_handle_rates, the_greatest_common_divisor)
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
Test(profile_handle_rates, matching_ones_need_no_word)
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
Test(profile_handle_rates, said_again_after_the_handle_is_named)
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

Test(profile_handle_rates, retries_are_bounded)
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

Test(profile_handle_rates, counted_ones_want_all_until_they_are_bound)
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

Test(profile_handle_rates, defaults_change_nothing_that_was_promised)
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
Test(profile_handle_rates, stop_waits_for_the_reading)
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

Test(profile_handle_rates, roles)
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
