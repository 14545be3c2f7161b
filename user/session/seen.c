/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/seen.h"

#include <stdlib.h>

#define ROOM_FIRST 256

void seen_free(struct seen *seen)
{
	free(seen->things);
	*seen = (struct seen){ 0 };
}

/* Where it is, or would be. */
static struct seen_thing *place_of(struct seen_thing *things, size_t room, pid_t tgid, __u64 object, __u64 class)
{
	__u64 hash = (object ^ class * 0x9e3779b97f4a7c15 ^ (__u64)tgid << 40) * 0xff51afd7ed558ccd;
	size_t at = (hash >> 32) & (room - 1);

	while (things[at].tgid && (things[at].tgid != tgid || things[at].object != object || things[at].class != class))
		at = (at + 1) & (room - 1);
	return &things[at];
}

/* Moves what is there into a table of that room, but for those of one process. */
static bool rebuild(struct seen *seen, size_t room, pid_t without)
{
	struct seen_thing *things = calloc(room, sizeof(*things));
	size_t count = 0;

	if (!things)
		return false;
	for (size_t i = 0; i < seen->room; i++) {
		const struct seen_thing *from = &seen->things[i];

		if (!from->tgid || from->tgid == without)
			continue;
		*place_of(things, room, from->tgid, from->object, from->class) = *from;
		count++;
	}
	free(seen->things);
	*seen = (struct seen){ things, count, room };
	return true;
}

bool seen_add(struct seen *seen, size_t most, pid_t tgid, __u64 object, __u64 class)
{
	if (seen->room && place_of(seen->things, seen->room, tgid, object, class)->tgid)
		return false;
	if (seen->count >= most)
		return false;
	if (2 * (seen->count + 1) > seen->room && !rebuild(seen, seen->room ? 2 * seen->room : ROOM_FIRST, 0))
		return false;
	*place_of(seen->things, seen->room, tgid, object, class) = (struct seen_thing){ tgid, object, class };
	seen->count++;
	return true;
}

void seen_drop(struct seen *seen, pid_t tgid)
{
	if (seen->count && !rebuild(seen, seen->room, tgid))
		seen_free(seen);
}
