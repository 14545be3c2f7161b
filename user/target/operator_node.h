/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node of a model that an operator's object stands for, from the memory of a running process. Where it lies is described
 * for known versions of the library and nothing is guessed: what does not look like a node in every respect is none.
 */
#ifndef XPT_TARGET_OPERATOR_NODE_H
#define XPT_TARGET_OPERATOR_NODE_H

#include <sys/types.h>

#include "describe/description.h"
#include "target/elf_file.h"

#define OPERATOR_NODE_NAME_MAX 1023 /* bytes kept of a name; what is longer is cut between two characters */
#define OPERATOR_NODE_TYPE_MAX 255
#define OPERATOR_NODE_PROVIDER_MAX 63

/* Texts are valid UTF-8 without control characters. */
struct operator_node {
	__s64 index;				       /* in its graph, 0 to 2^31 - 1; a subgraph counts its own */
	char name[OPERATOR_NODE_NAME_MAX + 1];	       /* as the model calls it; may be empty */
	char type[OPERATOR_NODE_TYPE_MAX + 1];	       /* "Gemm"; never empty */
	char provider[OPERATOR_NODE_PROVIDER_MAX + 1]; /* "CPUExecutionProvider"; empty when none is assigned */
};

/* The layout for the version of the library in file; NULL: none is described. It belongs to spec. */
const struct node_layout *operator_node_layout(struct elf_file *file, const struct operators_spec *spec);

/*
 * Reads the node of the object at an address in process pid, whose first word is table: the address in that process of its
 * class's virtual table (class_method.table of target/classes.h, where the file is mapped). The process goes on meanwhile: all
 * is read twice. An object that was freed and made again at the same address, with the same class, gives the node of the
 * second one. Takes a bounded number of system calls, allocates nothing.
 *
 * -ESTALE: there is no object of that class (any more). -EPROTO: what the layout leads to is no node. -EAGAIN: it changes.
 * -EFAULT: some of it is not mapped. -ESRCH: the process has ended. -EPERM: it may not be read. *node is set with 0 only.
 */
int operator_node_read(const struct node_layout *layout, pid_t pid, __u64 object, __u64 table,
		       struct operator_node *node);

#endif
