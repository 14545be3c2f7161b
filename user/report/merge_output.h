/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that appears when it is whole: written under another name, brought to the disk, renamed. It has the mode of
 * the file that it replaces, else 0600.
 */
#ifndef XPT_REPORT_MERGE_OUTPUT_H
#define XPT_REPORT_MERGE_OUTPUT_H

#include "base/text.h"

struct gzip;

struct merge_output {
	int descriptor; /* -1: closed */
	char *path; /* what it becomes: links are followed; NULL: a device, pipe or standard output, written as it is */
	char *temporary;   /* what it is called until then */
	struct gzip *gzip; /* NULL: it is not compressed */
};

/* "-": standard output. 0 or -errno. */
int merge_output_open(struct merge_output *output, const char *path);
/* Writes what is in text and empties it. 0 or -errno. */
int merge_output_write(struct merge_output *output, struct text *text);
/* error: 0 when all has been written; else the file is removed. Returns the first error. Also frees. */
int merge_output_close(struct merge_output *output, int error);

#endif
