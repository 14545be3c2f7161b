/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_codeobj_capture_*(): a collector whose records become code objects, on a thread of its own. */
#include <xputrace/codeobj.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/thread.h"
#include "code/index.h"
#include "session/code_side.h"
#include "session/code_views.h"

/*
 * One lock for everything but the collector's own waiting. The thread holds it while it works.
 */
struct xpt_codeobj_capture {
	pthread_mutex_t lock;
	pthread_mutex_t stopping; /* of who stops it; taken before the lock */
	pthread_cond_t changed;
	struct collector *collector;
	struct code_side *side;
	enum xpt_codeobj_mode mode;
	__u64 userdata;
	const struct code_load **loads;
	size_t load_count, load_room;
	__u64 unlisted;		/* loads for which there was no memory */
	struct code_list *list; /* as last given out */

	pthread_t thread;
	bool started, has_thread, ending, over, stopped;
	int interrupted; /* set from anywhere */
	int error;	 /* the thread has given up */
	int write_error; /* of the folder */
};

/* ---- from the capture ---- */

static void on_loaded(void *context, const struct code_load *load)
{
	struct xpt_codeobj_capture *record = context;
	size_t room = record->load_room ? 2 * record->load_room : 64;
	const struct code_load **more;

	if (record->load_count == record->load_room) {
		more = reallocarray(record->loads, room, sizeof(*more));
		if (!more) {
			record->unlisted++;
			return;
		}
		record->loads = more;
		record->load_room = room;
	}
	record->loads[record->load_count++] = load;
}

static void on_unloaded(void *context, const struct code_load *load)
{
	(void)context;
	(void)load; /* its time stands in it */
}

static void on_record(void *context, const struct xpt_record_header *header)
{
	struct xpt_codeobj_capture *record = context;

	code_side_record(record->side, header);
}

static bool on_interrupted(void *context)
{
	return __atomic_load_n(&((struct xpt_codeobj_capture *)context)->interrupted, __ATOMIC_RELAXED);
}

static void on_scanned(void *context, pid_t tgid)
{
	struct xpt_codeobj_capture *record = context;

	code_side_scanned(record->side, tgid);
}

/* ---- creation ---- */

static int create_collector(struct xpt_codeobj_capture *record, const struct xpt_codeobj_options *options)
{
	const struct collector_options collector_options = {
		.pids = options->pids,
		.pid_count = options->pid_count,
		.process_names = options->process_names,
		.process_name_count = options->process_name_count,
		.command = options->command,
		.all_processes = options->all_processes,
		.runtime_files = options->runtime_files,
		.runtime_file_count = options->runtime_file_count,
		.runtimes = options->runtimes,
		.runtime_count = options->runtime_count,
		.link = options->link,
		.drivers = "none",
		.sample_every = XPT_SAMPLE_NONE,
		.codes = true,
		.codes_only = true,
		.no_wait = options->no_wait,
		.wait_limit = options->wait_limit,
		.code_wait_limit = options->code_wait_limit,
		.interrupted = on_interrupted,
		.log = { options->log, options->log_context, options->log_level },
		.record = on_record,
		.scanned = on_scanned,
		.context = record,
	};

	return collector_create(&collector_options, &record->collector);
}

static int create_side(struct xpt_codeobj_capture *record, const struct xpt_codeobj_options *options)
{
	const struct code_side_options side_options = {
		.collector = record->collector,
		.mode = record->mode,
		.output = options->output,
		.user = options->user,
		.group = options->group,
		.object_limit = options->object_limit,
		.process_limit = options->process_limit,
		.total_limit = options->total_limit,
		.keep = true,
		.loaded = on_loaded,
		.unloaded = on_unloaded,
		.context = record,
	};

	return code_side_create(&side_options, &record->side);
}

static void create_lock(struct xpt_codeobj_capture *record)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&record->lock, NULL);
	pthread_mutex_init(&record->stopping, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&record->changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

int xpt_codeobj_capture_create(struct xpt_codeobj_capture **result, enum xpt_codeobj_mode mode, uint64_t userdata,
			       const struct xpt_codeobj_options *given)
{
	struct xpt_codeobj_options options = {};
	struct xpt_codeobj_capture *record;
	int error = options_copy(&options, sizeof(options), given);

	if (error)
		return error;
	if (mode < XPT_CODEOBJ_SYMBOLS || mode > XPT_CODEOBJ_COPY_ALL)
		return -EINVAL;
	record = calloc(1, sizeof(*record));
	if (!record)
		return -ENOMEM;
	create_lock(record);
	record->mode = mode;
	record->userdata = userdata;
	error = create_collector(record, &options);
	if (!error)
		error = create_side(record, &options);
	if (!error)
		error = collector_open(record->collector);
	if (error) {
		xpt_codeobj_capture_free(record);
		return error;
	}
	*result = record;
	return 0;
}

/* ---- the thread ---- */

static struct code_list *make_list(const struct xpt_codeobj_capture *record)
{
	struct code_counts counts = code_side_counts(record->side);

	counts.lost += record->unlisted;
	return code_view_list(record->loads, record->load_count, &counts, record->userdata);
}

static int write_index(struct xpt_codeobj_capture *record)
{
	static const char *const modes[] = { "symbols", "memory", "all" };
	struct code_store *store = code_side_store(record->side);
	struct text text = {};
	struct code_list *list;
	int error = 0;

	if (!store)
		return 0;
	list = make_list(record);
	if (!list)
		return -ENOMEM;
	code_index_write(&text, &list->list, modes[record->mode]);
	error = code_store_index(store, &text);
	text_free(&text);
	code_list_free(list);
	return error;
}

static int collect_once(struct xpt_codeobj_capture *record)
{
	bool ended = targets_ended(record->collector);
	int error = collector_work(record->collector);

	code_side_work(record->side);
	/* What they did last was in the rings before they were found to have ended. */
	record->over = record->over || ended;
	pthread_cond_broadcast(&record->changed);
	return error;
}

static void finish(struct xpt_codeobj_capture *record)
{
	int error;

	collector_finish(record->collector);
	code_side_finish(record->side);
	error = write_index(record);
	record->write_error = code_side_error(record->side) ?: error;
	record->stopped = true;
}

static void *run(void *context)
{
	struct xpt_codeobj_capture *record = context;
	int error = 0;

	pthread_mutex_lock(&record->lock);
	while (!record->ending && !error) {
		pthread_mutex_unlock(&record->lock);
		error = collector_wait(record->collector, ~0ull);
		pthread_mutex_lock(&record->lock);
		if (!error)
			error = collect_once(record);
	}
	if (error && error != record->collector->error)
		log_error(&record->collector->log, "capturing has stopped: %s", strerror(-error));
	record->error = error;
	finish(record);
	pthread_cond_broadcast(&record->changed);
	pthread_mutex_unlock(&record->lock);
	return NULL;
}

/* ---- the other side ---- */

int xpt_codeobj_capture_start(struct xpt_codeobj_capture *record)
{
	int error = -EBUSY;

	pthread_mutex_lock(&record->lock);
	if (record->started)
		goto out;
	record->started = true;
	error = collector_start(record->collector);
	code_side_started(record->side);
	if (!error)
		error = thread_start(&record->thread, run, record, "xpt-collect");
	record->has_thread = !error;
out:
	pthread_mutex_unlock(&record->lock);
	return error;
}

int xpt_codeobj_capture_wait(struct xpt_codeobj_capture *record, uint64_t timeout_ns)
{
	__u64 now = clock_monotonic(), until = timeout_ns > ~0ull - now ? ~0ull : now + timeout_ns;
	const struct timespec time = { until / 1000000000, until % 1000000000 };
	int result = 0, expired = 0;

	pthread_mutex_lock(&record->lock);
	if (!record->has_thread)
		result = -EINVAL;
	while (!result && !record->ending && !expired) {
		result = record->error ?: record->over;
		if (!result && __atomic_exchange_n(&record->interrupted, 0, __ATOMIC_RELAXED))
			result = -EINTR;
		if (result)
			break;
		if (until == ~0ull)
			pthread_cond_wait(&record->changed, &record->lock);
		else
			expired = pthread_cond_timedwait(&record->changed, &record->lock, &time) == ETIMEDOUT;
	}
	if (!result)
		result = record->error ?: record->over;
	pthread_mutex_unlock(&record->lock);
	return result;
}

void xpt_codeobj_capture_interrupt(struct xpt_codeobj_capture *record)
{
	__atomic_store_n(&record->interrupted, 1, __ATOMIC_RELAXED);
	collector_wake(record->collector); /* its thread tells those who wait */
}

int xpt_codeobj_capture_stop(struct xpt_codeobj_capture *record)
{
	int error;

	pthread_mutex_lock(&record->stopping);
	pthread_mutex_lock(&record->lock);
	record->ending = true;
	pthread_cond_broadcast(&record->changed);
	pthread_mutex_unlock(&record->lock);
	if (record->has_thread) {
		collector_wake(record->collector);
		pthread_join(record->thread, NULL);
		record->has_thread = false;
	}
	error = record->write_error;
	pthread_mutex_unlock(&record->stopping);
	return error;
}

int xpt_codeobj_capture_get(struct xpt_codeobj_capture *record, const struct xpt_codeobj_list **list)
{
	struct code_list *now;

	if (!record || !list)
		return -EINVAL;
	pthread_mutex_lock(&record->lock);
	now = make_list(record);
	if (now) {
		code_list_free(record->list);
		record->list = now;
		*list = &now->list;
	}
	pthread_mutex_unlock(&record->lock);
	return now ? 0 : -ENOMEM;
}

int xpt_codeobj_capture_command_status(const struct xpt_codeobj_capture *record)
{
	return record->collector->command.pid ? record->collector->command.status : -1;
}

void xpt_codeobj_capture_free(struct xpt_codeobj_capture *record)
{
	if (!record)
		return;
	xpt_codeobj_capture_stop(record);
	code_list_free(record->list);
	/* What the collector holds it lets go through the side. */
	code_side_free(record->side);
	collector_free(record->collector);
	free(record->loads);
	pthread_cond_destroy(&record->changed);
	pthread_mutex_destroy(&record->stopping);
	pthread_mutex_destroy(&record->lock);
	free(record);
}
