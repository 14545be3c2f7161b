/* SPDX-License-Identifier: BSD-2-Clause */
/* The options object of continuous profiling, as its setters have checked it. */
#ifndef XPT_SESSION_CONTINUOUS_OPTIONS_H
#define XPT_SESSION_CONTINUOUS_OPTIONS_H

#include <stdbool.h>
#include <xputrace/continuous.h>

struct xpt_continuous_options {
	struct xpt_session_options targets; /* owned copies */
	bool has_targets;
	char *directory;
	uid_t user;
	gid_t group;
	uint64_t window_bytes;
	uint64_t window_time; /* ns; 0: no limit */
	enum xpt_level level;
	unsigned int sample_every;
	uint64_t counters_every; /* ns; 0: the default */
	int counters_per_inference;
	char *name; /* NULL: none */
	char *triggers[XPT_TRIGGERS_MAX];
	size_t trigger_count;
	uint64_t after, cooldown; /* ns */
	uint64_t files, bytes;	  /* at most; 0: no limit */
};

#endif
