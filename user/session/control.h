/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket through which a running collector is told what to do: the server's side of the protocol in CONTROL.md.
 *
 * It never blocks and has no thread: its one descriptor goes into the loop of the caller, who calls all of it from one
 * thread. Only root and the effective user of the server are answered. Whatever a client does, memory, connections and
 * time are bounded.
 */
#ifndef XPT_SESSION_CONTROL_H
#define XPT_SESSION_CONTROL_H

#include <cjson/cJSON.h>
#include <linux/types.h>

#include "base/log.h"

#define CONTROL_CONNECTIONS_MAX 16
#define CONTROL_REQUESTS_MAX 64		    /* not answered yet, those included whose client has gone */
#define CONTROL_LINE_TIMEOUT 5000000000ull  /* ns for one line, once begun, to come in or to be taken by the client */
#define CONTROL_IDLE_TIMEOUT 60000000000ull /* ns that a connection may be open without a request */
#define CONTROL_NEVER (~0ull)

struct control;
struct control_request;

/*
 * Gets each request that is well-formed: body is an object whose "do" is a string that is not empty, valid during the
 * call. The request must be answered exactly once, by control_answer() or control_refuse(), in the call or later.
 * Requests of one connection come one after the other: the next one when the one before has been answered. May not
 * call other functions of this header.
 */
typedef void (*control_handler)(void *context, struct control_request *request, const cJSON *body);

struct control_options {
	const char *path; /* as control_socket.h has it; not kept */
	control_handler handler;
	void *context;
	__u64 line_timeout; /* ns; 0: CONTROL_LINE_TIMEOUT */
	__u64 idle_timeout; /* ns; 0: CONTROL_IDLE_TIMEOUT */
};

/* -ENOMEM, or what control_socket_open() gives, or -EMFILE, -ENFILE, logged all. log may be NULL, it is copied. */
int control_open(const struct log *log, const struct control_options *options, struct control **result);
/*
 * Requests that are open are refused (ESHUTDOWN) and no longer valid; what can be sent at once is sent; the socket is
 * removed if it is still this server's. NULL is allowed.
 */
void control_close(struct control *control);

/* Readable when control_work() has something to do. The control's own. */
int control_descriptor(const struct control *control);
/*
 * ns of CLOCK_MONOTONIC at which control_work() wants to be called at the latest, or CONTROL_NEVER. Changes with each
 * call.
 */
__u64 control_due(const struct control *control);
/* Accepts, reads, calls the handler, sends and closes what is ready or due. */
void control_work(struct control *control);

/*
 * The client gets the members of more, an object that is taken over (NULL: none), as control_write_answer() says. An
 * answer that is too long becomes a refusal. Where the client has gone, nothing happens. The request is not valid any
 * more.
 */
void control_answer(struct control_request *request, cJSON *more);
/* error: -errno. reason: one line for people that says what is wrong and what to do. */
void control_refuse(struct control_request *request, int error, const char *reason);

#endif
