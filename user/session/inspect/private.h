/* SPDX-License-Identifier: BSD-2-Clause */
/* State of an inspection, shared by inspect.c and inspect_folder.c. */
#ifndef XPT_SESSION_INSPECT_PRIVATE_H
#define XPT_SESSION_INSPECT_PRIVATE_H

#include <xputrace/inspect.h>

#include "session/continuous/private.h"
#include "session/inspect/options.h"
#include "session/inspect/process.h"

struct xpt_inspect {
	struct inspect_settings settings;
	char *host;
	struct xpt_continuous *continuous; /* NULL: nothing is to be inspected */
	unsigned int usage;		   /* USAGE_* that are read */
	__u8 cores[XPT_INSPECT_CORES / 8]; /* seen: a bit each */
	__u8 event_types[XPT_EVENT_MAX];   /* enum inspect_type of each driver's event */
	unsigned int core_count;
	struct inspect_process *processes; /* the collecting thread's, as long as there is one */
	size_t process_count;
	__u64 left_out;								  /* processes beyond the limit */
	void (*written)(void *context, const char *directory, const char *index); /* NULL: nobody wants to know */
	void *written_context;
};

/* inspect_folder.c: the folder of a process, made now if it was not there. Closed with the process. */
int inspect_folder_open(struct xpt_inspect *inspect, struct inspect_process *process);
/* What has been recorded of it, and all that is made of that. The first error, which is logged. */
int inspect_folder_write(struct xpt_inspect *inspect, struct inspect_process *process);

#endif
