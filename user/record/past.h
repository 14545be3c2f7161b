/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State as of a moment that moves on: from records, and of programs from their followers. Reports of programs are
 * pending until that moment has come.
 */
#ifndef XPT_RECORD_PAST_H
#define XPT_RECORD_PAST_H

#include "record/context.h"

/* Followed by a LOADED or TASK record of so many bytes; 0: the program was released. */
struct told {
	__u64 time, handle;
	__u32 tgid;
	__u16 runtime;
	__u16 size;
};

struct past {
	struct context context;
	struct link waiting; /* what happened later to programs and processes, in order of time */
	size_t waiting_bytes;
};

/* As a copy: entries of the context, and struct told with their records. Zero it to begin with. */
struct past_copy {
	struct text entries, told;
};

void past_init(struct past *past, size_t room); /* as context_init */
void past_free(struct past *past);

/* Whether the record belongs here: it defines something for others. */
static inline bool past_is(const struct xpt_record_header *record)
{
	return record->kind == XPT_RECORD_TASK || context_is(record);
}

/* Such a record, in whatever order they come. How many things are not known for want of memory. */
unsigned int past_take(struct past *past, const struct xpt_record_header *record);
/* Keeps a report of a program until the past is as late as that. The record is copied. -ENOMEM. */
int past_tell(struct past *past, const struct told *told, const void *record);
/* The past is now as late as the time. How many things are not known for want of memory. */
unsigned int past_settle(struct past *past, __u64 time);

int past_save(const struct past *past, struct past_copy *copy);	   /* -ENOMEM */
int past_restore(struct past *past, const struct past_copy *copy); /* into one that is new; -ENOMEM */
void past_copy_free(struct past_copy *copy);
/* The LOADED record of the process at this time, from the place *at on, which moves behind it. NULL: none. */
const struct xpt_record_header *past_copy_told(const struct past_copy *copy, __u32 tgid, __u64 time, size_t *at);
/* The next LOADED record up to the time. NULL: none. */
const struct xpt_record_header *past_copy_until(const struct past_copy *copy, __u64 time, size_t *at);

#endif
