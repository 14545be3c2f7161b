/* SPDX-License-Identifier: BSD-2-Clause */
/* What the reports of a handle add up to, program by program: the table that stands at the end. */
#ifndef XPT_CLI_TOTALS_H
#define XPT_CLI_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <xputrace/profile_report.h>

/* Programs with a line of their own; those that come later are put together, so that memory has a limit. */
#define TOTALS_MAX 1024

struct program_total {
	char *runtime, *name; /* owned; NULL: the others together */
	pid_t pid;
	uint64_t inferences, taken, lost, failed;
	struct xpt_latencies *latencies; /* NULL: there was no memory */
};

/* Begins as zeros. */
struct totals {
	struct program_total programs[TOTALS_MAX + 1]; /* the last one: others */
	size_t count;				       /* without the others */
	struct program_total sum;		       /* of all */
	bool inexact;				       /* no memory for latencies of some */
};

/* A process, runtime and name is one program, whatever its handle. */
void totals_add(struct totals *totals, const struct xpt_program_report *program);
/* columns: width of the terminal, 0: nothing is cut. */
void totals_print(const struct totals *totals, FILE *out, unsigned int columns);
void totals_free(struct totals *totals);

#endif
