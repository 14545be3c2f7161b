/* SPDX-License-Identifier: BSD-2-Clause */
#include <xputrace/profile.h>

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

TestSuite(profile_handle_handle, .init = setup, .fini = teardown);

#define STREAM(...)                         \
	{                                   \
		.stream = true, __VA_ARGS__ \
	}
#define COUNTED(...)                                                    \
	{                                                               \
		.program = { .name = "net" }, .samples = 1, __VA_ARGS__ \
	}

Test(profile_handle_handle, refused_with_a_reason)
{
	static const struct handle_options table[] = {
		STREAM(.report_every = XPT_REPORT_EVERY_MIN - 1),
		STREAM(.report_every = XPT_REPORT_EVERY_MAX + 1),
		STREAM(.report_every = NEVER),
		STREAM(.sample_every = XPT_SAMPLE_EVERY_MAX + 1),
		STREAM(.sample_every = XPT_SAMPLE_NONE),
		STREAM(.match = "(net"),
		STREAM(.match = "["),
		STREAM(.type = XPT_PROFILE_TRACE, .summary = true),
		STREAM(.type = (enum xpt_profile_type)2),
		{ .samples = 1 },
		{ .samples = 1, .program = { .pid = 7 } },
		{ .program = { .name = "net" } },
		{ .program = { .name = "net" }, .samples = XPT_SAMPLES_MAX + 1 },
		COUNTED(.delay = NEVER),
		COUNTED(.type = XPT_PROFILE_TRACE, .summary = true),
	};
	struct handle *handle = NULL;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		stage->messages[0] = '\0';
		cr_assert_eq(handle_create(stage->profiling, &table[i], &handle), -EINVAL, "%zu", i);
		cr_assert_neq(*stage->messages, '\0', "%zu", i);
	}
	cr_assert_null(handle);
	cr_assert(link_alone(&stage->profiling->handles));
}

Test(profile_handle_handle, position_of_what_is_wrong)
{
	const struct handle_options options = STREAM(.match = "net)");
	struct handle *handle;

	cr_assert_eq(handle_create(stage->profiling, &options, &handle), -EINVAL);
	cr_assert_not_null(strstr(stage->messages, "position 3"), "%s", stage->messages);
}

Test(profile_handle_handle, defaults)
{
	const struct handle_options options = STREAM(.match = NULL);
	struct handle *handle;

	cr_assert_eq(handle_create(stage->profiling, &options, &handle), 0);
	cr_assert_eq(handle->options.report_every, 500 * MS);
	cr_assert_eq(handle->options.sample_every, 1);
	cr_assert_str_eq(handle->options.name, "");
	cr_assert_not(handle_runs(handle));
	cr_assert(handle_settled(handle));
	cr_assert_eq(profiling_due(stage->profiling), NEVER);
	handle_free(handle);
}

Test(profile_handle_handle, everything_is_copied)
{
	char name[] = "mine", match[] = "^net", program[] = "net";
	const struct handle_options options = STREAM(.match = match, .name = name);
	const struct handle_options other = { .program = { .name = program }, .samples = 1, .name = name };
	struct toy *toy = toy_make(stage, 0, 1, "net");
	struct handle *stream, *counted;

	cr_assert_eq(handle_create(stage->profiling, &options, &stream), 0);
	cr_assert_eq(handle_create(stage->profiling, &other, &counted), 0);
	memset(name, 'x', 4);
	memset(match, 'x', 4);
	memset(program, 'x', 3);
	handle_start(stream, T0, OFFSET);
	handle_start(counted, T0, OFFSET);
	toy_load(stage, toy, T0 + 1);
	toy_run(stage, toy, T0 + 2, T0 + 3);
	stage_read(stage, T0 + 500 * MS);
	cr_assert_eq(stage->got_count, 2);
	cr_assert_str_eq(got(stage, 0)->name, "mine");
	cr_assert_str_eq(got(stage, 1)->name, "mine");
	cr_assert_eq(got(stage, 0)->programs->taken, 1);
	cr_assert_eq(got(stage, 1)->programs->taken, 1);
	handle_free(stream);
	handle_free(counted);
	/* Reports outlive their handles. */
	cr_assert_str_eq(got(stage, 0)->name, "mine");
}

/* Each gets what it would get alone. */
Test(profile_handle_handle, ten_at_once)
{
	struct handle *handles[10];
	struct toy *toys[3];
	__u64 taken[10] = {}, inferences[10] = {}, i, j;
	static const __u32 rates[7] = { 1, 2, 4, 8, 16, 3, 5 };

	for (i = 0; i < 7; i++)
		handles[i] = stream_make(stage, i % 2 ? "net" : "", (100 + 50 * i) * MS, rates[i]);
	for (; i < 10; i++)
		handles[i] = counted_make(stage, "net", 100 * (i - 6));
	for (i = 0; i < 10; i++)
		cr_assert_eq(handle_start(handles[i], T0, OFFSET), 0);
	stage_read(stage, T0 + 1);
	for (i = 0; i < 3; i++) {
		toys[i] = toy_make(stage, i, 1 + i, i == 1 ? "bert" : "net");
		toy_load(stage, toys[i], T0 + 2 + i);
	}
	for (i = 0; i < 3000; i++) {
		toy_run(stage, toys[i % 3], T0 + i * MS + 10, T0 + i * MS + MS);
		stage_until(stage, T0 + i * MS + MS);
	}
	for (i = 0; i < 7; i++)
		handle_stop(handles[i], T0 + 3 * SECOND);
	stage_read(stage, T0 + 3 * SECOND + 1);
	for (i = 0; i < stage->got_count; i++) {
		for (j = 0; stage->got[i].handle != handles[j]; j++)
			;
		for (size_t p = 0; p < got(stage, i)->program_count; p++) {
			taken[j] += got(stage, i)->programs[p].taken;
			inferences[j] += got(stage, i)->programs[p].inferences;
			cr_assert_eq(got(stage, i)->programs[p].lost, 0);
		}
	}
	for (i = 0; i < 7; i++) {
		cr_assert_eq(inferences[i], i % 2 ? 2000 : 3000);
		cr_assert_eq(taken[i], (i % 2 ? 2 : 3) * ((1000 + rates[i] - 1) / rates[i]), "%llu", taken[i]);
	}
	for (; i < 10; i++)
		cr_assert_eq(taken[i], 100 * (i - 6));
	for (i = 0; i < 10; i++)
		handle_free(handles[i]);
}
