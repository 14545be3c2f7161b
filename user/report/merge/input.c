/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/merge/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"

#define SPAN_TIME_MAX (1ll << 60) /* ns: sums of four such times are in range */
#define CLOCK_MAX (1ull << 62)	  /* ns */
#define DEVICES_MAX 1024

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
