/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The jobs of drivers: what events with the same key tell of, from its queueing to its end, and for which calls it was
 * done.
 *
 * A job is of every recorded call that was open on its thread when it was submitted. Calls are seen when they return, and
 * inner ones first: so jobs of traced processes are kept until no call around them can return any more. That is known when a
 * call returns that is nested in no other, as all that came before is over then.
 */
#ifndef XPT_MODEL_DEVICE_JOBS_H
#define XPT_MODEL_DEVICE_JOBS_H

#include "model/device/job_observers.h"
#include "model/device/job_keys.h"
#include "model/device/submitters.h"

/*
 * So long is waited, after a job's end, for calls around it to return before it is told, in ns. There is one; but a call may
 * also be left without returning.
 */
#define JOB_GRACE 60000000000ull

struct jobs {
	struct sinks *sinks;
	struct processes *processes;
	struct device_queues queues;
	struct job_keys keys;
	struct claims claims;
	struct submitters submitters;
	struct pool pool;
	struct link open;   /* oldest first */
	struct link untold; /* ended or given up, calls may return; in the order of that */
	struct link told;   /* the same, after the grace */
	size_t count;
	__u64 next_id;
};

void jobs_init(struct jobs *jobs, struct sinks *sinks, struct processes *processes,
	       const struct traced_drivers *drivers);
void jobs_free(struct jobs *jobs);

/* What events tell. -ENOMEM. */
int jobs_queue(struct jobs *jobs, const struct driver_telling *telling);
int jobs_run(struct jobs *jobs, const struct driver_telling *telling);
int jobs_done(struct jobs *jobs, const struct driver_telling *telling);
/* The job that has failed; it goes on until its end is told. NULL: unknown. */
struct job *jobs_error(struct jobs *jobs, const struct driver_telling *telling);
/* An ioctl of a thread of a traced process, or an event on it, has submitted something. -ENOMEM. */
int jobs_submit(struct jobs *jobs, const struct process *process, __u32 tid, __u64 start, __u64 end);

/*
 * A call, before its own event is told: sets call->device. program is the one that it runs, NULL: none. If activity is not
 * NULL and jobs of the call have not ended, *activity is set to what follows them, for the caller to release. -ENOMEM.
 */
int jobs_call(struct jobs *jobs, const struct process *process, struct program *program, struct event_call *call,
	      struct activity **activity);
/* The same call if it is an operator's: what was submitted in it and in none inside is the step's (NULL: unknown). */
void jobs_operator(struct jobs *jobs, const struct process *process, struct step *step, const struct event_call *call);
/* The same call, afterwards: tells of jobs that no call is waited for any more. */
void jobs_call_close(struct jobs *jobs, const struct process *process, const struct event_call *call);
/* No call of the process will return any more. Its jobs go on. */
void jobs_drop_process(struct jobs *jobs, const struct process *process);
/* Lets go of processes that are marked as forgotten, and of their programs. */
void jobs_forget_processes(struct jobs *jobs);

/* No call around the job will return any more. It is told if it is over, and may be gone afterwards. */
void jobs_close(struct jobs *jobs, struct job *job);
/* The submitter of this thread, made if it is new. NULL: no memory. */
struct submitter *jobs_submitter(struct jobs *jobs, const struct process *process, __u32 tid);
/* Nothing older than time will come: tells of jobs whose grace is over. */
void jobs_settle(struct jobs *jobs, __u64 time);
/* The recording has ended: what is open is given up, all is told. */
void jobs_drop_all(struct jobs *jobs, __u64 time);

#endif
