/* SPDX-License-Identifier: BSD-2-Clause */
/* How continuous profiling is put together, and taken apart. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "session/continuous/options.h"
#include "session/continuous/private.h"

#define KEEP_RELEASED 1024 /* ended programs and processes */

static int create_session(struct xpt_continuous *continuous, const struct xpt_continuous_options *options)
{
	const struct xpt_session_options *targets = &options->targets;
	int error = session_create(
		&(struct collector_options){
			COLLECTOR_OPTIONS(targets),
			.counters = targets->counters,
			.counter_count = targets->counter_count,
			.counter_tracks = true,
			.counters_every = options->counters_every,
			.counters_per_inference = options->counters_per_inference,
		},
		&continuous->session);

	if (error)
		return error;
	continuous->collector = continuous->session->collector;
	continuous->consumer.needs = (struct collector_needs){
		.roles = collector_level_roles(options->level),
		.sample_every = options->sample_every,
	};
	return session_add(continuous->session, &continuous->consumer);
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
		error = inference_index_create(&continuous->recent);
	if (!error)
		error = model_create(&continuous->collector->log, &continuous->model);
	if (error)
		return error;
	model_keep_released(continuous->model, KEEP_RELEASED);
	error = model_add_sink(continuous->model, inference_index_sink(continuous->recent));
	if (!error && continuous->hooks.event)
		error = model_add_sink(continuous->model,
				       (struct event_sink){ continuous->hooks.event, continuous->hooks.context });
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

/* Names of files are reported to processes with other working directories. */
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
		log_error(log, "cannot resolve the path of the output directory: %s", strerror(-error));
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
	char name[128];
	const struct control_options control_options = {
		.directory = XPT_CONTROL_DIR,
		.name = name,
		.handler = continuous_handle,
		.context = continuous,
	};
	struct epoll_event event = { .events = EPOLLIN };
	int error;

	if (!options->name)
		return 0;
	snprintf(name, sizeof(name), "%s.sock", options->name);
	error = control_open(&collector->log, &control_options, &continuous->control);
	if (error)
		return error;
	event.data.fd = control_descriptor(continuous->control);
	return epoll_ctl(collector->epoll, EPOLL_CTL_ADD, event.data.fd, &event) ? -errno : 0;
}

struct xpt_continuous *continuous_alloc(const struct consumer *consumer, const struct continuous_hooks *hooks)
{
	struct xpt_continuous *continuous = calloc(1, sizeof(*continuous));

	if (!continuous)
		return NULL;
	pthread_cond_init(&continuous->queued, NULL);
	continuous->consumer = *consumer;
	continuous->consumer.context = continuous;
	save_list_init(&continuous->asked);
	save_list_init(&continuous->taken);
	save_list_init(&continuous->written);
	continuous->claims.file = -1;
	continuous->hooks = *hooks;
	continuous->hooks_due = hooks->turn ? 0 : ~0ull;
	return continuous;
}

int continuous_check(const struct xpt_continuous_options *options)
{
	const struct xpt_session_options *targets = &options->targets;
	const struct log log = { targets->log, targets->log_context, targets->log_level };

	if (!options->has_targets)
		return -EINVAL;
	if (!targets->counter_count && (options->counters_every || options->counters_per_inference)) {
		log_error(&log, "no counters specified");
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

int continuous_create(struct xpt_continuous *continuous, const struct xpt_continuous_options *options)
{
	int error = create_session(continuous, options);

	if (!error)
		error = continuous_claim_targets(continuous, &options->targets);
	if (!error)
		error = create_folder(continuous, options);
	if (!error)
		error = create_window(continuous, options);
	if (!error)
		error = create_triggers(continuous, options);
	if (!error)
		error = session_open(continuous->session);
	return error ?: create_control(continuous, options);
}

void continuous_free(struct xpt_continuous *continuous)
{
	session_free(continuous->session);
	target_claims_close(&continuous->claims);
	folder_close(continuous->folder);
	model_free(continuous->model);
	inference_index_free(continuous->recent);
	window_free(continuous->window);
	for (size_t i = 0; i < continuous->trigger_count; i++)
		trigger_free(continuous->triggers[i]);
	continuous_answer_stop(continuous);
	control_close(continuous->control);
	pthread_cond_destroy(&continuous->queued);
	free(continuous->prefix);
	free(continuous);
}
