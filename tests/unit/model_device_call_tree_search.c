/* SPDX-License-Identifier: BSD-2-Clause */
#include "model_call_tree.h"

/* Calls in calls on some threads, with jobs anywhere, compared with a search through all of both. */
#define THREADS 3
#define CALLS_MAX 4000
#define RANDOM_JOBS 3000
#define PROGRAMS 5

struct made_call {
	__u64 start, end;
	__u32 tid;
	unsigned int spec, program;
	bool layer;
};

struct made_job {
	__u64 queued, runs, done; /* beyond the end: not seen */
	__u32 tid;
	bool failed;
};

struct world {
	struct made_call calls[CALLS_MAX]; /* the recorded ones */
	size_t call_count;
	struct made_job jobs[RANDOM_JOBS];
	__u64 state, end;
};

static __u64 random_next(__u64 *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

/* Times of calls are odd, those of jobs are even: none are equal. */
static __u64 calls_make(struct world *world, struct fixture *f, __u32 tid, unsigned int depth, unsigned int parent,
			__u64 time)
{
	static const unsigned int specs[] = { TOY_EXECUTE, TOY_LAUNCH, TOY_COPY, TOY_FINISH };
	const bool layer = (parent == TOY_EXECUTE || parent == TOY_LAUNCH) && random_next(&world->state) % 3 == 0;
	struct made_call call = { .start = time | 1, .tid = tid, .layer = layer };
	unsigned int inner = depth < 5 ? (unsigned int)(random_next(&world->state) % 4) : 0;

	call.spec = specs[random_next(&world->state) % 4];
	if (layer)
		call.spec = parent == TOY_EXECUTE ? LOW_EXECUTE : LOW_LAUNCH;
	call.program = (unsigned int)(random_next(&world->state) % PROGRAMS);
	time = call.start + 2 * (random_next(&world->state) % 20);
	while (inner--)
		time = calls_make(world, f, tid, depth + 1, call.spec, time + 2 * (random_next(&world->state) % 20));
	call.end = (time + 2 + 2 * (random_next(&world->state) % 20)) | 1;
	if (random_next(&world->state) % 5 == 0 || world->call_count == CALLS_MAX)
		return call.end + 2; /* not recorded */
	world->calls[world->call_count++] = call;
	call_at(f, call.spec, tid, depth, layer, 1000 + call.program, call.start, call.end);
	return call.end + 2;
}

static void world_make(struct world *world, struct fixture *f)
{
	__u64 time, last = 0;
	struct made_job *made;
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		for (time = 3; time < 20000;)
			time = calls_make(world, f, 7 + i, 0, 0, time + 2 * (random_next(&world->state) % 50));
		last = time > last ? time : last;
	}
	world->end = (last | 1) + 2000;
	for (i = 0; i < RANDOM_JOBS; i++) {
		made = &world->jobs[i];
		made->queued = 2 + 2 * (random_next(&world->state) % (last / 2));
		made->runs = made->queued + 2 * (random_next(&world->state) % 20);
		made->done = made->runs + 2 * (random_next(&world->state) % 200);
		made->tid = 7 + (__u32)(random_next(&world->state) % THREADS);
		made->failed = random_next(&world->state) % 10 == 0;
		if (random_next(&world->state) % 20 == 0)
			made->done = ~U(1);
		queue(f, 1, made->tid, i, made->queued);
		run(f, i, made->runs);
		if (made->done > world->end)
			continue;
		if (made->failed)
			OTHER(f, ERROR, made->done, U(i), U(1));
		done(f, i, made->done);
	}
}

static bool holds(const struct made_call *call, const struct made_job *made)
{
	return call->tid == made->tid && call->start <= made->queued && made->queued <= call->end;
}

static void call_check(const struct world *world, const struct event_call *call)
{
	const struct made_call shape = { .start = call->start, .end = call->end, .tid = call->tid };
	struct model_device_times expected = {};
	const struct made_job *made;
	unsigned int i;

	for (i = 0; i < RANDOM_JOBS; i++) {
		made = &world->jobs[i];
		if (!holds(&shape, made))
			continue;
		expected.jobs++;
		if (made->runs < call->end && (!expected.runs || made->runs < expected.runs))
			expected.runs = made->runs;
		if (made->runs < call->end)
			expected.queue_time += made->runs - made->queued;
		if (made->done > call->end) {
			expected.unfinished++;
			continue;
		}
		expected.failed += made->failed;
		expected.device_time += made->done - made->runs;
		expected.done = made->done > expected.done ? made->done : expected.done;
	}
	cr_assert_eq(call->device.jobs, expected.jobs);
	cr_assert_eq(call->device.unfinished, expected.unfinished);
	cr_assert_eq(call->device.failed, expected.failed);
	cr_assert_eq(call->device.runs, expected.runs);
	cr_assert_eq(call->device.done, expected.unfinished ? 0 : expected.done);
	cr_assert_eq(call->device.device_time, expected.device_time);
	cr_assert_eq(call->device.queue_time, expected.queue_time);
}

static bool runs_program(const struct made_call *call)
{
	return !call->layer && (call->spec == TOY_EXECUTE || call->spec == TOY_LAUNCH);
}

static void program_check(const struct world *world, const struct model_program *program)
{
	__u64 jobs = 0, failed = 0, device = 0, queued = 0;
	const struct made_job *made;
	unsigned int i;
	size_t c;

	for (i = 0; i < RANDOM_JOBS; i++) {
		made = &world->jobs[i];
		for (c = 0; c < world->call_count && made->done < world->end; c++) {
			if (!runs_program(&world->calls[c]) || 1000 + world->calls[c].program != program->handle ||
			    !holds(&world->calls[c], made))
				continue;
			jobs++;
			failed += made->failed;
			device += made->done - made->runs;
			queued += made->runs - made->queued;
			break;
		}
	}
	cr_assert_eq(program->jobs, jobs, "%llu, not %llu", program->jobs, jobs);
	cr_assert_eq(program->failed_jobs, failed);
	cr_assert_eq(program->device_time, device);
	cr_assert_eq(program->queue_time, queued);
}

static void job_check(const struct world *world, const struct event_job *reported)
{
	const struct made_job shape = { .queued = reported->queued, .tid = reported->tid };
	const struct made_call *inner = NULL, *with_program = NULL, *call;
	size_t c;

	for (c = 0; c < world->call_count; c++) {
		call = &world->calls[c];
		if (!holds(call, &shape))
			continue;
		if (!inner || call->start > inner->start)
			inner = call;
		if (runs_program(call) && (!with_program || call->start > with_program->start))
			with_program = call;
	}
	cr_assert_eq(reported->call_start, inner ? inner->start : 0);
	cr_assert_eq(!reported->program, !with_program);
	if (with_program)
		cr_assert_eq(reported->program->handle, 1000 + with_program->program);
}

static void world_check(const struct world *world, const struct fixture *f)
{
	size_t i, calls = 0, jobs = 0;

	for (i = 0; i < f->count; i++) {
		if (f->seen[i].event.kind == EVENT_CALL) {
			call_check(world, &f->seen[i].event.call);
			calls++;
		} else if (f->seen[i].event.kind == EVENT_JOB) {
			job_check(world, &f->seen[i].event.job);
			jobs++;
		}
	}
	cr_assert_eq(calls, world->call_count);
	cr_assert_eq(jobs, RANDOM_JOBS);
	for (i = 0; i < model_program_count(f->model); i++)
		if (model_program(f->model, i)->runtime_index == 0)
			program_check(world, model_program(f->model, i));
}

Test(model_device_call_tree_search, compared_with_a_search_through_everything)
{
	struct world *world = malloc(sizeof(*world));
	struct fixture *f;
	__u64 seed;

	for (seed = 1; seed <= 5; seed++) {
		memset(world, 0, sizeof(*world));
		world->state = seed;
		f = fixture_driver();
		world_make(world, f);
		cr_assert_eq(feed_end(f, world->end), 0);
		cr_assert_gt(world->call_count, 500);
		world_check(world, f);
		fixture_free(f);
	}
	free(world);
}
