/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that is there before it is needed: a process that is stopped for a copy does not wait until the kernel has
 * found and zeroed pages, which takes as long as the copy, and in a virtual machine many times that. As much is there
 * as the largest copy so far has taken: the first one waits, unless it was made ready for that. The kernel may take the
 * pages back while they are not in use, when it is short of memory.
 */
#ifndef XPT_SESSION_CODE_SPARE_H
#define XPT_SESSION_CODE_SPARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define CODE_SPARE_SIZE (256u << 20)

struct code_spare {
	unsigned char *bytes; /* CODE_SPARE_SIZE; NULL: there is none */
	size_t populated;     /* of them; of the thread that calls code_spare_populate() */
	atomic_size_t wanted; /* bytes that were asked for at most: so many are worth populating */
	atomic_bool idle;     /* may be taken */
};

/* Without memory there is none. ready: all of it is wanted from the begin on, but no more than a part of the machine's. */
void code_spare_open(struct code_spare *spare, bool ready);
void code_spare_close(struct code_spare *spare); /* nobody has it */
/* Makes some more pages of it be there: a few ms. False: all that are wanted are. Its thread alone calls this. */
bool code_spare_populate(struct code_spare *spare);
/* It has its last contents. NULL: it is in use, or too small. */
unsigned char *code_spare_take(struct code_spare *spare, size_t size);
void code_spare_give(struct code_spare *spare);

#endif
