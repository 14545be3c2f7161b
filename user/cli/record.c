/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xputrace/recording.h>

#include "cli/session.h"

/* As env(1) and timeout(1) do. */
#define EXIT_CANNOT_RECORD 125
#define EXIT_CANNOT_RUN 126

struct record_context {
	struct session_options session; /* first: see session.h */
	int format;			/* enum xpt_output; -1: by the name of the file */
	unsigned int sample_every;
	enum xpt_level level;
	enum xpt_flame flame;
	bool code_objects;
	struct stacks_choice stacks;
	int own_status; /* of what was recorded, not of the command */
	struct status_line status_line;
};

#define FIELD(name) .offset = offsetof(struct record_context, name)

static const struct option_entry entries[] = {
	{ .group = target_options },
	{ 'o', "output", "FILE",
	  "trace.json: Chrome trace (default: xputrace.json);\ntrace.pftrace: Perfetto's own format; with .gz behind it:\n"
	  "compressed; FILE.xpt: recording for `xputrace report`;\nFILE.html: one page for browsers; -: Chrome trace on\nstandard output",
	  OPTION_STRING, FIELD(session.output) },
	{ 0, "format", "FORMAT",
	  "whatever the file is called: chrome, perfetto, xpt, html,\nnone; ort, as ONNX Runtime's own profiler writes;\n"
	  "qnn-csv, as its QNN execution provider does (default file:\nxputrace.csv); with --flame: folded, pprof, svg,\nspeedscope",
	  OPTION_CHOICE, FIELD(format),
	  .choices = { { "chrome", XPT_OUTPUT_CHROME },
		       { "perfetto", XPT_OUTPUT_PERFETTO },
		       { "ort", XPT_OUTPUT_ORT },
		       { "qnn-csv", XPT_OUTPUT_QNN_CSV },
		       { "xpt", XPT_OUTPUT_RECORDING },
		       { "html", XPT_OUTPUT_HTML },
		       { "none", XPT_OUTPUT_NONE },
		       FLAME_CHOICES } },
	{ .group = flame_option, FIELD(flame) },
	{ 'P', "program", "NAME|HANDLE",
	  "only inferences of this program, others are counted;\na handle is written 0x7f3a10002b40, the name 0x12 as\n"
	  "name=0x12; may be given several times",
	  OPTION_CALLBACK, .take = take_chosen_program },
	{ 'm', "match", "EXPRESSION",
	  "and of programs with a name in which this regular\nexpression is found (ECMAScript syntax)", OPTION_CALLBACK,
	  .take = take_chosen_match },
	{ .group = duration_option },
	{ 's', "sample", "N", "record one inference in N of each program; counts\nstay exact", OPTION_INT,
	  FIELD(sample_every), .min = 1, .max = 1000000 },
	{ 0, "ops", NULL, "the operators of each inference, too: --level detailed", OPTION_SET, FIELD(level),
	  .value = XPT_LEVEL_DETAILED },
	{ .group = level_option, FIELD(level) },
	{ 0, "codeobj", NULL,
	  "code objects that are loaded and unloaded, with their\nkernels; the call that loads a large one waits until it has\n"
	  "been read (see xputrace codeobj)",
	  OPTION_FLAG, FIELD(code_objects) },
	{ .group = code_wait_option },
	{ .group = stacks_options, FIELD(stacks) },
	{ 0, "counters", "NAME[,NAME...]",
	  "read these counters meanwhile, into tracks of the trace;\n`xputrace list counters` names them",
	  OPTION_CALLBACK, FIELD(session.counters), .take = take_counters },
	{ .group = counters_options },
	{ 0, "exit-status", "command|own", "of a COMMAND (default), or whether it was recorded: 0, 1", OPTION_CHOICE,
	  FIELD(own_status), .choices = { { "command", 0 }, { "own", 1 } } },
	{ .group = warn_size_option },
	{ .group = summary_json_option, FIELD(session.summary_json) },
	{ .group = session_options },
	{}
};

static const struct command_line line = {
	.name = "record",
	.summary = "Trace running processes, or a command, into a Chrome trace or a recording.",
	.usage = "  xputrace record -p PID[,PID...] [OPTION...]\n"
		 "  xputrace record -a [OPTION...]\n"
		 "  xputrace record [OPTION...] -- COMMAND [ARGUMENT...]",
	.options = entries,
	.more = "Ctrl-C, SIGTERM, the end of --duration or of the targets end the recording; then the\n"
		"summary is printed. No process is stopped; a thread of a COMMAND that maps a library waits some\n"
		"milliseconds for its probes, so that no call is missed.\n"
		"With --program or --match only inferences of these programs are recorded, with all that lies in\n"
		"them; those of other programs are counted.\n\n"
		"examples:\n"
		"  sudo xputrace record -p $(pidof server) -d 10s -o trace.json\n"
		"  sudo xputrace record -s 16 -a -o night.xpt\n"
		"  sudo xputrace record -o trace.json -- python3 infer.py\n"
		"  sudo xputrace record --ops -p $(pidof server) -d 2s\n"
		"  sudo xputrace record --ops -p $(pidof server) --program resnet50 -d 10s\n"
		"  sudo xputrace record -p 4711 --counters i915/rcs0-busy/,power/energy-pkg/ -d 10s\n\n"
		"exit status: 0 recorded, 1 failed (also when the output could not be written, a program that\n"
		"was chosen was not seen, or with --process or --program no program was run), 2 wrong usage.\n"
		"With a COMMAND its own once it has ended: 128+N for signal N, 127 when it was not found, 126 when\n"
		"it cannot be run; and 125 where it would be 1. --exit-status own: 0, 1 and 2 as without one",
};

static void on_status(void *context, const struct xpt_recording_status *status)
{
	struct running_figures figures = { .elapsed = status->elapsed,
					   .processes = status->processes,
					   .programs = status->programs,
					   .calls = status->calls,
					   .lost = status->lost };
	char written[32];

	snprintf(written, sizeof(written), "%.1f MB", status->bytes / 1e6);
	status_line_draw(context, &figures, written);
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

static void end_recording(void *recording)
{
	xpt_recording_stop(recording);
}

static int create(struct record_context *record, struct xpt_recording **recording)
{
	const struct session_options *session = &record->session;
	bool draws = !session->quiet && isatty(STDERR_FILENO);
	struct xpt_recording_options options = {
		.size = sizeof(options),
		WATCH_OPTIONS(session),
		.format = record->format,
		.output = session->output,
		.duration = session->duration,
		.sample_every = record->sample_every,
		.status = draws ? on_status : NULL,
		.status_context = &record->status_line,
		.counters_every = session->counters_every,
		.counters_per_inference = session->counters_per_inference,
		.level = record->level,
		.stacks = record->stacks.calls,
		.samples = record->stacks.samples,
		.code_objects = record->code_objects,
		.code_wait_limit = session->code_wait_limit,
		.programs = session->choices,
		.program_count = session->choice_count,
		.program_size = sizeof(*session->choices),
		.match = session->match,
		.warn_bytes = session->warn_bytes,
		.flame = record->flame,
	};

	return xpt_recording_create(&options, recording);
}

static int see_program(void *context, const struct xpt_program_info *program)
{
	seen_add(context, program);
	return 0;
}

static int report_unmet(void *context, const struct xpt_program_choice *choice, int match)
{
	char text[200], handle[32];
	unsigned int *unmet = context;

	snprintf(handle, sizeof(handle), "0x%" PRIx64, choice->handle);
	snprintf(text, sizeof(text),
		 match ? "no program was seen with a name in which %.100s is found" : "program %.100s was not seen",
		 choice->name ?: handle);
	print_message(NULL, XPT_LOG_ERROR, text);
	++*unmet;
	return 0;
}

/* A name may be mistyped. False: a choice was of nothing. */
static bool report_unmet_choices(struct xpt_recording *recording)
{
	struct seen_programs seen = {};
	unsigned int unmet = 0;

	xpt_recording_unmet(recording, report_unmet, &unmet);
	if (unmet) {
		xpt_recording_programs(recording, see_program, &seen);
		print_message(NULL, XPT_LOG_INFO, seen.count ? "programs that were seen:" : "no program was seen");
		seen_print(&seen);
		seen_free(&seen);
	}
	return !unmet;
}

/* What the status would be without a command, and how the recording and the command have ended. */
static int with_command(const struct record_context *record, int own, int end, int status)
{
	if (!record->session.command || record->own_status || own == EXIT_USAGE)
		return own;
	/* It could not be run. */
	if (end < 0 && status != -1 && WIFEXITED(status) && WEXITSTATUS(status) >= EXIT_CANNOT_RUN)
		return WEXITSTATUS(status);
	if (own)
		return EXIT_CANNOT_RECORD;
	/* A recording that was stopped before does not depend on the command's status. */
	if (end != XPT_END_TARGETS || status == -1)
		return 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int write_summary(const struct record_context *record, struct xpt_recording *recording, int result)
{
	const struct session_options *session = &record->session;
	struct summary_json summary;
	char *json = NULL;

	summary_json_begin(&summary, session->summary_json, "record");
	if (!summary.path)
		return result;
	if (xpt_recording_summary_json(recording, &json))
		text_fail(&summary.text);
	summary_json_members(&summary, json);
	summary_json_output(&summary, record->format == XPT_OUTPUT_NONE ? NULL : session->output,
			    output_name(record->format));
	return summary_json_end(&summary, result);
}

static int run(struct record_context *record)
{
	const struct session_options *session = &record->session;
	bool to_stdout = session_writes_to_stdout(session);
	int summary = to_stdout ? STDERR_FILENO : STDOUT_FILENO, end, error, status, result;
	struct xpt_recording *recording;
	bool met;

	messages_detach();
	error = create(record, &recording);
	if (error)
		return with_command(record, exit_status(error), error, -1);
	end_on_signals(end_recording, recording);
	error = xpt_recording_start(recording);
	end = error ?: xpt_recording_run(recording);
	error = xpt_recording_finish(recording);
	end_soon(true);
	status_clear();
	if (end >= 0 && !error && !to_stdout && record->format != XPT_OUTPUT_NONE)
		error = output_is_there(session->output);
	if (end >= 0 && !session->quiet) {
		print_command_status(session->command, xpt_recording_command_status(recording));
		fflush(stdout);
		xpt_recording_summary(recording, summary, terminal_columns(summary));
		if (!error && !to_stdout && record->format == XPT_OUTPUT_RECORDING)
			fprintf(stderr, "\nwrote %s: `xputrace report %s -o trace.json` makes a trace of it\n",
				session->output, session->output);
		else if (!error && !to_stdout && record->format != XPT_OUTPUT_NONE)
			print_trace_written(session->output, record->format);
	}
	met = end < 0 || report_unmet_choices(recording);
	if ((session->process_names.count || session->choice_count || session->match) && !xpt_recording_runs(recording))
		met = false;
	status = xpt_recording_command_status(recording);
	end_on_signals(NULL, NULL);
	if (end < 0 || error)
		result = exit_failed(end < 0 ? end : error);
	else
		result = met ? 0 : EXIT_FAILED;
	result = with_command(record, write_summary(record, recording, result), end, status);
	xpt_recording_destroy(recording);
	return result;
}

int command_record(int argc, char **argv)
{
	static const char json[] = "xputrace.json";
	static struct record_context record = { .session = { .output = json }, .format = -1 };
	int result = session_options_parse(&line, argc, argv, &record);

	/* Without memory options are not parsed as far as the command. */
	for (int i = 1; i < argc && result == EXIT_FAILED && !record.own_status; i++)
		if (!strcmp(argv[i], "--"))
			result = EXIT_CANNOT_RECORD;
	if (result)
		return result;
	if (session_counters_missing(&line, &record.session))
		return EXIT_USAGE;
	if (choices_refused(&line, &record.session))
		return EXIT_USAGE;
	if (record.flame && record.session.output == json)
		record.session.output = "xputrace.svg";
	if (record.flame && record.format < 0)
		record.format = flame_format(record.session.output);
	if (is_flame_format(record.format) != (record.flame != XPT_FLAME_NONE))
		return session_options_refuse(&line,
					      record.flame ?
						      "--flame requires --format folded, pprof, svg or speedscope" :
						      "this format requires --flame WHAT");
	if (record.format < 0 && is_sqlite_name(record.session.output))
		return session_options_refuse(&line, "a database is made of a recording: record to FILE.xpt, then use "
						     "`xputrace report FILE.xpt -o FILE.db`");
	if (record.format < 0)
		record.format = ends_with(record.session.output, ".xpt") ||
						ends_with(record.session.output, ".xpt.gz") ?
					XPT_OUTPUT_RECORDING :
				is_page_name(record.session.output)	? XPT_OUTPUT_HTML :
				is_perfetto_name(record.session.output) ? XPT_OUTPUT_PERFETTO :
									  XPT_OUTPUT_CHROME;
	/* It is appended to its file, which a trace cannot be. */
	if (record.format == XPT_OUTPUT_QNN_CSV && record.session.output == json)
		record.session.output = "xputrace.csv";
	result = run(&record);
	free(record.session.choices);
	return result;
}
