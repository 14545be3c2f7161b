/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file of events in a format that needs no more than the events: written as a stream with constant memory; after every
 * flush the file on disk is one complete document. SIGPIPE and SIGXFSZ must be ignored.
 */
#ifndef XPT_REPORT_TRACE_EVENT_FILE_H
#define XPT_REPORT_TRACE_EVENT_FILE_H

#include <stdint.h>

#include "base/core/log.h"
#include "base/core/text.h"
#include "model/stream/event.h"

struct event_file;

struct event_format {
	const char *head, *tail;    /* before and behind all events */
	bool append;		    /* lines that are appended to those of the file; the head only into an empty one */
	size_t state_size;	    /* of what it has to remember; at least 1 */
	void (*begin)(void *state); /* state has only zeros; NULL: as it has to be */
	/* Appends what the event becomes. begin: time at which the recording began. Fails only through text.error. */
	void (*add)(void *state, struct text *text, const struct event *event, __u64 begin);
	/* At the end: reports what could not be shown. NULL: nothing. */
	void (*tell)(const void *state, const struct log *log);
	void (*clear)(void *state); /* frees what the state holds; NULL: nothing */
};

/* Whole microseconds, to the nearest. */
static inline __u64 whole_microseconds(__u64 nanoseconds)
{
	return nanoseconds / 1000 + (nanoseconds % 1000 >= 500);
}

/*
 * path NULL: descriptor is used and taken over. begin: as above. -EEXIST: the file at path has other contents and is
 * not appended to. Otherwise errors of open() and write().
 */
int event_file_create(const struct log *log, const struct event_format *format, const char *path, int descriptor,
		      __u64 begin, struct event_file **result);
struct event_sink event_file_sink(struct event_file *file);
int event_file_flush(struct event_file *file);
int event_file_close(struct event_file *file); /* and frees. 0 or the first error */
__u64 event_file_bytes(const struct event_file *file);
/* As those of chrome.h. */
int event_file_detach(struct event_file *file, const uint64_t *stopped);
int event_file_settle(struct event_file *file);
__u64 event_file_lost(const struct event_file *file);

#endif
