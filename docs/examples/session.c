/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One session, one set of probes: a Chrome trace, two streams of different rates and the code objects that are loaded, until the
 * process ends: session PID TRACE.json
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xputrace/codeobj.h>
#include <xputrace/recording.h>
#include <xputrace/stream.h>

static void on_message(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	fprintf(stderr, "%s\n", text);
}

static void on_report(void *context, const struct xpt_profile_report *report)
{
	for (size_t i = 0; i < report->program_count; i++) {
		const struct xpt_program_report *program = XPT_AT(report->programs, report->program_size, i);

		printf("%s %s: %" PRIu64 " inferences, %" PRIu64 " samples\n", (const char *)context, program->name,
		       program->inferences, program->taken);
	}
}

static struct xpt_stream *start_stream(struct xpt_session *session, const char *name, unsigned int sample_every)
{
	XPT_OPTS(xpt_stream_options, what, .match = "", .callback = on_report, .context = (void *)name,
		 .sample_every = sample_every);
	struct xpt_stream *stream;

	if (xpt_stream_create(session, &what, &stream))
		return NULL;
	xpt_stream_start(stream);
	return stream;
}

static void print_objects(struct xpt_codeobj_capture *capture)
{
	const struct xpt_codeobj_list *list;

	if (xpt_codeobj_capture_get(capture, &list))
		return;
	for (size_t i = 0; i < list->count; i++)
		printf("object %s %s %s\n", list->objects[i]->function ? list->objects[i]->function : "found",
		       list->objects[i]->kind, list->objects[i]->sha256);
}

/* Each ends as if it were alone; the session last. */
static int run(struct xpt_session *session, struct xpt_recording *recording, struct xpt_codeobj_capture *capture)
{
	struct xpt_stream *all = start_stream(session, "all", XPT_SAMPLE_FULL), *few = start_stream(session, "few", 16);
	int error = all && few ? xpt_session_start(session) : -1;

	if (!error)
		xpt_session_wait(session, XPT_FOREVER);
	if (all && !error)
		xpt_stream_stop(all), xpt_stream_flush(all);
	if (few && !error)
		xpt_stream_stop(few), xpt_stream_flush(few);
	xpt_stream_destroy(all);
	xpt_stream_destroy(few);
	if (xpt_codeobj_capture_stop(capture) || xpt_recording_finish(recording))
		error = -1;
	if (!error)
		print_objects(capture);
	return error;
}

int main(int argc, char **argv)
{
	pid_t pid = argc == 3 ? atoi(argv[1]) : 0;
	XPT_OPTS(xpt_session_options, where, .pids = &pid, .pid_count = 1, .log = on_message,
		 .log_level = XPT_LOG_INFO);
	XPT_OPTS(xpt_recording_options, what, .format = XPT_OUTPUT_CHROME);
	XPT_OPTS(xpt_codeobj_options, objects);
	struct xpt_codeobj_capture *capture = NULL;
	struct xpt_recording *recording = NULL;
	struct xpt_session *session;
	int error;

	if (!pid || xpt_session_create(&where, &session))
		return 1;
	what.output = argv[2];
	what.session = objects.session = session;
	error = xpt_recording_create(&what, &recording);
	if (!error)
		error = xpt_codeobj_capture_create(&capture, XPT_CODEOBJ_SYMBOLS, 0, &objects);
	if (!error)
		error = run(session, recording, capture);
	xpt_codeobj_capture_free(capture);
	xpt_recording_destroy(recording);
	xpt_session_destroy(session);
	return error ? 1 : 0;
}
