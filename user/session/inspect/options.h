/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of an inspection, and what is asked of them while it runs. */
#ifndef XPT_SESSION_INSPECT_OPTIONS_H
#define XPT_SESSION_INSPECT_OPTIONS_H

#include <stdbool.h>

#include "session/inspect/types.h"

/* Those that are copied unchanged. */
struct inspect_settings {
	int session_id;
	bool inspect;
	bool on_fail;
	__u64 max_events_per_core;
	__u32 types;			   /* captured: bits (1 << enum inspect_type) */
	__u32 activities;		   /* enabled: bits (1 << enum inspect_activity) */
	bool other_cores;		   /* those with numbers that are not in cores are captured */
	__u8 cores[XPT_INSPECT_CORES / 8]; /* captured: a bit each */
};

/* Members are read where they are needed, and changed by the public functions and inspect_options_take() only. */
struct xpt_inspect_options {
	struct inspect_settings settings;
	char *output_dir;
	uid_t user; /* owner of the output */
	gid_t group;
	struct xpt_session_options targets; /* size 0: none were set */
	/* What the public functions list: */
	const char *type_names[INSPECT_TYPES + 1];
	const char *activity_names[INSPECT_ACTIVITIES + 1];
};

/* Of settings alone: */
int inspect_settings_set_session_id(struct inspect_settings *settings, __s64 id);
int inspect_settings_set_max_events(struct inspect_settings *settings, __u64 events);
int inspect_settings_set_core(struct inspect_settings *settings, __u32 core, bool enabled);
void inspect_settings_set_activities(struct inspect_settings *settings, __u32 activities, bool enabled);

/*
 * Takes over all settings, and a copy of output_dir where that is not NULL: both or neither. Errors as
 * xpt_inspect_options_set_output_dir().
 */
int inspect_options_take(struct xpt_inspect_options *options, const struct inspect_settings *settings,
			 const char *output_dir);

/* Are events captured that are of the core? Those of none are, without asking. */
bool inspect_settings_wants_core(const struct inspect_settings *settings, __s64 core);
/* Are events of the type captured? Not without the activity that they belong to. type: not INSPECT_TYPES. */
bool inspect_settings_wants_type(const struct inspect_settings *settings, enum inspect_type type);

#endif
