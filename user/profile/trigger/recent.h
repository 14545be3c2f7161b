/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inferences of a window: when each was, on which thread, core and of which program, so that the latest ones can be found.
 * Launches of programs and regions are among them. One thread at a time.
 */
#ifndef XPT_PROFILE_TRIGGER_RECENT_H
#define XPT_PROFILE_TRIGGER_RECENT_H

#include "model/stream/event.h"
#include "record/window.h"

struct recent;

int recent_create(struct recent **result); /* -ENOMEM */
void recent_free(struct recent *recent);
struct event_sink recent_sink(struct recent *recent);

/* The window begins at the time now: what began earlier is not in it. */
void recent_begin(struct recent *recent, __u64 time);

struct recent_figures {
	__u64 inferences; /* known: all that began in the window are among them */
	__u64 evicted;	  /* began before it */
	__u64 bytes;	  /* of memory */
};
void recent_figures(const struct recent *recent, struct recent_figures *figures);

/* Which inferences are meant. */
struct recent_filter {
	__u32 tgid;	     /* 0: of any process */
	const char *program; /* the whole name; NULL: any */
	__u64 handle;	     /* 0: any */
	bool has_core;
	__s64 core;  /* as the runtime calls it */
	__u64 since; /* ns: none that began earlier; 0: all */
};

struct recent_stretches {
	struct snapshot_stretch *stretches; /* owned: free() it; in order of thread and begin */
	size_t count;
	__u64 inferences; /* found */
	__u64 begin;	  /* ns: of the first of them */
};

struct recent_inference {
	struct snapshot_stretch stretch; /* of what began it */
	__u32 wait_tid;			 /* of what has ended it, later; 0: that itself */
	__u64 end;
	bool has_core;
	__s64 core;
};
/* Visits those of a process, 0: of all, the latest first. A negative result ends the walk and is returned. */
int recent_each(const struct recent *recent, __u32 tgid,
		int (*visit)(void *context, const struct recent_inference *inference), void *context);

/* The latest ones, at most so many. -ENOENT: there are none; -ENOMEM. */
int recent_find(const struct recent *recent, const struct recent_filter *filter, __u64 most,
		struct recent_stretches *result);

#endif
