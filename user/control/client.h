/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to a running collector through its control socket: the client's side of the protocol in CONTROL.md. */
#ifndef XPT_CONTROL_CLIENT_H
#define XPT_CONTROL_CLIENT_H

#include <cjson/cJSON.h>
#include <linux/types.h>

#include "base/core/log.h"
#include "base/core/text.h"

#define CONTROL_REQUEST_ID 1 /* there is one request a connection */

/*
 * Ends and sends a request that was begun with CONTROL_REQUEST_ID, and waits for its answer, timeout ns in all. 0: *answer is the
 * server's answer, which the caller deletes: control_answer_error() gives its result. Errors are logged with what to do about them:
 * -ENOENT, -ECONNREFUSED  nobody listens there: no collector runs with that name
 * -EPROTOTYPE    an older version listens there
 * -EACCES        the socket, or who listens there, is another user's
 * -ETIMEDOUT     no answer within the time; whether the request is carried out is not known
 * -ECONNRESET    the collector has ended before it answered
 * -EPROTO        what came is not an answer to the request
 * -EINVAL, -ENAMETOOLONG, -EMSGSIZE, -ENOMEM  of the path and the request
 */
int control_call(const char *path, struct text *request, __u64 timeout, cJSON **answer, const struct log *log);

#endif
