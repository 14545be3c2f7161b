/* SPDX-License-Identifier: BSD-2-Clause */
/* The operators: what programs are made of, one for each object that executes a step, or for each class without objects. */
#ifndef XPT_MODEL_OPERATOR_OPERATORS_H
#define XPT_MODEL_OPERATOR_OPERATORS_H

#include "base/core/hashmap.h"
#include "model/program/functions.h"
#include "model/program/processes.h"
#include "model/program/programs.h"
#include "model/stats/statistics.h"

#define OPERATOR_CLASSES_MAX 262144 /* with names, of all processes; further ones have none */

/*
 * How much of an inference lies in its operators. Calls are delivered in the order of their ends, so everything in an
 * inference comes before it.
 */

#define COVERAGES_MAX 4096 /* inferences under way at once; the oldest makes room */

struct coverage {
	struct keyed_table open; /* inferences that have not ended, by process and begin */
};

/* Where a call happened: index of the process, thread, and not on its inference's thread. */
struct coverage_place {
	unsigned int process;
	__u32 tid;
	bool apart;
};

void coverage_init(struct coverage *coverage);
void coverage_free(struct coverage *coverage);

/* An operator from start to end, of the inference that began at `inference`. -ENOMEM. */
int coverage_operator(struct coverage *coverage, const struct coverage_place *place, __u64 inference, __u64 start,
		      __u64 end);
/*
 * An inference has ended. Whether there were operators; then covered: ns during which at least one of them was running, on
 * whatever thread.
 */
bool coverage_end(struct coverage *coverage, const struct coverage_place *place, __u64 inference, __u64 *covered);
/* The process has ended. */
void coverage_drop(struct coverage *coverage, unsigned int process);

struct op {
	struct model_operator view; /* strings are owned here */
	struct map_node node;	    /* by process and object; the newest is found first */
	struct process *process;
	struct program *program; /* NULL: not known */
	struct op *next;	 /* of program.new_operators */
	__u64 object, class;	 /* object: the class where it has none */
	unsigned int depth;	 /* when it was first seen in an inference of its program, */
	bool apart;		 /* on another thread */
	bool has_object;
	bool gone; /* the object's memory is another one's by now */
	char *class_name, *type, *label, *name, *provider;
	struct statistics *duration;
};

struct operator_set {
	struct event_dispatch *events;
	struct name_table classes; /* by process and address of the class */
	struct coverage coverage;
	struct map by_object;
	struct keyed_table numbers;   /* how many there are of a type in a program */
	struct keyed_table described; /* what NODE records have of objects, by process and object */
	struct op **all;
	size_t count;
};

void operator_set_init(struct operator_set *operators, struct event_dispatch *events);
void operator_set_free(struct operator_set *operators);

/* From the JSON of a NODE record of the object at the address. -EBADMSG, -ENOMEM. */
int operator_set_describe(struct operator_set *operators, const struct process *process, __u64 object_address,
			  const struct cJSON *object);
/* From a CLASS record. -ENOMEM. */
int operator_set_name_class(struct operator_set *operators, const struct process *process,
			    const struct xpt_record_text *record);
/*
 * A call of an operator has been recorded: sets *result and call->op, which stay NULL where there are too many
 * (XPT_LOSS_NAMES). program: of its inference, NULL: not known. inside: ns of it in operators inside it. -ENOMEM.
 */
int operator_set_call(struct operator_set *operators, struct process *process, struct program *program,
		      struct event_call *call, __u64 inside, struct op **result);
/* A call that is an inference has ended: what of it was covered is added to its program. */
void operator_set_inference(struct operator_set *operators, const struct process *process, struct program *program,
			    const struct event_call *call);
/*
 * The same, and it succeeded: whether it gave its program another fingerprint. That is of the types of operators that are in no other
 * one, in whatever order they ran: which of those inside run depends on the input.
 */
bool operator_set_fingerprint(struct program *program, const struct event_call *call);
/* The process has exited or runs another file: objects at the same addresses are others. */
void operator_set_drop_process(struct operator_set *operators, const struct process *process);
/*
 * Short form of a class's name, into type[size]: without namespaces and template arguments, "FusedGemm" for
 * "onnxruntime::contrib::FusedGemm<float>".
 */
void operator_class_type(const char *name, char *type, size_t size);
/* Those of processes that are marked as forgotten go. */
void operator_set_forget_processes(struct operator_set *operators);

/* Named stretches of user code: what each is called, and how long all of a name took. */

#define REGION_NAMES_MAX 65536	  /* known at once, of all processes; the oldest makes room */
#define REGION_REQUESTS_MAX 65536 /* ids of requests; the oldest makes room */
#define REGION_TOTALS_MAX 4096	  /* names kept apart, of all processes together */

#define REGION_PROGRAM_ID 0x80000000u /* from here on; programs are numbered from 1 */

struct region_total {
	struct model_region_total view; /* the name is that of the program without its prefix */
	struct model_program program;	/* its name is owned here */
	struct map_node node;		/* by process and runtime, and hash of the name */
	const struct process *process;
	const struct runtime *runtime;
	struct statistics *duration;
};

struct regions {
	struct event_dispatch *events;
	struct processes *processes;
	struct name_table requests; /* names "request=ID" by process and number */
	struct keyed_table pending; /* regions of requests that have ended, by thread and the region that they are in */
	struct name_table names;    /* by process, twice that + 1 for those of handles, and number or handle */
	struct map totals;
	struct region_total **all;
	size_t count;
	unsigned int next_program;
};

void regions_init(struct regions *regions, struct event_dispatch *events, struct processes *processes);
void regions_free(struct regions *regions);

/* From a REGION_NAME record. -ENOMEM, as below. */
int regions_name(struct regions *regions, const struct xpt_record_region_name *record);
/* A call of role region.name has given the region of its handle a name. */
int regions_name_handle(struct regions *regions, const struct event_call *call);
/* The same, of a region that was there before the recording: text is terminated. */
int regions_set_name(struct regions *regions, __u32 tgid, __u64 handle, const char *text, bool truncated);
/* One of role region.release has taken it. */
void regions_release(struct regions *regions, const struct event_call *call);
/* A region has ended: an EVENT_REGION. Its handle replaces an unknown name. */
int regions_end(struct regions *regions, const struct process *process, const struct runtime *runtime,
		const struct xpt_record_region *record);
/* The process's memory is freed. */
void regions_drop_process(struct regions *regions, const struct process *process);
/* Adds the totals of processes that are marked as forgotten to those of the others. */
int regions_forget_processes(struct regions *regions, __u64 time);

#endif
