/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that unwinds stacks (xputrace-unwind) has no rights: the files that it needs are opened by another one
 * (xputrace-stacks), which reads none of them, and starts it again when it has crashed.
 */
#ifndef XPT_SESSION_READER_STACK_PROCESS_H
#define XPT_SESSION_READER_STACK_PROCESS_H

#include <linux/types.h>

#include "bpf/wire.h"

enum stack_request_kind {
	STACK_REQUEST_COPY = 1,	   /* followed by a struct xpt_record_stack_copy */
	STACK_REQUEST_PREPARE = 2, /* the process has mapped something */
	STACK_REQUEST_FORGET = 3,  /* it has ended, or runs another program */
	STACK_REQUEST_PYTHON = 4,  /* followed by a struct xpt_record_python_copy, for the next copy of the thread */
};

struct stack_request {
	__u32 kind; /* enum stack_request_kind */
	__u32 tgid;
	__u64 weight; /* of the sample */
};

/* A message that answers a copy that has no sample: a record's header of this kind. */
#define STACK_ANSWER_NONE 0
/* A header of this kind: the process has been prepared. */
#define STACK_ANSWER_PREPARED 0xfff1
/* The process of the header is a Python interpreter: a struct stack_answer_python. */
#define STACK_ANSWER_PYTHON 0xfff0

struct stack_answer_python {
	struct xpt_record_header header;
	struct xpt_python python; /* without an error */
	__s32 error;		  /* as for unwinder_options.python_refused */
	__u32 reserved;
};

/*
 * Starts both. *socket gets the collector's end: each message to it is a request, each from it a record, MODULE, FRAME, STACK or
 * STACK_SAMPLE; a copy is answered by a STACK_SAMPLE or STACK_ANSWER_NONE. Closing it ends them. -errno.
 */
int stack_process_start(int *socket);

#endif
