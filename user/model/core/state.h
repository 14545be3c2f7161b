/* SPDX-License-Identifier: BSD-2-Clause */
/* The model's parts, and who takes which record. Private to model/. */
#ifndef XPT_MODEL_CORE_STATE_H
#define XPT_MODEL_CORE_STATE_H

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "bpf/wire.h"
#include "model/core/model.h"
#include "model/device/call_tree.h"
#include "model/device/counters.h"
#include "model/device/jobs.h"
#include "model/inference/async_inflight.h"
#include "model/inference/stacks.h"
#include "model/operator/operators.h"
#include "model/program/code_objects.h"
#include "model/program/processes.h"
#include "model/program/programs.h"
#include "model/program/totals.h"
#include "model/stream/records.h"

/* Strings that were fetched for calls that are yet to come. */

#define STRINGS_MAX 4096 /* waiting at once; the oldest makes room */

struct string {
	struct keyed keyed; /* by thread, function and fetch, and when the call began */
	bool truncated;
	size_t length;
	char text[]; /* terminated; may hold further terminators */
};

int strings_add(struct keyed_table *strings, const struct xpt_record_string *record); /* -ENOMEM */
/* The string of a fetch of this call, for the caller to free. NULL: none. */
struct string *strings_take(struct keyed_table *strings, const struct xpt_record_call *call, unsigned int fetch);

#define USER_ALIASES_MAX 4096 /* of handles, and of fingerprints */

struct model {
	const struct log *log;
	struct event_dispatch events;
	struct reorder_buffer reorder;
	struct functions functions;
	struct processes processes;
	struct programs programs;
	struct name_table handles;	/* names that the user gave to them, by process, 0 for any, and handle */
	struct name_table fingerprints; /* and to these, of any process */
	struct name_table symbols;	/* at addresses of processes: for programs with the handle of a function */
	struct keyed_table strings;	/* of processes */
	struct totals totals;
	struct traced_drivers drivers;
	struct jobs jobs;
	struct async_inflight async;
	struct memory memory;
	struct regions regions;
	struct operator_set operators;
	struct call_tree tree;
	struct counter_samples samples;
	struct program_filter filter;
	struct code_objects code;
	struct stacks stacks;
	__u64 pass; /* time of the last PASS */
	bool passed;
	__u64 delivered; /* model_delivered() */
	__u64 latest;	 /* of all that has been delivered */
	__u64 first_time, last_time;
	__u64 wait_count, wait_time;
	char *end_text;
	__u64 end_time;
	struct {
		struct model_budget_change *all; /* names owned */
		size_t count;
		__u64 left_out;
	} budget;
	__u64 keys[XPT_KEYS_MAX]; /* of the call that is being delivered */
};

/* calls.c: delivers a call. -ENOMEM; the event is delivered all the same where that is possible. */
int call_deliver(struct model *model, const struct xpt_record_call *record);
/* records.c: the user's name for a handle, of this process before those of any. NULL: none. It counts as used from here on. */
const char *user_alias_find(const struct name_table *aliases, __u32 tgid, __u64 handle);
/* Gives the program the name that the user has for its handle, else that of the symbol there, if any. 1: named; 0: not; -ENOMEM. */
int program_ask_user(struct model *model, struct program *program);

/* records.c: what the kernel has counted. -ENOMEM. */
int count_deliver(struct model *model, const struct xpt_record_count *record);
int total_deliver(struct model *model, const struct xpt_record_total *record);

/* driver_events.c: delivers an event of a driver, or an ioctl on its device node. -ENOMEM, as for calls. */
int driver_event_deliver(struct model *model, const struct xpt_record_event *record);
int ioctl_deliver(struct model *model, const struct xpt_record_ioctl *record);

/* driver_events.c: a thread did not run for a while. -ENOMEM. */
int off_cpu_deliver(struct model *model, const struct xpt_record_off_cpu *record);

/* records.c: a program that was there before. -EBADMSG, -ENOMEM. */
int statedump_deliver(struct model *model, const struct xpt_record_text *record, const struct cJSON *object);

/* records.c: less or more is traced. -EBADMSG, -ENOMEM. */
int budget_deliver(struct model *model, const struct xpt_record_text *record, const struct cJSON *object);

/* records.c: the name of what has, or will have, a handle. -ENOMEM. */
int named_deliver(struct model *model, const struct xpt_record_text *record);
/* The fingerprint of a program is known now, or is another one: it is named by it, or by the user's name for it. -ENOMEM. */
int program_identified(struct model *model, struct program *program, __u64 time);
int symbol_deliver(struct model *model, const struct xpt_record_text *record);

/* records.c: processes that begin, change and end. */
int task_deliver(struct model *model, const struct xpt_record_task *record);
/* Evicts released programs and exited processes when too many are kept. Pointers to programs and processes may become invalid. */
int model_make_room(struct model *model, __u64 time);

#endif
