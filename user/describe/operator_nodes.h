/* SPDX-License-Identifier: BSD-2-Clause */
/* What a runtime description says of the nodes that operators stand for. */
#ifndef XPT_DESCRIBE_OPERATOR_NODES_H
#define XPT_DESCRIBE_OPERATOR_NODES_H

#include "describe/description.h"
#include "describe/reader.h"

/* Fills operators->nodes from member, which need not be there. What an error leaves behind is for operator_nodes_clear(). */
int operator_nodes_parse(const struct reader *reader, const struct member *member, struct operators_spec *operators);
void operator_nodes_clear(struct operators_spec *operators);

#endif
