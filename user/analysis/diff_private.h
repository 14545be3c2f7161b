/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a comparison. */
#ifndef XPT_ANALYSIS_DIFF_PRIVATE_H
#define XPT_ANALYSIS_DIFF_PRIVATE_H

#include "analysis/diff.h"
#include "model/stats/significance.h"

#define DIFF_ROWS_MAX 1024 /* operators of a program on each side, by the time that they take; counters */

/* ---- conditions ---- */

enum diff_compare {
	DIFF_GREATER,
	DIFF_AT_LEAST,
	DIFF_LESS,
	DIFF_AT_MOST,
};

struct diff_condition {
	char row[256], program[256]; /* program "": all */
	enum diff_compare compare;
	bool percent; /* the limit is in percent; else in the row's unit, times in ns */
	bool time;
	double limit;
};

/* -EINVAL: reason as by trigger_text_parse(). */
int diff_condition_parse(const char *text, struct diff_condition *condition, char *reason, size_t size);

/* ---- rows ---- */

/* Blocks or recordings of a program on one side, and what they have. */
struct diff_side {
	const struct study *study;
	const struct study_program *program;
	unsigned int *unit; /* of each sample; ~0: of none */
	unsigned int units; /* recordings in which it ran, or blocks of them */
	unsigned int recordings;
};

struct diff_pair {
	const struct diff_options *options;
	struct diff_side side[2]; /* before, after */
	bool by_recording;
};

/* -ENOMEM. */
int diff_pair_create(struct diff_pair *pair);
void diff_pair_free(struct diff_pair *pair);
#define UNITS_LEAST 4 /* blocks on a side that something is tested by */

/* Whether each recording counts as one value, with this many of them on each side. */
bool diff_by_recording(size_t before, size_t after);
/* Figures are means over groups: of recordings where these are values, else there is one. */
size_t diff_groups(const struct diff_pair *pair, const struct diff_side *side);
/* The samples of a group, or with ~0 those of any unit, or with ~1 all, by duration; to be freed. NULL: no memory. */
struct weighted *diff_sort(const struct diff_side *side, unsigned int group, size_t *count);
/* What recordings differ by without being seen to: share of a figure of which so much is waiting for a CPU. */
void diff_add_noise(struct estimate *estimate, double share, double value, double waited);
void diff_fill_row(struct xpt_diff_row *row, double before, double after, const struct difference *difference);

/* Appends; p values are not adjusted. -ENOMEM. */
int diff_rows(struct diff_pair *pair, struct xpt_diff_row **rows, size_t *count);
int diff_counter_rows(const struct diff_options *options, const struct study *before, const struct study *after,
		      struct xpt_diff_row **rows, size_t *count);

/* Means over the inferences around a quantile, in each recording where that is one value. Begins as zeros. */
struct diff_window {
	double component[STUDY_COMPONENTS];
	double *operators; /* [operator_count]: self times, ns; NULL: are not asked for */
	size_t vectors;	   /* inferences that operators is of */
	size_t groups;
};

/* -ENOMEM. */
int diff_window(const struct diff_pair *pair, const struct diff_side *side, double quantile, double reach,
		struct diff_window *window);
/* The quantile of a row with this name, and how far around it inferences are alike: 0: it is of none. */
double diff_quantile_reach(const char *name, double *quantile);
/* Index of the operator with the same label and type; ~0: there is none. */
size_t diff_find_operator(const struct study_program *program, const struct study_operator *like);

/* -ENOMEM. The parts of each cause are to be freed. */
int diff_causes(struct diff_pair *pair, const struct xpt_diff_row *rows, size_t row_count,
		struct xpt_diff_cause **causes, size_t *count);

#endif
