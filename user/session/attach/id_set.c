/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/attach/id_set.h"

#include <stdlib.h>

#define ROOM_FIRST 256

void id_set_free(struct id_set *set)
{
	free(set->things);
	*set = (struct id_set){ 0 };
}

/* Where it would be if nothing else were there. */
static size_t home_of(size_t room, pid_t tgid, __u64 object, __u64 class)
{
	__u64 hash = (object ^ class * 0x9e3779b97f4a7c15 ^ (__u64)tgid << 40) * 0xff51afd7ed558ccd;

	return (hash >> 32) & (room - 1);
}

/* Where it is, or would be. */
static struct id_set_thing *place_of(struct id_set_thing *things, size_t room, pid_t tgid, __u64 object, __u64 class)
{
	size_t at = home_of(room, tgid, object, class);

	while (things[at].tgid && (things[at].tgid != tgid || things[at].object != object || things[at].class != class))
		at = (at + 1) & (room - 1);
	return &things[at];
}

/* Moves what is there into a table of that room, but for those of one process. */
static bool rebuild(struct id_set *set, size_t room, pid_t without)
{
	struct id_set_thing *things = calloc(room, sizeof(*things));
	size_t count = 0;

	if (!things)
		return false;
	for (size_t i = 0; i < set->room; i++) {
		const struct id_set_thing *from = &set->things[i];

		if (!from->tgid || from->tgid == without)
			continue;
		*place_of(things, room, from->tgid, from->object, from->class) = *from;
		count++;
	}
	free(set->things);
	*set = (struct id_set){ things, count, room };
	return true;
}

bool id_set_add(struct id_set *set, size_t most, pid_t tgid, __u64 object, __u64 class)
{
	if (set->room && place_of(set->things, set->room, tgid, object, class)->tgid)
		return false;
	if (set->count >= most)
		return false;
	if (2 * (set->count + 1) > set->room && !rebuild(set, set->room ? 2 * set->room : ROOM_FIRST, 0))
		return false;
	*place_of(set->things, set->room, tgid, object, class) = (struct id_set_thing){ tgid, object, class };
	set->count++;
	return true;
}

/* Those behind it move up, as far as none gets in front of its home. */
void id_set_remove(struct id_set *set, pid_t tgid, __u64 object, __u64 class)
{
	struct id_set_thing *hole = set->room ? place_of(set->things, set->room, tgid, object, class) : NULL;
	size_t mask = set->room - 1, at;

	if (!hole || !hole->tgid)
		return;
	for (at = (size_t)(hole - set->things + 1) & mask; set->things[at].tgid; at = (at + 1) & mask) {
		struct id_set_thing *thing = &set->things[at];
		size_t home = home_of(set->room, thing->tgid, thing->object, thing->class);

		if (((at - home) & mask) < ((at - (size_t)(hole - set->things)) & mask))
			continue;
		*hole = *thing;
		hole = thing;
	}
	*hole = (struct id_set_thing){ 0 };
	set->count--;
}

void id_set_drop(struct id_set *set, pid_t tgid)
{
	if (set->count && !rebuild(set, set->room, tgid))
		id_set_free(set);
}
