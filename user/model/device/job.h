/* SPDX-License-Identifier: BSD-2-Clause */
/* A job of a driver as the model's parts share it, and what an event of a driver tells. */
#ifndef XPT_MODEL_DEVICE_JOB_H
#define XPT_MODEL_DEVICE_JOB_H

#include "base/link.h"
#include "model/device/device_queues.h"
#include "model/device/traced_drivers.h"
#include "model/program/programs.h"
#include "model/operator/operators.h"

#define JOB_PROGRAMS_MAX XPT_DEPTH_MAX /* programs that have a job among theirs: one a call around it */

/* The values of one EVENT record. */
struct driver_telling {
	const struct traced_event *event;
	__u64 time;
	__u32 tgid, tid; /* 0 unless the event is by its thread */
	bool target;	 /* and that is one of a traced process */
	bool in_call;	 /* in a call that is recorded when it returns */
	bool keyed;	 /* the key could be read */
	__u64 key[XPT_EVENT_KEY_MAX];
	__u32 have; /* bit (1 << enum xpt_event_meaning), of the following */
	__u64 context, client, size, count, value, address;
	__s64 status;
	char device[XPT_EVENT_TEXT], engine[XPT_EVENT_TEXT], name[XPT_EVENT_TEXT]; /* "" : not told */
};

/* From which event the engine of a job's queue is. A better one wins, and the first of two equal ones. */
enum engine_source {
	ENGINE_UNKNOWN = 0,
	ENGINE_FROM_QUEUE = 1,
	ENGINE_FROM_RUN = 2,
};

struct claim;
struct job_key;
struct submitter;

/*
 * A job is open until its end is seen or it is given up. Then it waits to be told, if calls around it may still return,
 * and after that until none can.
 */
struct job {
	struct event_job view;
	struct link link;	     /* in jobs.open, jobs.untold or jobs.told */
	struct link of_key;	     /* while it is open */
	struct link of_thread;	     /* while calls around it may return */
	struct job_key *key;	     /* NULL: not open */
	struct submitter *submitter; /* NULL: no call will have it any more */
	struct queue_stay stay;
	struct claim *claims;	 /* who wants to know of its run and end */
	struct process *process; /* of view.process; NULL: none */
	struct program *program; /* of view.program; held while the job is untold */
	struct step *step;	 /* of view.op; NULL: none known, or the job is told */
	__u64 submitted;	 /* when the thread did that; view.queued is when the first event told of it */
	__u64 busy_time;	 /* its share, once it has ended */
	enum engine_source engine_source;
	bool queue_seen, running;
	bool ended, told;
	bool in_operator; /* an operator has it, whether it is known which or not */
	unsigned int program_count;
	unsigned int programs[JOB_PROGRAMS_MAX]; /* ids of those that have it among theirs */
	char name[XPT_EVENT_TEXT];
};

#endif
