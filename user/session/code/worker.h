/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What takes time with code objects, on a thread of its own: their bytes are hashed, analysed once for each hash, and
 * kept where that is requested. A load given to the worker is the worker's, but for the results of its call, until it
 * comes back.
 */
#ifndef XPT_SESSION_CODE_WORKER_H
#define XPT_SESSION_CODE_WORKER_H

#include <xputrace/codeobj.h>

#include "base/core/log.h"
#include "code/store/store.h"
#include "session/code/load.h"

#define CODE_QUEUE_BYTES (1ull << 30) /* that wait for the worker */

struct code_worker;

struct code_worker_options {
	const struct log *log; /* outlives it, as does the store */
	enum xpt_codeobj_mode mode;
	struct code_store *store; /* of the worker's thread alone while it lives; NULL: bytes are kept in memory */
	__u64 object_limit, process_limit, total_limit; /* bytes that are kept; each at least 1 */
	bool ready; /* memory for a large copy is made ready before the first one comes */
};

int code_worker_start(const struct code_worker_options *options, struct code_worker **result);
/* Bytes that may be queued now. A single object may have as many as CODE_QUEUE_BYTES when nothing else waits. */
__u64 code_worker_room(struct code_worker *worker);
/* Whether another load may come with a file that is open: each has a process. Else the worker opens it. */
bool code_worker_may_open(struct code_worker *worker);
/* Memory for copies of large objects; freed with the worker. */
struct code_spare *code_worker_spare(struct code_worker *worker);
void code_worker_add(struct code_worker *worker, struct code_load *load);
struct code_load *code_worker_take(struct code_worker *worker); /* that is done, in the order of adding; NULL: none */
void code_worker_wait(struct code_worker *worker);		/* until nothing is left to be done */
/* The load releases its object, which is freed with the last load. */
void code_worker_release(struct code_worker *worker, struct code_load *load);
/* The first error of writing, or 0. */
int code_worker_error(struct code_worker *worker);
/* After what was added is done. All objects must be released; loads that nobody took are freed. NULL is allowed. */
void code_worker_free(struct code_worker *worker);

#endif
