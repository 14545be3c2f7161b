/* SPDX-License-Identifier: BSD-2-Clause */
/* The programs that are there, by copies of what the model knows of them: its own may go at any time. */
#ifndef XPT_PROFILE_HANDLE_PROGRAM_INDEX_H
#define XPT_PROFILE_HANDLE_PROGRAM_INDEX_H

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "model/stream/event.h"

/* Released programs are kept this long, as their last counts come later, and at most this number. */
#define PROGRAM_INDEX_RELEASED_KEPT 1000000000ull
#define PROGRAM_INDEX_RELEASED_MAX 16384

/* Identity of a program in reports. Never changes: a new name makes a new one. Under the session's lock. */
struct identity {
	size_t references;
	unsigned int id;
	__u32 tgid;
	const char *runtime; /* the model's */
	__u64 handle;
	unsigned int generation;
	bool kernel;
	const char *name, *process; /* in text */
	char text[];
};

struct entry {
	struct map_node by_id;
	struct map_node by_handle; /* the newest of its handle */
	struct link link;	   /* of all that are alive, or of those released */
	struct link of_process;
	struct link members; /* struct member */
	struct identity *identity;
	unsigned int runtime_index;
	__u64 loaded;	    /* 0: not seen */
	__u64 released;	    /* 0: alive */
	__u64 forget;	    /* released: not before */
	__u32 sample_every; /* own rate in the kernel; 0: the one of all */
	__u32 retry_after;  /* calls until it is set again, since retry_calls; 0: the kernel has it */
	__u32 retry_calls;
	bool region;	  /* stands for regions of a name: the kernel records all or none of them */
	bool active;	  /* inferences or counts of it have been seen */
	bool handed_over; /* by_handle is a newer one's */
	/* Of recorded inferences: */
	__u64 recorded, errors;
	__u64 timed;	 /* of them: the end is known */
	double duration; /* ns, sum */
};

struct program_index {
	struct map by_id, by_handle;
	struct map processes; /* struct tenant */
	struct link alive, released;
	size_t alive_count, released_count;
};

void program_index_init(struct program_index *index);
void program_index_free(struct program_index *index); /* no entry has members any more */
struct entry *program_index_find(const struct program_index *index, unsigned int id);
/* NULL: none that is alive. */
struct entry *program_index_older(const struct program_index *index, const struct model_program *program);
struct entry *program_index_add(struct program_index *index, const struct model_program *program); /* NULL: no memory */
/* Takes over names that have changed: 1; 0: none has; -ENOMEM. */
int program_index_rename(struct entry *entry, const char *name, const char *process);
/* It is alive no more; now: the time up to which all is known. */
void program_index_release(struct program_index *index, struct entry *entry, __u64 time, __u64 now);
/* One that may be forgotten by time; NULL: none. */
struct entry *program_index_forgettable(const struct program_index *index, __u64 time);
void program_index_remove(struct program_index *index, struct entry *entry); /* frees it; without members */
/* Any program of the process that is alive; NULL: none. previous NULL: the first. */
struct entry *program_index_of_process(const struct program_index *index, __u32 tgid, const struct entry *previous);

struct identity *identity_get(struct identity *identity);
void identity_put(struct identity *identity); /* NULL is allowed */

#endif
