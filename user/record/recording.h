/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The recording file (.xpt): a header, then chunks of wire records as they came. A chunk has a header with its length
 * and a CRC-32C, so after a crash everything up to the last complete chunk can be read. Format:
 * user/record/FORMAT.md. The program must ignore SIGPIPE and SIGXFSZ.
 */
#ifndef XPT_RECORD_RECORDING_H
#define XPT_RECORD_RECORDING_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/log.h"
#include "bpf/wire.h"

/* Contents of the file's header, as JSON in the file. Strings are owned by the creator. */
struct recording_info {
	__u64 monotonic_time; /* clock pair: the same moment on CLOCK_MONOTONIC ... */
	__u64 realtime;	      /* ... and on CLOCK_REALTIME, ns */
	__u64 boot_time;      /* ... and on CLOCK_BOOTTIME; 0: not known */
	const char *host;
	const char *kernel;  /* uname release */
	const char *machine; /* uname machine */
	const char *version; /* of xputrace */
	const char *command; /* command line of the collector */
	const char *boot_id;
	unsigned int cpus;
};

struct recording_writer;

/* Creates or truncates path with mode 0600; descriptor is taken over when path is NULL (a pipe works). */
int recording_writer_create(const struct log *log, const char *path, int descriptor, const struct recording_info *info,
			    struct recording_writer **result);
/* Buffers; a chunk is written when 256 KiB are full or at recording_writer_flush. Errors are -ENOSPC and friends: the
 * file is cut back to its last complete chunk, and every later call gives the same error. */
int recording_writer_add(struct recording_writer *writer, const struct xpt_record_header *record);
int recording_writer_flush(struct recording_writer *writer);
/*
 * From here on a process of its own writes (tailed_file_detach()). Nothing waits for the output any more: calls, events and
 * readings for which there is no room are left out and counted.
 */
int recording_writer_detach(struct recording_writer *writer, const uint64_t *stopped);
/* Before the end: waits until what has come is written, so that the losses are known. 0 or an error. */
int recording_writer_settle(struct recording_writer *writer);
__u64 recording_writer_lost(const struct recording_writer *writer); /* records */
int recording_writer_close(struct recording_writer *writer);	    /* flushes, frees; 0 or the first error */
__u64 recording_writer_bytes(const struct recording_writer *writer);

struct recording_reader;

/* -EBADMSG not a recording, -EPROTO a version that is not known, -ENOTSUP other byte order, or what open() gives. */
int recording_reader_open(const struct log *log, const char *path, struct recording_reader **result);
/*
 * The same in two steps. A descriptor, without waiting for anybody but for a second for what comes first out of a pipe;
 * errors are logged. And a reader of a copy of it, from its beginning if it is a file: several may read at a time.
 * name: for messages.
 */
int recording_open(const struct log *log, const char *path);
int recording_reader_create(const struct log *log, const char *name, int descriptor, struct recording_reader **result);
const struct recording_info *recording_reader_info(const struct recording_reader *reader);
/*
 * Next record, valid until the next call. 1: got one; 0: the end; -ENODATA: the end, but the last chunk was
 * incomplete or damaged (what came before is good). Every record is checked to lie within its chunk and to have a
 * size of at least its kind's struct.
 */
int recording_reader_next(struct recording_reader *reader, const struct xpt_record_header **record);
__u64 recording_reader_position(const struct recording_reader *reader); /* bytes read, for progress */
__u64 recording_reader_size(const struct recording_reader *reader);	/* 0: a pipe */
void recording_reader_close(struct recording_reader *reader);

#endif
