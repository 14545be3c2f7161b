/* SPDX-License-Identifier: BSD-2-Clause */
#include <malloc.h>
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

TestSuite(profile_handle_profiling, .init = setup, .fini = teardown);

struct visited {
	size_t count, stop_after;
	struct xpt_program_info info[8];
};

static int visit(void *context, const struct xpt_program_info *program)
{
	struct visited *visited = context;

	visited->info[visited->count++] = *program;
	return visited->count == visited->stop_after ? 7 : 0;
}

Test(profile_handle_profiling, programs_that_are_there)
{
	struct handle *stream = stream_make(stage, "net", 500 * MS, 1);
	struct toy *one = toy_make(stage, 0, 1, "net"), *two = toy_make(stage, 1, 2, "bert"),
		   *gone = toy_make(stage, 1, 3, "gone"), *others = toy_make(stage, 0, 0, "(others)");
	struct visited visited = {};
	struct event failed;

	handle_start(stream, T0, OFFSET);
	toy_load(stage, one, T0 + 1);
	toy_load(stage, two, T0 + 1);
	toy_load(stage, gone, T0 + 1);
	toy_run(stage, others, T0 + 1, T0 + 2);
	toy_unload(stage, gone, T0 + 2);
	toy_run(stage, one, T0 + 100, T0 + 300);
	failed = toy_call(one, &stage->execute, T0 + 300, T0 + 700);
	failed.call.outcome = OUTCOME_FAILED;
	stage_event(stage, failed);
	cr_assert_eq(profiling_program_count(stage->profiling), 2);
	cr_assert_eq(profiling_programs(stage->profiling, visit, &visited), 0);
	cr_assert_eq(visited.count, 2);
	cr_assert_eq(visited.info[0].pid, 100);
	cr_assert_str_eq(visited.info[0].runtime, "toy");
	cr_assert_str_eq(visited.info[0].name, "net");
	cr_assert_eq(visited.info[0].handle, 1);
	cr_assert_eq(visited.info[0].calls, 2);
	cr_assert_eq(visited.info[0].errors, 1);
	cr_assert_float_eq(visited.info[0].mean, 300, 1e-9);
	cr_assert_eq(visited.info[1].pid, 101);
	cr_assert_eq(visited.info[1].calls, 0);
	visited = (struct visited){ .stop_after = 1 };
	cr_assert_eq(profiling_programs(stage->profiling, visit, &visited), 7);
	cr_assert_eq(visited.count, 1);
	handle_free(stream);
}

static void exit_process(unsigned int process, __u64 time)
{
	stage_event(stage, (struct event){ .kind = EVENT_TASK,
					   .task = { .tgid = 100 + process, .time = time, .what = XPT_TASK_EXEC } });
}

Test(profile_handle_profiling, exec_releases_what_the_process_had)
{
	struct toy *one = toy_make(stage, 0, 1, "net"), *two = toy_make(stage, 0, 2, "net"),
		   *other = toy_make(stage, 1, 1, "net");

	toy_load(stage, one, T0 + 1);
	toy_load(stage, two, T0 + 1);
	toy_load(stage, other, T0 + 1);
	exit_process(2, T0 + 2);
	cr_assert_eq(profiling_program_count(stage->profiling), 3);
	stage_event(stage, (struct event){ .kind = EVENT_TASK,
					   .task = { .tgid = 100, .time = T0 + 3, .what = XPT_TASK_FORK } });
	cr_assert_eq(profiling_program_count(stage->profiling), 3);
	exit_process(0, T0 + 4);
	cr_assert_eq(profiling_program_count(stage->profiling), 1);
}

Test(profile_handle_profiling, asynchronous_ones)
{
	struct handle *stream = stream_make(stage, "net", 500 * MS, 2);
	struct toy *toy = toy_make(stage, 0, 1, "net");
	struct event event = { .kind = EVENT_INFERENCE,
			       .inference = {
				       .program = &toy->program, .function = &stage->enqueue, .numbered = true } };
	struct event failed = toy_call(toy, &stage->enqueue, T0 + 10, T0 + 20), begun = failed;
	const struct xpt_program_report *program;
	__u64 i;

	handle_start(stream, T0, OFFSET);
	toy_load(stage, toy, T0 + 1);
	for (i = 0; i < 10; i++) {
		begun.call.flow_out = i + 1;
		begun.call.numbered = true;
		begun.call.number = i;
		stage_event(stage, begun);
	}
	for (i = 0; i < 6; i++) {
		event.inference.number = i;
		event.inference.start = T0 + 10;
		event.inference.enqueued = T0 + 20;
		event.inference.end = T0 + 100 + i;
		stage_event(stage, event);
	}
	event.kind = EVENT_UNPAIRED;
	event.inference.end = 0;
	for (; i < 10; i++) {
		event.inference.number = i;
		stage_event(stage, event);
	}
	failed.call.outcome = OUTCOME_FAILED;
	failed.call.numbered = true;
	failed.call.number = 10;
	stage_event(stage, failed);
	stage_read(stage, T0 + 500 * MS);
	program = program_in(got(stage, 0), toy->program.id);
	cr_assert_eq(program->inferences, 11);
	cr_assert_eq(program->taken, 4);
	cr_assert_eq(program->failed, 1);
	cr_assert_eq(program->lost, 2, "the others of those not waited for were not to be sampled");
	cr_assert_eq(program->samples[0].enqueued, T0 + 20);
	handle_free(stream);
}

/* Without numbers every one that comes is taken. */
Test(profile_handle_profiling, unnumbered_ones)
{
	struct handle *stream = stream_make(stage, "net", 500 * MS, 4);
	struct toy *toy = toy_make(stage, 0, 1, "net");
	__u64 i;

	handle_start(stream, T0, OFFSET);
	toy_load(stage, toy, T0 + 1);
	for (i = 0; i < 5; i++)
		stage_event(stage, toy_call(toy, &stage->launch, T0 + i, T0 + 10 + i));
	stage_read(stage, T0 + 500 * MS);
	cr_assert_eq(got(stage, 0)->programs->taken, 5);
	cr_assert_eq(got(stage, 0)->programs->samples[4].number, 4);
	handle_free(stream);
}

/* One program of a hundred thousand. */
static void live_and_die(struct toy *toy, unsigned int id, __u64 time)
{
	*toy = (struct toy){ .program = toy->program };
	toy->program.id = id;
	toy->program.generation++;
	toy->program.released = 0;
	toy->program.handle = 1 + id % 7;
	snprintf(toy->name, sizeof(toy->name), "net %u", id);
	toy_load(stage, toy, time);
	toy_run(stage, toy, time, time + MS / 2);
	toy_run(stage, toy, time, time + MS);
	toy_unload(stage, toy, time + MS + 1);
}

static size_t memory_after(struct toy *toy, unsigned int first, unsigned int last, __u64 *inferences)
{
	unsigned int id;
	size_t i;

	for (id = first; id < last; id++) {
		live_and_die(toy, id, T0 + id * 2 * MS);
		stage_until(stage, T0 + id * 2 * MS + 2 * MS);
		for (i = 0; i < stage->got_count; i++)
			for (size_t p = 0; p < got(stage, i)->program_count; p++)
				*inferences += got(stage, i)->programs[p].inferences;
		stage_forget_reports(stage);
	}
	return mallinfo2().uordblks;
}

Test(profile_handle_profiling, memory_is_flat, .timeout = 120)
{
	struct handle *streams[3] = { stream_make(stage, "[02468]$", 500 * MS, 1), stream_make(stage, "7", 100 * MS, 4),
				      stream_make(stage, NULL, 1000 * MS, 1) };
	struct toy *toy = toy_make(stage, 0, 1, "net");
	__u64 before = 0, inferences = 0, said;
	size_t early, late, i;

	for (i = 0; i < 3; i++)
		handle_start(streams[i], T0, OFFSET);
	early = memory_after(toy, 1, 10000, &before);
	said = stage->rates_said;
	late = memory_after(toy, 10000, 100000, &inferences);
	cr_assert_lt(late, early + early / 10 + (64 << 10), "%zu bytes became %zu", early, late);
	cr_assert_geq(inferences, 90000);
	cr_assert_leq(stage->profiling->programs.released_count, 600);
	cr_assert_leq(stage->profiling->programs.alive_count, 0);
	cr_assert_gt(stage->rates_said, said);
	for (i = 0; i < 3; i++)
		handle_free(streams[i]);
}

static struct stage *stage;

static void setup_handle(void)
{
	stage = stage_make(0);
}

static void teardown_handle(void)
{
	stage_end(stage);
}

TestSuite(profile_handle_profiling_handles, .init = setup_handle, .fini = teardown_handle);

#define STREAM(...)                         \
	{                                   \
		.stream = true, __VA_ARGS__ \
	}
#define COUNTED(...)                                                    \
	{                                                               \
		.program = { .name = "net" }, .samples = 1, __VA_ARGS__ \
	}

Test(profile_handle_profiling_handles, refused_with_a_reason)
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
		STREAM(.type = (enum xpt_profile_type)3),
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

Test(profile_handle_profiling_handles, position_of_what_is_wrong)
{
	const struct handle_options options = STREAM(.match = "net)");
	struct handle *handle;

	cr_assert_eq(handle_create(stage->profiling, &options, &handle), -EINVAL);
	cr_assert_not_null(strstr(stage->messages, "position 3"), "%s", stage->messages);
}

Test(profile_handle_profiling_handles, defaults)
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

Test(profile_handle_profiling_handles, everything_is_copied)
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
Test(profile_handle_profiling_handles, ten_at_once)
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
