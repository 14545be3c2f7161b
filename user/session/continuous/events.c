/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/core/clock.h"
#include "session/continuous/private.h"
#include "session/reader/describe_records.h"

/* Exact counts are of the whole life of a program, not of the window. */
static bool is_of_window(__u16 kind)
{
	return kind != XPT_RECORD_TOTAL && kind != XPT_RECORD_COUNT && kind != XPT_RECORD_END;
}

static void note_spec(struct xpt_continuous *continuous, const struct xpt_record_header *record)
{
	const struct registry *registry = continuous->collector->registry;
	const struct xpt_record_text *text = (const void *)record;

	if (text->id < registry->spec_count && text->id < XPT_SPEC_MAX)
		continuous->roles[text->id] = registry->specs[text->id]->wire.role;
}

void continuous_record(void *context, const struct xpt_record_header *record)
{
	struct xpt_continuous *continuous = context;
	struct collector *collector = continuous->collector;
	const struct continuous_hooks *hooks = &continuous->hooks;
	bool kept = is_of_window(record->kind) && (!hooks->keeps || hooks->keeps(hooks->context, record));
	int error = kept ? window_add(continuous->window, record) : 0;

	if (record->kind == XPT_RECORD_SPEC)
		note_spec(continuous, record);
	if (model_feed(continuous->model, record) == -ENOMEM)
		error = -ENOMEM;
	if (error && !collector->error) {
		log_error(&collector->log, "no memory for what was recorded");
		collector->error = error;
	}
}

/* ---- triggers ---- */

void continuous_fire(struct xpt_continuous *continuous, __u64 now, const char *reason)
{
	const struct log *log = &continuous->collector->log;
	enum save_answer answer = save_limits_ask(&continuous->limits, now);
	char text[REASON_MAX];

	continuous->triggered++;
	if (answer == SAVE_MAY) {
		continuous->save_due = now + continuous->after;
		snprintf(continuous->save_reason, sizeof(continuous->save_reason), "%s", reason);
		log_info(log, "%s: will be saved", reason);
	} else if ((answer == SAVE_FILES || answer == SAVE_BYTES) && continuous->limits.answers[answer] == 1) {
		save_limits_text(&continuous->limits, answer, now, text, sizeof(text));
		log_warn(log, "%s: not saved, %s", reason, text);
	}
}

static void on_inference(struct xpt_continuous *continuous, const struct model_program *program,
			 const struct trigger_inference *inference)
{
	char reason[REASON_MAX];

	for (size_t i = 0; i < continuous->trigger_count; i++) {
		if (trigger_inference(continuous->triggers[i], inference) != 1)
			continue;
		trigger_reason(continuous->triggers[i], program->name, reason, sizeof(reason));
		continuous_fire(continuous, clock_monotonic(), reason);
	}
}

bool continuous_is_run(const struct event_call *call)
{
	enum xpt_role role = call->function->role;

	return call->program && !call->layer &&
	       (role == XPT_ROLE_EXECUTE || role == XPT_ROLE_LAUNCH ||
		(role == XPT_ROLE_ENQUEUE && call->outcome == OUTCOME_FAILED));
}

static void on_call(struct xpt_continuous *continuous, const struct event_call *call)
{
	bool timed = !call->no_end && call->function->role == XPT_ROLE_EXECUTE;

	if (continuous_is_run(call) && !call->flow_out)
		on_inference(continuous, call->program,
			     &(struct trigger_inference){ call->program->id, call->start, timed ? call->end : 0,
							  call->outcome == OUTCOME_FAILED });
}

/* ---- names ---- */

/* Handles of regions mean what they were given as names. */
static void on_region_call(struct xpt_continuous *continuous, const struct event_call *call)
{
	struct xpt_record_text *record;

	if (call->function->role == XPT_ROLE_REGION_RELEASE) {
		window_release_region(continuous->window, call->tgid, call->handle, call->start);
		return;
	}
	record = call->function->role == XPT_ROLE_REGION_NAME && call->name ? record_loaded_region(call) : NULL;
	if (record)
		window_name_region(continuous->window, record);
}

static void on_program(struct xpt_continuous *continuous, const struct event_program *event)
{
	const struct model_program *program = event->program;
	struct xpt_record_text *record;

	if (event->released) {
		window_release(continuous->window, program->process->tgid, program->runtime_index, program->handle,
			       event->time);
		return;
	}
	record = record_loaded(program, event->time);
	if (record)
		window_load(continuous->window, program->runtime_index, record);
}

static int on_event(void *context, const struct event *event)
{
	const struct event_inference *inference = &event->inference;
	const struct event_region *region = &event->region;
	struct xpt_continuous *continuous = context;

	switch (event->kind) {
	case EVENT_CALL:
		on_call(continuous, &event->call);
		on_region_call(continuous, &event->call);
		break;
	case EVENT_UNPAIRED: /* of launches most are not waited for */
		if (inference->function->role == XPT_ROLE_ENQUEUE)
			break;
		/* fall through */
	case EVENT_INFERENCE:
		if (inference->program)
			on_inference(continuous, inference->program,
				     &(struct trigger_inference){ inference->program->id, inference->start,
								  inference->completed,
								  inference->outcome == OUTCOME_FAILED });
		break;
	case EVENT_REGION:
		if (region->program)
			on_inference(continuous, region->program,
				     &(struct trigger_inference){ region->program->id, region->start, region->end,
								  false });
		break;
	case EVENT_PROGRAM:
		on_program(continuous, &event->program);
		break;
	default:
		break;
	}
	return 0;
}

struct event_sink continuous_sink(struct xpt_continuous *continuous)
{
	return (struct event_sink){ on_event, continuous };
}
