/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/program_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void chosen_free(struct chosen *chosen)
{
	size_t i;

	for (i = 0; i < chosen->count; i++)
		free((char *)chosen->all[i].text);
	free(chosen->all);
	*chosen = (struct chosen){};
}

int chosen_add(struct chosen *chosen, const struct xpt_record_text *record)
{
	size_t room = chosen->room ? chosen->room * 2 : 8;
	struct model_choice *all;
	char *text;

	if (chosen->count == chosen->room) {
		all = realloc(chosen->all, room * sizeof(*all));
		if (!all)
			return -ENOMEM;
		chosen->all = all;
		chosen->room = room;
	}
	text = strndup(record->text, record->length);
	if (!text)
		return -ENOMEM;
	chosen->all[chosen->count++] = (struct model_choice){ .text = text,
							      .match = record->header.kind == XPT_RECORD_MATCH,
							      .tgid = record->header.tgid,
							      .handle = record->id };
	return 0;
}

/* Operators have no counts in the kernel. */
static void count_left_out(struct program *program, const struct event_call *call)
{
	if (!call->layer && role_runs(call->function->role))
		program->view.total.left_out++;
}

bool chosen_leaves_out(const struct chosen *chosen, struct program *program, const struct event_call *call, bool inside)
{
	const enum xpt_role role = call->function->role;

	if (!chosen->count || !chosen->chooser.wants)
		return false;
	/* One whose inference is not known may be anybody's. */
	if (!program)
		return role == XPT_ROLE_OPERATOR;
	if (inside || (role != XPT_ROLE_OPERATOR && !role_runs(role)))
		return false;
	if (chosen->chooser.wants(chosen->chooser.context, &program->view, call))
		return false;
	count_left_out(program, call);
	return true;
}
