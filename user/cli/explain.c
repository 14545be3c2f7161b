/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands that reason about recordings, and need no root: explain and diff. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xputrace/diff.h>
#include <xputrace/explain.h>

#include "base/core/json.h"
#include "base/file/output.h"
#include "cli/session.h"

#define EXIT_BEYOND 3 /* a condition of --fail-if is met */

/* ---- diff ---- */

struct diff_context {
	struct session_options session; /* first: see session.h */
	struct string_list before, after, conditions;
	const char *json, *html; /* NULL: not asked for */
	bool all;
	double level, run_noise; /* 0: the library's */
};

/* "5%" or "5", as a share; false: not from least to most percent. */
static bool take_percent(const char *value, double least, double most, double *share)
{
	char *end;
	double percent = isdigit((unsigned char)*value) ? strtod(value, &end) : -1;

	if (!(percent >= least && percent <= most) || (*end && strcmp(end, "%") != 0))
		return false;
	*share = percent / 100;
	return true;
}

static bool take_level(void *field, const char *value, const char **reason)
{
	(void)reason;
	return take_percent(value, 1e-6, 50, field);
}

static bool take_run_noise(void *field, const char *value, const char **reason)
{
	(void)reason;
	if (!take_percent(value, 0, 1000, field))
		return false;
	if (*(double *)field == 0)
		*(double *)field = -1;
	return true;
}

static bool take_condition(void *list, const char *value, const char **reason)
{
	static char why[256];

	if (xpt_diff_check_condition(value, why, sizeof(why))) {
		*reason = why;
		return false;
	}
	return string_list_add(list, value);
}

#define FIELD(name) .offset = offsetof(struct diff_context, name)

static const struct option_entry diff_entries[] = {
	{ 0, "before", "FILE", "a recording of before, or a folder of them; may be given\nseveral times", OPTION_LIST,
	  FIELD(before) },
	{ 0, "after", "FILE", "the same of after", OPTION_LIST, FIELD(after) },
	{ 'P', "program", "NAME|HANDLE", "only this program; may be given several times", OPTION_CALLBACK,
	  .take = take_chosen_program },
	{ 'm', "match", "EXPRESSION",
	  "and programs with a name in which this regular expression\nis found (ECMAScript syntax)", OPTION_CALLBACK,
	  .take = take_chosen_match },
	{ 0, "all", NULL, "also show the rows that have not changed by more than noise", OPTION_FLAG, FIELD(all) },
	{ 0, "fail-if", "CONDITION",
	  "exit status 3 when a change is beyond this and more than\nnoise: 'p99 > +10%', 'throughput < -5% of resnet50',\n"
	  "'waited > +2ms', '\"MatMul_3\" > +20%'; may be given several\ntimes",
	  OPTION_CALLBACK, FIELD(conditions), .take = take_condition },
	{ 0, "level", "PERCENT",
	  "share of false discoveries among the changes that are\nreported as more than noise (default: 1%)",
	  OPTION_CALLBACK, FIELD(level), .take = take_level, .expected = "a share up to 50%" },
	{ 0, "run-noise", "PERCENT",
	  "standard deviation that is assumed between recordings of the\nsame program, where there are too few to see it (10%)",
	  OPTION_CALLBACK, FIELD(run_noise), .take = take_run_noise, .expected = "a share up to 1000%" },
	{ 0, "json", "FILE", "write the comparison as JSON; -: on standard output, instead\nof the tables",
	  OPTION_STRING, FIELD(json) },
	{ 0, "html", "FILE.html",
	  "write the comparison as one page for browsers; -: on standard\noutput, instead of the tables", OPTION_STRING,
	  FIELD(html) },
	{ 'q', "quiet", NULL, "no tables", OPTION_FLAG, FIELD(session.quiet) },
	{}
};

static const struct command_line diff_line = {
	.name = "diff",
	.summary = "Compare recordings of before and after a change: what differs by more than noise, and why.",
	.usage = "  xputrace diff BEFORE AFTER [OPTION...]\n"
		 "  xputrace diff --before FILE... --after FILE... [OPTION...]",
	.options = diff_entries,
	.any_order = true,
	.more = "BEFORE and AFTER are recordings (.xpt), folders with recordings, or several of them with commas\n"
		"between. One recording cannot show how much recordings of the same program differ: with three or\n"
		"more of each side, best taken in turns, this is measured instead of assumed.\n\n"
		"examples:\n"
		"  xputrace diff monday.xpt tuesday.xpt\n"
		"  xputrace diff a1.xpt,a2.xpt,a3.xpt b1.xpt,b2.xpt,b3.xpt --fail-if 'p99 > +10%'\n"
		"  xputrace diff before/ after/ --program resnet50 --json diff.json\n"
		"  xputrace diff before/ after/ --html changes.html\n\n"
		"exit status: 0 compared, 1 failed, 2 wrong usage, 3 a condition of --fail-if is met",
};

/* ---- recordings ---- */

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

#define FOLDERS_DEEP 4 /* inspect makes two levels */

static int add_folder(struct string_list *list, const char *path, unsigned int depth);

/* Adds the file if it is a recording, or what is below it; frees it otherwise. */
static int add_entry(struct string_list *list, char *file, unsigned int depth)
{
	const size_t length = strlen(file);
	struct stat status;
	int error = 0;

	if (!lstat(file, &status) && S_ISDIR(status.st_mode))
		error = depth < FOLDERS_DEEP ? add_folder(list, file, depth + 1) : 0;
	else if (length > 4 && !strcmp(file + length - 4, ".xpt"))
		return string_list_add(list, file) ? 0 : -ENOMEM;
	free(file);
	return error;
}

/* All recordings below path. 0, or why it cannot be read. */
static int add_folder(struct string_list *list, const char *path, unsigned int depth)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	int error = 0;

	if (!folder)
		return -errno;
	while (!error && (entry = readdir(folder))) {
		char *file;

		if (*entry->d_name == '.')
			continue;
		error = asprintf(&file, "%s/%s", path, entry->d_name) < 0 ? -ENOMEM : add_entry(list, file, depth);
	}
	closedir(folder);
	return error;
}

/* A recording or a folder. False: reported. */
static bool add_path(struct string_list *list, const char *path)
{
	const size_t first = list->count;
	struct stat status;
	char *copy;
	int error;

	if (asprintf(&copy, "%s", path) < 0) {
		error = -ENOMEM;
	} else if (stat(path, &status) || !S_ISDIR(status.st_mode)) {
		error = string_list_add(list, copy) ? 0 : -ENOMEM;
		if (error)
			free(copy);
	} else {
		error = add_folder(list, path, 0);
		free(copy);
		if (list->count > first)
			qsort(list->items + first, list->count - first, sizeof(*list->items), compare_names);
		else
			error = error ?: -ENOENT;
	}
	if (!error)
		return true;
	fprintf(stderr, "xputrace diff: ");
	print_name(stderr, path, 0);
	fprintf(stderr, ": %s\n", error == -ENOENT ? "no recordings (.xpt) are in it" : strerror(-error));
	return false;
}

/* What is between commas, unless there is a file of the whole name. */
static bool add_paths(struct string_list *list, const char *text)
{
	struct stat status;
	bool added = true;

	if (!strchr(text, ',') || !stat(text, &status))
		return add_path(list, text);
	while (added && *text) {
		const size_t length = strcspn(text, ",");
		char *path = strndup(text, length);

		added = path && (!length || add_path(list, path));
		free(path);
		text += length + (text[length] == ',');
	}
	return added;
}

static bool collect(const struct string_list *given, struct string_list *paths)
{
	for (size_t i = 0; i < given->count; i++)
		if (!add_paths(paths, given->items[i]))
			return false;
	return true;
}

/* ---- the comparison ---- */

/* From here on only these files are opened. */
static void confine(const struct xpt_diff_options *options, const struct diff_context *context)
{
	const size_t count = options->before_count + options->after_count;
	struct confined_file *files = calloc(count + 2, sizeof(*files));

	if (!files)
		return;
	for (size_t i = 0; i < count; i++)
		files[i].path = i < options->before_count ? options->before[i] :
							    options->after[i - options->before_count];
	files[count] = (struct confined_file){ .path = context->json, .output = true };
	files[count + 1] = (struct confined_file){ .path = context->html, .output = true };
	confined_begin(files, count + 2);
	free(files);
}

static int write_json(struct summary_json *summary, const struct xpt_diff *diff, int status)
{
	char *json = NULL;
	int error = summary->path ? xpt_diff_json(diff, &json) : 0;

	if (error)
		return exit_failed(error);
	summary_json_members(summary, json);
	return summary_json_end(summary, status);
}

static int write_page(const struct diff_context *context, const struct xpt_diff *diff, int status)
{
	struct text text = {};
	char *html = NULL;
	int error = context->html ? xpt_diff_html(diff, &html) : 0;

	if (error)
		return exit_failed(error);
	if (!html)
		return status;
	text_string(&text, html);
	free(html);
	return output_text(context->html, &text, status);
}

static int print_text(const struct xpt_diff *diff, bool all)
{
	char *text;
	int error = xpt_diff_text(diff, terminal_columns(STDOUT_FILENO), all, &text);

	if (error)
		return exit_failed(error);
	fputs(text, stdout);
	free(text);
	return 0;
}

/* A condition without a row is no condition that holds. */
static int judge(const struct xpt_diff *diff)
{
	int status = diff->failed ? EXIT_BEYOND : 0;

	for (size_t i = 0; i < diff->check_count; i++) {
		const struct xpt_diff_check *check = XPT_AT(diff->checks, diff->check_size, i);

		if (check->row)
			continue;
		fprintf(stderr, "xputrace diff: --fail-if '");
		print_name(stderr, check->condition, 0);
		fprintf(stderr, "': there is no such row of this unit on both sides\n");
		status = status ?: EXIT_FAILED;
	}
	return status;
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static int run_diff(const struct diff_context *context, const struct xpt_diff_options *options)
{
	const bool tables = !context->session.quiet && !is_stdout(context->json) && !is_stdout(context->html);
	struct xpt_diff *diff = NULL;
	struct summary_json summary;
	int status, error;

	summary_json_begin(&summary, context->json, "diff");
	confine(options, context);
	error = xpt_diff_create(options, &diff);
	status_clear();
	if (error) {
		text_free(&summary.text);
		return error == -EINVAL ? EXIT_USAGE : exit_failed(error);
	}
	status = tables ? print_text(diff, context->all) : 0;
	status = status ?: judge(diff);
	status = write_page(context, diff, status);
	status = write_json(&summary, diff, status);
	xpt_diff_destroy(diff);
	return status;
}

int command_diff(int argc, char **argv)
{
	static struct diff_context context;
	struct xpt_diff_options options = { .size = sizeof(options), .log = print_message, .log_level = XPT_LOG_WARN };
	struct string_list before = {}, after = {};
	int first, result = options_parse(&diff_line, argc, argv, &context, &first);

	if (result)
		return result;
	if (argc - first != 0 && (argc - first != 2 || context.before.count || context.after.count))
		return session_options_refuse(&diff_line, "expected BEFORE and AFTER, or --before and --after");
	if (argc - first == 2 &&
	    (!string_list_add(&context.before, argv[first]) || !string_list_add(&context.after, argv[first + 1])))
		return exit_failed(-ENOMEM);
	if (!context.before.count || !context.after.count)
		return session_options_refuse(&diff_line, "expected BEFORE and AFTER, or --before and --after");
	if (is_stdout(context.json) && is_stdout(context.html))
		return session_options_refuse(&diff_line, "--json and --html cannot both be on standard output");
	if (choices_refused(&diff_line, &context.session))
		return EXIT_USAGE;
	if (!collect(&context.before, &before) || !collect(&context.after, &after))
		return EXIT_FAILED;
	options.before = before.items;
	options.before_count = before.count;
	options.after = after.items;
	options.after_count = after.count;
	options.level = context.level;
	options.run_noise = context.run_noise;
	options.conditions = context.conditions.items;
	options.condition_count = context.conditions.count;
	options.programs = context.session.choices;
	options.program_count = context.session.choice_count;
	options.program_size = sizeof(*context.session.choices);
	options.match = context.session.match;
	if (!context.session.quiet && isatty(STDERR_FILENO))
		options.progress = draw_progress;
	result = run_diff(&context, &options);
	free(before.items);
	free(after.items);
	return result;
}

/* ---- explain ---- */

#define PROGRAMS_DEFAULT 5

struct explain_context {
	struct session_options session; /* first: see session.h */
	struct xpt_explain_options options;
	unsigned int most;
	const char *json;
};

#undef FIELD
#define FIELD(name) .offset = offsetof(struct explain_context, name)

static const struct option_entry explain_entries[] = {
	{ .group = reading_options },
	{ 'n', "programs", "N", "the N programs with most time in all (default: 5)", OPTION_INT, FIELD(most), .min = 1,
	  .max = 16384 },
	{ 0, "json", "FILE", "the same as JSON; -: on standard output, instead of the text", OPTION_STRING,
	  FIELD(json) },
	{ 'q', "quiet", NULL, "no text, only warnings and errors", OPTION_FLAG, FIELD(session.quiet) },
	{}
};

static const struct command_line explain_line = {
	.name = "explain",
	.summary = "Explain where the time of typical inferences goes, and what is different in the slowest 1 %.",
	.usage = "  xputrace explain RECORDING.xpt [OPTION...]",
	.options = explain_entries,
	.any_order = true,
	.more = "RECORDING is what `xputrace record -o FILE.xpt` wrote; - reads standard input. What was recorded limits\n"
		"what can be explained: `record --why --ops` records why threads are blocked, who preempts them, and\n"
		"operators.\n\n"
		"examples:\n"
		"  xputrace explain night.xpt\n"
		"  xputrace explain night.xpt --program resnet50 --json -\n\n"
		"exit status: 0 explained, 1 failed or the recording was cut short, 2 wrong usage",
};

static int print_explanation(const struct xpt_explain *explain)
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
		context->options.progress = draw_progress;
	confined_begin((const struct confined_file[]){ { .path = context->options.input },
						       { .path = context->json, .output = true } },
		       2);
	error = xpt_explain_create(&context->options, &explain);
	status_clear();
	if (!error && !context->session.quiet && !(context->json && !strcmp(context->json, "-")))
		error = print_explanation(explain);
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
	int first, result = options_parse(&explain_line, argc, argv, &context, &first);

	if (result)
		return result;
	if (first + 1 != argc)
		return session_options_refuse(&explain_line, "expected one recording");
	context.options.input = argv[first];
	context.options.programs = session->choices;
	context.options.program_count = session->choice_count;
	context.options.program_size = sizeof(*session->choices);
	context.options.match = session->match;
	context.options.pids = session->pids;
	context.options.pid_count = session->pid_count;
	context.options.from = session->from;
	context.options.to = session->to;
	context.options.most = context.most;
	if (context.options.to && context.options.to <= context.options.from)
		return session_options_refuse(&explain_line, "--to must be later than --from");
	if (choices_refused(&explain_line, session))
		return EXIT_USAGE;
	result = run_explain(&context);
	free(session->choices);
	return result;
}
