/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file into which a model's events go, in any of the formats there are for it: written as a stream with constant
 * memory; after every flush the file on disk is one complete document. SIGPIPE and SIGXFSZ must be ignored: a pipe that
 * is closed and a limit on file sizes are errors here, not deaths.
 */
#ifndef XPT_REPORT_TRACE_EVENT_FILE_H
#define XPT_REPORT_TRACE_EVENT_FILE_H

#include <stdint.h>

#include "base/core/log.h"
#include "base/core/text.h"
#include "model/core/model.h"
#include "record/recording.h"

struct event_file;

/* All but tail, state_size and add may be missing. What is appended fails only through text.error. */
struct event_format {
	const char *head; /* before all events; NULL: begin() appends it */
	const char *tail; /* completes the document wherever the events end */
	bool append;	  /* lines that are appended to those of the file; the head only into an empty one */
	size_t state_size;
	/* state has only zeros. What it needs of info is copied; text stays where it is. -ENOMEM. */
	int (*begin)(void *state, const struct recording_info *info, struct text *text);
	/* Appends what the event becomes. */
	void (*add)(void *state, struct text *text, const struct event *event);
	/* Before a flush, and before the end: appends what was held back. */
	void (*flush)(void *state, struct text *text);
	void (*end)(void *state, struct text *text);
	/* The tail that has the totals of the model. error: 0, or why events are missing. */
	void (*finish)(void *state, struct text *tail, const struct model *model, int error);
	/* Of a detached file. False: the event has no place without another that was refused. */
	bool (*accepts)(const void *state, const struct event *event);
	void (*refused)(void *state, const struct event *event);
	/* What was appended last has been dropped. any: events are in the file. */
	void (*dropped)(void *state, bool any);
	void (*warn_size)(const struct log *log, __u64 bytes); /* see event_file_warn_at() */
	/* At the end: logs what could not be shown. */
	void (*report)(const void *state, const struct log *log);
	void (*clear)(void *state); /* frees what the state holds */
};

extern const struct event_format ort_format, qnn_csv_basic, qnn_csv_detailed;

/* Whole microseconds, to the nearest. */
static inline __u64 whole_microseconds(__u64 nanoseconds)
{
	return nanoseconds / 1000 + (nanoseconds % 1000 >= 500);
}

/*
 * path NULL: descriptor is used and taken over; it may be a pipe (then the tail comes only at the end). -EEXIST: the file
 * at path has other contents and is not appended to. Otherwise errors of open() and write().
 */
int event_file_create(const struct log *log, const struct event_format *format, const char *path, int descriptor,
		      const struct recording_info *info, struct event_file **result);
/* The same as a sink of the model. path "-": standard output. Also -ENOSPC beyond the model's sinks. */
int event_file_open(const struct log *log, const struct event_format *format, const char *path,
		    const struct recording_info *info, struct model *model, struct event_file **result);
struct event_sink event_file_sink(struct event_file *file);
/* Before events come: warns before the file gets larger than that, uncompressed, where viewers have a limit. */
void event_file_warn_at(struct event_file *file, __u64 bytes);
/* Brings everything so far to the file and leaves it complete. -ENOSPC and the like: cut back to what was. */
int event_file_flush(struct event_file *file);
/* Completes the file, with the totals of the model where the format has them; frees. 0 or the first error. */
int event_file_close(struct event_file *file, const struct model *model);
/*
 * From here on a process of its own writes, and completes the file after a crash (tailed_file_detach()). Nothing waits
 * for the output any more: events for which there is no room are left out and counted.
 */
int event_file_detach(struct event_file *file, const uint64_t *stopped);
/* Before the end: waits until what has come is written, so that the losses are known. 0 or an error. */
int event_file_settle(struct event_file *file);
__u64 event_file_lost(const struct event_file *file); /* as event_losses() counts */
__u64 event_file_bytes(const struct event_file *file);

/*
 * Opens or creates a file of lines that is appended to; a line that was cut in the middle gets its end, so that what
 * follows has lines of its own. A descriptor at the file's end, owned by the caller. -EEXIST: what it has does not begin
 * with head; it is left alone. Otherwise errors of open() and write().
 */
int appended_file_open(const char *path, const char *head);

#endif
