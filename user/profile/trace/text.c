/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One document, in one buffer from which it is handed out as it is: room for the head, the events as they come, the
 * tail. The head is known only at the end.
 */
#include "profile/trace/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hashmap.h"
#include "base/core/json.h"
#include "base/core/link.h"
#include "report/chrome/events.h"
#include "report/latency/latency.h"

#define HEAD_ROOM 4096	     /* bytes; a longer head moves everything once more */
#define PROCESS (1ULL << 32) /* in place of a thread's number: the process itself */

/* A process or thread that something in the document belongs to. */
struct seen {
	struct map_node node; /* tgid; tid or PROCESS */
	struct link link;
};

struct trace_text {
	struct trace_names *names;
	struct map seen;
	struct link list;  /* in the order in which they were met */
	struct seen *last; /* thread of the event before */
	__u64 number;
	struct text out;
	struct chrome_events events; /* large, but what is not used is not touched */
};

struct trace_text *trace_text_create(struct trace_names *names)
{
	struct trace_text *text = calloc(1, sizeof(*text));

	if (!text)
		return NULL;
	text->names = names;
	link_init(&text->list);
	text->events.text = &text->out;
	if (text_reserve(&text->out, HEAD_ROOM)) {
		free(text);
		return NULL;
	}
	text->out.length = HEAD_ROOM;
	text->events.jobs.devices = trace_names_devices(names);
	text->number = trace_names_document(names);
	return text;
}

void trace_text_free(struct trace_text *text)
{
	struct link *link, *following;

	if (!text)
		return;
	link_each(link, following, &text->list) free(container_of(link, struct seen, link));
	map_free(&text->seen);
	chrome_events_free(&text->events);
	text_free(&text->out);
	free(text);
}

size_t trace_text_bytes(const struct trace_text *text)
{
	return sizeof(*text) + text->out.capacity + chrome_jobs_bytes(&text->events.jobs) +
	       text->seen.count * (sizeof(struct seen) + sizeof(struct map_node *));
}

bool trace_text_has(const struct trace_text *text, __u32 tgid)
{
	return tgid ? map_find(&text->seen, tgid, PROCESS) != NULL : text->seen.count > 0;
}

bool trace_text_has_queue(const struct trace_text *text, unsigned int queue)
{
	return chrome_jobs_have_queue(&text->events.jobs, queue);
}

bool trace_text_has_device(const struct trace_text *text, const char *driver, const char *device)
{
	return chrome_jobs_have_device(&text->events.jobs, driver, device);
}

__u64 trace_text_number(const struct trace_text *text)
{
	return text->number;
}

/* ---- who is in it ---- */

static int see(struct trace_text *text, __u32 tgid, __u64 tid)
{
	struct map_node *node = map_find(&text->seen, tgid, tid);
	struct seen *seen = node ? container_of(node, struct seen, node) : malloc(sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	if (!node) {
		if (map_add(&text->seen, &seen->node, tgid, tid)) {
			free(seen);
			return -ENOMEM;
		}
		link_append(&text->list, &seen->link);
	}
	if (tid != PROCESS)
		text->last = seen;
	return 0;
}

static int see_thread(struct trace_text *text, __u32 tgid, __u32 tid)
{
	int error;

	if (text->last && text->last->node.a == tgid && text->last->node.b == tid)
		return 0;
	error = see(text, tgid, PROCESS);
	if (!error)
		error = see(text, tgid, tid);
	/* The place of what concerns no process. */
	if (!text->events.first_tgid)
		text->events.first_tgid = tgid;
	return error;
}

static int see_event(struct trace_text *text, const struct event *event)
{
	const struct event_inference *inference = &event->inference;
	int error;

	switch (event->kind) {
	case EVENT_CALL:
		return see_thread(text, event->call.tgid, event->call.tid);
	case EVENT_REGION:
		return see_thread(text, event->region.tgid, event->region.tid);
	case EVENT_IOCTL:
		return see_thread(text, event->ioctl.tgid, event->ioctl.tid);
	case EVENT_INFERENCE:
		error = see_thread(text, inference->tgid, inference->tid);
		if (!error && inference->wait_tid)
			error = see_thread(text, inference->tgid, inference->wait_tid);
		return error;
	case EVENT_PROGRAM:
		return see_thread(text, event->program.program->process->tgid, event->program.program->process->tgid);
	case EVENT_TASK:
		return see_thread(text, event->task.tgid, event->task.tid ? event->task.tid : event->task.tgid);
	default:
		return 0; /* of a process that is in it already, of a device, or of none */
	}
}

/* ---- growing ---- */

int trace_text_add(struct trace_text *text, const struct event *event)
{
	struct text *out = &text->out;
	size_t length = out->length;
	bool any = text->events.any;
	int error = see_event(text, event);

	if (error)
		return error;
	chrome_events_add(&text->events, event);
	error = out->error;
	if (error) {
		out->error = 0;
		out->length = length;
		text->events.any = any;
		chrome_jobs_forget_names(&text->events.jobs);
	}
	return error;
}

/* Names come last, when as much as possible is known of those that were met. */
static int add_names(struct trace_text *text)
{
	struct link *link, *following;
	struct model_process process;
	struct event event;
	struct seen *seen;
	int error = 0;

	link_each(link, following, &text->list)
	{
		seen = container_of(link, struct seen, link);
		event = (struct event){ .kind = EVENT_THREAD };
		event.thread.tgid = (__u32)seen->node.a;
		event.thread.tid = (__u32)seen->node.b;
		if (seen->node.b != PROCESS) {
			event.thread.name = trace_names_thread(text->names, event.thread.tgid, event.thread.tid);
		} else if (trace_names_process(text->names, event.thread.tgid, &process)) {
			event.kind = EVENT_PROCESS;
			event.process = &process;
		} else {
			continue;
		}
		if (!error)
			error = trace_text_add(text, &event);
	}
	return error;
}

/* ---- completing ---- */

static void add_program(struct text *out, const struct xpt_program_report *program)
{
	json_begin(out, NULL, '{');
	json_add_unsigned(out, "id", program->id);
	json_add_text(out, "name", program->name);
	json_add_text(out, "runtime", program->runtime);
	json_add_unsigned(out, "pid", (__u32)program->pid);
	json_add_text(out, "process", program->process);
	json_add_hexadecimal(out, "handle", program->handle);
	json_add_unsigned(out, "generation", program->generation);
	json_add_unsigned(out, "sample_every", program->sample_every);
	json_add_nonzero(out, "requested", program->requested);
	json_add_unsigned(out, "skipped", program->skipped);
	json_add_unsigned(out, "inferences", program->inferences);
	json_add_unsigned(out, "samples", program->taken);
	json_add_unsigned(out, "lost", program->lost);
	json_add_unsigned(out, "failed", program->failed);
	json_add_bool(out, "released", program->released);
	json_end(out, '}');
}

static void add_programs(struct text *out, const struct xpt_profile_report *report)
{
	__u64 inferences = 0, samples = 0, lost = 0;

	json_newline(out);
	json_begin(out, "programs", '[');
	for (size_t i = 0; i < report->program_count; i++) {
		json_newline(out);
		add_program(out, &report->programs[i]);
		inferences += report->programs[i].inferences;
		samples += report->programs[i].taken;
		lost += report->programs[i].lost;
	}
	json_end(out, ']');
	json_add_unsigned(out, "inferences", inferences);
	json_add_unsigned(out, "samples", samples);
	json_add_unsigned(out, "lost", lost);
}

static void add_tail(struct text *out, const struct recording_info *info, const struct xpt_profile_report *report)
{
	text_literal(out, "\n]");
	json_begin(out, "metadata", '{');
	json_add_bool(out, "complete", true);
	chrome_metadata_origin(out, info);
	json_add_text(out, "profile", report->name);
	json_add_unsigned(out, "sequence", report->sequence);
	json_add_text(out, "end_reason", latency_end_name(report->end_reason));
	json_add_microseconds(out, "start_us", report->start);
	json_add_microseconds(out, "end_us", report->end);
	json_add_long(out, "start_realtime_ns", report->start_realtime);
	json_add_long(out, "end_realtime_ns", report->end_realtime);
	json_add_unsigned(out, "late", report->late);
	add_programs(out, report);
	text_literal(out, "}}");
}

/* Puts the head in front of the events; *begin is where the document begins then. */
static int put_head(struct text *out, const struct recording_info *info, size_t *begin)
{
	struct text head = { 0 };
	size_t more;

	text_literal(&head, "{\"displayTimeUnit\":\"ns\",\"otherData\":{");
	chrome_metadata_origin(&head, info);
	text_literal(&head, "},\"traceEvents\":[");
	if (head.error)
		goto out;
	more = head.length > HEAD_ROOM ? head.length - HEAD_ROOM : 0;
	if (more) {
		head.error = text_reserve(out, more);
		if (head.error)
			goto out;
		memmove(out->data + HEAD_ROOM + more, out->data + HEAD_ROOM, out->length - HEAD_ROOM);
		out->length += more;
	}
	*begin = HEAD_ROOM + more - head.length;
	memcpy(out->data + *begin, head.data, head.length);
out:
	text_free(&head);
	return head.error;
}

int trace_text_finish(struct trace_text *text, const struct recording_info *info, struct xpt_profile_report *report)
{
	struct text *out = &text->out;
	size_t begin = 0, moved, end;
	int error;

	chrome_jobs_end(&text->events);
	error = out->error ? out->error : add_names(text);
	if (error)
		return error;
	end = out->length;
	add_tail(out, info, report);
	if (out->error)
		return out->error;
	moved = out->length;
	error = put_head(out, info, &begin);
	if (error)
		return error;
	moved = out->length - moved;
	report->trace = out->data + begin;
	report->trace_length = out->length - begin;
	report->trace_events = out->data + HEAD_ROOM + moved;
	report->trace_events_length = end - HEAD_ROOM;
	return 0;
}
