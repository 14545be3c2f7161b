/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a record's own sizes agree with each other: the first thing to know of one that comes from outside. */
#ifndef XPT_MODEL_STREAM_RECORD_VALIDATE_H
#define XPT_MODEL_STREAM_RECORD_VALIDATE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "bpf/wire.h"

/*
 * The record lies within room bytes, is at least as long as its kind's struct, and its values or text fit into it. Of a
 * kind that this version doesn't know only the header is checked.
 */
bool record_validate(const struct xpt_record_header *record, size_t room);

#endif
