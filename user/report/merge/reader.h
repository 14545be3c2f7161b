/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A Chrome trace of anybody's, one event at a time: an object with "traceEvents" or a bare array. What is in memory is
 * one event, or one other member, and the block that it was read with, however large the file is.
 */
#ifndef XPT_REPORT_MERGE_READER_H
#define XPT_REPORT_MERGE_READER_H

#include <linux/types.h>

#include "base/core/json.h"
#include "base/core/log.h"

#define MERGE_VALUE_MAX (64u << 20) /* bytes of one event or member */

struct merge_reader;

struct merge_item {
	bool event;		/* an object of the array of events; else another member of the document */
	char name[32];		/* of the member, cut */
	struct json_part value; /* checked; valid until the next call */
	__u64 offset;		/* at which the value begins in the file */
};

/*
 * Opens a regular file. It is read up to the size that it has now. log stays the caller's and must live as long.
 * -EINVAL: no regular file; or errors of open(). Logged.
 */
int merge_reader_open(const struct log *log, const char *path, struct merge_reader **result);
/* 1: *item is the next one; 0: there are no more; -EBADMSG: malformed, or errors of read(). Logged. */
int merge_reader_next(struct merge_reader *reader, struct merge_item *item);
/* After the last item: the file ends before the document does; *offset is where what is complete ends. */
bool merge_reader_cut(const struct merge_reader *reader, __u64 *offset);
/* An item that is good JSON, but wrong otherwise: logs why, with file and offset. Returns -EBADMSG. */
int merge_reader_refuse(const struct merge_reader *reader, const struct merge_item *item, const char *at,
			const char *reason);
/* Begins at the file's beginning again, for the same bytes. */
void merge_reader_rewind(struct merge_reader *reader);
/* 1: the file has other bytes than when it was opened, or may have; 0: not; or -errno. */
int merge_reader_changed(const struct merge_reader *reader);
void merge_reader_close(struct merge_reader *reader);

__u64 merge_reader_size(const struct merge_reader *reader); /* bytes of the document, uncompressed */

#endif
