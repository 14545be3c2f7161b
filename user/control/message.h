/* SPDX-License-Identifier: BSD-2-Clause */
/* The packets of the control socket, as CONTROL.md describes them: checked, read, written. No sockets. */
#ifndef XPT_CONTROL_MESSAGE_H
#define XPT_CONTROL_MESSAGE_H

#include <cjson/cJSON.h>
#include <xputrace/continuous.h>

#include "base/core/text.h"

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

#endif
