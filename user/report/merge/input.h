/* SPDX-License-Identifier: BSD-2-Clause */
/* The traces to merge: how they are read, and what a first reading of all of one has found. */
#ifndef XPT_REPORT_MERGE_INPUT_H
#define XPT_REPORT_MERGE_INPUT_H

#include "base/core/log.h"
#include "report/merge/event.h"
#include "report/merge/match.h"

/* ---- reader.c ---- */

/*
 * A Chrome trace of anybody's, one event at a time: an object with "traceEvents" or a bare array. What is in memory is
 * one event, or one other member, and the block that it was read with, however large the file is.
 */
#define MERGE_VALUE_MAX (64u << 20) /* bytes of one event or member */

struct merge_reader;

struct merge_item {
	bool event;		/* an object of the array of events; else another member of the document */
	char name[32];		/* of the member, cut */
	struct json_part value; /* checked; valid until the next call */
	__u64 offset;		/* at which the value begins in the file */
};

/*
 * Opens a regular file. It is read up to the size that it has now. log stays the caller's and must live as long.
 * -EINVAL: no regular file; or errors of open(). Logged.
 */
int merge_reader_open(const struct log *log, const char *path, struct merge_reader **result);
/* 1: *item is the next one; 0: there are no more; -EBADMSG: malformed, or errors of read(). Logged. */
int merge_reader_next(struct merge_reader *reader, struct merge_item *item);
/* After the last item: the file ends before the document does; *offset is where what is complete ends. */
bool merge_reader_cut(const struct merge_reader *reader, __u64 *offset);
/* An item that is good JSON, but wrong otherwise: logs why, with file and offset. Returns -EBADMSG. */
int merge_reader_refuse(const struct merge_reader *reader, const struct merge_item *item, const char *at,
			const char *reason);
/* Begins at the file's beginning again, for the same bytes. */
void merge_reader_rewind(struct merge_reader *reader);
/* 1: the file has other bytes than when it was opened, or may have; 0: not; or -errno. */
int merge_reader_changed(const struct merge_reader *reader);
void merge_reader_close(struct merge_reader *reader);

__u64 merge_reader_size(const struct merge_reader *reader); /* bytes of the document, uncompressed */

/* ---- input.c ---- */

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

/*
 * Sets numbers.shift and uncertainty of all inputs, and logs the clock of each. The axis is CLOCK_MONOTONIC where an
 * input has it; else that of the first input that counts from 1970. -EINVAL: the clock of one is unknown, or they are
 * of different boots; logged, with what to do.
 */
int merge_clocks(const struct log *log, struct merge_input *inputs, size_t count);

#endif
