/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The jobs of drivers: what events with the same key report, from its queueing to its end, and for which calls it was
 * done.
 *
 * A job is of every recorded call that was open on its thread when it was submitted. Calls are seen when they return,
 * and inner ones first: so jobs of traced processes are kept until no call around them can return any more. That is
 * known when a call returns that is nested in no other, as all that came before is over then.
 */
#ifndef XPT_MODEL_DEVICE_JOBS_H
#define XPT_MODEL_DEVICE_JOBS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "base/core/pool.h"
#include "bpf/wire.h"
#include "model/operator/operators.h"
#include "model/program/programs.h"
#include "model/stream/event_dispatch.h"

/*
 * The drivers, their events and their device nodes that EVENT and IOCTL records refer to, as DRIVER and DRIVER_EVENT
 * records describe them.
 */

struct cJSON;

struct traced_ioctl {
	__u16 number; /* low 16 bits of the command */
	__u8 role;    /* enum xpt_event_role; 0: only its name is known */
	char *name;
};

struct traced_join {
	__u8 driver; /* index */
	__u8 bits;   /* of each part of a key that are compared */
};

struct traced_driver {
	unsigned int index;
	char *name;
	enum xpt_pairing pairing;
	unsigned int bits; /* of each part of a key that are compared within the driver */
	struct traced_join joins[XPT_DRIVER_MAX];
	size_t join_count;
	struct traced_ioctl *ioctls; /* sorted by number */
	size_t ioctl_count;
};

struct traced_field {
	__u8 meaning; /* enum xpt_event_meaning */
	bool text;
	bool is_signed;
	__u16 offset; /* of the value, in bytes behind the record's struct */
};

struct traced_event {
	unsigned int index;
	const struct traced_driver *driver;
	char *name; /* "amdgpu:amdgpu_cs_ioctl" */
	enum xpt_event_role role;
	bool by_thread;
	unsigned int key; /* that many of the fields, the first ones; 0: it belongs to no job */
	unsigned int field_count;
	struct traced_field fields[XPT_EVENT_VALUES_MAX];
	size_t size; /* bytes of a record */
};

struct traced_node {
	const struct traced_driver *driver; /* NULL: never described */
	char *path;
};

/* Zero it to begin with. */
struct traced_drivers {
	struct traced_driver *drivers[XPT_DRIVER_MAX];
	struct traced_event *events[XPT_EVENT_MAX];
	struct traced_node nodes[XPT_NODE_MAX];
	__u8 bits[XPT_DRIVER_MAX][XPT_DRIVER_MAX]; /* of each part of their keys that are compared; 0: they never meet */
};

void traced_drivers_free(struct traced_drivers *drivers);

/*
 * object: JSON as in wire.h. Repeating the same is fine, something else for an index in use is not: records that are held
 * back already rely on it. Only nodes may change: those of the object are added to those known, and replace those of the
 * same index. -EBADMSG, -ENOMEM.
 */
int traced_drivers_add(struct traced_drivers *drivers, __u64 index, const struct cJSON *object);
int traced_drivers_add_event(struct traced_drivers *drivers, __u64 index, const struct cJSON *object);

static inline const struct traced_event *traced_drivers_event(const struct traced_drivers *drivers, unsigned int index)
{
	return index < XPT_EVENT_MAX ? drivers->events[index] : NULL; /* NULL: never described */
}

static inline const struct traced_node *traced_drivers_node(const struct traced_drivers *drivers, unsigned int index)
{
	return index < XPT_NODE_MAX && drivers->nodes[index].driver ? &drivers->nodes[index] : NULL;
}

/* NULL: the description has no name for it. */
const struct traced_ioctl *traced_ioctl_find(const struct traced_driver *driver, __u32 command);

/*
 * The queues of devices: how many jobs wait and run in each, how long it was busy, and what share of that each job has.
 * Of a time in which n jobs are with the device, each has 1/n.
 */

/* A share of a time in 2^-32 ns. */
typedef unsigned __int128 queue_share;

struct device_queue {
	struct model_queue view; /* device and engine are owned here */
	struct map_node node;	 /* by the three names */
	bool others;		 /* stands for those that are not kept apart */
	bool seen;		 /* view.first is right */
	unsigned int waiting, running, running_targets;
	__u64 clock;	     /* what follows is right at this time */
	queue_share each;    /* of a job that had been with the device from the beginning */
	queue_share targets; /* of all jobs of traced processes together */
	bool unordered;	     /* a job ended here after a later one of its timeline */
	__u64 undivided;  /* 2^-32 ns that are too few to be shared by those running; carried over to the next ones */
	__u64 unreported; /* less than a ns that jobs had and their share_end lacked; carried over to the next one */
};

/* What one process has of a queue, as of the queue's clock when it was settled. */
struct queue_user {
	struct keyed keyed; /* first; by the queue's id and the process; the one used last is the youngest */
	struct device_queue *queue;
	__u32 tgid;
	unsigned int waiting, running; /* jobs */
	__u64 clock;
	queue_share since; /* of the queue */
	queue_share share;
	__u64 queue_time, jobs;
};

struct device_queues {
	struct event_dispatch *events;
	struct keyed_table users;
	struct map by_name;
	struct device_queue **all;
	size_t count;
	struct device_queue *others;
};

/* Where a job is. Zero it to begin with. */
struct queue_stay {
	struct device_queue *queue;  /* NULL: in none */
	bool running;		     /* with the device; else it waits */
	bool target;		     /* of a traced process; set by queue_stay_claim */
	__u32 tgid;		     /* set by queue_stay_submit */
	struct queue_user *user;     /* of the queue; NULL: in none, or no memory for it */
	queue_share since;	     /* of the queue, when it began to run there */
	queue_share share;	     /* from queues in which it ran before */
	struct device_queue *passed; /* that it has left, as it has probably ended; NULL: none */
};

void device_queues_init(struct device_queues *queues, struct event_dispatch *events);
void device_queues_free(struct device_queues *queues);

/* driver must live as long as the model. Beyond MODEL_QUEUES_MAX the catch-all queue. NULL: no memory. */
struct device_queue *device_queues_get(struct device_queues *queues, const char *driver, const char *device,
				       const char *engine);
/* NULL: none is known. */
struct device_queue *device_queues_find(const struct device_queues *queues, const char *driver, const char *device,
					const char *engine);

/* The job is in queue from now on, NULL: in none; an EVENT_QUEUE reports what has changed. */
void queue_stay_move(struct device_queues *queues, struct queue_stay *stay, struct device_queue *queue, bool running,
		     __u64 time);
/* The job is known to be of this process from now on. */
void queue_stay_submit(struct device_queues *queues, struct queue_stay *stay, __u32 tgid, __u64 time);
/* The job, which is in a queue, has ended by now: a later one of its timeline has. Its end may still be seen. */
void queue_stay_pass(struct device_queues *queues, struct queue_stay *stay, __u64 time);
/* The job, which has been passed, has not ended: it waits again in the queue that it was in. */
void queue_stay_return(struct device_queues *queues, struct queue_stay *stay, __u64 time);
/* The job, which is in a queue or has been passed there, has ended. */
void queue_stay_end(struct device_queues *queues, struct queue_stay *stay, __u64 time);
/* Everything up to time is known; time may lie behind the queue's latest event. *use lacks process. */
void queue_user_view(const struct queue_user *user, __u64 time, struct model_queue_use *use);
/* The job is known to be of a traced process from now on. */
void queue_stay_claim(struct queue_stay *stay, __u64 time);
/* ns: the share of the job that has just left the queue. */
__u64 queue_stay_share(const struct queue_stay *stay, struct device_queue *queue);

/* A job of a driver as the model's parts share it, and the values of a driver's event. */

#define JOB_PROGRAMS_MAX XPT_DEPTH_MAX /* programs that have a job among theirs: one a call around it */

/* The values of one EVENT record. */
struct driver_event_values {
	const struct traced_event *event;
	__u64 time;
	__u32 tgid, tid; /* 0 unless the event is by its thread */
	bool target;	 /* and that is one of a traced process */
	bool in_call;	 /* in a call that is recorded when it returns */
	bool keyed;	 /* the key could be read */
	__u64 key[XPT_EVENT_KEY_MAX];
	__u32 have; /* bit (1 << enum xpt_event_meaning), of the following */
	__u64 context, client, size, count, value, address, timeline;
	__s64 status;
	char device[XPT_EVENT_TEXT], engine[XPT_EVENT_TEXT], name[XPT_EVENT_TEXT]; /* "" : unknown */
};

/* From which event the engine of a job's queue is. A better one wins, and the first of two equal ones. */
enum engine_source {
	ENGINE_UNKNOWN = 0,
	ENGINE_FROM_QUEUE = 1,
	ENGINE_FROM_RUN = 2,
};

struct job_observer;
struct job_key;
struct job_group;
struct call_thread;
struct call_tree;

/*
 * A job is open until its end is seen or it is given up. Then it waits to be emitted, if calls around it may still
 * return, and is kept after that until none can.
 */
struct job {
	struct event_job view;
	struct link link;	    /* in jobs.open, jobs.expiring, jobs.unreported or jobs.emitted */
	struct link of_key;	    /* while it is open */
	struct link of_timeline;    /* while it is open and not passed */
	struct link of_client;	    /* while it is open and its process lives */
	struct link of_thread;	    /* while calls around it may return */
	struct job_key *key;	    /* NULL: not open */
	struct job_group *timeline; /* NULL: none known, or not in of_timeline */
	struct job_group *client;   /* that of view.tgid; NULL: none known, or not in of_client */
	struct call_thread *thread; /* NULL: no call will have it any more */
	struct queue_stay stay;
	struct job_observer *observers; /* who wants to know of its run and end */
	struct process *process;	/* of view.process; NULL: none */
	struct program *program;	/* of view.program; held until the job is emitted */
	struct op *op;			/* of view.op; NULL: none known, or the job is emitted */
	__u64 submitted;		/* when the thread did that; view.queued is the time of the first event */
	__u64 busy_time;		/* its share, once it has ended */
	enum engine_source engine_source;
	bool queue_seen, running;
	bool ended, emitted;
	bool orphan;	  /* its process has ended: it may have been dropped */
	bool in_operator; /* an operator has it, whether it is known which or not */
	unsigned int program_count;
	unsigned int programs[JOB_PROGRAMS_MAX]; /* ids of those that have it among theirs */
	char name[XPT_EVENT_TEXT];
};

/*
 * Open jobs by key. Within a driver the low bits of each part that it defines are compared, across drivers those of
 * their join; jobs of drivers without a join are never the same.
 */

#define JOB_SOURCES_MAX 6 /* events that report the same of one job; further ones are taken for repeats */

/* Jobs with one key, in the order in which they began. */
struct job_key {
	struct map_node node;
	struct link jobs;
	const struct traced_driver *driver;
	unsigned int parts;
	__u64 part[XPT_EVENT_KEY_MAX];
	__u64 items; /* that have ended, of jobs that have not: of those in order */
	unsigned int source_count;
	struct {
		const struct traced_event *event;
		struct job *next; /* the first that it has not reported; NULL: it has reported all */
	} sources[JOB_SOURCES_MAX];
};

struct job_keys {
	const struct traced_drivers *drivers;
	struct map map;
	struct pool pool;
};

void job_keys_init(struct job_keys *keys, const struct traced_drivers *drivers);
void job_keys_free(struct job_keys *keys); /* no job may be in it */

/* NULL: no job has this key. */
struct job_key *job_keys_find(struct job_keys *keys, const struct driver_event_values *values);
/* The job is the newest with its key; where jobs are in order, it comes behind those that have it. -ENOMEM. */
int job_keys_add(struct job_keys *keys, const struct driver_event_values *values, struct job *job);
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
 * The first job that this event, which reports jobs as queued or running, has not reported. NULL: it has reported all.
 * A job that runs and was not seen queued is passed over by queueing events, unless keys are unique: it was queued
 * before.
 */
struct job *job_key_next(struct job_key *key, const struct traced_event *event);
void job_key_advance(struct job_key *key, const struct traced_event *event,
		     struct job *job); /* it has reported it now */

/* Open jobs with something in common, in the order in which that was seen: a timeline, or the process that has queued them. */

struct job_group {
	struct map_node node;
	struct link jobs;
};

struct job_groups {
	struct map map;
	struct pool pool;
};

void job_groups_init(struct job_groups *groups);
void job_groups_free(struct job_groups *groups); /* no job may be in it */
/* NULL: there is none. */
struct job_group *job_groups_find(const struct job_groups *groups, __u64 kind, __u64 value);
/* The job's link comes last in the group, which *group becomes. -ENOMEM. */
int job_groups_enter(struct job_groups *groups, __u64 kind, __u64 value, struct job_group **group, struct link *link);
/* *group may be NULL, and is afterwards; the last job frees it. */
void job_groups_leave(struct job_groups *groups, struct job_group **group, struct link *link);

/*
 * Observers of a job after the call that it was submitted in has returned: programs, for their sums, and inferences
 * that a wait will end. And the sums of jobs.
 */

/* What the device does for one call, as far as it is seen. */
struct activity {
	struct model_device_times times; /* done: the last end so far */
	unsigned int references;
};

struct job_observers {
	struct pool pool, activities;
};

/* With one reference. NULL: no memory. */
struct activity *activity_create(struct job_observers *observers);
static inline struct activity *activity_hold(struct activity *activity) /* may be NULL, as below */
{
	if (activity)
		activity->references++;
	return activity;
}
void activity_release(struct job_observers *observers, struct activity *activity);

/* Adds a job as it is now; done is the last end so far. */
void device_times_add(struct model_device_times *times, const struct job *job);
/* The times as they are shown: done only when no job is unfinished. */
struct model_device_times device_times_shown(const struct model_device_times *times);

/*
 * Grace period, ns. After a job's end: it is emitted when calls around it have returned, which some never do. After a job
 * was passed by the end of a later one of its timeline, or its process has ended: until then its own end may be seen, else it
 * is lost.
 */
#define JOB_GRACE 60000000000ull

struct jobs {
	struct event_dispatch *events;
	struct processes *processes;
	struct device_queues queues;
	struct job_keys keys;
	struct job_observers observers;
	struct call_tree *tree;
	struct job_groups groups; /* timelines by driver and value, clients by tgid */
	struct pool pool;
	struct link open;	/* oldest first */
	struct link expiring;	/* open, but passed or orphans, since view.time; in the order of that */
	struct link unreported; /* ended or given up, calls may return; in the order of that */
	struct link emitted;	/* the same, after the grace */
	size_t count;
	__u64 next_id;
};

void jobs_init(struct jobs *jobs, struct event_dispatch *events, struct processes *processes,
	       const struct traced_drivers *drivers, struct call_tree *tree);
void jobs_free(struct jobs *jobs);

/* Events of drivers. -ENOMEM. */
int jobs_queue(struct jobs *jobs, const struct driver_event_values *values);
int jobs_run(struct jobs *jobs, const struct driver_event_values *values);
int jobs_done(struct jobs *jobs, const struct driver_event_values *values);
/* The job that has failed; it continues until its end is reported. NULL: unknown. */
struct job *jobs_error(struct jobs *jobs, const struct driver_event_values *values);
/* The job was submitted in the call, which runs the program (NULL: none) and is followed by the activity (NULL: not). -ENOMEM. */
int job_join_call(struct jobs *jobs, struct job *job, struct program *program, const struct event_call *call,
		  struct activity *activity);
/* The job was submitted in an operator (NULL: unknown which); only the first counts. */
void job_join_operator(struct job *job, struct op *op);
/*
 * The process has ended, and no one may report the end of its jobs. Those that wait leave their queues, until they are seen to run
 * after all; those that run stay: a device ends what it has begun, as a rule.
 */
void jobs_orphan(struct jobs *jobs, __u32 tgid, __u64 time);
/* Drops references to processes that are marked as forgotten, and to their programs. */
void jobs_forget_processes(struct jobs *jobs);

/* No call around the job will return any more. It is emitted if it is over, and may be freed. */
void jobs_close(struct jobs *jobs, struct job *job);
/* Nothing older than time will come: emits jobs after their grace period. */
void jobs_settle(struct jobs *jobs, __u64 time);
/* The recording has ended: what is open is given up. All is emitted when the call tree is dropped. */
void jobs_drop_all(struct jobs *jobs, __u64 time);

#endif
