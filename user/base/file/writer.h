/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a file from a process of its own, so that an output that blocks (a pipe that nobody reads, a stopped terminal,
 * a file system that hangs) holds up nobody: a thread that hangs in the kernel would keep the whole process from
 * ending, a process does not. What is to be written goes into a bounded queue in memory that both share; nothing here
 * waits but writer_wait() and writer_end().
 *
 * The process outlives the collector. When the collector is killed, the process writes what is in the queue and ends,
 * within about WRITER_ORPHANED where the output blocks. It keeps no terminal, no working directory and no descriptor
 * but that of the file.
 */
#ifndef XPT_BASE_FILE_WRITER_H
#define XPT_BASE_FILE_WRITER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file/tailed_file.h"

struct writer;

#define WRITER_TAIL_MAX 65536u	      /* bytes of a tail, but of the last one */
#define WRITER_GRACE 1000000000ull    /* ns after the request to end that an output is waited for */
#define WRITER_LEAST 100000000ull     /* ns that it is waited for in any case, each time */
#define WRITER_ORPHANED 1000000000ull /* ns after the collector has been killed that a stream may keep blocking */

/* Forks; the process writes into file from here on, and the caller closes its descriptor. 0 or -errno. */
int writer_start(const struct tailed_file *file, struct writer **result);

/*
 * Makes the process of the next writer_start() with a regular file that is not compressed, for a program that cannot fork any more by then
 * (confine()). The process gives up its rights at once; it ends with this one when it gets no file. 0 or -errno.
 */
int writer_prepare(void);

/* One append of tailed_file.h. */
struct writer_block {
	const void *bytes;
	size_t length, tail_length; /* the tail is the end of bytes */
	__u64 items;		    /* counted as written when it is */
	bool last;		    /* written even after an error, if there is room */
};

/*
 * Copies. 0, -ENOBUFS: no room; -E2BIG: larger than the queue or the tail than WRITER_TAIL_MAX; -ETIMEDOUT: it was given up; -EIO:
 * the process has been killed; or the first error of the file, which takes nothing more but the last block.
 */
int writer_append(struct writer *writer, const struct writer_block *block);
int writer_error(struct writer *writer);			/* as above, of what was appended; 0: none so far */
bool writer_has_room(struct writer *writer, unsigned int part); /* 1/part of the queue is free */
bool writer_is_busy(const struct writer *writer);		/* something has not been written yet */
__u64 writer_items(const struct writer *writer);		/* written */
__u64 writer_bytes(const struct writer *writer);		/* in the file */

/* Waits until everything is written, or for as long as tailed_file_detach() allows. 0 or an error as above. */
int writer_wait(struct writer *writer, const uint64_t *stopped);
/* The same until a quarter of the queue is free. */
int writer_wait_room(struct writer *writer, const uint64_t *stopped);
/* The same, then the file is closed and the writer freed; what writer_items() and writer_bytes() give at the end. */
int writer_end(struct writer *writer, const uint64_t *stopped, __u64 *items, __u64 *bytes);

#endif
