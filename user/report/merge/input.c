/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/merge/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"

#define SPAN_TIME_MAX (1ll << 60) /* ns: sums of four such times are in range */
#define CLOCK_MAX (1ull << 62)	  /* ns */
#define DEVICES_MAX 1024
#define SHIFT_MAX (1ll << 62) /* ns; a time of an event can be added */
#define PAIR_UNCERTAINTY 5000 /* ns: how far apart xputrace reads both clocks, at most */

void merge_input_free(struct merge_input *input)
{
	merge_reader_close(input->reader);
	free(input->numbers.devices);
	free(input->boot);
	free(input->calls.items);
	free(input->runs.items);
	free(input->other_data);
	free(input->metadata);
}

/* ---- events ---- */

static int add_span(struct merge_spans *spans, const struct merge_event *event)
{
	__s64 end = event->time + event->duration;

	if (!event->process_known || !event->thread_known || !event->timed || event->duration < 0 ||
	    event->time <= -SPAN_TIME_MAX || event->time >= SPAN_TIME_MAX || end >= SPAN_TIME_MAX)
		return 0;
	return vec_push(spans->items, spans->count,
			(struct merge_process_span){
				.process = event->process,
				.span = { event->thread, event->time, end },
			});
}

static bool is_true(struct json_part value)
{
	return json_part_is(&value, "true");
}

/* What ONNX Runtime's profile and an xputrace trace have in common: executions of a session. */
static int add_execution(struct merge_input *input, const struct merge_event *event)
{
	if (event->phase != 'X')
		return 0;
	if (json_part_is(&event->name, "\"model_run\"") && json_part_is(&event->category, "\"Session\""))
		return add_span(&input->runs, event);
	if (json_part_is(&event->category, "\"onnxruntime,execute\"") &&
	    !is_true(json_member(event->arguments, "layer")))
		return add_span(&input->calls, event);
	return 0;
}

/* PyTorch's profiler shows GPUs as processes 0, 1 and so on, and labels them so. */
static int add_device(struct merge_input *input, const struct merge_event *event)
{
	struct json_part label = json_inside(json_member(event->arguments, "labels"));
	struct merge_numbers *numbers = &input->numbers;

	if (!event->process_known || event->process >= 1u << MERGE_SPACE_BITS || label.length < 5 ||
	    memcmp(label.text, "GPU ", 4) != 0 || merge_synthetic(numbers, event->process) ||
	    numbers->device_count == DEVICES_MAX)
		return 0;
	return vec_push(numbers->devices, numbers->device_count, event->process);
}

static int survey_event(struct merge_input *input, const struct merge_item *item, struct merge_names *names,
			unsigned int index)
{
	struct merge_event event;
	int error;

	merge_event_read(item->value, &event);
	if (event.fault)
		return merge_reader_refuse(input->reader, item, event.fault_at, event.fault);
	if (!event.phase)
		return 0;
	input->events++;
	input->fine |= event.fine;
	if (event.phase != 'M')
		return add_execution(input, &event);
	error = merge_names_add(names, &event, index);
	if (!error && json_part_is(&event.name, "\"process_labels\""))
		error = add_device(input, &event);
	return error;
}

/* ---- other members ---- */

static int keep(char **to, struct json_part value)
{
	free(*to);
	*to = strndup(value.text, value.length);
	return *to ? 0 : -ENOMEM;
}

static bool read_clock(struct json_part value, __s64 *time)
{
	__u64 number;

	if (!merge_number(value, &number) || number >= CLOCK_MAX)
		return false;
	*time = number;
	return true;
}

/* otherData of xputrace: has its schema, both clocks, and the boot. */
static int survey_origin(struct merge_input *input, struct json_part value)
{
	struct json_part clock = json_member(value, "clock"), boot = json_member(value, "boot_id");

	if (json_member(value, "schema").length && boot.length &&
	    read_clock(json_member(clock, "monotonic_ns"), &input->monotonic) &&
	    read_clock(json_member(clock, "realtime_ns"), &input->realtime)) {
		input->numbers.ours = true;
		input->clock = MERGE_CLOCK_MONOTONIC;
		if (keep(&input->boot, boot))
			return -ENOMEM;
	}
	return keep(&input->other_data, value);
}

static int survey_metadata(struct merge_input *input, const struct log *log, struct json_part value)
{
	struct json_part domain = json_member(value, "clock-domain");

	if (json_member(value, "merged").length) {
		log_error(log, "%s: is a merged trace already: merge the traces that it was made from", input->path);
		return -EINVAL;
	}
	if (json_part_is(&domain, "\"LINUX_CLOCK_MONOTONIC\""))
		input->clock = MERGE_CLOCK_MONOTONIC;
	return keep(&input->metadata, value);
}

static int survey_member(struct merge_input *input, const struct log *log, const struct merge_item *item)
{
	if (!strcmp(item->name, "otherData") && *item->value.text == '{')
		return survey_origin(input, item->value);
	if (!strcmp(item->name, "metadata") && *item->value.text == '{')
		return survey_metadata(input, log, item->value);
	if (!strcmp(item->name, "baseTimeNanoseconds") && read_clock(item->value, &input->base))
		input->clock = MERGE_CLOCK_WALL;
	return 0;
}

int merge_input_survey(struct merge_input *input, const struct log *log, struct merge_names *names, unsigned int index)
{
	struct merge_item item;
	__u64 complete;
	int result = merge_reader_open(log, input->path, &input->reader);

	if (result)
		return result;
	while ((result = merge_reader_next(input->reader, &item)) == 1) {
		result = item.event ? survey_event(input, &item, names, index) : survey_member(input, log, &item);
		if (result)
			return result;
	}
	if (!result && merge_reader_cut(input->reader, &complete))
		log_warn(log, "%s: is cut off; what was complete ends at byte %llu", input->path, complete);
	return result;
}

/* ---- clocks: how each input is put on the common axis of time ---- */

/* What all inputs are put into relation with. */
struct axis {
	const struct log *log;
	struct merge_input *inputs;
	size_t count;
	const struct merge_input *reference; /* the first xputrace trace; NULL: there is none */
	bool monotonic;			     /* an input is by CLOCK_MONOTONIC */
	__s64 base;			     /* without: ns since 1970 at which the axis begins */
};

static int refuse(const struct axis *axis, const struct merge_input *input, const char *reason)
{
	log_error(axis->log, "%s: %s; or say what to add to its times, with --offset %s=TIME", input->path, reason,
		  input->path);
	return -EINVAL;
}

/* "CLOCK_MONOTONIC, ...; within 12 us, 345 events" */
static void say(const struct axis *axis, const struct merge_input *input, const char *how)
{
	__u64 within = input->uncertainty + (input->fine ? 1 : 1000);

	log_info(axis->log, "%s: %s; within %llu %s, %llu events", input->path, how,
		 within < 1000 ? within : (within + 999) / 1000, within < 1000 ? "ns" : "us", input->events);
}

static int same_boot(const struct axis *axis)
{
	for (size_t i = 0; i < axis->count; i++) {
		const struct merge_input *input = &axis->inputs[i];

		if (!input->numbers.ours || !strcmp(input->boot, axis->reference->boot))
			continue;
		log_error(axis->log,
			  "%s: is of another machine or boot than %s: its clock and its processes are different ones",
			  input->path, axis->reference->path);
		return -EINVAL;
	}
	return 0;
}

/* ---- the clock on the wall ---- */

/* How far the relation of both clocks has moved between the xputrace traces: the real-time clock was set. */
static __u64 pairs_differ(const struct axis *axis)
{
	__s64 first = axis->reference->realtime - axis->reference->monotonic;
	__u64 most = 0;

	for (size_t i = 0; i < axis->count; i++) {
		const struct merge_input *input = &axis->inputs[i];
		__s64 other = input->realtime - input->monotonic;

		if (input->numbers.ours && (__u64)llabs(other - first) > most)
			most = llabs(other - first);
	}
	return most;
}

static int by_wall(const struct axis *axis, struct merge_input *input)
{
	const struct merge_input *reference = axis->reference;
	char how[256];

	if (!axis->monotonic) {
		input->numbers.shift = input->base - axis->base;
		say(axis, input, "clock on the wall (baseTimeNanoseconds)");
		return 0;
	}
	if (!reference)
		return refuse(axis, input,
			      "counts from 1970, others from boot: give a trace of xputrace of that time too");
	input->numbers.shift = input->base - reference->realtime + reference->monotonic;
	input->uncertainty = PAIR_UNCERTAINTY + pairs_differ(axis);
	snprintf(how, sizeof(how), "clock on the wall (baseTimeNanoseconds), which %.100s relates to CLOCK_MONOTONIC",
		 reference->path);
	say(axis, input, how);
	return 0;
}

/* ---- no clock: profiles of ONNX Runtime ---- */

static size_t spans_of(const struct merge_spans *spans, __u32 process, struct merge_span *to, size_t at)
{
	for (size_t i = 0; i < spans->count; i++) {
		if (spans->items[i].process == process)
			to[at++] = spans->items[i].span;
	}
	return at;
}

static const char *verdict_text(enum merge_verdict verdict)
{
	switch (verdict) {
	case MERGE_NO_CALLS:
		return "no xputrace trace has a call of Run on the threads of its runs: give one of the same process and "
		       "time (processes in a container have other numbers there)";
	case MERGE_TOO_FEW:
		return "it or the xputrace traces have less than three runs, which are too few to find their offset";
	case MERGE_NO_FIT:
		return "there is no offset at which each of its runs lies in a call of Run of the xputrace traces, or too few "
		       "do: they must be of the same time and process, with eight runs in common or all, and no call "
		       "left out or lost";
	case MERGE_AMBIGUOUS:
		return "its runs are so regular that several offsets to the xputrace traces are possible";
	default:
		return "its runs are too many and too regular to find the offset to the xputrace traces";
	}
}

static int by_runs(const struct axis *axis, struct merge_input *input)
{
	__u32 process = input->runs.items[0].process;
	struct merge_span *runs, *calls;
	size_t most = 0, run_count, call_count = 0;
	enum merge_verdict verdict;
	struct merge_fit fit;
	char how[256];
	int error = 0;

	for (size_t i = 0; i < axis->count; i++)
		most += axis->inputs[i].numbers.ours ? axis->inputs[i].calls.count : 0;
	runs = calloc(input->runs.count, sizeof(*runs));
	calls = calloc(most + 1, sizeof(*calls));
	if (!runs || !calls) {
		error = -ENOMEM;
		goto out;
	}
	run_count = spans_of(&input->runs, process, runs, 0);
	for (size_t i = 0; i < axis->count; i++) {
		if (axis->inputs[i].numbers.ours)
			call_count = spans_of(&axis->inputs[i].calls, process, calls, call_count);
	}
	verdict = merge_match(runs, run_count, calls, call_count, &fit);
	if (verdict != MERGE_FITS) {
		error = refuse(axis, input, verdict_text(verdict));
		goto out;
	}
	input->numbers.shift = fit.offset;
	input->uncertainty = fit.uncertainty;
	snprintf(how, sizeof(how), "no clock, but %zu of its %zu runs lie in calls of Run of process %u", fit.matched,
		 run_count, process);
	say(axis, input, how);
out:
	free(runs);
	free(calls);
	return error;
}

/* ---- all ---- */

static int place(const struct axis *axis, struct merge_input *input)
{
	switch (input->clock) {
	case MERGE_CLOCK_GIVEN:
		say(axis, input, "as --offset says");
		return 0;
	case MERGE_CLOCK_MONOTONIC:
		say(axis, input,
		    input->numbers.ours ? "CLOCK_MONOTONIC, of xputrace" : "CLOCK_MONOTONIC (clock-domain)");
		return 0;
	case MERGE_CLOCK_WALL:
		return by_wall(axis, input);
	default:
		if (input->runs.count)
			return by_runs(axis, input);
		return refuse(axis, input, "its clock is unknown");
	}
}

int merge_clocks(const struct log *log, struct merge_input *inputs, size_t count)
{
	struct axis axis = { .log = log, .inputs = inputs, .count = count };
	bool based = false;
	int error;

	for (size_t i = 0; i < count; i++) {
		if (inputs[i].numbers.ours && !axis.reference)
			axis.reference = &inputs[i];
		axis.monotonic |= inputs[i].clock == MERGE_CLOCK_MONOTONIC;
		if (inputs[i].clock == MERGE_CLOCK_WALL && !based) {
			axis.base = inputs[i].base;
			based = true;
		}
	}
	error = axis.reference ? same_boot(&axis) : 0;
	for (size_t i = 0; i < count && !error; i++) {
		error = place(&axis, &inputs[i]);
		if (!error && (inputs[i].numbers.shift >= SHIFT_MAX || inputs[i].numbers.shift <= -SHIFT_MAX))
			error = refuse(&axis, &inputs[i], "its clock is more than 146 years away from the others");
	}
	return error;
}
