/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket of a running collector, as CONTROL.md describes it. */
#ifndef XPT_CONTROL_CONTROL_H
#define XPT_CONTROL_CONTROL_H

#include <cjson/cJSON.h>
#include <xputrace/continuous.h>

#include "base/core/log.h"
#include "base/core/text.h"

/* ---- message.c: packets are checked, read, written; no sockets ---- */

#define CONTROL_VERSION 2	 /* of the protocol */
#define CONTROL_PACKET_MAX 65536 /* bytes of a packet, in both directions */
#define CONTROL_ID_NONE (-1)	 /* the packet that is answered had no id that could be read: null */
#define CONTROL_REASON_MAX 256	 /* bytes of a reason with its terminator; what is longer is cut */

/*
 * A request: *body is an object with a "do" that is a non-empty string; the caller deletes it. *id is set as far as it
 * could be read: 0 to 2^53, or CONTROL_ID_NONE. With the reason, CONTROL_REASON_MAX bytes: -EINVAL: no request, or no
 * memory for it; -EPROTONOSUPPORT: of another version.
 */
int control_read_request(const char *packet, size_t length, __s64 *id, cJSON **body, char *reason);
/*
 * An answer, positive or negative, to the request with that id; the caller deletes *answer. A refusal may be without an id: its
 * sender had not read that far. -EPROTO with the reason.
 */
int control_read_answer(const char *packet, size_t length, __s64 id, cJSON **answer, char *reason);
/*
 * 0: the request was carried out. Otherwise -errno by the name in the answer (-EREMOTEIO: this machine does not know the name) and
 * the reason, valid as long as the answer; reason may be NULL.
 */
int control_answer_error(const cJSON *answer, const char **reason);

/* Begin a message in a text that is empty: the caller adds members with json_add_*() and ends it. */
void control_begin_request(struct text *text, __s64 id, const char *what);
void control_begin_answer(struct text *text, __s64 id);
/* 0; -ENOMEM; -EMSGSIZE: it does not fit into one packet. */
int control_end(struct text *text);
/* A whole message. error: -errno, sent by its name. The reason may be any bytes. */
void control_write_refusal(struct text *text, __s64 id, int error, const char *reason);

/* Members of continuous profiling, added to a message that was begun. */
void control_add_save(struct text *text, const struct xpt_save_options *options);
void control_add_saved(struct text *text, const struct xpt_saved *saved);
void control_add_status(struct text *text, const struct xpt_continuous_status *status);

/* And read. The program is the object's. -EINVAL: a member has the wrong type or is out of range: its name is in *member. */
int control_read_save(const cJSON *object, struct xpt_save_options *options, const char **member);
/* Members that are missing are 0: of an older version. size is left alone, and all is where it fails: -EINVAL. */
int control_read_saved(const cJSON *object, struct xpt_saved *saved);
int control_read_status(const cJSON *object, struct xpt_continuous_status *status);

/* ---- server.c ---- */

/*
 * It never blocks once it is open and has no thread: its one descriptor is polled by the caller, who calls all of it from one thread.
 * Only root and the effective user of the server are answered. Whatever a client does, memory, connections and time are bounded.
 */

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

/* ---- client.c: requests to a running collector ---- */

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
