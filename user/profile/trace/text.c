/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One document, in one buffer from which it is handed out as it is: room for the head, the events as they come, the
 * tail. The head is known only at the end.
 */
#include "profile/trace/trace.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hashmap.h"
#include "base/core/json.h"
#include "report/chrome/events.h"
#include "report/latency/latency.h"
#include "report/perfetto/events.h"

#define HEAD_ROOM 4096	     /* bytes; a longer head moves everything once more */
#define TRACK_BYTES 1024     /* about, of a track of a Perfetto trace, with what it has interned */
#define PROCESS (1ULL << 32) /* in place of a thread's number: the process itself */

/* ---- names ---- */

/* A thread of an unknown process belongs to this life. */
#define LIFE_UNKNOWN (~0u)

struct process_name {
	struct keyed keyed;
	struct model_process view; /* strings lie behind */
	char text[];
};

struct thread_name {
	struct keyed keyed;
	unsigned int life; /* sort index of its process: another process may get the same numbers later */
	char name[];
};

/* Both tables: the least recently updated come first. Threads are owned by their process. */
struct trace_names {
	struct keyed_table processes, threads;
	struct {
		__u32 tgid;
		unsigned int life;
	} ended[TRACE_NAMES_ENDED]; /* a ring: names of processes that have ended are kept for documents that are being made */
	size_t ended_count;	    /* so far */
	struct chrome_devices *devices;
	__u64 documents; /* made so far */
};

struct trace_names *trace_names_create(void)
{
	struct trace_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->devices = chrome_devices_create();
	if (!names->devices) {
		free(names);
		return NULL;
	}
	/* One more than are kept: see put_name(). */
	keyed_init(&names->processes, TRACE_NAMES_MAX + 1, NULL, NULL);
	keyed_init(&names->threads, TRACE_NAMES_MAX + 1, NULL, NULL);
	return names;
}

void trace_names_free(struct trace_names *names)
{
	if (!names)
		return;
	keyed_free(&names->processes);
	keyed_free(&names->threads);
	chrome_devices_free(names->devices);
	free(names);
}

static const struct model_process *find_process(const struct trace_names *names, __u32 tgid)
{
	struct keyed *keyed = keyed_find(&names->processes, tgid, 0);

	return keyed ? &container_of(keyed, struct process_name, keyed)->view : NULL;
}

static unsigned int life_of(const struct trace_names *names, __u32 tgid)
{
	const struct model_process *process = find_process(names, tgid);

	return process ? process->sort_index : LIFE_UNKNOWN;
}

static const char *find_thread(const struct trace_names *names, __u32 tgid, __u32 tid)
{
	struct keyed *keyed = keyed_find(&names->threads, tgid, tid);
	const struct thread_name *thread = keyed ? container_of(keyed, struct thread_name, keyed) : NULL;

	return thread && thread->life == life_of(names, tgid) ? thread->name : NULL;
}

/* Takes the entry over. Without memory the name before is kept. */
static void put_name(struct keyed_table *table, struct keyed *entry, __u32 tgid, __u32 tid)
{
	struct keyed *before = keyed_find(table, tgid, tid);

	if (keyed_add(table, entry, tgid, tgid, tid))
		free(entry);
	else if (before)
		keyed_drop(table, before);
	else if (keyed_full(table))
		keyed_drop(table, keyed_oldest(table));
}

static void add_process(struct trace_names *names, const struct model_process *from)
{
	const char *command = from->command ? from->command : "", *name = from->name ? from->name : "";
	size_t name_size = strlen(name) + 1, command_size = strlen(command) + 1;
	struct process_name *process = malloc(sizeof(*process) + name_size + command_size);

	if (!process)
		return;
	process->view = *from;
	process->view.name = memcpy(process->text, name, name_size);
	process->view.command = memcpy(process->text + name_size, command, command_size);
	put_name(&names->processes, &process->keyed, from->tgid, 0);
}

static void add_thread(struct trace_names *names, __u32 tgid, __u32 tid, const char *name)
{
	size_t size = strlen(name) + 1;
	struct thread_name *thread = malloc(sizeof(*thread) + size);

	if (!thread)
		return;
	memcpy(thread->name, name, size);
	thread->life = life_of(names, tgid);
	put_name(&names->threads, &thread->keyed, tgid, tid);
}

/* The process has ended. Names of the one that did so TRACE_NAMES_ENDED before it are dropped. */
static void end_process(struct trace_names *names, __u32 tgid)
{
	size_t place = names->ended_count % TRACE_NAMES_ENDED;
	__u32 oldest = names->ended[place].tgid;

	if (!find_process(names, tgid))
		return;
	/* Another process may have its number since. */
	if (names->ended_count >= TRACE_NAMES_ENDED && life_of(names, oldest) == names->ended[place].life) {
		keyed_drop_owner(&names->processes, oldest);
		keyed_drop_owner(&names->threads, oldest);
	}
	names->ended[place].tgid = tgid;
	names->ended[place].life = life_of(names, tgid);
	names->ended_count++;
}

void trace_names_event(struct trace_names *names, const struct event *event)
{
	if (event->kind == EVENT_TASK && event->task.what == XPT_TASK_EXIT)
		end_process(names, event->task.tgid);
	else if (event->kind == EVENT_PROCESS)
		add_process(names, event->process);
	else if (event->kind == EVENT_THREAD && event->thread.name)
		add_thread(names, event->thread.tgid, event->thread.tid, event->thread.name);
}

/* ---- documents ---- */

struct trace_text {
	struct trace_names *names;
	struct keyed_table seen; /* processes (PROCESS) and threads that something in it belongs to, in that order */
	struct keyed *last;	 /* thread of the event before */
	__u64 number;
	struct text out;
	bool packets;
	struct perfetto perfetto;
	struct chrome_events events; /* large, but what is not used is not touched */
};

static bool packets_begin(struct trace_text *text, const struct recording_info *info)
{
	text->number = ++text->names->documents;
	text->packets = true;
	if (!perfetto_open(&text->perfetto, &text->out, info, text->number))
		return true;
	trace_text_free(text);
	return false;
}

struct trace_text *trace_text_create(struct trace_names *names, const struct recording_info *packets)
{
	struct trace_text *text = calloc(1, sizeof(*text));

	if (!text)
		return NULL;
	text->names = names;
	keyed_init(&text->seen, SIZE_MAX, NULL, NULL);
	text->events.text = &text->out;
	if (packets)
		return packets_begin(text, packets) ? text : NULL;
	if (text_reserve(&text->out, HEAD_ROOM)) {
		free(text);
		return NULL;
	}
	text->out.length = HEAD_ROOM;
	text->events.jobs.devices = names->devices;
	text->number = ++names->documents;
	return text;
}

void trace_text_free(struct trace_text *text)
{
	if (!text)
		return;
	keyed_free(&text->seen);
	chrome_events_free(&text->events);
	if (text->packets)
		perfetto_close(&text->perfetto);
	text_free(&text->out);
	free(text);
}

size_t trace_text_bytes(const struct trace_text *text)
{
	return sizeof(*text) + text->out.capacity + chrome_jobs_bytes(&text->events.jobs) +
	       text->perfetto.tracks.map.count * TRACK_BYTES +
	       text->seen.map.count * (sizeof(struct keyed) + sizeof(struct map_node *));
}

bool trace_text_has(const struct trace_text *text, __u32 tgid)
{
	return tgid ? keyed_find(&text->seen, tgid, PROCESS) != NULL : text->seen.map.count > 0;
}

bool trace_text_has_queue(const struct trace_text *text, unsigned int queue)
{
	return text->packets ? perfetto_has_queue(&text->perfetto, queue) :
			       chrome_jobs_have_queue(&text->events.jobs, queue);
}

bool trace_text_has_device(const struct trace_text *text, const char *driver, const char *device)
{
	return text->packets ? perfetto_has_device(&text->perfetto, driver, device) :
			       chrome_jobs_have_device(&text->events.jobs, driver, device);
}

__u64 trace_text_number(const struct trace_text *text)
{
	return text->number;
}

/* ---- who is in it ---- */

static int see(struct trace_text *text, __u32 tgid, __u64 tid)
{
	struct keyed *keyed = keyed_find(&text->seen, tgid, tid);

	if (!keyed) {
		keyed = malloc(sizeof(*keyed));
		if (!keyed || keyed_add(&text->seen, keyed, 0, tgid, tid)) {
			free(keyed);
			return -ENOMEM;
		}
	}
	if (tid != PROCESS)
		text->last = keyed;
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
	if (text->packets)
		perfetto_events_add(&text->perfetto, event);
	else
		chrome_events_add(&text->events, event);
	error = out->error;
	if (error) {
		out->error = 0;
		out->length = length;
		text->events.any = any;
		chrome_jobs_forget_names(&text->events.jobs);
		if (text->packets)
			perfetto_forget(&text->perfetto);
	}
	return error;
}

/* Names come last, when as much as possible is known of those that were met. */
static int add_names(struct trace_text *text)
{
	const struct keyed *seen;
	struct event event;
	int error = 0;

	link_for_each(seen, &text->seen.all, age) {
		event = (struct event){ .kind = EVENT_THREAD };
		event.thread.tgid = (__u32)seen->node.a;
		event.thread.tid = (__u32)seen->node.b;
		if (seen->node.b == PROCESS) {
			event = (struct event){ .kind = EVENT_PROCESS };
			event.process = find_process(text->names, (__u32)seen->node.a);
			if (!event.process)
				continue;
		} else {
			event.thread.name = find_thread(text->names, event.thread.tgid, event.thread.tid);
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

/* The last packet of a Perfetto trace: which report it is, and the sums of its programs. */
static void add_packets_end(struct perfetto *perfetto, const struct xpt_profile_report *report)
{
	struct perfetto_track *track = perfetto_note(perfetto, "report ends");
	__u64 inferences = 0, samples = 0, lost = 0;

	if (!track)
		return;
	for (size_t i = 0; i < report->program_count; i++) {
		inferences += report->programs[i].inferences;
		samples += report->programs[i].taken;
		lost += report->programs[i].lost;
	}
	perfetto_argument_true(perfetto, track, "complete");
	perfetto_argument_any(perfetto, track, "profile", report->name);
	perfetto_argument(perfetto, track, "sequence", report->sequence);
	perfetto_argument_string(perfetto, track, "end_reason", latency_end_name(report->end_reason));
	perfetto_argument(perfetto, track, "start_ns", report->start);
	perfetto_argument(perfetto, track, "late", report->late);
	perfetto_argument(perfetto, track, "inferences", inferences);
	perfetto_argument(perfetto, track, "samples", samples);
	perfetto_argument(perfetto, track, "lost", lost);
	perfetto_point(perfetto, track, TYPE_INSTANT, report->end);
}

static int packets_finish(struct trace_text *text, struct xpt_profile_report *report)
{
	int error = text->out.error ?: add_names(text);

	if (error)
		return error;
	perfetto_devices_settle(&text->perfetto, true);
	perfetto_events_end(&text->perfetto);
	perfetto_release(&text->perfetto);
	add_packets_end(&text->perfetto, report);
	report->trace = report->trace_events = text->out.data;
	report->trace_length = report->trace_events_length = text->out.length;
	return text->out.error;
}

int trace_text_finish(struct trace_text *text, const struct recording_info *info, struct xpt_profile_report *report)
{
	struct text *out = &text->out;
	size_t begin = 0, moved, end;
	int error;

	if (text->packets)
		return packets_finish(text, report);
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
