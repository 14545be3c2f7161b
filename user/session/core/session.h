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
#include "record/context.h"
#include "session/collect/collector.h"

/* ---- selection.c ---- */

/* The samples of one consumer, where the kernel records more for others: what it gets is as if it were alone. */
#define SELECTION_CALL_MAX 256 /* bytes of a CALL record */

struct selection {
	const struct registry *registry;
	__u32 every;	     /* N: of each program each Nth inference; 0 or 1: all */
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
/* What the kernel side counts a call by: its program, the first value, or its function. */
struct xpt_program_key selection_key(const struct xpt_spec *spec, const struct xpt_record_call *call);

/* ---- joining.c ---- */

/* What a session knows, for consumers that join while it runs. */
struct statedump {
	const struct registry *registry;
	struct past past;
	struct link strings; /* of calls that have not returned, and define programs or regions; bounded */
	size_t string_count;
};

void statedump_init(struct statedump *dump, const struct registry *registry);
void statedump_free(struct statedump *dump); /* it may be zeroed */
/* Each record of the session. -ENOMEM: who joins will not know of it. */
int statedump_record(struct statedump *dump, const struct xpt_record_header *record);
struct event_sink statedump_sink(struct statedump *dump); /* for the model that gets the same records */

/* What sets one of these consumers apart. Zero: it was there at the start. */
struct joining {
	struct collector *collector;
	bool codes;	      /* it has to answer CODE records */
	__u64 since;	      /* ns: calls that began from here on are its own */
	struct map baselines; /* counts up to then, by key */
	struct link all;      /* the same */
	struct xpt_record_total total;
};

void joining_init(struct joining *joining, struct collector *collector);
/* A kern_count_fn: what was counted before. -ENOMEM. */
int joining_baseline(void *context, const struct xpt_program_entry *entry);
/* Both, with the counts of now, and sets since. -ENOMEM. */
int joining_begin(struct joining *joining, struct collector *collector);
void joining_free(struct joining *joining); /* it may be zeroed */
/* What the consumer gets of a record, which may be changed; NULL: nothing. */
const struct xpt_record_header *joining_pass(struct joining *joining, const struct xpt_record_header *record);
/* Passes on what was known then; the model has delivered everything up to it. -ENOMEM. */
int joining_state(const struct joining *joining, struct statedump *dump, record_fn record, void *context);
/* Passes on what came meanwhile, and frees it. -ENOMEM: it is not complete. */
int joining_held(struct text *held, record_fn record, void *context);

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
	int (*attached)(void *context);		 /* it has begun; an error ends the session, unless it joins later */
	__u64 (*work)(void *context, __u64 now); /* after each draining; returns when it is due again, ns, ~0: never */
	/* It has no use for records before work() is due, but for those of new programs and processes. NULL: it has. */
	bool (*unhurried)(void *context);
	/* The last record was passed on, and everything is detached; or the consumer leaves, and the session continues. */
	void (*finished)(void *context);
	void *context;
	struct collector_needs needs;
	bool started;	/* it gets records */
	bool joining;	/* waits among the joiners; */
	int join_error; /* with what */
	bool leaving;	/* set on the collecting thread, or by session_remove(): it is finished after the next work() */
	bool left;	/* it is not among the session's */
	__u64 begun;	/* ns of CLOCK_MONOTONIC: the session's start, or when it joined */
	__u64 calls;	/* CALL records that it got */
	__u64 closed;	/* of those that are counted in the kernel: not layers */
	__u64 counted;	/* sum over its TOTAL records: began, less left out, less lost */
	struct records_figures before; /* of the session, when it joined */
	struct joining later;
	bool holds; /* records are kept until it knows what was before */
	struct text held;
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
	struct link consumers;	    /* struct consumer, in the order in which they get records */
	struct link joiners;	    /* struct consumer, that wait for the collecting thread */
	struct statedump statedump; /* with a profiler: others may join later */
	struct link waiters;	    /* in session_await() */
	struct profiler *profiler;  /* NULL: neither profiles nor streams */

	pthread_t thread;
	bool has_thread; /* to be joined */
	int open_error;
	bool opened, starting, started, ending, finished;
	int error;	 /* tracing has stopped; consumers continue */
	int interrupted; /* set from anywhere */
};

/* The functions and the context of the options are set here. Errors of collector_create(). */
int session_create(const struct collector_options *options, struct xpt_session **result);
/*
 * It is there until session_remove() or session_free(). Once the session has started, it joins with consumer_start(). -ENODATA, logged: the
 * kernel side was loaded without what it needs.
 */
int session_add(struct xpt_session *session, struct consumer *consumer);
/*
 * To the session, where there is one: -EINVAL, logged, if the options name targets or how they are traced; else to one of its own.
 * Errors of session_create() and session_add().
 */
int consumer_attach(struct consumer *consumer, struct xpt_session *session, const struct collector_options *options);
/*
 * session_start(). Where it shares the session: 0 before that starts; then it joins, on the collecting thread. -EALREADY; -ECANCELED:
 * the session ends; the error that has ended tracing; -ENOMEM, and errors of attached().
 */
int consumer_start(struct consumer *consumer);
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
__s64 session_clock_offset(clockid_t clock); /* that clock less CLOCK_MONOTONIC */

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
