/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queues of devices: how many jobs wait and run in each, how long it was busy, and what share of that each job has.
 * Of a time in which n jobs are with the device, each has 1/n.
 */
#ifndef XPT_MODEL_DEVICE_DEVICE_QUEUES_H
#define XPT_MODEL_DEVICE_DEVICE_QUEUES_H

#include "base/hashmap.h"
#include "base/link.h"
#include "model/stream/event_dispatch.h"

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
	__u64 undivided;     /* 2^-32 ns that are too few to be shared by those running; goes to the next ones */
	__u64 untold;	     /* less than a ns that jobs had and their share_end did not tell; goes to the next one */
};

struct device_queues {
	struct sinks *sinks;
	struct map by_name;
	struct device_queue **all;
	size_t count, room;
	struct device_queue *others;
};

/* Where a job is. Zero it to begin with. */
struct queue_stay {
	struct device_queue *queue; /* NULL: in none */
	bool running;		    /* with the device; else it waits */
	bool target;		    /* of a traced process; set by queue_stay_claim */
	queue_share since;	    /* of the queue, when it began to run there */
	queue_share share;	    /* from queues in which it ran before */
};

void device_queues_init(struct device_queues *queues, struct sinks *sinks);
void device_queues_free(struct device_queues *queues);

/* driver must live as long as the model. Beyond MODEL_QUEUES_MAX the one that stands for others. NULL: no memory. */
struct device_queue *device_queues_get(struct device_queues *queues, const char *driver, const char *device,
				       const char *engine);
/* NULL: none is known. */
struct device_queue *device_queues_find(const struct device_queues *queues, const char *driver, const char *device,
					const char *engine);

/* The job is in queue from now on, NULL: in none; an EVENT_QUEUE tells what has changed. */
void queue_stay_move(struct device_queues *queues, struct queue_stay *stay, struct device_queue *queue, bool running,
		     __u64 time);
/* The job is known to be of a traced process from now on. */
void queue_stay_claim(struct queue_stay *stay, __u64 time);
/* ns: the share of the job that has just left the queue. */
__u64 queue_stay_share(const struct queue_stay *stay, struct device_queue *queue);

#endif
