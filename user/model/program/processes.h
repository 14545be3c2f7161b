/* SPDX-License-Identifier: BSD-2-Clause */
/* The traced processes, kept apart where a process identifier is used again. */
#ifndef XPT_MODEL_PROGRAM_PROCESSES_H
#define XPT_MODEL_PROGRAM_PROCESSES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "model/stream/event_dispatch.h"

/* Eviction of exited processes and released programs: in batches, and not too soon. */

#define EVICTION_SETTLE_TIME \
	10000000000ull		   /* ns after the end of a program or process in which its exact totals have come */
#define EVICTION_TIME 100000000ull /* ns until the next try, when there was not enough that could be forgotten */

/* Zero it to begin with. */
struct eviction {
	bool waiting;
	__u64 time;
	size_t gone; /* number of those that were scanned */
};

static inline size_t eviction_batch(size_t keep, size_t most)
{
	const size_t batch = (keep < most ? keep : most) / 8;

	return batch ? batch : 1;
}

static inline bool eviction_due(const struct eviction *eviction, size_t gone, size_t batch, __u64 time)
{
	return !eviction->waiting || gone >= eviction->gone + batch || time - eviction->time >= EVICTION_TIME;
}

static inline void eviction_set(struct eviction *eviction, bool enough, size_t gone, __u64 time)
{
	*eviction = (struct eviction){ .waiting = !enough, .time = time, .gone = gone };
}

static inline bool eviction_settled(__u64 end, __u64 time)
{
	return time > end && time - end >= EVICTION_SETTLE_TIME;
}

#define PROCESS_NAME_MAX 4096 /* bytes kept of a name or command line */

struct cJSON;

#define ANCESTORS_MAX 8

struct ancestor {
	__u32 index; /* sort index of the process, which may be forgotten */
	__u64 time;  /* of the fork */
};

struct process {
	struct model_process view;		  /* name and command are owned here */
	struct map_node node;			  /* by tgid; the newest is found first */
	struct link link;			  /* of processes.live or processes.gone */
	struct link programs;			  /* struct program.of_process */
	struct ancestor ancestors[ANCESTORS_MAX]; /* whose memory it was forked with, the nearest first */
	unsigned int ancestor_count;		  /* 0 also once it runs another file */
	unsigned int orphans;			  /* programs that may yet get the name of their parent */
	__u64 exited;				  /* time; 0: not yet */
	unsigned int counting;			  /* countings that are open: their exact totals are to come */
	bool totalled;				  /* some have come since it has exited, so they all have */
	bool forgotten;				  /* dropped by the next processes_forget */
};

struct processes {
	struct event_dispatch *events;
	struct map by_tgid;
	struct link live; /* oldest first */
	struct link gone; /* exited ones, in the order of that */
	size_t count, exited;
	size_t keep; /* number of exited ones beyond which the oldest are forgotten */
	struct eviction eviction;
	unsigned int seen; /* so far; the next sort index */
	struct process *others;
};

void processes_init(struct processes *processes, struct event_dispatch *events);
void processes_free(struct processes *processes);

/*
 * The process with this tgid that was alive at time; made, with an EVENT_PROCESS, when it was not known. Beyond
 * MODEL_PROCESSES_MAX it is the catch-all process. NULL: no memory.
 */
struct process *processes_get(struct processes *processes, __u32 tgid, __u64 time);
/* The same, but for late descriptions: also finds a known process that has exited. NULL: no memory. */
struct process *processes_get_late(struct processes *processes, __u32 tgid, __u64 time);
/* The newest with this tgid, also one that has exited. NULL: none. */
struct process *processes_find(const struct processes *processes, __u32 tgid);
/* Stands for all that are not kept apart any more. NULL: no memory. */
struct process *processes_others(struct processes *processes);

/* From the JSON of a PROCESS record. -ENOMEM. */
int processes_describe(struct processes *processes, __u32 tgid, __u64 time, const struct cJSON *object);
/* A child begins; name is that of its first thread. NULL: no memory. */
struct process *processes_fork(struct processes *processes, __u32 tgid, __u32 parent, __u64 time, const char *name);
/* The process runs another file from now on. -ENOMEM. */
int processes_exec(struct processes *processes, struct process *process, const char *name);
void processes_exit(struct processes *processes, struct process *process, __u64 time);

/*
 * When more than processes.keep have exited or MODEL_PROCESSES_MAX are known, marks a batch of those that exited first
 * as forgotten. Those without their exact totals yet are only marked in the second case, when there are no others.
 * Returns whether there are any: then the caller takes away everything that refers to them and calls processes_forget.
 */
bool processes_mark(struct processes *processes, __u64 time);
void processes_forget(struct processes *processes);

/* Names of what has a number in a process, such as an address or a handle: bounded, and dropped with their owner. */

struct name {
	struct keyed keyed;
	bool truncated; /* there was more of it */
	bool used;	/* it has been found */
	char text[];
};

struct name_table {
	struct keyed_table table; /* struct name */
	bool refuses;
};

/* Beyond most, a further name is refused, or the oldest makes room. */
void name_table_init(struct name_table *names, size_t most, bool refuses);
static inline void name_table_free(struct name_table *names)
{
	keyed_free(&names->table);
}

/* text[length] need not be terminated; it ends at a 0 byte. A later name for the same key replaces the first. -ENOSPC: refused, -ENOMEM. */
int name_table_add(struct name_table *names, __u64 owner, __u64 a, __u64 b, const char *text, size_t length,
		   bool truncated);
/* NULL: none. It counts as used from here on. Valid until the next name_table_add() or _drop(). */
const struct name *name_table_find(const struct name_table *names, __u64 a, __u64 b);
void name_table_drop(struct name_table *names, __u64 a, __u64 b);
static inline void name_table_drop_owner(struct name_table *names, __u64 owner)
{
	keyed_drop_owner(&names->table, owner);
}

#endif
