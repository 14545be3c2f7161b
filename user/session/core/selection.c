/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/core/session.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Calls of a program, until its TOTAL record. That comes from another ring: calls that began before it may still come up to the next
 * PASS record, and it is kept until then.
 */
struct left_out {
	struct map_node node;
	struct link link;
	__u64 calls;
	struct xpt_record_total total; /* kind 0: it has not come */
};

void selection_init(struct selection *selection, const struct registry *registry, __u32 every)
{
	*selection = (struct selection){ .registry = registry, .every = every };
	link_init(&selection->all);
}

static void forget(struct selection *selection, struct left_out *program)
{
	map_remove(&selection->programs, &program->node);
	link_remove(&program->link);
	free(program);
}

void selection_free(struct selection *selection)
{
	struct left_out *program, *next;

	if (!selection->registry)
		return;
	link_for_each_safe(program, next, &selection->all, link)
		forget(selection, program);
	map_free(&selection->programs);
}

struct xpt_program_key selection_key(const struct xpt_spec *spec, const struct xpt_record_call *call)
{
	bool by_program = spec->flags & XPT_SPEC_BY_PROGRAM;

	return (struct xpt_program_key){
		.tgid = call->header.tgid,
		.runtime = spec->runtime,
		.spec = by_program ? 0 : spec->index + 1,
		.handle = by_program && (call->valid & 1) ? call->value[0] : 0,
	};
}

/* Where a call that began at the time counts; UINT64_MAX: later than all. Made if there is none. NULL: no memory. */
static struct left_out *find(struct selection *selection, const struct xpt_program_key *key, __u64 start)
{
	struct map_node *node = map_find(&selection->programs, program_map_key(key), key->handle);
	struct left_out *program, *found = NULL;

	for (; node; node = map_next(node)) {
		program = container_of(node, struct left_out, node);
		if (!program->total.header.kind ? !found : start < program->total.header.time)
			found = program;
	}
	if (found)
		return found;
	program = calloc(1, sizeof(*program));
	if (!program || map_add(&selection->programs, &program->node, program_map_key(key), key->handle)) {
		free(program);
		return NULL;
	}
	link_append(&selection->all, &program->link);
	return program;
}

/* False: there is no memory to count it. */
static bool leave_out(struct selection *selection, const struct xpt_record_call *call)
{
	const struct xpt_program_key key = selection_key(&selection->registry->specs[call->spec]->wire, call);
	struct left_out *program = find(selection, &key, call->start);

	if (!program)
		return false;
	program->calls++;
	selection->calls++;
	return true;
}

/* How many calls a record stands for of which every Nth is taken: the least common multiple. */
static __u32 sample_of_both(__u32 recorded, __u32 every)
{
	__u64 both = (__u64)recorded / sample_rate_common(recorded, every) * every;

	return both < UINT32_MAX ? both : UINT32_MAX;
}

/* Operators are samples with the inference that they are in; those that are in none are not. */
static const struct xpt_record_header *take_call(struct selection *selection, const struct xpt_record_call *call)
{
	const struct xpt_spec *spec = &selection->registry->specs[call->spec]->wire;
	bool is_operator = spec->role == XPT_ROLE_OPERATOR, sampled = selection->every > 1;
	bool numbered = call->flags & XPT_CALL_NUMBERED;
	struct xpt_record_call *copy = (void *)selection->copy;

	if (!numbered)
		return is_operator && sampled ? NULL : &call->header;
	if (sampled && call->value[call->values] % selection->every && (is_operator || leave_out(selection, call)))
		return NULL;
	if (!sampled && !is_operator)
		return &call->header;
	memcpy(copy, call, call->header.size);
	if (sampled)
		copy->sample = sample_of_both(call->sample ?: 1, selection->every);
	if (is_operator) {
		copy->flags &= ~XPT_CALL_NUMBERED;
		copy->header.size -= sizeof(__u64);
		memcpy(&copy->value[copy->values], &call->value[call->values + 1],
		       copy->header.size - sizeof(*copy) - copy->values * sizeof(__u64));
	}
	return &copy->header;
}

static bool keep_total(struct selection *selection, const struct xpt_record_total *total)
{
	struct left_out *program = find(selection, &total->key, UINT64_MAX);

	if (program)
		program->total = *total;
	return program;
}

void selection_flush(struct selection *selection, record_fn record, void *context)
{
	struct left_out *program, *next;

	if (!selection->registry)
		return;
	link_for_each_safe(program, next, &selection->all, link) {
		if (!program->total.header.kind)
			continue;
		program->total.count.left_out += program->calls;
		record(context, &program->total.header);
		forget(selection, program);
	}
}

void selection_pass(struct selection *selection, const struct xpt_record_header *header, record_fn record,
		    void *context)
{
	const struct xpt_record_call *call = (const void *)header;

	if (header->kind == XPT_RECORD_PASS)
		selection_flush(selection, record, context);
	if (header->kind == XPT_RECORD_TOTAL && selection->every > 1 && keep_total(selection, (const void *)header))
		return;
	if (header->kind == XPT_RECORD_CALL && call->spec < selection->registry->spec_count &&
	    header->size <= SELECTION_CALL_MAX)
		header = take_call(selection, call);
	if (header)
		record(context, header);
}
