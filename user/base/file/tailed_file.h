/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that grows in the middle: what has been added so far, then a tail that makes it a complete document. Each
 * append overwrites the tail and brings a new one. Where that fails (disk full), the file is restored to what it was
 * before. A pipe gets no tail until the last append.
 *
 * Under a name that ends in ".gz" it is a gzip file of one member, compressed by the writing process: it is complete
 * after each append, too. After an error it takes nothing more.
 *
 * Once detached, a process of its own writes (writer.h): an append copies into a bounded queue and never waits,
 * whatever the output does. Before the queue is full, tailed_file_admit() refuses what can be left out, so that the
 * rest still fits.
 */
#ifndef XPT_BASE_FILE_TAILED_FILE_H
#define XPT_BASE_FILE_TAILED_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/core/text.h"

struct gzip;
struct writer;

struct tailed_file {
	int descriptor;	  /* -1: closed, or detached */
	bool seekable;	  /* a regular file: its tail can be overwritten */
	__u64 start;	  /* offset at which the document begins */
	__u64 length;	  /* offset at which the tail begins */
	__u64 end;	  /* offset behind the tail */
	const char *tail; /* the one in the file, owned by the caller */
	size_t tail_length;
	int error;		      /* the first one of an append; a stream takes nothing more after it */
	bool (*go_on)(void *context); /* asked while a stream blocks; false: -EINTR. NULL: it is waited for */
	void *go_on_context;

	struct gzip *gzip;     /* NULL: it is not compressed */
	unsigned char *packed; /* of a file: the compressed end that is in it */
	size_t packed_length;
	bool forked; /* in a process that must not give memory back */

	struct writer *writer;	 /* detached; the rest is used only then */
	const uint64_t *stopped; /* see tailed_file_detach() */
	bool congested;		 /* items are refused */
	bool patient;		 /* see tailed_file_settle() */
	__u64 items, sent;	 /* admitted; of them, those that have been appended */
	__u64 refused;		 /* items */
	__u64 written, bytes;	 /* items and bytes in the file, as last known */
};

/*
 * Creates path (output_open()); or takes over descriptor, unless it is negative (closed on failure as well). Both: it is that of path,
 * which is open already.
 */
int tailed_file_open(struct tailed_file *file, const char *path, int descriptor);
/* Right after that: it is compressed, whatever its name is. -ENOMEM: then it is to be closed. */
int tailed_file_compress(struct tailed_file *file);
/*
 * A process is made that writes from here on, and completes the file also when this one is killed. stopped: time at which the
 * end was requested, ns of CLOCK_MONOTONIC, 0 as long as it was not; read whenever the end waits for the output, which is given
 * up WRITER_GRACE after that time. NULL: the end waits for ever. 0 or -errno: then the file is as before.
 */
int tailed_file_detach(struct tailed_file *file, const uint64_t *stopped);
/*
 * Writes the bytes of text and then the tail, which it appends to text for the purpose. tail must stay valid until
 * the next append has succeeded. last: a pipe gets the tail, too. -ENOSPC and the like: the file is what it was
 * before. Detached: -ENOBUFS: the queue is full, nothing was taken; an error may be that of an earlier append;
 * -ETIMEDOUT: given up.
 */
int tailed_file_append(struct tailed_file *file, struct text *text, const char *tail, size_t tail_length, bool last);
/* 0 or the error of an append or of close(). Detached: when all is written, or given up. */
int tailed_file_close(struct tailed_file *file);

/* ---- detached; without a process there is always room, and nothing to wait for ---- */

/* Counts items that are about to become a part of the next append. False: there is no room, they count as lost. */
bool tailed_file_admit(struct tailed_file *file, unsigned int items);
/* The text of the next append is given up: its items count as lost. */
void tailed_file_drop(struct tailed_file *file);
/* The error of an append that has failed since, or 0. */
int tailed_file_check(struct tailed_file *file);
/* Appends have not been written yet: one that is not urgent may wait and become a larger one. */
bool tailed_file_busy(const struct tailed_file *file);
/* Waits until all that was appended is written. From here on appends wait for room. 0 or an error as of append. */
int tailed_file_settle(struct tailed_file *file);
__u64 tailed_file_lost(
	const struct tailed_file *file); /* items that were refused; once settled, also those not written */
__u64 tailed_file_bytes(const struct tailed_file *file); /* of the document, in the file */

/* ---- for the process that writes ---- */

/* As append; the last tail_length bytes of the parts are the tail. The caller sets tail and tail_length after success. */
int tailed_file_put(struct tailed_file *file, const struct iovec *parts, size_t count, size_t tail_length);

#endif
