/* SPDX-License-Identifier: BSD-2-Clause */
/* Asking a running collector through its control socket: the client's side of the protocol in CONTROL.md. */
#ifndef XPT_SESSION_CONTROL_CLIENT_H
#define XPT_SESSION_CONTROL_CLIENT_H

#include <cjson/cJSON.h>
#include <linux/types.h>

#include "base/log.h"

/*
 * Sends one request and waits for its answer, timeout ns in all. request is an object with "do" and what belongs to
 * it; version and id are added. 0: *answer is the server's answer, which the caller deletes: ask
 * control_answer_error() whether it was done. Errors are logged with what to do about them:
 * -ENOENT, -ECONNREFUSED  nobody listens there: no collector runs with that name
 * -EACCES        the socket, or who listens there, is another user's
 * -ETIMEDOUT     no answer within the time; whether the request is carried out is not known
 * -ECONNRESET    the collector has ended before it answered
 * -EPROTO        what came is not an answer to the request
 * -EINVAL, -ENAMETOOLONG, -EMSGSIZE, -ENOMEM  of the path and the request
 */
int control_call(const char *path, const cJSON *request, __u64 timeout, cJSON **answer, const struct log *log);

/*
 * 0: it was done. Otherwise -errno by the name in the answer (-EREMOTEIO: the name is not known on this machine) and
 * the reason, valid as long as the answer; reason may be NULL.
 */
int control_answer_error(const cJSON *answer, const char **reason);

#endif
