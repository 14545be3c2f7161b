/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs: a handle of a runtime in a process, and which generation of it, as handles are used again. A
 * generation begins with the return of a load, or with the first use when no load was seen, and lasts until an unload
 * begins, the next load returns, or the process is another one.
 */
#ifndef XPT_MODEL_PROGRAM_PROGRAMS_H
#define XPT_MODEL_PROGRAM_PROGRAMS_H

#include "model/program/functions.h"
#include "model/program/processes.h"
#include "model/program/totals.h"
#include "model/stats/statistics.h"
#include "model/stream/objects.h"

#define PROGRAM_NAME_MAX 1024	  /* bytes kept of a name */
#define PROGRAM_ALIVE (~(__u64)0) /* struct program.until: not released */
#define PROGRAM_OTHERS_MAX 1024	  /* programs that stand for the others of one process and runtime */

struct program {
	struct model_program view;
	struct map_node node;	/* by process, runtime and handle; the newest generation is found first */
	struct link of_process; /* in process.programs, or in programs.gone when it is released */
	struct process *process;
	const struct runtime *runtime;
	const char *noun; /* what a function that runs it calls it; NULL: see program_noun() */
	__u64 born;	  /* first time at which it is known to have been there */
	__u64 until;	  /* calls that begin earlier are its own; PROGRAM_ALIVE */
	char description[80];
	unsigned int order;	     /* number in the description; 0: it was not described */
	unsigned int wanted;	     /* number that it is to have there; 0: any */
	char *name;		     /* NULL: the description is used */
	bool superseded;	     /* it may be unloaded, and another one may have its name and number by now */
	__u64 used;		     /* when the last call that runs it began; 0: never */
	struct op *new_operators;    /* first seen since its last inference; see operators.h */
	unsigned int operator_depth; /* of operators that are in no other one, below their inference; 0: not known */
	unsigned int operator_count; /* of these, */
	__u64 operator_types;	     /* and the sum of the hashes of their types */
	struct statistics *latency, *call, *tracing;
	bool unmeasured; /* as programs.unmeasured: these three stay NULL */
	struct tokens *tokens;
	__u64 parent;		  /* handle */
	bool orphan;		  /* the parent may yet lend its name; counted in process.orphans */
	bool asked;		  /* whether the user named it has been looked up */
	bool others;		  /* stands for programs that are not kept apart */
	bool forgotten;		  /* freed when the batch closes gaps */
	unsigned int open;	  /* inferences that no wait has ended, and jobs under way: it cannot be forgotten */
	struct counting counting; /* of all that had the handle; the newest generation carries it */
	struct model_neighbour *neighbours; /* as in view */
};

struct programs {
	const struct programs
		*like; /* programs have the numbers in their descriptions that they have there; NULL: none */
	struct event_dispatch *events;
	struct processes *processes;
	struct map by_handle;
	struct map others; /* by process and runtime */
	struct program **all;
	size_t count, others_count;
	struct link gone; /* released ones, in the order of that */
	size_t released;  /* their number */
	size_t keep;	  /* number of them beyond which the oldest are forgotten */
	struct eviction eviction;
	unsigned int next_id;
	bool unmeasured; /* nobody reads the durations of programs */
};

void programs_init(struct programs *programs, struct event_dispatch *events, struct processes *processes);
void programs_free(struct programs *programs);

/* The generation that a call belongs to that began at time. NULL: none is known, or all were released before. */
struct program *programs_find(const struct programs *programs, const struct process *process, unsigned int runtime,
			      __u64 handle, __u64 time);
/* The same, made when there is none; one that stands for others beyond MODEL_PROGRAMS_MAX. NULL: no memory. */
struct program *programs_use(struct programs *programs, struct process *process, const struct runtime *runtime,
			     __u64 handle, __u64 time);
/* The program that a load from start to end has made. NULL: no memory. */
struct program *programs_load(struct programs *programs, struct process *process, const struct runtime *runtime,
			      __u64 handle, __u64 start, __u64 end);
/*
 * The program that counts read at time belong to; when there is none it is made, as one that has been there since then.
 * NULL: no memory.
 */
struct program *programs_counted(struct programs *programs, struct process *process, const struct runtime *runtime,
				 __u64 handle, __u64 since, __u64 time);
/* What the newest with the handle carries. NULL: none is known. */
struct counting *programs_counting(const struct programs *programs, const struct process *process, unsigned int runtime,
				   __u64 handle);
/*
 * The catch-all for programs of a process and runtime that are not kept apart; exited processes share one, since their
 * number is unbounded. NULL: no memory.
 */
struct program *programs_others(struct programs *programs, struct process *process, const struct runtime *runtime);
/* Released by a call that began at time. Returns whether it was not released before. */
bool programs_release(struct programs *programs, struct program *program, __u64 time);
/* The process has exited or runs another file: releases all its handles. */
void programs_release_all(struct programs *programs, struct process *process, __u64 time);

/*
 * Does nothing when the program already has a name from a better source. A model gets a number behind it where others with the name
 * live in its process. Returns 1: named; 0: not; -ENOMEM.
 */
int program_set_name(struct program *program, const char *name, enum name_source source);
/* The same, with a number that is taken when no other one has it; 0: any. */
int program_set_numbered(struct program *program, const char *name, unsigned int number, enum name_source source);
/* The same, with the name and number of another program. */
int program_name_after(struct program *program, const struct program *other, enum name_source source);
/* How a program is called that has no name: by the number, 0: the smallest that is free. False: it has a name, or was described before. */
bool program_describe(struct program *program, unsigned int number);
/* It is used though it was superseded: others with its name and number get another one. -ENOMEM. */
int programs_use_again(struct programs *programs, struct program *program, __u64 time);
/* "model" or "kernel" */
const char *program_noun(const struct program *program);
/* The program was made from the one with this handle: takes its name, now or as soon as it has one. As set_name. */
int programs_set_parent(struct programs *programs, struct program *program, __u64 parent, __u64 time);
/* Lends the name of a program to those that wait for it, with an EVENT_PROGRAM each. -ENOMEM. */
int programs_lend_name(struct programs *programs, const struct program *program, __u64 time);
void programs_emit(const struct programs *programs, const struct program *program, __u64 time, bool released);

/* A call that is an inference (not a layer) has been recorded. -ENOMEM: all but the quantiles is right. */
int program_record(struct program *program, const struct event_call *call);
/* What was enqueued or launched has ended. As program_record. */
int program_ended(struct program *program, __u64 start, __u64 end, bool failed);

/* A thread did not run in one of its calls: notes who had its CPU, or woke it. */
void program_meet(struct program *program, const struct event_off_cpu *off);

/*
 * Forgets released ones, in batches, when more than programs.keep are kept or MODEL_PROGRAMS_MAX of all: the latter also
 * when their totals have not come yet. What has open inferences stays.
 */
void programs_make_room(struct programs *programs, __u64 time);
/* Forgets all of processes that are marked as forgotten. */
void programs_forget_processes(struct programs *programs);

/* Programs that were chosen: inferences of others are counted only. */

/* Zero it to begin with. */
struct program_filter {
	struct model_chooser chooser; /* wants NULL: everything is chosen */
	struct model_choice *all;     /* texts are owned */
	size_t count;
};

void program_filter_free(struct program_filter *filter);
int program_filter_add(struct program_filter *filter,
		       const struct xpt_record_text *record); /* a CHOICE or MATCH. -ENOMEM */
/*
 * Is the call an inference, or a step of one, that nobody has chosen? Then its program, NULL where that is not known, counts
 * it as left out. inside: XPT_CALL_INSIDE.
 */
bool program_filter_leaves_out(const struct program_filter *filter, struct program *program,
			       const struct event_call *call, bool inside);

#endif
