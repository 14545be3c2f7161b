/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of a session that outlive what they were made from. */
#ifndef XPT_SESSION_CORE_OWNED_OPTIONS_H
#define XPT_SESSION_CORE_OWNED_OPTIONS_H

#include <xputrace/session.h>

/*
 * Makes a copy that shares nothing with given but command, the log and its context. -EINVAL: none are given, they have
 * no size, or a list lacks an entry within its count; -E2BIG: fields of a newer library are set; -ENOMEM. After an
 * error, there is nothing to free.
 */
int owned_options_copy(struct xpt_session_options *options, const struct xpt_session_options *given);
/* Frees what it holds; zeroed options hold nothing. */
void owned_options_free(struct xpt_session_options *options);

#endif
