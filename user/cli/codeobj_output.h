/* SPDX-License-Identifier: BSD-2-Clause */
/* Code objects as a table. */
#ifndef XPT_CLI_CODEOBJ_OUTPUT_H
#define XPT_CLI_CODEOBJ_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include <xputrace/codeobj.h>

struct codeobj_shown {
	bool functions; /* what stands in each, a line each */
	bool libraries; /* shared libraries of processes, too, that no runtime was given */
};

/* A line an object, however often it was loaded. 0 or -ENOMEM. */
int codeobj_table(FILE *out, const struct xpt_codeobj_list *list, const struct codeobj_shown *shown);

/*
 * What a capture has done besides: how long calls waited, and what was written to the folder; NULL: nothing was. A hint
 * where nothing was recorded. 0 or -ENOMEM.
 */
int codeobj_summary(FILE *out, const struct xpt_codeobj_list *list, bool snapshot, const char *folder);

#endif
