/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The small language in which a description defines the source of a value: "arg4[0]@return", "arg0+0xDC:string"; and a
 * member of an object with such an expression, or with one for each architecture.
 */
#ifndef XPT_DESCRIBE_RUNTIME_FETCH_H
#define XPT_DESCRIBE_RUNTIME_FETCH_H

#include <linux/types.h>

#include "bpf/wire.h"
#include "describe/reader/reader.h"

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

/* Is it allowed there? Called for every architecture; reports what is not at place. */
typedef void (*fetch_check_fn)(struct reader *reader, void *context, const struct json_place *place,
			       const struct xpt_fetch *fetch);

/*
 * Compiles a member that is there. True: it has an expression for this architecture, which *fetch then is, with meaning
 * (enum xpt_meaning, or 0); else fetch is left as it was.
 */
bool fetch_member_parse(struct reader *reader, const struct member *member, int meaning, fetch_check_fn check,
			void *context, struct xpt_fetch *fetch);

#endif
