/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that were chosen: inferences of others are counted only. */
#ifndef XPT_MODEL_PROGRAM_PROGRAM_FILTER_H
#define XPT_MODEL_PROGRAM_PROGRAM_FILTER_H

#include "model/stream/objects.h"
#include "model/program/programs.h"

/* Zero it to begin with. */
struct program_filter {
	struct model_chooser chooser; /* wants NULL: everything is wanted */
	struct model_choice *all;     /* texts are owned */
	size_t count;
};

void program_filter_free(struct program_filter *filter);
int program_filter_add(struct program_filter *filter,
		       const struct xpt_record_text *record); /* a CHOICE or MATCH. -ENOMEM */
/*
 * Is the call an inference, or a step of one, that nobody has chosen? Then its program, NULL where that is not known, counts
 * it as left out. inside: XPT_CALL_INSIDE.
 */
bool program_filter_leaves_out(const struct program_filter *filter, struct program *program,
			       const struct event_call *call, bool inside);

#endif
