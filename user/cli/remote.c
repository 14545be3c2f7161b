/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xputrace/continuous.h>

#include "cli/commands.h"
#include "cli/list_output.h"
#include "cli/options.h"
#include "cli/seen.h"

struct remote_context {
	struct xpt_remote remote;
	struct xpt_save_options save;
	int json; /* 0: text */
	bool quiet;
};

static bool take_program(void *context, const char *value, const char **reason)
{
	struct xpt_save_options *save = context;
	struct xpt_program_choice choice = {};

	if (!choice_parse(value, &choice, reason))
		return false;
	save->program = choice.name;
	save->handle = choice.handle;
	return true;
}

static bool take_core(void *context, const char *value, const char **reason)
{
	struct xpt_save_options *save = context;
	char *end;

	(void)reason;
	errno = 0;
	save->core = strtoll(value, &end, 10);
	save->has_core = 1;
	return !errno && *value && !*end;
}

#define FIELD(name) .offset = offsetof(struct remote_context, name)

static const struct option_entry remote_options[] = {
	{ 0, "instance", "NAME", "of the collector (default: " XPT_CONTINUOUS_NAME ")", OPTION_STRING,
	  FIELD(remote.name) },
	{ 0, "timeout", "TIME", "wait so long for an answer (default 60s)", OPTION_DURATION, FIELD(remote.timeout) },
	{}
};

static const struct option_entry save_entries[] = {
	{ 'p', "pid", "PID", "only what this process did", OPTION_INT, FIELD(save.pid), .min = 1, .max = INT32_MAX,
	  .expected = "a process ID" },
	{ 'P', "program", "NAME|HANDLE", "the latest inference of this program", OPTION_CALLBACK, FIELD(save),
	  .take = take_program },
	{ 'c', "core", "N", "the latest inference on this core", OPTION_CALLBACK, FIELD(save), .take = take_core,
	  .expected = "the number of a core" },
	{ 'n', "last", "N", "the last N inferences, of that program or on that core", OPTION_NUMBER,
	  FIELD(save.inferences), .min = 1 },
	{ 't', "time", "TIME", "only what began in the last TIME", OPTION_DURATION, FIELD(save.time) },
	{ .group = remote_options },
	{ 0, "format", "FORMAT", "table (default): the file's name; json: all about it", OPTION_CHOICE, FIELD(json),
	  .choices = TABLE_CHOICES },
	{ 'q', "quiet", NULL, "the file's name only", OPTION_FLAG, FIELD(quiet) },
	{}
};

static const struct command_line save_line = {
	.name = "continuous save",
	.summary = "Write what a running collector has in its window into a file: all of it, or a part.",
	.usage = "  xputrace continuous save [OPTION...]",
	.options = save_entries,
	.more = "The file's name is printed on standard output when the file is on the disk. Recording goes on\n"
		"meanwhile. With its operators, jobs of drivers and counters as far as they are recorded.\n\n"
		"examples:\n"
		"  sudo xputrace continuous save                       the whole window\n"
		"  sudo xputrace continuous save --core 3              the latest inference on core 3\n"
		"  sudo xputrace continuous save -P resnet50 -n 100    the last 100 of a program\n"
		"  sudo xputrace continuous save -p 4711 -t 5s         5 s of one process\n\n"
		"exit status: 0 saved, 1 failed (also when there is no such inference), 2 wrong usage",
};

static const struct option_entry status_entries[] = { { .group = remote_options },
						      { 0, "format", "FORMAT", "table (default) or json", OPTION_CHOICE,
							FIELD(json), .choices = TABLE_CHOICES },
						      {} };

static const struct command_line status_line = {
	.name = "continuous status",
	.summary = "Tell what a running collector has in its window, and what it costs.",
	.usage = "  xputrace continuous status [OPTION...]",
	.options = status_entries,
	.more = "exit status: 0 it runs, 1 it does not, 2 wrong usage",
};

static const struct command_line stop_line = {
	.name = "continuous stop",
	.summary = "End a running collector; nothing is saved.",
	.usage = "  xputrace continuous stop [OPTION...]",
	.options = remote_options,
	.more = "It returns when all probes are off.\n\n"
		"exit status: 0 it has ended, 1 there was none, 2 wrong usage",
};

/* 0, PARSE_HELP or EXIT_USAGE. */
static int parse(const struct command_line *line, int argc, char **argv, struct remote_context *context)
{
	int first, result;

	context->remote = (struct xpt_remote){ .size = sizeof(context->remote),
					       .log = print_message,
					       .log_level = XPT_LOG_INFO };
	context->save.size = sizeof(context->save);
	result = options_parse(line, argc, argv, context, &first);
	if (result || first == argc)
		return result;
	fprintf(stderr, "xputrace %s: '%s' is not an option (see xputrace %s --help)\n", line->name, argv[first],
		line->name);
	return EXIT_USAGE;
}

static void print_saved(const struct xpt_saved *saved)
{
	printf("{");
	list_string("path", saved->path, ",");
	printf("\"bytes\":%" PRIu64 ",\"begin_ns\":\"%" PRIu64 "\",\"end_ns\":\"%" PRIu64 "\",\"records\":%" PRIu64
	       ",\"inferences\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"duration_ns\":%" PRIu64 "}\n",
	       saved->bytes, saved->begin, saved->end, saved->records, saved->inferences, saved->lost, saved->duration);
}

int remote_save(int argc, char **argv)
{
	struct remote_context context = {};
	struct xpt_saved saved = { .size = sizeof(saved) };
	int result = parse(&save_line, argc, argv, &context);

	if (result)
		return result == PARSE_HELP ? 0 : result;
	result = xpt_remote_save(&context.remote, &context.save, &saved);
	if (result)
		return exit_failed(result);
	if (context.json) {
		print_saved(&saved);
		return 0;
	}
	printf("%s\n", saved.path);
	fflush(stdout);
	if (!context.quiet)
		fprintf(stderr,
			"%.3f s, %" PRIu64
			" records, %.1f MB; `xputrace report FILE -o trace.json` makes a trace of it\n",
			(saved.end - saved.begin) / 1e9, saved.records, saved.bytes / 1e6);
	return 0;
}

struct row {
	const char *name, *title;
	uint64_t value;
	enum { PLAIN, TIME, BYTES } unit;
};

static void print_row(const struct row *row)
{
	switch (row->unit) {
	case TIME:
		printf("%-22s %.3f s\n", row->title, row->value / 1e9);
		break;
	case BYTES:
		printf("%-22s %.1f MB\n", row->title, row->value / 1e6);
		break;
	default:
		printf("%-22s %" PRIu64 "\n", row->title, row->value);
	}
}

static void print_status(const struct xpt_continuous_status *status, bool json)
{
	const struct row rows[] = {
		{ "pid", "collector's PID", (uint64_t)status->pid, PLAIN },
		{ "elapsed_ns", "running for", status->elapsed, TIME },
		{ "processes", "processes", status->processes, PLAIN },
		{ "calls", "calls recorded", status->calls, PLAIN },
		{ "lost", "records lost", status->lost, PLAIN },
		{ "window_ns", "window", status->window_time, TIME },
		{ "window_bytes", "its memory", status->window_bytes, BYTES },
		{ "window_records", "records in it", status->window_records, PLAIN },
		{ "window_inferences", "inferences in it", status->window_inferences, PLAIN },
		{ "evicted_records", "records evicted", status->evicted_records, PLAIN },
		{ "evicted_inferences", "inferences evicted", status->evicted_inferences, PLAIN },
		{ "saves", "files saved", status->saves, PLAIN },
		{ "saved_bytes", "bytes in them", status->saved_bytes, BYTES },
		{ "failed_saves", "saves that failed", status->failed_saves, PLAIN },
		{ "triggered", "triggers fired", status->triggered, PLAIN },
		{ "suppressed", "of them without a file", status->suppressed, PLAIN },
		{ "cpu_ns", "CPU time", status->cpu_time, TIME },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (json)
			printf("%s\"%s\":%" PRIu64, i ? "," : "{", rows[i].name, rows[i].value);
		else
			print_row(&rows[i]);
	}
	if (json)
		printf("}\n");
}

int remote_status(int argc, char **argv)
{
	struct xpt_continuous_status status = { .size = sizeof(status) };
	struct remote_context context = {};
	int result = parse(&status_line, argc, argv, &context);

	if (result)
		return result == PARSE_HELP ? 0 : result;
	result = xpt_remote_status(&context.remote, &status);
	if (result)
		return exit_failed(result);
	print_status(&status, context.json);
	return 0;
}

int remote_stop(int argc, char **argv)
{
	struct remote_context context = {};
	int result = parse(&stop_line, argc, argv, &context);

	if (result)
		return result == PARSE_HELP ? 0 : result;
	result = xpt_remote_stop(&context.remote);
	return result ? exit_failed(result) : 0;
}
