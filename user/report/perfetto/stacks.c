/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks in a Perfetto trace: samples with interned call stacks, those of each reason in a sequence of their own, which Perfetto takes
 * for a session of sampling with a counter of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/perfetto/events.h"

#define SEQUENCE 2 /* of the first reason; the others follow */
#define REASONS 3

enum {
	INTERNED_FUNCTION = 5,
	INTERNED_FRAME = 6,
	INTERNED_CALLSTACK = 7,
	INTERNED_BUILD_ID = 16,
	INTERNED_PATH = 17,
	INTERNED_SOURCE_PATH = 18,
	INTERNED_MAPPING = 19,

	CPU_MODE_USER = 2,
	UNWIND_UNKNOWN = 0,
};

/* By the pointer to what was interned, which lives as long as the model; or by a kind of frames without a module. */
struct interned {
	struct map_node node;
	struct interned *next;
	__u32 iid;
};

struct perfetto_stacks {
	struct sequence {
		bool begun;
		struct map map;
		struct interned *interned;
		__u32 count;
	} sequences[REASONS];
};

int perfetto_stacks_open(struct perfetto *p)
{
	p->stacks = calloc(1, sizeof(*p->stacks));
	return p->stacks ? 0 : -ENOMEM;
}

void perfetto_stacks_forget(struct perfetto *p)
{
	for (size_t i = 0; i < REASONS; i++) {
		struct sequence *sequence = &p->stacks->sequences[i];
		struct interned *next;

		for (struct interned *interned = sequence->interned; interned; interned = next) {
			next = interned->next;
			free(interned);
		}
		map_free(&sequence->map);
		*sequence = (struct sequence){ 0 };
	}
}

void perfetto_stacks_close(struct perfetto *p)
{
	if (!p->stacks)
		return;
	perfetto_stacks_forget(p);
	free(p->stacks);
}

/* ---- interned data ---- */

/* 0: it is new, and gets *iid. */
static __u32 find_interned(struct perfetto *p, struct sequence *sequence, unsigned int field, const void *pointer,
			   __u32 *iid)
{
	struct map_node *node = map_find(&sequence->map, field, (__u64)(unsigned long)pointer);
	struct interned *interned;

	*iid = 0;
	if (node)
		return container_of(node, struct interned, node)->iid;
	interned = malloc(sizeof(*interned));
	if (!interned || map_add(&sequence->map, &interned->node, field, (__u64)(unsigned long)pointer)) {
		free(interned);
		text_fail(p->text);
		return 0;
	}
	interned->iid = *iid = ++sequence->count;
	interned->next = sequence->interned;
	sequence->interned = interned;
	return 0;
}

static __u32 intern_string(struct perfetto *p, struct sequence *sequence, unsigned int field, const char *string)
{
	__u32 iid, known = find_interned(p, sequence, field, string, &iid);
	size_t message;

	if (known)
		return known;
	message = pb_begin(p->text, field);
	pb_number(p->text, 1, iid);
	pb_string(p->text, 2, string);
	pb_end(p->text, message);
	return iid;
}

/* The bytes that its digits stand for. */
static __u32 intern_build_id(struct perfetto *p, struct sequence *sequence, const char *build_id)
{
	__u32 iid, known = find_interned(p, sequence, INTERNED_BUILD_ID, build_id, &iid);
	char digits[3] = { 0 }, byte;
	size_t message, bytes;

	if (known)
		return known;
	message = pb_begin(p->text, INTERNED_BUILD_ID);
	pb_number(p->text, 1, iid);
	bytes = pb_begin(p->text, 2);
	for (; build_id[0] && build_id[1]; build_id += 2) {
		memcpy(digits, build_id, 2);
		byte = (char)strtoul(digits, NULL, 16);
		text_bytes(p->text, &byte, 1);
	}
	pb_end(p->text, bytes);
	pb_end(p->text, message);
	return iid;
}

/* Frames without a module get one that says what they are: each must have one. */
static __u32 intern_mapping(struct perfetto *p, struct sequence *sequence, const struct model_frame *frame)
{
	static const char *const kinds[FRAME_KINDS] = { "[unknown]", "[native]", "[python]", "[javascript]",
							"[kernel.kallsyms]" };
	const char *path = frame->module && frame->module->path ? frame->module->path :
								  kinds[frame->kind % FRAME_KINDS];
	const void *key = frame->module && frame->module->path ? (const void *)frame->module : path;
	__u32 iid, known = find_interned(p, sequence, INTERNED_MAPPING, key, &iid), build_id = 0, string;
	size_t message;

	if (known)
		return known;
	if (frame->module && frame->module->build_id)
		build_id = intern_build_id(p, sequence, frame->module->build_id);
	string = intern_string(p, sequence, INTERNED_PATH, path + (*path == '/'));
	message = pb_begin(p->text, INTERNED_MAPPING);
	pb_number(p->text, 1, iid);
	if (build_id)
		pb_number(p->text, 2, build_id);
	pb_number(p->text, 7, string);
	pb_end(p->text, message);
	return iid;
}

static __u32 intern_frame(struct perfetto *p, struct sequence *sequence, const struct model_frame *frame)
{
	__u32 iid, known = find_interned(p, sequence, INTERNED_FRAME, frame, &iid), function, mapping, source = 0;
	size_t message;

	if (known)
		return known;
	function = intern_string(p, sequence, INTERNED_FUNCTION, frame->function ?: "[unknown]");
	mapping = intern_mapping(p, sequence, frame);
	if (frame->file)
		source = intern_string(p, sequence, INTERNED_SOURCE_PATH, frame->file);
	message = pb_begin(p->text, INTERNED_FRAME);
	pb_number(p->text, 1, iid);
	pb_number(p->text, 2, function);
	pb_number(p->text, 3, mapping);
	/* It distinguishes frames of one function: without an address, the line does. */
	pb_number(p->text, 4, frame->has_offset ? frame->offset : frame->line);
	if (source)
		pb_number(p->text, 5, source);
	if (frame->line)
		pb_number(p->text, 6, frame->line);
	pb_end(p->text, message);
	return iid;
}

static __u32 intern_stack(struct perfetto *p, struct sequence *sequence, const struct model_stack *stack)
{
	__u32 iid, known = find_interned(p, sequence, INTERNED_CALLSTACK, stack, &iid);
	size_t message;

	if (known)
		return known;
	for (size_t i = 0; i < stack->count; i++)
		intern_frame(p, sequence, stack->frames[i]);
	message = pb_begin(p->text, INTERNED_CALLSTACK);
	pb_number(p->text, 1, iid);
	for (size_t i = stack->count; i--;)
		pb_number(p->text, 2, intern_frame(p, sequence, stack->frames[i]));
	pb_end(p->text, message);
	return iid;
}

/* ---- samples ---- */

/* What the weights of the samples of a reason count. */
static void begin_samples(struct perfetto *p, struct sequence *sequence, unsigned int number, const char *name)
{
	size_t packet, defaults, sample, timebase;

	if (sequence->begun)
		return;
	sequence->begun = true;
	packet = pb_begin(p->text, TRACE_PACKET);
	pb_number(p->text, PACKET_SEQUENCE, number);
	pb_number(p->text, PACKET_FLAGS, FLAG_CLEARED);
	defaults = pb_begin(p->text, PACKET_DEFAULTS);
	pb_number(p->text, PACKET_CLOCK, CLOCK_ID_MONOTONIC);
	sample = pb_begin(p->text, 12);
	timebase = pb_begin(p->text, 1);
	pb_string(p->text, 10, name);
	pb_end(p->text, timebase);
	pb_end(p->text, sample);
	pb_end(p->text, defaults);
	pb_end(p->text, packet);
}

void perfetto_stack_add(struct perfetto *p, const struct event_stack *stack)
{
	static const char *const names[REASONS] = { "calls", "off CPU ns", "CPU ns" };
	const size_t reason = stack->reason == XPT_STACK_OFF_CPU ? 1 : stack->reason == XPT_STACK_ON_CPU ? 2 : 0;
	struct sequence *sequence = &p->stacks->sequences[reason];
	size_t packet, message;
	__u32 iid = 0;

	begin_samples(p, sequence, SEQUENCE + (unsigned int)reason, names[reason]);
	packet = pb_begin(p->text, TRACE_PACKET);
	pb_number(p->text, PACKET_TIMESTAMP, stack->time);
	pb_number(p->text, PACKET_SEQUENCE, SEQUENCE + reason);
	pb_number(p->text, PACKET_FLAGS, FLAG_NEEDS_STATE);
	if (stack->stack->count) {
		message = pb_begin(p->text, PACKET_INTERNED);
		iid = intern_stack(p, sequence, stack->stack);
		pb_end(p->text, message);
	}
	message = pb_begin(p->text, PACKET_PERF_SAMPLE);
	pb_number(p->text, 1, 0);
	pb_number(p->text, 2, stack->tgid);
	pb_number(p->text, 3, stack->tid);
	pb_number(p->text, 5, CPU_MODE_USER);
	if (iid)
		pb_number(p->text, 4, iid);
	pb_number(p->text, 6, stack->weight);
	if (stack->stack->partial)
		pb_number(p->text, 16, UNWIND_UNKNOWN);
	pb_end(p->text, message);
	pb_end(p->text, packet);
}
