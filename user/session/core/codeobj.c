/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_codeobj_capture_*(): a consumer that makes code objects of records. */
#include <xputrace/codeobj.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/options.h"
#include "base/core/vec.h"
#include "code/store/index.h"
#include "session/code/codeobj_source.h"
#include "session/code/views.h"
#include "session/core/session.h"

struct xpt_codeobj_capture {
	pthread_mutex_t stopping; /* of who stops it; taken before the session's lock */
	struct consumer consumer;
	struct codeobj_source *source;
	enum xpt_codeobj_mode mode;
	__u64 userdata;
	const struct code_load **loads;
	size_t load_count;
	__u64 unlisted;		/* loads for which there was no memory */
	struct code_list *list; /* as last returned */
	bool ended;		/* all targets have */
	bool over;		/* and what they did last is known, which was in the rings before that */
	int write_error;	/* of the folder */
};

/* ---- from the capture ---- */

static void on_loaded(void *context, const struct code_load *load)
{
	struct xpt_codeobj_capture *record = context;

	if (vec_push(record->loads, record->load_count, load))
		record->unlisted++;
}

static void on_unloaded(void *context, const struct code_load *load)
{
	(void)context;
	(void)load; /* it has its own time */
}

static void on_record(void *context, const struct xpt_record_header *header)
{
	struct xpt_codeobj_capture *record = context;

	codeobj_source_record(record->source, header);
}

static void on_scanned(void *context, pid_t tgid)
{
	struct xpt_codeobj_capture *record = context;

	codeobj_source_scanned(record->source, tgid);
}

/* ---- while it runs ---- */

static struct code_list *make_list(const struct xpt_codeobj_capture *record)
{
	struct code_counts counts = codeobj_source_counts(record->source);

	counts.lost += record->unlisted;
	return code_view_list(record->loads, record->load_count, &counts, record->userdata);
}

static int write_index(struct xpt_codeobj_capture *record)
{
	static const char *const modes[] = { "symbols", "memory", "all" };
	struct code_store *store = codeobj_source_store(record->source);
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

static int on_started(void *context)
{
	struct xpt_codeobj_capture *record = context;

	codeobj_source_started(record->source);
	return 0;
}

static __u64 on_work(void *context, __u64 now)
{
	struct xpt_codeobj_capture *record = context;

	(void)now;
	codeobj_source_work(record->source);
	record->over = record->ended;
	record->ended = record->ended || targets_ended(record->consumer.session->collector);
	return ~0ull;
}

static void on_finished(void *context)
{
	struct xpt_codeobj_capture *record = context;
	int error;

	if (!record->source)
		return;
	codeobj_source_finish(record->source);
	error = write_index(record);
	record->write_error = codeobj_source_error(record->source) ?: error;
}

/* ---- creation ---- */

static int create_session(struct xpt_codeobj_capture *record, const struct xpt_codeobj_options *options)
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
		.drivers = options->session ? NULL : "none",
		.no_wait = options->no_wait,
		.wait_limit = options->wait_limit,
		.log = { options->log, options->log_context, options->log_level },
	};

	return consumer_attach(&record->consumer, options->session, &collector_options);
}

static int create_source(struct xpt_codeobj_capture *record, const struct xpt_codeobj_options *options)
{
	const struct codeobj_source_options source_options = {
		.collector = record->consumer.session->collector,
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

	return codeobj_source_create(&source_options, &record->source);
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
	pthread_mutex_init(&record->stopping, NULL);
	record->mode = mode;
	record->userdata = userdata;
	record->consumer = (struct consumer){
		.record = on_record,
		.scanned = on_scanned,
		.attached = on_started,
		.work = on_work,
		.finished = on_finished,
		.context = record,
		.needs = { .codes = true, .code_wait_limit = options.code_wait_limit },
	};
	error = create_session(record, &options);
	if (!error)
		error = create_source(record, &options);
	if (!error && !record->consumer.shares)
		error = session_open(record->consumer.session);
	if (error) {
		xpt_codeobj_capture_free(record);
		return error;
	}
	*result = record;
	return 0;
}

/* ---- the other side ---- */

int xpt_codeobj_capture_start(struct xpt_codeobj_capture *record)
{
	int error = consumer_start(&record->consumer);

	return error == -EALREADY ? -EBUSY : error;
}

static int is_over(void *context)
{
	struct xpt_codeobj_capture *record = context;
	const struct xpt_session *session = record->consumer.session;

	if (!session->has_thread || !record->consumer.started)
		return -EINVAL;
	if (session->error || record->over)
		return session->error ?: 1;
	return consumer_disturbed(&record->consumer) ?: (session->ending || record->consumer.left ? -ECANCELED : 0);
}

int xpt_codeobj_capture_wait(struct xpt_codeobj_capture *record, uint64_t timeout_ns)
{
	int result = session_await(record->consumer.session, timeout_ns, is_over, record);

	return result == -ECANCELED ? 0 : result;
}

void xpt_codeobj_capture_interrupt(struct xpt_codeobj_capture *record)
{
	consumer_interrupt(&record->consumer);
}

int xpt_codeobj_capture_stop(struct xpt_codeobj_capture *record)
{
	int error;

	pthread_mutex_lock(&record->stopping);
	consumer_stop(&record->consumer);
	error = record->write_error;
	pthread_mutex_unlock(&record->stopping);
	return error;
}

int xpt_codeobj_capture_get(struct xpt_codeobj_capture *record, const struct xpt_codeobj_list **list)
{
	struct code_list *now;

	if (!record || !list)
		return -EINVAL;
	pthread_mutex_lock(&record->consumer.session->lock);
	now = make_list(record);
	if (now) {
		code_list_free(record->list);
		record->list = now;
		*list = &now->list;
	}
	pthread_mutex_unlock(&record->consumer.session->lock);
	return now ? 0 : -ENOMEM;
}

int xpt_codeobj_capture_command_status(const struct xpt_codeobj_capture *record)
{
	return collector_command_status(record->consumer.session->collector);
}

void xpt_codeobj_capture_free(struct xpt_codeobj_capture *record)
{
	if (!record)
		return;
	if (record->consumer.session && (record->source || record->consumer.shares))
		xpt_codeobj_capture_stop(record);
	code_list_free(record->list);
	/* Threads that wait for the collector are resumed through the source. */
	codeobj_source_free(record->source);
	consumer_free(&record->consumer);
	free(record->loads);
	pthread_mutex_destroy(&record->stopping);
	free(record);
}
