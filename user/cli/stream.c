/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <xputrace/stream.h>

#include "cli/session.h"
#include "cli/commands.h"
#include "cli/summary.h"

struct stream_context {
	struct session_options session; /* first: see session.h */
	struct xpt_stream_options options;
	struct xpt_report_files_options files_options;
	struct watch watch;
	struct seen_programs seen;

	/* Shared with the callback. */
	pthread_mutex_t lock;
	struct xpt_report_files *files;
	struct totals totals;
	uint64_t reports, late;
	int error; /* of writing, the first one; the library has reported it */
};

#define FIELD(name) .offset = offsetof(struct stream_context, name)

static const struct option_entry entries[] = {
	{ .group = target_options },
	{ 'm', "match", "EXPRESSION",
	  "programs with a name in which this regular expression\nis found (ECMAScript syntax)", OPTION_CALLBACK,
	  .take = take_chosen_match },
	{ 'P', "program", "NAME|HANDLE",
	  "this program, too; a handle is written 0x7f3a10002b40,\nthe name 0x12 as name=0x12", OPTION_CALLBACK,
	  .take = take_chosen_program },
	{ 0, "report-every", "TIME", "reports at multiples of TIME on the clock, 10ms to 24h\n(default 500ms)",
	  OPTION_DURATION, FIELD(options.report_every), .min = XPT_REPORT_EVERY_MIN, .max = XPT_REPORT_EVERY_MAX },
	{ 's', "sample-every", "N",
	  "record one inference in N of each program: 1 (default),\n2, 4, 8, 16 or any other; counts stay exact",
	  OPTION_INT, FIELD(options.sample_every), .min = 1, .max = XPT_SAMPLE_EVERY_MAX },
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

static const struct command_line line = {
	.name = "stream",
	.summary = "Report on chosen programs at every multiple of an interval: latency CSV or Chrome traces.",
	.usage = "  xputrace stream -p PID[,PID...] [OPTION...]\n"
		 "  xputrace stream -a [OPTION...]\n"
		 "  xputrace stream [OPTION...] -- COMMAND [ARGUMENT...]",
	.options = entries,
	.more = "Without --match and --program every program is reported. Ctrl-C, SIGTERM, the end of --duration or\n"
		"of the targets end it, with a last report of what ran since the one before.\n\n"
		"examples:\n"
		"  sudo xputrace stream -p 4711 --summary\n"
		"  sudo xputrace stream -a --match '^(bert|resnet)' --report-every 2s --sample-every 16 -o latency.csv\n"
		"  sudo xputrace stream -a -o night.csv --append --rotate 100M --keep 5\n\n"
		"exit status: 0 reported, 1 failed (also when a report could not be written), 2 wrong usage",
};

static void on_report(void *context, const struct xpt_profile_report *report)
{
	struct stream_context *stream = context;
	bool to_stdout = session_writes_to_stdout(&stream->session);
	int error = 0;

	/* Standard output takes nothing more after an error; for files there may be room again. */
	if (!to_stdout || !stream->error)
		error = xpt_report_files_write(stream->files, report);
	pthread_mutex_lock(&stream->lock);
	for (size_t i = 0; i < report->program_count; i++)
		totals_add(&stream->totals, &report->programs[i]);
	stream->reports++;
	stream->late += report->late;
	if (!stream->error)
		stream->error = error;
	pthread_mutex_unlock(&stream->lock);
	if (error && to_stdout)
		xpt_session_interrupt(stream->watch.session);
}

static bool on_update(void *context, uint64_t elapsed, char *tail, size_t size)
{
	struct stream_context *stream = context;
	bool idle;

	(void)elapsed;
	pthread_mutex_lock(&stream->lock);
	idle = !stream->totals.count;
	snprintf(tail, size, "%" PRIu64 " reports  %" PRIu64 " inferences", stream->reports,
		 stream->totals.sum.inferences);
	pthread_mutex_unlock(&stream->lock);
	if (idle)
		seen_update(&stream->seen, stream->watch.session, NULL, 0);
	return false;
}

static void print_result(struct stream_context *stream)
{
	const struct program_total *sum = &stream->totals.sum;
	const char *path = xpt_report_files_path(stream->files);

	print_command_status(stream->session.command, xpt_session_command_status(stream->watch.session));
	totals_print(&stream->totals, stderr, terminal_columns(STDERR_FILENO));
	fprintf(stderr,
		"%" PRIu64 " reports in %.1f s: %" PRIu64 " inferences, %" PRIu64 " samples, %" PRIu64 " lost, %" PRIu64
		" failed",
		stream->reports, stream->watch.elapsed / 1e9, sum->inferences, sum->taken, sum->lost, sum->failed);
	if (stream->late)
		fprintf(stderr, "; %" PRIu64 " samples came one report late", stream->late);
	fputs("\n", stderr);
	if (!session_writes_to_stdout(&stream->session) && *path)
		fprintf(stderr, "wrote %.1f kB%s%s\n", xpt_report_files_bytes(stream->files) / 1e3,
			stream->files_options.append ? ": " : "; the last file is ", path);
	if (!stream->totals.count) {
		print_message(NULL, XPT_LOG_WARN,
			      stream->seen.count ? "no chosen program has run; programs that were seen:" :
						   "no program has run");
		seen_print(&stream->seen);
	}
}

static int add_choices(const struct stream_context *stream, struct xpt_stream *handle)
{
	int error = 0;

	for (size_t i = 0; !error && i < stream->session.choice_count; i++) {
		error = xpt_stream_add(handle, &stream->session.choices[i]);
		if (error == -EEXIST)
			error = 0;
	}
	return error;
}

static int report_until_end(struct stream_context *stream)
{
	struct xpt_stream *handle;
	int result;

	stream->options.size = sizeof(stream->options);
	stream->options.match = stream->session.match;
	stream->options.type = stream->session.type;
	stream->options.summary = stream->session.summary;
	stream->options.callback = on_report;
	stream->options.context = stream;
	result = exit_status(xpt_stream_create(stream->watch.session, &stream->options, &handle));
	if (result)
		return result;
	result = exit_status(add_choices(stream, handle) ?: xpt_stream_start(handle)) ?: watch_run(&stream->watch);
	if (!result) {
		xpt_stream_stop(handle);
		xpt_stream_flush(handle);
	}
	xpt_stream_destroy(handle);
	return result;
}

static int run(struct stream_context *stream)
{
	char path[PATH_MAX];
	int result, error;

	stream->watch = (struct watch){ .options = &stream->session, .on_update = on_update, .context = stream };
	result = watch_create(&stream->watch);
	if (result)
		return result;
	result = files_open(&stream->session, &stream->files_options, &stream->files);
	if (result)
		goto out;
	result = report_until_end(stream);
	if (!result && !stream->session.quiet)
		print_result(stream);
	snprintf(path, sizeof(path), "%s", xpt_report_files_path(stream->files));
	error = xpt_report_files_close(stream->files);
	if (!result && (stream->error || error))
		result = EXIT_FAILED;
	result = watch_summary(&stream->watch, "stream", &stream->totals, path, result);
out:
	watch_destroy(&stream->watch);
	totals_free(&stream->totals);
	seen_free(&stream->seen);
	return result;
}

/* What cannot be meant together; NULL: nothing. */
static const char *contradiction(const struct stream_context *stream)
{
	const struct xpt_report_files_options *files = &stream->files_options;

	if (files->rotate_bytes && !files->append)
		return "--rotate requires --append";
	if (files->rotate_bytes && session_writes_to_stdout(&stream->session))
		return "--rotate requires a file: -o FILE";
	if (files->keep && session_writes_to_stdout(&stream->session))
		return "--keep requires files: -o FILE";
	if (files->keep && files->append && !files->rotate_bytes)
		return "--keep with --append requires --rotate";
	return NULL;
}

int command_stream(int argc, char **argv)
{
	static struct stream_context stream = { .lock = PTHREAD_MUTEX_INITIALIZER };
	int result = session_options_parse(&line, argc, argv, &stream);
	const char *reason;

	if (result)
		return result == PARSE_HELP ? 0 : result;
	if (!stream.session.output)
		stream.session.output = "-";
	reason = contradiction(&stream);
	if (reason)
		return session_options_refuse(&line, reason);
	if (choices_refused(&line, &stream.session))
		return EXIT_USAGE;
	if (!stream.session.match && !stream.session.choice_count)
		stream.session.match = ""; /* found in every name */
	result = run(&stream);
	free(stream.session.choices);
	return result;
}
