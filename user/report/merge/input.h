/* SPDX-License-Identifier: BSD-2-Clause */
/* The traces to merge: how they are read, and what a first reading of all of one has found. */
#ifndef XPT_REPORT_MERGE_INPUT_H
#define XPT_REPORT_MERGE_INPUT_H

#include <linux/types.h>
#include <stddef.h>

#include "base/core/json.h"
#include "base/core/log.h"
#include "base/core/text.h"

struct xpt_merge_options;

/* Whether it begins as a Perfetto trace does. A Chrome trace, and what cannot be read, does not. */
bool packets_are(const char *path);
/* xpt_merge_traces() of such; options are copied and complete. */
int packets_merge(const struct log *log, const struct xpt_merge_options *options);

/* One event of a Chrome trace: what merging must know of it, and the event as it is in the merged trace. */

#define MERGE_SYNTHETIC (1u << 30) /* from here on, numbers of ours are of no process: counters, devices */
#define MERGE_SPACE_BITS 24
#define MERGE_SPACES 64 /* as many fit behind MERGE_SYNTHETIC into 31 bits */

struct merge_event {
	char phase; /* "ph"; 0: none */
	struct json_part name, category, arguments;
	struct json_part pid, tid;
	bool process_known, thread_known; /* pid and tid are numbers, also as text, of 32 bits */
	__u32 process, thread;
	bool timed, fine;     /* there is a "ts"; one that is no whole number of microseconds */
	__s64 time, duration; /* "ts" and "dur", ns */
	const char *fault_at; /* NULL: the event is sane; where the value is that is not */
	const char *fault;    /* and what is wrong with it */
};

/* Parts point into value, which must be an object that has been checked. */
void merge_event_read(struct json_part value, struct merge_event *event);

/* Number of microseconds as JSON has it: ns, rounded. False: no number, or beyond 146 years. */
bool merge_time(struct json_part value, __s64 *nanoseconds, bool *fine);
/* Whole number, as it is or in quotes. */
bool merge_number(struct json_part value, __u64 *number);
/* Nanoseconds as microseconds with three decimals. */
void merge_write_time(struct text *text, __s64 nanoseconds);

/* What becomes of the numbers of one input. */
struct merge_numbers {
	__s64 shift;	    /* ns, added to times */
	unsigned int space; /* inputs with another one have identifiers of their own; 0: they stay as they are */
	bool ours;	    /* numbers from MERGE_SYNTHETIC on are of no process */
	/* Of others: processes that are none but stand for a device. */
	__u32 *devices;
	size_t device_count;
};

/* Whether a process's number is of no process, and so means something in this input only. */
bool merge_synthetic(const struct merge_numbers *numbers, __u32 process);
/* Appends the event with its numbers changed; all else stays as it is, byte by byte. */
void merge_event_write(struct text *text, struct json_part value, const struct merge_event *event,
		       const struct merge_numbers *numbers);

/* ---- which of several traces names a process or thread: it is in several, under different names ---- */

struct merge_name {
	__u32 process, thread; /* thread: 0 for names of processes */
	char kind;	       /* one for each sort of event that may be there only once */
	unsigned int input;    /* its source */
	unsigned int rank;     /* the lowest wins */
	char *name;	       /* of a process: as in the file, with quotes; owned; NULL: of others */
};

struct merge_names {
	struct merge_name *items;
	size_t count;
};

enum merge_name_fate {
	MERGE_NAME_KEPT,    /* the event stays */
	MERGE_NAME_DROPPED, /* another input has it */
	MERGE_NAME_LABEL,   /* of a process that has another name already: it becomes a label */
};

/* Notes the sources of names. Events of other kinds, and those of words in place of numbers, are passed over. */
int merge_names_add(struct merge_names *names, const struct merge_event *event, unsigned int input);
/* When all are there, with their ranks: one of each is kept. */
void merge_names_settle(struct merge_names *names);
/* What becomes of a metadata event of an input. Not for numbers that are moved: these are nobody else's. */
enum merge_name_fate merge_names_fate(const struct merge_names *names, const struct merge_event *event,
				      unsigned int input);
void merge_names_free(struct merge_names *names);

/*
 * The offset between two clocks, from spans of the same work on both: each run lies inside the call that made it, on
 * the same thread. Nothing is guessed: an offset is accepted only if no other one would do nearly as well.
 */

#define MERGE_MATCH_LEAST 3 /* runs and calls that there must be */

struct merge_span {
	__u32 thread;
	__s64 start, end; /* ns */
};

enum merge_verdict {
	MERGE_FITS,
	MERGE_NO_CALLS,	 /* none on the threads of the runs */
	MERGE_TOO_FEW,	 /* runs or calls: less than MERGE_MATCH_LEAST */
	MERGE_NO_FIT,	 /* with every offset some run has no call, or nearly all lie outside */
	MERGE_AMBIGUOUS, /* several offsets do */
	MERGE_TOO_MUCH,	 /* too much work: the spans are many and too regular */
};

struct merge_fit {
	__s64 offset;	   /* ns, to be added to the times of runs */
	__u64 uncertainty; /* ns: it may be so much more or less */
	size_t matched;	   /* runs that have a call */
};

/*
 * runs: whole microseconds, cut. Each that lies between the begin of the first call and the end of the last one must
 * lie in a call of its own; calls may be without a run. Sorts both.
 */
enum merge_verdict merge_match(struct merge_span *runs, size_t run_count, struct merge_span *calls, size_t call_count,
			       struct merge_fit *fit);

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
