/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of what a program gives to a runtime, out of its memory while the call waits. */
#ifndef XPT_SESSION_CODE_MEMORY_H
#define XPT_SESSION_CODE_MEMORY_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "code/format/object.h"
#include "session/code/spare.h"

/* Page faults of a copy take longer than its bytes: one that is smaller is made in memory that is resident. */
#define CODE_READY_SIZE ((size_t)8 << 20)

/* Bytes in a mapping of their own, or in the spare one. Zeroed, there are none. */
struct code_copy {
	unsigned char *bytes; /* NULL: size is 0 */
	size_t size;
	__u64 missing;		  /* of them that could not be read: replaced by zeros */
	__u64 first_missing;	  /* offset of the first of those */
	struct code_spare *spare; /* that the bytes are in, which must outlive them; NULL: their own */
	bool borrowed;		  /* the bytes are in code_memory.ready */
};

int code_copy_make(size_t size, struct code_copy *copy); /* zeros. -ENOMEM */
void code_copy_free(struct code_copy *copy);		 /* leaves it zeroed */
/* Bytes in code_memory.ready get a mapping of their own, so that it is free again. -ENOMEM: the copy is freed. */
int code_copy_own(struct code_copy *copy);

/* Where to read, and how long that may take. */
struct code_memory {
	pid_t tgid;
	__u64 deadline;		  /* ns of CLOCK_MONOTONIC; nothing is read later */
	__u64 limit;		  /* bytes of an object */
	struct code_spare *spare; /* taken for a large copy, if it is idle; NULL: none */
	unsigned char *ready;	  /* CODE_READY_SIZE bytes in resident pages, for a smaller copy; NULL: none */
};

/*
 * The size of an object in memory by its own header, or of text up to its 0 byte, which is not counted. -ENODATA:
 * unknown, -EBADMSG, -EFBIG: larger than the limit, -EFAULT, -ETIME: the deadline has passed, -ESRCH.
 */
int code_memory_size(const struct code_memory *memory, __u64 address, __u64 *size);
int code_memory_text(const struct code_memory *memory, __u64 address, __u64 *size); /* the same of what is text */
/*
 * Copies size bytes, which must not exceed the limit. What cannot be read, and what is left at the deadline, is
 * missing. 0 or -ENOMEM.
 */
int code_memory_copy(const struct code_memory *memory, __u64 address, size_t size, struct code_copy *copy);
/*
 * Copies count parts, one behind the other, from an array of addresses and one of sizes (64 bits each; 0: text up to
 * its 0 byte); sizes 0: all are text. -E2BIG: too many parts, -EFBIG, -EFAULT: an array or a text cannot be read,
 * -ETIME, -ENOMEM.
 */
int code_memory_parts(const struct code_memory *memory, __u64 addresses, __u64 sizes, __u64 count,
		      struct code_copy *copy);

#endif
