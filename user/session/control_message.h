/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lines that the control socket's two sides send each other, as CONTROL.md has them: taken out of a stream of
 * bytes, checked, written. No sockets.
 */
#ifndef XPT_SESSION_CONTROL_MESSAGE_H
#define XPT_SESSION_CONTROL_MESSAGE_H

#include <cjson/cJSON.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

#define CONTROL_VERSION 1      /* of the protocol */
#define CONTROL_LINE_MAX 65536 /* bytes of a line, its newline among them, in both directions */
#define CONTROL_ID_NONE (-1)   /* the line that is answered had no id that could be read: null */
#define CONTROL_REASON_MAX 192 /* bytes of a reason that is given here, with its terminator */

enum control_line {
	CONTROL_LINE_OPEN,     /* its end has not come yet */
	CONTROL_LINE_COMPLETE, /* line holds it without the newline, but with a terminator that is not counted */
	CONTROL_LINE_TOO_LONG, /* CONTROL_LINE_MAX bytes are there and no newline */
	CONTROL_LINE_NO_MEMORY,
};

/*
 * Appends bytes up to the end of the line and returns how many that were. line is cleared by the caller between two
 * lines; it never grows beyond CONTROL_LINE_MAX.
 */
size_t control_line_take(struct text *line, const char *bytes, size_t length, enum control_line *state);

struct control_asked {
	cJSON *body; /* of a good request: an object whose "do" is a string that is not empty; the caller deletes it */
	__s64 id;    /* of any line that has one: 0 to 2^53; or CONTROL_ID_NONE */
	char reason[CONTROL_REASON_MAX]; /* why it was refused */
};

/*
 * line has a terminator behind length. 0, or with the reason: -EINVAL: no request, or no memory for it;
 * -EPROTONOSUPPORT: of another version.
 */
int control_read_request(const char *line, size_t length, struct control_asked *asked);
/*
 * An answer, good or refused, to the request with that id; the caller deletes *answer. A refusal may be without an
 * id: its sender had not read that far. -EPROTO with the reason, CONTROL_REASON_MAX bytes.
 */
int control_read_answer(const char *line, size_t length, __s64 id, cJSON **answer, char *reason);

/*
 * Write one whole line into a text that is empty. The members of request and more (objects; NULL: none) come behind
 * those that each line has; their own "xputrace", "id" and "ok" are left out. Strings may hold any bytes: what is no
 * UTF-8 becomes U+FFFD. Whole numbers are exact up to 2^53, others have twelve digits. -EMSGSIZE: longer than
 * CONTROL_LINE_MAX or nested too deep; in place of such an answer there is a refusal then, in place of a request
 * nothing. A lack of memory shows in text->error only.
 */
int control_write_request(struct text *text, __s64 id, const cJSON *request);
int control_write_answer(struct text *text, __s64 id, const cJSON *more);
/* error: -errno, told by its name. A reason of more than 2,000 bytes is cut. */
void control_write_refusal(struct text *text, __s64 id, int error, const char *reason);

#endif
