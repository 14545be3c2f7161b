/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/collect/collector.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "counter/perf_events.h"
#include "session/reader/describe_records.h"

#define COUNTERS_EVERY 10000000ull /* ns; when nothing else is asked for */

struct counter_side {
	struct collector *collector;
	struct xpt_counters *counters; /* NULL: not read at intervals */
	struct call_events calls;      /* empty: not read around inferences */
	struct xpt_counter_value *values;
	struct xpt_record_reading *record;
	__u64 every; /* ns between two readings */
	__u64 due;   /* ~0: it has not begun, or has ended */
};

static int open_counters(struct counter_side *side)
{
	const struct collector_options *given = &side->collector->options;
	const struct log *log = &side->collector->log;
	struct xpt_counters_options options = {
		.size = sizeof(options),
		.names = given->counters,
		.name_count = given->counter_count,
		.cpu_index = XPT_COUNTERS_ALL,
		.gpu_index = XPT_COUNTERS_ALL,
		.log = log->write,
		.log_context = log->context,
		.log_level = log->level,
		.tracefs = given->tracefs,
	};

	return xpt_counters_open(&options, &side->counters);
}

int counter_side_create(struct collector *collector, struct counter_side **result)
{
	const struct collector_options *options = &collector->options;
	size_t count = options->counter_count;
	struct counter_side *side;
	int error;

	*result = NULL;
	if (!count)
		return 0;
	if (count > XPT_COUNTER_MAX) {
		log_error(&collector->log, "too many counters: %zu (at most %d)", count, XPT_COUNTER_MAX);
		return -E2BIG;
	}
	side = calloc(1, sizeof(*side));
	if (!side)
		return -ENOMEM;
	side->collector = collector;
	side->every = options->counters_every ?: COUNTERS_EVERY;
	side->due = ~0ull;
	side->values = calloc(count, sizeof(*side->values));
	side->record = calloc(1, sizeof(*side->record) + count * sizeof(__u64));
	error = side->values && side->record ? 0 : -ENOMEM;
	if (!error && options->counter_tracks)
		error = open_counters(side);
	if (!error && options->counters_per_inference)
		error = call_events_open(&collector->log, options->tracefs, options->counters, count, &side->calls);
	if (error)
		counter_side_free(side);
	else
		*result = side;
	return error;
}

void counter_side_free(struct counter_side *side)
{
	if (!side)
		return;
	xpt_counters_destroy(side->counters);
	call_events_close(&side->calls);
	free(side->values);
	free(side->record);
	free(side);
}

unsigned int counter_side_slots(const struct counter_side *side)
{
	return side ? side->calls.slots : 0;
}

void counter_side_lend(const struct counter_side *side, struct kern_options *options)
{
	if (!side)
		return;
	options->slot_events = side->calls.descriptors;
	options->slots = side->calls.slots;
	options->slot_cpus = side->calls.cpus;
	memcpy(options->slot_tasks, side->calls.tasks, sizeof(options->slot_tasks));
}

void counter_side_lent(struct counter_side *side)
{
	if (side)
		call_events_release(&side->calls);
}

const struct xpt_counter_info *counter_side_info(const struct counter_side *side, size_t index)
{
	if (!side || index >= side->collector->options.counter_count)
		return NULL;
	return side->counters ? xpt_counters_info(side->counters, index) : &side->calls.counters[index].info;
}

const char *counter_side_of(const struct counter_side *side, size_t index)
{
	return side->collector->options.counters_per_inference ? call_events_of(&side->calls.counters[index]) : "";
}

static struct xpt_record_text *describe_counter(const struct counter_side *side, size_t index)
{
	const struct counter *counter = side->collector->options.counters_per_inference ? &side->calls.counters[index] :
											  NULL;

	return record_counter(counter_side_info(side, index), index, counter ? counter->event_count : 0,
			      counter_side_of(side, index), counter && call_events_of_each_cpu(counter));
}

static int describe(struct counter_side *side)
{
	for (size_t i = 0; i < side->collector->options.counter_count; i++)
		collector_pass_text(side->collector, describe_counter(side, i));
	return side->collector->error;
}

static void read_counters(struct counter_side *side)
{
	struct xpt_record_reading *record = side->record;
	double value;

	record->header.time = clock_monotonic();
	xpt_counters_poll(side->counters, side->values, sizeof(*side->values));
	for (size_t i = 0; i < side->collector->options.counter_count; i++) {
		bool known = !(side->values[i].flags & (XPT_COUNTER_GONE | XPT_COUNTER_NEVER));

		value = known ? side->values[i].value : NAN;
		memcpy(&record->value[i], &value, sizeof(value));
	}
	collector_pass(side->collector, &record->header);
}

int counter_side_start(struct counter_side *side)
{
	size_t count = side->collector->options.counter_count;
	int error = describe(side);

	if (error || !side->counters)
		return error;
	side->record->header.kind = XPT_RECORD_READING;
	side->record->header.size = sizeof(*side->record) + count * sizeof(__u64);
	side->record->values = count;
	error = xpt_counters_start(side->counters);
	if (!error)
		read_counters(side);
	side->due = clock_monotonic() + side->every;
	return error;
}

__u64 counter_side_due(const struct counter_side *side)
{
	return side ? side->due : ~0ull;
}

void counter_side_look(struct counter_side *side)
{
	__u64 now;

	if (!side || side->due == ~0ull)
		return;
	now = clock_monotonic();
	if (now < side->due)
		return;
	/* At even times; those that were missed are left out. */
	side->due += (1 + (now - side->due) / side->every) * side->every;
	read_counters(side);
}

void counter_side_stop(struct counter_side *side)
{
	if (!side || side->due == ~0ull)
		return;
	side->due = ~0ull;
	read_counters(side);
}
