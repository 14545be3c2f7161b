/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What evicted records of a window have defined for those that are still there: what numbers mean, which processes,
 * threads, programs and code objects there are, and what they are called. Each is kept once, in its latest form, as
 * long as its process lives, code objects until they are unloaded.
 */
#ifndef XPT_RECORD_CONTEXT_H
#define XPT_RECORD_CONTEXT_H

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "base/core/text.h"
#include "bpf/wire.h"

/* Entries of processes; beyond, the least recently reported are evicted, processes themselves last. */
#define CONTEXT_MAX 65536

/* Code objects among them; beyond, and when there is no room for all entries, the least recently reported are evicted first. */
#define CONTEXT_CODE_MAX 4096

#define CONTEXT_REGION 0xffff /* in place of a runtime: the handle is one of a region */

struct context {
	size_t room;			 /* bytes of entries of processes: beyond, they are evicted as above */
	struct map entries;		 /* by kind, process and number */
	struct map owners;		 /* by process */
	struct link common;		 /* what belongs to no process, in the order of its first report */
	struct link processes;		 /* themselves, in the order of their latest report */
	struct link owned;		 /* what belongs to them, in the same order, but */
	struct link code;		 /* their code objects, in the same order */
	size_t owned_count, owned_bytes; /* of all three */
	size_t code_count;
	size_t bytes;  /* of all entries */
	__u64 dropped; /* entries, for want of room */
};

void context_init(struct context *context, size_t room);
void context_free(struct context *context);

/* Whether a record of this kind defines something for others: context_take() is for those but LOADED, and for TASK. */
bool context_is(const struct xpt_record_header *record);
/* Whether it is about several processes, or none: a change of the budget may have the process that costs most, but is about all. */
bool context_is_common(const struct xpt_record_header *record);
/*
 * Takes the contents of the record; those of the latest time count, in whatever order they come, but a code object's
 * unload comes after its load. -ENOMEM: it is not known.
 */
int context_take(struct context *context, const struct xpt_record_header *record);
/* Whether the record, not a LOADED one, is what is known by now. */
bool context_has(const struct context *context, const struct xpt_record_header *record);
/* The same as context_take() of a LOADED record. */
int context_load(struct context *context, __u16 runtime, const struct xpt_record_text *record);
/* Ends a LOADED record: the handle has been released. */
void context_release(struct context *context, __u32 tgid, __u16 runtime, __u64 handle);

/* Appends all that is known, as records of the time. A code object is written as one that was found then: by no thread, without a stop. */
void context_write(const struct context *context, __u64 time, struct text *text);
/* Only what was known at this time of the programs of a process. */
void context_write_programs(const struct context *context, __u32 tgid, __u64 time, struct text *text);

/* Appends a copy of all entries, from which context_restore() fills a context that is new. -ENOMEM. */
void context_save(const struct context *context, struct text *text);
int context_restore(struct context *context, const struct text *text);

/* ---- a moment that moves on ---- */

/*
 * State as of a moment that moves on: from records, and of programs from their followers. Reports of programs are
 * pending until that moment has come.
 */

/* Followed by a LOADED or TASK record of this number of bytes; 0: the program was released. */
struct past_change {
	__u64 time, handle;
	__u32 tgid;
	__u16 runtime;
	__u16 size;
};

/* Each kind comes nearly in order of time; the two of them do not, as one of them may come a window later. */
enum past_kind { PAST_PROGRAMS, PAST_TASKS, PAST_KINDS };

struct past {
	struct context context;
	struct link waiting[PAST_KINDS]; /* what happened later to programs and processes, in order of time */
	size_t waiting_bytes;
	__u64 added; /* so far */
};

/* As a copy: entries of the context, and changes with their records. Zero it to begin with. */
struct past_copy {
	struct text entries, changes;
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
int past_add(struct past *past, const struct past_change *change, const void *record);
/* The past is now as late as the time. How many things are not known for want of memory. */
unsigned int past_settle(struct past *past, __u64 time);

int past_save(const struct past *past, struct past_copy *copy);	   /* -ENOMEM */
int past_restore(struct past *past, const struct past_copy *copy); /* into one that is new; -ENOMEM */
void past_copy_free(struct past_copy *copy);
/* The LOADED record of the process at this time, from the place *at on, which moves behind it. NULL: none. */
const struct xpt_record_header *past_copy_loaded(const struct past_copy *copy, __u32 tgid, __u64 time, size_t *at);
/* The next LOADED record up to the time. NULL: none. */
const struct xpt_record_header *past_copy_until(const struct past_copy *copy, __u64 time, size_t *at);

#endif
