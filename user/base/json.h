/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks JSON text that is passed on as it is, e.g. from a recording that somebody else has made. */
#ifndef XPT_BASE_JSON_H
#define XPT_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#define JSON_DEPTH_MAX 32

/*
 * Whether text is exactly one JSON object by RFC 8259 in valid UTF-8, nested at most JSON_DEPTH_MAX deep, with nothing
 * but white space around it. Takes no memory and never reads beyond length.
 */
bool json_is_object(const char *text, size_t length);

#endif
