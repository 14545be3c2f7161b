/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One file for browsers that shows a recording, or compares some: template, script and style, which the build embeds, and the document with its data.
 * It loads nothing; a Content-Security-Policy in it allows its own script and style only. The data are compressed and in base64, so that
 * no name in them can be markup; the script makes text of them.
 */
#ifndef XPT_PAGE_PAGE_H
#define XPT_PAGE_PAGE_H

#include <xputrace/diff.h>
#include <xputrace/explain.h>

#include "analysis/study.h"
#include "base/core/text.h"
#include "base/core/log.h"
#include "model/core/model.h"

#define PAGE_PROGRAMS_MAX 1000 /* further ones are in the totals only */

struct page;

struct page_options {
	const struct log *log;
	const char *path; /* "-": standard output */
	int descriptor;	  /* of path, which is open already and is taken over; -1: it is opened */
	const char *name; /* of the recording, as the page shows it */
	/* Of flame graphs, as in struct flame_options. */
	bool (*wants)(const void *context, const struct event_stack *stack);
	const void *context;
};

/* Before the model's first record: adds sinks, opens the file. -ENOMEM, -ENOSPC, errors of open(), which are reported. */
int page_open(const struct page_options *options, struct model *model, struct page **result);
/*
 * After the last one: writes the page and closes the file. explain: with details, of the same recording, and the same part of it. length:
 * ns that rates of the summary are of; 0: of the recording. -ENOMEM, errors of write().
 */
int page_close(struct page *page, const struct xpt_explain *explain, const struct model *model, __u64 length);
void page_free(struct page *page);

/* All of that with the recording that descriptor is of, which has to be a file. options->wants is not used. Errors of both, and of reading it. */
int page_write(const struct page_options *options, int recording);

/* Appends the page of a comparison of these two studies, before and after. What does not fit into memory is text->error. */
void page_diff(struct text *text, const struct xpt_diff *diff, const struct study *before, const struct study *after);

/* Embedded by embed.sh. Not terminated. */
struct page_asset {
	const unsigned char *bytes;
	size_t length;
};

extern const struct page_asset page_script, page_style;

#endif
