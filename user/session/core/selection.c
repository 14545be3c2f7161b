/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/core/session.h"

#include <stdlib.h>
#include <string.h>

/* Calls of a program, since its latest TOTAL record. */
struct left_out {
	struct map_node node;
	struct link link;
	__u64 calls;
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
	struct link *link, *next;

	if (!selection->registry)
		return;
	link_each(link, next, &selection->all) forget(selection, container_of(link, struct left_out, link));
	map_free(&selection->programs);
}

static __u64 key_of(const struct xpt_program_key *key)
{
	return (__u64)key->tgid << 32 | (__u32)key->runtime << 16 | key->spec;
}

/* As the kernel side counts it: by its program, the first value, or by its function. */
static struct xpt_program_key program_of(const struct xpt_spec *spec, const struct xpt_record_call *call)
{
	bool by_program = spec->flags & XPT_SPEC_BY_PROGRAM;

	return (struct xpt_program_key){
		.tgid = call->header.tgid,
		.runtime = spec->runtime,
		.spec = by_program ? 0 : spec->index + 1,
		.handle = by_program && (call->valid & 1) ? call->value[0] : 0,
	};
}

/* False: there is no memory to count it. */
static bool leave_out(struct selection *selection, const struct xpt_program_key *key)
{
	struct map_node *node = map_find(&selection->programs, key_of(key), key->handle);
	struct left_out *program = node ? container_of(node, struct left_out, node) : NULL;

	if (!program) {
		program = calloc(1, sizeof(*program));
		if (!program || map_add(&selection->programs, &program->node, key_of(key), key->handle)) {
			free(program);
			return false;
		}
		link_append(&selection->all, &program->link);
	}
	program->calls++;
	selection->calls++;
	return true;
}

/* Operators are samples with the inference that they are in; those that are in none are not. */
static const struct xpt_record_header *take_call(struct selection *selection, const struct xpt_record_call *call)
{
	const struct xpt_spec *spec = &selection->registry->specs[call->spec]->wire;
	bool is_operator = spec->role == XPT_ROLE_OPERATOR, sampled = selection->every > 1;
	bool numbered = call->flags & XPT_CALL_NUMBERED;
	struct xpt_record_call *copy = (void *)selection->copy;
	struct xpt_program_key key;

	if (!numbered)
		return is_operator && sampled ? NULL : &call->header;
	if (sampled && call->value[call->values] % selection->every) {
		key = program_of(spec, call);
		if (is_operator || leave_out(selection, &key))
			return NULL;
	}
	if (!sampled && !is_operator)
		return &call->header;
	memcpy(copy, call, call->header.size);
	if (sampled)
		copy->sample = selection->every;
	if (is_operator) {
		copy->flags &= ~XPT_CALL_NUMBERED;
		copy->header.size -= sizeof(__u64);
	}
	return &copy->header;
}

static const struct xpt_record_header *take_total(struct selection *selection, const struct xpt_record_total *total)
{
	struct map_node *node = map_find(&selection->programs, key_of(&total->key), total->key.handle);
	struct xpt_record_total *copy = (void *)selection->copy;

	if (!node)
		return &total->header;
	*copy = *total;
	copy->count.left_out += container_of(node, struct left_out, node)->calls;
	forget(selection, container_of(node, struct left_out, node));
	return &copy->header;
}

const struct xpt_record_header *selection_take(struct selection *selection, const struct xpt_record_header *record)
{
	const struct xpt_record_call *call = (const void *)record;

	if (record->kind == XPT_RECORD_TOTAL)
		return take_total(selection, (const void *)record);
	if (record->kind != XPT_RECORD_CALL || call->spec >= selection->registry->spec_count ||
	    record->size > SELECTION_CALL_MAX)
		return record;
	return take_call(selection, call);
}
