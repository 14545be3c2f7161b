/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket of a running collector: the server's side of the protocol in CONTROL.md.
 *
 * It never blocks once it is open and has no thread: its one descriptor is polled by the caller, who calls all of it
 * from one thread. Only root and the effective user of the server are answered. Whatever a client does, memory,
 * connections and time are bounded.
 */
#ifndef XPT_CONTROL_SERVER_H
#define XPT_CONTROL_SERVER_H

#include <cjson/cJSON.h>

#include "base/core/log.h"
#include "base/core/text.h"

#define CONTROL_CONNECTIONS_MAX 64 /* those included that have closed before their answer */
#define CONTROL_LOCK "lock"	   /* beside the sockets; held while one is made or removed */

struct control;
struct control_request;

/*
 * Gets each well-formed request: body is an object with a "do" that is a non-empty string, valid during the call. The
 * request must be answered exactly once, in the call or later. Requests of one connection come one after the other: the
 * next one when the one before has been answered. May not call other functions of this header than those that answer.
 */
typedef void (*control_handler)(void *context, struct control_request *request, const cJSON *body);

struct control_options {
	const char *directory, *name; /* of the socket; name without a slash. Not kept */
	control_handler handler;
	void *context;
};

/*
 * Makes the directory (0700) when there is none, but nothing above it, and listens in it (0600). log may be NULL, it is
 * copied. Errors are logged with what to do about them:
 * -EADDRINUSE    a server listens there (its pid is named), or another process is starting or ending one for more than a second
 * -EEXIST        something else is there, which is left alone
 * -EPERM         others than root and the caller's effective user own the directory or may write to it
 * -EINVAL, -ENAMETOOLONG  of the path; -ENOMEM, and other errors of the system: -EACCES, -ENOENT, -ENOTDIR, -EROFS...
 */
int control_open(const struct log *log, const struct control_options *options, struct control **result);
/*
 * Requests that are open are refused (ESHUTDOWN) and no longer valid; the socket is removed if it is still this server's. NULL is
 * allowed.
 */
void control_close(struct control *control);

/* Readable when control_work() has something to do. The control's own. */
int control_descriptor(const struct control *control);
/*
 * Accepts, reads and calls the handler for what is ready. Also called now and then without that: where the process had no
 * descriptor left, connections wait until the next call.
 */
void control_work(struct control *control);

/*
 * The answer, to which members are added with json_add_*(); then control_answer_end() sends it, and the request is not
 * valid any more. Nothing else may be called in between. An answer that does not fit into one packet becomes a refusal.
 * A client that has closed, or has left earlier answers unread, loses it.
 */
struct text *control_answer_begin(struct control_request *request);
void control_answer_end(struct control_request *request);
/* In place of an answer. error: -errno. reason: one line for people that says what is wrong and what to do. */
void control_refuse(struct control_request *request, int error, const char *reason);

#endif
