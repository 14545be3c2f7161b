/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chrome trace (JSON object format), for Perfetto and chrome://tracing. Written as a stream with constant memory; after
 * every flush the file on disk is one complete JSON document. Schema: user/report/SCHEMA.md.
 */
#ifndef XPT_REPORT_CHROME_H
#define XPT_REPORT_CHROME_H

#include "base/log.h"
#include "model/model.h"
#include "record/recording.h"

struct chrome_writer;

/* path NULL: descriptor is used and taken over; it may be a pipe (then the closing part comes only at the end).
 * info is copied. */
int chrome_writer_create(const struct log *log, const char *path, int descriptor, const struct recording_info *info,
			 struct chrome_writer **result);
struct event_sink chrome_writer_sink(struct chrome_writer *writer);
/* Brings everything so far to the file and leaves it loadable. -ENOSPC and the like: cut back to what was loadable. */
int chrome_writer_flush(struct chrome_writer *writer);
/* Writes the totals of the model into the metadata block, closes, frees. */
int chrome_writer_close(struct chrome_writer *writer, const struct model *model);
/* Where the loadable part ends and what must follow it: lets another process complete the file after a crash. The
 * callback is called after every flush. NULL to end. */
typedef void (*chrome_progress_fn)(void *context, int descriptor, __u64 length, const char *tail, size_t tail_length);
void chrome_writer_watch(struct chrome_writer *writer, chrome_progress_fn progress, void *context);
__u64 chrome_writer_bytes(const struct chrome_writer *writer);

#endif
