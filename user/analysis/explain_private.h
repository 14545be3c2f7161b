/* SPDX-License-Identifier: BSD-2-Clause */
/* How an explanation is made of a study, and written. */
#ifndef XPT_ANALYSIS_EXPLAIN_PRIVATE_H
#define XPT_ANALYSIS_EXPLAIN_PRIVATE_H

#include <xputrace/explain.h>

#include "analysis/study.h"
#include "base/core/text.h"

/* Texts of causes are written one behind the other, and end in 0. */
struct explained {
	struct xpt_explain_program view;
	struct xpt_explain_cohort cohorts[2];
	struct xpt_explain_part *parts; /* states, then operators */
	struct xpt_explain_cause *causes;
	pid_t *pids;
	char **texts; /* owned, of the views */
	size_t text_count;
};

struct xpt_explain {
	char *input; /* owned */
	struct study *study;
	struct explained *programs;
	size_t program_count;
};

const char *explain_component_title(enum study_component component); /* "waiting for a CPU" */
/* Keeps the text, which becomes empty, as long as the program. "": there was no memory, text->error is set. */
const char *explained_keep(struct explained *explained, struct text *text);

/* xpt_explain_create() of any study of one recording; most: programs, 0: all. */
int explain_create(const struct study_options *options, size_t most, struct xpt_explain **result);

/* The causes of what is slower, with evidence and commands. -ENOMEM. */
int explain_causes(const struct xpt_explain *explain, const struct study_program *program, struct explained *explained);

#endif
