/* SPDX-License-Identifier: BSD-2-Clause */
/* A value that is fetched, as a member of an object: one expression, or one for each architecture. */
#ifndef XPT_DESCRIBE_RUNTIME_FETCH_MEMBER_H
#define XPT_DESCRIBE_RUNTIME_FETCH_MEMBER_H

#include "describe/reader/reader.h"
#include "bpf/wire.h"

/* Is it allowed there? Called for every architecture. 0, or what reader_error() gives at place. */
typedef int (*fetch_check_fn)(void *context, const struct json_place *place, const struct xpt_fetch *fetch);

/*
 * Compiles a member that is there. *given: it has an expression for this architecture, which *fetch then is, with
 * meaning (enum xpt_meaning, or 0); else fetch is left as it was. -EINVAL, reported.
 */
int fetch_member_parse(const struct reader *reader, const struct member *member, int meaning, fetch_check_fn check,
		       void *context, struct xpt_fetch *fetch, bool *given);

#endif
