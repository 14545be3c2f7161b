/* SPDX-License-Identifier: BSD-2-Clause */
/* What the classes of operators are called, by the address that tells one in a process's memory. */
#ifndef XPT_MODEL_OPERATOR_OPERATOR_CLASSES_H
#define XPT_MODEL_OPERATOR_OPERATOR_CLASSES_H

#include "base/hashmap.h"
#include "base/link.h"
#include "model/program/processes.h"

#define OPERATOR_CLASS_NAME_MAX 1024 /* bytes kept of a name */
#define OPERATOR_CLASSES_MAX 262144  /* of all processes; further ones have no name */

/* Zero it to begin with. */
struct operator_classes {
	struct map by_address;
	struct map by_process;
};

void operator_classes_free(struct operator_classes *classes);
/* text[length] is the name; a second one for an address replaces the first. -ENOMEM. */
int operator_classes_add(struct operator_classes *classes, const struct process *process, __u64 address,
			 const char *text, size_t length);
/* NULL: not known. Valid until the next operator_classes_add() or _drop(). */
const char *operator_classes_find(const struct operator_classes *classes, const struct process *process, __u64 address);
/* The process's memory is gone. */
void operator_classes_drop(struct operator_classes *classes, const struct process *process);

/*
 * Short form of a class's name, into type[size]: without namespaces and template arguments, "FusedGemm" for
 * "onnxruntime::contrib::FusedGemm<float>".
 */
void operator_class_type(const char *name, char *type, size_t size);

#endif
