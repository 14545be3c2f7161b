/* SPDX-License-Identifier: BSD-2-Clause */
/* Counter sessions: names to counters, their readings to values. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "device/counter.h"
#include "device/perf_events.h"

/* A reading of a counter that is no perf event. */
struct polled_state {
	__u64 now, base, counted; /* counted: while it ran, before the base */
	__u64 time;
	bool gone;
};

struct xpt_counters {
	struct log log;
	struct counter *counters;
	size_t count;
	struct perf_events events;
	struct perf_reading *base;   /* of each part: where counting began; its time is that of the start */
	struct perf_reading *before; /* of each part: at the poll before */
	struct polled_state *polled; /* of each counter */
	uint64_t spread;
	bool continues, begun, running;
};

/* ---- opening ---- */

static int open_counters(struct xpt_counters *session, const struct xpt_counters_options *options)
{
	struct counter_place place = { 0 };
	struct nodes nodes = { 0 };
	struct pmus pmus = { 0 };
	int error = counter_place_open(&session->log, options->cpu_index, options->gpu_index, options->pid, &pmus,
				       &nodes, &place);

	for (size_t i = 0; i < options->name_count && !error; i++) {
		error = counter_resolve(&place, options->names[i], &session->counters[i]);
		if (error)
			break;
		session->count++;
		error = perf_events_add(&session->events, &session->counters[i], i);
	}
	counter_place_close(&place, &pmus, &nodes);
	return error;
}

static int allocate(struct xpt_counters *session)
{
	size_t parts = session->events.part_count ? session->events.part_count : 1;

	session->base = calloc(parts, sizeof(*session->base));
	session->before = calloc(parts, sizeof(*session->before));
	return session->base && session->before ? 0 : -ENOMEM;
}

int xpt_counters_open(const struct xpt_counters_options *caller_options, struct xpt_counters **result)
{
	struct xpt_counters_options options;
	struct xpt_counters *session;
	int error = options_copy(&options, sizeof(options), caller_options);

	*result = NULL;
	if (error)
		return error;
	session = calloc(1, sizeof(*session));
	if (!session)
		return -ENOMEM;
	session->log = (struct log){ options.log, options.log_context, options.log_level };
	session->continues = options.continues;
	session->events = (struct perf_events){
		.pid = options.pid,
		.until_exec = options.until_exec,
		.pinned = options.no_multiplex,
		.mixed = options.devices_count_all,
		.log = &session->log,
	};
	session->counters = calloc(options.name_count ? options.name_count : 1, sizeof(*session->counters));
	session->polled = calloc(options.name_count ? options.name_count : 1, sizeof(*session->polled));
	error = !session->counters || !session->polled ? -ENOMEM : !options.name_count ? -EINVAL : 0;
	if (!error)
		error = open_counters(session, &options);
	if (!error)
		error = allocate(session);
	if (error)
		xpt_counters_destroy(session);
	else
		*result = session;
	return error;
}

int xpt_counters_create(const char *const *names, size_t count, int cpu_index, int gpu_index,
			struct xpt_counters **session)
{
	const struct xpt_counters_options options = {
		.size = sizeof(options),
		.names = names,
		.name_count = count,
		.cpu_index = cpu_index,
		.gpu_index = gpu_index,
	};

	return xpt_counters_open(&options, session);
}

void xpt_counters_destroy(struct xpt_counters *session)
{
	if (!session)
		return;
	perf_events_close(&session->events);
	for (size_t i = 0; i < session->count; i++)
		counter_free(&session->counters[i]);
	free(session->counters);
	free(session->polled);
	free(session->base);
	free(session->before);
	free(session);
}

/* ---- reading ---- */

static void read_polled(struct xpt_counters *session, size_t index)
{
	struct polled_state *state = &session->polled[index];
	__u64 raw;

	state->time = clock_monotonic();
	state->gone = polled_read(session->counters[index].polled, &raw);
	if (!state->gone)
		state->now = raw;
}

static void read_all(struct xpt_counters *session)
{
	uint64_t first = clock_monotonic(), last = first;
	size_t reads = perf_events_read(&session->events);

	for (size_t i = 0; i < session->events.part_count; i++)
		last = session->events.parts[i].now.time > last ? session->events.parts[i].now.time : last;
	for (size_t i = 0; i < session->count; i++) {
		if (!session->counters[i].polled)
			continue;
		read_polled(session, i);
		last = session->polled[i].time;
		reads++;
	}
	session->spread = reads > 1 ? last - first : 0;
}

/* ---- starting and stopping ---- */

static void set_base(struct xpt_counters *session)
{
	for (size_t i = 0; i < session->events.part_count; i++)
		session->base[i] = session->before[i] = session->events.parts[i].now;
	for (size_t i = 0; i < session->count; i++)
		session->polled[i].counted = 0;
}

int xpt_counters_start(struct xpt_counters *session)
{
	int error;

	if (session->running)
		return -EALREADY;
	read_all(session);
	if (!session->begun || !session->continues)
		set_base(session);
	for (size_t i = 0; i < session->count; i++)
		session->polled[i].base = session->polled[i].now;
	error = perf_events_enable(&session->events);
	session->running = session->begun = !error;
	return error;
}

int xpt_counters_stop(struct xpt_counters *session)
{
	if (!session->running)
		return -EALREADY;
	perf_events_disable(&session->events);
	for (size_t i = 0; i < session->count; i++) {
		struct polled_state *state = &session->polled[i];

		if (!session->counters[i].polled)
			continue;
		read_polled(session, i);
		state->counted += state->now - state->base;
		state->base = state->now;
	}
	session->running = false;
	return 0;
}

/* ---- values ---- */

struct sums {
	double value;
	size_t parts;
	struct xpt_counter_value *result;
};

/* What an event that took turns would have counted. */
static double scaled(__u64 count, __u64 enabled, __u64 running)
{
	return !running ? 0 : running < enabled ? (double)count * ((double)enabled / (double)running) : (double)count;
}

static void add_part(struct sums *sums, enum counting counting, const struct perf_reading *base,
		     const struct perf_reading *before, const struct perf_reading *now)
{
	__u64 enabled = now->enabled - base->enabled, running = now->running - base->running;
	struct xpt_counter_value *result = sums->result;

	result->raw += now->count - (counting == COUNTING_LEVEL ? 0 : base->count);
	result->enabled += enabled;
	result->running += running;
	result->time = now->time;
	result->flags |= now->gone ? XPT_COUNTER_GONE : 0;
	if (enabled && running < enabled)
		result->flags |= running ? XPT_COUNTER_SCALED : XPT_COUNTER_NEVER;
	sums->parts++;
	switch (counting) {
	case COUNTING_SUM:
		sums->value += scaled(now->count - base->count, enabled, running);
		break;
	case COUNTING_LEVEL:
		sums->value += (double)now->count;
		break;
	case COUNTING_PER_SECOND:
		if (now->running > before->running)
			sums->value += (double)(now->count - before->count) * 1e9 /
				       (double)(now->running - before->running);
		break;
	case COUNTING_BY_READ:
		sums->value += (double)(now->count - before->count);
		break;
	}
}

static void polled_value(const struct xpt_counters *session, size_t index, struct xpt_counter_value *value)
{
	const struct counter *counter = &session->counters[index];
	const struct polled_state *state = &session->polled[index];

	value->raw = state->now;
	if (counter->counting == COUNTING_SUM)
		value->raw = state->counted + (session->running ? state->now - state->base : 0);
	value->value = (double)value->raw * counter->info.scale;
	value->time = state->time;
	value->flags = state->gone ? XPT_COUNTER_GONE : 0;
}

int xpt_counters_poll(struct xpt_counters *session, struct xpt_counter_value *values)
{
	size_t part = 0;

	read_all(session);
	for (size_t i = 0; i < session->count; i++) {
		const struct counter *counter = &session->counters[i];
		struct sums sums = { .result = &values[i] };

		values[i] = (struct xpt_counter_value){ 0 };
		if (counter->polled) {
			polled_value(session, i, &values[i]);
			continue;
		}
		for (; part < session->events.part_count && session->events.parts[part].counter == i; part++) {
			const struct perf_reading *now = &session->events.parts[part].now;

			add_part(&sums, counter->counting, &session->base[part], &session->before[part], now);
			session->before[part] = *now;
		}
		/* A frequency of several is that of one of them, in the mean. */
		if (counter->counting == COUNTING_PER_SECOND || counter->counting == COUNTING_BY_READ)
			sums.value /= (double)(sums.parts ? sums.parts : 1);
		values[i].value = sums.value * counter->info.scale;
	}
	return 0;
}

uint64_t xpt_counters_spread(const struct xpt_counters *session)
{
	return session->spread;
}

size_t xpt_counters_count(const struct xpt_counters *session)
{
	return session->count;
}

const struct xpt_counter_info *xpt_counters_info(const struct xpt_counters *session, size_t index)
{
	return index < session->count ? &session->counters[index].info : NULL;
}

int xpt_counters_list(int gpu_index, int (*visit)(void *context, const struct xpt_counter_info *counter), void *context)
{
	struct counter_place place = { 0 };
	struct nodes nodes = { 0 };
	struct pmus pmus = { 0 };
	int result = counter_place_open(NULL, XPT_COUNTERS_ALL, gpu_index, 0, &pmus, &nodes, &place);

	if (!result)
		result = counters_visit(&place, visit, context);
	counter_place_close(&place, &pmus, &nodes);
	return result;
}
