/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a workload did, counted by the workload itself: calls with the same function and the same values are one entry.
 * One ledger a thread; merged at the end and printed as JSON.
 */
#ifndef WORKLOAD_LEDGER_H
#define WORKLOAD_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct accelerator_job;

struct value {
	bool known;
	uint64_t number;
};

#define SOME(x) ((struct value){ true, (uint64_t)(x) })

struct call {
	const char *function; /* literals: compared by content */
	const char *program;  /* its name, when the call runs a program */
	struct value handle, size, core, stream, status;
	uint64_t start; /* when it began */
	bool inference; /* not a call: an asynchronous inference, from the enqueue to the end of the wait */
	uint64_t nanoseconds;
};

struct ledger;

struct ledger *ledger_new(void); /* ends the program when there is no memory */
void ledger_free(struct ledger *ledger);
void ledger_add(struct ledger *ledger, const struct call *call);
void ledger_merge(struct ledger *into, const struct ledger *from);
/* A call has handed a submission to the accelerator. */
void ledger_submission(struct ledger *ledger, const struct call *call, uint64_t submission);
/* "calls":[...],"inferences":[...] */
void ledger_print(const struct ledger *ledger, FILE *out);
/* "executions":[...], with the jobs of each. Ends the program when a job belongs to none. */
void ledger_print_executions(const struct ledger *ledger, const struct accelerator_job *jobs, size_t count, FILE *out);

uint64_t clock_now(void); /* ns, CLOCK_MONOTONIC */
void json_string(FILE *out, const char *text);

#endif
