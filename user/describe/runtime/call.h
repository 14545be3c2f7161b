/* SPDX-License-Identifier: BSD-2-Clause */
/* One entry of "calls" of a runtime description. */
#ifndef XPT_DESCRIBE_RUNTIME_CALL_H
#define XPT_DESCRIBE_RUNTIME_CALL_H

#include "describe/runtime/description.h"
#include "describe/reader/reader.h"

#define CALL_SLOT_MAX 4095  /* last slot of an API table */
#define CALL_SYMBOLS_MAX 64 /* names of one function */
#define REFERENCE_MIN 8	    /* bytes of the string that a function refers to */
#define REFERENCE_MAX 255

/* What the calls before have taken. Zero it before the first one, calls_seen_clear() after the last. */
struct calls_seen {
	void *symbols; /* tree of names, which the calls own */
	unsigned char slots[(CALL_SLOT_MAX + 8) / 8];
};
void calls_seen_clear(struct calls_seen *seen);

/* Parses value, at place, into a zeroed call. has_table: the runtime has an API table. */
int call_spec_parse(const struct reader *reader, const cJSON *value, const struct json_place *place, bool has_table,
		    struct calls_seen *seen, struct call_spec *call);
void call_spec_clear(struct call_spec *call);

/* The name of an exported function, or where patterns is set a glob pattern of such names. */
int symbol_check(const struct reader *reader, const struct json_place *place, const char *symbol, bool patterns);

#endif
