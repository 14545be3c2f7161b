/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that unwinds stacks (xputrace-unwind) has no rights: the files that it needs are opened by another one
 * (xputrace-stacks), which reads none of them, and starts it again when it has crashed.
 */
#ifndef XPT_SESSION_READER_STACK_PROCESS_H
#define XPT_SESSION_READER_STACK_PROCESS_H

#include <linux/types.h>

enum stack_request_kind {
	STACK_REQUEST_COPY = 1,	   /* followed by a struct xpt_record_stack_copy */
	STACK_REQUEST_PREPARE = 2, /* the process has mapped something */
	STACK_REQUEST_FORGET = 3,  /* it has ended, or runs another program */
};

struct stack_request {
	__u32 kind; /* enum stack_request_kind */
	__u32 tgid;
	__u64 weight; /* of the sample */
};

/* A message that answers a copy that has no sample: a record's header of this kind. */
#define STACK_ANSWER_NONE 0

/*
 * Starts both. *socket gets the collector's end: each message to it is a request, each from it a record, MODULE, FRAME, STACK or
 * STACK_SAMPLE; a copy is answered by a STACK_SAMPLE or STACK_ANSWER_NONE. Closing it ends them. -errno.
 */
int stack_process_start(int *socket);

#endif
