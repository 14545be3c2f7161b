/* SPDX-License-Identifier: BSD-2-Clause */
/* From a CODE record and its pieces to a load with its bytes, for which the thread may wait. */
#ifndef XPT_SESSION_CODE_READING_H
#define XPT_SESSION_CODE_READING_H

#include <linux/types.h>
#include <stddef.h>

#include "bpf/wire.h"
#include "session/code/load.h"

/*
 * Bytes that come from the kernel in pieces, put together. Bounded: the oldest make room when a thread's last word
 * never comes.
 */

struct code_assembly;

struct code_pieces {		     /* zeroed: empty */
	struct code_assembly *first; /* the latest one */
	size_t count, bytes;
};

/* Zeroed: none. */
struct code_bytes {
	char *bytes; /* with a 0 byte behind */
	size_t length;
};

/* Without room or memory, or where one was lost before, the piece is left out. */
void code_pieces_add(struct code_pieces *pieces, const struct xpt_record_code_piece *piece);
/* Those of the record, from the first on without a gap, to be freed. */
struct code_bytes code_pieces_take(struct code_pieces *pieces, const struct xpt_record_code *code);
void code_pieces_drop(struct code_pieces *pieces, __u32 tgid); /* the process has ended; 0: all */

struct code_reading_limits {
	__u64 room;	  /* bytes that may be copied now */
	__u64 wait_limit; /* ns that a thread waits */
	struct file_readers *readers;
	bool may_open; /* a file may be opened now; else the worker does it */
	/* Ends the wait of the ticket's thread. False: it had ended before. */
	bool (*answer)(void *context, pid_t tgid, __u64 ticket);
	void *context;
};

/*
 * Makes the load and resumes a waiting thread. pieces belong to the caller. What could not be read is reported by its
 * error, missing bytes and over_limit. NULL: no memory.
 */
struct code_load *code_reading_load(const struct description *runtime, const struct call_spec *spec,
				    const struct xpt_record_code *code, const struct code_bytes *pieces,
				    const struct code_reading_limits *limits);

#endif
