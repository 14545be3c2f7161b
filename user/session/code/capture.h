/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a collector's records to code objects: pieces and CODE records become loads, a worker analyses their bytes,
 * calls report what became of them. All but the worker is on the thread that collects.
 */
#ifndef XPT_SESSION_CODE_CAPTURE_H
#define XPT_SESSION_CODE_CAPTURE_H

#include "describe/runtime/registry.h"
#include "session/code/worker.h"

#define CODE_LOADS_MAX 65536 /* that have not ended, or, unless they are kept, may be unloaded yet */

struct code_capture;

struct code_capture_options {
	const struct registry *registry; /* outlives it */
	struct code_worker_options worker;
	__u64 wait_limit; /* ns that a call waits until its bytes have been read */
	bool keep;	  /* loads stay until the end; else until they are unloaded */
	/* A load is complete, but for the time at which it is unloaded. It is the capture's. */
	void (*loaded)(void *context, const struct code_load *load);
	void (*unloaded)(void *context, const struct code_load *load); /* always after loaded */
	/* Resumes a waiting thread. False: it was resumed before. */
	bool (*answer)(void *context, pid_t tgid, __u64 ticket);
	void *context;
	void *answer_context;
};

struct code_counts {
	__u64 over_limit; /* loads with bytes dropped for a limit */
	__u64 incomplete; /* loads with bytes missing */
	__u64 lost;	  /* loads of which nothing is known but their number */
};

int code_capture_create(const struct code_capture_options *options, struct code_capture **result);
/* Any record; others than those of code objects are ignored. A waiting thread is resumed. */
void code_capture_record(struct code_capture *capture, const struct xpt_record_header *record);
/*
 * Something that was found in a process without a call, at a time (0: before the capture); the load is the capture's
 * from here on.
 */
/* load NULL: there was no memory for it. */
void code_capture_found(struct code_capture *capture, struct code_load *load);
void code_capture_work(struct code_capture *capture); /* hands out what is complete */
/* Nothing comes any more: hands out what there is, when the worker is done. */
void code_capture_finish(struct code_capture *capture);
struct code_counts code_capture_counts(const struct code_capture *capture);
int code_capture_error(struct code_capture *capture); /* the first error of writing, or 0 */
void code_capture_free(struct code_capture *capture); /* NULL is allowed */

#endif
