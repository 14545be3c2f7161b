/* SPDX-License-Identifier: BSD-2-Clause */
/* Selects events for the traces of runs. */
#include "profile/handle/state.h"

static const struct model_program *program_of(const struct event *event)
{
	switch (event->kind) {
	case EVENT_CALL:
		return event->call.program;
	case EVENT_INFERENCE:
		return event->inference.program;
	case EVENT_PROGRAM:
		return event->program.program;
	case EVENT_REGION:
		return event->region.program;
	default:
		return NULL;
	}
}

static struct member *member_of(const struct run *run, const struct event *event)
{
	const struct model_program *program = program_of(event);
	const struct entry *entry = program ? catalogue_find(&run->handle->profiling->catalogue, program->id) : NULL;
	struct member *member = entry ? selection_find(entry, run) : NULL;

	if (!member || event_time(event) > member->until)
		return NULL;
	return run->bound && run->bound != program->id ? NULL : member;
}

/* It begins an inference, the end of which is reported later. */
static bool begins_inference(const struct event *event)
{
	return event->kind == EVENT_CALL && event->call.flow_out && !event->call.layer;
}

/* Inferences end in the order in which they began, or nearly so: those that a counted run will take are about these. */
static bool counted_wants_begin(const struct run *run, const struct event_call *call)
{
	const struct handle_options *options = &run->handle->options;

	return !run->ended && call->start >= run->from && run->enqueued > options->skip &&
	       run->enqueued <= options->skip + options->samples;
}

static bool call_wanted(const struct run *run, const struct event *event)
{
	const struct event_call *call = &event->call;

	switch (call->function->role) {
	case XPT_ROLE_PROGRAM_LOAD:
	case XPT_ROLE_PROGRAM_READY:
	case XPT_ROLE_PROGRAM_NAME:
	case XPT_ROLE_PROGRAM_UNLOAD:
		return true;
	case XPT_ROLE_ENQUEUE:
	case XPT_ROLE_LAUNCH:
		if (!begins_inference(event))
			return false;
		if (!run->handle->options.stream)
			return counted_wants_begin(run, call);
		return take_selects(run, call->numbered, call->number);
	default:
		return false;
	}
}

bool take_wanted(void *context, const struct event *event)
{
	const struct run *run = context;
	struct inference inference;

	if (inference_read(event, &inference))
		return run->sampled;
	if (!member_of(run, event))
		return false;
	if (event->kind == EVENT_CALL)
		return call_wanted(run, event);
	return event->kind == EVENT_PROGRAM;
}

static void trace_take(struct run *run, const struct event *event, __u64 time)
{
	struct profiling *profiling = run->handle->profiling;
	struct report *report = intervals_at(run, time);
	struct trace_text *text = report ? draft_trace(report, profiling->names) : NULL;
	__u64 lost = 0;

	if (begins_inference(event) && event->call.start >= run->from && member_of(run, event))
		run->enqueued++;
	if (trace_event(run->trace, event, text, &lost))
		log_out_of_memory(profiling);
	run->sampled = false;
	if (report)
		report->trace_lost += lost;
	if (text)
		draft_trace_grown(report);
}

/* A job is emitted when the call that has submitted it is known, and belongs to the same document. */
static __u64 place_of(const struct profiling *profiling, const struct event *event, __u64 time)
{
	return time && event->kind != EVENT_JOB ? time : profiling->now;
}

void take_traces(struct profiling *profiling, const struct event *event, __u64 time)
{
	struct run *run;

	link_for_each(run, &profiling->runs, link) {
		if (run->trace)
			trace_take(run, event, place_of(profiling, event, time));
	}
}
