/* SPDX-License-Identifier: BSD-2-Clause */
/* What calls add up to: those of functions that are not inferences of a program, what the kernel has counted, and tokens. */
#ifndef XPT_MODEL_PROGRAM_TOTALS_H
#define XPT_MODEL_PROGRAM_TOTALS_H

#include <linux/types.h>
#include <stdbool.h>

#include "bpf/wire.h"
#include "model/program/functions.h"
#include "model/program/processes.h"
#include "model/stats/statistics.h"

/*
 * What the kernel has counted of one program or function. It counts until a TOTAL record with the final counts, then
 * begins anew; a COUNT record has those so far. What both give together is exact, and what was added each time never
 * negative, whatever comes late or twice.
 */

/* Zero it to begin with. */
struct counting {
	__u64 cut;			  /* time of the last TOTAL */
	__u64 since;			  /* when the counting began that is running */
	struct xpt_program_count running; /* the latest COUNT of it; its TOTAL will come */
	struct xpt_program_count earlier; /* the same of the counting before, when its TOTAL is late */
};

bool count_is_zero(const struct xpt_program_count *count);
void count_add(struct xpt_program_count *into, const struct xpt_program_count *from);

/*
 * A COUNT or TOTAL has come: adds its counts to total, takes out what was reported before of the same, and sets delta
 * to the difference. counting_read returns false when the COUNT is of a counting that has ended, or older than the one
 * before: then nothing has changed.
 */
bool counting_read(struct counting *counting, const struct xpt_record_count *record, struct xpt_program_count *total,
		   struct xpt_program_count *delta);
void counting_end(struct counting *counting, const struct xpt_record_total *record, struct xpt_program_count *total,
		  struct xpt_program_count *delta);

/* A TOTAL is to come that replaces the counts so far. */
static inline bool counting_open(const struct counting *counting)
{
	return !count_is_zero(&counting->running);
}

struct total {
	struct model_call_total view;
	struct map_node node; /* by process and function */
	struct process *process;
	struct statistics *duration;
	struct counting counting;
};

struct totals {
	struct event_dispatch *events;
	struct processes *processes;
	struct map map;
	struct total **all;
	size_t count;
};

void totals_init(struct totals *totals, struct event_dispatch *events, struct processes *processes);
void totals_free(struct totals *totals);
/* Beyond MODEL_CALL_TOTALS_MAX that of the function in all other processes. NULL: no memory. */
struct total *totals_get(struct totals *totals, struct process *process, const struct function *function, __u64 time);
int total_record(struct total *total, const struct event_call *call); /* -ENOMEM: all but the quantiles is right */
/* Adds those of processes that are marked as forgotten to the total of the others. */
void totals_forget_processes(struct totals *totals);

/* Language models: which batches take a prompt in, which give a token more to each of their sequences, and how fast. */

struct tokens;

/*
 * A call of a program that has the number of its tokens: sets its phase, and the times that end with it. *result: of the program,
 * made with the first such call. -ENOMEM.
 */
int tokens_call(struct tokens **result, const struct model_program *program, struct event_call *call);
/* Moves what is known of one into another one. */
void tokens_fold(struct tokens **from, struct tokens **into);
const struct model_tokens *tokens_view(const struct tokens *tokens); /* NULL: none */
void tokens_free(struct tokens *tokens);

#endif
