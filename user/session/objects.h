/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the objects of a process stand for, read from its memory when they are first seen: which node of its model an operator is, what
 * a program is called that was loaded before it could be seen. Nothing is read twice, but that programs of the process have gone since,
 * as its objects may be others then.
 */
#ifndef XPT_SESSION_OBJECTS_H
#define XPT_SESSION_OBJECTS_H

#include "session/attach.h"
#include "session/seen.h"

#define OBJECTS_NODES_MAX 131072   /* known at once; further ones are not read */
#define OBJECTS_PROGRAMS_MAX 65536 /* so with programs */

/* A program that was released; calls that began before may come later, from the ring of another CPU. */
struct released_program {
	pid_t tgid;
	__u64 handle, time; /* when its release began, ns */
};

#define OBJECTS_RELEASED_MAX 256 /* the latest */

/* Zero it to begin with. */
struct objects {
	struct seen nodes, programs;
	struct released_program released[OBJECTS_RELEASED_MAX];
	size_t released_count; /* in all */
};

void objects_free(struct objects *objects);
/*
 * A call of an operator. The NODE record to emit before it, which the caller frees; NULL: it was seen before, or nothing
 * is known of it.
 */
struct xpt_record_text *objects_node(struct objects *objects, struct attacher *attacher, pid_t tgid, __u64 time,
				     __u64 object, __u64 class);
/* Any call. The LOADED record to emit before it, with the name of its program; as above. */
struct xpt_record_text *objects_program(struct objects *objects, struct attacher *attacher,
					const struct registry *registry, const struct xpt_record_call *call,
					__u64 time);
/* The object is another program from here on. */
void objects_forget_program(struct objects *objects, const struct registry *registry,
			    const struct xpt_record_call *call);
/* Operators of the process may be others from here on. */
void objects_forget_nodes(struct objects *objects, pid_t tgid);
/* So may everything in it. */
void objects_forget(struct objects *objects, pid_t tgid);

/* The handle of the program that a call has read; 0: none. Strings have no value in a record. */
__u64 call_program(const struct xpt_spec *spec, const struct xpt_record_call *call);

#endif
