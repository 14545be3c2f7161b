/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any records into a window that is bounded in time, and snapshots of it into a model.
 *
 * The input is a row of steps, each as: what, length, then so many bytes. What is the kind of a record whose bytes after its kind
 * and size follow, or one of the numbers below; with bit 7 clear there are few processes, threads, handles and times, so that
 * records meet.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/model.h"
#include "model/stream/records.h"
#include "record/window.h"
#include "require.h"

#define RAW 0x80
#define KIND 0x7f
enum { STEP_SNAPSHOT = 0x60, STEP_EXPIRE, STEP_LOAD, STEP_RELEASE, STEP_NAME_REGION, STEP_RELEASE_REGION };

#define SPAN 256
#define SNAPSHOTS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One of each role that a window tells from the others, again and again. */
static const uint8_t some_roles[] = { XPT_ROLE_PROGRAM_LOAD, XPT_ROLE_PROGRAM_UNLOAD,
				      XPT_ROLE_EXECUTE,	     XPT_ROLE_ENQUEUE,
				      XPT_ROLE_WAIT,	     XPT_ROLE_OPERATOR,
				      XPT_ROLE_REGION_NAME,  XPT_ROLE_COPY };

struct state {
	struct window *window;
	struct snapshot *snapshots[SNAPSHOTS];
	uint64_t sums[SNAPSHOTS];
	size_t count;
	uint64_t added;
	uint8_t roles[XPT_SPEC_MAX];
};

struct visit {
	struct model *model; /* NULL: only the sum is wanted */
	const struct snapshot_part *part;
	uint64_t from, sum;
};

static int visit_record(void *context, const struct xpt_record_header *record)
{
	const struct xpt_record_call *call = (const void *)record;
	struct visit *visit = context;

	require(record_validate(record, record->size) && record->size % 8 == 0);
	require(!visit->part->tgid || context_is_common(record) || record->tgid == visit->part->tgid ||
		record->kind == XPT_RECORD_EVENT || record->kind == XPT_RECORD_CLIENT_EXIT ||
		record->kind == XPT_RECORD_LOST || record->kind == XPT_RECORD_READING ||
		record->kind == XPT_RECORD_PASS);
	require(record->kind != XPT_RECORD_CALL || call->start >= visit->from);
	for (size_t i = 0; i < record->size; i++)
		visit->sum = (visit->sum ^ ((const uint8_t *)record)[i]) * 0x100000001b3;
	if (visit->model)
		model_feed(visit->model, record);
	return 0;
}

static uint64_t walk(const struct snapshot *snapshot, const struct snapshot_part *part, bool into_model)
{
	uint64_t begin = snapshot_begin(snapshot);
	struct visit visit = { .part = part, .from = part->from > begin ? part->from : begin };

	if (into_model)
		require(!model_create(NULL, &visit.model));
	require(!snapshot_each(snapshot, part, visit_record, &visit));
	if (visit.model)
		model_flush(visit.model);
	model_free(visit.model);
	return visit.sum;
}

static void look(struct state *state)
{
	static const struct snapshot_stretch stretches[] = { { 1, 0, 64, 128 },
							     { 1, 1, 200, 600 },
							     { 1, 1, 300, 400 } };
	const struct snapshot_part parts[] = {
		{ .roles = state->roles },
		{ .from = 512, .tgid = 1, .roles = state->roles },
		{ .stretches = stretches, .count = 3, .roles = state->roles },
	};
	struct snapshot *snapshot;

	require(!window_snapshot(state->window, &snapshot));
	for (size_t i = 0; i < 3; i++)
		walk(snapshot, &parts[i], true);
	if (state->count == SNAPSHOTS) {
		snapshot_free(snapshot);
		return;
	}
	state->snapshots[state->count] = snapshot;
	state->sums[state->count++] = walk(snapshot, &parts[0], false);
}

static void tidy(struct xpt_record_header *record)
{
	struct xpt_record_string *string = (void *)record;
	struct xpt_record_region *region = (void *)record;
	struct xpt_record_call *call = (void *)record;
	struct xpt_record_task *task = (void *)record;

	record->tgid &= 3;
	record->time &= 0xfff;
	switch (record->kind) {
	case XPT_RECORD_CALL:
		call->start = record->time - (call->start & 0x7f) % (record->time + 1);
		call->tid &= 3;
		call->spec &= 15;
		call->values &= 7;
		call->flags &= (uint8_t) ~(XPT_CALL_NUMBERED | XPT_CALL_COUNTED);
		break;
	case XPT_RECORD_STRING:
		string->call_start &= 0xfff;
		string->tid &= 3;
		string->spec &= 15;
		string->length &= 31;
		break;
	case XPT_RECORD_TASK:
		task->event &= 3;
		task->other &= 3;
		break;
	case XPT_RECORD_REGION:
		region->start = record->time - (region->start & 0x7f) % (record->time + 1);
		region->tid &= 3;
		break;
	case XPT_RECORD_REGION_NAME:
		((struct xpt_record_region_name *)record)->length &= 31;
		break;
	default:
		if (record->kind >= XPT_RECORD_SPEC) {
			((struct xpt_record_text *)record)->id &= 7;
			((struct xpt_record_text *)record)->length &= 31;
		}
		break;
	}
}

static void change(struct state *state, struct xpt_record_header *record, bool region, bool released)
{
	const struct past_change change = {
		.time = record->time,
		.handle = ((const struct xpt_record_text *)record)->id,
		.tgid = record->tgid,
		.runtime = region ? CONTEXT_REGION : 0,
		.size = released ? 0 : record->size,
	};

	record->kind = XPT_RECORD_LOADED;
	require(!window_change(state->window, &change, released ? NULL : (void *)record));
}

static void step(struct state *state, unsigned int what, struct xpt_record_header *record)
{
	switch (what & KIND) {
	case STEP_SNAPSHOT:
		look(state);
		break;
	case STEP_EXPIRE:
		window_expire(state->window, record->time);
		break;
	case STEP_LOAD:
	case STEP_NAME_REGION:
		change(state, record, (what & KIND) == STEP_NAME_REGION, false);
		break;
	case STEP_RELEASE:
		change(state, record, false, true);
		break;
	case STEP_RELEASE_REGION:
		change(state, record, true, true);
		break;
	default:
		record->kind = what & KIND;
		if (!(what & RAW))
			tidy(record);
		if (!record_validate(record, record->size))
			break;
		require(!window_add(state->window, record));
		state->added++;
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct window_options options = { .bytes = WINDOW_BYTES_MIN, .span = SPAN };
	char bytes[512] __attribute__((aligned(8)));
	struct xpt_record_header *record = (void *)bytes;
	struct window_figures figures;
	struct state state = {};
	size_t length;

	require(!window_create(&options, &state.window));
	for (size_t i = 0; i < XPT_SPEC_MAX; i++)
		state.roles[i] = some_roles[i % sizeof(some_roles)];
	for (; size >= 2; data += 2 + length, size -= 2 + length) {
		length = data[1] < size - 2 ? data[1] : size - 2;
		memset(bytes, 0, sizeof(bytes));
		memcpy(bytes + 4, data + 2, length);
		record->kind = XPT_RECORD_LOADED;
		record->size = (uint16_t)XPT_ALIGN8(length + 4 < 88 ? 88 : length + 4);
		if ((data[0] & KIND) >= STEP_SNAPSHOT && (data[0] & KIND) <= STEP_RELEASE_REGION)
			tidy(record);
		step(&state, data[0], record);
		window_figures(state.window, &figures);
		require(figures.records + figures.evicted + figures.lost == state.added);
	}
	look(&state);
	window_free(state.window);
	for (size_t i = 0; i < state.count; i++) {
		require(walk(state.snapshots[i], &(struct snapshot_part){ .roles = state.roles }, false) ==
			state.sums[i]);
		snapshot_free(state.snapshots[i]);
	}
	return 0;
}
