/* SPDX-License-Identifier: BSD-2-Clause */
/* Counter sessions: names to counters, their samples to values. An alias is made of several counters, any other name of one. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/options.h"
#include "base/core/text.h"
#include "counter/alias.h"
#include "counter/counter.h"
#include "counter/perf_events.h"

/* A sample of a counter that is no perf event. */
struct polled_state {
	__u64 now, base, counted; /* counted: while it ran, before the base */
	__u64 time;
	__u64 ran, since; /* ns that the session ran, before the time since; which is that of the latest start */
	bool gone;
};

/* Of a perf event on one CPU. */
struct part_state {
	struct perf_sample base; /* where counting began; its time is that of the start */
	struct perf_sample past; /* at the poll before */
	double mean;		 /* the latest one, where a mean is reported */
};

/* What the caller has a name for. */
struct asked {
	size_t first, count; /* counters */
	struct alias alias;  /* of an alias: its counters have moved to the session */
	bool is_alias;
	double last; /* an alias's value at the poll before */
};

struct xpt_counters {
	struct log log;
	struct asked *asked;
	size_t asked_count;
	struct counter *counters;
	size_t count;
	struct xpt_counter_value *values;  /* of each counter */
	struct alias_sample *before, *now; /* of each counter: at the poll before, and at the latest one */
	struct perf_events events;
	struct part_state *parts;    /* of each part of the events */
	struct polled_state *polled; /* of each counter */
	uint64_t spread;
	bool continues, begun, running;
};

/* ---- opening ---- */

/* Takes the counters over, also after an error. */
static int add_counters(struct xpt_counters *session, struct counter *counters, size_t count)
{
	size_t first = session->count;
	struct counter *grown = reallocarray(session->counters, first + count, sizeof(*grown));
	int error = 0;

	if (!grown) {
		for (size_t i = 0; i < count; i++)
			counter_free(&counters[i]);
		return -ENOMEM;
	}
	session->counters = grown;
	memcpy(grown + first, counters, count * sizeof(*counters));
	session->count += count;
	for (size_t i = 0; i < count && !error; i++)
		error = perf_events_add(&session->events, &grown[first + i], first + i);
	return error;
}

static int open_name(struct xpt_counters *session, const struct counter_place *place, const char *name)
{
	struct asked *asked = &session->asked[session->asked_count];
	struct counter counter;
	int error;

	*asked = (struct asked){ .first = session->count, .count = 1, .is_alias = alias_is(name) };
	if (!asked->is_alias) {
		error = counter_resolve(place, name, &counter);
		if (error)
			return error;
		session->asked_count++;
		return add_counters(session, &counter, 1);
	}
	error = alias_resolve(place, name, &asked->alias);
	if (error)
		return error;
	session->asked_count++;
	asked->count = asked->alias.count;
	asked->alias.count = 0;
	return add_counters(session, asked->alias.counters, asked->count);
}

static int open_counters(struct xpt_counters *session, const struct xpt_counters_options *options)
{
	struct counter_place place;
	int error = counter_place_open(&session->log, options->cpu_index, options->gpu_index, options->pid, &place);

	place.tracefs = options->tracefs;
	place.mixed = options->pid && options->devices_count_all;
	for (size_t i = 0; i < options->name_count && !error; i++)
		error = open_name(session, &place, options->names[i]);
	counter_place_close(&place);
	return error;
}

static int allocate(struct xpt_counters *session)
{
	size_t parts = session->events.part_count ? session->events.part_count : 1;

	session->parts = calloc(parts, sizeof(*session->parts));
	session->polled = calloc(session->count, sizeof(*session->polled));
	session->values = calloc(session->count, sizeof(*session->values));
	session->before = calloc(session->count, sizeof(*session->before));
	session->now = calloc(session->count, sizeof(*session->now));
	return session->parts && session->polled && session->values && session->before && session->now ? 0 : -ENOMEM;
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
	session->asked = calloc(options.name_count ? options.name_count : 1, sizeof(*session->asked));
	error = !session->asked ? -ENOMEM : !options.name_count ? -EINVAL : 0;
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
	for (size_t i = 0; i < session->asked_count; i++)
		alias_free(&session->asked[i].alias);
	for (size_t i = 0; i < session->count; i++)
		counter_free(&session->counters[i]);
	free(session->asked);
	free(session->counters);
	free(session->values);
	free(session->before);
	free(session->now);
	free(session->polled);
	free(session->parts);
	free(session);
}

/* ---- sampling ---- */

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
		session->parts[i] = (struct part_state){ session->events.parts[i].now, session->events.parts[i].now,
							 0 };
	for (size_t i = 0; i < session->count; i++) {
		session->polled[i].counted = session->polled[i].ran = 0;
		session->now[i] = (struct alias_sample){ 0 };
	}
	for (size_t i = 0; i < session->asked_count; i++)
		session->asked[i].last = 0;
}

int xpt_counters_start(struct xpt_counters *session)
{
	int error;

	if (session->running)
		return -EALREADY;
	read_all(session);
	if (!session->begun || !session->continues)
		set_base(session);
	for (size_t i = 0; i < session->count; i++) {
		session->polled[i].base = session->polled[i].now;
		session->polled[i].since = session->polled[i].time;
	}
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
		state->ran += state->time - state->since;
	}
	session->running = false;
	return 0;
}

/* ---- values ---- */

struct sums {
	double value;
	size_t parts, known; /* known: neither gone nor on a CPU that is offline */
	struct xpt_counter_value *result;
};

/* What an event that took turns would have counted. */
static double scaled(__u64 count, __u64 enabled, __u64 running)
{
	return !running ? 0 : running < enabled ? (double)count * ((double)enabled / (double)running) : (double)count;
}

static void add_part(struct xpt_counters *session, size_t part, struct sums *sums)
{
	struct perf_part *of = &session->events.parts[part];
	const struct perf_sample *now = &of->now;
	struct part_state *state = &session->parts[part];
	const bool growing = of->counting == COUNTING_PER_SECOND || of->counting == COUNTING_BY_READ;
	__u64 enabled = now->enabled - state->base.enabled, running = now->running - state->base.running;
	struct xpt_counter_value *result = sums->result;

	result->raw += now->count - (of->counting == COUNTING_LEVEL ? 0 : state->base.count);
	result->enabled += enabled;
	result->running += running;
	result->time = now->time;
	/* An offline CPU counts nothing: what others count is known. */
	result->flags |= of->offline ? XPT_COUNTER_OFFLINE : now->gone ? XPT_COUNTER_GONE : 0;
	of->offline = false;
	if (enabled && running < enabled)
		result->flags |= running ? XPT_COUNTER_SCALED : XPT_COUNTER_NEVER;
	sums->parts++;
	sums->known += !now->gone;
	if (growing)
		state->mean = perf_mean(of->counting, &state->past, now, state->mean);
	if (of->counting == COUNTING_SUM)
		sums->value += scaled(now->count - state->base.count, enabled, running);
	else if (!now->gone)
		sums->value += growing ? state->mean : (double)now->count;
	state->past = *now;
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

/* For how long the counter has counted. */
static uint64_t ran(const struct xpt_counters *session, size_t index)
{
	const struct polled_state *state = &session->polled[index];

	if (!session->counters[index].polled)
		return session->values[index].enabled;
	if (state->gone)
		return session->now[index].ran;
	return state->ran + (session->running ? state->time - state->since : 0);
}

/* *part: the first of the counter's; then the first one behind. */
static void evaluate(struct xpt_counters *session, size_t index, size_t *part)
{
	const struct counter *counter = &session->counters[index];
	struct xpt_counter_value *value = &session->values[index];
	struct sums sums = { .result = value };
	double last = value->value;

	*value = (struct xpt_counter_value){ 0 };
	if (counter->polled) {
		polled_value(session, index, value);
	} else {
		for (; *part < session->events.part_count && session->events.parts[*part].counter == index; ++*part)
			add_part(session, *part, &sums);
		/* A frequency of several is that of one of them, in the mean. */
		if (counter->counting == COUNTING_PER_SECOND || counter->counting == COUNTING_BY_READ)
			sums.value /= (double)(sums.known ? sums.known : 1);
		value->value = sums.value * counter->info.scale;
		if (sums.parts && !sums.known)
			value->flags |= XPT_COUNTER_GONE;
		if (value->flags & XPT_COUNTER_GONE && counter->counting != COUNTING_SUM)
			value->value = last;
	}
	session->before[index] = session->now[index];
	session->now[index] = (struct alias_sample){ value->value, ran(session, index) };
}

static void evaluate_alias(struct xpt_counters *session, struct asked *asked, struct xpt_counter_value *value)
{
	const struct xpt_counter_value *values = &session->values[asked->first];
	const struct alias *alias = &asked->alias;

	*value = (struct xpt_counter_value){ 0 };
	for (size_t i = 0; i < asked->count; i++) {
		if (asked->count == 1 || alias->info.kind == XPT_COUNTER_SUM)
			value->raw += values[i].raw;
		value->enabled += values[i].enabled;
		value->running += values[i].running;
		value->time = values[i].time > value->time ? values[i].time : value->time;
		value->flags |= values[i].flags;
	}
	alias_value(alias->terms, asked->count, alias->highest, &session->before[asked->first],
		    &session->now[asked->first], &asked->last);
	value->value = asked->last;
}

static void give_value(char *to, size_t to_size, const struct xpt_counter_value *value)
{
	size_t known = to_size < sizeof(*value) ? to_size : sizeof(*value);

	memcpy(to, value, known);
	memset(to + known, 0, to_size - known);
}

int xpt_counters_poll(struct xpt_counters *session, struct xpt_counter_value *values, size_t value_size)
{
	struct xpt_counter_value value;
	size_t part = 0;

	value_size = value_size ?: sizeof(value);
	read_all(session);
	for (size_t i = 0; i < session->count; i++)
		evaluate(session, i, &part);
	for (size_t i = 0; i < session->asked_count; i++) {
		struct asked *asked = &session->asked[i];

		if (asked->is_alias)
			evaluate_alias(session, asked, &value);
		else
			value = session->values[asked->first];
		give_value((char *)values + i * value_size, value_size, &value);
	}
	return 0;
}

void xpt_counters_renew(struct xpt_counters *session)
{
	perf_events_renew(&session->events);
}

uint64_t xpt_counters_spread(const struct xpt_counters *session)
{
	return session->spread;
}

size_t xpt_counters_count(const struct xpt_counters *session)
{
	return session->asked_count;
}

const struct xpt_counter_info *xpt_counters_info(const struct xpt_counters *session, size_t index)
{
	const struct asked *asked;

	if (index >= session->asked_count)
		return NULL;
	asked = &session->asked[index];
	return asked->is_alias ? &asked->alias.info : &session->counters[asked->first].info;
}

int xpt_counters_list(int gpu_index, int (*visit)(void *context, const struct xpt_counter_info *counter), void *context)
{
	struct counter_place place;
	int result = counter_place_open(NULL, XPT_COUNTERS_ALL, gpu_index, 0, &place);

	if (!result)
		result = alias_visit(&place, visit, context);
	if (!result)
		result = counters_visit(&place, visit, context);
	if (!result)
		result = alias_visit_tracepoints(&place, visit, context);
	counter_place_close(&place);
	return result;
}

typedef int (*visit_fn)(void *context, const struct xpt_counter_info *counter);

struct walk {
	visit_fn visit;
	void *context;
	char name[512];
};

/* The kernel names hardware events on every machine; virtual ones often have no counters for them. */
static bool has_core(const struct pmus *pmus)
{
	static const char *const cores[] = { "cpu", "cpu_core", "armv" };

	for (size_t i = 0; i < pmus->count; i++)
		for (size_t j = 0; j < sizeof(cores) / sizeof(cores[0]); j++)
			if (!strncmp(pmus->items[i].name, cores[j], strlen(cores[j])))
				return true;
	return false;
}

static int visit_kernel_events(const struct walk *walk, bool hardware)
{
	int result = 0;

	for (size_t i = 0; i < kernel_event_count && !result; i++)
		if (kernel_events[i].type != PERF_TYPE_HARDWARE || hardware)
			result = walk->visit(walk->context, &kernel_events[i].info);
	return result;
}

/* "engine-busy,engine=?": with what the caller has to give. */
static void event_name(struct walk *walk, const struct pmu *pmu, const struct pmu_event *event)
{
	const char *term = event->terms;
	size_t used = (size_t)snprintf(walk->name, sizeof(walk->name), "%s/%s", pmu->name, event->name);

	while (term && used < sizeof(walk->name)) {
		size_t length = strcspn(term, ",");

		if (length > 2 && term[length - 1] == '?' && term[length - 2] == '=')
			used += (size_t)snprintf(walk->name + used, sizeof(walk->name) - used, ",%.*s", (int)length,
						 term);
		term = term[length] ? term + length + 1 : NULL;
	}
	if (used < sizeof(walk->name))
		snprintf(walk->name + used, sizeof(walk->name) - used, "/");
}

static int visit_pmu(struct walk *walk, const struct pmu *pmu)
{
	int result = 0;

	for (size_t i = 0; i < pmu->event_count && !result; i++) {
		struct xpt_counter_info info = { .size = sizeof(info), .name = walk->name };

		counter_describe(pmu, &pmu->events[i], &info);
		event_name(walk, pmu, &pmu->events[i]);
		result = walk->visit(walk->context, &info);
	}
	return result;
}

static int on_polled(void *context, const struct polled_info *polled)
{
	struct walk *walk = context;
	struct xpt_counter_info info = { .size = sizeof(info), .name = walk->name };

	counter_describe_polled(polled, &info);
	snprintf(walk->name, sizeof(walk->name), "%s/%s/", polled->source, polled->event);
	return walk->visit(walk->context, &info);
}

int counters_visit(const struct counter_place *place, visit_fn visit, void *context)
{
	struct walk walk = { .visit = visit, .context = context };
	int result = 0;

	for (size_t i = 0; i < place->pmus.count && !result; i++)
		if (counter_of_node(place, &place->pmus.items[i]))
			result = visit_pmu(&walk, &place->pmus.items[i]);
	if (!result)
		result = polled_list(place, on_polled, &walk);
	return result ? result : visit_kernel_events(&walk, has_core(&place->pmus));
}

#define NAME_MAX_LENGTH 128
#define OFFERED 3

struct offer {
	char name[NAME_MAX_LENGTH];
	size_t distance;
};

struct search {
	const char *name;
	struct offer best[OFFERED];
	size_t count;
};

static size_t least(size_t a, size_t b, size_t c)
{
	a = a < b ? a : b;
	return a < c ? a : c;
}

/* Letters to insert, to delete and to exchange (Levenshtein's distance). */
static size_t distance_of(const char *from, const char *to)
{
	size_t row[NAME_MAX_LENGTH + 1], length = strlen(to), before, above;

	for (size_t j = 0; j <= length; j++)
		row[j] = j;
	for (size_t i = 0; from[i]; i++) {
		before = row[0];
		row[0] = i + 1;
		for (size_t j = 0; j < length; j++) {
			above = row[j + 1];
			row[j + 1] = least(above + 1, row[j] + 1, before + (from[i] != to[j]));
			before = above;
		}
	}
	return row[length];
}

static int on_counter(void *context, const struct xpt_counter_info *counter)
{
	struct search *search = context;
	struct offer offer;
	size_t at;

	if (strlen(counter->name) >= NAME_MAX_LENGTH || strlen(search->name) >= NAME_MAX_LENGTH)
		return 0;
	offer.distance = distance_of(search->name, counter->name);
	if (offer.distance > strlen(search->name) / 2 + 1)
		return 0;
	snprintf(offer.name, sizeof(offer.name), "%s", counter->name);
	for (at = search->count; at && search->best[at - 1].distance > offer.distance; at--)
		if (at < OFFERED)
			search->best[at] = search->best[at - 1];
	if (at == OFFERED)
		return 0;
	search->best[at] = offer;
	search->count += search->count < OFFERED;
	return 0;
}

void nearest_counters(const struct counter_place *place, const char *name, char text[NEAREST_TEXT_MAX])
{
	struct search search = { .name = name };
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; alias_name(i); i++)
		on_counter(&search, &(struct xpt_counter_info){ .name = alias_name(i) });
	counters_visit(place, on_counter, &search);
	for (size_t i = 0; i < search.count; i++)
		used += (size_t)snprintf(text + used, NEAREST_TEXT_MAX - used, "%s%s", i ? ", " : "",
					 search.best[i].name);
}
