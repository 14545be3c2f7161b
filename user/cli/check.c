/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include <xputrace/check.h>

#include "base/core/json.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/summary.h"

static const struct option_entry entries[] = { { .group = summary_json_option }, {} };

static const struct command_line line = {
	.name = "check",
	.summary = "Check kernel features and permissions, with advice on what is missing.",
	.usage = "  sudo xputrace check [--summary-json FILE]",
	.options = entries,
	.more = "Every line was tried, not looked up by version.\n\n"
		"exit status: 0 recording works here, 1 it does not, 2 wrong usage",
};

static void add_feature(struct text *text, const struct xpt_feature *feature)
{
	static const char *const needs[] = {
		[XPT_NEED_REQUIRED] = "required",
		[XPT_NEED_ONE_OF] = "one of",
		[XPT_NEED_OPTIONAL] = "optional",
	};

	json_begin(text, NULL, '{');
	json_add_text(text, "name", feature->name);
	json_add_text(text, "need", needs[feature->need]);
	json_add_bool(text, "works", !feature->error);
	json_add_text(text, "detail", feature->detail);
	json_end(text, '}');
}

static void on_feature(void *context, const struct xpt_feature *feature)
{
	const char *verdict = !feature->error ? "ok" : feature->need == XPT_NEED_REQUIRED ? "MISSING" : "no";
	struct summary_json *summary = context;

	if (summary->path)
		add_feature(&summary->text, feature);
	printf("%-8s %-17s", verdict, feature->name);
	if (*feature->detail)
		printf(" %s", feature->detail);
	if (feature->error && strcmp(feature->detail, strerror(-feature->error)))
		printf(" (%s)", strerror(-feature->error));
	printf("\n");
	if (feature->error && *feature->gives)
		printf("%27s needed for: %s\n", "", feature->gives);
	if (feature->error && *feature->advice)
		printf("%27s what to do: %s\n", "", feature->advice);
}

int command_check(int argc, char **argv)
{
	struct summary_json summary;
	const char *path = NULL;
	int first, result = options_parse(&line, argc, argv, &path, &first);

	if (result)
		return result == PARSE_HELP ? 0 : result;
	if (first < argc) {
		fprintf(stderr, "xputrace check: takes no arguments\n");
		return EXIT_USAGE;
	}
	summary_json_begin(&summary, path, "check");
	if (path)
		json_begin(&summary.text, "features", '[');
	result = xpt_check(on_feature, &summary);
	if (path)
		json_end(&summary.text, ']');
	printf("\n");
	privileges_print(stdout);
	printf("\n%s\n", result ? "Recording does not work here yet." : "Recording works here.");
	return summary_json_end(&summary, result ? EXIT_FAILED : 0);
}
