/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the calls of each thread are nested. Calls are delivered in the order of their ends, inner ones first: what has ended
 * or was made since a call began is inside it. Kept of a thread is what calls around may still need: what the calls that
 * have ended took, launches whose operator has not returned, jobs and submitting ioctls. A call that is nested in no other
 * one settles all of this.
 */
#ifndef XPT_MODEL_DEVICE_CALL_TREE_H
#define XPT_MODEL_DEVICE_CALL_TREE_H

#include "base/core/hashmap.h"
#include "base/core/pool.h"
#include "model/device/jobs.h"
#include "model/operator/operators.h"

#define CALL_THREADS_MAX 16384 /* followed at once; the least recently seen is evicted */
#define LAUNCHES_MAX 65536     /* held at once; the oldest is emitted without its operator, which does not count it */
#define OFF_CPU_MAX 4096       /* of a thread, in calls that have not returned; the older half makes room */
#define SUBMITS_MAX 65536      /* submitting ioctls; the oldest makes room */

/* ns, of a call with all inside it. */
struct call_sums {
	__u64 tracing;	 /* that probes took */
	__u64 covered;	 /* of it, in operators */
	__u64 operators; /* that operators took */
};

/* A stretch in which ioctls submitted something. */
struct submit {
	struct link link; /* of all, oldest first */
	struct link of_thread;
	struct call_thread *thread;
	__u64 start, end;
};

struct call_thread {
	struct keyed keyed;	  /* by process and number */
	struct ended_call *ended; /* in order of their ends, none inside another one */
	size_t ended_count;
	/* What it did not run, in order; those that no call has shown yet. */
	struct off_cpu {
		struct xpt_record_off_cpu record;
		bool emitted;
	} * off_cpu;
	size_t off_cpu_count;
	struct link launches; /* in the order of the calls */
	struct link jobs;     /* in the order of submission */
	struct link submits;  /* in the order of their ends */
	__u64 missing;	      /* jobs and submits that had to make room */
	__u64 missing_until;  /* when the last of them was submitted */
};

struct call_tree {
	struct event_dispatch *events;
	struct jobs *jobs;
	struct keyed_table threads; /* least recently seen first */
	struct link launches;	    /* all that are held, oldest first */
	size_t launch_count;
	struct link submits;
	size_t submit_count;
	bool off_cpu_known; /* it is recorded when threads do not run */
	struct pool launch_pool, submit_pool;
};

void call_tree_init(struct call_tree *tree, struct event_dispatch *events, struct jobs *jobs);
void call_tree_free(struct call_tree *tree); /* before the jobs */

/* The thread that is seen now. NULL: nothing is known of it. */
struct call_thread *call_tree_find(struct call_tree *tree, const struct process *process, __u32 tid);
/* The same, made if it is new. NULL: no memory. */
struct call_thread *call_tree_get(struct call_tree *tree, const struct process *process, __u32 tid);

/*
 * A call, or a region, has ended: sets what the probes of it took, and *operators to the ns that operators inside it took.
 * thread NULL: nothing is known of it. -ENOMEM.
 */
int call_tree_measure(struct call_thread *thread, const struct function *function, struct event_call *call,
		      __u64 *operators);
/*
 * The call, before its own event is emitted: sets call->device, and gives the call, its program (NULL: none) and, where it is
 * an operator's, op (NULL: unknown) the jobs that were submitted in it. An operator has those that no operator inside it has.
 * If activity is not NULL and jobs of the call have not ended, *activity is set to what follows them, for the caller to
 * release. -ENOMEM.
 */
int call_tree_take_jobs(struct call_tree *tree, struct call_thread *thread, struct program *program, struct op *op,
			struct event_call *call, struct activity **activity);
/*
 * The call, after its own event. A launch that is no layer is held until the innermost operator around it has returned, or a
 * call that is nested in no other one: then an EVENT_LAUNCH is emitted. -ENOMEM.
 */
int call_tree_launch(struct call_tree *tree, struct call_thread *thread, struct program *program, struct op *op,
		     const struct event_call *call);
/* After that: when the call is nested in no other one, nothing will return any more that is around what came before. */
void call_tree_close(struct call_tree *tree, struct call_thread *thread, const struct event_call *call);

/* A thread did not run for a while, in a call. -ENOMEM. */
int call_tree_off_cpu(struct call_tree *tree, const struct process *process, const struct xpt_record_off_cpu *record);
/*
 * The call, before its own event: adds to call->states what it was blocked by, and emits what no call inside it has shown, for its
 * program (NULL: none) and op (NULL: it is no operator, or unknown). -ENOMEM.
 */
int call_tree_take_off_cpu(struct call_tree *tree, struct call_thread *thread, struct program *program, struct op *op,
			   struct event_call *call);

/* An ioctl of a thread of a traced process, or an event on it, has submitted something. -ENOMEM. */
int call_tree_submit(struct call_tree *tree, const struct process *process, __u32 tid, __u64 start, __u64 end);
/* The thread has submitted the job at job->submitted, in a call. */
void call_thread_add_job(struct call_thread *thread, struct job *job);
/* The job has to make room: calls around it will miss it. */
void call_thread_miss_job(struct job *job);

/* No call of the process will return any more. Its jobs continue. */
void call_tree_drop_process(struct call_tree *tree, const struct process *process);
/* The recording has ended. */
void call_tree_drop_all(struct call_tree *tree);

#endif
