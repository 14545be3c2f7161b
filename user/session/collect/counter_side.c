/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/collect/counter_side.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "counter/call_events.h"
#include "session/reader/describe_records.h"

struct counter_side {
	struct counter_side_options options; /* names: only during creation */
	struct xpt_counters *counters;	     /* NULL: not read at intervals */
	struct call_events calls;	     /* empty: not read around inferences */
	struct xpt_counter_value *values;
	struct xpt_record_reading *record;
	__u64 due; /* ~0: it has not begun, or has ended */
};

static int open_counters(struct counter_side *side)
{
	const struct log *log = side->options.log;
	struct xpt_counters_options options = {
		.size = sizeof(options),
		.names = side->options.names,
		.name_count = side->options.count,
		.cpu_index = XPT_COUNTERS_ALL,
		.gpu_index = XPT_COUNTERS_ALL,
		.log = log->write,
		.log_context = log->context,
		.log_level = log->level,
		.tracefs = side->options.tracefs,
	};

	return xpt_counters_open(&options, &side->counters);
}

int counter_side_create(const struct counter_side_options *options, struct counter_side **result)
{
	struct counter_side *side;
	int error;

	*result = NULL;
	if (!options->count)
		return 0;
	if (options->count > XPT_COUNTER_MAX) {
		log_error(options->log, "too many counters: %zu (at most %d)", options->count, XPT_COUNTER_MAX);
		return -E2BIG;
	}
	side = calloc(1, sizeof(*side));
	if (!side)
		return -ENOMEM;
	side->options = *options;
	side->options.every = options->every ?: COUNTER_SIDE_EVERY;
	side->due = ~0ull;
	side->values = calloc(options->count, sizeof(*side->values));
	side->record = calloc(1, sizeof(*side->record) + options->count * sizeof(__u64));
	error = side->values && side->record ? 0 : -ENOMEM;
	if (!error && options->tracks)
		error = open_counters(side);
	if (!error && options->per_inference)
		error = call_events_open(options->log, options->tracefs, options->names, options->count, &side->calls);
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
	if (!side || index >= side->options.count)
		return NULL;
	return side->counters ? xpt_counters_info(side->counters, index) : &side->calls.counters[index].info;
}

const char *counter_side_of(const struct counter_side *side, size_t index)
{
	return side->options.per_inference ? call_events_of(&side->calls.counters[index]) : "";
}

static struct xpt_record_text *describe_counter(const struct counter_side *side, size_t index)
{
	const struct counter *counter = side->options.per_inference ? &side->calls.counters[index] : NULL;

	return record_counter(counter_side_info(side, index), index, counter ? counter->event_count : 0,
			      counter_side_of(side, index), counter && call_events_of_each_cpu(counter));
}

static int describe(struct counter_side *side)
{
	struct xpt_record_text *record;
	int error = 0;

	for (size_t i = 0; i < side->options.count && !error; i++) {
		record = describe_counter(side, i);
		error = record ? side->options.record(side->options.context, &record->header) : -ENOMEM;
		free(record);
	}
	return error;
}

static int read_counters(struct counter_side *side)
{
	struct xpt_record_reading *record = side->record;
	double value;

	record->header.time = clock_monotonic();
	xpt_counters_poll(side->counters, side->values, sizeof(*side->values));
	for (size_t i = 0; i < side->options.count; i++) {
		bool known = !(side->values[i].flags & (XPT_COUNTER_GONE | XPT_COUNTER_NEVER));

		value = known ? side->values[i].value : NAN;
		memcpy(&record->value[i], &value, sizeof(value));
	}
	return side->options.record(side->options.context, &record->header);
}

int counter_side_start(struct counter_side *side)
{
	size_t count = side->options.count;
	int error = describe(side);

	if (error || !side->counters)
		return error;
	side->record->header.kind = XPT_RECORD_READING;
	side->record->header.size = sizeof(*side->record) + count * sizeof(__u64);
	side->record->values = count;
	error = xpt_counters_start(side->counters);
	if (!error)
		error = read_counters(side);
	side->due = clock_monotonic() + side->options.every;
	return error;
}

__u64 counter_side_due(const struct counter_side *side)
{
	return side ? side->due : ~0ull;
}

int counter_side_look(struct counter_side *side)
{
	__u64 now;

	if (!side || side->due == ~0ull)
		return 0;
	now = clock_monotonic();
	if (now < side->due)
		return 0;
	/* At even times; those that were missed are left out. */
	side->due += (1 + (now - side->due) / side->options.every) * side->options.every;
	return read_counters(side);
}

int counter_side_stop(struct counter_side *side)
{
	if (!side || side->due == ~0ull)
		return 0;
	side->due = ~0ull;
	return read_counters(side);
}
