/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only collector: it has the targets, the probes and a thread, and passes what comes out of the rings to its consumers. Those
 * are recordings, captures of code objects, windows of continuous profiling, and the profiler of profiles and streams.
 */
#ifndef XPT_SESSION_CORE_SESSION_H
#define XPT_SESSION_CORE_SESSION_H

#include <pthread.h>
#include <xputrace/session.h>

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "model/core/model.h"
#include "profile/handle/profiling.h"
#include "session/collect/collector.h"

/* ---- selection.c ---- */

/* The samples of one consumer, where the kernel records more for others: what it gets is as if it were alone. */
#define SELECTION_CALL_MAX 256 /* bytes of a CALL record */

struct selection {
	const struct registry *registry;
	__u32 every;	     /* of each program one inference in so many; 0 or 1: all */
	struct map programs; /* struct left_out, by key */
	struct link all;     /* the same */
	__u64 calls;	     /* left out, in all */
	__u64 copy[SELECTION_CALL_MAX / sizeof(__u64)];
};

void selection_init(struct selection *selection, const struct registry *registry, __u32 every);
/* Passes on what the consumer gets of a record, and TOTAL records that were kept. */
void selection_pass(struct selection *selection, const struct xpt_record_header *header, record_fn record,
		    void *context);
void selection_flush(struct selection *selection, record_fn record, void *context); /* nothing comes any more */
void selection_free(struct selection *selection);				    /* it may be zeroed */

/* ---- session.c ---- */

/*
 * Its functions are called with the session's lock held, on the collecting thread or the thread that starts or stops
 * the session. Any but record may be NULL.
 */
struct consumer {
	struct link link; /* of the session */
	void (*record)(void *context, const struct xpt_record_header *record);
	void (*scanned)(void *context, pid_t tgid); /* as in struct collector_options, as are: */
	int (*admit)(void *context, pid_t tgid);
	void (*leave)(void *context, pid_t tgid);
	int (*started)(void *context);		 /* everything is attached; an error ends the session */
	__u64 (*work)(void *context, __u64 now); /* after each draining; returns when it is due again, ns, ~0: never */
	/* The last record was passed on, and everything is detached; or the consumer leaves, and the session continues. */
	void (*finished)(void *context);
	void *context;
	struct collector_needs needs;
	bool leaving; /* set on the collecting thread, or by session_remove(): it is finished after the next work() */
	bool left;    /* it is not among the session's any more */
	struct xpt_session *session;
	bool shares;	 /* the session is the caller's, and continues without it */
	int interrupted; /* set from anywhere */
	bool selects;	 /* the kernel records for others, too: what it gets goes through */
	struct selection selection;
};

/*
 * One lock for everything but the collector's own waiting, in which it reads mappings: its processes are the collecting thread's
 * alone, which holds the lock while it works.
 */
struct xpt_session {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* for those who wait; broadcast */
	struct collector *collector;
	struct link consumers;	   /* struct consumer, in the order in which they get records */
	struct link waiters;	   /* in session_await() */
	struct profiler *profiler; /* NULL: neither profiles nor streams */

	pthread_t thread;
	bool has_thread; /* to be joined */
	int open_error;
	bool opened, starting, started, ending, finished;
	int error;	 /* tracing has stopped; consumers continue */
	int interrupted; /* set from anywhere */
};

/* The functions and the context of the options are set here. Errors of collector_create(). */
int session_create(const struct collector_options *options, struct xpt_session **result);
/* Before the start. It is there until session_remove() or session_free(). -EALREADY, logged: the session has started. */
int session_add(struct xpt_session *session, struct consumer *consumer);
/*
 * To the session, where there is one: -EINVAL, logged, if the options name targets or how they are traced; else to one of its own.
 * Errors of session_create() and session_add().
 */
int consumer_attach(struct consumer *consumer, struct xpt_session *session, const struct collector_options *options);
int consumer_start(
	struct consumer *consumer); /* session_start(); where it shares the session: -EALREADY, that has started */
void consumer_stop(struct consumer *consumer);	    /* session_stop(); where it shares the session, session_remove() */
void consumer_free(struct consumer *consumer);	    /* stopped; with a session of its own */
void consumer_interrupt(struct consumer *consumer); /* safe in signal handlers */
int consumer_disturbed(struct consumer *consumer);  /* as session_disturbed(), after consumer_interrupt() */
/* A record to one of them, as on_record() gets it. */
void consumer_record(void *context, const struct xpt_record_header *record); /* context: struct consumer */
/* Finishes a consumer, and returns when it has left; the session continues. Not on the collecting thread. */
void session_remove(struct xpt_session *session, struct consumer *consumer);
int session_open(struct xpt_session *session); /* collector_open(), unless it was called before */
/* Opens it first. -EALREADY, and the errors of collector_open(), collector_start(), of consumers and threads. */
int session_start(struct xpt_session *session);
/* Detaches and ends the thread, if one was started. May be called again. */
void session_stop(struct xpt_session *session);
void session_free(struct xpt_session *session); /* stopped; NULL is allowed */
/*
 * Waits until done() is not 0, which is the result, or until the timeout, ns, has passed: 0. To be called without the lock; done()
 * is called with it, on the calling or the collecting thread.
 */
int session_await(struct xpt_session *session, uint64_t timeout, int (*done)(void *context), void *context);
/* 0, the error that has ended tracing, or -EINTR, once, after xpt_session_interrupt(). */
int session_disturbed(struct xpt_session *session);
/* Waits, with the lock held, until changed is broadcast. */
void session_wait_change(struct xpt_session *session);
__s64 session_clock_offset(void); /* CLOCK_REALTIME less CLOCK_MONOTONIC */

/* ---- profiler.c ---- */

/* The consumer that feeds profiling handles; the session's lock is its own, too. */
struct profiler {
	struct xpt_session *session;
	struct consumer consumer;
	struct model *model;
	struct profiling *profiling;
	struct recording_info info;				 /* strings owned */
	struct xpt_report_counter counters[XPT_SAMPLE_COUNTERS]; /* strings of the collector's */
	size_t counter_count;
	bool over;     /* all targets have ended, and everything of them has been delivered to the handles */
	__u64 over_at; /* when the targets were found to have ended; 0: not yet */
	__u64 read_at; /* of the latest reading of the counts */
	__u64 seen;    /* time of the latest event */
	__u32 sample_every, roles; /* that the handles want, as in kern_set_defaults() */

	pthread_cond_t queued; /* for the callback thread */
	pthread_t thread;
	bool has_thread, ending;
	struct subscriber *subscribers;
	struct delivery *first, **last; /* in the order in which they were made */
	size_t waiting;
	size_t waiting_bytes;
};

int profiler_create(struct xpt_session *session, size_t report_bytes); /* -ENOMEM */
void profiler_opened(struct profiler *profiler);		       /* the collector is */
void profiler_stop(struct profiler *profiler);			       /* no callback comes any more */
void profiler_free(struct profiler *profiler);			       /* NULL is allowed */
/* Is this the callback thread? With the lock held. */
bool profiler_is_callback(const struct profiler *profiler);

#endif
