/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings that were fetched for calls that are yet to come. */
#ifndef XPT_MODEL_CORE_STRINGS_H
#define XPT_MODEL_CORE_STRINGS_H

#include "base/hashmap.h"
#include "base/link.h"
#include "bpf/wire.h"

#define STRINGS_MAX 4096 /* waiting at once; the oldest makes room */

struct string {
	struct map_node node; /* by thread, function and fetch, and when the call began */
	struct link link;     /* of those waiting, oldest first, or of the free ones */
	__u32 tgid;
	bool truncated;
	size_t length;
	char text[XPT_STRING_MAX + 1]; /* terminated; may hold further terminators */
};

struct strings {
	struct map map;
	struct link waiting, spare;
	size_t count;
};

void strings_init(struct strings *strings);
void strings_free(struct strings *strings);
int strings_add(struct strings *strings, const struct xpt_record_string *record); /* -ENOMEM */
/*
 * The string of a fetch of this call, taken out of those waiting. NULL: none. It is valid until the next strings_add.
 */
struct string *strings_take(struct strings *strings, const struct xpt_record_call *call, unsigned int fetch);
/* The process has ended: the calls will not come. */
void strings_drop(struct strings *strings, __u32 tgid);

#endif
