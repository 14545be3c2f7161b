/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of devices, from which their processes and tracks in a Chrome trace are made. One object serves all documents
 * of a session: they may be appended to one another, and then a number must mean the same device in all of them.
 */
#ifndef XPT_REPORT_CHROME_DEVICES_H
#define XPT_REPORT_CHROME_DEVICES_H

#include <linux/types.h>

#define CHROME_DEVICES_MAX 1024			       /* kept apart; further ones have one number together */
#define CHROME_DEVICES_OTHERS (CHROME_DEVICES_MAX + 1) /* ... this one */
#define CHROME_LANES_MAX 32			       /* tracks of one queue, for jobs that overlap */

/*
 * Linux gives no process or thread a number beyond 2^22. Viewers take the number of a thread for unique among all
 * processes, and a thread with the number of its process for the main one: so the two ranges are apart.
 */
#define CHROME_DEVICE_PID (1u << 30)
#define CHROME_COUNTERS_PID CHROME_DEVICE_PID /* devices are counted from 1 */
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

struct chrome_devices;

struct chrome_devices *chrome_devices_create(void); /* NULL: no memory */
void chrome_devices_free(struct chrome_devices *devices);
/* From 1 on; a device that is new gets the next one. CHROME_DEVICES_OTHERS: there is no room or memory for more. */
unsigned int chrome_devices_number(struct chrome_devices *devices, const char *driver, const char *device);
/* 0: it has none. */
unsigned int chrome_devices_find(const struct chrome_devices *devices, const char *driver, const char *device);

#endif
