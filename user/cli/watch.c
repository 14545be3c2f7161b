/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/watch.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/commands.h"

#define TURN 200000000ull /* ns */

int watch_create(struct watch *watch)
{
	const struct session_options *options = watch->options;
	struct xpt_session_options session = {
		.size = sizeof(session),
		WATCH_OPTIONS(options),
	};

	messages_detach();
	return exit_status(xpt_session_create(&session, &watch->session));
}

/* The line would be drawn into the reports when both go to the same terminal. */
static bool draws_status(const struct session_options *options)
{
	return !options->quiet && isatty(STDERR_FILENO) &&
	       !(session_writes_to_stdout(options) && isatty(STDOUT_FILENO));
}

static bool take_turn(struct watch *watch)
{
	struct xpt_session_status status = { .size = sizeof(status) };
	struct running_figures figures;
	char tail[160] = "";

	if (watch->turn(watch->context, watch->elapsed, tail, sizeof(tail)))
		return true;
	if (!draws_status(watch->options) || xpt_session_status(watch->session, &status))
		return false;
	figures = (struct running_figures){ .elapsed = status.elapsed,
					    .processes = status.processes,
					    .programs = status.programs,
					    .calls = status.calls,
					    .lost = status.lost };
	status_line_draw(&watch->status_line, &figures, tail);
	return false;
}

static int run_until_end(struct watch *watch)
{
	uint64_t started = clock_monotonic(), duration = watch->options->duration, pause;
	int result;

	for (;;) {
		if (take_turn(watch))
			return 0;
		pause = TURN;
		watch->elapsed = clock_monotonic() - started;
		if (duration && watch->elapsed >= duration)
			return 0;
		if (duration && duration - watch->elapsed < pause)
			pause = duration - watch->elapsed;
		result = xpt_session_wait(watch->session, pause);
		watch->elapsed = clock_monotonic() - started;
		if (result == 1 || result == -EINTR)
			return 0;
		if (result)
			return exit_failed(result);
	}
}

static void end_session(void *session)
{
	xpt_session_interrupt(session);
}

int watch_run(struct watch *watch)
{
	int result;

	end_on_signals(end_session, watch->session);
	result = exit_status(xpt_session_start(watch->session));
	if (!result)
		result = run_until_end(watch);
	status_clear();
	end_soon(false);
	return result;
}

void watch_destroy(struct watch *watch)
{
	end_on_signals(NULL, NULL);
	xpt_session_destroy(watch->session);
	watch->session = NULL;
}

int watch_summary(const struct watch *watch, const char *command, const struct totals *totals, const char *path,
		  int result)
{
	const struct session_options *options = watch->options;
	struct summary_json summary;

	summary_json_begin(&summary, options->summary_json, command);
	if (!summary.path)
		return result;
	json_add_unsigned(&summary.text, "duration_ns", watch->elapsed);
	summary_json_totals(&summary, totals);
	summary_json_output(&summary, path,
			    options->type == XPT_PROFILE_TRACE ? "chrome" :
			    options->layout == LAYOUT_QAIC     ? "qaic" :
								 "flat");
	return summary_json_end(&summary, result);
}

int files_open(const struct session_options *options, struct xpt_report_files_options *files_options,
	       struct xpt_report_files **files)
{
	files_options->size = sizeof(*files_options);
	files_options->path = options->output;
	if (options->type == XPT_PROFILE_TRACE)
		files_options->format = XPT_FORMAT_TRACE;
	else if (options->layout == LAYOUT_QAIC)
		files_options->format = options->summary ? XPT_FORMAT_SUMMARY : XPT_FORMAT_SAMPLES;
	else
		files_options->format = options->summary ? XPT_FORMAT_CSV_SUMMARY : XPT_FORMAT_CSV;
	files_options->log = print_message;
	files_options->log_level = options->log_level;
	files_options->stopped = stop_time();
	return exit_status(xpt_report_files_create(files_options, files));
}
