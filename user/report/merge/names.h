/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of several traces names a process or thread: the same process is in several, under different names. */
#ifndef XPT_REPORT_MERGE_NAMES_H
#define XPT_REPORT_MERGE_NAMES_H

#include "report/merge/event.h"

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
/* When all are there: first[i] inputs win over others, then those with lower numbers. */
void merge_names_settle(struct merge_names *names, const bool *first);
/* What becomes of a metadata event of an input. Not for numbers that are moved: these are nobody else's. */
enum merge_name_fate merge_names_fate(const struct merge_names *names, const struct merge_event *event,
				      unsigned int input);
void merge_names_free(struct merge_names *names);

#endif
