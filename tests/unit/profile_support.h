/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For the tests of profiling handles: programs that are run by hand, a stand-in for the kernel that numbers, counts and
 * leaves out calls as it was asked to, and a receiver that keeps the reports.
 */
#ifndef XPT_TEST_PROFILE_SUPPORT_H
#define XPT_TEST_PROFILE_SUPPORT_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/handle/state.h"

#define MS 1000000ull
#define SECOND 1000000000ull
#define T0 (1000 * SECOND)		  /* CLOCK_MONOTONIC when tests begin ... */
#define OFFSET ((__s64)(699000 * SECOND)) /* ... and 700000 s after 1970 */

#define TOYS_MAX 64
#define REPORTS_MAX 8192

/* A program and what the kernel has counted of it. */
struct toy {
	struct model_program program;
	char name[64];
	__u32 sample_every; /* own; 0: none */
	__u64 calls, left_out, lost;
	__u64 reported_calls, reported_left_out, reported_lost;
	unsigned int rates_said;
};

struct stage {
	struct profiling *profiling;
	struct event_sink sink;
	struct model_process processes[4];
	struct model_function execute, enqueue, wait, launch, load, unload;
	struct recording_info info;
	struct log log;
	char messages[4096];
	struct toy toys[TOYS_MAX];
	size_t toy_count;
	__u32 sample_every, roles; /* what the kernel was given last */
	unsigned int defaults_said, rates_said;
	__s64 offset;
	struct {
		struct handle *handle;
		struct report *report;
	} got[REPORTS_MAX];
	size_t got_count;
};

static inline void stage_log(void *context, enum xpt_log_level level, const char *text)
{
	struct stage *stage = context;
	size_t length = strlen(stage->messages);

	(void)level;
	snprintf(stage->messages + length, sizeof(stage->messages) - length, "%s\n", text);
}

static inline void stage_deliver(void *context, struct handle *handle, struct report *report)
{
	struct stage *stage = context;

	cr_assert_lt(stage->got_count, REPORTS_MAX);
	stage->got[stage->got_count].handle = handle;
	stage->got[stage->got_count++].report = report;
}

/* The kernel has no entry for a program that has not run. */
static inline int stage_set_sampling(void *context, const struct model_program *program, __u32 sample_every)
{
	struct stage *stage = context;
	size_t i;

	stage->rates_said++;
	for (i = 0; i < stage->toy_count; i++) {
		if (stage->toys[i].program.id != program->id)
			continue;
		cr_assert_eq(program->handle, stage->toys[i].program.handle);
		cr_assert_eq(program->process->tgid, stage->toys[i].program.process->tgid);
		cr_assert_eq(program->runtime_index, stage->toys[i].program.runtime_index);
		if (!stage->toys[i].calls)
			return 1;
		stage->toys[i].sample_every = sample_every;
		stage->toys[i].rates_said++;
	}
	return 0;
}

static inline void stage_set_defaults(void *context, __u32 sample_every, __u32 roles)
{
	struct stage *stage = context;

	stage->defaults_said++;
	stage->sample_every = sample_every;
	stage->roles = roles;
}

static inline struct stage *stage_make(size_t report_bytes)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	struct profiling_options options = { .log = &stage->log,
					     .report_bytes = report_bytes ?: 256 << 20,
					     .info = &stage->info,
					     .deliver = stage_deliver,
					     .set_sampling = stage_set_sampling,
					     .set_defaults = stage_set_defaults,
					     .context = stage };
	size_t i;

	stage->log = (struct log){ .write = stage_log, .context = stage };
	stage->info = (struct recording_info){
		.host = "", .kernel = "", .machine = "", .version = "", .command = "", .boot_id = ""
	};
	for (i = 0; i < 4; i++)
		stage->processes[i] = (struct model_process){ .tgid = 100 + i, .name = "toy", .command = "toy" };
	stage->execute = (struct model_function){ .name = "toy_execute", .runtime = "toy", .role = XPT_ROLE_EXECUTE };
	stage->enqueue = (struct model_function){ .name = "toy_enqueue", .runtime = "toy", .role = XPT_ROLE_ENQUEUE };
	stage->wait = (struct model_function){ .name = "toy_wait", .runtime = "toy", .role = XPT_ROLE_WAIT };
	stage->launch = (struct model_function){ .name = "toy_launch", .runtime = "toy", .role = XPT_ROLE_LAUNCH };
	stage->load = (struct model_function){ .name = "toy_load", .runtime = "toy", .role = XPT_ROLE_PROGRAM_LOAD };
	stage->unload = (struct model_function){ .name = "toy_unload",
						 .runtime = "toy",
						 .role = XPT_ROLE_PROGRAM_UNLOAD };
	stage->offset = OFFSET;
	cr_assert_eq(profiling_create(&options, &stage->profiling), 0);
	stage->sink = profiling_sink(stage->profiling);
	return stage;
}

static inline void stage_forget_reports(struct stage *stage)
{
	while (stage->got_count)
		report_free(stage->got[--stage->got_count].report);
}

/* Handles must have been freed. Everything must have been given back. */
static inline void stage_end(struct stage *stage)
{
	stage_forget_reports(stage);
	cr_assert_eq(stage->profiling->budget.used, 0);
	while (!link_alone(&stage->profiling->programs.alive)) {
		struct entry *entry = container_of(stage->profiling->programs.alive.next, struct entry, link);

		cr_assert(link_alone(&entry->members));
		program_index_remove(&stage->profiling->programs, entry);
	}
	profiling_free(stage->profiling);
	free(stage);
}

static inline void stage_event(struct stage *stage, struct event event)
{
	cr_assert_eq(stage->sink.write(stage->sink.context, &event), 0);
}

/* ---- programs ---- */

static inline struct toy *toy_make(struct stage *stage, unsigned int process, __u64 handle, const char *name)
{
	static unsigned int next_id = 1;
	struct toy *toy = &stage->toys[stage->toy_count++], *other;

	cr_assert_leq(stage->toy_count, TOYS_MAX);
	snprintf(toy->name, sizeof(toy->name), "%s", name);
	toy->program = (struct model_program){ .id = next_id++,
					       .process = &stage->processes[process],
					       .runtime = "toy",
					       .runtime_index = 3,
					       .handle = handle,
					       .name = toy->name,
					       .named = true };
	for (other = stage->toys; other < toy; other++)
		toy->program.generation += other->program.process == toy->program.process &&
					   other->program.handle == handle;
	return toy;
}

static inline struct event toy_call(const struct toy *toy, const struct model_function *function, __u64 start,
				    __u64 end)
{
	return (struct event){ .kind = EVENT_CALL,
			       .call = { .function = function,
					 .program = &toy->program,
					 .start = start,
					 .end = end,
					 .tgid = toy->program.process->tgid,
					 .tid = toy->program.process->tgid } };
}

static inline void toy_load(struct stage *stage, struct toy *toy, __u64 time)
{
	toy->program.loaded = time;
	stage_event(stage, toy_call(toy, &stage->load, time - 1, time));
	stage_event(stage,
		    (struct event){ .kind = EVENT_PROGRAM, .program = { .program = &toy->program, .time = time } });
}

static inline bool toy_is_recorded(const struct stage *stage, const struct toy *toy, __u64 number)
{
	__u32 every = toy->sample_every ?: stage->sample_every;

	return every == 1 || (every != XPT_SAMPLE_NONE && number % every == 0);
}

static inline bool toy_is_watched(const struct stage *stage)
{
	return stage->roles >> XPT_ROLE_EXECUTE & 1;
}

/* One synchronous inference. */
static inline void toy_run(struct stage *stage, struct toy *toy, __u64 start, __u64 end)
{
	struct event event = toy_call(toy, &stage->execute, start, end);

	if (!toy_is_watched(stage))
		return;
	event.call.numbered = true;
	event.call.number = toy->calls++;
	if (!toy_is_recorded(stage, toy, event.call.number)) {
		toy->left_out++;
		return;
	}
	stage_event(stage, event);
}

static inline void toy_count(struct stage *stage, struct toy *toy, __u64 time, bool reading)
{
	struct event event = { .kind = EVENT_COUNT,
			       .count = { .program = &toy->program,
					  .time = time,
					  .reading = reading,
					  .delta = { .calls = toy->calls - toy->reported_calls,
						     .left_out = toy->left_out - toy->reported_left_out,
						     .lost = toy->lost - toy->reported_lost } } };

	toy->reported_calls = toy->calls;
	toy->reported_left_out = toy->left_out;
	toy->reported_lost = toy->lost;
	if (event.count.delta.calls || event.count.delta.left_out || event.count.delta.lost)
		stage_event(stage, event);
}

static inline void toy_unload(struct stage *stage, struct toy *toy, __u64 time)
{
	toy_count(stage, toy, time - 1, false);
	stage_event(stage, toy_call(toy, &stage->unload, time, time + 1));
	toy->program.released = time;
	stage_event(stage, (struct event){ .kind = EVENT_PROGRAM,
					   .program = { .program = &toy->program, .time = time, .released = true } });
}

/* ---- readings ---- */

static inline void stage_counts(struct stage *stage, __u64 time)
{
	size_t i;

	for (i = 0; i < stage->toy_count; i++)
		if (!stage->toys[i].program.released)
			toy_count(stage, &stage->toys[i], time, true);
}

static inline void stage_read(struct stage *stage, __u64 time)
{
	profiling_read(stage->profiling, time, stage->offset);
	stage_counts(stage, time);
	profiling_delivered(stage->profiling, time);
}

/* Reads whenever it is due, until time. */
static inline void stage_until(struct stage *stage, __u64 time)
{
	__u64 due, last = 0;

	while ((due = profiling_due(stage->profiling)) <= time) {
		last = due > last ? due : last;
		stage_read(stage, last);
	}
}

/* ---- reports ---- */

static inline const struct xpt_profile_report *got(const struct stage *stage, size_t index)
{
	cr_assert_lt(index, stage->got_count, "only %zu reports have come", stage->got_count);
	return report_view(stage->got[index].report);
}

static inline const struct xpt_program_report *program_in(const struct xpt_profile_report *report, unsigned int id)
{
	size_t i;

	for (i = 0; i < report->program_count; i++)
		if (report->programs[i].id == id)
			return &report->programs[i];
	return NULL;
}

/* ---- handles ---- */

static inline struct handle *stream_make(struct stage *stage, const char *match, __u64 every, __u32 sample_every)
{
	struct handle_options options = {
		.stream = true, .match = match, .report_every = every, .sample_every = sample_every, .name = "stream"
	};
	struct handle *handle = NULL;

	cr_assert_eq(handle_create(stage->profiling, &options, &handle), 0);
	return handle;
}

static inline struct handle *counted_make(struct stage *stage, const char *name, __u64 samples)
{
	struct handle_options options = { .program = { .name = name }, .samples = samples, .name = "counted" };
	struct handle *handle = NULL;

	cr_assert_eq(handle_create(stage->profiling, &options, &handle), 0);
	return handle;
}

#endif
