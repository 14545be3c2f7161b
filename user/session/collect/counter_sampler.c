/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/collect/collector.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "counter/perf_events.h"
#include "session/reader/describe_records.h"

#define COUNTERS_EVERY 10000000ull /* ns; when nothing else is asked for */

struct counter_sampler {
	struct collector *collector;
	struct xpt_counters *counters; /* NULL: not read at intervals */
	struct call_events calls;      /* empty: not read around inferences */
	struct xpt_counter_value *values;
	struct xpt_record_reading *record;
	__u64 every; /* ns between two readings */
	__u64 due;   /* ~0: it has not begun, or has ended */
};

static int open_counters(struct counter_sampler *sampler)
{
	const struct collector_options *given = &sampler->collector->options;
	const struct log *log = &sampler->collector->log;
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

	return xpt_counters_open(&options, &sampler->counters);
}

int counter_sampler_create(struct collector *collector, struct counter_sampler **result)
{
	const struct collector_options *options = &collector->options;
	size_t count = options->counter_count;
	struct counter_sampler *sampler;
	int error;

	*result = NULL;
	if (!count)
		return 0;
	if (count > XPT_COUNTER_MAX) {
		log_error(&collector->log, "too many counters: %zu (at most %d)", count, XPT_COUNTER_MAX);
		return -E2BIG;
	}
	sampler = calloc(1, sizeof(*sampler));
	if (!sampler)
		return -ENOMEM;
	sampler->collector = collector;
	sampler->every = options->counters_every ?: COUNTERS_EVERY;
	sampler->due = ~0ull;
	sampler->values = calloc(count, sizeof(*sampler->values));
	sampler->record = calloc(1, sizeof(*sampler->record) + count * sizeof(__u64));
	error = sampler->values && sampler->record ? 0 : -ENOMEM;
	if (!error && options->counter_tracks)
		error = open_counters(sampler);
	if (!error && options->counters_per_inference)
		error = call_events_open(&collector->log, options->tracefs, options->counters, count, &sampler->calls);
	if (error)
		counter_sampler_free(sampler);
	else
		*result = sampler;
	return error;
}

void counter_sampler_free(struct counter_sampler *sampler)
{
	if (!sampler)
		return;
	xpt_counters_destroy(sampler->counters);
	call_events_close(&sampler->calls);
	free(sampler->values);
	free(sampler->record);
	free(sampler);
}

unsigned int counter_sampler_slots(const struct counter_sampler *sampler)
{
	return sampler ? sampler->calls.slots : 0;
}

void counter_sampler_lend(const struct counter_sampler *sampler, struct kern_options *options)
{
	if (!sampler)
		return;
	options->slot_events = sampler->calls.descriptors;
	options->slots = sampler->calls.slots;
	options->slot_cpus = sampler->calls.cpus;
	memcpy(options->slot_tasks, sampler->calls.tasks, sizeof(options->slot_tasks));
}

void counter_sampler_lent(struct counter_sampler *sampler)
{
	if (sampler)
		call_events_release(&sampler->calls);
}

int counter_sampler_renew(struct counter_sampler *sampler, struct kern *kern, int cpu)
{
	int events[XPT_SLOT_MAX], error;
	unsigned int slots = counter_sampler_slots(sampler);

	if (sampler && sampler->due != ~0ull)
		xpt_counters_renew(sampler->counters);
	if (!slots)
		return kern_renew_cpu(kern, cpu, NULL);
	call_events_renew(&sampler->collector->log, &sampler->calls, (unsigned int)cpu, events);
	error = kern_renew_cpu(kern, cpu, events);
	for (unsigned int slot = 0; slot < slots; slot++)
		if (events[slot] >= 0)
			close(events[slot]);
	return error;
}

const struct xpt_counter_info *counter_sampler_info(const struct counter_sampler *sampler, size_t index)
{
	if (!sampler || index >= sampler->collector->options.counter_count)
		return NULL;
	return sampler->counters ? xpt_counters_info(sampler->counters, index) : &sampler->calls.counters[index].info;
}

const char *counter_sampler_of(const struct counter_sampler *sampler, size_t index)
{
	return sampler->collector->options.counters_per_inference ? call_events_of(&sampler->calls.counters[index]) :
								    "";
}

static struct xpt_record_text *describe_counter(const struct counter_sampler *sampler, size_t index)
{
	const struct counter *counter = sampler->collector->options.counters_per_inference ?
						&sampler->calls.counters[index] :
						NULL;

	return record_counter(counter_sampler_info(sampler, index), index, counter ? counter->event_count : 0,
			      counter_sampler_of(sampler, index), counter && call_events_of_each_cpu(counter));
}

static int describe(struct counter_sampler *sampler)
{
	for (size_t i = 0; i < sampler->collector->options.counter_count; i++)
		collector_pass_text(sampler->collector, describe_counter(sampler, i));
	return sampler->collector->error;
}

static void read_counters(struct counter_sampler *sampler)
{
	struct xpt_record_reading *record = sampler->record;
	double value;

	record->header.time = clock_monotonic();
	xpt_counters_poll(sampler->counters, sampler->values, sizeof(*sampler->values));
	for (size_t i = 0; i < sampler->collector->options.counter_count; i++) {
		bool known = !(sampler->values[i].flags & (XPT_COUNTER_GONE | XPT_COUNTER_NEVER));

		if (sampler->values[i].time > record->header.time)
			record->header.time = sampler->values[i].time;
		value = known ? sampler->values[i].value : NAN;
		memcpy(&record->value[i], &value, sizeof(value));
	}
	collector_pass(sampler->collector, &record->header);
}

int counter_sampler_start(struct counter_sampler *sampler)
{
	size_t count = sampler->collector->options.counter_count;
	int error = describe(sampler);

	if (error || !sampler->counters)
		return error;
	sampler->record->header.kind = XPT_RECORD_READING;
	sampler->record->header.size = sizeof(*sampler->record) + count * sizeof(__u64);
	sampler->record->values = count;
	error = xpt_counters_start(sampler->counters);
	if (!error)
		read_counters(sampler);
	sampler->due = clock_monotonic() + sampler->every;
	return error;
}

__u64 counter_sampler_due(const struct counter_sampler *sampler)
{
	return sampler ? sampler->due : ~0ull;
}

void counter_sampler_look(struct counter_sampler *sampler)
{
	__u64 now;

	if (!sampler || sampler->due == ~0ull)
		return;
	now = clock_monotonic();
	if (now < sampler->due)
		return;
	/* At even times; those that were missed are left out. */
	sampler->due += (1 + (now - sampler->due) / sampler->every) * sampler->every;
	read_counters(sampler);
}

void counter_sampler_stop(struct counter_sampler *sampler)
{
	if (!sampler || sampler->due == ~0ull)
		return;
	sampler->due = ~0ull;
	read_counters(sampler);
}
