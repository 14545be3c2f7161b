/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which node of its model each operator stands for, read from the process when it is first seen executing, and once more
 * when programs of the process have gone, as its objects may be others then.
 */
#ifndef XPT_SESSION_OPERATOR_NODES_H
#define XPT_SESSION_OPERATOR_NODES_H

#include "session/attach.h"
#include "session/seen.h"

#define OPERATOR_NODES_MAX 131072 /* known at once; further ones are not read */

/* Zero it to begin with. */
struct operator_nodes {
	struct seen seen;
};

void operator_nodes_free(struct operator_nodes *nodes);
/*
 * A call of an operator. The NODE record to give out before it, which the caller frees; NULL: it was seen before, or nothing
 * is known of it.
 */
struct xpt_record_text *operator_nodes_look(struct operator_nodes *nodes, const struct attacher *attacher, pid_t tgid,
					    __u64 time, __u64 object, __u64 class);
/* Objects of the process may be others from here on. */
void operator_nodes_drop(struct operator_nodes *nodes, pid_t tgid);

#endif
