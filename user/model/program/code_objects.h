/* SPDX-License-Identifier: BSD-2-Clause */
/* Code objects: which there are, and which are loaded under a handle. */
#ifndef XPT_MODEL_PROGRAM_CODE_OBJECTS_H
#define XPT_MODEL_PROGRAM_CODE_OBJECTS_H

#include "base/core/hashmap.h"
#include "model/program/processes.h"

struct code_object {
	struct model_code_object view; /* its strings are owned */
	struct map_node node;	       /* by what makes it the same, and size */
};

struct code_objects {
	struct event_dispatch *events;
	struct code_object **all;
	size_t count;
	struct map by_content;
	struct keyed_table loads; /* what is loaded under a handle, of processes */
	struct model_code_totals totals;
};

void code_objects_init(struct code_objects *objects, struct event_dispatch *events);
void code_objects_free(struct code_objects *objects);

/* From a CODE_OBJECT record and its JSON. -ENOMEM: it is emitted and counted, but may not be kept. */
int code_objects_load(struct code_objects *objects, const struct process *process, const struct xpt_record_text *record,
		      const struct cJSON *json);
/* From a CODE_UNLOADED record, of an object that is known to be loaded. */
void code_objects_unload(struct code_objects *objects, const struct process *process,
			 const struct xpt_record_text *record);

#endif
