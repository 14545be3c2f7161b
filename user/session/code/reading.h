/* SPDX-License-Identifier: BSD-2-Clause */
/* From a CODE record and its pieces to a load with its bytes, for which the thread may wait. */
#ifndef XPT_SESSION_CODE_READING_H
#define XPT_SESSION_CODE_READING_H

#include <linux/types.h>

#include "bpf/wire.h"
#include "session/code/load.h"
#include "session/code/pieces.h"

struct code_reading_limits {
	__u64 room;		  /* bytes that may be copied now */
	__u64 wait_limit;	  /* ns that a thread waits */
	struct code_spare *spare; /* lent to the readers */
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
