/* SPDX-License-Identifier: BSD-2-Clause */
/* What calls that load and unload code objects have answered. */
#ifndef XPT_SESSION_CODE_ANSWERS_H
#define XPT_SESSION_CODE_ANSWERS_H

#include "describe/registry.h"
#include "session/code_load.h"

#define CODE_ANSWERS_MAX 256

struct code_answer {
	pid_t tgid, tid;
	const struct description *runtime;
	unsigned int spec;
	__u64 start, end; /* ns of CLOCK_MONOTONIC */
	bool succeeded;
	__u64 handle; /* 0: none */
	__s64 device; /* -1: not told */
	__s64 status; /* 0: success; -1: failure that has no number */
};

struct code_answer code_answer_read(const struct description *runtime, const struct call_spec *spec,
				    const struct xpt_record_call *call);

/* The latest that have come before what they answer to. Zeroed: none. */
struct code_answers {
	struct code_answer answer[CODE_ANSWERS_MAX]; /* the oldest first */
	size_t count;
	__u64 lost; /* that had succeeded and were given up, since nothing came that they answer to */
};

void code_answers_keep(struct code_answers *answers, const struct code_answer *answer);
void code_answers_give_up(struct code_answers *answers); /* all: nothing comes any more */
/* Takes the first one to a call of the thread that was open at a time. False: there is none yet. */
bool code_answers_take(struct code_answers *answers, pid_t tgid, pid_t tid, unsigned int spec, __u64 time,
		       struct code_answer *result);
/* Takes the first one that unloads a handle and began at a time or later. */
bool code_answers_take_unload(struct code_answers *answers, pid_t tgid, const struct description *runtime, __u64 handle,
			      __u64 since, struct code_answer *result);

#endif
