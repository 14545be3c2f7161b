/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for copies of code objects, shared with the process that makes them. Some of it is there before it is needed: a thread that
 * waits for a copy does not wait until the kernel has found and zeroed pages, which takes as long as the copy, and in a
 * virtual machine many times that. As much is there as the largest copy so far has taken: the first one waits, unless it
 * was made ready for that.
 */
#ifndef XPT_SESSION_READER_CODE_COPY_H
#define XPT_SESSION_READER_CODE_COPY_H

#include <linux/types.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "code/format/object.h"

#define CODE_READY_SIZE ((size_t)8 << 20)
#define CODE_SPARE_SIZE ((size_t)256 << 20)

struct code_spare {
	int memory;	      /* a file in memory (memfd) with ready, then bytes; -1: there is none */
	unsigned char *ready; /* CODE_READY_SIZE in resident pages, for a smaller copy until it has its own memory */
	unsigned char *bytes; /* CODE_SPARE_SIZE, for one that is larger */
	size_t populated;     /* of these; of the thread that calls code_spare_populate() */
	atomic_size_t wanted; /* the largest number of bytes that was asked for: worth populating */
	atomic_bool idle;     /* bytes may be taken */
};

/* Without memory there is none. ready: all of it is wanted from the begin on, but no more than a part of the machine's. */
void code_spare_open(struct code_spare *spare, bool ready);
void code_spare_close(struct code_spare *spare); /* nobody has it */
/* Makes some more pages of it be there: a few ms. False: all that are wanted are. Its thread alone calls this. */
bool code_spare_populate(struct code_spare *spare);
/* It has its last contents. NULL: it is in use, or too small. */
unsigned char *code_spare_take(struct code_spare *spare, size_t size);
void code_spare_give(struct code_spare *spare);

/* Bytes in a mapping of their own, or in the spare one. Zeroed, there are none. */
struct code_copy {
	unsigned char *bytes; /* NULL: size is 0 */
	size_t size;
	__u64 missing;		  /* of them that could not be read: replaced by zeros */
	__u64 first_missing;	  /* offset of the first of those */
	struct code_spare *spare; /* that the bytes are in, which must outlive them; NULL: their own */
	bool borrowed;		  /* the bytes are in code_spare.ready */
};

/* How the process that makes a copy gets at its bytes. */
struct code_shared {
	int memory;   /* a file in memory of the copy alone, to be closed; -1: code_spare.memory */
	__u64 offset; /* in that */
};

int code_copy_make(size_t size, struct code_copy *copy); /* zeros. -ENOMEM */
/* For another process to fill: the contents are zeros, or the last ones of the spare memory (NULL: none). -ENOMEM, -EMFILE. */
int code_copy_share(struct code_spare *spare, size_t size, struct code_copy *copy, struct code_shared *shared);
void code_copy_free(struct code_copy *copy); /* leaves it zeroed */
/* Bytes in code_spare.ready get a mapping of their own, so that it is free again. -ENOMEM: the copy is freed. */
int code_copy_own(struct code_copy *copy);

/*
 * Copies of what a program gives to a runtime, out of its memory while the call waits. By a process that can do nothing else, as pages
 * may never come (file_reader_source_copy()).
 */

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
