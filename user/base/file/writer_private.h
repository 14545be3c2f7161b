/* SPDX-License-Identifier: BSD-2-Clause */
/* What the collector and the process that writes for it share. */
#ifndef XPT_BASE_FILE_WRITER_PRIVATE_H
#define XPT_BASE_FILE_WRITER_PRIVATE_H

#include <stdatomic.h>

#include "base/file/writer.h"

#define WRITER_SLOT (256u << 10) /* bytes */
#define WRITER_SLOTS 256u	 /* 64 MiB; only pages that were used take memory */

/* One slot of a block; a block has as many as it needs, one after the other. */
struct writer_entry {
	__u32 slot, length;
	__u64 left; /* bytes of the block from here on, this slot's included */
	__u64 items;
	__u32 tail_length;
	__u32 last;
};

struct writer_shared {
	/* Entries, ever: made by the collector, done by the process, in the order of entries[]. Only one side writes each. */
	_Atomic(__u64) made, done;
	_Atomic(__u64) items, bytes;
	atomic_int error;     /* of the file, the first one */
	atomic_bool closing;  /* nothing is made any more */
	atomic_bool given_up; /* nothing is waited for any more */
	atomic_bool idle;     /* the process wants a byte when there is more */
	atomic_bool waited;   /* the collector wants one when nothing is left */
	atomic_bool ended;    /* in order: the file is closed */
	struct writer_entry entries[WRITER_SLOTS];
	char tail[WRITER_TAIL_MAX];
	char slots[WRITER_SLOTS][WRITER_SLOT] __attribute__((aligned(4096)));
};

/* What the process begins with. */
struct writer_process_context {
	struct writer_shared *shared;
	const struct tailed_file *file;
	int socket, parent; /* parent: pidfd of the collector; -1: the kernel has none */
};

/* Never returns. context: struct writer_process_context. After fork() in a program with threads: system calls only. */
void writer_process(void *context) __attribute__((noreturn));

#endif
