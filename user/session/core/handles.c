/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_profile_*() and xpt_stream_*(): profiling handles as their users see them. */
#include <xputrace/profile.h>
#include <xputrace/stream.h>

#include <errno.h>
#include <stdlib.h>

#include "base/core/clock.h"
#include "base/core/options.h"
#include "session/core/session.h"

struct xpt_profile {
	struct subscriber *subscriber;
};

struct xpt_stream {
	struct subscriber *subscriber;
};

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
	error = handle_start(subscriber->handle, clock_monotonic(), session_clock_offset());
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
	if (options->type != XPT_PROFILE_LATENCY && options->type != XPT_PROFILE_TRACE)
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
	struct xpt_profile *profile;
	int error = options_copy(&options, sizeof(options), given);

	if (!error && options.program)
		error = options_copy(&program, sizeof(program), options.program);
	if (!error)
		error = check_profile(&session->collector->log, &options, &program);
	if (error)
		return error;
	profile = calloc(1, sizeof(*profile));
	if (!profile)
		return -ENOMEM;
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
			  options.callback, options.context, &profile->subscriber);
	if (error) {
		free(profile);
		return error;
	}
	*result = profile;
	return 0;
}

int xpt_profile_start(struct xpt_profile *profile)
{
	return start(profile->subscriber);
}

int xpt_profile_stop(struct xpt_profile *profile)
{
	return stop(profile->subscriber);
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
	return session_await(profile->subscriber->session, timeout, profile_done, profile->subscriber);
}

void xpt_profile_destroy(struct xpt_profile *profile)
{
	if (!profile)
		return;
	unsubscribe(profile->subscriber);
	free(profile);
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
	if (options->type != XPT_PROFILE_LATENCY && options->type != XPT_PROFILE_TRACE)
		return refuse(log, "unknown type of a stream");
	if (options->summary && options->type != XPT_PROFILE_LATENCY)
		return refuse(log, "only latencies have a summary");
	return 0;
}

int xpt_stream_create(struct xpt_session *session, const struct xpt_stream_options *given, struct xpt_stream **result)
{
	struct xpt_stream_options options = {};
	struct xpt_stream *stream;
	int error = options_copy(&options, sizeof(options), given);

	if (!error)
		error = check_stream(&session->collector->log, &options);
	if (error)
		return error;
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return -ENOMEM;
	error = subscribe(session,
			  &(struct handle_options){
				  .stream = true,
				  .type = options.type,
				  .summary = options.summary,
				  .name = options.name,
				  .report_every = options.report_every ?: XPT_REPORT_EVERY_500MS,
				  .sample_every = options.sample_every ?: XPT_SAMPLE_FULL,
				  .match = options.match,
			  },
			  options.callback, options.context, &stream->subscriber);
	if (error) {
		free(stream);
		return error;
	}
	*result = stream;
	return 0;
}

int xpt_stream_add(struct xpt_stream *stream, const struct xpt_program_choice *given)
{
	struct xpt_program_choice choice = {};
	int error = options_copy(&choice, sizeof(choice), given);

	if (error)
		return error;
	pthread_mutex_lock(&stream->subscriber->session->lock);
	return unlock(stream->subscriber, handle_add(stream->subscriber->handle, &choice));
}

int xpt_stream_remove(struct xpt_stream *stream, const struct xpt_program_choice *given)
{
	struct xpt_program_choice choice = {};
	int error = options_copy(&choice, sizeof(choice), given);

	if (error)
		return error;
	pthread_mutex_lock(&stream->subscriber->session->lock);
	return unlock(stream->subscriber, handle_remove(stream->subscriber->handle, &choice));
}

int xpt_stream_start(struct xpt_stream *stream)
{
	return start(stream->subscriber);
}

int xpt_stream_stop(struct xpt_stream *stream)
{
	return stop(stream->subscriber);
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
	int result = session_await(stream->subscriber->session, XPT_FOREVER, is_flushed, stream->subscriber);

	return result < 0 ? result : 0;
}

void xpt_stream_destroy(struct xpt_stream *stream)
{
	if (!stream)
		return;
	unsubscribe(stream->subscriber);
	free(stream);
}
