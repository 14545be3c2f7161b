/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of what a program gives to a runtime, out of its memory while the call waits. By a process that can do nothing else, as pages
 * may never come (file_reader_source_copy()).
 */
#ifndef XPT_SESSION_READER_CODE_MEMORY_H
#define XPT_SESSION_READER_CODE_MEMORY_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "code/format/object.h"
#include "session/reader/code_copy.h"

/* Where to read, and how long that may take. */
struct code_memory {
	pid_t tgid;
	__u64 deadline; /* ns of CLOCK_MONOTONIC; nothing is read later */
	__u64 limit;	/* bytes of an object */
};

/*
 * The size of an object in memory by its own header, or of text up to its 0 byte, which is not counted. -ENODATA:
 * unknown, -EBADMSG, -EFBIG: larger than the limit, -EFAULT, -ETIME: the deadline has passed, -ESRCH.
 */
int code_memory_size(const struct code_memory *memory, __u64 address, __u64 *size);
int code_memory_text(const struct code_memory *memory, __u64 address, __u64 *size); /* the same of what is text */
/* Fills the copy, which has its size. What cannot be read, and what is left at the deadline, is missing. */
void code_memory_copy(const struct code_memory *memory, __u64 address, struct code_copy *copy);
/*
 * Of count parts, one behind the other, from an array of addresses and one of sizes (64 bits each; 0: text up to its 0
 * byte); sizes 0: all are text. -E2BIG: too many parts, -EFBIG, -EFAULT: an array or a text cannot be read, -ETIME,
 * -ENOMEM.
 */
int code_memory_parts_size(const struct code_memory *memory, __u64 addresses, __u64 sizes, __u64 count, __u64 *size);
/* Copies them; where they are fewer bytes by now, the rest is missing. -EFBIG: they are more. */
int code_memory_parts(const struct code_memory *memory, __u64 addresses, __u64 sizes, __u64 count,
		      struct code_copy *copy);

#endif
