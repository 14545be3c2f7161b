/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/seen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"

#define FORCED "name="

bool choice_parse(const char *text, struct xpt_program_choice *choice, const char **reason)
{
	*choice = (struct xpt_program_choice){ .name = text };
	*reason = "a name, or a handle like 0x7f3a10002b40, is wanted";
	if (!strncmp(text, FORCED, strlen(FORCED))) {
		choice->name = text + strlen(FORCED);
		return *choice->name;
	}
	if (strncmp(text, "0x", 2) || !text[2] || text[2 + strspn(text + 2, "0123456789abcdefABCDEF")])
		return *text;
	choice->name = NULL;
	return parse_number(text, &choice->handle) && choice->handle;
}

struct search {
	struct seen_programs *seen;
	const struct xpt_program_choice *choices;
	size_t choice_count;
	bool found;
};

static bool fits(const struct xpt_program_choice *choice, const struct xpt_program_info *program)
{
	return (!choice->pid || choice->pid == program->pid) &&
	       (!choice->handle || choice->handle == program->handle) &&
	       (!choice->name || text_is_name(program->name, choice->name));
}

/* "nrt model 1" */
static bool is_nameless(const struct seen_program *program)
{
	size_t length = strlen(program->runtime);
	const char *rest = program->name + length;

	return !strncmp(program->name, program->runtime, length) &&
	       (!strncmp(rest, " model ", 7) || !strncmp(rest, " kernel ", 8));
}

void seen_add(struct seen_programs *seen, const struct xpt_program_info *program)
{
	struct seen_program *item = &seen->items[seen->count];

	for (size_t i = 0; i < seen->count; i++) {
		const struct seen_program *other = &seen->items[i];

		if (other->pid == program->pid && other->handle == program->handle &&
		    !strcmp(other->name, program->name) && !strcmp(other->runtime, program->runtime))
			return;
	}
	if (seen->count == SEEN_MAX) {
		seen->more = true;
		return;
	}
	*item = (struct seen_program){ strdup(program->runtime), strdup(program->name), program->pid, program->handle };
	if (item->runtime && item->name) {
		seen->count++;
		seen->nameless |= is_nameless(item);
		return;
	}
	free(item->runtime);
	free(item->name);
}

static int visit(void *context, const struct xpt_program_info *program)
{
	struct search *search = context;

	for (size_t i = 0; i < search->choice_count; i++)
		search->found |= fits(&search->choices[i], program);
	seen_add(search->seen, program);
	return search->found;
}

bool seen_update(struct seen_programs *seen, struct xpt_session *session, const struct xpt_program_choice *choices,
		 size_t choice_count)
{
	struct search search = { .seen = seen, .choices = choices, .choice_count = choice_count };

	xpt_session_programs(session, visit, &search);
	return search.found;
}

void seen_print(const struct seen_programs *seen)
{
	for (size_t i = 0; i < seen->count; i++) {
		const struct seen_program *program = &seen->items[i];

		fputs("  ", stderr);
		print_name(stderr, program->name, 32);
		fprintf(stderr, "  %-13s process %-8d 0x%" PRIx64 "\n", program->runtime, program->pid,
			program->handle);
	}
	if (seen->more)
		fputs("  and more\n", stderr);
	if (seen->nameless)
		fputs("  Programs that were loaded before and have no name: --program HANDLE chooses one, --name HANDLE=NAME names it.\n",
		      stderr);
}

void seen_free(struct seen_programs *seen)
{
	for (size_t i = 0; i < seen->count; i++) {
		free(seen->items[i].runtime);
		free(seen->items[i].name);
	}
	*seen = (struct seen_programs){};
}
