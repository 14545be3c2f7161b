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

/* ---- the message of arguments, as a FileDescriptorSet ---- */

enum field_type { FIELD_BOOL = 8, FIELD_MESSAGE = 11, FIELD_ENUM = 14, FIELD_SIGNED = 3, FIELD_UNSIGNED = 4 };

#define FIELD_REASON FIELD_ENUM
#define FIELD_PHASE FIELD_ENUM
#define OPTIONAL 1
#define PACKAGE "xputrace"

static const struct {
	const char *name;
	unsigned int number;
	enum field_type type;
	const char *type_name;
} fields[] = {
#define FIELD_TYPE_REASON "." PACKAGE ".Reason"
#define FIELD_TYPE_PHASE "." PACKAGE ".Phase"
#define FIELD_TYPE_UNSIGNED NULL
#define FIELD_TYPE_SIGNED NULL
#define FIELD_TYPE_BOOL NULL
#define X(symbol, number, type, name) { name, number, FIELD_##type, FIELD_TYPE_##type },
	PERFETTO_ARGUMENTS(X)
#undef X
};

static void add_field(struct text *text, unsigned int in, const char *name, unsigned int number, enum field_type type,
		      const char *type_name, const char *extendee)
{
	size_t field = pb_begin(text, in);

	pb_string(text, 1, name);
	if (extendee)
		pb_string(text, 2, extendee);
	pb_number(text, 3, number);
	pb_number(text, 4, OPTIONAL);
	pb_number(text, 5, type);
	if (type_name)
		pb_string(text, 6, type_name);
	pb_end(text, field);
}

static void add_value(struct text *text, const char *name, unsigned int number)
{
	size_t value = pb_begin(text, 2);

	pb_string(text, 1, name);
	pb_number(text, 2, number);
	pb_end(text, value);
}

static void add_enums(struct text *text)
{
	size_t type = pb_begin(text, 5);

	pb_string(text, 1, "Reason");
	for (enum xpt_off_cpu reason = XPT_OFF_CPU_PREEMPTED; reason <= XPT_OFF_CPU_OTHER; reason++)
		add_value(text, off_cpu_name(reason), reason);
	pb_end(text, type);
	type = pb_begin(text, 5);
	pb_string(text, 1, "Phase");
	add_value(text, "prefill", PHASE_PREFILL);
	add_value(text, "decode", PHASE_DECODE);
	pb_end(text, type);
}

/*
 * They become the field "debug" of an event: readers find them beside its other arguments. Of files with one name a reader takes the
 * first one only.
 */
static void add_arguments(struct text *text)
{
	size_t packet = pb_begin(text, TRACE_PACKET), extensions, set, file, message;

	pb_number(text, PACKET_SEQUENCE, HEAD_SEQUENCE);
	extensions = pb_begin(text, PACKET_EXTENSIONS);
	set = pb_begin(text, 1);
	file = pb_begin(text, 1);
	pb_string(text, 1, PACKAGE "/arguments" PERFETTO_ARGUMENTS_REVISION ".proto");
	pb_string(text, 2, PACKAGE);
	message = pb_begin(text, 4);
	pb_string(text, 1, "Arguments");
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		add_field(text, 2, fields[i].name, fields[i].number, fields[i].type, fields[i].type_name, NULL);
	pb_end(text, message);
	message = pb_begin(text, 4);
	pb_string(text, 1, "Event");
	add_field(text, 6, "debug", EVENT_ARGUMENTS, FIELD_MESSAGE, "." PACKAGE ".Arguments",
		  ".perfetto.protos.TrackEvent");
	pb_end(text, message);
	add_enums(text);
	pb_end(text, file);
	pb_end(text, set);
	pb_end(text, extensions);
	pb_end(text, packet);
}

/* ---- the head ---- */

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
	add_arguments(text);
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
		if (cause > XPT_LOSS_JOB_ENDS)
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
