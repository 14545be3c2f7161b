/* SPDX-License-Identifier: BSD-2-Clause */
/* The flight recorder of xputrace agent: a window of what its session traces, the files that it has been saved into, what is counted of them. */
#include "cli/agent/agent.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/clock.h"
#include "cli/continuous/saving.h"

#define FILES_MAX 64 /* the latest ones, which spans may be about */

struct agent_saves {
	struct saving *saving;
	struct xpt_continuous *window;
	struct agent_metrics *metrics;
	double started; /* s since 1970 */
	bool stopped;

	pthread_mutex_t lock; /* of what follows: whoever holds it takes no other one */
	struct xpt_continuous_status status;
	struct agent_file files[FILES_MAX]; /* number i at i % FILES_MAX */
	uint64_t file_count;		    /* so far */
};

/* On the collecting thread. */
static void on_saved(void *context, const struct xpt_saved *saved, const char *reason)
{
	struct agent_saves *saves = context;
	struct agent_file *file;

	pthread_mutex_lock(&saves->lock);
	file = &saves->files[saves->file_count++ % FILES_MAX];
	snprintf(file->path, sizeof(file->path), "%s", saved->path);
	snprintf(file->reason, sizeof(file->reason), "%s", reason);
	file->bytes = saved->bytes;
	file->begin = saved->begin;
	file->end = saved->end;
	pthread_mutex_unlock(&saves->lock);
	if (saves->saving->runs)
		on_save_file(saves->saving->runs, saved, reason);
}

static void expose(void *context, struct exposition *to)
{
	struct agent_saves *saves = context;
	const struct text none = {};
	const struct {
		struct metric metric;
		const uint64_t *value;
	} counters[] = {
		{ { "xputrace_saves", NULL, "Files that the window was saved into.", METRIC_COUNTER },
		  &saves->status.saves },
		{ { "xputrace_saves_failed", NULL, "Saves that failed.", METRIC_COUNTER },
		  &saves->status.failed_saves },
		{ { "xputrace_saves_suppressed", NULL,
		    "Triggers without a file: within --cooldown, beyond --max-files or --max-bytes, or while one was saved.",
		    METRIC_COUNTER },
		  &saves->status.suppressed },
		{ { "xputrace_saved_bytes", "bytes", "Size of the files that the window was saved into.",
		    METRIC_COUNTER },
		  &saves->status.saved_bytes },
	};

	pthread_mutex_lock(&saves->lock);
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		exposition_family(to, &counters[i].metric);
		exposition_value(to, &none, (double)*counters[i].value, saves->started);
	}
	pthread_mutex_unlock(&saves->lock);
}

void agent_saves_update(struct agent_saves *saves)
{
	XPT_OPTS(xpt_continuous_status, status);

	if (xpt_continuous_status(saves->window, &status)) /* takes the lock of the session */
		return;
	pthread_mutex_lock(&saves->lock);
	saves->status = status;
	pthread_mutex_unlock(&saves->lock);
}

bool agent_saves_pending(struct agent_saves *saves)
{
	const struct xpt_continuous_status *status = &saves->status;
	bool pending;

	pthread_mutex_lock(&saves->lock);
	/* It is saved by triggers and signals alone: the window has no name to ask for more by. */
	pending = !saves->stopped && status->triggered - status->suppressed > status->saves + status->failed_saves;
	pthread_mutex_unlock(&saves->lock);
	return pending;
}

bool agent_saves_find(struct agent_saves *saves, uint64_t begin, uint64_t end, struct agent_file *file)
{
	bool found = false;

	pthread_mutex_lock(&saves->lock);
	for (uint64_t i = saves->file_count < FILES_MAX ? 0 : saves->file_count - FILES_MAX;
	     i < saves->file_count && !found; i++) {
		const struct agent_file *each = &saves->files[i % FILES_MAX];

		found = each->begin <= begin && end <= each->end;
		if (found)
			*file = *each;
	}
	pthread_mutex_unlock(&saves->lock);
	return found;
}

void agent_saves_stop(struct agent_saves *saves)
{
	saving_on_signal(NULL);
	xpt_continuous_stop(saves->window);
	pthread_mutex_lock(&saves->lock);
	saves->stopped = true;
	pthread_mutex_unlock(&saves->lock);
}

int agent_saves_create(struct saving *saving, struct xpt_session *session, struct agent_metrics *metrics,
		       struct agent_saves **result)
{
	struct agent_saves *saves = calloc(1, sizeof(*saves));
	int error = saves ? saving_begin(saving, "agent", print_message) : -ENOMEM;

	if (error) {
		free(saves);
		return error;
	}
	saves->saving = saving;
	saves->metrics = metrics;
	saves->started = (double)clock_read(CLOCK_REALTIME) / 1e9;
	pthread_mutex_init(&saves->lock, NULL);
	saving->options.session = session;
	saving->options.claims = 1;
	saving->options.saved = on_saved;
	saving->options.saved_context = saves;
	error = xpt_continuous_create(&saving->options, &saves->window);
	if (error) {
		saves->window = NULL;
		agent_saves_destroy(saves);
		return error;
	}
	agent_metrics_extend(metrics, expose, saves);
	saving_on_signal(saves->window);
	*result = saves;
	return 0;
}

void agent_saves_destroy(struct agent_saves *saves)
{
	if (!saves)
		return;
	saving_on_signal(NULL);
	agent_metrics_extend(saves->metrics, NULL, saves);
	xpt_continuous_destroy(saves->window);
	saving_end(saves->saving);
	pthread_mutex_destroy(&saves->lock);
	free(saves);
}
