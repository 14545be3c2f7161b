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
/*
 * Takes the contents of the record; those of the latest time count, in whatever order they come, but a code object's
 * unload comes after its load. -ENOMEM: it is not known.
 */
int context_take(struct context *context, const struct xpt_record_header *record);
/* The same of a LOADED record. */
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

#endif
