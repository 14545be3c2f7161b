/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of events that may be added to a document later. */
#ifndef XPT_PROFILE_TRACE_HELD_H
#define XPT_PROFILE_TRACE_HELD_H

#include "base/core/link.h"
#include "model/stream/event.h"

struct thread;

/* A copy of a call, region or ioctl, with its strings. */
struct held {
	struct link of_thread, of_all;
	struct thread *thread;
	size_t room; /* bytes of strings[] */
	struct event event;
	struct model_program program; /* just id and name */
	char strings[];
};

/*
 * Freed with free(). NULL: no memory. into is used again when it is large enough, else freed; without memory it is still
 * there.
 */
struct held *held_call(struct held *into, const struct event *event);
struct held *held_region(const struct event *event);
struct held *held_ioctl(const struct event *event);

/* Of a call, region or ioctl. */
__u64 held_start(const struct event *event);
__u64 held_end(const struct event *event);

#endif
