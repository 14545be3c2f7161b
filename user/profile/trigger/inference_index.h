/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inferences of a window: when each was, on which thread, core and of which program, so that the latest ones can be found.
 * Launches of programs and regions are among them. One thread at a time.
 */
#ifndef XPT_PROFILE_TRIGGER_INFERENCE_INDEX_H
#define XPT_PROFILE_TRIGGER_INFERENCE_INDEX_H

#include "model/stream/event.h"
#include "record/window.h"

struct inference_index;

int inference_index_create(struct inference_index **result); /* -ENOMEM */
void inference_index_free(struct inference_index *index);
struct event_sink inference_index_sink(struct inference_index *index);

/* The window begins at the time now: what began earlier is not in it. */
void inference_index_begin(struct inference_index *index, __u64 time);

struct inference_index_figures {
	__u64 inferences; /* known: all that began in the window are among them */
	__u64 evicted;	  /* began before it */
	__u64 bytes;	  /* of memory */
};
void inference_index_figures(const struct inference_index *index, struct inference_index_figures *figures);

/* Which inferences are meant. */
struct inference_filter {
	__u32 tgid;	     /* 0: of any process */
	const char *program; /* the whole name; NULL: any */
	__u64 handle;	     /* 0: any */
	bool has_core;
	__s64 core;  /* as the runtime calls it */
	__u64 since; /* ns: none that began earlier; 0: all */
};

struct inference_stretches {
	struct snapshot_stretch *stretches; /* owned: free() it; in order of thread and begin */
	size_t count;
	__u64 inferences; /* found */
	__u64 begin;	  /* ns: of the first of them */
};

struct indexed_inference {
	struct snapshot_stretch stretch; /* of what began it */
	__u32 wait_tid;			 /* of what has ended it, later; 0: that itself */
	__u64 end;
	bool has_core;
	__s64 core;
};
/* Visits those of a process, 0: of all, the latest first. A negative result ends the walk and is returned. */
int inference_index_each(const struct inference_index *index, __u32 tgid,
			 int (*visit)(void *context, const struct indexed_inference *inference), void *context);

/* The latest ones, at most `most`. -ENOENT: there are none; -ENOMEM. */
int inference_index_find(const struct inference_index *index, const struct inference_filter *filter, __u64 most,
			 struct inference_stretches *result);

#endif
