/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands that need no root: report and merge. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xputrace/merge.h>
#include <xputrace/output.h>
#include <xputrace/report.h>

#include "cli/session.h"

/* ---- report ---- */

#define SLOWEST_MAX 1000000

struct report_context {
	struct session_options session; /* first: see session.h */
	struct xpt_report_options options;
	const char *html; /* NULL: not asked for; else the output */
};

/* The latest one holds. */
static bool take_slowest(void *context, const char *value, const char **reason)
{
	struct xpt_report_options *options = context;
	uint64_t number;
	double percent;
	char *end;

	(void)reason;
	if (parse_number(value, &number) && number >= 1 && number <= SLOWEST_MAX) {
		options->slowest = number;
		options->slowest_percent = 0;
		return true;
	}
	percent = isdigit((unsigned char)*value) ? strtod(value, &end) : 0;
	if (!(percent > 0 && percent <= 100) || strcmp(end, "%"))
		return false;
	options->slowest = 0;
	options->slowest_percent = percent;
	return true;
}

#define FIELD(name) .offset = offsetof(struct report_context, name)

static const struct option_entry report_entries[] = {
	{ 'o', "output", "FILE",
	  "write a Chrome trace, or by the end of its name: .pftrace,\nPerfetto's own format; .html, a page; .db or .sqlite, a\n"
	  "SQLite database; -: on standard output",
	  OPTION_STRING, FIELD(session.output) },
	{ 0, "format", "FORMAT",
	  "of the file: chrome (default); perfetto (of FILE.pftrace);\nhtml, one page for browsers (of FILE.html); sqlite (of\n"
	  "FILE.db); csv, one row an inference; ort, as ONNX Runtime's\nown profiler writes; qnn-csv, as its QNN execution provider\n"
	  "does; with --flame, whatever the file is called: folded,\npprof, svg or speedscope",
	  OPTION_CHOICE, FIELD(options.format),
	  .choices = { { "chrome", XPT_OUTPUT_CHROME },
		       { "perfetto", XPT_OUTPUT_PERFETTO },
		       { "csv", XPT_OUTPUT_CSV },
		       { "sqlite", XPT_OUTPUT_SQLITE },
		       { "ort", XPT_OUTPUT_ORT },
		       { "qnn-csv", XPT_OUTPUT_QNN_CSV },
		       { "html", XPT_OUTPUT_HTML },
		       FLAME_CHOICES } },
	{ 0, "html", "FILE.html", "one page for browsers with all of it, the same as -o FILE.html", OPTION_STRING,
	  FIELD(html) },
	{ .group = flame_option, FIELD(options.flame) },
	{ 0, "flame-diff", "OTHER.xpt",
	  "the difference to the flame graph of another recording, as\nfolded text (its value first) or SVG (red: a larger share\n"
	  "than there); --program, --match and --operator are for both",
	  OPTION_STRING, FIELD(options.flame_base) },
	{ 0, "operator", "NAME", "of --flame offcpu and cpu: only in operators with this name\nor of this type",
	  OPTION_STRING, FIELD(options.flame_operator) },
	{ 0, "level", "LEVEL", "of qnn-csv: basic, without operators and timestamps; or\ndetailed (default)",
	  OPTION_CHOICE, FIELD(options.level),
	  .choices = { { "basic", XPT_LEVEL_BASIC }, { "detailed", XPT_LEVEL_DETAILED } } },
	{ .group = reading_options },
	{ 0, "request", "ID",
	  "instead of programs: the regions that the program has marked\nwith this id, with what lies in them",
	  OPTION_STRING, FIELD(options.request) },
	{ 0, "slowest", "N|N%", "of these inferences the N that took longest, or so many\npercent of them",
	  OPTION_CALLBACK, FIELD(options), .take = take_slowest,
	  .expected = "a number from 1 to 1000000, or up to 100%" },
	{ .group = warn_size_option },
	{ .group = summary_json_option, FIELD(session.summary_json) },
	{ 'q', "quiet", NULL, "no summary", OPTION_FLAG, FIELD(session.quiet) },
	{}
};

static const struct command_line report_line = {
	.name = "report",
	.summary =
		"Make a page, trace or table, and the summary, from a recording. Needs no root and no special kernel.",
	.usage = "  xputrace report RECORDING.xpt [-o FILE] [OPTION...]",
	.options = report_entries,
	.any_order = true,
	.more = "RECORDING is what `xputrace record -o FILE.xpt` wrote; - reads standard input. One that was cut\n"
		"short is reported up to its last complete part.\n"
		"All of --program, --match, --pid, --from, --to and --slowest that are given have to be true of an\n"
		"inference, but for --program and --match, of which one does. Counts are then of what was recorded.\n\n"
		"examples:\n"
		"  xputrace report night.xpt --slowest 10 -o slow.json\n"
		"  xputrace report night.xpt --program resnet50 --from 10s --to 20s --format csv -o latency.csv\n"
		"  xputrace report night.xpt --html night.html\n"
		"  xputrace report night.xpt -o night.db\n"
		"  xputrace report night.xpt --flame inference --slowest 1% -o slow.svg\n\n"
		"exit status: 0 reported, 1 failed or the recording was cut short, 2 wrong usage",
};

static const char *contradiction(const struct xpt_report_options *options)
{
	if (options->level && options->format != XPT_OUTPUT_QNN_CSV)
		return "--level requires --format qnn-csv";
	if (options->to && options->to <= options->from)
		return "--to must be later than --from";
	if (options->format == XPT_OUTPUT_SQLITE && !options->output)
		return "--format sqlite requires a file: -o FILE, or -o - for standard output";
	if (options->format == XPT_OUTPUT_CSV && !options->output)
		return "--format csv requires a file: -o FILE, or -o - for standard output";
	if (options->format == XPT_OUTPUT_HTML && !options->output)
		return "--format html requires a file: -o FILE, or -o - for standard output";
	if (options->format == XPT_OUTPUT_HTML &&
	    (options->slowest || options->slowest_percent > 0 || options->request))
		return "--slowest and --request are not for pages: they show the slowest beside the others";
	if (options->request &&
	    (options->program_count || options->match || options->slowest || options->slowest_percent > 0))
		return "--request cannot be combined with --program, --match and --slowest";
	if (is_flame_format(options->format) && !options->flame)
		return "this format requires --flame WHAT";
	if (!options->flame && (options->flame_base || options->flame_operator))
		return "--flame-diff and --operator require --flame WHAT";
	if (options->flame && !is_flame_format(options->format))
		return "--flame requires --format folded, pprof, svg or speedscope";
	if (options->flame_base && options->format != XPT_OUTPUT_FOLDED && options->format != XPT_OUTPUT_FLAME_SVG)
		return "--flame-diff requires a file that ends in .folded or .svg, or --format folded or svg";
	if (options->flame_base && !strcmp(options->flame_base, "-"))
		return "--flame-diff requires a file";
	if (options->flame_operator && options->flame != XPT_FLAME_OFF_CPU && options->flame != XPT_FLAME_CPU)
		return "--operator requires --flame offcpu or --flame cpu";
	return NULL;
}

static int run_report(struct report_context *report)
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
		options->progress = draw_progress;
	if (options->output && !to_stdout && options->format != XPT_OUTPUT_HTML)
		xpt_output_start_writer(); /* without one this process writes */
	confined_begin((const struct confined_file[]){ { .path = options->input },
						       { .path = options->output, .output = true },
						       { .path = report->session.summary_json, .output = true },
						       { .path = options->flame_base } },
		       4);
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
	int first, result = options_parse(&report_line, argc, argv, &report, &first);
	const char *reason;

	if (result)
		return result;
	if (first + 1 != argc)
		return session_options_refuse(&report_line, "expected one recording");
	report.options.input = argv[first];
	report.options.output = report.html ?: session->output;
	report.options.programs = session->choices;
	report.options.program_count = session->choice_count;
	report.options.program_size = sizeof(*session->choices);
	report.options.match = session->match;
	report.options.warn_bytes = session->warn_bytes;
	report.options.pids = session->pids;
	report.options.pid_count = session->pid_count;
	report.options.from = session->from;
	report.options.to = session->to;
	if (report.html && (session->output || report.options.format))
		return session_options_refuse(&report_line, "--html FILE stands for -o FILE and --format html");
	if (report.html ||
	    (!report.options.format && session->output && !report.options.flame && is_page_name(session->output)))
		report.options.format = XPT_OUTPUT_HTML;
	if (report.options.flame && !report.options.output)
		report.options.output = "-";
	if (report.options.flame && !report.options.format)
		report.options.format = flame_format(report.options.output);
	if (!report.options.format && report.options.output && is_perfetto_name(report.options.output))
		report.options.format = XPT_OUTPUT_PERFETTO;
	if (!report.options.format && report.options.output && is_sqlite_name(report.options.output))
		report.options.format = XPT_OUTPUT_SQLITE;
	reason = contradiction(&report.options);
	if (reason)
		return session_options_refuse(&report_line, reason);
	if (choices_refused(&report_line, session))
		return EXIT_USAGE;
	result = run_report(&report);
	free(session->choices);
	return result;
}

/* ---- merge ---- */

#define OFFSET_MAX (1ll << 60) /* ns, 36 years */

struct merge_context {
	const char *output;
	bool quiet;
	struct string_list traces, offsets; /* offsets: "FILE=TIME" */
};

/* "-1.5ms", exactly; a bare number is seconds. */
static bool parse_offset(const char *text, int64_t *nanoseconds)
{
	static const struct {
		const char *name;
		int64_t factor;
	} units[] = { { "", 1000000000 }, { "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 } };
	bool negative = *text == '-', behind = false, any = false;
	__int128 digits = 0, scale = 1;

	for (text += negative; (*text >= '0' && *text <= '9') || (*text == '.' && !behind); text++) {
		if (*text == '.') {
			behind = true;
			continue;
		}
		if (digits > OFFSET_MAX || scale > OFFSET_MAX)
			return false;
		any = true;
		digits = digits * 10 + (*text - '0');
		scale *= behind ? 10 : 1;
	}
	for (size_t i = 0; any && i < sizeof(units) / sizeof(units[0]); i++) {
		__int128 value = digits * units[i].factor / scale;

		if (strcmp(text, units[i].name) != 0 || value > OFFSET_MAX)
			continue;
		*nanoseconds = (int64_t)(negative ? -value : value);
		return true;
	}
	return false;
}

static bool take_offset(void *context, const char *value, const char **reason)
{
	const char *sign = strrchr(value, '=');
	int64_t nanoseconds;

	(void)reason;
	return sign && sign > value && parse_offset(sign + 1, &nanoseconds) && string_list_add(context, value);
}

#undef FIELD
#define FIELD(name) .offset = offsetof(struct merge_context, name)

static const struct option_entry merge_entries[] = {
	{ 'o', "output", "FILE", "trace to write, of the kind of the inputs; -: on standard output", OPTION_STRING,
	  FIELD(output) },
	{ 0, "offset", "FILE=TIME",
	  "add to the times of this trace, regardless of its own clock:\n"
	  "1.5s, -20ms, 17us, 4ns. May be given several times",
	  OPTION_CALLBACK, FIELD(offsets), .take = take_offset,
	  .expected = "FILE=TIME, such as prof.json=12345.678901234s" },
	{ 'q', "quiet", NULL, "only warnings and errors", OPTION_FLAG, FIELD(quiet) },
	{}
};

static const struct command_line merge_line = {
	.name = "merge",
	.summary = "Merge traces of the same time by their clocks.",
	.usage = "  xputrace merge TRACE... -o FILE",
	.options = merge_entries,
	.any_order = true,
	.more = "TRACE is a trace of xputrace; a profile that ONNX Runtime wrote, with a trace of xputrace of the same\n"
		"process and time; one of PyTorch's profiler; or another Chrome trace that names its clock. The clock\n"
		"that places each, and its accuracy, are printed. Traces in Perfetto's own format (.pftrace), which\n"
		"may be of several hosts, are merged into one of that format.\n\n"
		"  xputrace merge trace.json onnxruntime_profile__2026-11-20_10-29-37.json -o both.json\n\n"
		"exit status: 0 merged, 1 failed, 2 wrong usage",
};

/* The traces with their offsets. False, reported: wrong usage. */
static bool fill_inputs(const struct merge_context *merge, struct xpt_merge_input *inputs)
{
	for (size_t i = 0; i < merge->traces.count; i++)
		inputs[i].path = merge->traces.items[i];
	for (size_t i = 0; i < merge->offsets.count; i++) {
		const char *offset = merge->offsets.items[i], *sign = strrchr(offset, '=');
		bool found = false;

		for (size_t j = 0; j < merge->traces.count; j++) {
			if (strlen(inputs[j].path) != (size_t)(sign - offset) ||
			    strncmp(inputs[j].path, offset, sign - offset) != 0)
				continue;
			found = true;
			inputs[j].has_offset = parse_offset(sign + 1, &inputs[j].offset);
		}
		if (!found) {
			fprintf(stderr, "xputrace merge: --offset '");
			print_name(stderr, offset, 0);
			fprintf(stderr, "': no trace with this name was given\n");
			return false;
		}
	}
	return true;
}

static int run_merge(const struct merge_context *merge)
{
	struct xpt_merge_options options = {
		.size = sizeof(options),
		.input_count = merge->traces.count,
		.output = merge->output,
		.log = print_message,
		.log_level = merge->quiet ? XPT_LOG_WARN : XPT_LOG_INFO,
	};
	struct xpt_merge_input *inputs = calloc(merge->traces.count, sizeof(*inputs));
	struct confined_file *files = calloc(merge->traces.count + 1, sizeof(*files));
	int result;

	if (!inputs || !files || !fill_inputs(merge, inputs)) {
		result = inputs && files ? EXIT_USAGE : exit_failed(-ENOMEM);
		free(inputs);
		free(files);
		return result;
	}
	for (size_t i = 0; i < merge->traces.count; i++)
		files[i].path = merge->traces.items[i];
	files[merge->traces.count] = (struct confined_file){ .path = merge->output, .output = true };
	confined_begin(files, merge->traces.count + 1);
	free(files);
	options.inputs = inputs;
	options.input_size = sizeof(*inputs);
	result = xpt_merge_traces(&options);
	if (!result && !merge->quiet && strcmp(merge->output, "-") != 0)
		fprintf(stderr, "wrote %s: open it in https://ui.perfetto.dev\n", merge->output);
	free(inputs);
	return result ? exit_failed(result) : 0;
}

int command_merge(int argc, char **argv)
{
	struct merge_context merge = { 0 };
	int first, result = options_parse(&merge_line, argc, argv, &merge, &first);

	if (!result) {
		merge.traces = (struct string_list){ (const char **)(argv + first), argc - first };
		result = merge.traces.count && merge.output ?
				 run_merge(&merge) :
				 session_options_refuse(&merge_line, "expected TRACE... and -o FILE");
	}
	free(merge.offsets.items);
	return result;
}
