/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What threads of traced processes have submitted to devices, as long as calls around it may return: a call is seen when it
 * returns, and its jobs before.
 */
#ifndef XPT_MODEL_DEVICE_SUBMITTERS_H
#define XPT_MODEL_DEVICE_SUBMITTERS_H

#include "model/device/job.h"
#include "base/pool.h"

#define SUBMITTERS_MAX 16384 /* threads followed at once; the one that was seen least makes room */
#define SUBMITS_MAX 65536    /* submitting ioctls; the oldest makes room */

/* Stretches in which ioctls submitted something. */
struct submit {
	struct link link; /* of all, oldest first */
	struct link of_thread;
	struct submitter *submitter;
	__u64 start, end;
};

struct submitter {
	struct map_node node; /* by process and thread */
	struct link link;     /* of all, the one that was seen last at the end */
	struct link jobs;     /* in the order of submission */
	struct link submits;  /* in the order of their ends */
	__u64 missing;	      /* jobs and submits that had to make room */
	__u64 missing_until;  /* when the last of them was submitted */
};

struct submitters {
	struct map by_thread;
	struct link all;
	struct link submits;
	size_t submit_count;
	struct pool pool, submit_pool;
};

void submitters_init(struct submitters *submitters);
void submitters_free(struct submitters *submitters); /* no job may be in it */

/* The thread that is seen now. NULL: nothing of it is known. */
struct submitter *submitters_find(struct submitters *submitters, const struct process *process, __u32 tid);
/* The same, made if it is new; the caller sees that there are no more than SUBMITTERS_MAX. NULL: no memory. */
struct submitter *submitters_get(struct submitters *submitters, const struct process *process, __u32 tid);
/* Forgets the submitter if there is nothing of it. */
void submitter_settle(struct submitters *submitters, struct submitter *submitter);
/* Forgets its submits, and what it misses; its jobs are taken out by those who keep them. */
void submitter_clear(struct submitters *submitters, struct submitter *submitter);

/* job->submitted is set. */
void submitter_add_job(struct submitter *submitter, struct job *job);
/* Does not forget the submitter, even if it was the last. */
void submitter_remove_job(struct job *job);
/* -ENOMEM. */
int submitter_add_submit(struct submitters *submitters, struct submitter *submitter, __u64 start, __u64 end);
/* The submits within a call become one, as every later call has all or none of them. NULL: there is none. */
const struct submit *submitter_merge_submits(struct submitters *submitters, struct submitter *submitter, __u64 start,
					     __u64 end);
/* Those that ended up to time go. */
void submitter_drop_submits(struct submitters *submitters, struct submitter *submitter, __u64 time);
/* Something of it, submitted at time, has to make room: calls around it will miss it. */
void submitter_miss(struct submitter *submitter, __u64 time);

#endif
