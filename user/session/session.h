/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a profiling session, shared by session.c, deliveries.c and handles.c. */
#ifndef XPT_SESSION_SESSION_H
#define XPT_SESSION_SESSION_H

#include <pthread.h>
#include <xputrace/session.h>

#include "model/core/model.h"
#include "profile/profiling.h"
#include "session/collector.h"

/* A profiling handle as its user has it: where its reports go. */
struct subscriber {
	struct xpt_session *session;
	struct subscriber *next; /* of the session */
	struct handle *handle;	 /* NULL: destroyed, from its own callback */
	xpt_profile_report_fn callback;
	void *context;
	unsigned int waiting; /* reports in the queue, and the one that is being delivered */
	bool delivering;
};

/* A report that waits for its callback. */
struct delivery {
	struct delivery *next;
	struct subscriber *subscriber;
	struct report *report;
};

/*
 * One lock for everything but the collector's own waiting, in which it looks at mappings: what touches its processes is
 * the collecting thread's alone. That thread holds the lock while it works, the callback thread lets go of it during a
 * callback.
 */
struct xpt_session {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* reports delivered, runs ended, targets over; broadcast */
	pthread_cond_t queued;	/* for the callback thread */
	struct collector *collector;
	struct model *model;
	struct profiling *profiling;
	struct recording_info info;				 /* strings owned */
	struct xpt_report_counter counters[XPT_SAMPLE_COUNTERS]; /* strings of the collector's */
	size_t counter_count;

	pthread_t collecting, calling_back;
	bool has_collecting, has_calling_back;
	bool starting, started, ending;
	bool over;	 /* all targets have ended, and everything of them has been delivered to the handles */
	int error;	 /* the collecting thread has given up */
	int interrupted; /* set from anywhere */
	__u64 over_at;	 /* when the targets were found to have ended; 0: not yet */
	__u64 read_at;	 /* of the latest reading of the counts */
	__u64 seen;	 /* time of the latest event */

	struct subscriber *subscribers;
	struct delivery *first, **last; /* in the order in which they were made */
	size_t waiting;
	size_t waiting_bytes;
};

/* deliveries.c: the callback thread and its queue. All but the thread itself are called with the lock held. */
void *deliveries_run(void *context);						  /* context: the session */
void deliveries_add(void *context, struct handle *handle, struct report *report); /* as profiling_options.deliver */
bool deliveries_is_callback(const struct xpt_session *session);			  /* is this the callback thread? */
struct subscriber *subscriber_add(struct xpt_session *session, struct handle *handle, xpt_profile_report_fn callback,
				  void *context);
/* Its handle is freed, its reports too; waits for a callback that is under way, unless it is the caller. */
void subscriber_remove(struct subscriber *subscriber);
/* session.c; with the lock held. */
void session_read_counts(struct xpt_session *session); /* tells the handles what the kernel has counted up to now */
/* Waits for a change until a time of CLOCK_MONOTONIC, ~0: for ever. False: the time has come. */
bool session_wait_change(struct xpt_session *session, __u64 until);
__s64 session_clock_offset(void); /* CLOCK_REALTIME less CLOCK_MONOTONIC */

#endif
