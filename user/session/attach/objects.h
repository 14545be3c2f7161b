/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the objects of a process stand for, read from its memory when they are first seen: which node of its model an
 * operator is, what a program is called that was loaded before it could be seen. Nothing is read twice, unless programs
 * of the process were unloaded since, as its objects may be others then.
 */
#ifndef XPT_SESSION_ATTACH_OBJECTS_H
#define XPT_SESSION_ATTACH_OBJECTS_H

#include "session/attach/attach.h"
#include "session/attach/id_set.h"

#define OBJECTS_NODES_MAX 131072   /* known at once; further ones are not read */
#define OBJECTS_PROGRAMS_MAX 65536 /* so with programs */

/* A program that was released; calls that began before may come later, from the ring of another CPU. */
struct released_program {
	pid_t tgid;
	__u64 handle, time; /* when its release began, ns */
};

#define OBJECTS_RELEASED_MAX 256 /* the latest */

/* The name that a call loads a program by, which comes before the call. */
struct loaded_name {
	__u64 call_start;
	__u32 tid;
	__u16 spec;
	char name[XPT_STRING_MAX + 1];
};

#define OBJECTS_LOADS_MAX 16 /* names that are kept until their calls come */

/* Where the programs of a library have their names, as found in a program with its load observed. */
struct learned_place {
	const struct description *runtime;
	char build_id[ELF_BUILD_ID_MAX + 1]; /* of the library */
	unsigned int at;		     /* offset in the object */
	pid_t tgid;			     /* of the first one */
	uid_t user;			     /* of that process: its data names no other user's programs */
};

#define OBJECTS_PLACES_MAX 16  /* further ones are not learned */
#define OBJECTS_TRIES_MAX 1024 /* loads that have their programs searched for names */

/* Zero it to begin with. */
struct objects {
	struct id_set nodes, programs;
	struct released_program released[OBJECTS_RELEASED_MAX];
	size_t released_count; /* in all */
	struct loaded_name loads[OBJECTS_LOADS_MAX];
	size_t load_count; /* in all */
	struct learned_place places[OBJECTS_PLACES_MAX];
	size_t place_count;
	size_t tries;
};

void objects_free(struct objects *objects);
/* A call of an operator: whether its object is seen for the first time. */
bool objects_node_is_new(struct objects *objects, pid_t tgid, __u64 object, __u64 class);
/* The NODE record for such an object, which the caller frees; NULL: nothing is known of it. */
struct xpt_record_text *objects_node(struct attacher *attacher, pid_t tgid, __u64 time, __u64 object, __u64 class);
/* Any call: whether its program may have a name in memory, and is seen for the first time. */
bool objects_program_is_new(struct objects *objects, const struct registry *registry,
			    const struct xpt_record_call *call);
/* The LOADED record with the name of such a program; as above. */
struct xpt_record_text *objects_program(const struct objects *objects, struct attacher *attacher,
					const struct registry *registry, const struct xpt_record_call *call,
					__u64 time);
/* Strings of calls, before these. */
void objects_string(struct objects *objects, const struct registry *registry, const struct xpt_record_string *string);
/*
 * A load. Where its program has the name is learned for the build of its library: names of programs that were loaded unseen are read
 * there from then on, also of those that have been used already.
 */
void objects_load(struct objects *objects, struct attacher *attacher, const struct registry *registry,
		  const struct xpt_record_call *call);
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
