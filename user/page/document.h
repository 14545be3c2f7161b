/* SPDX-License-Identifier: BSD-2-Clause */
/* The data of a page, one JSON document: what a study has, in columns, and what is shown as it was recorded. */
#ifndef XPT_PAGE_DOCUMENT_H
#define XPT_PAGE_DOCUMENT_H

#include <xputrace/diff.h>
#include <xputrace/explain.h>

#include "analysis/study.h"
#include "base/core/text.h"
#include "page/page.h"
#include "page/spans.h"
#include "report/flame/flame.h"

#define PAGE_OPERATORS_MAX 20000     /* of all programs: those with most self time of each */
#define PAGE_SAMPLES_MAX 120000	     /* of all programs, half of them slow ones */
#define PAGE_DETAIL_ITEMS_MAX 150000 /* of all inferences in full: operators, slices, jobs, calls */
#define PAGE_CODE_OBJECTS_MAX 1000
#define PAGE_FLAME_NODES_MAX 60000 /* of one graph: the largest */
#define PAGE_FLAMES 4

struct page_document {
	const char *name; /* of the recording */
	const struct study *study;
	const struct xpt_explain *explain; /* of the study; of its first programs */
	const struct model *model;	   /* of the events that spans and flames are of, after the last one */
	__u64 length;			   /* ns that rates of the summary are of; 0: of the recording */
	const struct page_spans *spans;
	struct page_names *names;
	struct flame_tree *flames[PAGE_FLAMES]; /* by enum xpt_flame - 1; NULL: none */
};

/* Appends it; what does not fit into memory is text->error. */
void page_document_add(struct text *text, const struct page_document *document);

#define PAGE_ROWS_MAX 60000	 /* of a comparison, of all programs: the most significant of each */
#define PAGE_RECORDINGS_MAX 1000 /* of a side of it */
#define PAGE_HISTOGRAM_BINS 96

/* The same of a comparison of these two studies. */
void page_comparison_add(struct text *text, const struct xpt_diff *diff, const struct study *const sides[2]);

#endif
