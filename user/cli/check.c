/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include <xputrace/check.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/privileges.h"

static const struct command_line line = {
	.name = "check",
	.summary = "Tell what this kernel and these permissions allow, and what to do about the rest.",
	.usage = "  sudo xputrace check",
	.more = "Every line was tried, not looked up by version.\n\n"
		"exit status: 0 recording works here, 1 it does not, 2 wrong usage",
};

static void on_feature(void *context, const struct xpt_feature *feature)
{
	const char *verdict = !feature->error ? "ok" : feature->need == XPT_NEED_REQUIRED ? "MISSING" : "no";

	(void)context;
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
	int first, result = options_parse(&line, argc, argv, NULL, &first);

	if (result)
		return result == PARSE_HELP ? 0 : result;
	if (first < argc) {
		fprintf(stderr, "xputrace check: takes no arguments\n");
		return EXIT_USAGE;
	}
	result = xpt_check(on_feature, NULL);
	printf("\n");
	privileges_print(stdout);
	printf("\n%s\n", result ? "Recording does not work here yet." : "Recording works here.");
	return result ? EXIT_FAILED : 0;
}
