/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a runtime description: what the files of this folder share. What is wrong is an error of the reader. */
#ifndef XPT_DESCRIBE_RUNTIME_PARSE_H
#define XPT_DESCRIBE_RUNTIME_PARSE_H

#include <linux/types.h>

#include "bpf/wire.h"
#include "describe/reader/reader.h"
#include "describe/runtime/description.h"

/*
 * The small language in which a description defines the source of a value: "arg4[0]@return", "arg0+0xDC:string"; and a
 * member of an object with such an expression, or with one for each architecture.
 */

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

#define CALL_SLOT_MAX 4095  /* last slot of an API table */
#define CALL_SYMBOLS_MAX 64 /* names of one function */
#define REFERENCE_MIN 8	    /* bytes of the string that a function refers to */
#define REFERENCE_MAX 255

/* ---- description.c ---- */

#define ROLE_NAMES (XPT_ROLE_FOLLOW + 1)
extern const char *const role_names[ROLE_NAMES];

/* ---- call.c: entries of "calls" ---- */

/* What the calls before have taken. Zero it before the first one, calls_seen_clear() after the last. */
struct calls_seen {
	bool has_table; /* the runtime has an API table */
	void *symbols;	/* tree of names, which the calls own */
	unsigned char slots[(CALL_SLOT_MAX + 8) / 8];
};
void calls_seen_clear(struct calls_seen *seen);

/* Parses an element into a zeroed struct call_spec. context: struct calls_seen. */
void call_spec_parse(struct reader *reader, const struct member *element, void *item, void *context);
void call_spec_clear(struct call_spec *call);

/* The name of an exported function, or where patterns is set a glob pattern of such names. NULL: after an error. */
void symbol_check(struct reader *reader, const struct json_place *place, const char *symbol, bool patterns);

/* ---- fetches.c: what one call fetches, and whether that is what its role needs ---- */

/*
 * Completes call->wire, with role, success and entry-only flag set, by the fetches of member and the flags that follow.
 * place: of the call. success_given: the call defines success.
 */
void call_fetches_parse(struct reader *reader, const struct json_place *place, const struct member *member,
			bool success_given, struct call_spec *call);

/*
 * The fetches of an operator's method: its object, the object's class, and the inference around it. object: where the
 * object is; if it has nothing for this architecture, there are none.
 */
void method_fetches_parse(struct reader *reader, const struct member *object, struct call_spec *method);

/* Those of a function that is an operator without an object. */
void operator_fetches_set(struct call_spec *function);

/* ---- operators.c: operators of inferences, and objects in a process's memory ---- */

/* Nothing where member has no value. What an error leaves behind is for operators_spec_clear(). */
void operators_parse(struct reader *reader, const struct member *member, struct operators_spec *operators);
void operators_spec_clear(struct operators_spec *operators);

/* The same for description->names. */
void object_names_parse(struct reader *reader, const struct member *member, struct description *description);
void object_names_clear(struct description *description);

#endif
