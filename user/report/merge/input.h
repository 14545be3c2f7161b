/* SPDX-License-Identifier: BSD-2-Clause */
/* One of the traces to merge: what a first reading of all of it has found. */
#ifndef XPT_REPORT_MERGE_INPUT_H
#define XPT_REPORT_MERGE_INPUT_H

#include "report/merge/event.h"
#include "report/merge/match.h"
#include "report/merge/names.h"
#include "report/merge/reader.h"

enum merge_clock {
	MERGE_CLOCK_UNKNOWN,
	MERGE_CLOCK_GIVEN,     /* by the caller: an offset */
	MERGE_CLOCK_MONOTONIC, /* ts is CLOCK_MONOTONIC */
	MERGE_CLOCK_WALL,      /* ts counts from base, ns since 1970 */
};

/* Spans of one kind, by process. */
struct merge_spans {
	struct merge_process_span {
		__u32 process;
		struct merge_span span;
	} * items;
	size_t count;
};

struct merge_input {
	const char *path; /* the caller's */
	struct merge_reader *reader;
	enum merge_clock clock;
	__s64 base;
	struct merge_numbers numbers; /* devices are owned */
	__u64 uncertainty;	      /* ns, of the shift; without what the file's own numbers are cut by */
	bool fine;		      /* some time is no whole number of microseconds */
	__u64 events;
	/* Of an xputrace trace (numbers.ours): */
	__s64 monotonic, realtime; /* the same moment on both clocks */
	char *boot;		   /* its name, as in the file */
	struct merge_spans calls;  /* executions in ONNX Runtime */
	/* Of ONNX Runtime's own profile: */
	struct merge_spans runs;
	/* The members of the document of these names, as they are; NULL: there is none. */
	char *other_data, *metadata;
};

/*
 * Opens and reads all of it. names gets who names which process and thread; index is the input's number in it.
 * -EBADMSG: malformed; or errors of open() and read(). All are logged. input must be zeroed but for path.
 */
int merge_input_survey(struct merge_input *input, const struct log *log, struct merge_names *names, unsigned int index);
void merge_input_free(struct merge_input *input);

#endif
