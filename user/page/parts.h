/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of the document: document.c puts them together. Times in it are ns since the recording began. */
#ifndef XPT_PAGE_PARTS_H
#define XPT_PAGE_PARTS_H

#include "page/document.h"

struct page_parts {
	const struct page_document *document;
	__u64 base; /* when the recording began */
	size_t programs;
	/* Of those beyond the limit, one in this many is kept. */
	__u64 slow_every, drawn_every;
	/* What was added so far, and could not be: */
	__u64 samples, slow_samples, operators, items, details, cut_details, left_out_details;
};

/* Members that say what an input is: "file"... */
void page_add_source(struct text *text, const struct study_input *input, const char *name);
/* The member "costs". */
void page_add_costs(struct text *text, const struct model *model);
/* The member "losses": causes in words. */
void page_add_losses(struct text *text);
/* Count, extremes, mean and quantiles; nothing where there are no values. */
void page_add_statistics(struct text *text, const char *key, const struct statistics *statistics);

/* Before the programs. */
void page_share_samples(struct page_parts *parts);

/* Of language models, a row a phase. */
void page_add_tokens(struct text *text, const struct model *model);
void page_add_operators(struct text *text, struct page_parts *parts, const struct study_program *program);
void page_add_details(struct text *text, struct page_parts *parts, const char *key, const struct study_program *program,
		      const struct study_detail *details, size_t count);
void page_add_samples(struct text *text, struct page_parts *parts, const struct study_program *program);

void page_add_queues(struct text *text, struct page_parts *parts);
void page_add_counters(struct text *text, struct page_parts *parts);
void page_add_code(struct text *text, struct page_parts *parts);
void page_add_driver_events(struct text *text, struct page_parts *parts);
/* With the windows that they are of, and the jobs of queues. */
void page_add_spans(struct text *text, struct page_parts *parts);

#endif
