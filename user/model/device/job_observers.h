/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who wants to know how a job goes on after the call that it was submitted in has returned: programs, for their sums, and
 * inferences that a wait will end. And what jobs add up to.
 */
#ifndef XPT_MODEL_DEVICE_JOB_OBSERVERS_H
#define XPT_MODEL_DEVICE_JOB_OBSERVERS_H

#include "model/device/job.h"
#include "base/pool.h"

/* What the device does for one call, as far as it is seen. */
struct activity {
	struct model_device_times times; /* done: the last end so far */
	unsigned int references;
};

struct claims {
	struct pool pool, activities;
};

void claims_init(struct claims *claims);
void claims_free(struct claims *claims);

/* With one reference. NULL: no memory. */
struct activity *activity_create(struct claims *claims);
static inline struct activity *activity_hold(struct activity *activity) /* may be NULL, as below */
{
	if (activity)
		activity->references++;
	return activity;
}
void activity_release(struct claims *claims, struct activity *activity);

/* program and activity may be NULL. The job is open, and the activity's times have it as it is now. -ENOMEM. */
int claims_add(struct claims *claims, struct job *job, struct program *program, struct activity *activity);
/* The job runs from now on. */
void claims_run(const struct job *job);
/* The job has ended: all are told, and are its claims no more. */
void claims_end(struct claims *claims, struct job *job);
/* It is given up: nobody is told. */
void claims_drop(struct claims *claims, struct job *job);
/* Programs of processes that are marked as forgotten have no claims any more. */
void claims_forget_processes(struct job *job);

/* Adds a job as it is now; done is the last end so far. */
void device_times_add(struct model_device_times *times, const struct job *job);
/* The times as they are shown: done only when no job is unfinished. */
struct model_device_times device_times_shown(const struct model_device_times *times);
/* The job has ended, and is among the program's. */
void program_job_ended(struct program *program, const struct job *job);
/* The job has ended, and is the operator's. */
void step_job_ended(struct step *step, const struct job *job);

#endif
