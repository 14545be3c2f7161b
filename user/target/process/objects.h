/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What objects in the memory of a running process stand for: the node of a model, the name of a program. Ways are described, and
 * what they lead to is checked: what does not look like a node, or a name, in every respect is none.
 */
#ifndef XPT_TARGET_PROCESS_OBJECTS_H
#define XPT_TARGET_PROCESS_OBJECTS_H

#include <sys/types.h>

#include "describe/runtime/description.h"

#define OPERATOR_NODE_NAME_MAX 1023 /* bytes kept of a name; what is longer is cut between two characters */
#define OPERATOR_NODE_TYPE_MAX 255
#define OPERATOR_NODE_PROVIDER_MAX 63

/* Texts are valid UTF-8 without control characters. */
struct operator_node {
	__s64 index;				       /* in its graph, 0 to 2^31 - 1; a subgraph counts its own */
	char name[OPERATOR_NODE_NAME_MAX + 1];	       /* as the model calls it; may be empty */
	char type[OPERATOR_NODE_TYPE_MAX + 1];	       /* "Gemm"; never empty */
	char provider[OPERATOR_NODE_PROVIDER_MAX + 1]; /* "CPUExecutionProvider"; never empty */
};

/*
 * Reads the node of the object at an address in process pid, by the first layout of spec that leads to one. The
 * object's first word is table: the address in that process of its class's virtual table (class_method.table of
 * target/probe/classes.h, where the file is mapped). The process keeps running: all is read twice. An object that was freed
 * and made again at the same address, with the same class, gives the node of the second one. Takes a bounded number of
 * system calls, allocates nothing.
 *
 * -ESTALE: there is no object of that class (any more). -EPROTO: what layouts lead to is no node. -EAGAIN: it changes.
 * -EFAULT: some of it is not mapped. -ESRCH: the process has ended. -EPERM: it may not be read. *node is set with 0 only.
 */
int object_node_read(const struct operators_spec *spec, pid_t pid, __u64 object, __u64 table,
		     struct operator_node *node);

#define OBJECT_NAME_MAX 1023 /* bytes of a name; longer ones are none */

/*
 * Reads the name of the object at an address in process pid by one way (not NAME_MAPPED): valid UTF-8 without control
 * characters, not empty. The process keeps running, so the name may be a wrong one where the object is made or freed at
 * the same time. Takes a system call for each word of the object at most. -ENOENT: none is found; -ENOMEM.
 */
int object_name_read(const struct name_way *way, pid_t pid, __u64 object, char name[OBJECT_NAME_MAX + 1]);
#define OBJECT_PLACE_MAX 1024 /* bytes of an object that are searched for its name */

/* Where the object has the name, as a std::string of either form, and its first word: of a class with virtual functions, their table. */
struct name_place {
	__u64 at; /* offset, the lowest; a multiple of 8 */
	__u64 table;
};

/* Errors as above. */
int object_name_find(pid_t pid, __u64 object, const char *name, struct name_place *place);
/* Whether a name fits one of the patterns of a way. */
bool name_way_fits(const struct name_way *way, const char *name);

#endif
