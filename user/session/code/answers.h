/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of calls that load and unload code objects, and what has ended. */
#ifndef XPT_SESSION_CODE_ANSWERS_H
#define XPT_SESSION_CODE_ANSWERS_H

#include "describe/runtime/registry.h"
#include "session/code/load.h"

#define CODE_ANSWERS_MAX 2048

/* Of a call, or the end of the process or of the program that it ran. */
struct code_answer {
	pid_t tgid, tid;
	const struct description *runtime;
	unsigned int spec;
	enum code_answer_kind { CODE_LOADED, CODE_UNLOADED, CODE_GONE } kind;
	__u64 start, end; /* ns of CLOCK_MONOTONIC */
	bool succeeded;
	__u64 handle; /* 0: none */
	__s64 device; /* -1: unknown */
	__s64 status; /* 0: success; -1: failure that has no number */
	__u64 turn;   /* pass over all rings in which it came */
};

struct code_answer code_answer_read(const struct description *runtime, const struct call_spec *spec,
				    const struct xpt_record_call *call);

/* Those that have not been settled. Zeroed: none. */
struct code_answers {
	struct code_answer answer[CODE_ANSWERS_MAX];
	size_t count;
};

/*
 * Calls settle for those that came before a pass, and what ended earlier than one of them, in the order in which they ended; the
 * order in which they come is that of their rings.
 */
void code_answers_settle(struct code_answers *answers, __u64 turn,
			 void (*settle)(void *context, const struct code_answer *answer), void *context);

#endif
