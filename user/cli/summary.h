/* SPDX-License-Identifier: BSD-2-Clause */
/* What a command has recorded: sums for each program, printed as a table, and --summary-json. */
#ifndef XPT_CLI_SUMMARY_H
#define XPT_CLI_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <xputrace/profile_report.h>

#include "base/core/text.h"
#include "cli/options.h"

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

/* ---- --summary-json ---- */

struct summary_json {
	const char *path; /* NULL: none is written; "-": standard output */
	struct text text; /* the object, open: json_add_*() add to it */
};

/* Before anything is added; path may be NULL: then nothing needs to be added. */
void summary_json_begin(struct summary_json *summary, const char *path, const char *command);
/* Members of an object that the library has made; frees it. NULL: none. */
void summary_json_members(struct summary_json *summary, char *json);
/* The file that was written; path NULL or "": none was. */
void summary_json_output(struct summary_json *summary, const char *path, const char *format);
void summary_json_totals(struct summary_json *summary, const struct totals *totals);
/* Writes and frees it. The exit status: that of the command, or EXIT_FAILED (reported) where it could not be written. */
int summary_json_end(struct summary_json *summary, int status);

extern const struct option_entry summary_json_option[]; /* of a const char *; NULL: not given */

#endif
