/* SPDX-License-Identifier: BSD-2-Clause */
/* The small language in which a description defines the source of a value: "arg4[0]@return", "arg0+0xDC:string". */
#ifndef XPT_DESCRIBE_RUNTIME_FETCH_EXPRESSION_H
#define XPT_DESCRIBE_RUNTIME_FETCH_EXPRESSION_H

#include <linux/types.h>
#include <stddef.h>

#include "bpf/wire.h"

#define FETCH_ARGUMENT_MAX 15 /* last argument that can be fetched */

/*
 * Compiles text; everything but meaning is set. -EINVAL for a bad one, with the reason in reason[size].
 *
 *	expression = source { "[" ["-"] number "]" } [ ("+" | "-") number ] [ ":" type ] [ "@entry" | "@return" ]
 *	source	   = "arg" number | "return"
 *	type	   = "u64" | "u32" | "s32" | "u16" | "u8" | "string"
 *	number	   = decimal or 0x and hexadecimal digits
 */
int fetch_expression_parse(const char *text, struct xpt_fetch *fetch, char *reason, size_t size);

#endif
