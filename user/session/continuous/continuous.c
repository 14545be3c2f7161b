/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_continuous_*(): a consumer that keeps records in a window. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/options.h"
#include "base/core/process.h"
#include "session/continuous/private.h"

#define SAMPLE_MAX 1000000u
#define NAME_MAX_LENGTH 64
#define KEEP_RELEASED 256 /* ended programs and processes */

/* ---- options ---- */

#define NUMBER(name) #name, offsetof(struct xpt_continuous_options, name)

static const struct number {
	const char *name;
	size_t offset;
	uint64_t standard, least, most;
	bool none; /* XPT_NONE is allowed */
} numbers[] = {
	{ NUMBER(window_bytes), XPT_WINDOW_BYTES, XPT_WINDOW_BYTES_MIN, XPT_WINDOW_BYTES_MAX, false },
	{ NUMBER(window_time), XPT_WINDOW_TIME, XPT_WINDOW_TIME_MIN, XPT_WINDOW_TIME_MAX, true },
	{ NUMBER(counters_every), 0, 100000, 3600000000000, false },
	{ NUMBER(save_after), XPT_SAVE_AFTER, 1, XPT_SAVE_AFTER_MAX, true },
	{ NUMBER(save_cooldown), XPT_SAVE_COOLDOWN, 1, XPT_WINDOW_TIME_MAX, true },
	{ NUMBER(save_files), XPT_SAVE_FILES, 1, UINT64_MAX, true },
	{ NUMBER(save_bytes), XPT_SAVE_BYTES, 1, UINT64_MAX, true },
};

static int read_number(const struct log *log, const struct number *number, struct xpt_continuous_options *options)
{
	uint64_t *value = (uint64_t *)((char *)options + number->offset);

	if (!*value) {
		*value = number->standard;
	} else if (*value == XPT_NONE && number->none) {
		*value = 0;
	} else if (*value < number->least || *value > number->most) {
		log_error(log, "%s of %" PRIu64 " is out of range (%" PRIu64 " to %" PRIu64 ")", number->name, *value,
			  number->least, number->most);
		return -EINVAL;
	}
	return 0;
}

/* It becomes a part of a path. */
static bool is_name(const char *name)
{
	size_t length = strlen(name);

	if (!length || length > NAME_MAX_LENGTH || *name == '.')
		return false;
	for (; *name; name++) {
		if (!isascii((unsigned char)*name) || !(isalnum((unsigned char)*name) || strchr("-_.", *name)))
			return false;
	}
	return true;
}

int xpt_trigger_latency(const char *text, uint64_t *duration)
{
	struct trigger_condition condition;
	char reason[REASON_MAX];
	int error = text ? trigger_text_parse(text, &condition, reason, sizeof(reason)) : -EINVAL;

	if (!error && condition.measure != TRIGGER_LATENCY)
		error = -ENODATA;
	if (!error)
		*duration = condition.limit + !condition.at_least;
	return error;
}

int xpt_trigger_check(const char *text, char *reason, size_t size)
{
	struct trigger *trigger;
	char why[256] = "";
	int error = text ? trigger_parse(text, &trigger, why, sizeof(why)) : -EINVAL;

	if (!error)
		trigger_free(trigger);
	else if (size)
		snprintf(reason, size, "%s", why);
	return error;
}

static int check_strings(const struct log *log, const struct xpt_continuous_options *options)
{
	char reason[REASON_MAX];
	int error = 0;

	if (options->name && !is_name(options->name)) {
		log_error(log, "the name is not 1 to %d letters, digits, '-', '_' and '.', which is not the first",
			  NAME_MAX_LENGTH);
		return -EINVAL;
	}
	if (!*options->output_dir || strlen(options->output_dir) >= PATH_MAX) {
		log_error(log, "the path of the output directory is %s", *options->output_dir ? "too long" : "empty");
		return *options->output_dir ? -ENAMETOOLONG : -EINVAL;
	}
	if (options->trigger_count > XPT_TRIGGERS_MAX) {
		log_error(log, "more than %d triggers", XPT_TRIGGERS_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; i < options->trigger_count && !error; i++) {
		const char *text = options->triggers ? options->triggers[i] : NULL;

		error = xpt_trigger_check(text, reason, sizeof(reason));
		if (error)
			log_error(log, "trigger '%s': %s", text ?: "", reason);
	}
	return error;
}

static int check_together(const struct log *log, const struct xpt_continuous_options *options,
			  const struct xpt_session_options *targets)
{
	if (options->level != XPT_LEVEL_STANDARD && options->level != XPT_LEVEL_BASIC &&
	    options->level != XPT_LEVEL_DETAILED) {
		log_error(log, "there is no level %d", (int)options->level);
		return -EINVAL;
	}
	if (options->sample_every > SAMPLE_MAX) {
		log_error(log, "sampling one inference in %u is out of range (1 to %u)", options->sample_every,
			  SAMPLE_MAX);
		return -EINVAL;
	}
	if (options->claims && options->session && options->session->starting) {
		log_error(log, "the session has started: its targets cannot be claimed any more");
		return -EINVAL;
	}
	if (!targets->counter_count && (options->counters_every || options->counters_per_inference)) {
		log_error(log, "no counters specified");
		return -EINVAL;
	}
	if (options->trigger_count && options->window_time && options->save_after >= options->window_time) {
		log_error(log, "the file would be made when what the trigger saw has left the window: a window of more "
			       "time, or less time after the trigger, is needed");
		return -EINVAL;
	}
	return 0;
}

int continuous_options_read(const struct xpt_continuous_options *given, struct xpt_continuous_options *options,
			    struct xpt_session_options *targets)
{
	struct log log;
	int error = options_copy(options, sizeof(*options), given);

	if (!error && (options->targets || !options->session))
		error = options_copy(targets, sizeof(*targets), options->targets);
	if (error)
		return error;
	targets->size = sizeof(*targets);
	log = options->session ? options->session->collector->log :
				 (struct log){ targets->log, targets->log_context, targets->log_level };
	options->output_dir = options->output_dir ?: XPT_CONTINUOUS_DIR;
	options->sample_every = options->sample_every ?: 1;
	if (!options->has_owner) {
		options->user = geteuid();
		options->group = getegid();
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && !error; i++)
		error = read_number(&log, &numbers[i], options);
	if (!error)
		error = check_strings(&log, options);
	return error ?: check_together(&log, options, targets);
}

/* ---- creation ---- */

/* Of its own, unless it joins the caller's. */
static int create_session(struct xpt_continuous *continuous, const struct xpt_continuous_options *options,
			  const struct xpt_session_options *targets)
{
	struct collector_options collector_options = {
		COLLECTOR_OPTIONS(targets),
		.counters = targets->counters,
		.counter_count = targets->counter_count,
		.counter_tracks = true,
		.counters_every = options->counters_every,
		.counters_per_inference = options->counters_per_inference,
	};
	int error;

	if (!options->session && !targets->budget)
		collector_options.budget = XPT_BUDGET_CONTINUOUS;
	continuous->consumer.needs = (struct collector_needs){
		.roles = collector_level_roles(options->level),
		.sample_every = options->sample_every,
	};
	error = consumer_attach(&continuous->consumer, options->session, &collector_options);
	continuous->session = continuous->consumer.session;
	if (!error)
		continuous->collector = continuous->session->collector;
	return error;
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
	model_leave_out_sums(continuous->model);
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
	continuous->limits.cooldown = options->save_cooldown;
	continuous->limits.files_most = options->save_files;
	continuous->limits.bytes_most = options->save_bytes;
	continuous->after = options->save_after;
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
	int error = absolute_path(options->output_dir, path);

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

	if (!options->name)
		return 0;
	snprintf(name, sizeof(name), "%s.sock", options->name);
	return control_open(&collector->log, &control_options, &continuous->control);
}

static int create_parts(struct xpt_continuous *continuous, const struct xpt_continuous_options *options,
			const struct xpt_session_options *targets)
{
	int error = create_session(continuous, options, targets);

	if (!error && (options->name || options->claims))
		error = continuous_make_control_dir(&continuous->collector->log);
	if (!error && options->claims)
		error = continuous_claim_targets(continuous);
	if (!error)
		error = create_folder(continuous, options);
	if (!error)
		error = create_window(continuous, options);
	if (!error)
		error = create_triggers(continuous, options);
	if (!error && !options->session)
		error = session_open(continuous->session);
	return error ?: create_control(continuous, options);
}

/* Whether it can be run at all is known, and reported, before the start succeeds. */
static int await_command(struct collector *collector)
{
	struct pollfd known = { .fd = collector->command.failure, .events = POLLIN };

	while (poll(&known, 1, -1) < 0 && errno == EINTR)
		;
	return collector_work(collector);
}

/* Requests wake the collecting thread, until it is ended. */
static int watch_control(struct xpt_continuous *continuous)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (!continuous->control)
		return 0;
	event.data.fd = control_descriptor(continuous->control);
	return epoll_ctl(continuous->collector->epoll, EPOLL_CTL_ADD, event.data.fd, &event) ? -errno : 0;
}

static int on_started(void *context)
{
	struct xpt_continuous *continuous = context;
	bool is_own = !continuous->consumer.shares && continuous->collector->command.pid;
	int error = is_own ? await_command(continuous->collector) : 0;

	if (!error)
		error = watch_control(continuous);
	if (error)
		return error;
	continuous_update_status(continuous, clock_monotonic());
	error = thread_start(&continuous->saving, saves_run, continuous, "xpt-save");
	continuous->has_saving = !error;
	return error;
}

int continuous_create(const struct xpt_continuous_options *given, const struct continuous_hooks *hooks,
		      struct xpt_continuous **result)
{
	struct xpt_session_options targets = {};
	struct xpt_continuous_options options = {};
	struct xpt_continuous *continuous;
	int error = continuous_options_read(given, &options, &targets);

	if (error)
		return error;
	continuous = calloc(1, sizeof(*continuous));
	if (!continuous)
		return -ENOMEM;
	*result = continuous; /* the hooks need it */
	pthread_cond_init(&continuous->queued, NULL);
	continuous->consumer = (struct consumer){
		.record = continuous_record,
		.attached = on_started,
		.work = continuous_work,
		.context = continuous,
	};
	save_list_init(&continuous->asked);
	save_list_init(&continuous->taken);
	save_list_init(&continuous->written);
	options.claims |= !options.session; /* else it is the same program that traces them already */
	if (options.claims) {
		continuous->consumer.admit = continuous_admit;
		continuous->consumer.leave = continuous_leave;
	}
	continuous->claims.file = -1;
	continuous->hooks = *hooks;
	continuous->hooks_due = hooks->work ? 0 : ~0ull;
	continuous->saved = options.saved;
	continuous->saved_context = options.saved_context;
	error = create_parts(continuous, &options, &targets);
	if (error) {
		xpt_continuous_destroy(continuous);
		*result = NULL;
	}
	return error;
}

int xpt_continuous_create(const struct xpt_continuous_options *options, struct xpt_continuous **result)
{
	const struct continuous_hooks none = {};

	return continuous_create(options, &none, result);
}

int xpt_continuous_start(struct xpt_continuous *continuous)
{
	return consumer_start(&continuous->consumer);
}

/* ---- callers ---- */

static bool has_ended(const struct xpt_continuous *continuous)
{
	return continuous->session->ending || continuous->consumer.left;
}

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
	if (has_ended(continuous))
		error = -ECANCELED;
	else
		error = continuous->consumer.started ? saves_ask(continuous, save) : -EINVAL;
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
	struct xpt_continuous *continuous = context;

	if (!continuous->consumer.started)
		return -EINVAL;
	return consumer_disturbed(&continuous->consumer) ?: continuous->stopped || has_ended(continuous);
}

int xpt_continuous_wait(struct xpt_continuous *continuous, uint64_t timeout)
{
	return session_await(continuous->session, timeout, has_stopped, continuous);
}

void xpt_continuous_interrupt(struct xpt_continuous *continuous)
{
	consumer_interrupt(&continuous->consumer);
}

int xpt_continuous_command_status(struct xpt_continuous *continuous)
{
	return collector_command_status(continuous->collector);
}

/* ---- the end ---- */

/* What was asked for and not taken will not be; what was taken is written. */
static void end_saves(struct xpt_continuous *continuous)
{
	struct save *save;

	pthread_mutex_lock(&continuous->session->lock);
	while ((save = save_list_pop(&continuous->asked))) {
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
	saves_report(continuous);
	pthread_cond_broadcast(&continuous->session->changed);
	pthread_mutex_unlock(&continuous->session->lock);
}

void xpt_continuous_stop(struct xpt_continuous *continuous)
{
	bool shares = continuous->consumer.shares, finished = continuous->session->finished;

	consumer_stop(&continuous->consumer);
	/* Nobody answers there any more, while the session goes on. */
	if (shares && continuous->control)
		epoll_ctl(continuous->collector->epoll, EPOLL_CTL_DEL, control_descriptor(continuous->control), NULL);
	end_saves(continuous);
	if (!shares && continuous->session->finished && !finished)
		collector_check_names(continuous->collector, continuous->model);
}

void xpt_continuous_destroy(struct xpt_continuous *continuous)
{
	if (!continuous)
		return;
	if (continuous->session)
		xpt_continuous_stop(continuous);
	consumer_free(&continuous->consumer);
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
