/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a CODE record and its pieces to a load with its bytes. The process may be stopped for it: it is let go by
 * others.
 */
#ifndef XPT_SESSION_CODE_READING_H
#define XPT_SESSION_CODE_READING_H

#include <linux/types.h>

#include "bpf/wire.h"
#include "session/code_load.h"
#include "session/code_pieces.h"

struct code_reading_limits {
	__u64 room;		  /* bytes that may be copied now */
	__u64 stop_limit;	  /* ns that the process may be stopped */
	struct code_spare *spare; /* for what is large */
};

/*
 * Makes the load. pieces belong to the caller. What could not be had is told by its error, missing bytes and
 * over_limit. NULL: no memory.
 */
struct code_load *code_reading_load(const struct description *runtime, const struct call_spec *spec,
				    const struct xpt_record_code *code, const struct code_bytes *pieces,
				    const struct code_reading_limits *limits);

#endif
