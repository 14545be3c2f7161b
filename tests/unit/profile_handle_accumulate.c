/* SPDX-License-Identifier: BSD-2-Clause */

#include "profile_support.h"

/*
 * Everything together, in random order: programs come and go, calls overlap, the kernel leaves out and loses some, what it
 * tells comes with a delay, handles start and stop. What the reports say is compared with a ledger of what was done.
 */

#define INFERENCES_MAX 200000
#define PENDING_MAX 20000
#define RUNS_MAX 64
#define STEPS 20000

enum fate {
	FATE_OPEN,
	FATE_LEFT_OUT,
	FATE_RECORDED,
	FATE_LOST,
	FATE_UNPAIRED,
};

struct done {
	unsigned int toy;
	__u64 number, start, end;
	enum fate fate;
};

struct pending {
	__u64 time;
	size_t order;
	struct event event;
};

struct started {
	struct handle *handle;
	const char *match;
	__u32 sample_every;
	__u64 every, start, stop;
	size_t first_report, reports;
};

struct play {
	struct stage *stage;
	__u64 seed, now, passed, reading;
	struct done *all;
	size_t count;
	size_t open[32], open_count;
	struct pending *pending;
	size_t pending_count, order;
	bool asynchronous[TOYS_MAX], gone[TOYS_MAX];
	__u64 loaded[TOYS_MAX], released[TOYS_MAX];
	struct started runs[RUNS_MAX];
	size_t run_count;
};

static __u64 any(struct play *play, __u64 limit)
{
	play->seed = play->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (play->seed >> 33) % limit;
}

static void later(struct play *play, __u64 time, struct event event)
{
	cr_assert_lt(play->pending_count, PENDING_MAX);
	play->pending[play->pending_count++] = (struct pending){ time, play->order++, event };
}

static int by_time(const void *a, const void *b)
{
	const struct pending *one = a, *other = b;

	if (one->time != other->time)
		return one->time < other->time ? -1 : 1;
	return one->order < other->order ? -1 : 1;
}

/* The model's view of a program changes when its events are delivered. */
static void deliver(struct play *play, const struct event *event)
{
	struct model_program *program;

	if (event->kind == EVENT_PROGRAM) {
		program = (struct model_program *)event->program.program;
		*(event->program.released ? &program->released : &program->loaded) = event->program.time;
	}
	stage_event(play->stage, *event);
}

static void pass(struct play *play)
{
	size_t i, given;

	qsort(play->pending, play->pending_count, sizeof(*play->pending), by_time);
	for (given = 0; given < play->pending_count && play->pending[given].time <= play->passed; given++)
		deliver(play, &play->pending[given].event);
	for (i = given; i < play->pending_count; i++)
		play->pending[i - given] = play->pending[i];
	play->pending_count -= given;
	profiling_delivered(play->stage->profiling, play->passed);
	play->passed = play->now;
}

static void emit_counts(struct play *play, struct toy *toy, __u64 time, bool reading)
{
	struct xpt_program_count delta = { .calls = toy->calls - toy->reported_calls,
					   .left_out = toy->left_out - toy->reported_left_out,
					   .lost = toy->lost - toy->reported_lost };

	toy->reported_calls = toy->calls;
	toy->reported_left_out = toy->left_out;
	toy->reported_lost = toy->lost;
	if (delta.calls || delta.lost)
		later(play, time,
		      (struct event){ .kind = EVENT_COUNT, .count = { &toy->program, time, reading, delta } });
}

static void read_counts(struct play *play)
{
	size_t i;

	for (i = 0; i < play->stage->toy_count; i++)
		if (!play->gone[i])
			emit_counts(play, &play->stage->toys[i], play->now, true);
	profiling_read(play->stage->profiling, play->now, OFFSET);
	play->reading = play->now;
}

static bool is_taken(const struct play *play, unsigned int process, __u64 handle)
{
	const struct model_program *program;
	size_t i;

	for (i = 0; i < play->stage->toy_count; i++) {
		program = &play->stage->toys[i].program;
		if (!play->gone[i] && program->handle == handle && program->process == &play->stage->processes[process])
			return true;
	}
	return false;
}

static void load(struct play *play)
{
	char name[8] = { "abc"[any(play, 3)], '\0' };
	size_t index = play->stage->toy_count;
	unsigned int process = any(play, 4);
	__u64 handle = 1 + any(play, 5);
	struct toy *toy;

	if (index == TOYS_MAX || is_taken(play, process, handle))
		return;
	toy = toy_make(play->stage, process, handle, name);
	play->asynchronous[index] = any(play, 3) == 0;
	play->loaded[index] = play->now;
	later(play, play->now, (struct event){ .kind = EVENT_PROGRAM, .program = { &toy->program, play->now, false } });
}

static bool is_busy(const struct play *play, size_t toy)
{
	size_t i;

	for (i = 0; i < play->open_count; i++)
		if (play->all[play->open[i]].toy == toy)
			return true;
	return false;
}

static void unload(struct play *play, size_t index)
{
	struct toy *toy = &play->stage->toys[index];

	if (play->gone[index] || is_busy(play, index))
		return;
	play->gone[index] = true;
	play->released[index] = play->now;
	emit_counts(play, toy, play->now, false);
	later(play, play->now, (struct event){ .kind = EVENT_PROGRAM, .program = { &toy->program, play->now, true } });
}

static void begin(struct play *play, size_t index)
{
	struct toy *toy = &play->stage->toys[index];
	struct done *done = &play->all[play->count];

	if (play->gone[index] || !toy_is_watched(play->stage) || play->open_count == 32 ||
	    play->count == INFERENCES_MAX)
		return;
	*done = (struct done){ .toy = index, .number = toy->calls++, .start = play->now };
	if (!toy_is_recorded(play->stage, toy, done->number)) {
		toy->left_out++;
		done->fate = FATE_LEFT_OUT;
		play->count++;
		return;
	}
	play->open[play->open_count++] = play->count++;
}

static struct event event_of(struct play *play, const struct done *done, bool unpaired)
{
	struct stage *stage = play->stage;
	struct toy *toy = &stage->toys[done->toy];
	struct event event = { .kind = unpaired ? EVENT_UNPAIRED : EVENT_INFERENCE };

	if (!play->asynchronous[done->toy]) {
		event = toy_call(toy, &stage->execute, done->start, done->end);
		event.call.numbered = true;
		event.call.number = done->number;
		return event;
	}
	event.inference = (struct event_inference){ .program = &toy->program,
						    .function = &stage->enqueue,
						    .start = done->start,
						    .end = unpaired ? 0 : done->end,
						    .numbered = true,
						    .number = done->number };
	return event;
}

static void end(struct play *play, size_t slot)
{
	struct done *done = &play->all[play->open[slot]];
	struct toy *toy = &play->stage->toys[done->toy];
	unsigned int chance = any(play, 40);

	play->open[slot] = play->open[--play->open_count];
	done->end = play->now;
	done->fate = FATE_RECORDED;
	if (chance == 0) {
		done->fate = FATE_LOST;
		toy->lost++;
		return;
	}
	if (chance == 1 && play->asynchronous[done->toy])
		done->fate = FATE_UNPAIRED;
	later(play, play->now, event_of(play, done, done->fate == FATE_UNPAIRED));
}

static void start_or_stop(struct play *play)
{
	static const char *const matches[] = { "a", "b", "[ab]", "" };
	static const __u32 rates[] = { 1, 2, 4, 8, 16, 3 };
	struct started *run = &play->runs[any(play, play->run_count + 1)];

	if (!run->handle) {
		if (play->run_count == RUNS_MAX - 1)
			return;
		run->match = matches[any(play, 4)];
		run->sample_every = rates[any(play, 6)];
		run->every = (10 + any(play, 50)) * MS;
		run->handle = stream_make(play->stage, run->match, run->every, run->sample_every);
		run->start = play->now;
		cr_assert_eq(handle_start(run->handle, play->now, OFFSET), 0);
		play->run_count++;
	} else if (!run->stop && any(play, 4) == 0) {
		run->stop = play->now;
		cr_assert_eq(handle_stop(run->handle, play->now), 0);
	}
}

static void step(struct play *play)
{
	unsigned int what = any(play, 1000);

	play->now += 1 + any(play, 200000);
	if (what < 5)
		load(play);
	else if (what < 8 && play->stage->toy_count)
		unload(play, any(play, play->stage->toy_count));
	else if (what < 500 && play->stage->toy_count)
		begin(play, any(play, play->stage->toy_count));
	else if (what < 900 && play->open_count)
		end(play, any(play, play->open_count));
	else if (what >= 980)
		pass(play);
	else if (what >= 975)
		start_or_stop(play);
	if (play->passed > play->reading && profiling_due(play->stage->profiling) <= play->now)
		read_counts(play);
}

static void finish(struct play *play)
{
	size_t i;

	while (play->open_count)
		end(play, 0);
	play->now++;
	for (i = 0; i < play->stage->toy_count; i++)
		unload(play, i);
	play->now++;
	for (i = 0; i < play->run_count; i++) {
		if (play->runs[i].stop)
			continue;
		play->runs[i].stop = play->now;
		handle_stop(play->runs[i].handle, play->now);
	}
	play->now++;
	pass(play);
	pass(play);
	read_counts(play);
	pass(play);
	pass(play);
}

/* ---- what should have come ---- */

static bool is_for(const struct play *play, const struct started *run, size_t toy)
{
	return !*run->match || strchr(run->match, play->stage->toys[toy].name[0]);
}

/* Samples of a program in a report: what was recorded, of the wanted numbers, by time of its end. */
static void check_samples(const struct play *play, const struct started *run, const struct xpt_profile_report *report,
			  size_t toy)
{
	const struct xpt_program_report *program = program_in(report, play->stage->toys[toy].program.id);
	size_t i, expected = 0, found = 0, j;

	for (i = 0; i < play->count; i++) {
		const struct done *done = &play->all[i];

		if (done->toy != toy || done->fate != FATE_RECORDED || done->end <= report->start ||
		    done->end > report->end || done->number % run->sample_every)
			continue;
		expected++;
		for (j = 0; program && j < program->sample_count; j++)
			found += program->samples[j].number == done->number &&
				 program->samples[j].time[XPT_TIME_CALL_BEGINS] == done->start &&
				 program->samples[j].time[XPT_TIME_CALL_ENDS] == done->end;
	}
	cr_assert_eq(found, expected, "%zu of %zu in report %llu from %llu to %llu", found, expected,
		     (unsigned long long)report->sequence, (unsigned long long)(report->start - T0),
		     (unsigned long long)(report->end - T0));
	cr_assert_eq(program ? program->taken : 0, expected);
	cr_assert_eq(program ? program->sample_count : 0, expected);
	for (j = 1; j < expected; j++)
		cr_assert_leq(program->samples[j - 1].time[XPT_TIME_CALL_ENDS],
			      program->samples[j].time[XPT_TIME_CALL_ENDS]);
}

/* Over the whole life of a program that the run has seen from its load to its end. */
static void check_sums(const struct play *play, const struct started *run, size_t toy)
{
	__u64 inferences = 0, lost = 0, taken = 0, wanted = 0, lost_wanted = 0;
	const struct xpt_program_report *program;
	size_t i;

	for (i = 0; i < play->stage->got_count; i++) {
		if (play->stage->got[i].handle != run->handle)
			continue;
		program = program_in(got(play->stage, i), play->stage->toys[toy].program.id);
		inferences += program ? program->inferences : 0;
		lost += program ? program->lost : 0;
		taken += program ? program->taken : 0;
	}
	for (i = 0; i < play->count; i++) {
		if (play->all[i].toy != toy)
			continue;
		lost_wanted += play->all[i].fate == FATE_LOST;
		if (play->all[i].number % run->sample_every)
			continue;
		cr_assert_neq(play->all[i].fate, FATE_LEFT_OUT, "the kernel left out what was wanted");
		wanted += play->all[i].fate == FATE_RECORDED;
		lost_wanted += play->all[i].fate == FATE_UNPAIRED;
	}
	cr_assert_eq(inferences, play->stage->toys[toy].calls);
	cr_assert_eq(taken, wanted);
	cr_assert_eq(lost, lost_wanted);
}

static void check_run(const struct play *play, const struct started *run)
{
	__u64 edge = run->start, sequence = 0;
	const struct xpt_profile_report *report = NULL;
	size_t i, toy;

	for (i = 0; i < play->stage->got_count; i++) {
		if (play->stage->got[i].handle != run->handle)
			continue;
		report = got(play->stage, i);
		cr_assert_eq(report->start, edge);
		cr_assert_eq(report->sequence, sequence++);
		cr_assert_eq(report->late, 0);
		edge = report->end;
		if (report->end_reason == XPT_PROFILE_INTERVAL)
			cr_assert_eq(report->end_realtime % run->every, 0);
		for (toy = 0; toy < play->stage->toy_count; toy++) {
			if (is_for(play, run, toy))
				check_samples(play, run, report, toy);
			else
				cr_assert_null(program_in(report, play->stage->toys[toy].program.id));
		}
	}
	cr_assert_eq(edge, run->stop);
	cr_assert(report && report->end_reason == XPT_PROFILE_STOPPED);
}

static void play(__u64 seed)
{
	struct play play = { .stage = stage_make(0), .seed = seed, .now = T0, .passed = T0 };
	size_t i, toy, whole = 0;

	play.all = calloc(INFERENCES_MAX, sizeof(*play.all));
	play.pending = calloc(PENDING_MAX, sizeof(*play.pending));
	for (i = 0; i < STEPS; i++)
		step(&play);
	finish(&play);
	for (i = 0; i < play.run_count; i++) {
		cr_assert(handle_settled(play.runs[i].handle));
		check_run(&play, &play.runs[i]);
		for (toy = 0; toy < play.stage->toy_count; toy++) {
			if (play.loaded[toy] <= play.runs[i].start || play.released[toy] > play.runs[i].stop ||
			    !is_for(&play, &play.runs[i], toy))
				continue;
			check_sums(&play, &play.runs[i], toy);
			whole++;
		}
		handle_free(play.runs[i].handle);
	}
	cr_assert_gt(play.run_count, 3);
	cr_assert_gt(whole, 2);
	cr_assert_gt(play.count, 500);
	free(play.all);
	free(play.pending);
	stage_end(play.stage);
}

#if defined(__SANITIZE_ADDRESS__)
#define PLAYS 8
#else
#define PLAYS 40
#endif

/* Fixed seeds: what fails once fails always. */
Test(profile_handle_accumulate, sums_and_samples_are_exact)
{
	__u64 seed;

	for (seed = 1; seed <= PLAYS; seed++)
		play(seed * 0x9e3779b97f4a7c15ull);
}

static struct stage *stage;

static void setup(void)
{
	stage = stage_make(0);
}

static void teardown(void)
{
	stage_end(stage);
}

TestSuite(profile_handle_accumulate_traces, .init = setup, .fini = teardown);

static struct run *start(bool stream, __u32 sample_every, __u64 samples, __u64 skip)
{
	const struct handle_options options = { .stream = stream,
						.type = XPT_PROFILE_TRACE,
						.sample_every = sample_every,
						.match = "net",
						.program = { .name = "net" },
						.samples = samples,
						.skip = skip };
	struct handle *handle;

	cr_assert_eq(handle_create(stage->profiling, &options, &handle), 0);
	cr_assert_eq(handle_start(handle, T0, OFFSET), 0);
	return handle->current;
}

static struct event enqueue(struct toy *toy, __u64 number)
{
	struct event event = toy_call(toy, &stage->enqueue, T0 + 10 + number, T0 + 20 + number);

	event.call.numbered = true;
	event.call.number = number;
	event.call.flow_out = number + 1;
	return event;
}

Test(profile_handle_accumulate_traces, what_a_stream_wants)
{
	struct toy *toy = toy_make(stage, 0, 1, "net"), *other = toy_make(stage, 0, 2, "bert");
	struct run *run = start(true, 2, 0, 0);
	struct event event;

	toy_load(stage, toy, T0 + 1);
	toy_load(stage, other, T0 + 1);
	event = enqueue(toy, 4);
	cr_assert(trace_wants(run, &event));
	event = enqueue(toy, 5);
	cr_assert_not(trace_wants(run, &event));
	event = enqueue(other, 4);
	cr_assert_not(trace_wants(run, &event));
	event = enqueue(toy, 4);
	event.call.function = &stage->launch;
	cr_assert(trace_wants(run, &event), "as what is enqueued");
	event = toy_call(toy, &stage->unload, T0 + 1, T0 + 2);
	cr_assert(trace_wants(run, &event));
	event = toy_call(other, &stage->unload, T0 + 1, T0 + 2);
	cr_assert_not(trace_wants(run, &event));
	event = toy_call(toy, &stage->wait, T0 + 1, T0 + 2);
	cr_assert_not(trace_wants(run, &event));
	event = toy_call(toy, &stage->execute, T0 + 1, T0 + 2);
	event.call.layer = true;
	cr_assert_not(trace_wants(run, &event));
	event = (struct event){ .kind = EVENT_COUNTER };
	cr_assert_not(trace_wants(run, &event));
	handle_free(run->handle);
}

Test(profile_handle_accumulate_traces, what_a_counted_run_wants)
{
	struct toy *toy = toy_make(stage, 0, 1, "net"), *twin = toy_make(stage, 0, 2, "net");
	struct run *run = start(false, 0, 2, 1);
	struct event event;
	__u64 i;

	toy_load(stage, toy, T0 + 1);
	toy_load(stage, twin, T0 + 1);
	for (i = 0; i < 5; i++) {
		event = enqueue(toy, i);
		stage_event(stage, event);
		cr_assert_eq(trace_wants(run, &event), i == 1 || i == 2, "%llu", i);
	}
	toy_run(stage, toy, T0 + 10, T0 + 20);
	toy_run(stage, toy, T0 + 11, T0 + 30);
	cr_assert_eq(run->bound, toy->program.id);
	event = enqueue(twin, 1);
	cr_assert_not(trace_wants(run, &event));
	handle_free(run->handle);
}

static size_t spans(const struct xpt_profile_report *report, const char *name)
{
	const char *at = report->trace;
	size_t count = 0;

	while ((at = strstr(at, name))) {
		at++;
		count++;
	}
	return count;
}

/* Each report has the samples of its interval in its document, and no rows. */
Test(profile_handle_accumulate_traces, documents)
{
	struct toy *toy = toy_make(stage, 0, 1, "net"), *other = toy_make(stage, 0, 2, "bert");
	struct run *run = start(true, 2, 0, 0);
	__u64 i;

	toy_load(stage, toy, T0 + 1);
	toy_load(stage, other, T0 + 1);
	for (i = 0; i < 100; i++) {
		toy_run(stage, toy, T0 + i * 10 * MS + 1, T0 + i * 10 * MS + 5 * MS);
		toy_run(stage, other, T0 + i * 10 * MS + 1, T0 + i * 10 * MS + 5 * MS);
		stage_until(stage, T0 + i * 10 * MS + 10 * MS);
	}
	stage_until(stage, T0 + 2000 * MS);
	cr_assert_eq(stage->got_count, 4);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(got(stage, i)->type, XPT_PROFILE_TRACE);
		cr_assert_eq(got(stage, i)->program_count, 1);
		cr_assert_eq(got(stage, i)->programs->taken, 25);
		cr_assert_eq(got(stage, i)->programs->inferences, 50);
		cr_assert_eq(got(stage, i)->programs->sample_count, 0);
		cr_assert_eq(spans(got(stage, i), "toy_execute"), 25);
	}
	/* A document also when nothing ran. */
	cr_assert_gt(got(stage, 3)->trace_length, 2);
	cr_assert_eq(spans(got(stage, 3), "toy_execute"), 0);
	handle_free(run->handle);
}

Test(profile_handle_accumulate_traces, without_room_samples_are_lost)
{
	struct toy *toy;
	struct run *run;
	const struct xpt_program_report *program;
	__u64 i;

	stage_end(stage);
	stage = stage_make(1 << 20);
	toy = toy_make(stage, 0, 1, "net");
	run = start(true, 1, 0, 0);
	toy_load(stage, toy, T0 + 1);
	for (i = 0; i < 20000; i++)
		toy_run(stage, toy, T0 + i * 1000 + 1, T0 + i * 1000 + 500);
	stage_read(stage, T0 + 500 * MS);
	program = program_in(got(stage, 0), toy->program.id);
	cr_assert_eq(program->inferences, 20000);
	cr_assert_gt(program->lost, 5000);
	cr_assert_eq(program->taken + program->lost, 20000);
	cr_assert_eq(spans(got(stage, 0), "toy_execute"), program->taken);
	cr_assert_lt(report_bytes(stage->got[0].report), 3 << 20);
	handle_free(run->handle);
}
