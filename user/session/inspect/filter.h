/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters of an inspection as text: which cores and which types of events are captured. */
#ifndef XPT_SESSION_INSPECT_FILTER_H
#define XPT_SESSION_INSPECT_FILTER_H

#include "session/inspect/options.h"

/* Whether a filter of types has xputrace's names or Neuron's. */
enum inspect_dialect {
	INSPECT_XPUTRACE, /* those of xpt_inspect_event_types() */
	INSPECT_NEURON,	  /* those of the AWS Neuron runtime's nrt_sys_trace_get_event_types() */
	INSPECT_DIALECTS
};

/* A part of the text. */
struct inspect_part {
	const char *text;
	size_t length; /* 0: none */
};

/*
 * "0,2,4-7": numbers and ranges below XPT_INSPECT_CORES with commas between, in any order. Those are captured, and
 * no other core is. -EINVAL: that is no such list, or an empty one; -ENOMEM. Then settings are as before.
 */
int inspect_filter_cores(struct inspect_settings *settings, const char *text);

/*
 * "hardware,execute,^reset": names of types and groups with commas between. At first nothing is captured, or if the
 * first entry begins with ^, everything. Then each entry adds what it names or, with ^, takes it out; so the later one
 * counts. 0; -EINVAL: an entry is empty or, in the dialect of xputrace, names nothing: settings are as before.
 *
 * A type has one name in xputrace, but may have several in Neuron's dialect, of which each is a part of it: it is
 * captured when one of them is. Names without a counterpart here change nothing: that runtime has more of them with
 * every release. unknown gets the first entry that names nothing.
 */
int inspect_filter_types(struct inspect_settings *settings, enum inspect_dialect dialect, const char *text,
			 struct inspect_part *unknown);

#endif
