/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the records that have left a window have said about those that are still there: what numbers mean, which processes,
 * threads, programs and code objects there are, and what they are called. Each is kept once, in its latest form, as long as its
 * process lives, code objects until they are unloaded.
 */
#ifndef XPT_RECORD_CONTEXT_H
#define XPT_RECORD_CONTEXT_H

#include "base/hashmap.h"
#include "base/link.h"
#include "base/text.h"
#include "bpf/wire.h"

/* Entries of processes; beyond, those that were told longest ago go, what processes themselves are last. */
#define CONTEXT_MAX 65536

/* Code objects among them; beyond, and when there is no room for all entries, those that were told longest ago go first. */
#define CONTEXT_CODE_MAX 4096

#define CONTEXT_REGION 0xffff /* in place of a runtime: the handle is one of a region */

struct context {
	size_t room;			 /* bytes of entries of processes: beyond, they go as above */
	struct map entries;		 /* by kind, process and number */
	struct map owners;		 /* by process */
	struct link common;		 /* what belongs to no process, in the order in which it was told first */
	struct link processes;		 /* themselves, in the order in which it was told last */
	struct link owned;		 /* what belongs to them, in the same order, but */
	struct link code;		 /* their code objects, in the same order */
	size_t owned_count, owned_bytes; /* of all three */
	size_t code_count;
	size_t bytes;  /* of all entries */
	__u64 dropped; /* entries, for want of room */
};

void context_init(struct context *context, size_t room);
void context_free(struct context *context);

/* Whether a record of this kind says something about others: context_take() is for those but LOADED, and for TASK. */
bool context_is(const struct xpt_record_header *record);
/*
 * Takes what the record says; what is told of the latest time counts, in whatever order it comes, but a code object's unload comes
 * after its load. -ENOMEM: it is not known.
 */
int context_take(struct context *context, const struct xpt_record_header *record);
/* The same of a LOADED record. */
int context_load(struct context *context, __u16 runtime, const struct xpt_record_text *record);
/* What it has told is over: the handle has been released. */
void context_release(struct context *context, __u32 tgid, __u16 runtime, __u64 handle);

/* Appends all that is known, as records of the time. A code object is told as one that was found then: by no thread, without a stop. */
void context_write(const struct context *context, __u64 time, struct text *text);
/* Only what was known at this time of the programs of a process. */
void context_write_programs(const struct context *context, __u32 tgid, __u64 time, struct text *text);

/* Appends a copy of all entries, from which context_restore() fills a context that is new. -ENOMEM. */
void context_save(const struct context *context, struct text *text);
int context_restore(struct context *context, const struct text *text);

#endif
