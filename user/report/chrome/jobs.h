/* SPDX-License-Identifier: BSD-2-Clause */
/* The device side of a Chrome trace: a process for each device, a track for each of its queues. */
#ifndef XPT_REPORT_CHROME_JOBS_H
#define XPT_REPORT_CHROME_JOBS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/core/hashmap.h"
#include "model/stream/event.h"
#include "report/chrome/devices.h"

struct chrome_events;

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

void chrome_job_add(struct chrome_events *events, const struct event_job *job);
void chrome_queue_add(struct chrome_events *events, const struct event_queue *event);
void chrome_device_add(struct chrome_events *events, const struct event_device *device);
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
void chrome_jobs_free(struct chrome_jobs *jobs);

#endif
