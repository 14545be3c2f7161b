/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/choosing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xputrace/stream.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/seen.h"

bool take_chosen_match(void *context, const char *value, const char **reason)
{
	struct session_options *options = context;

	*reason = "expected one expression: a|b finds a and b";
	if (options->match)
		return false;
	options->match = value;
	return true;
}

bool take_chosen_program(void *context, const char *value, const char **reason)
{
	struct session_options *options = context;
	struct xpt_program_choice *more;

	if (options->choice_count == XPT_CHOICES_MAX) {
		*reason = "too many programs; use --match";
		return false;
	}
	more = realloc(options->choices, (options->choice_count + 1) * sizeof(*more));
	if (!more) {
		*reason = "out of memory";
		return false;
	}
	options->choices = more;
	return choice_parse(value, &options->choices[options->choice_count++], reason);
}

bool choices_refused(const struct command_line *line, const struct session_options *options)
{
	struct text safe = {};
	char reason[200];
	size_t position, columns;

	if (!options->match || !xpt_stream_check_match(options->match, &position, reason, sizeof(reason)))
		return false;
	columns = text_terminal(&safe, options->match, position, 0);
	text_free(&safe);
	fprintf(stderr, "xputrace %s: --match: %s\n  ", line->name, reason);
	print_name(stderr, options->match, 0);
	fprintf(stderr, "\n  %*s^\n", (int)columns, "");
	return true;
}
