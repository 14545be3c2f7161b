/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of tracks as packets, in order of time: those that lie in one that is still to come are held. */
#include "report/perfetto/track.h"

#include "base/core/vec.h"

#define PACKET_HEAD_MAX 64 /* bytes: five numbers and their fields */

static void packet_event(struct perfetto *perfetto, struct perfetto_track *track, __u64 time, const char *body,
			 size_t length)
{
	struct text *text = perfetto->text;
	bool back = time < track->time;
	size_t packet, event;
	unsigned char *at;

	perfetto_track_begin(perfetto, track);
	packet = pb_begin(text, TRACE_PACKET);
	at = pb_room(text, PACKET_HEAD_MAX + length);
	if (!at)
		return;
	*at++ = PACKET_TIMESTAMP << 3 | PB_VARINT;
	at = pb_put(at, back ? time : time - track->time);
	if (back)
		at = pb_put(pb_put(at, PACKET_CLOCK << 3 | PB_VARINT), CLOCK_ID_MONOTONIC);
	else
		track->time = time;
	*at++ = PACKET_SEQUENCE << 3 | PB_VARINT;
	at = pb_put(at, track->sequence);
	*at++ = PACKET_TRACK_EVENT << 3 | PB_BYTES;
	at = pb_put(at, length);
	memcpy(at, body, length);
	event = (size_t)(at - (unsigned char *)text->data);
	pb_put_end(text, at + length);
	pb_end(text, packet);
	perfetto->latest.track = NULL;
	perfetto->latest.time = time;
	perfetto->latest.packet = packet;
	perfetto->latest.event = event;
	perfetto->latest.end = text->length;
}

void perfetto_track_release(struct perfetto *perfetto, struct perfetto_track *track)
{
	for (size_t i = 0; i < track->held_count; i++) {
		const struct perfetto_held *held = &track->held[i];

		packet_event(perfetto, track, held->time, track->bytes.data + held->offset, held->length);
	}
	if (track->held_count && track->held[track->held_count - 1].type == TYPE_END)
		perfetto->latest.track = track;
	track->held_count = 0;
	text_clear(&track->bytes, 64u << 10);
}

void perfetto_release(struct perfetto *perfetto)
{
	struct keyed *keyed;

	link_for_each(keyed, &perfetto->tracks.all, age)
		perfetto_track_release(perfetto, container_of(keyed, struct perfetto_track, keyed));
}

/*
 * Where an event of that time has its place. At the same time what begins lies around what has begun before, since what is around is
 * complete later, and behind what has ended; all else comes last.
 */
static size_t held_place(const struct perfetto_track *track, unsigned int type, __u64 time)
{
	size_t place = track->held_count;

	if (type != TYPE_BEGIN) {
		while (place && track->held[place - 1].time > time)
			place--;
		return place;
	}
	place = vec_first(place, i, track->held[i].time < time);
	while (place < track->held_count && track->held[place].time == time && track->held[place].type == TYPE_END)
		place++;
	return place;
}

static void hold_event(struct perfetto *perfetto, struct perfetto_track *track, unsigned int type, __u64 time,
		       const struct text *body)
{
	size_t place = held_place(track, type, time), offset = track->bytes.length;

	text_bytes(&track->bytes, body->data, body->length);
	if (track->bytes.error || body->error || vec_reserve(track->held, track->held_count)) {
		text_fail(perfetto->text);
		return;
	}
	memmove(track->held + place + 1, track->held + place, (track->held_count - place) * sizeof(*track->held));
	track->held[place] = (struct perfetto_held){ time, (__u32)offset, (__u32)body->length, (unsigned char)type };
	track->held_count++;
}

bool perfetto_end_held(struct perfetto *perfetto, struct perfetto_track *track, __u64 time, __u64 flow)
{
	struct text *bytes = &track->bytes;
	struct perfetto_held *held;
	size_t i = track->held_count, offset = bytes->length;

	while (i && (track->held[i - 1].time > time ||
		     (track->held[i - 1].time == time && track->held[i - 1].type != TYPE_END)))
		i--;
	if (!i || track->held[i - 1].time != time)
		return false;
	held = &track->held[i - 1];
	if (text_reserve(bytes, held->length)) {
		text_fail(perfetto->text);
		return false;
	}
	text_bytes(bytes, bytes->data + held->offset, held->length);
	pb_fixed(bytes, EVENT_FLOW_END, flow);
	held->offset = (__u32)offset;
	held->length = (__u32)(bytes->length - offset);
	return true;
}

/* ---- values of counters beside the end of a slice ---- */

#define VALUE_MAX (1 + PB_VARINT_MAX) /* bytes, with its field */

/* Behind the end of a slice that was appended last, unless the lengths of its messages would need more than a byte. */
static bool extend_latest(struct perfetto *perfetto, __u64 value)
{
	const size_t length = perfetto->latest.end;
	unsigned char *data;

	if (length - perfetto->latest.packet + VALUE_MAX > 127)
		return false;
	pb_number(perfetto->text, EVENT_EXTRA_COUNTER, value);
	if (perfetto->text->error)
		return false;
	data = (unsigned char *)perfetto->text->data;
	data[perfetto->latest.packet - 1] += (unsigned char)(perfetto->text->length - length);
	data[perfetto->latest.event - 1] += (unsigned char)(perfetto->text->length - length);
	return true;
}

void perfetto_counter(struct perfetto *perfetto, struct perfetto_track *track, __u64 time, __u64 value)
{
	struct perfetto_track *slices = perfetto->latest.track;

	perfetto->latest.track = NULL;
	if (slices && (perfetto->latest.time != time || perfetto->latest.end != perfetto->text->length))
		slices = NULL;
	if (slices && slices->counter == track->uuid && track->generation == perfetto->generation &&
	    extend_latest(perfetto, value))
		return;
	perfetto_event(perfetto, TYPE_COUNTER);
	pb_number(&perfetto->body, EVENT_COUNTER_VALUE, value);
	perfetto_point(perfetto, track, TYPE_COUNTER, time);
	if (slices && !slices->counter) /* from here on */
		perfetto_track_counter(perfetto, slices, track->uuid);
}

/* Between two events, when it has interned too much. */
static void track_reset(struct perfetto *perfetto, struct perfetto_track *track)
{
	perfetto_track_release(perfetto, track);
	perfetto_track_forget(track);
	track->generation = 0;
}

/* Its arguments are complete. */
static void make_body(struct perfetto *perfetto)
{
	if (perfetto->arguments.length)
		pb_bytes(&perfetto->body, EVENT_ARGUMENTS, perfetto->arguments.data, perfetto->arguments.length);
	if (perfetto->body.error || perfetto->arguments.error)
		text_fail(perfetto->text);
}

static void make_end(struct perfetto *perfetto)
{
	struct text *end = &perfetto->end;
	unsigned char type[] = { EVENT_TYPE << 3, TYPE_END };

	text_bytes(end, type, sizeof(type));
}

void perfetto_slice(struct perfetto *perfetto, struct perfetto_track *track, __u64 start, __u64 end, bool outermost)
{
	make_body(perfetto);
	if (perfetto->text->error)
		return;
	make_end(perfetto);
	end = end > start ? end : start;
	if (outermost && !track->held_count) {
		packet_event(perfetto, track, start, perfetto->body.data, perfetto->body.length);
		packet_event(perfetto, track, end, perfetto->end.data, perfetto->end.length);
		perfetto->latest.track = track;
	} else {
		hold_event(perfetto, track, TYPE_BEGIN, start, &perfetto->body);
		hold_event(perfetto, track, TYPE_END, end, &perfetto->end);
		if (outermost || track->held_count >= PERFETTO_HELD_MAX)
			perfetto_track_release(perfetto, track);
	}
	if (track->map.count >= PERFETTO_INTERNED_MAX)
		track_reset(perfetto, track);
}

void perfetto_point(struct perfetto *perfetto, struct perfetto_track *track, unsigned int type, __u64 time)
{
	make_body(perfetto);
	if (perfetto->text->error)
		return;
	if (track->held_count)
		hold_event(perfetto, track, type, time, &perfetto->body);
	else
		packet_event(perfetto, track, time, perfetto->body.data, perfetto->body.length);
	if (track->map.count >= PERFETTO_INTERNED_MAX)
		track_reset(perfetto, track);
}
