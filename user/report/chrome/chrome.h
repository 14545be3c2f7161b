/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chrome trace (JSON object format), for Perfetto and chrome://tracing. Written as a stream with constant memory;
 * after every flush the file on disk is one complete JSON document. Schema: user/report/SCHEMA.md.
 *
 * The program must ignore SIGPIPE and SIGXFSZ: a pipe that is closed and a limit on file sizes are errors here, not
 * deaths.
 */
#ifndef XPT_REPORT_CHROME_CHROME_H
#define XPT_REPORT_CHROME_CHROME_H

#include <stdint.h>

#include "base/core/log.h"
#include "model/core/model.h"
#include "record/recording.h"

struct chrome_writer;

/* path NULL: descriptor is used and taken over; it may be a pipe (then the closing part comes only at the end).
 * info is copied. */
int chrome_writer_create(const struct log *log, const char *path, int descriptor, const struct recording_info *info,
			 struct chrome_writer **result);
struct event_sink chrome_writer_sink(struct chrome_writer *writer);
/* Brings everything so far to the file and leaves it loadable. -ENOSPC and the like: cut back to what was loadable. */
/* Before events come: warns before the trace gets larger than that, uncompressed. */
void chrome_writer_warn_at(struct chrome_writer *writer, __u64 bytes);
/* That warning, for callers that know it earlier. */
void chrome_warn_size(const struct log *log, __u64 bytes);
#define CHROME_VIEWER_BYTES 1000000000ull /* what viewers open, about */
int chrome_writer_flush(struct chrome_writer *writer);
/*
 * Writes the totals of the model into the metadata block, closes, frees. The trace is marked as complete when the
 * model has got its END record and no write has failed. 0 or the first error.
 */
int chrome_writer_close(struct chrome_writer *writer, const struct model *model);
/*
 * From here on a process of its own writes, and completes the file after a crash (tailed_file_detach()). Nothing waits for the
 * output any more: events for which there is no room are left out and counted.
 */
int chrome_writer_detach(struct chrome_writer *writer, const uint64_t *stopped);
/* Before the end: waits until what has come is written, so that the losses are known. 0 or an error. */
int chrome_writer_settle(struct chrome_writer *writer);
__u64 chrome_writer_lost(const struct chrome_writer *writer); /* as event_losses() counts */
__u64 chrome_writer_bytes(const struct chrome_writer *writer);

#endif
