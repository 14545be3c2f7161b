/* SPDX-License-Identifier: BSD-2-Clause */
/* Records that user space adds to the kernel's, so that the stream explains itself. Free the result with free(). */
#ifndef XPT_SESSION_READER_DESCRIBE_RECORDS_H
#define XPT_SESSION_READER_DESCRIBE_RECORDS_H

#include <linux/types.h>
#include <stddef.h>
#include <xputrace/counters.h>

#include "base/core/text.h"
#include "describe/runtime/description.h"
#include "model/stream/event.h"
#include "record/context.h"
#include "target/tracepoint/driver_events.h"
#include "target/process/objects.h"
#include "target/process/process.h"

/* All give NULL when there is no memory. Text is cut so that the record fits. */
struct xpt_record_text *record_text(enum xpt_record_kind kind, __u32 tgid, __u64 time, __u64 id, const char *text);
struct xpt_record_text *record_runtime(const struct description *runtime);
struct xpt_record_text *record_spec(const struct call_spec *spec);
/* NODE: of the operator's object at an address, of the class. */
struct xpt_record_text *record_node(const struct operator_node *node, __u32 tgid, __u64 time, __u64 object,
				    __u64 class);
/* END: of the object, of which all but the last bracket is there; it is freed. */
struct xpt_record_text *record_end(__u64 time, struct text *json);
/* LOADED: of a program as it is now. */
struct xpt_record_text *record_loaded(const struct model_program *program, __u64 time);
/* LOADED: of a program that was found by its handle. */
struct xpt_record_text *record_loaded_name(const struct description *runtime, __u32 tgid, __u64 time, __u64 handle,
					   const char *name, enum name_source source);
/* LOADED: of a region's handle, from the call that has named it. */
struct xpt_record_text *record_loaded_region(const struct event_call *call);
/*
 * Whether an event changes what programs and regions there are: the change, and its LOADED record, to be freed; NULL:
 * released. False also without memory for it.
 */
bool record_change(const struct event *event, struct past_change *change, struct xpt_record_text **record);
/* COST: ns that a recorded call takes longer, and of them between its times. */
struct xpt_record_text *record_cost(__u64 spec, __u64 cost, __u64 inside);
struct xpt_record_text *record_process(const struct process_info *info, __u64 time);
/* BUDGET: of the object, of which all but the last bracket is there; it is freed. */
struct xpt_record_text *record_budget(__u32 tgid, __u64 time, struct text *json);

/* A driver with comparable keys: its index, and how many bits of each part. */
struct record_join {
	__u16 driver;
	__u16 bits;
};
/* followed: the device numbers of all followed nodes, by their index; those of the driver are emitted. */
struct xpt_record_text *record_driver(const struct driver_events *events, __u16 index, const struct record_join *joins,
				      size_t join_count, const dev_t *followed, size_t followed_count);
struct xpt_record_text *record_driver_event(const struct tracepoint *tracepoint, const struct xpt_event_spec *spec,
					    __u16 driver);
/* slots: counts that are read around inferences; of: "thread", "CPU" or "device"; each_cpu: they are compared on one CPU only. */
struct xpt_record_text *record_counter(const struct xpt_counter_info *counter, __u64 index, size_t slots,
				       const char *of, bool each_cpu);

#endif
