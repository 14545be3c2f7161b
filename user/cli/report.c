/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xputrace/report.h>

#include "cli/session.h"
#include "cli/commands.h"

struct report_context {
	struct session_options session; /* first: see session.h */
	struct xpt_report_options options;
};

#define FIELD(name) .offset = offsetof(struct report_context, name)

#define MOMENT "a time since the recording began, such as 1.5s or 200ms"

static const struct option_entry entries[] = {
	{ 'o', "output", "FILE", "write a Chrome trace; -: on standard output", OPTION_STRING, FIELD(session.output) },
	{ 0, "format", "FORMAT",
	  "of the file: chrome (default); csv, one row an inference;\nort, as ONNX Runtime's own profiler writes; qnn-csv, as its "
	  "QNN\nexecution provider does",
	  OPTION_CHOICE, FIELD(options.format),
	  .choices = { { "chrome", XPT_OUTPUT_CHROME },
		       { "csv", XPT_OUTPUT_CSV },
		       { "ort", XPT_OUTPUT_ORT },
		       { "qnn-csv", XPT_OUTPUT_QNN_CSV } } },
	{ 0, "level", "LEVEL", "of qnn-csv: basic, without operators and timestamps; or\ndetailed (default)",
	  OPTION_CHOICE, FIELD(options.level),
	  .choices = { { "basic", XPT_LEVEL_BASIC }, { "detailed", XPT_LEVEL_DETAILED } } },
	{ 'P', "program", "NAME|HANDLE",
	  "only inferences of this program, with what lies in them; a\nhandle is written 0x7f3a10002b40, the name 0x12 as\n"
	  "name=0x12; may be given several times",
	  OPTION_CALLBACK, .take = take_chosen_program },
	{ 'm', "match", "EXPRESSION",
	  "and of programs with a name in which this regular\nexpression is found (ECMAScript syntax)", OPTION_CALLBACK,
	  .take = take_chosen_match },
	{ 'p', "pid", "PID[,PID...]", "only these processes", OPTION_CALLBACK, .take = take_pids },
	{ 0, "from", "TIME", "only what began from this time on, since the recording\nbegan: 1.5s, 200ms",
	  OPTION_DURATION, FIELD(options.from), .zero = true, .expected = MOMENT },
	{ 0, "to", "TIME", "only what began before this time", OPTION_DURATION, FIELD(options.to), .expected = MOMENT },
	{ 0, "slowest", "N", "of these inferences the N that took longest", OPTION_NUMBER, FIELD(options.slowest),
	  .min = 1, .max = 1000000 },
	{ .group = warn_size_option },
	{ .group = summary_json_option, FIELD(session.summary_json) },
	{ 'q', "quiet", NULL, "no summary", OPTION_FLAG, FIELD(session.quiet) },
	{}
};

static const struct command_line line = {
	.name = "report",
	.summary = "Make a trace or table, and the summary, from a recording. Needs no root and no special kernel.",
	.usage = "  xputrace report RECORDING.xpt [-o FILE] [OPTION...]",
	.options = entries,
	.any_order = true,
	.more = "RECORDING is what `xputrace record -o FILE.xpt` wrote; - reads standard input. One that was cut\n"
		"short is reported up to its last complete part.\n"
		"All of --program, --match, --pid, --from, --to and --slowest that are given have to be true of an\n"
		"inference, but for --program and --match, of which one does. Counts are then of what was recorded.\n\n"
		"examples:\n"
		"  xputrace report night.xpt --slowest 10 -o slow.json\n"
		"  xputrace report night.xpt --program resnet50 --from 10s --to 20s --format csv -o latency.csv\n\n"
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

static const char *contradiction(const struct xpt_report_options *options)
{
	if (options->level && options->format != XPT_OUTPUT_QNN_CSV)
		return "--level requires --format qnn-csv";
	if (options->to && options->to <= options->from)
		return "--to must be later than --from";
	if (options->format == XPT_OUTPUT_CSV && !options->output)
		return "--format csv requires a file: -o FILE, or -o - for standard output";
	return NULL;
}

static int run(struct report_context *report)
{
	struct xpt_report_options *options = &report->options;
	bool to_stdout = options->output && !strcmp(options->output, "-");
	struct summary_json summary;
	char *json = NULL;
	int result;

	summary_json_begin(&summary, report->session.summary_json, "report");
	options->summary_json = summary.path ? &json : NULL;
	options->summary_descriptor = report->session.quiet ? -1 : to_stdout ? STDERR_FILENO : STDOUT_FILENO;
	options->columns = terminal_columns(options->summary_descriptor);
	if (!report->session.quiet && isatty(STDERR_FILENO))
		options->progress = on_progress;
	confined_begin((const struct confined_file[]){ { .path = options->input },
						       { .path = options->output, .output = true },
						       { .path = report->session.summary_json, .output = true } },
		       3);
	result = xpt_report_create(options);
	status_clear();
	if (result == -ENODATA)
		print_message(NULL, XPT_LOG_WARN, "the recording was cut short: this is what was complete");
	else if (result == -ENOSPC || result == -EIO || result == -EPIPE)
		fprintf(stderr, "xputrace: error: cannot write: %s\n", strerror(-result));
	else if (result)
		exit_failed(result);
	else if (options->output && !to_stdout)
		print_trace_written(options->output, options->format);
	result = result ? EXIT_FAILED : 0;
	if (!json) {
		text_free(&summary.text);
		return result;
	}
	summary_json_members(&summary, json);
	summary_json_output(&summary, options->output, output_name(options->format ?: XPT_OUTPUT_CHROME));
	return summary_json_end(&summary, result);
}

int command_report(int argc, char **argv)
{
	static struct report_context report = {
		.options = { .size = sizeof(report.options), .log = print_message, .log_level = XPT_LOG_INFO }
	};
	struct session_options *session = &report.session;
	int first, result = options_parse(&line, argc, argv, &report, &first);
	const char *reason;

	if (result)
		return result == PARSE_HELP ? 0 : result;
	if (first + 1 != argc)
		return session_options_refuse(&line, "expected one recording");
	report.options.input = argv[first];
	report.options.output = session->output;
	report.options.programs = session->choices;
	report.options.program_count = session->choice_count;
	report.options.program_size = sizeof(*session->choices);
	report.options.match = session->match;
	report.options.warn_bytes = session->warn_bytes;
	report.options.pids = session->pids;
	report.options.pid_count = session->pid_count;
	reason = contradiction(&report.options);
	if (reason)
		return session_options_refuse(&line, reason);
	if (choices_refused(&line, session))
		return EXIT_USAGE;
	result = run(&report);
	free(session->choices);
	return result;
}
