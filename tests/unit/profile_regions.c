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

TestSuite(profile_regions, .init = setup, .fini = teardown);

static struct model_program program_of(const char *name, unsigned int process)
{
	static unsigned int next_id = 0x80000000u;

	next_id++;
	return (struct model_program){ .id = next_id - 1,
				       .process = &stage->processes[process],
				       .runtime = "region",
				       .handle = 77 + next_id,
				       .name = name,
				       .named = true,
				       .role = XPT_ROLE_REGION_BEGIN };
}

static void region(const struct model_program *program, __u64 number, __u64 start, __u64 end)
{
	stage_event(stage, (struct event){ .kind = EVENT_REGION,
					   .region = { .tgid = program->process->tgid,
						       .tid = program->process->tgid,
						       .runtime = "region",
						       .name = program->name + strlen("region:"),
						       .start = start,
						       .end = end,
						       .program = program,
						       .number = number } });
}

static bool watched(void)
{
	return stage->roles >> XPT_ROLE_REGION_BEGIN & 1 && stage->roles >> XPT_ROLE_REGION_END & 1;
}

Test(profile_regions, a_counted_handle_takes_so_many)
{
	struct handle *handle = counted_make(stage, "region:decode", 2);
	const struct model_program decode = program_of("region:decode", 0), other = program_of("region:other", 0);
	const struct xpt_program_report *report;

	cr_assert_not(watched());
	handle_start(handle, T0, OFFSET);
	cr_assert(watched());
	region(&other, 0, T0 + 1, T0 + 5);
	region(&decode, 0, T0 + 2, T0 + 6);
	region(&decode, 1, T0 + 10, T0 + 30);
	region(&decode, 2, T0 + 40, T0 + 50);
	stage_until(stage, T0 + SECOND);
	cr_assert_eq(stage->got_count, 1);
	cr_assert_eq(got(stage, 0)->end_reason, XPT_PROFILE_COMPLETE);
	report = program_in(got(stage, 0), decode.id);
	cr_assert_not_null(report);
	cr_assert_eq(report->sample_count, 2);
	cr_assert_eq(report->samples[1].time[XPT_TIME_CALL_BEGINS], T0 + 10);
	cr_assert_eq(report->samples[1].time[XPT_TIME_CALL_ENDS], T0 + 30);
	cr_assert_eq(stage->rates_said, 0, "the kernel has no rates for regions");
	cr_assert_not(watched(), "nobody wants them any more");
	handle_free(handle);
}

Test(profile_regions, streams_choose_by_name_and_rate)
{
	struct handle *stream = stream_make(stage, "^region:a", 500 * MS, 4);
	const struct model_program a = program_of("region:a", 0), b = program_of("region:b", 0);
	__u64 i;

	handle_start(stream, T0, OFFSET);
	cr_assert(watched());
	for (i = 0; i < 100; i++) {
		region(&a, i, T0 + 10 * i, T0 + 10 * i + 5);
		region(&b, i, T0 + 10 * i, T0 + 10 * i + 5);
	}
	stage_until(stage, T0 + 600 * MS);
	cr_assert_geq(stage->got_count, 1);
	cr_assert_eq(got(stage, 0)->program_count, 1);
	cr_assert_eq(program_in(got(stage, 0), a.id)->sample_count, 25);
	cr_assert_eq(program_in(got(stage, 0), a.id)->inferences, 100);
	handle_free(stream);
}

/* Watching them would cost a target more than was asked for. */
Test(profile_regions, every_program_is_no_region)
{
	struct handle *all = stream_make(stage, "", 500 * MS, 1), *some;
	const struct model_program a = program_of("region:a", 0);
	size_t reported = 0, i;

	handle_start(all, T0, OFFSET);
	cr_assert_not(watched());
	some = stream_make(stage, "a$", 500 * MS, 1);
	handle_start(some, T0, OFFSET);
	cr_assert(watched());
	region(&a, 0, T0 + 1, T0 + 5);
	stage_until(stage, T0 + 600 * MS);
	for (i = 0; i < stage->got_count; i++)
		reported += got(stage, i)->program_count;
	cr_assert_eq(reported, 1, "only one has asked for it");
	handle_free(all);
	handle_free(some);
}

Test(profile_regions, are_not_watched_for_other_programs)
{
	struct handle *counted = counted_make(stage, "net", 1), *stream = stream_make(stage, NULL, 500 * MS, 1);
	const struct xpt_program_choice net = { .name = "net" }, named = { .name = "region:a" };

	handle_start(counted, T0, OFFSET);
	handle_start(stream, T0, OFFSET);
	cr_assert_eq(handle_add(stream, &net), 0);
	stage_read(stage, T0 + 1);
	cr_assert_not(watched());
	cr_assert_eq(handle_add(stream, &named), 0);
	stage_read(stage, T0 + 2);
	cr_assert(watched());
	cr_assert_eq(handle_remove(stream, &named), 0);
	stage_read(stage, T0 + 3);
	cr_assert_not(watched());
	handle_free(counted);
	handle_free(stream);
}

/* Of whatever program it is. */
Test(profile_regions, traces_want_what_lies_inside)
{
	struct toy *toy = toy_make(stage, 0, 1, "net");
	const struct model_program decode = program_of("region:decode", 0);
	struct handle_options options = { .stream = true,
					  .type = XPT_PROFILE_TRACE,
					  .match = "^region:",
					  .report_every = 500 * MS,
					  .sample_every = 1,
					  .name = "stream" };
	struct handle *handle;

	toy_load(stage, toy, T0);
	toy->calls = toy->reported_calls = 1;
	stage_event(stage, toy_call(toy, &stage->execute, T0, T0 + 1));
	cr_assert_eq(handle_create(stage->profiling, &options, &handle), 0);
	handle_start(handle, T0, OFFSET);
	stage_event(stage, toy_call(toy, &stage->execute, T0 + 1, T0 + 2));
	cr_assert_eq(toy->sample_every, XPT_SAMPLE_NONE, "no region is known that matches");
	region(&decode, 0, T0 + 3, T0 + 5);
	cr_assert_eq(toy->sample_every ?: stage->sample_every, 1);
	cr_assert_eq(stage->sample_every, 1);
	handle_free(handle);
	cr_assert_eq(toy->sample_every ?: stage->sample_every, XPT_SAMPLE_NONE);
}

Test(profile_regions, exec_releases_them)
{
	struct handle *handle = counted_make(stage, "region:a", 10);
	const struct model_program a = program_of("region:a", 0), later = program_of("region:a", 0);

	handle_start(handle, T0, OFFSET);
	region(&a, 0, T0 + 1, T0 + 2);
	stage_event(stage, (struct event){ .kind = EVENT_TASK,
					   .task = { .tgid = 100, .time = T0 + 3, .what = XPT_TASK_EXEC } });
	region(&later, 1, T0 + 4, T0 + 5);
	stage_until(stage, T0 + SECOND);
	cr_assert_eq(stage->got_count, 1);
	cr_assert_eq(got(stage, 0)->end_reason, XPT_PROFILE_RELEASED);
	cr_assert_eq(program_in(got(stage, 0), a.id)->sample_count, 1);
	handle_free(handle);
}
