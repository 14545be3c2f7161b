/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/samples.h"

#include <math.h>
#include <string.h>

static bool has(__u32 have, enum xpt_meaning meaning)
{
	return have & (1u << meaning);
}

static void read_device(const struct model_device_times *device, struct xpt_sample *sample)
{
	sample->time[XPT_TIME_SUBMIT_BEGINS] = device->submit_begins;
	sample->time[XPT_TIME_SUBMIT_ENDS] = device->submit_ends;
	sample->jobs = device->jobs;
	sample->time[XPT_TIME_DEVICE_RUNS] = device->runs;
	sample->time[XPT_TIME_DEVICE_DONE] = device->done;
	if (device->unfinished)
		return;
	sample->device_time = device->device_time;
	sample->queue_time = device->queue_time;
}

static void read_counts(const struct model_counts *counts, struct xpt_sample *sample)
{
	_Static_assert(XPT_SAMPLE_COUNTERS == XPT_SLOT_MAX, "room for all");
	for (unsigned int i = 0; i < XPT_SAMPLE_COUNTERS; i++)
		sample->counter[i] = i < counts->count ? counts->value[i] : NAN;
}

static void read_states(const struct model_states *states, struct xpt_sample *sample)
{
	sample->has_states = states->calls > 0;
	sample->cpu_time = states->cpu;
	sample->waited_time = states->waited;
	sample->blocked_time = states->blocked;
	sample->voluntary_switches = (__u32)states->voluntary;
	sample->involuntary_switches = (__u32)states->involuntary;
	sample->minor_faults = states->minor_faults;
	sample->major_faults = (__u32)states->major_faults;
}

static void read_call(const struct event_call *call, struct inference *result)
{
	*result = (struct inference){
		.program = call->program,
		.start = call->start,
		.end = call->end,
		.numbered = call->numbered,
		.sample = { .size = sizeof(struct xpt_sample),
			    .number = call->number,
			    .time = { [XPT_TIME_CALL_BEGINS] = call->start, [XPT_TIME_CALL_ENDS] = call->end },
			    .bytes = has(call->have, XPT_MEANING_SIZE) ? call->size : 0,
			    .tid = call->tid,
			    .has_status = has(call->have, XPT_MEANING_STATUS),
			    .status = call->status,
			    .status_name = call->status_name,
			    .has_core = has(call->have, XPT_MEANING_CORE),
			    .core = call->core,
			    .failed = call->outcome == OUTCOME_FAILED,
			    .prefill_tokens = call->phase == PHASE_PREFILL ? call->tokens : 0,
			    .decode_tokens = call->phase == PHASE_DECODE ? call->tokens : 0,
			    .first_token = call->first_token,
			    .output_token = call->output_token },
	};
	read_counts(&call->counts, &result->sample);
	read_states(&call->states, &result->sample);
	if (call->function->role != XPT_ROLE_LAUNCH) {
		read_device(&call->device, &result->sample);
		return;
	}
	/* It returns before its work is done, at an unknown time. */
	result->unended = true;
	result->end = result->sample.time[XPT_TIME_CALL_ENDS] = 0;
	result->sample.enqueued = call->end;
	result->sample.time[XPT_TIME_SUBMIT_BEGINS] = call->device.submit_begins;
	result->sample.time[XPT_TIME_SUBMIT_ENDS] = call->device.submit_ends;
	result->sample.jobs = call->device.jobs;
}

static void read_inference(const struct event_inference *inference, bool unpaired, struct inference *result)
{
	const bool launch = inference->function->role == XPT_ROLE_LAUNCH;
	const __u64 end = launch ? inference->completed : inference->end;

	*result = (struct inference){
		.program = inference->program,
		.start = inference->start,
		.end = end,
		.unpaired = unpaired && !launch,
		.unended = unpaired && launch,
		.numbered = inference->numbered,
		.sample = { .size = sizeof(struct xpt_sample),
			    .number = inference->number,
			    .time = { [XPT_TIME_CALL_BEGINS] = inference->start, [XPT_TIME_CALL_ENDS] = end },
			    .enqueued = inference->enqueued,
			    .bytes = has(inference->have, XPT_MEANING_SIZE) ? inference->size : 0,
			    .tid = inference->tid,
			    .has_in_queue = !launch,
			    .in_queue = inference->in_queue > UINT32_MAX ? UINT32_MAX : (__u32)inference->in_queue,
			    .has_status = has(inference->have, XPT_MEANING_STATUS),
			    .status = inference->status,
			    .status_name = inference->status_name,
			    .has_core = has(inference->have, XPT_MEANING_CORE),
			    .core = inference->core,
			    .failed = inference->outcome == OUTCOME_FAILED },
	};
	read_device(&inference->device, &result->sample);
	read_counts(&inference->counts, &result->sample);
	read_states(&inference->states, &result->sample);
}

static void read_region(const struct event_region *region, struct inference *result)
{
	*result = (struct inference){
		.program = region->program,
		.start = region->start,
		.end = region->end,
		.numbered = true,
		.sample = { .size = sizeof(struct xpt_sample),
			    .number = region->number,
			    .time = { [XPT_TIME_CALL_BEGINS] = region->start, [XPT_TIME_CALL_ENDS] = region->end },
			    .tid = region->tid },
	};
	read_counts(&(struct model_counts){}, &result->sample);
}

bool inference_read(const struct event *event, struct inference *result)
{
	const struct event_inference *inference = &event->inference;

	switch (event->kind) {
	case EVENT_CALL:
		if (!call_is_inference(&event->call))
			return false;
		read_call(&event->call, result);
		break;
	case EVENT_INFERENCE:
	case EVENT_UNPAIRED:
		if (!inference->program)
			return false;
		read_inference(inference, event->kind == EVENT_UNPAIRED, result);
		break;
	case EVENT_REGION:
		if (!event->region.program)
			return false;
		read_region(&event->region, result);
		break;
	default:
		return false;
	}
	return true;
}

__u64 event_time(const struct event *event)
{
	switch (event->kind) {
	case EVENT_CALL:
		return event->call.end;
	case EVENT_INFERENCE:
		return event->inference.end;
	case EVENT_COUNTER:
		return event->counter.time;
	case EVENT_PROGRAM:
		return event->program.time;
	case EVENT_LOST:
		return event->lost.time;
	case EVENT_WAITED:
		return event->waited.end;
	case EVENT_TASK:
		return event->task.time;
	case EVENT_REGION:
		return event->region.end;
	case EVENT_COUNT:
		return event->count.time;
	case EVENT_JOB:
		return event->job.time;
	case EVENT_QUEUE:
		return event->queue.time;
	case EVENT_DEVICE:
		return event->device.time;
	case EVENT_IOCTL:
		return event->ioctl.end;
	case EVENT_OFF_CPU:
		return event->off_cpu.end;
	case EVENT_READING:
		return event->reading.time;
	case EVENT_LAUNCH:
		return event->launch.end;
	case EVENT_CODE:
		return event->code.time;
	case EVENT_BUDGET:
		return event->budget->time;
	default:
		return 0;
	}
}

bool program_is_others(const struct model_program *program)
{
	return !program->handle && !strcmp(program->name, "(others)");
}
