/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/program_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void program_filter_free(struct program_filter *filter)
{
	size_t i;

	for (i = 0; i < filter->count; i++)
		free((char *)filter->all[i].text);
	free(filter->all);
	*filter = (struct program_filter){};
}

int program_filter_add(struct program_filter *filter, const struct xpt_record_text *record)
{
	char *text;

	if (vec_reserve(filter->all, filter->count))
		return -ENOMEM;
	text = strndup(record->text, record->length);
	if (!text)
		return -ENOMEM;
	filter->all[filter->count++] = (struct model_choice){ .text = text,
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

bool program_filter_leaves_out(const struct program_filter *filter, struct program *program,
			       const struct event_call *call, bool inside)
{
	const enum xpt_role role = call->function->role;

	if (!filter->count || !filter->chooser.wants)
		return false;
	/* One whose inference is not known may be anybody's. */
	if (!program)
		return role == XPT_ROLE_OPERATOR;
	if (inside || (role != XPT_ROLE_OPERATOR && !role_runs(role)))
		return false;
	if (filter->chooser.wants(filter->chooser.context, &program->view, call))
		return false;
	count_left_out(program, call);
	return true;
}
