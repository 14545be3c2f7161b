/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers and branches of an accessor, the part that is alike on all machines. */
#include <string.h>

#include "target/probe/table_decoder.h"

static void add_candidate(struct table_candidates *candidates, const struct table_value *value, bool returned)
{
	struct table_candidate *candidate;

	for (size_t i = 0; i < candidates->count; i++) {
		candidate = &candidates->list[i];
		if (candidate->address == value->address && candidate->loaded == value->loaded) {
			candidate->returned |= returned;
			return;
		}
	}
	if (candidates->count == TABLE_CANDIDATE_MAX)
		return;
	candidate = &candidates->list[candidates->count++];
	candidate->address = value->address;
	candidate->loaded = value->loaded;
	candidate->returned = returned;
}

void table_walk_begin(struct table_walk *walk, __u64 address, size_t length, struct table_candidates *candidates)
{
	memset(walk, 0, sizeof(*walk));
	walk->candidates = candidates;
	walk->start = address;
	walk->end = address + length;
	walk->now.reachable = true;
}

/* What one way knows and the other doesn't is kept: one of them is the error path, and that returns no address. */
static void join(struct table_state *to, const struct table_state *from)
{
	if (!to->reachable) {
		*to = *from;
		return;
	}
	for (unsigned int i = 0; i < TABLE_REGISTERS; i++)
		if (!to->registers[i].known)
			to->registers[i] = from->registers[i];
}

void table_walk_arrive(struct table_walk *walk, __u64 address)
{
	for (size_t i = 0; i < walk->pending_count; i++)
		if (walk->pending[i].target == address)
			join(&walk->now, &walk->pending[i].state);
	walk->now.reachable = true; /* by a jump table or from above; nothing is known then */
}

void table_walk_set(struct table_walk *walk, unsigned int reg, __u64 address, bool loaded)
{
	struct table_value *value = &walk->now.registers[reg];

	value->known = true;
	value->loaded = loaded;
	value->address = address;
}

void table_walk_compute(struct table_walk *walk, unsigned int reg, __u64 address, bool loaded)
{
	table_walk_set(walk, reg, address, loaded);
	add_candidate(walk->candidates, &walk->now.registers[reg], false);
}

void table_walk_copy(struct table_walk *walk, unsigned int to, unsigned int from)
{
	walk->now.registers[to] = walk->now.registers[from];
}

void table_walk_forget(struct table_walk *walk, unsigned int reg)
{
	walk->now.registers[reg].known = false;
}

void table_walk_branch(struct table_walk *walk, __u64 target)
{
	if (target <= walk->start || target >= walk->end || walk->pending_count == TABLE_MERGE_MAX)
		return;
	walk->pending[walk->pending_count].target = target;
	walk->pending[walk->pending_count++].state = walk->now;
}

static void end_path(struct table_walk *walk)
{
	memset(&walk->now, 0, sizeof(walk->now));
}

void table_walk_jump(struct table_walk *walk, __u64 target)
{
	if (target < walk->start || target >= walk->end) {
		if (!walk->candidates->tail)
			walk->candidates->tail = target;
	} else {
		table_walk_branch(walk, target);
	}
	end_path(walk);
}

void table_walk_return(struct table_walk *walk, unsigned int reg)
{
	if (walk->now.registers[reg].known)
		add_candidate(walk->candidates, &walk->now.registers[reg], true);
	end_path(walk);
}
