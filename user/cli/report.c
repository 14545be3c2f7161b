/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <xputrace/report.h>

#include "cli/commands.h"
#include "cli/options.h"

struct report_context {
	struct xpt_report_options options;
	bool quiet;
};

static bool take_output(void *context, const char *value, const char **reason)
{
	*reason = "a file name, or - for standard output, is wanted";
	((struct report_context *)context)->options.output = value;
	return *value;
}

static bool take_format(void *context, const char *value, const char **reason)
{
	enum xpt_output *format = &((struct report_context *)context)->options.format;

	return parse_trace_format(value, format, reason);
}

static bool take_level(void *context, const char *value, const char **reason)
{
	enum xpt_level *level = &((struct report_context *)context)->options.level;

	if (parse_level(value, level, reason) && *level != XPT_LEVEL_STANDARD)
		return true;
	*reason = "the levels are basic and detailed";
	return false;
}

static bool take_quiet(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct report_context *)context)->quiet = true;
	return true;
}

static const struct option_entry entries[] = {
	{ 'o', "output", "FILE", "write a Chrome trace; -: on standard output", take_output },
	{ 0, "format", "FORMAT",
	  "of the trace: chrome (default); ort, as ONNX Runtime's own\nprofiler writes; qnn-csv, as its QNN execution "
	  "provider does",
	  take_format },
	{ 0, "level", "LEVEL", "of qnn-csv: basic, without operators and timestamps; or\ndetailed (default)",
	  take_level },
	{ 'q', "quiet", NULL, "no summary", take_quiet },
};

static const struct command_line line = {
	.name = "report",
	.summary = "Make a Chrome trace and the summary from a recording. Needs no root and no special kernel.",
	.usage = "  xputrace report RECORDING.xpt [-o trace.json]",
	.options = entries,
	.option_count = sizeof(entries) / sizeof(entries[0]),
	.more = "RECORDING is what `xputrace record -o FILE.xpt` wrote; - reads standard input. One that was cut\n"
		"short is reported up to its last complete part.\n\n"
		"exit status: 0 reported, 1 failed or the recording was cut short, 2 wrong usage",
};

static void on_progress(void *context, uint64_t done, uint64_t total)
{
	char text[64];

	(void)context;
	if (total)
		snprintf(text, sizeof(text), "%3.0f %% of %.1f MB", done * 100.0 / total, total / 1e6);
	else
		snprintf(text, sizeof(text), "%.1f MB", done / 1e6);
	status_draw(text);
}

int command_report(int argc, char **argv)
{
	struct report_context report = {
		.options = { .size = sizeof(report.options), .log = print_message, .log_level = XPT_LOG_INFO }
	};
	int first, result = options_parse(&line, argc, argv, &report, &first);
	bool to_stdout;

	if (result)
		return result == PARSE_HELP ? 0 : result;
	/* Options may stand behind the file, as people write them. */
	if (first < argc) {
		report.options.input = argv[first];
		argv[first] = argv[0];
		result = options_parse(&line, argc - first, argv + first, &report, &result);
		if (result)
			return result == PARSE_HELP ? 0 : result;
	}
	if (!report.options.input || first + optind < argc) {
		fprintf(stderr, "xputrace report: one recording is wanted (see xputrace report --help)\n");
		return EXIT_USAGE;
	}
	if (report.options.level && report.options.format != XPT_OUTPUT_QNN_CSV) {
		fprintf(stderr, "xputrace report: --level is for --format qnn-csv (see xputrace report --help)\n");
		return EXIT_USAGE;
	}
	to_stdout = report.options.output && !strcmp(report.options.output, "-");
	report.options.summary_descriptor = report.quiet ? -1 : to_stdout ? STDERR_FILENO : STDOUT_FILENO;
	report.options.columns = terminal_columns(report.options.summary_descriptor);
	if (!report.quiet && isatty(STDERR_FILENO))
		report.options.progress = on_progress;
	result = xpt_report_create(&report.options);
	status_clear();
	if (result == -ENODATA)
		print_message(NULL, XPT_LOG_WARN, "the recording was cut short: this is what was complete");
	else if (result == -ENOSPC || result == -EIO || result == -EPIPE)
		fprintf(stderr, "xputrace: error: cannot write: %s\n", strerror(-result));
	else if (result)
		exit_failed(result);
	else if (!result && report.options.output && !to_stdout)
		tell_trace(report.options.output, report.options.format);
	return result ? EXIT_FAILED : 0;
}
