/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes that come from the kernel in pieces, put together. Bounded: the oldest make room when a thread's last word
 * never comes.
 */
#ifndef XPT_SESSION_CODE_PIECES_H
#define XPT_SESSION_CODE_PIECES_H

#include <linux/types.h>
#include <stddef.h>

#include "bpf/wire.h"

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

#endif
