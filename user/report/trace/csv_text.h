/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fields of CSV (RFC 4180) with strings that may come from a traced program: in quotes where they need them, quotes
 * doubled. What a spreadsheet would calculate gets an apostrophe before it, and what a terminal would not just show is
 * escaped as text_terminal() does. NULL is "".
 */
#ifndef XPT_REPORT_TRACE_CSV_TEXT_H
#define XPT_REPORT_TRACE_CSV_TEXT_H

#include "base/core/hashmap.h"
#include "base/core/text.h"
#include "base/core/usage.h"
#include "model/stream/event.h"

void csv_string(struct text *text, const char *string); /* line ends are kept between the quotes */
void csv_line(struct text *text, const char *string);	/* line ends are escaped: the record stays on its line */

/* What a process uses over time: a row a reading. Schema: user/report/SCHEMA.md. */
void usage_csv_heading(struct text *text);
/* before: the row before this one; NULL: this is the first one. What is not known is N/A. */
void usage_csv_row(struct text *text, const struct process_usage *usage, const struct process_usage *before);

/* Keeps operators until the inference they were in is emitted, for formats that have it before its operators. Bounded. */

#define OPERATOR_BUFFER_INFERENCES 4096
#define OPERATOR_BUFFER_BYTES (16u << 20)

struct held_operator {
	__u64 start, end;
	size_t label; /* offset of the terminated string in labels */
};

/* The operators of one inference. */
struct held_operators {
	struct keyed keyed; /* by process and thread, and begin */
	struct held_operator *op;
	size_t count;
	struct text labels;
};

struct operator_buffer {
	struct keyed_table inferences;
	size_t bytes;
	__u64 dropped; /* operators, the oldest inferences first, because there were too many */
};

void operator_buffer_init(struct operator_buffer *hold);
/* A call of an operator with a known inference. label is copied. -ENOMEM. */
int operator_buffer_add(struct operator_buffer *hold, const struct event_call *call, const char *label);
/*
 * Takes out those of the inference that the thread began at start, in order of their begin, the outer one first. The
 * caller frees. NULL: there are none.
 */
struct held_operators *operator_buffer_take(struct operator_buffer *hold, __u32 tgid, __u32 tid, __u64 start);
void held_operators_free(struct held_operators *held); /* may be NULL */
void operator_buffer_free(struct operator_buffer *hold);

#endif
