/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwinds copies of stacks, and gives their frames names. Works on files and memory that strangers wrote: to be used in a process
 * without rights, which gets what it reads as open files.
 */
#ifndef XPT_STACK_STACK_H
#define XPT_STACK_STACK_H

#include <linux/types.h>

#include "bpf/wire.h"

#define STACK_BUILD_ID_MAX 64 /* bytes */

enum stack_file_kind {
	STACK_FILE_MAPS = 1,   /* mappings of the process, as /proc/PID/maps has them */
	STACK_FILE_MAPPED = 2, /* the file that is mapped from start to end */
	STACK_FILE_MEMORY = 3, /* memory of the process */
	STACK_FILE_DEBUG = 4,  /* debug information of the build id, where it is installed */
	STACK_FILE_NAMES = 5,  /* names of code that the process has made, as perf reads them */
};

/* A file that is needed. */
struct stack_file {
	__u32 kind; /* enum stack_file_kind */
	__u32 tgid;
	__u64 start, end;
	__u32 build_id_size;
	__u32 reserved;
	unsigned char build_id[STACK_BUILD_ID_MAX];
};

struct unwinder;

struct unwinder_options {
	/* A descriptor of the file, which becomes the unwinder's; -errno: there is none. */
	int (*open)(void *context, const struct stack_file *file);
	/* MODULE, FRAME and STACK records, each before the first that refers to it. */
	void (*record)(void *context, const struct xpt_record_header *record);
	/* A process is a Python interpreter; or one that is not understood: -EXDEV without a lock of its interpreter, -ENOTSUP. */
	void (*python)(void *context, __u32 tgid, const struct xpt_python *python);
	void (*python_refused)(void *context, __u32 tgid, int error);
	void *context;
	__u32 first_id; /* of modules, frames and stacks; at least 1 */
};

/* NULL: no memory. */
struct unwinder *unwinder_create(const struct unwinder_options *options);
void unwinder_free(struct unwinder *unwinder); /* NULL is fine */
/* Opens what the process has mapped by now: it may have ended when its first stack comes. */
void unwinder_prepare(struct unwinder *unwinder, __u32 tgid);
/* The process has ended, or runs another program. */
void unwinder_forget(struct unwinder *unwinder, __u32 tgid);
/*
 * Unwinds a copy, which is changed by it, and fills in all of the sample but its weight. python: frames of the interpreter of the same
 * thread at that time; NULL: there are none. -EBADMSG: it is no valid copy; -ENOSPC: there have been too many different stacks; -ENOMEM.
 */
int unwinder_stack(struct unwinder *unwinder, struct xpt_record_stack_copy *copy,
		   const struct xpt_record_python_copy *python, struct xpt_record_stack_sample *sample);

#endif
