/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_continuous_*(): a collector whose records stay in a window, on a thread of its own. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/thread.h"
#include "session/continuous_options.h"
#include "session/continuous_private.h"

#define KEEP_RELEASED 1024 /* programs and processes that are gone */

/* ---- creation ---- */

static int create_collector(struct xpt_continuous *continuous, const struct xpt_continuous_options *options)
{
	const struct xpt_session_options *targets = &options->targets;
	const struct collector_options collector_options = {
		COLLECTOR_OPTIONS(targets),
		.sample_every = options->sample_every,
		.counters = targets->counters,
		.counter_count = targets->counter_count,
		.counter_tracks = true,
		.counters_every = options->counters_every,
		.counters_per_inference = options->counters_per_inference,
		.level = options->level,
		.admit = continuous_admit,
		.leave = continuous_leave,
		.record = continuous_record,
		.context = continuous,
	};

	return collector_create(&collector_options, &continuous->collector);
}

static int create_window(struct xpt_continuous *continuous, const struct xpt_continuous_options *options)
{
	const struct window_options window_options = {
		.bytes = options->window_bytes,
		.span = options->window_time,
		.begin = clock_monotonic(),
	};
	int error = window_create(&window_options, &continuous->window);

	if (!error)
		error = recent_create(&continuous->recent);
	if (!error)
		error = model_create(&continuous->collector->log, &continuous->model);
	if (error)
		return error;
	model_keep_released(continuous->model, KEEP_RELEASED);
	error = model_add_sink(continuous->model, recent_sink(continuous->recent));
	return error ?: model_add_sink(continuous->model, continuous_sink(continuous));
}

static int create_triggers(struct xpt_continuous *continuous, const struct xpt_continuous_options *options)
{
	char reason[REASON_MAX];
	int error = 0;

	for (size_t i = 0; i < options->trigger_count && !error; i++) {
		error = trigger_parse(options->triggers[i], &continuous->triggers[i], reason, sizeof(reason));
		if (!error)
			continuous->trigger_count++;
	}
	continuous->limits.cooldown = options->cooldown;
	continuous->limits.files_most = options->files;
	continuous->limits.bytes_most = options->bytes;
	continuous->after = options->after;
	continuous->save_due = ~0ull;
	return error;
}

/* Names of files are told to others, who are elsewhere. */
static int absolute_path(const char *path, char *result)
{
	bool is_absolute = *path == '/';
	char here[PATH_MAX] = "";
	int length;

	if (!is_absolute && !getcwd(here, sizeof(here)))
		return -errno;
	length = snprintf(result, PATH_MAX, "%s%s%s", here, is_absolute ? "" : "/", path);
	return length + FOLDER_RESULT_SIZE < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int create_folder(struct xpt_continuous *continuous, const struct xpt_continuous_options *options)
{
	const struct log *log = &continuous->collector->log;
	char path[PATH_MAX];
	int error = absolute_path(options->directory, path);

	if (error) {
		log_error(log, "output directory: the name, with all that is above it, cannot be had: %s",
			  strerror(-error));
		return error;
	}
	continuous->prefix = strdup(options->name ?: "xputrace");
	if (!continuous->prefix)
		return -ENOMEM;
	return folder_open(log, path, options->user, options->group, &continuous->folder);
}

static int create_control(struct xpt_continuous *continuous, const struct xpt_continuous_options *options)
{
	struct collector *collector = continuous->collector;
	struct control_options control_options = { .handler = continuous_handle, .context = continuous };
	struct epoll_event event = { .events = EPOLLIN };
	char path[128];
	int error;

	if (!options->name)
		return 0;
	snprintf(path, sizeof(path), "%s/%s.sock", XPT_CONTROL_DIR, options->name);
	control_options.path = path;
	error = control_open(&collector->log, &control_options, &continuous->control);
	if (error)
		return error;
	event.data.fd = control_descriptor(continuous->control);
	return epoll_ctl(collector->epoll, EPOLL_CTL_ADD, event.data.fd, &event) ? -errno : 0;
}

static void create_lock(struct xpt_continuous *continuous)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&continuous->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&continuous->changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

static int check(const struct xpt_continuous_options *options)
{
	const struct xpt_session_options *targets = &options->targets;
	const struct log log = { targets->log, targets->log_context, targets->log_level };

	if (!options->has_targets)
		return -EINVAL;
	if (!targets->counter_count && (options->counters_every || options->counters_per_inference)) {
		log_error(&log, "which counters are to be read is not said");
		return -EINVAL;
	}
	if (options->trigger_count && options->window_time && options->after >= options->window_time) {
		log_error(&log,
			  "the file would be made when what the trigger saw has left the window: a window of more "
			  "time, or less time after the trigger, is needed");
		return -EINVAL;
	}
	return 0;
}

static int create(struct xpt_continuous *continuous, const struct xpt_continuous_options *options)
{
	int error = create_collector(continuous, options);

	if (!error)
		error = continuous_claim_targets(continuous, &options->targets);
	if (!error)
		error = create_folder(continuous, options);
	if (!error)
		error = create_window(continuous, options);
	if (!error)
		error = create_triggers(continuous, options);
	if (!error)
		error = collector_open(continuous->collector);
	return error ?: create_control(continuous, options);
}

/* ---- the collecting thread ---- */

/* What is in the window now, for those who ask. */
static void tell_status(struct xpt_continuous *continuous, __u64 now)
{
	struct xpt_continuous_status *status = &continuous->status;
	const struct collector *collector = continuous->collector;
	struct window_figures window;
	struct recent_figures recent;
	struct rusage usage;

	window_figures(continuous->window, &window);
	recent_figures(continuous->recent, &recent);
	getrusage(RUSAGE_SELF, &usage);
	status->pid = getpid();
	status->elapsed = now - collector->started;
	status->processes = collector->followed_count;
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

/* The index of inferences goes with the window, and counts with it. */
static void look_at_window(struct xpt_continuous *continuous, __u64 now)
{
	struct window_figures window;
	struct recent_figures recent;

	window_expire(continuous->window, now);
	recent_figures(continuous->recent, &recent);
	window_reserve(continuous->window, recent.bytes);
	window_figures(continuous->window, &window);
	recent_begin(continuous->recent, window.begin);
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
		pthread_mutex_lock(&continuous->lock);
		error = saves_ask(continuous, save);
		pthread_mutex_unlock(&continuous->lock);
		if (error)
			save_free(save);
	}
	if (error) {
		save_limits_done(&continuous->limits, 0);
		log_error(&continuous->collector->log, "%s: cannot be saved: %s", continuous->save_reason,
			  strerror(-error));
	}
}

/* What cannot be traced any more can still be saved. */
static void turn(struct xpt_continuous *continuous)
{
	int error = continuous->error ?: collector_work(continuous->collector);
	__u64 now = clock_monotonic();

	look_at_window(continuous, now);
	if (__atomic_exchange_n(&continuous->signalled, 0, __ATOMIC_RELAXED))
		continuous_fire(continuous, now, "signal");
	if (now >= continuous->save_due)
		save_by_trigger(continuous);
	if (continuous->control)
		control_work(continuous->control);
	saves_take(continuous, now);
	pthread_mutex_lock(&continuous->lock);
	if (error && !continuous->error)
		log_error(&continuous->collector->log, "tracing has stopped: %s", strerror(-error));
	continuous->error = error;
	saves_told(continuous);
	tell_status(continuous, now);
	pthread_mutex_unlock(&continuous->lock);
}

static __u64 next_due(const struct xpt_continuous *continuous)
{
	__u64 due = continuous->control ? control_due(continuous->control) : ~0ull;

	return due < continuous->save_due ? due : continuous->save_due;
}

static void *collect(void *context)
{
	struct xpt_continuous *continuous = context;
	bool ending = false;

	while (!ending) {
		collector_wait(continuous->collector, next_due(continuous));
		turn(continuous);
		pthread_mutex_lock(&continuous->lock);
		ending = continuous->ending;
		pthread_cond_broadcast(&continuous->changed);
		pthread_mutex_unlock(&continuous->lock);
	}
	return NULL;
}

/* Whether it can be run at all is known, and told, before the start counts as one. */
static int await_command(struct collector *collector)
{
	struct pollfd known = { .fd = collector->command.failure, .events = POLLIN };

	while (poll(&known, 1, -1) < 0 && errno == EINTR)
		;
	return collector_work(collector);
}

int xpt_continuous_start(const struct xpt_continuous_options *options, struct xpt_continuous **result)
{
	struct xpt_continuous *continuous;
	int error = check(options);

	if (error)
		return error;
	continuous = calloc(1, sizeof(*continuous));
	if (!continuous)
		return -ENOMEM;
	create_lock(continuous);
	save_list_init(&continuous->asked);
	save_list_init(&continuous->taken);
	save_list_init(&continuous->written);
	continuous->claims.file = -1;
	error = create(continuous, options);
	if (!error)
		error = collector_start(continuous->collector);
	if (!error && continuous->collector->command.pid)
		error = await_command(continuous->collector);
	if (!error) {
		tell_status(continuous, clock_monotonic());
		error = thread_start(&continuous->saving, saves_run, continuous, "xpt-save");
		continuous->has_saving = !error;
	}
	if (!error) {
		error = thread_start(&continuous->collecting, collect, continuous, "xpt-collect");
		continuous->has_collecting = !error;
	}
	if (error) {
		xpt_continuous_stop(continuous);
		return error;
	}
	*result = continuous;
	return 0;
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
	pthread_mutex_lock(&continuous->lock);
	error = continuous->ending ? -ECANCELED : saves_ask(continuous, save);
	if (!error) {
		collector_wake(continuous->collector);
		while (!save->done)
			pthread_cond_wait(&continuous->changed, &continuous->lock);
		error = save->error;
	}
	pthread_mutex_unlock(&continuous->lock);
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

	pthread_mutex_lock(&continuous->lock);
	now = continuous->status;
	pthread_mutex_unlock(&continuous->lock);
	return options_give(status, &now, sizeof(now));
}

int xpt_continuous_wait(struct xpt_continuous *continuous, uint64_t timeout)
{
	__u64 now = clock_monotonic(), until = timeout > ~0ull - now ? ~0ull : now + timeout;
	struct timespec time = { until / 1000000000, until % 1000000000 };
	bool late = false;
	int result;

	pthread_mutex_lock(&continuous->lock);
	for (;;) {
		result = continuous->error;
		if (!result && __atomic_exchange_n(&continuous->interrupted, 0, __ATOMIC_RELAXED))
			result = -EINTR;
		if (!result && continuous->stopped)
			result = 1;
		if (result || late)
			break;
		if (until == ~0ull)
			pthread_cond_wait(&continuous->changed, &continuous->lock);
		else
			late = pthread_cond_timedwait(&continuous->changed, &continuous->lock, &time) == ETIMEDOUT;
	}
	pthread_mutex_unlock(&continuous->lock);
	return result;
}

void xpt_continuous_interrupt(struct xpt_continuous *continuous)
{
	__atomic_store_n(&continuous->interrupted, 1, __ATOMIC_RELAXED);
	collector_wake(continuous->collector); /* its thread tells those who wait */
}

int xpt_continuous_command_status(struct xpt_continuous *continuous)
{
	const struct command *command = &continuous->collector->command;

	return command->pid ? command->status : -1;
}

/* ---- the end ---- */

/* What was asked for and not taken will not be; what was taken is written. */
static void end_saves(struct xpt_continuous *continuous)
{
	struct save *save;

	pthread_mutex_lock(&continuous->lock);
	while ((save = save_list_take(&continuous->asked))) {
		save->error = -ECANCELED;
		snprintf(save->why, sizeof(save->why), "it was stopped meanwhile");
		save_list_add(&continuous->written, save);
	}
	continuous->closing = true;
	pthread_cond_broadcast(&continuous->changed);
	pthread_mutex_unlock(&continuous->lock);
	if (continuous->has_saving)
		pthread_join(continuous->saving, NULL);
	pthread_mutex_lock(&continuous->lock);
	if (continuous->collector)
		saves_told(continuous);
	pthread_mutex_unlock(&continuous->lock);
}

static void end_threads(struct xpt_continuous *continuous)
{
	pthread_mutex_lock(&continuous->lock);
	continuous->ending = true;
	pthread_mutex_unlock(&continuous->lock);
	if (continuous->has_collecting) {
		collector_wake(continuous->collector);
		pthread_join(continuous->collecting, NULL);
	}
	end_saves(continuous);
	if (continuous->has_collecting)
		collector_finish(continuous->collector);
}

void xpt_continuous_stop(struct xpt_continuous *continuous)
{
	if (!continuous)
		return;
	end_threads(continuous);
	if (continuous->collector)
		targets_release(continuous->collector);
	collector_free(continuous->collector);
	target_claims_close(&continuous->claims);
	folder_close(continuous->folder);
	model_free(continuous->model);
	recent_free(continuous->recent);
	window_free(continuous->window);
	for (size_t i = 0; i < continuous->trigger_count; i++)
		trigger_free(continuous->triggers[i]);
	continuous_answer_stop(continuous);
	control_close(continuous->control);
	pthread_cond_destroy(&continuous->changed);
	pthread_mutex_destroy(&continuous->lock);
	free(continuous->prefix);
	free(continuous);
}
