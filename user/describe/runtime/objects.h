/* SPDX-License-Identifier: BSD-2-Clause */
/* A runtime description's part about objects in a process's memory: nodes of operators, names of programs. */
#ifndef XPT_DESCRIBE_RUNTIME_OBJECTS_H
#define XPT_DESCRIBE_RUNTIME_OBJECTS_H

#include "describe/runtime/description.h"
#include "describe/reader/reader.h"

/* Fills operators->nodes from member, which need not be there. What an error leaves behind is for operator_nodes_clear(). */
int operator_nodes_parse(const struct reader *reader, const struct member *member, struct operators_spec *operators);
void operator_nodes_clear(struct operators_spec *operators);

/* The same for description->names. */
int object_names_parse(const struct reader *reader, const struct member *member, struct description *description);
void object_names_clear(struct description *description);

#endif
