/* SPDX-License-Identifier: BSD-2-Clause */
/* The Chrome trace as a document: what is around the events, and what becomes of those that are refused. */
#include "report/chrome/chrome.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/chrome/events.h"

struct chrome {
	struct recording_info info; /* strings owned */
	__u64 refused_until;	    /* start of the latest call left out from which an arrow would have begun */
	struct chrome_devices *devices;
	struct chrome_events events;
};

/* The strings of a recording's description, which are copied. */
static const size_t info_strings[] = {
	offsetof(struct recording_info, host),	  offsetof(struct recording_info, kernel),
	offsetof(struct recording_info, machine), offsetof(struct recording_info, version),
	offsetof(struct recording_info, command), offsetof(struct recording_info, boot_id),
};

#define INFO_STRINGS (sizeof(info_strings) / sizeof(info_strings[0]))

static char **info_string(struct recording_info *info, size_t index)
{
	return (char **)((char *)info + info_strings[index]);
}

static int info_copy(struct recording_info *to, const struct recording_info *from)
{
	int error = 0;

	*to = *from;
	for (size_t i = 0; i < INFO_STRINGS; i++) {
		char **string = info_string(to, i);

		*string = strdup(*string ?: "");
		error = *string ? error : -ENOMEM;
	}
	return error;
}

static int begin(void *context, const struct recording_info *info, struct text *text)
{
	struct chrome *chrome = context;

	chrome->devices = chrome->events.jobs.devices = chrome_devices_create();
	chrome->events.text = text;
	if (info_copy(&chrome->info, info) || !chrome->devices)
		return -ENOMEM;
	text_literal(text, "{\"displayTimeUnit\":\"ns\",\"otherData\":{");
	chrome_metadata_origin(text, info);
	text_literal(text, "},\"traceEvents\":[");
	return 0;
}

static void clear(void *context)
{
	struct chrome *chrome = context;

	for (size_t i = 0; i < INFO_STRINGS; i++)
		free(*info_string(&chrome->info, i));
	chrome_events_free(&chrome->events);
	chrome_devices_free(chrome->devices);
}

static void add(void *context, struct text *text, const struct event *event)
{
	(void)text;
	chrome_events_add(&((struct chrome *)context)->events, event);
}

static void flush(void *context, struct text *text)
{
	(void)text;
	chrome_jobs_settle(&((struct chrome *)context)->events);
}

static void end(void *context, struct text *text)
{
	(void)text;
	chrome_jobs_end(&((struct chrome *)context)->events);
}

static void finish(void *context, struct text *tail, const struct model *model, int error)
{
	const struct chrome *chrome = context;

	text_literal(tail, "\n]");
	chrome_metadata_totals(tail, &chrome->info, model, chrome->devices, error);
	text_literal(tail, "}");
}

/* An arrow with its beginning left out must not end. */
static bool accepts(const void *context, const struct event *event)
{
	const struct chrome *chrome = context;

	return event->kind != EVENT_INFERENCE || !chrome->refused_until ||
	       event->inference.start > chrome->refused_until;
}

static void refused(void *context, const struct event *event)
{
	struct chrome *chrome = context;

	if (event->kind == EVENT_CALL && event->call.flow_out && event->call.start > chrome->refused_until)
		chrome->refused_until = event->call.start;
}

static void dropped(void *context, bool any)
{
	struct chrome_events *events = &((struct chrome *)context)->events;

	chrome_jobs_forget_names(&events->jobs);
	events->counters = events->budget = false;
	events->any = any;
}

void chrome_warn_size(const struct log *log, __u64 bytes)
{
	log_warn(log,
		 "the trace gets larger than %.3g GB, which viewers do not open: record into FILE.xpt, and take parts of it with "
		 "xputrace report --from, --to, --program or --slowest",
		 bytes / 1e9);
}

const struct event_format chrome_format = {
	/* Nothing follows the last brace: Perfetto takes a byte there for an error when it happens to begin a new block. */
	.tail = "\n],\"metadata\":{\"complete\":false}}",
	.state_size = sizeof(struct chrome),
	.begin = begin,
	.add = add,
	.flush = flush,
	.end = end,
	.finish = finish,
	.accepts = accepts,
	.refused = refused,
	.dropped = dropped,
	.warn_size = chrome_warn_size,
	.clear = clear,
};
