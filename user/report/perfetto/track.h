/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracks of a Perfetto trace. Each has a packet sequence of its own: its packets carry neither the number of the track nor a whole
 * time, and what they name is interned once a sequence.
 */
#ifndef XPT_REPORT_PERFETTO_TRACK_H
#define XPT_REPORT_PERFETTO_TRACK_H

#include <linux/types.h>
#include <stdbool.h>

#include "base/core/hashmap.h"
#include "base/core/text.h"
#include "base/format/protobuf.h"
#include "model/stream/event.h"
#include "record/recording.h"

/* ---- numbers of fields ---- */

enum {
	TRACE_PACKET = 1,

	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_SYSTEM_INFO = 45,
	PACKET_GPU_STAGE = 53,
	PACKET_CLOCK = 58,
	PACKET_DEFAULTS = 59,
	PACKET_DESCRIPTOR = 60,
	PACKET_PERF_SAMPLE = 66,
	PACKET_MACHINE = 98,

	FLAG_CLEARED = 1, /* what was interned before is forgotten */
	FLAG_NEEDS_STATE = 2,

	INTERNED_CATEGORY = 1,
	INTERNED_NAME = 2,
	INTERNED_ARGUMENT = 3,
	INTERNED_SOURCE = 4,

	EVENT_CATEGORY = 3,
	EVENT_ARGUMENT = 4,
	EVENT_TYPE = 9,
	EVENT_NAME = 10,
	EVENT_COUNTER_VALUE = 30,
	EVENT_SOURCE = 34,
	EVENT_COUNTER_DOUBLE = 44,
	EVENT_FLOW = 47,
	EVENT_FLOW_END = 48,

	ARGUMENT_BOOL = 2,
	ARGUMENT_UNSIGNED = 3,
	ARGUMENT_SIGNED = 4,
	ARGUMENT_DOUBLE = 5,
	ARGUMENT_STRING = 6,
	ARGUMENT_POINTER = 7,
	ARGUMENT_NAME = 10,
	ARGUMENT_ARRAY = 12,

	SNAPSHOT_CLOCK = 1,
	SNAPSHOT_PRIMARY = 2,

	TYPE_BEGIN = 1,
	TYPE_END = 2,
	TYPE_INSTANT = 3,
	TYPE_COUNTER = 4,

	CLOCK_ID_REALTIME = 1,
	CLOCK_ID_MONOTONIC = 3,
	CLOCK_ID_BOOTTIME = 6,
	CLOCK_ID_SEQUENCE = 64, /* a packet's time is counted from the one before */
};

/* ---- tracks ---- */

enum perfetto_kind {
	TRACK_RECORDING, /* what belongs to no process */
	TRACK_PROCESS,	 /* number: tgid */
	TRACK_THREAD,	 /* number: tgid, id: tid */
	TRACK_ASYNC,	 /* id: of a lane */
	TRACK_COUNTER,	 /* of a process; id: hash of its name */
	TRACK_COUNTERS,	 /* parent of the next */
	TRACK_READING,	 /* number: index of the counter */
	TRACK_BUDGET,
	TRACK_DEVICE,	  /* number */
	TRACK_QUEUE,	  /* number: id of the queue */
	TRACK_QUEUE_LOAD, /* the same, id: which counter */
};

#define PERFETTO_FLOW_BITS 40	     /* of the number of an arrow within its trace */
#define PERFETTO_SEQUENCES 16	     /* those before are not of tracks */
#define PERFETTO_TRACKS_MAX 65536u   /* the oldest is forgotten beyond, and begins anew when it is used again */
#define PERFETTO_INTERNED_MAX 65536u /* of a track: beyond it is interned anew */
#define PERFETTO_HELD_MAX 4096u	     /* events of a track that wait for the one around them */

struct perfetto_interned {
	struct map_node node;
	struct perfetto_interned *next;
	unsigned int field;
	const char *string; /* in bytes; NULL: found by its pointer */
	__u32 iid;
	size_t length;
	char bytes[]; /* of the message */
};

struct perfetto_held {
	__u64 time;
	__u32 offset, length;
	unsigned char type;
};

struct perfetto_track {
	struct keyed keyed;
	__u64 uuid;
	__u64 start_time; /* of a process */
	__u32 sequence;
	unsigned int generation; /* of the trace, when its begin was written last; 0: not yet */
	__u64 time;		 /* of the sequence's clock */
	struct text descriptor;
	struct map map;
	struct perfetto_interned *interned, *last_name, *last_category;
	const struct model_function *function; /* of the call before, and what it has */
	__u32 function_category, function_source;
	__u32 iids[INTERNED_SOURCE + 1];
	/* Events that may lie in one that is still to come, in order of time. */
	struct text bytes;
	struct perfetto_held *held;
	size_t held_count;
	/* Arrows that end in the call of this thread that returns at that time. */
	struct perfetto_arrow {
		__u64 id, time;
	} * arrows;
	size_t arrow_count;
};

struct perfetto {
	struct text *text;     /* the owner's, who empties it */
	struct text body, end; /* of the event that is being made; of its end */
	struct keyed_table tracks, spans;
	struct perfetto_track *last; /* thread of the call before */
	__u64 uuid_base, flow_base, start;
	__u64 uuids, asides;
	__u32 sequences;
	unsigned int generation;
	size_t lane_budget;
	struct perfetto_jobs *jobs;
	struct perfetto_stacks *stacks;
};

/* document: number of the trace, of several of one recording. */
void perfetto_tracks_open(struct perfetto *perfetto, const struct recording_info *info, __u64 document);
void perfetto_tracks_close(struct perfetto *perfetto);
/* Appends what is held. */
void perfetto_release(struct perfetto *perfetto);

__u64 perfetto_uuid(struct perfetto *perfetto);
__u32 perfetto_sequence(struct perfetto *perfetto);

/* NULL: there is none. */
struct perfetto_track *perfetto_find(const struct perfetto *perfetto, enum perfetto_kind kind, __u32 number, __u64 id);
/* owner: tgid, or 0. NULL: no memory, which is then an error of the text. */
struct perfetto_track *perfetto_add(struct perfetto *perfetto, enum perfetto_kind kind, __u32 owner, __u32 number,
				    __u64 id);
/* The track gets another descriptor: fields behind its uuid are appended to the result. Then perfetto_described(). */
struct text *perfetto_describe(struct perfetto_track *track, const struct perfetto_track *parent);
void perfetto_described(struct perfetto *perfetto, struct perfetto_track *track);
/* Found, or made with this name and unit (NULL: it is no counter). parent NULL: none. */
struct perfetto_track *perfetto_named(struct perfetto *perfetto, const struct perfetto_track *parent,
				      enum perfetto_kind kind, __u32 number, __u64 id, const char *name,
				      const char *unit);
struct perfetto_track *perfetto_recording(struct perfetto *perfetto);
struct perfetto_track *perfetto_process(struct perfetto *perfetto, __u32 tgid);
struct perfetto_track *perfetto_thread(struct perfetto *perfetto, __u32 tgid, __u32 tid);
void perfetto_process_named(struct perfetto *perfetto, const struct model_process *process);
void perfetto_thread_named(struct perfetto *perfetto, __u32 tgid, __u32 tid, const char *name);
/* A track of that name in which nothing else lies between start and end. key: those of one key lie beside each other. */
struct perfetto_track *perfetto_lane(struct perfetto *perfetto, const struct perfetto_track *parent, __u32 tgid,
				     __u64 key, const char *name, __u64 start, __u64 end);

/* ---- events ---- */

/* A new event, whose fields are appended to perfetto->body; its end has those of perfetto->end. */
void perfetto_event(struct perfetto *perfetto, unsigned int type);
void perfetto_name(struct perfetto *perfetto, struct perfetto_track *track, const char *name);
void perfetto_category(struct perfetto *perfetto, struct perfetto_track *track, const char *what, const char *source);
/* Both of a call, and its function as its source. */
void perfetto_function(struct perfetto *perfetto, struct perfetto_track *track, const struct model_function *function);

/* key: lives as long as the trace, and is identified by its pointer. */
void perfetto_argument(struct perfetto *perfetto, struct perfetto_track *track, const char *key, __u64 value);
void perfetto_argument_signed(struct perfetto *perfetto, struct perfetto_track *track, const char *key, __s64 value);
void perfetto_argument_pointer(struct perfetto *perfetto, struct perfetto_track *track, const char *key, __u64 value);
void perfetto_argument_real(struct perfetto *perfetto, struct perfetto_track *track, const char *key, double value);
void perfetto_argument_string(struct perfetto *perfetto, struct perfetto_track *track, const char *key,
			      const char *value);
void perfetto_argument_strings(struct perfetto *perfetto, struct perfetto_track *track, const char *key,
			       const char *const *values, size_t count);
void perfetto_argument_true(struct perfetto *perfetto, struct perfetto_track *track, const char *key);
/* What is 0, or NULL, is left out. */
void perfetto_argument_some(struct perfetto *perfetto, struct perfetto_track *track, const char *key, __u64 value);
void perfetto_argument_any(struct perfetto *perfetto, struct perfetto_track *track, const char *key, const char *value);

/* The event is complete. outermost: nothing on the track lies around it. */
void perfetto_slice(struct perfetto *perfetto, struct perfetto_track *track, __u64 start, __u64 end, bool outermost);
/* An arrow that ends where a slice does that is held; false: there is none. */
bool perfetto_end_held(struct perfetto *perfetto, struct perfetto_track *track, __u64 time, __u64 flow);
/* Of an instant or a counter's value. */
void perfetto_point(struct perfetto *perfetto, struct perfetto_track *track, unsigned int type, __u64 time);

#endif
