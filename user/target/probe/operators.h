/* SPDX-License-Identifier: BSD-2-Clause */
/* Operators of a described runtime in a file: methods of its classes, or functions, and where their probes would go. */
#ifndef XPT_TARGET_PROBE_OPERATORS_H
#define XPT_TARGET_PROBE_OPERATORS_H

#include "describe/runtime/description.h"
#include "target/probe/classes.h"
#include "target/probe/site.h"

/* What classes have in a slot is often the same function. */
struct operator_function {
	struct site site;
	size_t first, count; /* of classes.methods: those that have it */
};

struct operators {
	/* Names are readable where they are understood. Without objects, table is the address of the probe. */
	struct classes classes;
	struct operator_function *functions; /* in order of their addresses */
	size_t function_count;
	size_t unplaced; /* functions that no probe can be put on */
};

/* Errors are those of classes_find(); -ENOENT too where there is no such function. */
int operators_find(struct elf_file *file, const struct operators_spec *spec, struct operators *result);
void operators_free(struct operators *operators);
/* The method that was described with the slot; NULL: none. */
const struct call_spec *operators_method(const struct operators_spec *spec, unsigned int slot);

#endif
