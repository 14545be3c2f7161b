/* SPDX-License-Identifier: BSD-2-Clause */
/* The Perfetto trace as a file: its head, its end, and what becomes of events that are refused. */
#include "report/perfetto/perfetto.h"

#include <errno.h>
#include <string.h>

#include "report/perfetto/events.h"

struct state {
	struct perfetto perfetto;
	__u64 refused_until; /* start of the latest call left out from which an arrow would have begun */
};

#define HEAD_SEQUENCE 5

static void add_clock(struct text *text, unsigned int id, __u64 time)
{
	size_t clock = pb_begin(text, 1);

	pb_number(text, 1, id);
	pb_number(text, 2, time);
	pb_end(text, clock);
}

/* Times of the trace are CLOCK_MONOTONIC, as in all other outputs. */
static void add_clocks(struct text *text, const struct recording_info *info)
{
	size_t packet = pb_begin(text, TRACE_PACKET), snapshot;

	pb_number(text, PACKET_SEQUENCE, HEAD_SEQUENCE);
	pb_number(text, PACKET_FLAGS, FLAG_CLEARED);
	snapshot = pb_begin(text, PACKET_CLOCK_SNAPSHOT);
	add_clock(text, CLOCK_ID_MONOTONIC, info->monotonic_time);
	add_clock(text, CLOCK_ID_REALTIME, info->realtime);
	if (info->boot_time)
		add_clock(text, CLOCK_ID_BOOTTIME, info->boot_time);
	pb_number(text, 2, CLOCK_ID_MONOTONIC);
	pb_end(text, snapshot);
	pb_end(text, packet);
}

static void add_system(struct text *text, const struct recording_info *info)
{
	size_t packet = pb_begin(text, TRACE_PACKET), system, name;

	pb_number(text, PACKET_SEQUENCE, HEAD_SEQUENCE);
	system = pb_begin(text, PACKET_SYSTEM_INFO);
	name = pb_begin(text, 1);
	pb_string(text, 1, "Linux");
	pb_string(text, 3, info->kernel ?: "");
	pb_string(text, 4, info->machine ?: "");
	pb_end(text, name);
	if (info->cpus)
		pb_number(text, 8, info->cpus);
	pb_end(text, system);
	pb_end(text, packet);
}

/* By its name, so that it is found without what is interned. */
static void add_fact(struct perfetto *p, const char *name, const char *value)
{
	size_t argument = pb_begin(&p->body, EVENT_ARGUMENT);

	pb_string(&p->body, ARGUMENT_NAME, name);
	pb_string(&p->body, ARGUMENT_STRING, value ?: "");
	pb_end(&p->body, argument);
}

struct perfetto_track *perfetto_note(struct perfetto *p, const char *name)
{
	struct perfetto_track *track = perfetto_recording(p);

	if (!track)
		return NULL;
	perfetto_event(p, TYPE_INSTANT);
	perfetto_name(p, track, name);
	perfetto_category(p, track, "xputrace", "");
	return track;
}

static void add_origin(struct perfetto *p, const struct recording_info *info)
{
	struct perfetto_track *track = perfetto_note(p, "recording begins");

	if (!track)
		return;
	add_fact(p, "version", info->version);
	add_fact(p, "command", info->command);
	add_fact(p, "host", info->host);
	add_fact(p, "kernel", info->kernel);
	add_fact(p, "machine", info->machine);
	add_fact(p, "boot_id", info->boot_id);
	perfetto_argument_some(p, track, "cpus", info->cpus);
	perfetto_point(p, track, TYPE_INSTANT, info->monotonic_time);
}

int perfetto_open(struct perfetto *p, struct text *text, const struct recording_info *info, __u64 document)
{
	p->text = text;
	perfetto_tracks_open(p, info, document);
	if (perfetto_devices_open(p) || perfetto_stacks_open(p))
		return -ENOMEM;
	add_clocks(text, info);
	add_system(text, info);
	add_origin(p, info);
	return text->error;
}

void perfetto_close(struct perfetto *p)
{
	perfetto_tracks_close(p);
	perfetto_devices_close(p);
	perfetto_stacks_close(p);
}

void perfetto_forget(struct perfetto *p)
{
	p->generation++;
	perfetto_devices_forget(p);
	perfetto_stacks_forget(p);
}

/* ---- the file ---- */

static int begin(void *context, const struct recording_info *info, struct text *text)
{
	return perfetto_open(&((struct state *)context)->perfetto, text, info, 0);
}

static void clear(void *context)
{
	perfetto_close(&((struct state *)context)->perfetto);
}

static void add(void *context, struct text *text, const struct event *event)
{
	(void)text;
	perfetto_events_add(&((struct state *)context)->perfetto, event);
}

static void flush(void *context, struct text *text)
{
	struct perfetto *p = &((struct state *)context)->perfetto;

	(void)text;
	perfetto_devices_settle(p, false);
	perfetto_release(p);
}

static void end(void *context, struct text *text)
{
	struct perfetto *p = &((struct state *)context)->perfetto;

	(void)text;
	perfetto_devices_settle(p, true);
	perfetto_events_end(p);
	perfetto_release(p);
}

/* The last packet, with the totals of what is missing: a trace without it has been cut short. */
static void finish(void *context, struct text *tail, const struct model *model, int error)
{
	struct perfetto *p = &((struct state *)context)->perfetto;
	struct perfetto_track *track;
	__u64 unknown = 0;

	p->text = tail;
	track = perfetto_note(p, "recording ends");
	if (!track)
		return;
	if (model_end_text(model) && !error)
		perfetto_argument_true(p, track, "complete");
	perfetto_argument_any(p, track, "output_error", error ? strerror(-error) : NULL);
	for (int cause = 0; cause < XPT_LOSS_MAX; cause++) {
		if (cause > XPT_LOSS_STACK_COPIES)
			unknown += model_lost(model, cause);
		else
			perfetto_argument_some(p, track, loss_name(cause), model_lost(model, cause));
	}
	perfetto_argument_some(p, track, "unknown", unknown);
	perfetto_point(p, track, TYPE_INSTANT, model_last_time(model));
}

/* An arrow with its beginning left out must not end. */
static bool accepts(const void *context, const struct event *event)
{
	const struct state *state = context;

	return event->kind != EVENT_INFERENCE || !state->refused_until || event->inference.start > state->refused_until;
}

static void refused(void *context, const struct event *event)
{
	struct state *state = context;

	if (event->kind == EVENT_CALL && event->call.flow_out && event->call.start > state->refused_until)
		state->refused_until = event->call.start;
}

static void dropped(void *context, bool any)
{
	(void)any;
	perfetto_forget(&((struct state *)context)->perfetto);
}

const struct event_format perfetto_format = {
	.tail = "",
	.state_size = sizeof(struct state),
	.begin = begin,
	.add = add,
	.flush = flush,
	.end = end,
	.finish = finish,
	.accepts = accepts,
	.refused = refused,
	.dropped = dropped,
	.clear = clear,
};
