/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions and runtimes that call records refer to, as RUNTIME and SPEC records describe them. */
#ifndef XPT_MODEL_PROGRAM_FUNCTIONS_H
#define XPT_MODEL_PROGRAM_FUNCTIONS_H

#include "model/stream/event.h"

struct cJSON;

struct runtime_status {
	__s64 value;
	enum call_outcome outcome;
	char *name; /* NULL: none given */
};

struct runtime {
	unsigned int index;
	char *name;
	struct runtime_status *statuses; /* sorted by value */
	size_t status_count;
	bool in_order;
	char *streams_of; /* NULL: nobody shares its streams */
	bool unloads;	  /* there are functions that unload programs */
	bool models;	  /* it has functions that run models; else programs are kernels */
};

struct function_fetch {
	__u8 meaning; /* enum xpt_meaning */
	bool string;
	bool at_return;
	__u8 tests; /* XPT_TEST_* */
	__u32 mask, equal;
};

struct function {
	struct model_function view; /* the name is owned here */
	const struct runtime *runtime;
	char *runs; /* what its program is; NULL: a model or kernel, as the runtime has them */
	enum xpt_success success;
	unsigned int fetch_count;
	struct function_fetch fetches[XPT_FETCH_MAX];
	unsigned int value_count; /* fetches that are not strings */
	int name_fetch;		  /* index of the fetch that gives a name; -1: none */
	int keys_fetch;		  /* index of the fetch that gives keys; -1: none */
	__u8 returned;		  /* bit of each fetch that is made only after success */
	/* ns that a recorded call takes longer, and of it between the times of its record; 0: unknown */
	__u64 cost, cost_inside;
};

/* Zero it to begin with. */
struct functions {
	struct runtime *runtimes[XPT_RUNTIME_MAX];
	struct function *functions[XPT_SPEC_MAX];
};

void functions_free(struct functions *functions);

/*
 * object: JSON as in wire.h. Repeating the same is fine, something else for an index in use is not: records that are held
 * back already rely on it. -EBADMSG, -ENOMEM.
 */
int functions_add_runtime(struct functions *functions, __u64 index, const struct cJSON *object);
int functions_add(struct functions *functions, __u64 index, const struct cJSON *object);
/* What a COST record has of a function; of one that is unknown, nothing. -EBADMSG, -ENOMEM. */
int functions_add_cost(struct functions *functions, __u64 index, const struct cJSON *object);

static inline const struct function *functions_get(const struct functions *functions, unsigned int index)
{
	return index < XPT_SPEC_MAX ? functions->functions[index] : NULL; /* NULL: never described */
}

static inline const struct runtime *functions_runtime(const struct functions *functions, unsigned int index)
{
	return index < XPT_RUNTIME_MAX ? functions->runtimes[index] : NULL; /* NULL: never described */
}

/* Calls that run a program: those that are counted by program. */
static inline bool role_runs(enum xpt_role role)
{
	return role == XPT_ROLE_EXECUTE || role == XPT_ROLE_ENQUEUE || role == XPT_ROLE_LAUNCH;
}

/* Fills in the values, number, status and outcome of a call; the record's other fields are left to the caller. */
void function_decode(const struct function *function, const struct xpt_record_call *record, struct event_call *call);

#endif
