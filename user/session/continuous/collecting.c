/* SPDX-License-Identifier: BSD-2-Clause */
/* The collecting thread: from the collector into the window and the model, triggers, requests through the control socket. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "control/control.h"
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

/* A request to save what happens now, which the limits may refuse. */
static void fire(struct xpt_continuous *continuous, __u64 now, const char *reason)
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
		fire(continuous, clock_monotonic(), reason);
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
							  call->outcome == OUTCOME_FAILED, &call->states });
}

static int on_event(void *context, const struct event *event)
{
	const struct event_inference *inference = &event->inference;
	const struct event_region *region = &event->region;
	struct xpt_continuous *continuous = context;
	struct xpt_record_text *record;
	struct past_change change;

	if (record_change(event, &change, &record)) {
		window_change(continuous->window, &change, record);
		free(record);
	}
	switch (event->kind) {
	case EVENT_CALL:
		on_call(continuous, &event->call);
		break;
	case EVENT_UNPAIRED: /* of launches most are not waited for */
		if (inference->function->role == XPT_ROLE_ENQUEUE)
			break;
		/* fall through */
	case EVENT_INFERENCE:
		if (inference->program)
			on_inference(continuous, inference->program,
				     &(struct trigger_inference){
					     inference->program->id, inference->start, inference->completed,
					     inference->outcome == OUTCOME_FAILED, &inference->states });
		break;
	case EVENT_REGION:
		if (region->program)
			on_inference(continuous, region->program,
				     &(struct trigger_inference){ region->program->id, region->start, region->end,
								  false, NULL });
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

/* ---- requests through the control socket ---- */

static void request_save(struct xpt_continuous *continuous, struct control_request *request, const cJSON *body)
{
	struct xpt_save_options options;
	const char *member = "";
	char reason[REASON_MAX] = "";
	struct save *save;
	int error = control_read_save(body, &options, &member);

	if (error)
		snprintf(reason, sizeof(reason), "\"%s\" has the wrong type or value (see CONTROL.md)", member);
	else
		error = save_create(&options, &save, reason);
	if (!error) {
		snprintf(save->reason, sizeof(save->reason), "on request");
		save->request = request;
		error = saves_ask(continuous, save);
		if (error) {
			snprintf(reason, sizeof(reason), "too many saves wait already");
			save_free(save);
		}
	}
	if (error)
		control_refuse(request, error, *reason ? reason : strerror(-error));
}

void continuous_answer_save(struct save *save)
{
	if (save->error) {
		control_refuse(save->request, save->error, *save->why ? save->why : strerror(-save->error));
	} else {
		control_add_saved(control_answer_begin(save->request), &save->saved);
		control_answer_end(save->request);
	}
	save->request = NULL;
}

static void request_status(struct xpt_continuous *continuous, struct control_request *request)
{
	control_add_status(control_answer_begin(request), &continuous->status);
	control_answer_end(request);
}

/* The reply is sent when everything is detached. */
static void request_stop(struct xpt_continuous *continuous, struct control_request *request)
{
	if (continuous->stop_request) {
		control_refuse(request, -EALREADY, "it is stopping already");
		return;
	}
	continuous->stop_request = request;
	continuous->stopped = true;
}

void continuous_answer_stop(struct xpt_continuous *continuous)
{
	if (continuous->stop_request) {
		control_answer_begin(continuous->stop_request);
		control_answer_end(continuous->stop_request);
	}
	continuous->stop_request = NULL;
}

void continuous_handle(void *context, struct control_request *request, const cJSON *body)
{
	const char *what = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "do"));
	struct xpt_continuous *continuous = context;

	if (!strcmp(what, "save"))
		request_save(continuous, request, body);
	else if (!strcmp(what, "status"))
		request_status(continuous, request);
	else if (!strcmp(what, "stop"))
		request_stop(continuous, request);
	else
		control_refuse(request, -EOPNOTSUPP, "unknown \"do\": expected save, status or stop");
}

/* ---- periodic work ---- */

/* What is in the window now, for those who ask. */
void continuous_update_status(struct xpt_continuous *continuous, __u64 now)
{
	struct xpt_continuous_status *status = &continuous->status;
	const struct collector *collector = continuous->collector;
	struct window_figures window;
	struct inference_index_figures recent;
	struct rusage usage;

	window_figures(continuous->window, &window);
	inference_index_figures(continuous->recent, &recent);
	getrusage(RUSAGE_SELF, &usage);
	status->pid = getpid();
	status->elapsed = now - continuous->consumer.begun;
	status->processes = collector->followed_map.count;
	status->calls = continuous->consumer.calls;
	status->lost = collector->lost - continuous->consumer.before.lost + window.lost;
	status->window_time = now > window.begin ? now - window.begin : 0;
	if (status->window_time > status->elapsed)
		status->window_time = status->elapsed; /* it began before the first probe */
	status->window_bytes = window.bytes;
	status->window_records = window.records;
	status->window_inferences = recent.inferences;
	status->evicted_records = window.evicted;
	status->evicted_inferences = recent.evicted;
	status->triggered = continuous->triggered;
	status->suppressed = 0;
	for (int answer = SAVE_MAY + 1; answer < SAVE_ANSWERS; answer++)
		status->suppressed += continuous->limits.answers[answer];
	status->cpu_time = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000ull +
			   (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ull;
}

/* The index of inferences is evicted with the window, and counts towards its size. */
static void evict(struct xpt_continuous *continuous, __u64 now)
{
	struct window_figures window;
	struct inference_index_figures recent;

	window_expire(continuous->window, now);
	inference_index_figures(continuous->recent, &recent);
	window_reserve(continuous->window, recent.bytes);
	window_figures(continuous->window, &window);
	inference_index_begin(continuous->recent, window.begin);
}

static void save_by_trigger(struct xpt_continuous *continuous)
{
	struct save *save;
	char reason[REASON_MAX];
	int error = save_create(NULL, &save, reason);

	continuous->save_due = ~0ull;
	if (!error) {
		save->by_trigger = true;
		snprintf(save->reason, sizeof(save->reason), "%s", continuous->save_reason);
		error = saves_ask(continuous, save);
		if (error)
			save_free(save);
	}
	if (error) {
		save_limits_done(&continuous->limits, 0);
		continuous->status.failed_saves++;
		log_error(&continuous->collector->log, "%s: cannot be saved: %s", continuous->save_reason,
			  strerror(-error));
	}
}

__u64 continuous_work(void *context, __u64 now)
{
	struct xpt_continuous *continuous = context;

	evict(continuous, now);
	if (__atomic_exchange_n(&continuous->signalled, 0, __ATOMIC_RELAXED))
		fire(continuous, now, "signal");
	if (now >= continuous->save_due)
		save_by_trigger(continuous);
	if (continuous->control)
		control_work(continuous->control);
	if (continuous->hooks.work && now >= continuous->hooks_due)
		continuous->hooks_due = continuous->hooks.work(continuous->hooks.context, now);
	saves_take(continuous, now);
	saves_report(continuous);
	continuous_update_status(continuous, now);
	return continuous->hooks_due < continuous->save_due ? continuous->hooks_due : continuous->save_due;
}
