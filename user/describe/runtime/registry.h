/* SPDX-License-Identifier: BSD-2-Clause */
/* All runtime descriptions of one session: the built-in ones, and those added by file. Numbers their call specs. */
#ifndef XPT_DESCRIBE_RUNTIME_REGISTRY_H
#define XPT_DESCRIBE_RUNTIME_REGISTRY_H

#include "describe/runtime/description.h"

struct registry {
	struct description **runtimes;
	size_t runtime_count;		   /* at most XPT_RUNTIME_MAX */
	struct call_spec **specs;	   /* by spec index; owned by their descriptions */
	struct description **spec_runtime; /* by spec index: runtime of the spec */
	size_t spec_count;		   /* at most XPT_SPEC_MAX */
};

struct registry_options {
	const char *const *files; /* descriptions to read; one with the name of a built-in replaces it */
	size_t file_count;
	const char *const *only; /* names of the runtimes wanted; NULL: all */
	size_t only_count;
	const char *const *regions; /* functions that are regions, whatever is in only: see function_regions_describe() */
	size_t region_count;
};

/*
 * Reads the built-in descriptions and then those of options. An unknown name in only is -ENOENT with the known ones in
 * the message. Sets spec indices, runtime indices and xpt_spec.over. -EINVAL for a bad file, -E2BIG beyond the limits
 * of wire.h.
 */
int registry_create(const struct log *log, const struct registry_options *options, struct registry **result);
void registry_free(struct registry *registry);

/*
 * Functions of any program that a user makes regions, as the description of a runtime "function". Each of regions is
 * "FILE:FUNCTION": glob patterns of the name of a program or library (or where it holds a '/', its path), and of functions
 * in it, by their symbols or, where it holds "::", by their names in C++ without parameters. -EINVAL, reported; -ENOMEM.
 */
int function_regions_describe(const struct log *log, const char *const *regions, size_t count,
			      struct description **result);

const struct description *registry_find(const struct registry *registry, const char *name); /* NULL: unknown */

#endif
