/* SPDX-License-Identifier: BSD-2-Clause */
/* All runtime descriptions of one session: the built-in ones, and those added by file. Numbers their call specs. */
#ifndef XPT_DESCRIBE_REGISTRY_H
#define XPT_DESCRIBE_REGISTRY_H

#include "describe/description.h"

struct registry {
	struct description **runtimes;
	size_t runtime_count;		   /* at most XPT_RUNTIME_MAX */
	struct call_spec **specs;	   /* by spec index; owned by their descriptions */
	struct description **spec_runtime; /* by spec index: whose spec it is */
	size_t spec_count;		   /* at most XPT_SPEC_MAX */
};

/*
 * Reads the built-in descriptions and then each of files; one with the name of a built-in replaces it.
 * only: names of the runtimes wanted, or NULL for all; an unknown name is -ENOENT with the known ones in the message.
 * Sets spec indices, runtime indices and xpt_spec.over. -EINVAL for a bad file, -E2BIG beyond the limits of wire.h.
 */
int registry_create(const struct log *log, const char *const *files, size_t file_count, const char *const *only,
		    size_t only_count, struct registry **result);
void registry_free(struct registry *registry);

const struct description *registry_find(const struct registry *registry, const char *name); /* NULL: unknown */

#endif
