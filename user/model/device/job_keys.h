/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open jobs by key. Within a driver the low bits of each part are compared that it says, across drivers those that their
 * join says, and drivers without a join never meet.
 */
#ifndef XPT_MODEL_DEVICE_JOB_KEYS_H
#define XPT_MODEL_DEVICE_JOB_KEYS_H

#include "model/device/job.h"
#include "base/pool.h"

#define JOB_TELLERS_MAX 6 /* events that tell the same of one job; further ones count as telling what is known */

/* Jobs with one key, in the order in which they began. */
struct job_key {
	struct map_node node;
	struct link link; /* of all */
	struct link jobs;
	const struct traced_driver *driver;
	unsigned int parts;
	__u64 part[XPT_EVENT_KEY_MAX];
	__u64 items; /* that have ended, of jobs that have not: of those in order */
	unsigned int teller_count;
	struct {
		const struct traced_event *event;
		struct job *next; /* the first that it has not told of; NULL: it has told of all */
	} tellers[JOB_TELLERS_MAX];
};

struct job_keys {
	const struct traced_drivers *drivers;
	struct map map;
	struct link all;
	struct pool pool;
	unsigned int families; /* drivers->families that the map was made with */
};

void job_keys_init(struct job_keys *keys, const struct traced_drivers *drivers);
void job_keys_free(struct job_keys *keys); /* no job may be in it */

/* NULL: no job has this key. */
struct job_key *job_keys_find(struct job_keys *keys, const struct driver_telling *telling);
/* The job is the newest with its key; where jobs are in order, it comes behind those that have it. -ENOMEM. */
int job_keys_add(struct job_keys *keys, const struct driver_telling *telling, struct job *job);
/* Takes out a job that is open. */
void job_keys_remove(struct job_keys *keys, struct job *job);

static inline struct job *job_key_first(const struct job_key *key)
{
	return container_of(key->jobs.next, struct job, of_key);
}

static inline struct job *job_key_last(const struct job_key *key)
{
	return container_of(key->jobs.previous, struct job, of_key);
}

/*
 * The first job that this event, which tells that jobs were queued or run, has not told of. NULL: it has told of all. That
 * a job was queued is not told of one that runs and whose queueing was not seen, unless keys are unique: it was before.
 */
struct job *job_key_untold(struct job_key *key, const struct traced_event *event);
void job_key_tell(struct job_key *key, const struct traced_event *event, struct job *job); /* it has told of it now */

#endif
