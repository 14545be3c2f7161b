/* SPDX-License-Identifier: BSD-2-Clause */
/* --summary-json FILE: what a command has done, one JSON object. Fields: user/report/SCHEMA.md. */
#ifndef XPT_CLI_SUMMARY_JSON_H
#define XPT_CLI_SUMMARY_JSON_H

#include "base/text.h"
#include "cli/options.h"
#include "cli/totals.h"

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
