/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_session_*(): a collector whose records go through a model to profiling handles, on a thread of its own. */
#include "session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/thread.h"
#include "session/output.h"

#define REPORT_BYTES (256u << 20)
#define CLOCK_CLOSE 5000 /* ns between two readings of one clock, with the other one's between them, that will do */
#define CLOCK_TRIES 5
#define KEEP_RELEASED 1024 /* programs and processes that are gone and may yet get counts */
/* A record may reach its ring a little later than its time says: so long a reading waits for those before it. */
#define GRACE 2000000ull /* ns */

/* Two clocks cannot be read at once. An interruption in between would set the reports' clock wrong by as long. */
__s64 session_clock_offset(void)
{
	__u64 least = ~0ull, before, realtime, taken;
	__s64 offset = 0;

	for (int tries = 0; tries < CLOCK_TRIES && least > CLOCK_CLOSE; tries++) {
		before = clock_monotonic();
		realtime = clock_read(CLOCK_REALTIME);
		taken = clock_monotonic() - before;
		if (taken >= least)
			continue;
		least = taken;
		offset = (__s64)(realtime - before - taken / 2);
	}
	return offset;
}

/* ---- from the collector into the model, and from there to the handles ---- */

static void on_record(void *context, const struct xpt_record_header *record)
{
	struct xpt_session *session = context;
	int error = model_feed(session->model, record);

	if (error == -ENOMEM && !session->collector->error) {
		log_error(&session->collector->log, "no memory for what was recorded");
		session->collector->error = error;
	}
}

/* How far the handles have seen, before they see the event. */
static int on_event(void *context, const struct event *event)
{
	struct xpt_session *session = context;
	__u64 time = 0;

	if (event->kind == EVENT_CALL)
		time = event->call.end;
	else if (event->kind == EVENT_PROGRAM)
		time = event->program.time;
	if (time > session->seen)
		session->seen = time;
	return 0;
}

static int set_sampling(void *context, const struct model_program *program, __u32 sample_every)
{
	struct xpt_session *session = context;
	__u64 delivered = model_delivered(session->model);

	return collector_set_sampling(session->collector, program, sample_every,
				      session->seen > delivered ? session->seen : delivered);
}

static void set_defaults(void *context, __u32 sample_every, __u32 roles)
{
	struct xpt_session *session = context;
	int error = kern_set_defaults(session->collector->kern, sample_every, roles);

	if (error)
		log_error(&session->collector->log, "cannot set the sampling rate: %s", strerror(-error));
}

static bool on_interrupted(void *context)
{
	return __atomic_load_n(&((struct xpt_session *)context)->interrupted, __ATOMIC_RELAXED);
}

/* ---- creation ---- */

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

static int create_collector(struct xpt_session *session, const struct xpt_session_options *options)
{
	struct collector_options collector_options = {
		COLLECTOR_OPTIONS(options),
		.sample_every = XPT_SAMPLE_NONE,
		.counters = options->counters,
		.counter_count = options->counter_count,
		.counters_per_inference = true,
		.interrupted = on_interrupted,
		.record = on_record,
		.context = session,
	};

	return collector_create(&collector_options, &session->collector);
}

static void name_counters(struct xpt_session *session)
{
	const struct xpt_counter_info *info;

	while ((info = counter_side_info(session->collector->counter_side, session->counter_count))) {
		session->counters[session->counter_count] = (struct xpt_report_counter){
			info->name,
			info->unit,
			counter_side_of(session->collector->counter_side, session->counter_count),
		};
		session->counter_count++;
	}
}

static int create_profiling(struct xpt_session *session, const struct xpt_session_options *options)
{
	const struct profiling_options profiling_options = {
		.log = &session->collector->log,
		.report_bytes = options->report_bytes ?: REPORT_BYTES,
		.info = &session->info,
		.counters = session->counters,
		.counter_count = session->counter_count,
		.deliver = deliveries_add,
		.set_sampling = set_sampling,
		.set_defaults = set_defaults,
		.context = session,
	};
	int error = model_create(&session->collector->log, &session->model);

	if (error)
		return error;
	model_keep_released(session->model, KEEP_RELEASED);
	error = profiling_create(&profiling_options, &session->profiling);
	if (!error)
		error = model_add_sink(session->model, (struct event_sink){ on_event, session });
	if (!error)
		error = model_add_sink(session->model, profiling_sink(session->profiling));
	return error;
}

static void create_lock(struct xpt_session *session)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&session->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&session->changed, &attributes);
	pthread_cond_init(&session->queued, &attributes);
	pthread_condattr_destroy(&attributes);
}

int xpt_session_create(const struct xpt_session_options *given, struct xpt_session **result)
{
	struct xpt_session_options options = {};
	struct xpt_session *session;
	int error = options_copy(&options, sizeof(options), given);

	if (error)
		return error;
	session = calloc(1, sizeof(*session));
	if (!session)
		return -ENOMEM;
	create_lock(session);
	session->last = &session->first;
	error = create_collector(session, &options);
	if (!error)
		error = collector_open(session->collector);
	if (!error)
		name_counters(session);
	if (!error)
		error = copy_info(&session->info);
	if (!error)
		error = create_profiling(session, &options);
	if (error) {
		xpt_session_destroy(session);
		return error;
	}
	*result = session;
	return 0;
}

/* ---- the collecting thread ---- */

void session_read_counts(struct xpt_session *session)
{
	session->read_at = clock_monotonic();
	records_counts(session->collector, session->read_at);
	profiling_read(session->profiling, session->read_at, session_clock_offset());
}

static void look_at_targets(struct xpt_session *session, __u64 now)
{
	if (session->over)
		return;
	if (!session->over_at && targets_ended(session->collector))
		session->over_at = now;
	session->over = session->over_at && model_delivered(session->model) >= session->over_at;
}

/* Records from before the latest reading may still be on their way. */
static bool is_reading(const struct xpt_session *session)
{
	return session->read_at && model_delivered(session->model) < session->read_at + GRACE;
}

static int collect_once(struct xpt_session *session)
{
	int error = collector_work(session->collector);
	__u64 now = clock_monotonic();

	if (!is_reading(session)) {
		profiling_delivered(session->profiling, model_delivered(session->model));
		if (now >= profiling_due(session->profiling)) {
			session_read_counts(session);
			records_drain(session->collector);
		}
	}
	look_at_targets(session, now);
	pthread_cond_broadcast(&session->changed);
	return error;
}

/* When there is something to do that no record tells of. */
static __u64 next_due(const struct xpt_session *session)
{
	return is_reading(session) ? clock_monotonic() + GRACE : profiling_due(session->profiling);
}

static void *collect(void *context)
{
	struct xpt_session *session = context;
	int error = 0;
	__u64 due;

	pthread_mutex_lock(&session->lock);
	while (!session->ending && !error) {
		due = next_due(session);
		pthread_mutex_unlock(&session->lock);
		error = collector_wait(session->collector, due);
		pthread_mutex_lock(&session->lock);
		if (!error)
			error = collect_once(session);
	}
	if (error) {
		if (error != session->collector->error)
			log_error(&session->collector->log, "tracing has stopped: %s", strerror(-error));
		session->error = error;
		pthread_cond_broadcast(&session->changed);
	}
	pthread_mutex_unlock(&session->lock);
	return NULL;
}

static int start_thread(pthread_t *thread, bool *has, void *(*run)(void *), void *context, const char *name)
{
	int error = thread_start(thread, run, context, name);

	*has = !error;
	return error;
}

int xpt_session_start(struct xpt_session *session)
{
	int error = -EALREADY;

	pthread_mutex_lock(&session->lock);
	if (session->starting)
		goto out;
	session->starting = true;
	/* Nothing has been counted yet: all that the kernel will count belongs to the handles that run already. */
	profiling_read(session->profiling, clock_monotonic(), session_clock_offset());
	error = collector_start(session->collector);
	if (!error && profiling_begin(session->profiling, session->collector->started, session_clock_offset()))
		error = -ENOMEM;
	if (!error)
		error = start_thread(&session->calling_back, &session->has_calling_back, deliveries_run, session,
				     "xpt-callbacks");
	if (!error)
		error = start_thread(&session->collecting, &session->has_collecting, collect, session, "xpt-collect");
	session->started = !error;
out:
	pthread_mutex_unlock(&session->lock);
	return error;
}

bool session_wait_change(struct xpt_session *session, __u64 until)
{
	struct timespec time = { until / 1000000000, until % 1000000000 };

	if (until == ~0ull)
		return !pthread_cond_wait(&session->changed, &session->lock);
	return pthread_cond_timedwait(&session->changed, &session->lock, &time) != ETIMEDOUT;
}

int xpt_session_wait(struct xpt_session *session, uint64_t timeout)
{
	__u64 now = clock_monotonic(), until = timeout > ~0ull - now ? ~0ull : now + timeout;
	int result = -EDEADLK;

	pthread_mutex_lock(&session->lock);
	while (!deliveries_is_callback(session)) {
		result = session->started ? session->error : -EINVAL;
		if (!result && __atomic_exchange_n(&session->interrupted, 0, __ATOMIC_RELAXED))
			result = -EINTR;
		if (!result && session->over)
			result = 1;
		if (result || !session_wait_change(session, until))
			break;
	}
	pthread_mutex_unlock(&session->lock);
	return result;
}

void xpt_session_interrupt(struct xpt_session *session)
{
	__atomic_store_n(&session->interrupted, 1, __ATOMIC_RELAXED);
	collector_wake(session->collector); /* its thread tells those who wait */
}

int xpt_session_status(struct xpt_session *session, struct xpt_session_status *status)
{
	struct xpt_session_status now = { .size = sizeof(now) };
	size_t size = status->size;

	if (size < sizeof(size))
		return -EINVAL;
	pthread_mutex_lock(&session->lock);
	if (session->started)
		now.elapsed = clock_monotonic() - session->collector->started;
	now.processes = session->collector->followed_map.count;
	now.programs = profiling_program_count(session->profiling);
	now.calls = session->collector->calls;
	now.lost = session->collector->lost;
	now.waiting = session->waiting;
	now.waiting_bytes = session->waiting_bytes;
	pthread_mutex_unlock(&session->lock);
	memcpy(status, &now, size < sizeof(now) ? size : sizeof(now));
	status->size = size;
	return 0;
}

int xpt_session_programs(struct xpt_session *session,
			 int (*visit)(void *context, const struct xpt_program_info *program), void *context)
{
	int result;

	pthread_mutex_lock(&session->lock);
	result = profiling_programs(session->profiling, visit, context);
	pthread_mutex_unlock(&session->lock);
	return result;
}

int xpt_session_command_status(struct xpt_session *session)
{
	int status;

	pthread_mutex_lock(&session->lock);
	status = session->collector->command.pid ? session->collector->command.status : -1;
	pthread_mutex_unlock(&session->lock);
	return status;
}

static void end_threads(struct xpt_session *session)
{
	pthread_mutex_lock(&session->lock);
	session->ending = true;
	pthread_cond_broadcast(&session->queued);
	pthread_cond_broadcast(&session->changed);
	pthread_mutex_unlock(&session->lock);
	if (session->collector)
		collector_wake(session->collector);
	if (session->has_collecting)
		pthread_join(session->collecting, NULL);
	if (session->has_calling_back)
		pthread_join(session->calling_back, NULL);
}

void xpt_session_destroy(struct xpt_session *session)
{
	if (!session)
		return;
	end_threads(session);
	if (session->started)
		collector_check_names(session->collector, session->model);
	while (session->subscribers)
		subscriber_remove(session->subscribers);
	collector_free(session->collector);
	profiling_free(session->profiling);
	model_free(session->model);
	free_info(&session->info);
	pthread_cond_destroy(&session->queued);
	pthread_cond_destroy(&session->changed);
	pthread_mutex_destroy(&session->lock);
	free(session);
}
