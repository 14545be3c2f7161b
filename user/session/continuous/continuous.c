/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_continuous_*(): a consumer that keeps records in a window. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/options.h"
#include "base/core/process.h"
#include "control/message.h"
#include "session/continuous/options.h"
#include "session/continuous/private.h"

/* ---- the collecting thread ---- */

/* What is in the window now, for those who ask. */
static void tell_status(struct xpt_continuous *continuous, __u64 now)
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
	status->elapsed = now - collector->started;
	status->processes = collector->followed_map.count;
	status->calls = collector->calls;
	status->lost = collector->lost + window.lost;
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
static void look_at_window(struct xpt_continuous *continuous, __u64 now)
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
		log_error(&continuous->collector->log, "%s: cannot be saved: %s", continuous->save_reason,
			  strerror(-error));
	}
}

static __u64 on_work(void *context, __u64 now)
{
	struct xpt_continuous *continuous = context;

	look_at_window(continuous, now);
	if (__atomic_exchange_n(&continuous->signalled, 0, __ATOMIC_RELAXED))
		continuous_fire(continuous, now, "signal");
	if (now >= continuous->save_due)
		save_by_trigger(continuous);
	if (continuous->control)
		control_work(continuous->control);
	if (continuous->hooks.turn && now >= continuous->hooks_due)
		continuous->hooks_due = continuous->hooks.turn(continuous->hooks.context, now);
	saves_take(continuous, now);
	saves_told(continuous);
	tell_status(continuous, now);
	return continuous->hooks_due < continuous->save_due ? continuous->hooks_due : continuous->save_due;
}

/* Whether it can be run at all is known, and reported, before the start succeeds. */
static int await_command(struct collector *collector)
{
	struct pollfd known = { .fd = collector->command.failure, .events = POLLIN };

	while (poll(&known, 1, -1) < 0 && errno == EINTR)
		;
	return collector_work(collector);
}

static int on_started(void *context)
{
	struct xpt_continuous *continuous = context;
	int error = continuous->collector->command.pid ? await_command(continuous->collector) : 0;

	if (error)
		return error;
	tell_status(continuous, clock_monotonic());
	error = thread_start(&continuous->saving, saves_run, continuous, "xpt-save");
	continuous->has_saving = !error;
	return error;
}

int continuous_start(const struct xpt_continuous_options *options, const struct continuous_hooks *hooks,
		     struct xpt_continuous **result)
{
	static const struct consumer consumer = {
		.record = continuous_record,
		.admit = continuous_admit,
		.leave = continuous_leave,
		.started = on_started,
		.work = on_work,
	};
	struct xpt_continuous *continuous;
	int error = continuous_check(options);

	if (error)
		return error;
	continuous = continuous_alloc(&consumer, hooks);
	if (!continuous)
		return -ENOMEM;
	*result = continuous; /* the hooks need it */
	error = continuous_create(continuous, options);
	if (!error)
		error = session_start(continuous->session);
	if (error) {
		xpt_continuous_stop(continuous);
		*result = NULL;
	}
	return error;
}

int xpt_continuous_start(const struct xpt_continuous_options *options, struct xpt_continuous **result)
{
	const struct continuous_hooks none = {};

	return continuous_start(options, &none, result);
}

/* ---- callers ---- */

int xpt_continuous_save(struct xpt_continuous *continuous, const struct xpt_save_options *options,
			struct xpt_saved *saved)
{
	char reason[REASON_MAX];
	struct save *save;
	int error = save_create(options, &save, reason);

	if (error)
		return error;
	snprintf(save->reason, sizeof(save->reason), "as the program asked for");
	save->awaited = true;
	pthread_mutex_lock(&continuous->session->lock);
	error = continuous->session->ending ? -ECANCELED : saves_ask(continuous, save);
	if (!error) {
		collector_wake(continuous->collector);
		while (!save->done)
			session_wait_change(continuous->session);
		error = save->error;
	}
	pthread_mutex_unlock(&continuous->session->lock);
	if (!error && saved)
		error = options_give(saved, &save->saved, sizeof(save->saved));
	save_free(save);
	return error;
}

void xpt_continuous_trigger(struct xpt_continuous *continuous)
{
	__atomic_store_n(&continuous->signalled, 1, __ATOMIC_RELAXED);
	collector_wake(continuous->collector);
}

int xpt_continuous_status(struct xpt_continuous *continuous, struct xpt_continuous_status *status)
{
	struct xpt_continuous_status now;

	pthread_mutex_lock(&continuous->session->lock);
	now = continuous->status;
	pthread_mutex_unlock(&continuous->session->lock);
	return options_give(status, &now, sizeof(now));
}

static int has_stopped(void *context)
{
	const struct xpt_continuous *continuous = context;

	return session_disturbed(continuous->session) ?: continuous->stopped;
}

int xpt_continuous_wait(struct xpt_continuous *continuous, uint64_t timeout)
{
	return session_await(continuous->session, timeout, has_stopped, continuous);
}

void xpt_continuous_interrupt(struct xpt_continuous *continuous)
{
	xpt_session_interrupt(continuous->session);
}

int xpt_continuous_command_status(struct xpt_continuous *continuous)
{
	return collector_command_status(continuous->collector);
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
		snprintf(save->reason, sizeof(save->reason), "as somebody asked for");
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

/* ---- the end ---- */

/* What was asked for and not taken will not be; what was taken is written. */
static void end_saves(struct xpt_continuous *continuous)
{
	struct save *save;

	pthread_mutex_lock(&continuous->session->lock);
	while ((save = save_list_take(&continuous->asked))) {
		save->error = -ECANCELED;
		snprintf(save->why, sizeof(save->why), "it was stopped meanwhile");
		save_list_add(&continuous->written, save);
	}
	continuous->closing = true;
	pthread_cond_signal(&continuous->queued);
	pthread_mutex_unlock(&continuous->session->lock);
	if (continuous->has_saving)
		pthread_join(continuous->saving, NULL);
	continuous->has_saving = false;
	pthread_mutex_lock(&continuous->session->lock);
	saves_told(continuous);
	pthread_cond_broadcast(&continuous->session->changed);
	pthread_mutex_unlock(&continuous->session->lock);
}

void continuous_end(struct xpt_continuous *continuous)
{
	if (!continuous->session)
		return;
	session_stop(continuous->session);
	end_saves(continuous);
	if (continuous->session->finished)
		collector_check_names(continuous->collector, continuous->model);
}

void xpt_continuous_stop(struct xpt_continuous *continuous)
{
	if (!continuous)
		return;
	continuous_end(continuous);
	continuous_free(continuous);
}
