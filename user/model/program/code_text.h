/* SPDX-License-Identifier: BSD-2-Clause */
/* What the JSON of a CODE_OBJECT record says. */
#ifndef XPT_MODEL_PROGRAM_CODE_TEXT_H
#define XPT_MODEL_PROGRAM_CODE_TEXT_H

#include "model/stream/event.h"

#define CODE_URI_MAX 4096  /* bytes kept of an URI, */
#define CODE_TEXT_MAX 1024 /* and of all other strings */

/*
 * Fills event with what it tells, which is all but process, time and handle. What is missing or makes no sense is not told. Strings
 * are owned by the event: code_text_free(). -EBADMSG: it is no object, -ENOMEM; then there is nothing to be freed.
 */
int code_text_read(const struct xpt_record_text *record, struct event_code *event);
void code_text_free(struct event_code *event);

#endif
