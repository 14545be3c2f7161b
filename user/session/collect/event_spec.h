/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel side has to do at an event of a driver, from its description and the tracepoint's layout. */
#ifndef XPT_SESSION_COLLECT_EVENT_SPEC_H
#define XPT_SESSION_COLLECT_EVENT_SPEC_H

#include <linux/types.h>
#include <stddef.h>

#include "bpf/wire.h"
#include "target/tracepoint/driver_events.h"

/* How events are filtered in the kernel (wire.h, XPT_EVENT_OF_*). */
struct event_filter {
	__u8 group;	   /* drivers with comparable keys */
	bool knows_device; /* an event of the driver, or of one with the same jobs, has the device */
	bool learns;	   /* such an event is on the submitting thread: else no device would ever be known */
	bool foreign;	   /* it is no driver of devices: it reports the jobs of all other drivers */
};

/* Whether events of the role happen on the thread that wants them. */
bool event_is_by_thread(enum xpt_event_role role);

/* index and next are left 0. -ERANGE: a number is beyond XPT_EVENT_SPAN_MAX. */
int event_spec_make(const struct tracepoint *tracepoint, const struct event_filter *filter,
		    struct xpt_event_spec *spec);

#endif
