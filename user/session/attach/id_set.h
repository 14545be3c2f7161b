/* SPDX-License-Identifier: BSD-2-Clause */
/* What was seen in each process, to resolve each object only once. */
#ifndef XPT_SESSION_ATTACH_ID_SET_H
#define XPT_SESSION_ATTACH_ID_SET_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct id_set_thing {
	pid_t tgid; /* 0: free */
	__u64 object, class;
};

/* Zero it to begin with. */
struct id_set {
	struct id_set_thing *things; /* a hash table */
	size_t count, room;	     /* room: a power of two */
};

/* class: 0 where the object alone identifies it. False: it was seen before, most are there, or there is no memory. */
bool id_set_add(struct id_set *set, size_t most, pid_t tgid, __u64 object, __u64 class);
void id_set_remove(struct id_set *set, pid_t tgid, __u64 object, __u64 class);
/* Things of the process may be others from here on. Without memory, those of all processes may. */
void id_set_drop(struct id_set *set, pid_t tgid);
void id_set_free(struct id_set *set);

#endif
