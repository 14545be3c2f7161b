/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xpt_profile_*() and xpt_stream_*(), and the consumer behind them: records go through a model to the handles, and their reports to
 * callbacks, one after the other in the order in which they were made, on a thread of its own.
 */
#include <xputrace/profile.h>
#include <xputrace/stream.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/options.h"
#include "base/core/process.h"
#include "session/core/output.h"
#include "session/core/session.h"

#define KEEP_RELEASED 256 /* ended programs and processes that may yet get counts */
/* Grace period of a reading: records may reach their ring a little after their time. */
#define GRACE 2000000ull /* ns */

/* A profiling handle as its user has it: where its reports go. */
struct subscriber {
	struct xpt_session *session;
	struct subscriber *next; /* of the profiler */
	struct handle *handle;	 /* NULL: destroyed, from its own callback */
	xpt_profile_report_fn callback;
	void *context;
	unsigned int waiting; /* reports in the queue and the current one */
	bool delivering;
};

/* Users have pointers to their first member. */
struct xpt_profile {
	struct subscriber subscriber;
};

struct xpt_stream {
	struct subscriber subscriber;
};

/* A report that waits for its callback. */
struct delivery {
	struct delivery *next;
	struct subscriber *subscriber;
	struct report *report;
};

/* ---- from the collector into the model, and from there to the handles ---- */

static void on_record(void *context, const struct xpt_record_header *record)
{
	struct profiler *profiler = context;
	struct collector *collector = profiler->session->collector;
	int error = model_feed(profiler->model, record);

	if (error == -ENOMEM && !collector->error) {
		log_error(&collector->log, "no memory for what was recorded");
		collector->error = error;
	}
}

/* How far the handles have seen, before they see the event. */
static int on_event(void *context, const struct event *event)
{
	struct profiler *profiler = context;
	__u64 time = 0;

	if (event->kind == EVENT_CALL)
		time = event->call.end;
	else if (event->kind == EVENT_PROGRAM)
		time = event->program.time;
	if (time > profiler->seen)
		profiler->seen = time;
	return 0;
}

static int set_sampling(void *context, const struct model_program *program, __u32 sample_every)
{
	struct profiler *profiler = context;
	__u64 delivered = model_delivered(profiler->model);

	return collector_set_sampling(profiler->session->collector, program, sample_every,
				      profiler->seen > delivered ? profiler->seen : delivered);
}

static void set_defaults(void *context, __u32 sample_every, __u32 roles)
{
	struct profiler *profiler = context;
	const struct collector *collector = profiler->session->collector;
	int error = 0;

	profiler->sample_every = sample_every;
	profiler->roles = roles;
	if (collector->kern)
		error = kern_set_defaults(collector->kern, sample_every, roles);
	if (error)
		log_error(&collector->log, "cannot set the sampling rate: %s", strerror(-error));
}

void profiler_opened(struct profiler *profiler)
{
	set_defaults(profiler, profiler->sample_every, profiler->roles);
}

/* Shows the handles what the kernel has counted up to now. */
static void profiler_read_counts(struct profiler *profiler)
{
	profiler->read_at = clock_monotonic();
	records_counts(profiler->session->collector, profiler->read_at);
	profiling_read(profiler->profiling, profiler->read_at, session_clock_offset(CLOCK_REALTIME));
}

/* Records from before the latest reading may still be on their way. */
static bool is_reading(const struct profiler *profiler)
{
	return profiler->read_at && model_delivered(profiler->model) < profiler->read_at + GRACE;
}

static bool on_unhurried(void *context)
{
	return profiling_unhurried(((const struct profiler *)context)->profiling);
}

static void check_targets(struct profiler *profiler, __u64 now)
{
	if (profiler->over)
		return;
	if (!profiler->over_at && targets_ended(profiler->session->collector))
		profiler->over_at = now;
	profiler->over = profiler->over_at && model_delivered(profiler->model) >= profiler->over_at;
}

static __u64 on_work(void *context, __u64 now)
{
	struct profiler *profiler = context;

	if (!is_reading(profiler)) {
		profiling_delivered(profiler->profiling, model_delivered(profiler->model));
		if (now >= profiling_due(profiler->profiling)) {
			profiler_read_counts(profiler);
			records_drain(profiler->session->collector);
		}
	}
	check_targets(profiler, now);
	return is_reading(profiler) ? clock_monotonic() + GRACE : profiling_due(profiler->profiling);
}

/* ---- the callback thread ---- */

static struct subscriber *subscriber_of(const struct profiler *profiler, const struct handle *handle)
{
	struct subscriber *subscriber = profiler->subscribers;

	while (subscriber && subscriber->handle != handle)
		subscriber = subscriber->next;
	return subscriber;
}

/* As profiling_options.deliver. */
static void deliver(void *context, struct handle *handle, struct report *report)
{
	struct profiler *profiler = context;
	struct subscriber *subscriber = subscriber_of(profiler, handle);
	struct delivery *delivery = subscriber ? malloc(sizeof(*delivery)) : NULL;

	if (!delivery) {
		log_warn(&profiler->session->collector->log, "a report is left out: no memory");
		report_free(report);
		return;
	}
	*delivery = (struct delivery){ .subscriber = subscriber, .report = report };
	*profiler->last = delivery;
	profiler->last = &delivery->next;
	profiler->waiting++;
	profiler->waiting_bytes += report_bytes(report);
	subscriber->waiting++;
	pthread_cond_signal(&profiler->queued);
}

/* The one after *link leaves the queue. */
static struct delivery *delivery_take(struct profiler *profiler, struct delivery **link)
{
	struct delivery *delivery = *link;

	*link = delivery->next;
	if (profiler->last == &delivery->next)
		profiler->last = link;
	profiler->waiting--;
	profiler->waiting_bytes -= report_bytes(delivery->report);
	return delivery;
}

static void delivery_free(struct delivery *delivery)
{
	report_free(delivery->report);
	delivery->subscriber->waiting--;
	free(delivery);
}

static void subscriber_unlink(struct subscriber *subscriber)
{
	struct subscriber **link = &subscriber->session->profiler->subscribers;

	while (*link != subscriber)
		link = &(*link)->next;
	*link = subscriber->next;
	free(subscriber);
}

static void *run_callbacks(void *context)
{
	struct profiler *profiler = context;
	struct xpt_session *session = profiler->session;
	struct subscriber *subscriber;
	struct delivery *delivery;

	pthread_mutex_lock(&session->lock);
	for (;;) {
		while (!profiler->first && !profiler->ending)
			pthread_cond_wait(&profiler->queued, &session->lock);
		if (profiler->ending)
			break;
		delivery = delivery_take(profiler, &profiler->first);
		subscriber = delivery->subscriber;
		subscriber->delivering = true;
		pthread_mutex_unlock(&session->lock);
		subscriber->callback(subscriber->context, report_view(delivery->report));
		pthread_mutex_lock(&session->lock);
		delivery_free(delivery);
		subscriber->delivering = false;
		if (!subscriber->handle)
			subscriber_unlink(subscriber);
		pthread_cond_broadcast(&session->changed);
	}
	pthread_mutex_unlock(&session->lock);
	return NULL;
}

bool profiler_is_callback(const struct profiler *profiler)
{
	return profiler->has_thread && pthread_equal(pthread_self(), profiler->thread);
}

/* NULL: no memory. */
static struct subscriber *subscriber_add(struct profiler *profiler, struct handle *handle,
					 xpt_profile_report_fn callback, void *context)
{
	struct subscriber *subscriber = calloc(1, sizeof(*subscriber));

	if (!subscriber)
		return NULL;
	subscriber->session = profiler->session;
	subscriber->handle = handle;
	subscriber->callback = callback;
	subscriber->context = context;
	subscriber->next = profiler->subscribers;
	profiler->subscribers = subscriber;
	return subscriber;
}

/* Its handle is freed, its reports too; waits for a callback that is under way, unless it is the caller. */
static void subscriber_remove(struct subscriber *subscriber)
{
	struct profiler *profiler = subscriber->session->profiler;
	struct delivery **link = &profiler->first;

	handle_free(subscriber->handle);
	while (*link) {
		if ((*link)->subscriber == subscriber)
			delivery_free(delivery_take(profiler, link));
		else
			link = &(*link)->next;
	}
	if (subscriber->delivering && profiler_is_callback(profiler)) {
		subscriber->handle = NULL; /* the thread frees it when the callback has returned */
		return;
	}
	while (subscriber->delivering)
		session_wait_change(subscriber->session);
	subscriber_unlink(subscriber);
}

/* ---- creation ---- */

static int on_started(void *context)
{
	struct profiler *profiler = context;
	int error;

	if (profiling_begin(profiler->profiling, profiler->session->collector->started,
			    session_clock_offset(CLOCK_REALTIME)))
		return -ENOMEM;
	error = thread_start(&profiler->thread, run_callbacks, profiler, "xpt-callbacks");
	profiler->has_thread = !error;
	return error;
}

static int copy_info(struct recording_info *info)
{
	const char **strings[] = { &info->host,	   &info->kernel,  &info->machine,
				   &info->version, &info->command, &info->boot_id };
	int error = 0;

	output_info(info);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		*strings[i] = strdup(*strings[i]);
		if (!*strings[i])
			error = -ENOMEM;
	}
	return error;
}

static void free_info(struct recording_info *info)
{
	free((char *)info->host);
	free((char *)info->kernel);
	free((char *)info->machine);
	free((char *)info->version);
	free((char *)info->command);
	free((char *)info->boot_id);
}

static void name_counters(struct profiler *profiler)
{
	const struct counter_sampler *sampler = profiler->session->collector->counter_sampler;
	const struct xpt_counter_info *info;

	while ((info = counter_sampler_info(sampler, profiler->counter_count))) {
		profiler->counters[profiler->counter_count] = (struct xpt_report_counter){
			info->name,
			info->unit,
			counter_sampler_of(sampler, profiler->counter_count),
		};
		profiler->counter_count++;
	}
}

static int create_profiling(struct profiler *profiler, size_t report_bytes)
{
	const struct log *log = &profiler->session->collector->log;
	const struct profiling_options profiling_options = {
		.log = log,
		.report_bytes = report_bytes,
		.info = &profiler->info,
		.counters = profiler->counters,
		.counter_count = profiler->counter_count,
		.deliver = deliver,
		.set_sampling = set_sampling,
		.set_defaults = set_defaults,
		.context = profiler,
	};
	int error = model_create(log, &profiler->model);

	if (error)
		return error;
	model_keep_released(profiler->model, KEEP_RELEASED);
	model_leave_out_sums(profiler->model);
	error = profiling_create(&profiling_options, &profiler->profiling);
	if (!error)
		error = model_add_sink(profiler->model, (struct event_sink){ on_event, profiler });
	if (!error)
		error = model_add_sink(profiler->model, profiling_sink(profiler->profiling));
	if (!error)
		error = model_add_sink(profiler->model, statedump_sink(&profiler->session->statedump));
	return error;
}

int profiler_create(struct xpt_session *session, size_t report_bytes)
{
	struct profiler *profiler = calloc(1, sizeof(*profiler));
	int error;

	if (!profiler)
		return -ENOMEM;
	statedump_init(&session->statedump, session->collector->registry);
	session->profiler = profiler;
	profiler->session = session;
	profiler->last = &profiler->first;
	profiler->consumer = (struct consumer){
		.session = session,
		.record = on_record,
		.attached = on_started,
		.work = on_work,
		.unhurried = on_unhurried,
		.context = profiler,
		.needs = { .roles = collector_level_roles(XPT_LEVEL_STANDARD) },
	};
	pthread_cond_init(&profiler->queued, NULL);
	name_counters(profiler);
	error = copy_info(&profiler->info);
	if (!error)
		error = create_profiling(profiler, report_bytes);
	return error ?: session_add(session, &profiler->consumer);
}

void profiler_stop(struct profiler *profiler)
{
	pthread_mutex_lock(&profiler->session->lock);
	profiler->ending = true;
	pthread_cond_broadcast(&profiler->queued);
	pthread_mutex_unlock(&profiler->session->lock);
	if (profiler->has_thread)
		pthread_join(profiler->thread, NULL);
	profiler->has_thread = false;
}

void profiler_free(struct profiler *profiler)
{
	struct subscriber *subscriber, *next;

	if (!profiler)
		return;
	for (subscriber = profiler->subscribers; subscriber; subscriber = next) {
		next = subscriber->next;
		subscriber_remove(subscriber);
	}
	profiling_free(profiler->profiling);
	model_free(profiler->model);
	free_info(&profiler->info);
	pthread_cond_destroy(&profiler->queued);
	free(profiler);
}

/* ---- handles ---- */

static int refuse(const struct log *log, const char *text)
{
	log_error(log, "%s", text);
	return -EINVAL;
}

static int subscribe(struct xpt_session *session, const struct handle_options *options, xpt_profile_report_fn callback,
		     void *context, struct subscriber **result)
{
	struct handle *handle;
	int error;

	pthread_mutex_lock(&session->lock);
	error = handle_create(session->profiler->profiling, options, &handle);
	if (!error) {
		*result = subscriber_add(session->profiler, handle, callback, context);
		if (!*result) {
			handle_free(handle);
			error = -ENOMEM;
		}
	}
	pthread_mutex_unlock(&session->lock);
	return error;
}

static void unsubscribe(struct subscriber *subscriber)
{
	struct xpt_session *session = subscriber->session;

	pthread_mutex_lock(&session->lock);
	subscriber_remove(subscriber);
	pthread_mutex_unlock(&session->lock);
	collector_wake(session->collector);
}

/* What a handle has to do next may have changed: wake the collecting thread. */
static int unlock(struct subscriber *subscriber, int error)
{
	struct xpt_session *session = subscriber->session;

	pthread_cond_broadcast(&session->changed);
	pthread_mutex_unlock(&session->lock);
	collector_wake(session->collector);
	return error;
}

/* What was counted before is not the handle's, so it is read before this returns. */
static int start(struct subscriber *subscriber)
{
	struct xpt_session *session = subscriber->session;
	int error;

	pthread_mutex_lock(&session->lock);
	error = handle_start(subscriber->handle, clock_monotonic(), session_clock_offset(CLOCK_REALTIME));
	if (!error && session->started)
		profiler_read_counts(session->profiler);
	return unlock(subscriber, error);
}

static int stop(struct subscriber *subscriber)
{
	pthread_mutex_lock(&subscriber->session->lock);
	return unlock(subscriber, handle_stop(subscriber->handle, clock_monotonic()));
}

/* ---- N samples ---- */

static int check_profile(const struct log *log, const struct xpt_profile_options *options,
			 const struct xpt_program_choice *program)
{
	if (!options->callback)
		return refuse(log, "a profile needs a callback for its report");
	if (!program->name && !program->handle)
		return refuse(log, "a profile is of exactly one program: give its name or its handle");
	if (!options->samples || options->samples > XPT_SAMPLES_MAX)
		return refuse(log, "the number of samples is out of range (1 to 1000000000)");
	if (options->type < XPT_PROFILE_LATENCY || options->type > XPT_PROFILE_PERFETTO)
		return refuse(log, "unknown type of a profile");
	if (options->summary && options->type != XPT_PROFILE_LATENCY)
		return refuse(log, "only latencies have a summary");
	return 0;
}

int xpt_profile_create(struct xpt_session *session, const struct xpt_profile_options *given,
		       struct xpt_profile **result)
{
	struct xpt_profile_options options = {};
	struct xpt_program_choice program = {};
	struct subscriber *subscriber;
	int error = options_copy(&options, sizeof(options), given);

	if (!error && options.program)
		error = options_copy(&program, sizeof(program), options.program);
	if (!error)
		error = check_profile(&session->collector->log, &options, &program);
	if (error)
		return error;
	error = subscribe(session,
			  &(struct handle_options){
				  .type = options.type,
				  .summary = options.summary,
				  .name = options.name,
				  .program = program,
				  .samples = options.samples,
				  .skip = options.skip,
				  .delay = options.delay,
			  },
			  options.callback, options.context, &subscriber);
	if (!error)
		*result = container_of(subscriber, struct xpt_profile, subscriber);
	return error;
}

int xpt_profile_start(struct xpt_profile *profile)
{
	return start(&profile->subscriber);
}

int xpt_profile_stop(struct xpt_profile *profile)
{
	return stop(&profile->subscriber);
}

static bool at_rest(const struct subscriber *subscriber)
{
	return !handle_runs(subscriber->handle) && handle_settled(subscriber->handle) && !subscriber->waiting;
}

static int profile_done(void *context)
{
	const struct subscriber *subscriber = context;
	const struct xpt_session *session = subscriber->session;

	if (profiler_is_callback(session->profiler))
		return -EDEADLK;
	if (at_rest(subscriber))
		return 1;
	if (session->error)
		return session->error;
	return session->profiler->over && handle_runs(subscriber->handle) ? -EPIPE : 0;
}

int xpt_profile_wait(struct xpt_profile *profile, uint64_t timeout)
{
	return session_await(profile->subscriber.session, timeout, profile_done, &profile->subscriber);
}

void xpt_profile_destroy(struct xpt_profile *profile)
{
	if (profile)
		unsubscribe(&profile->subscriber);
}

/* ---- streams ---- */

static int check_stream(const struct log *log, const struct xpt_stream_options *options)
{
	if (!options->callback)
		return refuse(log, "a stream needs a callback for its reports");
	if (options->report_every &&
	    (options->report_every < XPT_REPORT_EVERY_MIN || options->report_every > XPT_REPORT_EVERY_MAX))
		return refuse(log, "the reporting rate is out of range (10 ms to 24 hours)");
	if (options->sample_every > XPT_SAMPLE_EVERY_MAX)
		return refuse(log, "the sampling rate is out of range (one inference in 1 to 1000000)");
	if (options->type < XPT_PROFILE_LATENCY || options->type > XPT_PROFILE_PERFETTO)
		return refuse(log, "unknown type of a stream");
	if (options->summary && options->type != XPT_PROFILE_LATENCY)
		return refuse(log, "only latencies have a summary");
	if (options->stacks > XPT_STACKS_SECOND_MAX || options->samples > XPT_STACKS_SECOND_MAX)
		return refuse(log, "stacks a second are out of range (1 to 1000)");
	return 0;
}

/* The stream's reports are to have stacks. -ENODATA: the session was started without them. */
static int need_stacks(struct xpt_session *session, unsigned int stacks, unsigned int samples)
{
	struct collector_needs *needs = &session->profiler->consumer.needs;
	const bool more = stacks > needs->stacks || samples > needs->samples;
	int error = 0;

	if (!stacks && !samples)
		return 0;
	pthread_mutex_lock(&session->lock);
	if (more && session->starting) {
		log_error(&session->collector->log,
			  "the session was started without stacks: the first stream that has them is made before");
		error = -ENODATA;
	} else if (more) {
		needs->stacks = needs->stacks > stacks ? needs->stacks : stacks;
		needs->samples = needs->samples > samples ? needs->samples : samples;
		error = collector_need(session->collector, needs) ?: model_want_stacks(session->profiler->model);
	}
	pthread_mutex_unlock(&session->lock);
	return error;
}

int xpt_stream_create(struct xpt_session *session, const struct xpt_stream_options *given, struct xpt_stream **result)
{
	struct xpt_stream_options options = {};
	struct subscriber *subscriber;
	int error = options_copy(&options, sizeof(options), given);

	if (!error)
		error = check_stream(&session->collector->log, &options);
	if (!error)
		error = need_stacks(session, options.stacks, options.samples);
	if (error)
		return error;
	error = subscribe(session,
			  &(struct handle_options){
				  .stream = true,
				  .type = options.type,
				  .summary = options.summary,
				  .name = options.name,
				  .report_every = options.report_every ?: XPT_REPORT_EVERY_500MS,
				  .sample_every = options.sample_every ?: XPT_SAMPLE_FULL,
				  .match = options.match,
				  .stacks = options.stacks || options.samples,
			  },
			  options.callback, options.context, &subscriber);
	if (!error)
		*result = container_of(subscriber, struct xpt_stream, subscriber);
	return error;
}

int xpt_stream_add(struct xpt_stream *stream, const struct xpt_program_choice *given)
{
	struct xpt_program_choice choice = {};
	int error = options_copy(&choice, sizeof(choice), given);

	if (error)
		return error;
	pthread_mutex_lock(&stream->subscriber.session->lock);
	return unlock(&stream->subscriber, handle_add(stream->subscriber.handle, &choice));
}

int xpt_stream_remove(struct xpt_stream *stream, const struct xpt_program_choice *given)
{
	struct xpt_program_choice choice = {};
	int error = options_copy(&choice, sizeof(choice), given);

	if (error)
		return error;
	pthread_mutex_lock(&stream->subscriber.session->lock);
	return unlock(&stream->subscriber, handle_remove(stream->subscriber.handle, &choice));
}

int xpt_stream_start(struct xpt_stream *stream)
{
	return start(&stream->subscriber);
}

int xpt_stream_stop(struct xpt_stream *stream)
{
	return stop(&stream->subscriber);
}

static int is_flushed(void *context)
{
	const struct subscriber *subscriber = context;
	const struct xpt_session *session = subscriber->session;

	if (profiler_is_callback(session->profiler))
		return -EDEADLK;
	if (!session->started || (handle_settled(subscriber->handle) && !subscriber->waiting))
		return 1;
	return session->error;
}

int xpt_stream_flush(struct xpt_stream *stream)
{
	int result = session_await(stream->subscriber.session, XPT_FOREVER, is_flushed, &stream->subscriber);

	return result < 0 ? result : 0;
}

void xpt_stream_destroy(struct xpt_stream *stream)
{
	if (stream)
		unsubscribe(&stream->subscriber);
}
