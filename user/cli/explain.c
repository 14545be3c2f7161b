/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xputrace/explain.h>

#include "cli/session.h"

#define PROGRAMS_DEFAULT 5

struct explain_context {
	struct session_options session; /* first: see session.h */
	struct xpt_explain_options options;
	unsigned int most;
	const char *json;
};

#define FIELD(name) .offset = offsetof(struct explain_context, name)

#define MOMENT "a time since the recording began, such as 1.5s or 200ms"

static const struct option_entry entries[] = {
	{ 'P', "program", "NAME|HANDLE",
	  "only inferences of this program; a handle is written\n0x7f3a10002b40, the name 0x12 as name=0x12; may be given\nseveral times",
	  OPTION_CALLBACK, .take = take_chosen_program },
	{ 'm', "match", "EXPRESSION",
	  "and of programs with a name in which this regular\nexpression is found (ECMAScript syntax)", OPTION_CALLBACK,
	  .take = take_chosen_match },
	{ 'p', "pid", "PID[,PID...]", "only these processes", OPTION_CALLBACK, .take = take_pids },
	{ 0, "from", "TIME", "only what began from this time on, since the recording\nbegan: 1.5s, 200ms",
	  OPTION_DURATION, FIELD(options.from), .zero = true, .expected = MOMENT },
	{ 0, "to", "TIME", "only what began before this time", OPTION_DURATION, FIELD(options.to), .expected = MOMENT },
	{ 'n', "programs", "N", "the N programs with most time in all (default: 5)", OPTION_INT, FIELD(most), .min = 1,
	  .max = 16384 },
	{ 0, "json", "FILE", "the same as JSON; -: on standard output, instead of the text", OPTION_STRING,
	  FIELD(json) },
	{ 'q', "quiet", NULL, "no text, only warnings and errors", OPTION_FLAG, FIELD(session.quiet) },
	{}
};

static const struct command_line line = {
	.name = "explain",
	.summary = "Explain where the time of typical inferences goes, and what is different in the slowest 1 %.",
	.usage = "  xputrace explain RECORDING.xpt [OPTION...]",
	.options = entries,
	.any_order = true,
	.more = "RECORDING is what `xputrace record -o FILE.xpt` wrote; - reads standard input. What was recorded limits\n"
		"what can be explained: `record --why --ops` records why threads are blocked, who preempts them, and\n"
		"operators.\n\n"
		"examples:\n"
		"  xputrace explain night.xpt\n"
		"  xputrace explain night.xpt --program resnet50 --json -\n\n"
		"exit status: 0 explained, 1 failed or the recording was cut short, 2 wrong usage",
};

static void on_progress(void *context, uint64_t done, uint64_t total)
{
	char text[64];

	(void)context;
	if (total)
		snprintf(text, sizeof(text), "%3.0f %% of %.1f MB", (double)done * 100.0 / (double)total,
			 (double)total / 1e6);
	else
		snprintf(text, sizeof(text), "%.1f MB", (double)done / 1e6);
	status_draw(text);
}

static int print_text(const struct xpt_explain *explain)
{
	char *text;
	int error = xpt_explain_text(explain, terminal_columns(STDOUT_FILENO), &text);

	if (error)
		return error;
	fputs(text, stdout);
	free(text);
	return 0;
}

static int run_explain(struct explain_context *context)
{
	struct xpt_explain *explain = NULL;
	struct summary_json summary;
	char *json = NULL;
	int error, status;

	summary_json_begin(&summary, context->json, "explain");
	if (!context->session.quiet && isatty(STDERR_FILENO))
		context->options.progress = on_progress;
	confined_begin((const struct confined_file[]){ { .path = context->options.input },
						       { .path = context->json, .output = true } },
		       2);
	error = xpt_explain_create(&context->options, &explain);
	status_clear();
	if (!error && !context->session.quiet && !(context->json && !strcmp(context->json, "-")))
		error = print_text(explain);
	if (!error && context->json)
		error = xpt_explain_json(explain, &json);
	status = error ? exit_failed(error) : 0;
	if (!error && !xpt_explain_complete(explain)) {
		print_message(NULL, XPT_LOG_WARN, "the recording was cut short: this is what was complete");
		status = EXIT_FAILED;
	}
	xpt_explain_destroy(explain);
	if (!json) {
		text_free(&summary.text);
		return status;
	}
	summary_json_members(&summary, json);
	return summary_json_end(&summary, status);
}

int command_explain(int argc, char **argv)
{
	static struct explain_context context = {
		.options = { .size = sizeof(context.options), .log = print_message, .log_level = XPT_LOG_INFO },
		.most = PROGRAMS_DEFAULT
	};
	struct session_options *session = &context.session;
	int first, result = options_parse(&line, argc, argv, &context, &first);

	if (result)
		return result;
	if (first + 1 != argc)
		return session_options_refuse(&line, "expected one recording");
	context.options.input = argv[first];
	context.options.programs = session->choices;
	context.options.program_count = session->choice_count;
	context.options.program_size = sizeof(*session->choices);
	context.options.match = session->match;
	context.options.pids = session->pids;
	context.options.pid_count = session->pid_count;
	context.options.most = context.most;
	if (context.options.to && context.options.to <= context.options.from)
		return session_options_refuse(&line, "--to must be later than --from");
	if (choices_refused(&line, session))
		return EXIT_USAGE;
	result = run_explain(&context);
	free(session->choices);
	return result;
}
