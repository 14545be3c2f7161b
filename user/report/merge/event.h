/* SPDX-License-Identifier: BSD-2-Clause */
/* One event of a Chrome trace: what merging must know of it, and the event as it is in the merged trace. */
#ifndef XPT_REPORT_MERGE_EVENT_H
#define XPT_REPORT_MERGE_EVENT_H

#include <linux/types.h>

#include "base/core/json.h"
#include "base/core/text.h"

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

#endif
