/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints twice a second what every program of a process has done, until the process ends: stream PID */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xputrace/stream.h>

static void on_message(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	fprintf(stderr, "%s\n", text);
}

static void on_report(void *context, const struct xpt_profile_report *report)
{
	(void)context;
	for (size_t i = 0; i < report->program_count; i++) {
		const struct xpt_program_report *program = XPT_AT(report->programs, report->program_size, i);
		XPT_OPTS(xpt_column_summary, time);

		xpt_latencies_get(program->latencies, XPT_COLUMN_TOTAL_ROUND_TRIP, &time);
		printf("%s: %" PRIu64 " inferences, %.1f us on average, 99 %% below %.1f us\n", program->name,
		       program->inferences, time.mean, time.p99);
	}
}

int main(int argc, char **argv)
{
	pid_t pid = argc == 2 ? atoi(argv[1]) : 0;
	XPT_OPTS(xpt_session_options, where, .pids = &pid, .pid_count = 1, .log = on_message,
		 .log_level = XPT_LOG_INFO);
	XPT_OPTS(xpt_stream_options, what, .report_every = XPT_REPORT_EVERY_500MS, .match = "", .summary = 1,
		 .callback = on_report);
	struct xpt_session *session;
	struct xpt_stream *stream;

	if (!pid || xpt_session_create(&where, &session))
		return 1;
	if (!xpt_stream_create(session, &what, &stream)) {
		if (!xpt_stream_start(stream) && !xpt_session_start(session)) {
			xpt_session_wait(session, XPT_FOREVER);
			xpt_stream_stop(stream);
			xpt_stream_flush(stream); /* the last report */
		}
		xpt_stream_destroy(stream);
	}
	xpt_session_destroy(session);
	return 0;
}
