/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records in, ordered events out: order, pair, name, count. Knows no kernel, no file, no format; the same for live
 * records and for those of a recording. Memory is bounded by the limits in objects.h, whatever the length of the recording.
 */
#ifndef XPT_MODEL_CORE_MODEL_H
#define XPT_MODEL_CORE_MODEL_H

#include "base/core/log.h"
#include "model/stream/event.h"

struct model;

/* log must outlive the model; it may be NULL. -ENOMEM. */
int model_create(const struct log *log, struct model **result);
void model_free(struct model *model);
/* Before the first record. The sink's context must outlive the last call of model_feed and model_flush. -ENOSPC. */
int model_add_sink(struct model *model, struct event_sink sink);
/* Before the first record. Its context must outlive the last call of model_feed and model_flush. Totals have all. */
void model_set_gate(struct model *model, struct event_gate gate);
/*
 * Before the first record: these are some of the records of another model, which has got all of them and must outlive this one.
 * Programs without a name have the number there.
 */
void model_set_whole(struct model *model, const struct model *whole);

/*
 * Before the first record: only events are of interest. Programs have no durations, and functions that are not those of inferences
 * no sums of their recorded calls; what the kernel has counted is in both.
 */
void model_leave_out_sums(struct model *model);

/* Before the first record: stacks become events. -ENOSPC as model_add_sink(). */
int model_want_stacks(struct model *model);

void model_set_chooser(struct model *model, struct model_chooser chooser); /* before the first record */

size_t model_choice_count(const struct model *model);
const struct model_choice *model_choice(const struct model *model, size_t index);

/*
 * Takes one record (kernel or user-space made; header.size bytes, aligned or not), copies what it needs. Malformed ones
 * give -EBADMSG and are dropped, those of an unknown kind are passed over. Records are held back until a PASS record
 * guarantees that nothing older can come: after PASS(t), everything up to the time of the PASS before is delivered in
 * order of time; what comes later than that still is delivered, out of order. END delivers everything; so does, for the
 * older half, more than 16 MiB without a PASS. RUNTIME, SPEC, DRIVER, DRIVER_EVENT, COUNTER, CHOICE, MATCH,
 * MODULE, FRAME and STACK are in force at once. Returns 0, -EBADMSG, -ENOMEM (the record's event may lack something, the model is sound), or the error
 * of a sink, once: that sink gets no more, the others do.
 */
int model_feed(struct model *model, const struct xpt_record_header *record);
/* The end of a recording that was cut short: delivers everything that is held back, and gives up jobs that are open. */
int model_flush(struct model *model);

/* Everything that happened up to this time has been delivered, but for what comes late; 0: nothing yet. */
__u64 model_delivered(const struct model *model);
/*
 * Limit of the released programs and exited processes that are kept, oldest forgotten first; before the first record. For
 * models that run without end, with sinks that keep what they need. Kept beyond that number, so that nothing is counted
 * twice: what has inferences under way, what a COUNT was read of until its TOTAL comes, and what no TOTAL has come of,
 * for 10 s after its end.
 */
void model_keep_released(struct model *model, size_t most);

/* All programs kept, in the order of their first run or load. Indices hold until the next model_feed or model_flush. */
size_t model_program_count(const struct model *model);
const struct model_program *model_program(const struct model *model, size_t index);

size_t model_call_total_count(const struct model *model);
const struct model_call_total *model_call_total(const struct model *model, size_t index);

/* In the order of their first execution. */
size_t model_operator_count(const struct model *model);
const struct model_operator *model_operator(const struct model *model, size_t index);

size_t model_region_total_count(const struct model *model);
const struct model_region_total *model_region_total(const struct model *model, size_t index);

/* Queues of devices, in the order in which they were first seen. Pointers hold as long as the model. */
size_t model_queue_count(const struct model *model);
const struct model_queue *model_queue(const struct model *model, size_t index);

/* Processes that have or had jobs in queues, until what is delivered. A non-zero return ends the visit and is returned. */
int model_queue_uses(const struct model *model, int (*visit)(void *context, const struct model_queue_use *use),
		     void *context);

/* Counters that were read at intervals, by their index. */
size_t model_counter_count(const struct model *model);
const struct model_counter *model_counter(const struct model *model, size_t index);

/* In the order in which they were loaded or found first. */
size_t model_code_object_count(const struct model *model);
const struct model_code_object *model_code_object(const struct model *model, size_t index);

const struct model_code_totals *model_code_totals(const struct model *model);

/* Visits the names that the user gave to handles, and to fingerprints, that no program had; in that order. */
void model_unused_names(const struct model *model,
			void (*visit)(void *context, __u64 handle, bool fingerprint, const char *name), void *context);

__u64 model_lost(const struct model *model, enum xpt_loss cause);
__u64 model_first_time(const struct model *model); /* of any call; 0: none */
__u64 model_last_time(const struct model *model);
/* The JSON text of the END record; NULL: the recording was cut short. And its time, ns; 0: the same. */
const char *model_end_text(const struct model *model);
__u64 model_end_time(const struct model *model);

/* In order of time; the last ones may be left out, beyond MODEL_BUDGET_CHANGES_MAX. */
size_t model_budget_change_count(const struct model *model);
const struct model_budget_change *model_budget_change(const struct model *model, size_t index);
__u64 model_budget_changes_left_out(const struct model *model);
__u64 model_wait_count(const struct model *model);
__u64 model_wait_time(const struct model *model); /* ns, sum */

#endif
