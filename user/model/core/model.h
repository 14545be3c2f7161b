/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records in, ordered events out: order, pair, name, count. Knows no kernel, no file, no format; the same for live
 * records and for those of a recording. Memory is bounded by the limits below, whatever the length of the recording.
 */
#ifndef XPT_MODEL_CORE_MODEL_H
#define XPT_MODEL_CORE_MODEL_H

#include "base/log.h"
#include "model/stream/event.h"

struct model;

/*
 * What is kept apart at once. Beyond it released programs and exited processes are forgotten, oldest first, and what is
 * known of them is added to an entry named "(others)", which has the handle 0 or the tgid 0. When none can be forgotten,
 * new ones are counted there and as XPT_LOSS_NAMES.
 */
#define MODEL_PROGRAMS_MAX 16384
#define MODEL_PROCESSES_MAX 4096
#define MODEL_CALL_TOTALS_MAX 16384 /* pairs of a function and a process */
#define MODEL_PENDING_MAX 65536	    /* enqueues that no wait has ended yet; the oldest makes room (XPT_LOSS_UNPAIRED) */
/*
 * Jobs that have not ended, or around which a call may not have returned. Beyond it those that have ended leave first, and
 * count as XPT_LOSS_JOBS when a call returns that lacks them; then the oldest is given up, and counts at once.
 */
#define MODEL_JOBS_MAX 65536
#define MODEL_QUEUES_MAX 1024	    /* queues of devices; further ones are one, with the engine "(others)" */
#define MODEL_OPERATORS_MAX 65536   /* further ones are not kept apart (XPT_LOSS_NAMES) */
#define MODEL_CODE_OBJECTS_MAX 4096 /* further ones are counted in struct model_code_totals only */
#define MODEL_CODE_LOADS_MAX 8192   /* handles that are loaded; the unload of the oldest ones beyond is not told */
#define MODEL_SYMBOLS_MAX 65536	    /* further ones are for programs that are there already (XPT_LOSS_NAMES) */
#define MODEL_SINKS_MAX 8

/* log must outlive the model; it may be NULL. -ENOMEM. */
int model_create(const struct log *log, struct model **result);
void model_free(struct model *model);
/* Before the first record. The sink's context must outlive the last call of model_feed and model_flush. -ENOSPC. */
int model_add_sink(struct model *model, struct event_sink sink);
/* Before the first record. Its context must outlive the last call of model_feed and model_flush. Totals have all. */
void model_set_gate(struct model *model, struct event_gate gate);

/*
 * Of which programs inferences and operators become events, where CHOICE and MATCH records say that some are chosen. Those of
 * others are counted only, as left out. What is recorded inside a recorded inference is never asked about.
 */
struct model_chooser {
	/* call: one of the program that is about to be delivered; its times, thread and function are known. */
	bool (*wants)(void *context, const struct model_program *program, const struct event_call *call);
	void *context; /* must outlive the last call of model_feed and model_flush */
};
void model_set_chooser(struct model *model, struct model_chooser chooser); /* before the first record */

/* What CHOICE and MATCH records tell, in their order. */
struct model_choice {
	const char *text; /* name, "": any; or the expression */
	bool match;	  /* it is an expression */
	__u32 tgid;	  /* 0: any */
	__u64 handle;	  /* 0: any */
};
size_t model_choice_count(const struct model *model);
const struct model_choice *model_choice(const struct model *model, size_t index);

/*
 * Takes one record (kernel or user-space made; header.size bytes, aligned or not), copies what it needs. Malformed ones
 * give -EBADMSG and are dropped, those of an unknown kind are passed over.
 * Records are held back until a PASS record says that nothing older can come: after PASS(t), everything up to the time
 * of the PASS before is delivered in order of time; what comes later than that still is delivered, out of order. END
 * delivers everything; so does, for the older half, more than 16 MiB without a PASS. RUNTIME, SPEC, DRIVER,
 * DRIVER_EVENT, COUNTER, CHOICE and MATCH are in force at once. Returns 0, -EBADMSG, -ENOMEM (the record's event may lack something, the
 * model is sound), or the error of a sink, once: that sink gets no more, the others do.
 */
int model_feed(struct model *model, const struct xpt_record_header *record);
/* The end of a recording that was cut short: delivers everything that is held back, and gives up jobs that are open. */
int model_flush(struct model *model);

/* Everything that happened up to this time has been delivered, but for what comes late; 0: nothing yet. */
__u64 model_delivered(const struct model *model);
/*
 * At most so many released programs and exited processes are kept, oldest forgotten first; before the first record. For
 * models that run without end and whose sinks keep what they need. Kept beyond that number, so that nothing is counted
 * twice: what has inferences under way, what a COUNT was read of until its TOTAL comes, and what no TOTAL has come of, for
 * 10 s after its end.
 */
void model_keep_released(struct model *model, size_t most);

/* All programs kept, in the order of their first run or load. Indices hold until the next model_feed or model_flush. */
size_t model_program_count(const struct model *model);
const struct model_program *model_program(const struct model *model, size_t index);

/*
 * Calls that are not inferences of a program (load, copy, alloc, wait, and launches whose program is unknown), one entry
 * a function and process. Layers are not counted.
 */
struct model_call_total {
	const struct model_function *function;
	const struct model_process *process;
	struct xpt_program_count total; /* exact; total_known as for programs */
	bool total_known;
	__u64 recorded, errors;
	__u64 bytes;			   /* sum of sizes, of calls that did not fail */
	const struct statistics *duration; /* ns; NULL: none yet, or recorded at entry only */
};
size_t model_call_total_count(const struct model *model);
const struct model_call_total *model_call_total(const struct model *model, size_t index);

/* In the order of their first execution. */
size_t model_operator_count(const struct model *model);
const struct model_operator *model_operator(const struct model *model, size_t index);

struct model_region_total {
	const char *runtime, *name;
	const struct model_process *process;
	const struct statistics *duration;
};
size_t model_region_total_count(const struct model *model);
const struct model_region_total *model_region_total(const struct model *model, size_t index);

/* Queues of devices, in the order in which they were first seen. Pointers hold as long as the model. */
size_t model_queue_count(const struct model *model);
const struct model_queue *model_queue(const struct model *model, size_t index);

/* Counters that were read at intervals, by their index. */
size_t model_counter_count(const struct model *model);
const struct model_counter *model_counter(const struct model *model, size_t index);

/* In the order in which they were loaded or found first. */
size_t model_code_object_count(const struct model *model);
const struct model_code_object *model_code_object(const struct model *model, size_t index);

/* Of all code objects; found ones are loads, too. */
struct model_code_totals {
	__u64 loads, unloads;
	__u64 incomplete;	 /* loads with bytes missing */
	__u64 waited, wait_time; /* how many calls waited until they were read, and ns of all of these together */
	struct model_code_kind {
		const char *name;
		__u64 loads;
	} kinds[32]; /* in the order in which they came; those that are too many are the last, "(others)" */
	unsigned int kind_count;
};
const struct model_code_totals *model_code_totals(const struct model *model);

/* Visits the names that the user gave to handles, and to fingerprints, that no program had; in that order. */
void model_unused_names(const struct model *model,
			void (*visit)(void *context, __u64 handle, bool fingerprint, const char *name), void *context);

__u64 model_lost(const struct model *model, enum xpt_loss cause);
__u64 model_first_time(const struct model *model); /* of any call; 0: none */
__u64 model_last_time(const struct model *model);
/* The JSON text of the END record; NULL: the recording was cut short. */
const char *model_end_text(const struct model *model);
__u64 model_wait_count(const struct model *model);
__u64 model_wait_time(const struct model *model); /* ns, sum */

#endif
