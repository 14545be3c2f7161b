/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/perfetto/track.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/vec.h"
#include "describe/runtime/description.h"
#include "report/chrome/parts.h"

/* ---- numbers ---- */

/* Other in each trace, so that several may be put together. */
__u64 perfetto_uuid(struct perfetto *perfetto)
{
	return perfetto->uuid_base + ++perfetto->uuids;
}

__u32 perfetto_sequence(struct perfetto *perfetto)
{
	return ++perfetto->sequences;
}

/* ---- interned data ---- */

static void packet_interned(struct perfetto *perfetto, __u32 sequence, const struct perfetto_interned *interned)
{
	struct text *text = perfetto->text;
	size_t packet = pb_begin(text, TRACE_PACKET), data;

	pb_number(text, PACKET_SEQUENCE, sequence);
	pb_number(text, PACKET_FLAGS, FLAG_NEEDS_STATE);
	data = pb_begin(text, PACKET_INTERNED);
	pb_bytes(text, interned->field, interned->bytes, interned->length);
	pb_end(text, data);
	pb_end(text, packet);
}

void perfetto_track_forget(struct perfetto_track *track)
{
	struct perfetto_interned *next;

	for (struct perfetto_interned *interned = track->interned; interned; interned = next) {
		next = interned->next;
		free(interned);
	}
	map_free(&track->map);
	track->map = (struct map){ 0 };
	track->interned = track->last_name = track->last_category = NULL;
	track->function = NULL;
	memset(track->iids, 0, sizeof(track->iids));
}

static void add_defaults(struct text *text, const struct perfetto_track *track)
{
	size_t defaults = pb_begin(text, PACKET_DEFAULTS), event;

	pb_number(text, PACKET_CLOCK, CLOCK_ID_SEQUENCE);
	event = pb_begin(text, PACKET_TRACK_EVENT);
	pb_number(text, 11, track->uuid);
	if (track->counter)
		pb_number(text, 31, track->counter);
	pb_end(text, event);
	pb_end(text, defaults);
}

/* The begin of a sequence, with all that it has named so far: what held events refer to is still right. */
void perfetto_track_begin(struct perfetto *perfetto, struct perfetto_track *track)
{
	struct text *text = perfetto->text;
	size_t packet, snapshot, clock;

	if (track->generation == perfetto->generation)
		return;
	track->generation = perfetto->generation;
	track->counter = 0; /* it may have been forgotten as well */
	packet = pb_begin(text, TRACE_PACKET);
	pb_number(text, PACKET_SEQUENCE, track->sequence);
	pb_bytes(text, PACKET_DESCRIPTOR, track->descriptor.data, track->descriptor.length);
	pb_end(text, packet);
	packet = pb_begin(text, TRACE_PACKET);
	pb_number(text, PACKET_SEQUENCE, track->sequence);
	pb_number(text, PACKET_FLAGS, FLAG_CLEARED);
	snapshot = pb_begin(text, PACKET_CLOCK_SNAPSHOT);
	clock = pb_begin(text, 1);
	pb_number(text, 1, CLOCK_ID_SEQUENCE);
	pb_number(text, 2, track->time);
	pb_number(text, 3, true);
	pb_end(text, clock);
	clock = pb_begin(text, 1);
	pb_number(text, 1, CLOCK_ID_MONOTONIC);
	pb_number(text, 2, track->time);
	pb_end(text, clock);
	pb_end(text, snapshot);
	add_defaults(text, track);
	pb_end(text, packet);
	for (const struct perfetto_interned *interned = track->interned; interned; interned = interned->next)
		packet_interned(perfetto, track->sequence, interned);
}

void perfetto_track_counter(struct perfetto *perfetto, struct perfetto_track *track, __u64 uuid)
{
	size_t packet = pb_begin(perfetto->text, TRACE_PACKET);

	track->counter = uuid;
	pb_number(perfetto->text, PACKET_SEQUENCE, track->sequence);
	add_defaults(perfetto->text, track);
	pb_end(perfetto->text, packet);
}

/* message: what follows the iid. string: by which it is found; NULL: by the key alone. NULL: no memory. */
static struct perfetto_interned *intern_message(struct perfetto *perfetto, struct perfetto_track *track,
						unsigned int field, __u64 key, const char *string,
						const struct text *message)
{
	unsigned char iid[2 * PB_VARINT_MAX] = { 1 << 3 };
	size_t size, string_size = string ? strlen(string) + 1 : 0;
	struct perfetto_interned *interned;

	size = (size_t)(pb_put(iid + 1, ++track->iids[field]) - iid);
	interned = message->error ? NULL : malloc(sizeof(*interned) + size + message->length + string_size);
	if (!interned || map_add(&track->map, &interned->node, field | (__u64)!string << 32, key)) {
		free(interned);
		text_fail(perfetto->text);
		return NULL;
	}
	memcpy(interned->bytes, iid, size);
	memcpy(interned->bytes + size, message->data, message->length);
	interned->length = size + message->length;
	interned->string = string ? memcpy(interned->bytes + interned->length, string, string_size) : NULL;
	interned->field = field;
	interned->iid = track->iids[field];
	interned->next = track->interned;
	track->interned = interned;
	if (track->generation == perfetto->generation)
		packet_interned(perfetto, track->sequence, interned);
	else
		perfetto_track_begin(perfetto, track);
	return interned;
}

static struct perfetto_interned *find_interned(const struct perfetto_track *track, unsigned int field, __u64 key,
					       const char *string)
{
	struct map_node *node = map_find(&track->map, field | (__u64)!string << 32, key);

	for (; node; node = map_next(node)) {
		struct perfetto_interned *interned = container_of(node, struct perfetto_interned, node);

		if (!string || !strcmp(interned->string, string))
			return interned;
	}
	return NULL;
}

/* *last: the one of this kind that was used before. 0: no memory. */
static __u32 intern_string(struct perfetto *perfetto, struct perfetto_track *track, unsigned int field,
			   const char *string, struct perfetto_interned **last)
{
	struct perfetto_interned *interned;
	struct text message = { 0 };
	__u64 key;

	if (*last && !strcmp((*last)->string, string))
		return (*last)->iid;
	key = text_hash(string);
	interned = find_interned(track, field, key, string);
	if (!interned) {
		pb_string(&message, 2, string);
		interned = intern_message(perfetto, track, field, key, string, &message);
		text_free(&message);
	}
	*last = interned;
	return interned ? interned->iid : 0;
}

/* ---- tracks ---- */

static __u64 track_key(enum perfetto_kind kind, __u32 number)
{
	return (__u64)kind << 32 | number;
}

struct perfetto_track *perfetto_find(const struct perfetto *perfetto, enum perfetto_kind kind, __u32 number, __u64 id)
{
	struct keyed *keyed = keyed_find(&perfetto->tracks, track_key(kind, number), id);

	return keyed ? container_of(keyed, struct perfetto_track, keyed) : NULL;
}

static void track_free(void *context, struct keyed *keyed)
{
	struct perfetto_track *track = container_of(keyed, struct perfetto_track, keyed);
	struct perfetto *perfetto = context;

	perfetto_track_release(perfetto, track);
	if (perfetto->last == track)
		perfetto->last = NULL;
	perfetto_track_forget(track);
	text_free(&track->descriptor);
	text_free(&track->bytes);
	free(track->held);
	free(track->arrows);
	free(track);
}

struct perfetto_track *perfetto_add(struct perfetto *perfetto, enum perfetto_kind kind, __u32 owner, __u32 number,
				    __u64 id)
{
	struct perfetto_track *track = calloc(1, sizeof(*track));

	if (!track || keyed_add(&perfetto->tracks, &track->keyed, owner, track_key(kind, number), id)) {
		free(track);
		text_fail(perfetto->text);
		return NULL;
	}
	track->uuid = perfetto_uuid(perfetto);
	track->sequence = perfetto_sequence(perfetto);
	track->time = perfetto->start;
	return track;
}

struct text *perfetto_describe(struct perfetto_track *track, const struct perfetto_track *parent)
{
	track->descriptor.length = 0;
	pb_number(&track->descriptor, 1, track->uuid);
	if (parent)
		pb_number(&track->descriptor, 5, parent->uuid);
	return &track->descriptor;
}

void perfetto_described(struct perfetto *perfetto, struct perfetto_track *track)
{
	struct text *text = perfetto->text;
	size_t packet;

	if (track->descriptor.error)
		text_fail(text);
	if (track->generation != perfetto->generation) {
		perfetto_track_begin(perfetto, track);
		return;
	}
	packet = pb_begin(text, TRACE_PACKET);
	pb_number(text, PACKET_SEQUENCE, track->sequence);
	pb_bytes(text, PACKET_DESCRIPTOR, track->descriptor.data, track->descriptor.length);
	pb_end(text, packet);
}

struct perfetto_track *perfetto_named(struct perfetto *perfetto, const struct perfetto_track *parent,
				      enum perfetto_kind kind, __u32 number, __u64 id, const char *name,
				      const char *unit)
{
	struct perfetto_track *track = perfetto_find(perfetto, kind, number, id);
	struct text *descriptor;
	size_t counter;

	if (track)
		return track;
	track = perfetto_add(perfetto, kind, 0, number, id);
	if (!track)
		return NULL;
	descriptor = perfetto_describe(track, parent);
	pb_string(descriptor, 2, name);
	if (unit) {
		counter = pb_begin(descriptor, 8);
		pb_string(descriptor, 6, unit);
		pb_end(descriptor, counter);
	}
	perfetto_described(perfetto, track);
	return track;
}

struct perfetto_track *perfetto_recording(struct perfetto *perfetto)
{
	return perfetto_named(perfetto, NULL, TRACK_RECORDING, 0, 0, "xputrace", NULL);
}

static void describe_process(struct perfetto *perfetto, struct perfetto_track *track,
			     const struct model_process *process)
{
	struct text *descriptor = perfetto_describe(track, NULL);
	const char *command = process && process->command ? process->command : "";
	size_t message = pb_begin(descriptor, 3);

	pb_number(descriptor, 1, (__u32)track->keyed.node.a);
	if (*command)
		pb_string(descriptor, 2, command);
	if (process)
		pb_string(descriptor, 6, process->name ?: "");
	if (*command) /* readers show it beside the name */
		pb_string(descriptor, 8, command);
	pb_end(descriptor, message);
	perfetto_described(perfetto, track);
}

struct perfetto_track *perfetto_process(struct perfetto *perfetto, __u32 tgid)
{
	struct perfetto_track *track = perfetto_find(perfetto, TRACK_PROCESS, tgid, 0);

	if (track)
		return track;
	track = perfetto_add(perfetto, TRACK_PROCESS, tgid, tgid, 0);
	if (track)
		describe_process(perfetto, track, NULL);
	return track;
}

void perfetto_process_named(struct perfetto *perfetto, const struct model_process *process)
{
	struct perfetto_track *track = perfetto_find(perfetto, TRACK_PROCESS, process->tgid, 0);

	/* Another process with the number of one that is gone. */
	if (track && track->start_time && process->start_time && track->start_time != process->start_time) {
		keyed_drop_owner(&perfetto->tracks, process->tgid);
		track = NULL;
	}
	track = track ?: perfetto_add(perfetto, TRACK_PROCESS, process->tgid, process->tgid, 0);
	if (!track)
		return;
	track->start_time = process->start_time;
	describe_process(perfetto, track, process);
}

static void describe_thread(struct perfetto *perfetto, struct perfetto_track *track, const char *name)
{
	const __u32 tgid = (__u32)track->keyed.node.a;
	const struct perfetto_track *process = perfetto_process(perfetto, tgid);
	struct text *descriptor = perfetto_describe(track, process);
	size_t message = pb_begin(descriptor, 4);

	pb_number(descriptor, 1, tgid);
	pb_number(descriptor, 2, track->keyed.node.b);
	if (name)
		pb_string(descriptor, 5, name);
	pb_end(descriptor, message);
	perfetto_described(perfetto, track);
}

struct perfetto_track *perfetto_thread(struct perfetto *perfetto, __u32 tgid, __u32 tid)
{
	struct perfetto_track *track = perfetto->last;

	if (track && track->keyed.node.a == track_key(TRACK_THREAD, tgid) && track->keyed.node.b == tid)
		return track;
	track = perfetto_find(perfetto, TRACK_THREAD, tgid, tid);
	if (!track) {
		track = perfetto_add(perfetto, TRACK_THREAD, tgid, tgid, tid);
		if (track)
			describe_thread(perfetto, track, NULL);
	}
	perfetto->last = track;
	return track;
}

void perfetto_thread_named(struct perfetto *perfetto, __u32 tgid, __u32 tid, const char *name)
{
	struct perfetto_track *track = perfetto_find(perfetto, TRACK_THREAD, tgid, tid);

	track = track ?: perfetto_add(perfetto, TRACK_THREAD, tgid, tgid, tid);
	if (track)
		describe_thread(perfetto, track, name);
}

/* ---- lanes ---- */

struct spans {
	struct keyed keyed;
	struct lanes lanes;
	__u32 first; /* of the tracks, in perfetto->asides */
	__u32 tracks[CHROME_LANES_MAX];
};

static void spans_free(void *context, struct keyed *keyed)
{
	struct spans *spans = container_of(keyed, struct spans, keyed);
	struct perfetto *perfetto = context;

	lanes_free(&spans->lanes, &perfetto->lane_budget);
	free(spans);
}

struct perfetto_track *perfetto_lane(struct perfetto *perfetto, const struct perfetto_track *parent, __u32 tgid,
				     __u64 key, const char *name, __u64 start, __u64 end)
{
	struct keyed *keyed = keyed_find(&perfetto->spans, tgid, key);
	struct spans *spans = keyed ? container_of(keyed, struct spans, keyed) : calloc(1, sizeof(*spans));
	int lane;

	if (!keyed && (!spans || keyed_add(&perfetto->spans, &spans->keyed, tgid, tgid, key))) {
		free(spans);
		text_fail(perfetto->text);
		return NULL;
	}
	lane = lanes_take(&spans->lanes, start, end, &perfetto->lane_budget);
	/* Without a free one it gets a track for itself. */
	if (lane < 0)
		return perfetto_named(perfetto, parent, TRACK_ASYNC, 0, ++perfetto->asides, name, NULL);
	if (!spans->tracks[lane])
		spans->tracks[lane] = (__u32)++perfetto->asides;
	return perfetto_named(perfetto, parent, TRACK_ASYNC, 0, spans->tracks[lane], name, NULL);
}

/* ---- the fields of an event ---- */

void perfetto_event(struct perfetto *perfetto, unsigned int type)
{
	perfetto->body.length = perfetto->end.length = perfetto->arguments.length = 0;
	pb_number(&perfetto->body, EVENT_TYPE, type);
}

void perfetto_name(struct perfetto *perfetto, struct perfetto_track *track, const char *name)
{
	pb_number(&perfetto->body, EVENT_NAME, intern_string(perfetto, track, INTERNED_NAME, name, &track->last_name));
}

void perfetto_category(struct perfetto *perfetto, struct perfetto_track *track, const char *what, const char *source)
{
	char category[256];

	snprintf(category, sizeof(category), *source ? "%s,%s" : "%s", what, source);
	pb_number(&perfetto->body, EVENT_CATEGORY,
		  intern_string(perfetto, track, INTERNED_CATEGORY, category, &track->last_category));
}

/* By a pointer to what it is made of. string2 may be NULL. */
static __u32 intern_pointer(struct perfetto *perfetto, struct perfetto_track *track, unsigned int field,
			    const void *pointer, const char *string, const char *string2)
{
	struct perfetto_interned *interned = find_interned(track, field, (__u64)(unsigned long)pointer, NULL);
	struct text message = { 0 };

	if (interned)
		return interned->iid;
	pb_string(&message, 2, string);
	if (string2)
		pb_string(&message, 3, string2);
	interned = intern_message(perfetto, track, field, (__u64)(unsigned long)pointer, NULL, &message);
	text_free(&message);
	return interned ? interned->iid : 0;
}

void perfetto_function(struct perfetto *perfetto, struct perfetto_track *track, const struct model_function *function)
{
	const char *role = role_name(function->role);
	char category[256];

	if (track->function != function) {
		snprintf(category, sizeof(category), "%s,%s", function->runtime, role);
		track->function_category = intern_pointer(perfetto, track, INTERNED_CATEGORY, function, category, NULL);
		track->function_source = intern_pointer(perfetto, track, INTERNED_SOURCE, function, function->runtime,
							function->name);
		track->function = function;
	}
	pb_number(&perfetto->body, EVENT_CATEGORY, track->function_category);
	pb_number(&perfetto->body, EVENT_SOURCE, track->function_source);
}

/* ---- arguments ---- */

void perfetto_field(struct perfetto *perfetto, enum perfetto_argument argument, __u64 value)
{
	pb_number(&perfetto->arguments, argument, value);
}

void perfetto_field_some(struct perfetto *perfetto, enum perfetto_argument argument, __u64 value)
{
	if (value)
		pb_number(&perfetto->arguments, argument, value);
}

static size_t argument_begin(struct perfetto *perfetto, struct perfetto_track *track, const char *key)
{
	__u32 name = intern_pointer(perfetto, track, INTERNED_ARGUMENT, key, key, NULL);
	size_t argument = pb_begin(&perfetto->body, EVENT_ARGUMENT);

	pb_number(&perfetto->body, 1, name);
	return argument;
}

static void argument_number(struct perfetto *perfetto, struct perfetto_track *track, const char *key,
			    unsigned int field, __u64 value)
{
	size_t argument = argument_begin(perfetto, track, key);

	pb_number(&perfetto->body, field, value);
	pb_end(&perfetto->body, argument);
}

void perfetto_argument(struct perfetto *perfetto, struct perfetto_track *track, const char *key, __u64 value)
{
	argument_number(perfetto, track, key, ARGUMENT_UNSIGNED, value);
}

void perfetto_argument_signed(struct perfetto *perfetto, struct perfetto_track *track, const char *key, __s64 value)
{
	argument_number(perfetto, track, key, ARGUMENT_SIGNED, (__u64)value);
}

void perfetto_argument_pointer(struct perfetto *perfetto, struct perfetto_track *track, const char *key, __u64 value)
{
	argument_number(perfetto, track, key, ARGUMENT_POINTER, value);
}

void perfetto_argument_true(struct perfetto *perfetto, struct perfetto_track *track, const char *key)
{
	argument_number(perfetto, track, key, ARGUMENT_BOOL, true);
}

void perfetto_argument_real(struct perfetto *perfetto, struct perfetto_track *track, const char *key, double value)
{
	size_t argument = argument_begin(perfetto, track, key);

	pb_double(&perfetto->body, ARGUMENT_DOUBLE, value);
	pb_end(&perfetto->body, argument);
}

void perfetto_argument_string(struct perfetto *perfetto, struct perfetto_track *track, const char *key,
			      const char *value)
{
	size_t argument = argument_begin(perfetto, track, key);

	pb_string(&perfetto->body, ARGUMENT_STRING, value);
	pb_end(&perfetto->body, argument);
}

void perfetto_argument_interned(struct perfetto *perfetto, struct perfetto_track *track, const char *key,
				const char *value)
{
	struct perfetto_interned *any = NULL;
	size_t argument;
	__u32 iid;

	if (!value || !*value)
		return;
	iid = intern_string(perfetto, track, INTERNED_STRING, value, &any);
	argument = argument_begin(perfetto, track, key);
	pb_number(&perfetto->body, ARGUMENT_INTERNED, iid);
	pb_end(&perfetto->body, argument);
}

void perfetto_argument_strings(struct perfetto *perfetto, struct perfetto_track *track, const char *key,
			       const char *const *values, size_t count)
{
	size_t argument = argument_begin(perfetto, track, key), element;

	for (size_t i = 0; i < count; i++) {
		element = pb_begin(&perfetto->body, ARGUMENT_ARRAY);
		pb_string(&perfetto->body, ARGUMENT_STRING, values[i]);
		pb_end(&perfetto->body, element);
	}
	pb_end(&perfetto->body, argument);
}

void perfetto_argument_some(struct perfetto *perfetto, struct perfetto_track *track, const char *key, __u64 value)
{
	if (value)
		perfetto_argument(perfetto, track, key, value);
}

void perfetto_argument_any(struct perfetto *perfetto, struct perfetto_track *track, const char *key, const char *value)
{
	if (value && *value)
		perfetto_argument_string(perfetto, track, key, value);
}

/* ---- the trace ---- */

void perfetto_tracks_open(struct perfetto *perfetto, const struct recording_info *info, __u64 document)
{
	__u64 base = hash_bytes(HASH_BEGIN, &info->monotonic_time, sizeof(info->monotonic_time));

	base = hash_bytes(hash_bytes(base, info->boot_id ?: "", strlen(info->boot_id ?: "")), &document,
			  sizeof(document));

	perfetto->generation = 1;
	perfetto->start = info->monotonic_time;
	/* Below 2^63: readers take them for signed. */
	perfetto->uuid_base = base >> 1 & ~0xffffffffull;
	perfetto->flow_base = base >> 1 & ~((1ull << PERFETTO_FLOW_BITS) - 1);
	perfetto->sequences = PERFETTO_SEQUENCES;
	keyed_init(&perfetto->tracks, PERFETTO_TRACKS_MAX, track_free, perfetto);
	keyed_init(&perfetto->spans, PERFETTO_TRACKS_MAX, spans_free, perfetto);
}

void perfetto_tracks_close(struct perfetto *perfetto)
{
	keyed_free(&perfetto->tracks);
	keyed_free(&perfetto->spans);
	text_free(&perfetto->body);
	text_free(&perfetto->end);
	text_free(&perfetto->arguments);
}
