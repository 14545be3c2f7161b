/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_session_*(), and the thread that collects for all consumers. */
#include "session/core/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/core/options.h"
#include "base/core/process.h"

#define REPORT_BYTES (256u << 20)
#define CLOCK_CLOSE 5000 /* ns between two readings of one clock, with the other one's between them, that will do */
#define CLOCK_TRIES 5

/* Two clocks cannot be read at once. An interruption in between would set the reports' clock wrong by as long. */
__s64 session_clock_offset(clockid_t clock)
{
	__u64 least = ~0ull, before, other, taken;
	__s64 offset = 0;

	for (int tries = 0; tries < CLOCK_TRIES && least > CLOCK_CLOSE; tries++) {
		before = clock_monotonic();
		other = clock_read(clock);
		taken = clock_monotonic() - before;
		if (taken >= least)
			continue;
		least = taken;
		offset = (__s64)(other - before - taken / 2);
	}
	return offset;
}

/* ---- from the collector to the consumers ---- */

/* What the kernel has counted, and what came of it. */
static void note_counted(struct consumer *consumer, const struct xpt_record_header *record)
{
	const struct registry *registry = consumer->session->collector->registry;
	const struct xpt_program_count *count = &((const struct xpt_record_total *)record)->count;
	const struct xpt_record_call *call = (const void *)record;

	if (record->kind == XPT_RECORD_TOTAL)
		consumer->counted += count->calls - count->left_out - count->lost;
	if (record->kind != XPT_RECORD_CALL)
		return;
	consumer->calls++;
	consumer->closed += !(call->flags & XPT_CALL_LAYER) && call->spec < registry->spec_count &&
			    registry->specs[call->spec]->wire.role != XPT_ROLE_OPERATOR;
}

static void give_record(void *context, const struct xpt_record_header *record)
{
	struct consumer *consumer = context;

	note_counted(consumer, record);
	if (consumer->selects)
		selection_pass(&consumer->selection, record, consumer->record, consumer->context);
	else
		consumer->record(consumer->context, record);
}

void consumer_record(void *context, const struct xpt_record_header *record)
{
	struct consumer *consumer = context;

	if (consumer->later.since)
		record = joining_pass(&consumer->later, record);
	if (record && consumer->holds)
		text_bytes(&consumer->held, record, record->size);
	else if (record)
		give_record(consumer, record);
}

static void on_record(void *context, const struct xpt_record_header *record)
{
	struct xpt_session *session = context;
	struct consumer *consumer, *next;

	if (session->profiler && statedump_record(&session->statedump, record) && !session->collector->error)
		session->collector->error = -ENOMEM;
	link_for_each_safe(consumer, next, &session->consumers, link)
		consumer_record(consumer, record);
}

static void on_scanned(void *context, pid_t tgid)
{
	struct xpt_session *session = context;
	struct consumer *consumer, *next;

	link_for_each_safe(consumer, next, &session->consumers, link) {
		if (consumer->scanned)
			consumer->scanned(consumer->context, tgid);
	}
}

static int on_admit(void *context, pid_t tgid)
{
	struct xpt_session *session = context;
	struct consumer *consumer, *next;
	int error = 0;

	link_for_each_safe(consumer, next, &session->consumers, link) {
		if (!error && consumer->admit)
			error = consumer->admit(consumer->context, tgid);
	}
	return error;
}

static void on_leave(void *context, pid_t tgid)
{
	struct xpt_session *session = context;
	struct consumer *consumer, *next;

	link_for_each_safe(consumer, next, &session->consumers, link) {
		if (consumer->leave)
			consumer->leave(consumer->context, tgid);
	}
}

static bool on_interrupted(void *context)
{
	return __atomic_load_n(&((struct xpt_session *)context)->interrupted, __ATOMIC_RELAXED);
}

/* ---- creation ---- */

static int read_budget(const struct log *log, double *percent)
{
	if (*percent == XPT_BUDGET_NONE)
		*percent = 0;
	if (!*percent || (*percent >= XPT_BUDGET_MIN && *percent <= XPT_BUDGET_MAX))
		return 0;
	log_error(log, "budget: expected a percentage from %g to %g, got '%g'", XPT_BUDGET_MIN, XPT_BUDGET_MAX,
		  *percent);
	return -EINVAL;
}

int session_create(const struct collector_options *options, struct xpt_session **result)
{
	struct xpt_session *session = calloc(1, sizeof(*session));
	struct collector_options with = *options;
	pthread_condattr_t attributes;
	int error;

	if (!session)
		return -ENOMEM;
	pthread_mutex_init(&session->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&session->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	link_init(&session->consumers);
	link_init(&session->joiners);
	link_init(&session->waiters);
	with.record = on_record;
	with.scanned = on_scanned;
	with.admit = on_admit;
	with.leave = on_leave;
	with.interrupted = on_interrupted;
	with.context = session;
	error = read_budget(&options->log, &with.budget);
	error = error ?: collector_create(&with, &session->collector);
	if (error) {
		session_free(session);
		return error;
	}
	*result = session;
	return 0;
}

/* With the lock held, as the following ones: the kernel records for all of them. */
static void share_rate(struct xpt_session *session, __u32 rate)
{
	const struct consumer *consumer;

	link_for_each(consumer, &session->consumers, link)
		rate = sample_rate_common(rate, consumer->needs.sample_every);
	if (session->profiler)
		profiling_share(session->profiler->profiling, rate);
}

static void link_consumer(struct xpt_session *session, struct consumer *consumer)
{
	consumer->left = false;
	session->collector->code_readers += consumer->needs.codes;
	share_rate(session, consumer->needs.sample_every);
	link_append(&session->consumers, &consumer->link);
}

int session_add(struct xpt_session *session, struct consumer *consumer)
{
	int error;

	link_init(&consumer->link);
	/* One that others may join: the kernel records for all. */
	consumer->selects = session->profiler;
	if (consumer->selects)
		selection_init(&consumer->selection, session->collector->registry, consumer->needs.sample_every);
	consumer->left = true;
	pthread_mutex_lock(&session->lock);
	error = collector_need(session->collector, &consumer->needs);
	if (!error && !session->starting)
		link_consumer(session, consumer);
	pthread_mutex_unlock(&session->lock);
	return error;
}

static void finish_consumer(struct consumer *consumer)
{
	struct xpt_session *session = consumer->session;

	if (consumer->finished)
		consumer->finished(consumer->context);
	selection_flush(&consumer->selection, consumer->record, consumer->context);
	link_remove(&consumer->link);
	consumer->left = true;
	session->collector->code_readers -= consumer->needs.codes;
	if (consumer->needs.sample_every)
		share_rate(session, 0);
	selection_free(&consumer->selection);
	joining_free(&consumer->later);
}

/* ---- those who join a running session ---- */

static int scan_code(void *context, pid_t tgid)
{
	const struct consumer *consumer = context;

	consumer->scanned(consumer->context, tgid);
	return 0;
}

/* The kernel's rate first, then the time from which on calls are the consumer's own; what is known of that time comes before them. */
static int join_running(struct xpt_session *session, struct consumer *consumer)
{
	struct collector *collector = session->collector;
	int error;

	records_losses(collector);
	consumer->before = records_figures(collector);
	share_rate(session, consumer->needs.sample_every);
	error = joining_begin(&consumer->later, collector);
	if (error)
		return error;
	consumer->later.codes = consumer->needs.codes;
	consumer->begun = consumer->later.since;
	consumer->holds = true;
	link_consumer(session, consumer);
	records_drain(collector);
	records_drain(collector); /* the second PASS proves that what was before the first one is known */
	error = joining_state(&consumer->later, &session->statedump, give_record, consumer);
	consumer->holds = false;
	error = joining_held(&consumer->held, give_record, consumer) ?: error;
	if (!error && consumer->scanned)
		error = targets_each(collector, scan_code, consumer);
	if (!error && consumer->attached)
		error = consumer->attached(consumer->context);
	return error;
}

static void join_all(struct xpt_session *session)
{
	struct consumer *consumer, *next;

	link_for_each_safe(consumer, next, &session->joiners, link) {
		link_remove(&consumer->link);
		consumer->join_error = session->ending ? -ECANCELED : session->error ?: join_running(session, consumer);
		consumer->started = !consumer->join_error;
		consumer->joining = false;
		if (consumer->join_error && !consumer->left)
			finish_consumer(consumer);
	}
}

static int has_joined(void *context)
{
	return !((const struct consumer *)context)->joining;
}

static int session_join(struct xpt_session *session, struct consumer *consumer)
{
	int error = 0;

	pthread_mutex_lock(&session->lock);
	if (consumer->started || consumer->joining)
		error = -EALREADY;
	else if (!session->has_thread || session->finished)
		error = -ECANCELED;
	consumer->joining = !error;
	if (!error)
		link_append(&session->joiners, &consumer->link);
	pthread_mutex_unlock(&session->lock);
	if (error)
		return error;
	collector_wake(session->collector);
	session_await(session, XPT_FOREVER, has_joined, consumer);
	return consumer->join_error;
}

static int has_left(void *context)
{
	return ((const struct consumer *)context)->left;
}

void session_remove(struct xpt_session *session, struct consumer *consumer)
{
	pthread_mutex_lock(&session->lock);
	consumer->leaving = true;
	if (!consumer->left && (!session->has_thread || session->finished))
		finish_consumer(consumer);
	pthread_mutex_unlock(&session->lock);
	collector_wake(session->collector);
	session_await(session, XPT_FOREVER, has_left, consumer);
}

int xpt_session_create(const struct xpt_session_options *given, struct xpt_session **result)
{
	struct xpt_session_options options = {};
	struct xpt_session *session;
	int error = options_copy(&options, sizeof(options), given);

	if (!error)
		error = session_create(
			&(struct collector_options){
				COLLECTOR_OPTIONS(&options),
				.counters = options.counters,
				.counter_count = options.counter_count,
				.counters_per_inference = true,
			},
			&session);
	if (error)
		return error;
	error = collector_open_counters(session->collector);
	if (!error)
		error = profiler_create(session, options.report_bytes ?: REPORT_BYTES);
	if (error) {
		xpt_session_destroy(session);
		return error;
	}
	*result = session;
	return 0;
}

/* ---- the collecting thread ---- */

/* Who waits in session_await(). */
struct waiter {
	struct link link; /* of the session */
	int (*done)(void *context);
	void *context;
	int result; /* of done() */
};

/*
 * Wakes those who wait only when one of them has what it waits for. A woken thread that is preempted with the lock would hold up
 * this one, and threads of targets that wait for their probes.
 */
static void wake_waiters(struct xpt_session *session)
{
	struct waiter *waiter, *next;
	bool any = false;

	link_for_each_safe(waiter, next, &session->waiters, link) {
		waiter->result = waiter->result ?: waiter->done(waiter->context);
		any |= waiter->result != 0;
	}
	if (any)
		pthread_cond_broadcast(&session->changed);
}

static bool is_unhurried(const struct xpt_session *session)
{
	const struct consumer *consumer;

	link_for_each(consumer, &session->consumers, link)
		if (!consumer->unhurried || !consumer->unhurried(consumer->context))
			return false;
	return true;
}

/* What was collected stays readable after tracing has failed. Returns when the next turn is due. */
static __u64 collect_once(struct xpt_session *session, int error)
{
	struct consumer *consumer, *next;
	__u64 now, due = ~0ull, wanted;

	if (!error && !session->error)
		error = collector_work(session->collector);
	if (error && !session->error) {
		session->error = error;
		log_error(&session->collector->log, "tracing has stopped: %s", strerror(-error));
	}
	now = clock_monotonic();
	link_for_each_safe(consumer, next, &session->consumers, link) {
		wanted = consumer->work ? consumer->work(consumer->context, now) : ~0ull;
		due = wanted < due ? wanted : due;
	}
	link_for_each_safe(consumer, next, &session->consumers, link) {
		if (consumer->leaving)
			finish_consumer(consumer);
	}
	if (session->profiler)
		past_settle(&session->statedump.past, model_delivered(session->profiler->model));
	join_all(session);
	wake_waiters(session);
	session->collector->unhurried = is_unhurried(session);
	return due;
}

static void *collect(void *context)
{
	struct xpt_session *session = context;
	const struct timespec pause = { 0, COLLECTOR_POLL };
	struct consumer *consumer, *next;
	__u64 due = 0;
	int error = 0;

	pthread_mutex_lock(&session->lock);
	while (!session->ending) {
		pthread_mutex_unlock(&session->lock);
		if (session->error) /* nobody empties the rings any more: there would always be something to do */
			nanosleep(&pause, NULL);
		else
			error = collector_wait(session->collector, due);
		pthread_mutex_lock(&session->lock);
		due = collect_once(session, error);
	}
	collector_finish(session->collector);
	link_for_each_safe(consumer, next, &session->consumers, link)
		finish_consumer(consumer);
	join_all(session);
	wake_waiters(session);
	session->finished = true;
	pthread_cond_broadcast(&session->changed);
	pthread_mutex_unlock(&session->lock);
	return NULL;
}

int session_open(struct xpt_session *session)
{
	if (!session->opened)
		session->open_error = collector_open(session->collector);
	if (!session->opened && !session->open_error && session->profiler)
		profiler_opened(session->profiler);
	session->opened = true;
	return session->open_error;
}

int session_start(struct xpt_session *session)
{
	struct consumer *consumer, *next;
	int error = -EALREADY;

	pthread_mutex_lock(&session->lock);
	if (!session->starting) {
		session->starting = true;
		error = session_open(session);
		if (!error)
			error = collector_start(session->collector);
		link_for_each_safe(consumer, next, &session->consumers, link) {
			consumer->begun = session->collector->started;
			if (!error && consumer->attached)
				error = consumer->attached(consumer->context);
			consumer->started = !error;
		}
		if (!error) {
			error = thread_start(&session->thread, collect, session, "xpt-collect");
			session->has_thread = !error;
		}
		session->started = !error;
	}
	pthread_mutex_unlock(&session->lock);
	return error;
}

void session_stop(struct xpt_session *session)
{
	pthread_mutex_lock(&session->lock);
	session->ending = true;
	pthread_cond_broadcast(&session->changed);
	pthread_mutex_unlock(&session->lock);
	if (!session->has_thread)
		return;
	collector_wake(session->collector);
	pthread_join(session->thread, NULL);
	session->has_thread = false;
}

void session_free(struct xpt_session *session)
{
	if (!session)
		return;
	statedump_free(&session->statedump);
	collector_free(session->collector);
	pthread_cond_destroy(&session->changed);
	pthread_mutex_destroy(&session->lock);
	free(session);
}

/* ---- consumers with or without a session of their own ---- */

static int join(struct xpt_session *session, const struct collector_options *options, struct consumer *consumer)
{
	size_t lists = options->pid_count | options->process_name_count | options->runtime_file_count |
		       options->runtime_count | options->region_count | options->driver_file_count |
		       options->name_count | options->counter_count | options->buffer_bytes;

	if (lists || options->command || options->all_processes || options->no_wait || options->wait_limit ||
	    options->drivers || options->tracefs || options->link || options->counters_every ||
	    options->counters_per_inference || options->budget || options->why) {
		consumer->left = true;
		log_error(&session->collector->log, "what is traced is the session's: it cannot be chosen here, too");
		return -EINVAL;
	}
	consumer->needs.chosen_only = false;
	consumer->needs.number_operators = consumer->needs.roles >> XPT_ROLE_OPERATOR & 1;
	return session_add(session, consumer);
}

int consumer_attach(struct consumer *consumer, struct xpt_session *session, const struct collector_options *options)
{
	int error;

	consumer->shares = session;
	consumer->session = session;
	if (session)
		return join(session, options, consumer);
	error = session_create(options, &consumer->session);
	return error ?: session_add(consumer->session, consumer);
}

int consumer_start(struct consumer *consumer)
{
	if (!consumer->shares)
		return session_start(consumer->session);
	return consumer->session->started ? session_join(consumer->session, consumer) : 0;
}

void consumer_stop(struct consumer *consumer)
{
	if (consumer->shares)
		session_remove(consumer->session, consumer);
	else
		session_stop(consumer->session);
}

void consumer_free(struct consumer *consumer)
{
	if (!consumer->shares)
		session_free(consumer->session);
}

void consumer_interrupt(struct consumer *consumer)
{
	if (!consumer->shares) {
		xpt_session_interrupt(consumer->session);
		return;
	}
	__atomic_store_n(&consumer->interrupted, 1, __ATOMIC_RELAXED);
	collector_wake(consumer->session->collector);
}

/* The session's own interruption is for who waits for the session. */
int consumer_disturbed(struct consumer *consumer)
{
	if (!consumer->shares || consumer->session->error)
		return session_disturbed(consumer->session);
	return __atomic_exchange_n(&consumer->interrupted, 0, __ATOMIC_RELAXED) ? -EINTR : 0;
}

/* ---- those who wait for it ---- */

void session_wait_change(struct xpt_session *session)
{
	pthread_cond_wait(&session->changed, &session->lock);
}

int session_await(struct xpt_session *session, uint64_t timeout, int (*done)(void *context), void *context)
{
	__u64 now = clock_monotonic(), until = timeout > ~0ull - now ? ~0ull : now + timeout;
	const struct timespec time = { until / 1000000000, until % 1000000000 };
	struct waiter waiter = { .done = done, .context = context };
	int expired = 0;

	link_init(&waiter.link);
	pthread_mutex_lock(&session->lock);
	link_append(&session->waiters, &waiter.link);
	while (!(waiter.result = waiter.result ?: done(context)) && !expired) {
		if (until == ~0ull)
			session_wait_change(session);
		else
			expired = pthread_cond_timedwait(&session->changed, &session->lock, &time) == ETIMEDOUT;
	}
	link_remove(&waiter.link);
	pthread_mutex_unlock(&session->lock);
	return waiter.result;
}

int session_disturbed(struct xpt_session *session)
{
	if (session->error)
		return session->error;
	return __atomic_exchange_n(&session->interrupted, 0, __ATOMIC_RELAXED) ? -EINTR : 0;
}

void xpt_session_interrupt(struct xpt_session *session)
{
	__atomic_store_n(&session->interrupted, 1, __ATOMIC_RELAXED);
	collector_wake(session->collector); /* its thread wakes those who wait */
}

/* ---- with profiles and streams ---- */

int xpt_session_open(struct xpt_session *session)
{
	int error = -EALREADY;

	pthread_mutex_lock(&session->lock);
	if (!session->opened)
		error = session_open(session);
	pthread_mutex_unlock(&session->lock);
	return error;
}

int xpt_session_start(struct xpt_session *session)
{
	/* Nothing has been counted yet: all that the kernel will count belongs to the handles that run already. */
	pthread_mutex_lock(&session->lock);
	if (!session->starting)
		profiling_read(session->profiler->profiling, clock_monotonic(), session_clock_offset(CLOCK_REALTIME));
	pthread_mutex_unlock(&session->lock);
	return session_start(session);
}

static int is_over(void *context)
{
	struct xpt_session *session = context;

	if (profiler_is_callback(session->profiler))
		return -EDEADLK;
	if (!session->started)
		return -EINVAL;
	return session_disturbed(session) ?: session->profiler->over;
}

int xpt_session_wait(struct xpt_session *session, uint64_t timeout)
{
	return session_await(session, timeout, is_over, session);
}

int xpt_session_status(struct xpt_session *session, struct xpt_session_status *status)
{
	const struct profiler *profiler = session->profiler;
	struct xpt_session_status now = {};
	struct budget_times times;

	pthread_mutex_lock(&session->lock);
	if (session->started)
		now.elapsed = clock_monotonic() - session->collector->started;
	now.processes = session->collector->followed_map.count;
	now.programs = profiling_program_count(profiler->profiling);
	now.calls = session->collector->calls;
	now.lost = session->collector->lost;
	now.waiting = profiler->waiting;
	now.waiting_bytes = profiler->waiting_bytes;
	times = budget_times(session->collector->budget);
	now.added_time = times.added;
	now.collector_time = times.collector;
	now.targets_time = times.targets;
	now.suspended = times.suspended;
	pthread_mutex_unlock(&session->lock);
	return options_give(status, &now, sizeof(now));
}

int xpt_session_losses(struct xpt_session *session, int (*visit)(void *context, const char *cause, uint64_t count),
		       void *context)
{
	int result = 0;

	pthread_mutex_lock(&session->lock);
	for (enum xpt_loss cause = 0; !result && cause < XPT_LOSS_MAX; cause++)
		if (session->collector->lost_for[cause])
			result = visit(context, loss_name(cause), session->collector->lost_for[cause]);
	pthread_mutex_unlock(&session->lock);
	return result;
}

int xpt_session_programs(struct xpt_session *session,
			 int (*visit)(void *context, const struct xpt_program_info *program), void *context)
{
	int result;

	pthread_mutex_lock(&session->lock);
	result = profiling_programs(session->profiler->profiling, visit, context);
	pthread_mutex_unlock(&session->lock);
	return result;
}

struct queue_visit {
	int (*visit)(void *context, const struct xpt_queue_use *use);
	void *context;
};

static int on_queue_use(void *context, const struct model_queue_use *from)
{
	const struct queue_visit *visit = context;
	const struct xpt_queue_use use = {
		.size = sizeof(use),
		.queue = from->queue->id,
		.driver = from->queue->driver,
		.device = from->queue->device,
		.engine = from->queue->engine,
		.pid = (pid_t)from->tgid,
		.process = from->process && from->process->name ? from->process->name : "",
		.jobs = from->jobs,
		.queue_time = from->queue_time,
		.device_time = from->device_time,
		.busy_time = from->busy_time,
	};

	return visit->visit(visit->context, &use);
}

int xpt_session_queues(struct xpt_session *session, int (*visit)(void *context, const struct xpt_queue_use *use),
		       void *context)
{
	struct queue_visit each = { visit, context };
	int result;

	pthread_mutex_lock(&session->lock);
	result = model_queue_uses(session->profiler->model, on_queue_use, &each);
	pthread_mutex_unlock(&session->lock);
	return result;
}

int xpt_session_command_status(struct xpt_session *session)
{
	int status;

	pthread_mutex_lock(&session->lock);
	status = collector_command_status(session->collector);
	pthread_mutex_unlock(&session->lock);
	return status;
}

void xpt_session_destroy(struct xpt_session *session)
{
	if (!session)
		return;
	if (session->profiler)
		profiler_stop(session->profiler);
	session_stop(session);
	if (session->started)
		collector_check_names(session->collector, session->profiler->model);
	profiler_free(session->profiler);
	session_free(session);
}
