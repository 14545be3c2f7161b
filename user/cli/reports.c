/* SPDX-License-Identifier: BSD-2-Clause */
/* profile and stream: reports of a session go to files. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xputrace/profile.h>
#include <xputrace/stream.h>

#include "base/core/clock.h"
#include "base/core/json.h"
#include "base/core/text.h"
#include "cli/session.h"

#define SAMPLES_DEFAULT 100
#define PATIENCE 2000000000ull	     /* ns without the program, until a message about what it waits for */
#define UPDATE_INTERVAL 200000000ull /* ns */

struct reports {
	struct session_options session; /* first: see session.h */
	struct xpt_profile_options profile;
	struct xpt_program_choice choice; /* of profile */
	const char *program;		  /* as it was given */
	struct xpt_stream_options stream;
	struct xpt_report_files_options files_options;

	const char *command;
	/* Called several times a second: does periodic work, and writes the end of the status line into tail. */
	void (*on_update)(struct reports *reports, char *tail, size_t size);
	/* From the creation of the handle to its end. 0, or the exit status. */
	int (*collect)(struct reports *reports);
	/* 0, or the exit status. */
	int (*print)(struct reports *reports);
	struct xpt_session *library;
	struct status_line status_line;
	uint64_t elapsed; /* ns from the start to the end */
	struct seen_programs seen;
	bool found, reported_waiting; /* the program of profile */

	/* Shared with the callback. */
	pthread_mutex_t lock;
	struct xpt_report_files *files;
	struct totals totals;
	enum xpt_profile_end end;
	uint64_t count, late, skipped; /* reports, samples, inferences */
	bool reported;
	int error; /* of writing, the first one; the library has reported it */
};

#define FIELD(name) .offset = offsetof(struct reports, name)

/* ---- programs ---- */

static bool fits(const struct xpt_program_choice *choice, const struct xpt_program_info *program)
{
	return (!choice->pid || choice->pid == program->pid) &&
	       (!choice->handle || choice->handle == program->handle) &&
	       (!choice->name || text_is_name(program->name, choice->name));
}

/* Adds one that is there now; those that have ended stay. */
static int on_program(void *context, const struct xpt_program_info *program)
{
	struct reports *reports = context;

	reports->found |= reports->program && fits(&reports->choice, program);
	seen_add(&reports->seen, program);
	return 0;
}

/* ---- the run ---- */

/* The line would be drawn into the reports when both go to the same terminal. */
static bool draws_status(const struct session_options *options)
{
	return !options->quiet && isatty(STDERR_FILENO) &&
	       !(session_writes_to_stdout(options) && isatty(STDOUT_FILENO));
}

static void update_status(struct reports *reports)
{
	struct xpt_session_status status = { .size = sizeof(status) };
	struct running_figures figures;
	char tail[160] = "";

	reports->on_update(reports, tail, sizeof(tail));
	if (!draws_status(&reports->session) || xpt_session_status(reports->library, &status))
		return;
	figures = (struct running_figures){ .elapsed = status.elapsed,
					    .processes = status.processes,
					    .programs = status.programs,
					    .calls = status.calls,
					    .lost = status.lost };
	status_line_draw(&reports->status_line, &figures, tail);
}

static int run_until_end(struct reports *reports)
{
	uint64_t started = clock_monotonic(), duration = reports->session.duration, pause;
	int result;

	for (;;) {
		update_status(reports);
		pause = UPDATE_INTERVAL;
		reports->elapsed = clock_monotonic() - started;
		if (duration && reports->elapsed >= duration)
			return 0;
		if (duration && duration - reports->elapsed < pause)
			pause = duration - reports->elapsed;
		result = xpt_session_wait(reports->library, pause);
		reports->elapsed = clock_monotonic() - started;
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

/* Starts the session; returns when a signal, the duration, the end of the targets or a report ends it. 0, or the exit status. */
static int run_session(struct reports *reports)
{
	int result;

	end_on_signals(end_session, reports->library);
	result = exit_status(xpt_session_start(reports->library));
	if (!result)
		result = run_until_end(reports);
	status_clear();
	end_soon(false);
	return result;
}

/* Writes --summary-json, if it is asked for. path: of the last report. The exit status. */
static int write_summary(const struct reports *reports, const char *path, int result)
{
	const struct session_options *session = &reports->session;
	struct summary_json summary;

	summary_json_begin(&summary, session->summary_json, reports->command);
	if (!summary.path)
		return result;
	json_add_unsigned(&summary.text, "duration_ns", reports->elapsed);
	summary_json_totals(&summary, &reports->totals);
	summary_json_output(&summary, path,
			    session->type == XPT_PROFILE_TRACE	  ? "chrome" :
			    session->type == XPT_PROFILE_PERFETTO ? "perfetto" :
			    session->layout == LAYOUT_QAIC	  ? "qaic" :
								    "flat");
	return summary_json_end(&summary, result);
}

/* With the numbering or rotation of files. 0, or the exit status. */
static int open_files(struct reports *reports)
{
	const struct session_options *options = &reports->session;
	struct xpt_report_files_options *files_options = &reports->files_options;

	files_options->size = sizeof(*files_options);
	files_options->path = options->output;
	if (options->type == XPT_PROFILE_TRACE)
		files_options->format = XPT_FORMAT_TRACE;
	else if (options->type == XPT_PROFILE_PERFETTO)
		files_options->format = XPT_FORMAT_PERFETTO;
	else if (options->layout == LAYOUT_QAIC)
		files_options->format = options->summary ? XPT_FORMAT_SUMMARY : XPT_FORMAT_SAMPLES;
	else
		files_options->format = options->summary ? XPT_FORMAT_CSV_SUMMARY : XPT_FORMAT_CSV;
	files_options->log = print_message;
	files_options->log_level = options->log_level;
	files_options->stopped = stop_time();
	return exit_status(xpt_report_files_create(files_options, &reports->files));
}

static int write_reports(struct reports *reports)
{
	int result = open_files(reports), error;
	char path[PATH_MAX];

	if (result)
		return result;
	result = reports->collect(reports);
	if (!result)
		result = reports->print(reports);
	snprintf(path, sizeof(path), "%s", xpt_report_files_path(reports->files));
	error = xpt_report_files_close(reports->files);
	if (reports->error || error)
		result = result ?: EXIT_FAILED;
	return write_summary(reports, path, result);
}

static int run(struct reports *reports)
{
	XPT_OPTS(xpt_session_options, options, WATCH_OPTIONS(&reports->session));
	int error, result;

	messages_detach();
	error = xpt_session_create(&options, &reports->library);
	if (error)
		return exit_status(error);
	error = xpt_session_open(reports->library); /* before any file is touched */
	result = error ? exit_status(error) : write_reports(reports);
	end_on_signals(NULL, NULL);
	xpt_session_destroy(reports->library);
	totals_free(&reports->totals);
	seen_free(&reports->seen);
	free(reports->session.choices);
	return result;
}

/* ---- profile ---- */

static bool take_program(void *context, const char *value, const char **reason)
{
	struct reports *reports = context;

	if (reports->program) {
		*reason = "only one program a profile: start another profile, or use xputrace stream";
		return false;
	}
	reports->program = value;
	return choice_parse(value, &reports->choice, reason);
}

static bool take_delay(void *context, const char *value, const char **reason)
{
	uint64_t *delay = context, milliseconds;

	(void)reason;
	if (!parse_number(value, &milliseconds))
		return parse_duration(value, delay);
	if (milliseconds > UINT64_MAX / 1000000)
		return false;
	*delay = milliseconds * 1000000;
	return true;
}

static const struct option_entry profile_entries[] = {
	{ .group = target_options },
	{ 'P', "program", "NAME|HANDLE",
	  "the program: its name, or its handle as 0x7f3a10002b40;\nname=0x12 is the name 0x12", OPTION_CALLBACK,
	  .take = take_program },
	{ 0, "samples", "N", "number of inferences (default 100)", OPTION_NUMBER, FIELD(profile.samples), .min = 1,
	  .max = XPT_SAMPLES_MAX },
	{ .group = report_options },
	{ 0, "skip", "N", "leave out the first N inferences", OPTION_NUMBER, FIELD(profile.skip) },
	{ 0, "delay", "MS", "leave out what begins in the first MS milliseconds;\nalso 2s, 1m", OPTION_CALLBACK,
	  FIELD(profile.delay), .take = take_delay, .expected = "a number of milliseconds, or a time such as 2s" },
	{ 'o', "output", "FILE",
	  "where to write (default: standard output for latency,\nxputrace-profile.json for trace); -: standard output",
	  OPTION_STRING, FIELD(session.output) },
	{ 'd', "duration", "TIME", "stop after TIME with what there is: 10s, 500ms, 2m", OPTION_DURATION,
	  FIELD(session.duration) },
	{ .group = summary_json_option, FIELD(session.summary_json) },
	{ .group = session_options },
	{}
};

static const struct command_line profile_line = {
	.name = "profile",
	.summary = "Record N inferences of one program, from outside: latency CSV or Chrome trace.",
	.usage = "  xputrace profile --program NAME|HANDLE -p PID[,PID...] [OPTION...]\n"
		 "  xputrace profile --program NAME|HANDLE -a [OPTION...]\n"
		 "  xputrace profile --program NAME|HANDLE [OPTION...] -- COMMAND [ARGUMENT...]",
	.options = profile_entries,
	.more = "It ends when the samples are there. Ctrl-C, SIGTERM, the end of --duration, of the program or of\n"
		"the targets end it earlier, with what there is. A program that has not run yet is waited for.\n\n"
		"examples:\n"
		"  sudo xputrace profile -p 4711 --program resnet50 --samples 1000 -o latency.csv\n"
		"  sudo xputrace profile -a --program 0x7f3a10002b40 --type trace\n"
		"  sudo xputrace profile --program bert --skip 10 --summary -- ./infer bert\n\n"
		"exit status: 0 report written, 1 no samples or failed, 2 wrong usage",
};

static void on_profile_report(void *context, const struct xpt_profile_report *report)
{
	struct reports *reports = context;

	for (size_t i = 0; i < report->program_count; i++) {
		totals_add(&reports->totals, &report->programs[i]);
		reports->skipped += report->programs[i].skipped;
	}
	reports->end = report->end_reason;
	if (reports->totals.sum.taken) {
		reports->error = xpt_report_files_write(reports->files, report);
		reports->reported = true;
	}
	xpt_session_interrupt(reports->library);
}

/* A mistyped name should not mean waiting for ever. */
static void update_profile(struct reports *reports, char *tail, size_t size)
{
	char text[160];

	if (!reports->found)
		xpt_session_programs(reports->library, on_program, reports);
	snprintf(tail, size, "%s", reports->found ? "sampling" : "waiting for the program");
	if (reports->found || reports->reported_waiting || reports->elapsed < PATIENCE || reports->session.quiet)
		return;
	reports->reported_waiting = true;
	snprintf(text, sizeof(text), "waiting for program %.60s; %s", reports->program,
		 reports->seen.count ? "programs seen so far:" : "no program has been seen yet");
	print_message(NULL, XPT_LOG_INFO, text);
	seen_print(&reports->seen);
}

static void report_no_samples(const struct reports *reports)
{
	char text[200];

	if (!reports->found) {
		snprintf(text, sizeof(text), "program %.60s was not seen; %s", reports->program,
			 reports->seen.count ? "programs that were:" : "nor was any other");
		print_message(NULL, XPT_LOG_ERROR, text);
		seen_print(&reports->seen);
		return;
	}
	snprintf(text, sizeof(text), "no sample of program %.60s: ", reports->program);
	if (reports->totals.sum.lost)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%" PRIu64 " inferences were lost",
			 reports->totals.sum.lost);
	else if (reports->profile.skip || reports->profile.delay)
		strcat(text, "it ran nothing after what --skip and --delay leave out");
	else
		strcat(text, "it ran nothing in that time");
	print_message(NULL, XPT_LOG_ERROR, text);
}

static int print_profile(struct reports *reports)
{
	const char *path = xpt_report_files_path(reports->files);
	const struct program_total *sum = &reports->totals.sum;

	reports->found |= reports->totals.count > 0;
	if (!reports->reported) {
		report_no_samples(reports);
		return EXIT_FAILED;
	}
	if (reports->error || reports->session.quiet)
		return 0;
	print_command_status(reports->session.command, xpt_session_command_status(reports->library));
	totals_print(&reports->totals, stderr, terminal_columns(STDERR_FILENO));
	fprintf(stderr,
		"%" PRIu64 " of %" PRIu64 " samples, %" PRIu64 " inferences, %" PRIu64 " lost, %" PRIu64 " failed",
		sum->taken, reports->profile.samples, sum->inferences, sum->lost, sum->failed);
	if (reports->skipped)
		fprintf(stderr, ", %" PRIu64 " left out at the beginning", reports->skipped);
	fputs(reports->end == XPT_PROFILE_RELEASED ? "; the program was released\n" : "\n", stderr);
	if (!session_writes_to_stdout(&reports->session))
		fprintf(stderr, "wrote %s%s\n", path,
			reports->session.type == XPT_PROFILE_TRACE ?
				": open it in https://ui.perfetto.dev or chrome://tracing" :
			reports->session.type == XPT_PROFILE_PERFETTO ? ": open it in https://ui.perfetto.dev" :
									"");
	return 0;
}

static int collect_profile(struct reports *reports)
{
	struct xpt_profile_options *options = &reports->profile;
	struct xpt_profile *handle;
	int result;

	options->size = sizeof(*options);
	options->program = &reports->choice;
	options->type = reports->session.type;
	options->summary = reports->session.summary;
	options->callback = on_profile_report;
	options->context = reports;
	result = exit_status(xpt_profile_create(reports->library, options, &handle));
	if (result)
		return result;
	result = exit_status(xpt_profile_start(handle)) ?: run_session(reports);
	if (!result) {
		if (!reports->found)
			xpt_session_programs(reports->library, on_program, reports);
		xpt_profile_stop(handle); /* an error: it has stopped by itself */
		xpt_profile_wait(handle, XPT_FOREVER);
	}
	xpt_profile_destroy(handle);
	return result;
}

int command_profile(int argc, char **argv)
{
	static struct reports reports = {
		.command = "profile",
		.profile.samples = SAMPLES_DEFAULT,
		.files_options.single = 1,
		.on_update = update_profile,
		.collect = collect_profile,
		.print = print_profile,
	};
	int result = session_options_parse(&profile_line, argc, argv, &reports);

	if (result)
		return result;
	if (!reports.program)
		return session_options_refuse(&profile_line, "requires --program NAME or --program HANDLE");
	if (!reports.session.output)
		reports.session.output = reports.session.type == XPT_PROFILE_TRACE    ? "xputrace-profile.json" :
					 reports.session.type == XPT_PROFILE_PERFETTO ? "xputrace-profile.pftrace" :
											"-";
	return run(&reports);
}

/* ---- stream ---- */

static const struct option_entry stream_entries[] = {
	{ .group = target_options },
	{ 'm', "match", "EXPRESSION",
	  "programs with a name in which this regular expression\nis found (ECMAScript syntax)", OPTION_CALLBACK,
	  .take = take_chosen_match },
	{ 'P', "program", "NAME|HANDLE",
	  "this program, too; a handle is written 0x7f3a10002b40,\nthe name 0x12 as name=0x12", OPTION_CALLBACK,
	  .take = take_chosen_program },
	{ 0, "report-every", "TIME", "reports at multiples of TIME on the clock, 10ms to 24h\n(default 500ms)",
	  OPTION_DURATION, FIELD(stream.report_every), .min = XPT_REPORT_EVERY_MIN, .max = XPT_REPORT_EVERY_MAX },
	{ 's', "sample-every", "N",
	  "record one inference in N of each program: 1 (default),\n2, 4, 8, 16 or any other; counts stay exact",
	  OPTION_INT, FIELD(stream.sample_every), .min = 1, .max = XPT_SAMPLE_EVERY_MAX },
	{ .group = report_options },
	{ 'o', "output", "FILE", "a file a report: FILE-000001.csv for FILE.csv; -: all on\nstandard output (default)",
	  OPTION_STRING, FIELD(session.output) },
	{ 0, "append", NULL, "all reports into FILE", OPTION_SET, FIELD(files_options.append), .value = 1 },
	{ 0, "rotate", "SIZE", "with --append: begin FILE anew before it has SIZE; the\nold one becomes FILE.1",
	  OPTION_SIZE, FIELD(files_options.rotate_bytes) },
	{ 0, "keep", "N", "keep the last N old files only", OPTION_INT, FIELD(files_options.keep), .min = 1,
	  .max = 1000000 },
	{ .group = duration_option },
	{ .group = summary_json_option, FIELD(session.summary_json) },
	{ .group = session_options },
	{}
};

static const struct command_line stream_line = {
	.name = "stream",
	.summary = "Report on chosen programs at every multiple of an interval: latency CSV or Chrome traces.",
	.usage = "  xputrace stream -p PID[,PID...] [OPTION...]\n"
		 "  xputrace stream -a [OPTION...]\n"
		 "  xputrace stream [OPTION...] -- COMMAND [ARGUMENT...]",
	.options = stream_entries,
	.more = "Without --match and --program every program is reported. Ctrl-C, SIGTERM, the end of --duration or\n"
		"of the targets end it, with a last report of what ran since the one before.\n\n"
		"examples:\n"
		"  sudo xputrace stream -p 4711 --summary\n"
		"  sudo xputrace stream -a --match '^(bert|resnet)' --report-every 2s --sample-every 16 -o latency.csv\n"
		"  sudo xputrace stream -a -o night.csv --append --rotate 100M --keep 5\n\n"
		"exit status: 0 reported, 1 failed (also when a report could not be written), 2 wrong usage",
};

static void on_stream_report(void *context, const struct xpt_profile_report *report)
{
	struct reports *reports = context;
	bool to_stdout = session_writes_to_stdout(&reports->session);
	int error = 0;

	/* Standard output takes nothing more after an error; for files there may be room again. */
	if (!to_stdout || !reports->error)
		error = xpt_report_files_write(reports->files, report);
	pthread_mutex_lock(&reports->lock);
	for (size_t i = 0; i < report->program_count; i++)
		totals_add(&reports->totals, &report->programs[i]);
	reports->count++;
	reports->late += report->late;
	if (!reports->error)
		reports->error = error;
	pthread_mutex_unlock(&reports->lock);
	if (error && to_stdout)
		xpt_session_interrupt(reports->library);
}

static void update_stream(struct reports *reports, char *tail, size_t size)
{
	bool idle;

	pthread_mutex_lock(&reports->lock);
	idle = !reports->totals.count;
	snprintf(tail, size, "%" PRIu64 " reports  %" PRIu64 " inferences", reports->count,
		 reports->totals.sum.inferences);
	pthread_mutex_unlock(&reports->lock);
	if (idle)
		xpt_session_programs(reports->library, on_program, reports);
}

static int print_stream(struct reports *reports)
{
	const struct program_total *sum = &reports->totals.sum;
	const char *path = xpt_report_files_path(reports->files);
	bool to_file = !session_writes_to_stdout(&reports->session) && *path;
	/* One of several is taken away by those that it is for. */
	int error = to_file && reports->files_options.append ? output_is_there(path) : 0;

	if (reports->session.quiet)
		return exit_status(error);
	print_command_status(reports->session.command, xpt_session_command_status(reports->library));
	totals_print(&reports->totals, stderr, terminal_columns(STDERR_FILENO));
	fprintf(stderr,
		"%" PRIu64 " reports in %.1f s: %" PRIu64 " inferences, %" PRIu64 " samples, %" PRIu64 " lost, %" PRIu64
		" failed",
		reports->count, reports->elapsed / 1e9, sum->inferences, sum->taken, sum->lost, sum->failed);
	if (reports->late)
		fprintf(stderr, "; %" PRIu64 " samples came one report late", reports->late);
	fputs("\n", stderr);
	if (to_file && !error)
		fprintf(stderr, "wrote %.1f kB%s%s%s\n", xpt_report_files_bytes(reports->files) / 1e3,
			reports->files_options.append ? ": " : "; the last file is ", path,
			access(path, F_OK) ? ", which is not there any more" : "");
	if (!reports->totals.count) {
		print_message(NULL, XPT_LOG_WARN,
			      reports->seen.count ? "no chosen program has run; programs that were seen:" :
						    "no program has run");
		seen_print(&reports->seen);
	}
	return exit_status(error);
}

static int add_choices(const struct reports *reports, struct xpt_stream *handle)
{
	int error = 0;

	for (size_t i = 0; !error && i < reports->session.choice_count; i++) {
		error = xpt_stream_add(handle, &reports->session.choices[i]);
		if (error == -EEXIST)
			error = 0;
	}
	return error;
}

static int collect_stream(struct reports *reports)
{
	struct xpt_stream *handle;
	int result;

	reports->stream.size = sizeof(reports->stream);
	reports->stream.match = reports->session.match;
	reports->stream.type = reports->session.type;
	reports->stream.summary = reports->session.summary;
	reports->stream.callback = on_stream_report;
	reports->stream.context = reports;
	result = exit_status(xpt_stream_create(reports->library, &reports->stream, &handle));
	if (result)
		return result;
	result = exit_status(add_choices(reports, handle) ?: xpt_stream_start(handle)) ?: run_session(reports);
	if (!result) {
		xpt_stream_stop(handle);
		xpt_stream_flush(handle);
	}
	xpt_stream_destroy(handle);
	return result;
}

/* What cannot be meant together; NULL: nothing. */
static const char *contradiction(const struct reports *reports)
{
	const struct xpt_report_files_options *files = &reports->files_options;

	if (files->rotate_bytes && !files->append)
		return "--rotate requires --append";
	if (files->rotate_bytes && session_writes_to_stdout(&reports->session))
		return "--rotate requires a file: -o FILE";
	if (files->keep && session_writes_to_stdout(&reports->session))
		return "--keep requires files: -o FILE";
	if (files->keep && files->append && !files->rotate_bytes)
		return "--keep with --append requires --rotate";
	return NULL;
}

int command_stream(int argc, char **argv)
{
	static struct reports reports = {
		.command = "stream",
		.on_update = update_stream,
		.collect = collect_stream,
		.print = print_stream,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	int result = session_options_parse(&stream_line, argc, argv, &reports);
	const char *reason;

	if (result)
		return result;
	if (!reports.session.output)
		reports.session.output = "-";
	reason = contradiction(&reports);
	if (reason)
		return session_options_refuse(&stream_line, reason);
	if (choices_refused(&stream_line, &reports.session))
		return EXIT_USAGE;
	if (!reports.session.match && !reports.session.choice_count)
		reports.session.match = ""; /* found in every name */
	return run(&reports);
}
