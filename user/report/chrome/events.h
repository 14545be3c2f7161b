/* SPDX-License-Identifier: BSD-2-Clause */
/* Chrome traces as text: events of the model as trace events, and the metadata. No files. */
#ifndef XPT_REPORT_CHROME_EVENTS_H
#define XPT_REPORT_CHROME_EVENTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/core/hashmap.h"
#include "base/core/text.h"
#include "model/core/model.h"
#include "model/stats/statistics.h"
#include "record/recording.h"

#define CHROME_SCHEMA_VERSION 1 /* of SCHEMA.md */

/* ---- numbers of processes and threads ---- */

#define CHROME_DEVICES_MAX 1024			       /* kept apart; further ones have one number together */
#define CHROME_DEVICES_OTHERS (CHROME_DEVICES_MAX + 1) /* ... this one */
#define CHROME_LANES_MAX 32			       /* tracks of one queue, for jobs that overlap */

/*
 * Linux gives no process or thread a number beyond 2^22. Viewers take the number of a thread for unique among all
 * processes, and a thread with the number of its process for the main one: so the two ranges are apart.
 */
#define CHROME_DEVICE_PID (1u << 30)
#define CHROME_COUNTERS_PID CHROME_DEVICE_PID /* devices are counted from 1 */
#define CHROME_BUDGET_PID (CHROME_DEVICE_PID + CHROME_DEVICES_OTHERS + 1)
#define CHROME_QUEUE_TID (CHROME_DEVICE_PID + (1u << 20))

static inline __u32 chrome_device_pid(unsigned int number)
{
	return CHROME_DEVICE_PID + number;
}

/* queue: id in the model; lane: from 0. */
static inline __u32 chrome_queue_tid(unsigned int queue, unsigned int lane)
{
	return CHROME_QUEUE_TID + queue * CHROME_LANES_MAX + lane;
}

/*
 * Numbers of devices, from which their processes and tracks are made. One object serves all documents of a session:
 * they may be appended to one another, and then a number must mean the same device in all of them.
 */
struct chrome_devices;

struct chrome_devices *chrome_devices_create(void); /* NULL: no memory */
void chrome_devices_free(struct chrome_devices *devices);
/* From 1 on; a device that is new gets the next one. CHROME_DEVICES_OTHERS: there is no room or memory for more. */
unsigned int chrome_devices_number(struct chrome_devices *devices, const char *driver, const char *device);
/* 0: it has none. */
unsigned int chrome_devices_find(const struct chrome_devices *devices, const char *driver, const char *device);

/* ---- events ---- */

/* What a document knows of queues and devices; begins as zeros but for devices. */
struct chrome_jobs {
	struct chrome_devices *devices;	       /* not owned; NULL: none is shown */
	struct map queues;		       /* struct chrome_queue, by the id of the model's queue */
	struct chrome_queue *newest;	       /* of them all; NULL: none */
	struct chrome_queue *last;	       /* used last; NULL: none */
	size_t spans;			       /* budget of the lanes */
	size_t bytes;			       /* of queues */
	bool shown[CHROME_DEVICES_OTHERS + 1]; /* by number of a device: its name has been written */
};

/* What is the same in every call of a function, escaped once. */
struct chrome_function {
	const struct model_function *function;
	struct text text;
};

/* Begins as zeros but for text and jobs.devices. */
struct chrome_events {
	struct text *text; /* of the owner, who empties it: events that have not been taken yet */
	bool any;	   /* the next event is not the first one: it follows a comma */
	__u32 first_tgid;  /* first process: gives global instants a place that exists */
	__u64 wait_count;  /* makes the identifiers of waits */
	bool counters;	   /* the process of the counters' tracks has been named */
	bool budget;	   /* ... and that of changes to keep the budget */
	struct chrome_function functions[XPT_SPEC_MAX]; /* by index of the function */
	struct chrome_jobs jobs;			/* the owner sets its devices, or nothing of them is shown */
};

/* Appends what the event becomes: nothing, one trace event or several. Fails only through the text's error. */
void chrome_events_add(struct chrome_events *events, const struct event *event);
/* Frees what events holds, neither events nor its text. */
void chrome_events_free(struct chrome_events *events);

/* Whether a job or load of the queue is in the document. */
bool chrome_jobs_have_queue(const struct chrome_jobs *jobs, unsigned int queue);
/* ... or anything of the device. */
bool chrome_jobs_have_device(const struct chrome_jobs *jobs, const char *driver, const char *device);
/* The last output was dropped: names will be written once more before they are next used. */
void chrome_jobs_forget_names(struct chrome_jobs *jobs);
/* Shows the load that the queues have now; more may follow. */
void chrome_jobs_settle(struct chrome_events *events);
/* What has been held back of the queues' load, to the last. */
void chrome_jobs_end(struct chrome_events *events);
size_t chrome_jobs_bytes(const struct chrome_jobs *jobs); /* memory that it takes */

/* ---- metadata ---- */

/* "host":...,"clock":{...}: members of the object that was begun last. */
void chrome_metadata_origin(struct text *text, const struct recording_info *info);
/* The arguments of a change, as members of the object that was begun last. */
void chrome_budget_change(struct text *text, const struct model_budget_change *change);
/* "budget" of the END record and "budget_changes", as members; nothing where there was no budget. */
void chrome_metadata_budget(struct text *text, const struct model *model);
/* Times as a member; NULL: there is none. sum: with their sum; deviation: name of the standard deviation. */
void chrome_metadata_statistics(struct text *text, const char *name, const struct statistics *statistics, bool sum,
				const char *deviation);
/* What threads did, as the member "states". */
void chrome_metadata_states(struct text *text, const struct model_states *states);
/*
 * The member "metadata" of a finished trace. devices: those that have a place in it. output_error: 0, or the negative
 * errno for which events are missing in the file; then it is marked as incomplete.
 */
void chrome_metadata_totals(struct text *text, const struct recording_info *info, const struct model *model,
			    const struct chrome_devices *devices, int output_error);

#endif
