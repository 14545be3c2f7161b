/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/call.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "describe/runtime/call_code.h"
#include "describe/runtime/call_fetches.h"

enum {
	SYMBOL,
	SYMBOLS,
	SLOT,
	PROBE,
	REFERS_TO,
	CALLBACK_OF,
	METHOD_OF,
	ONLY_IN,
	NAME,
	ROLE,
	SUCCESS,
	FETCH,
	CODE,
	ENTRY_ONLY,
	NOTE,
	MEMBERS
};

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void keep(void *name)
{
	(void)name; /* belongs to its call */
}

void calls_seen_clear(struct calls_seen *seen)
{
	tdestroy(seen->symbols, keep);
	seen->symbols = NULL;
}

int symbol_check(const struct reader *reader, const struct json_place *place, const char *symbol, bool patterns)
{
	for (const char *at = symbol; *at; at++) {
		if (*at <= ' ' || *at > '~')
			return reader_error(reader, place, "is no symbol: only printable ASCII without blanks");
		if (*at == '@')
			return reader_error(reader, place, "give the symbol without its version");
		if (!patterns && strchr("*?[\\", *at))
			return reader_error(reader, place, "must be one symbol, not a pattern");
	}
	return 0;
}

static int take_symbol(const struct reader *reader, const struct json_place *place, struct calls_seen *seen,
		       char *symbol)
{
	char **found;
	int error = symbol_check(reader, place, symbol, true);

	if (error)
		return error;
	found = tsearch(symbol, &seen->symbols, by_name);
	if (!found)
		return -ENOMEM;
	return *found == symbol ? 0 : reader_error(reader, place, "'%s' is described twice", symbol);
}

static int read_symbols(const struct reader *reader, const struct member *members, struct calls_seen *seen,
			struct call_spec *call)
{
	struct json_place at = { &members[SYMBOLS].place, NULL, 0 };
	int error;

	call->locate = LOCATE_SYMBOL;
	if (members[SYMBOL].value) {
		call->symbols = calloc(1, sizeof(*call->symbols));
		if (!call->symbols)
			return -ENOMEM;
		error = reader_string(reader, members[SYMBOL].value, &members[SYMBOL].place, &call->symbols[0]);
		if (error)
			return error;
		call->symbol_count = 1;
		return take_symbol(reader, &members[SYMBOL].place, seen, call->symbols[0]);
	}
	error = reader_strings(reader, &members[SYMBOLS], &call->symbols, &call->symbol_count);
	if (error)
		return error;
	if (!call->symbol_count)
		return reader_error(reader, &members[SYMBOLS].place, "must name at least one symbol");
	if (call->symbol_count > CALL_SYMBOLS_MAX)
		return reader_error(reader, &members[SYMBOLS].place, "more than %d symbols", CALL_SYMBOLS_MAX);
	for (; at.index < call->symbol_count; at.index++) {
		error = take_symbol(reader, &at, seen, call->symbols[at.index]);
		if (error)
			return error;
	}
	return 0;
}

static int read_slot(const struct reader *reader, const struct member *members, bool has_table, struct calls_seen *seen,
		     struct call_spec *call)
{
	__s64 slot = 0;
	int error;

	call->locate = LOCATE_SLOT;
	if (!has_table)
		return reader_error(reader, &members[SLOT].place, "the runtime has no table");
	error = reader_number(reader, &members[SLOT], 0, CALL_SLOT_MAX, &slot);
	if (error)
		return error;
	if (seen->slots[slot / 8] & 1 << slot % 8)
		return reader_error(reader, &members[SLOT].place, "slot %lld is described twice", (long long)slot);
	seen->slots[slot / 8] |= 1 << slot % 8;
	call->slot = slot;
	return 0;
}

static int read_probe(const struct reader *reader, const struct member *members, struct calls_seen *seen,
		      struct call_spec *call)
{
	const struct member *member = &members[PROBE];
	const char *colon;
	int error = reader_string(reader, member->value, &member->place, &call->probe);

	call->locate = LOCATE_PROBE;
	if (error)
		return error;
	colon = strchr(call->probe, ':');
	if (!colon || colon == call->probe || !colon[1] || strchr(colon + 1, ':'))
		return reader_error(reader, &member->place, "must be \"PROVIDER:NAME\"");
	error = symbol_check(reader, &member->place, call->probe, false);
	return error ? error : take_symbol(reader, &member->place, seen, call->probe);
}

/* Not shorter: in a large library a short string is the tail or the begin of others. */
static int read_reference(const struct reader *reader, const struct member *members, struct call_spec *call)
{
	const struct member *member = &members[REFERS_TO];
	int error = reader_string(reader, member->value, &member->place, &call->refers_to);
	size_t length = error ? 0 : strlen(call->refers_to);

	call->locate = LOCATE_REFERENCE;
	if (error)
		return error;
	if (length < REFERENCE_MIN || length > REFERENCE_MAX)
		return reader_error(reader, &member->place, "must have %d to %d bytes", REFERENCE_MIN, REFERENCE_MAX);
	if (!members[ONLY_IN].value)
		return reader_error(reader, &member->place,
				    "is looked for in few files: 'file' must say what they are called");
	return 0;
}

static int read_method(const struct reader *reader, const struct member *members, struct call_spec *call)
{
	const struct member *member = &members[METHOD_OF];
	__s64 slot = 0;
	int error = reader_string(reader, member->value, &member->place, &call->method_of);

	call->locate = LOCATE_VIRTUAL;
	if (!error && !members[SLOT].value)
		return reader_error(reader, &member->place, "needs the slot of its virtual table");
	if (!error && !members[ONLY_IN].value)
		return reader_error(reader, &member->place,
				    "is looked for in few files: 'file' must say what they are called");
	if (!error)
		error = reader_number(reader, &members[SLOT], 0, CALL_SLOT_MAX, &slot);
	call->slot = slot;
	return error;
}

/* The call that it names is resolved when all are there. */
static int read_callback(const struct reader *reader, const struct member *members, struct call_spec *call)
{
	call->locate = LOCATE_CALLBACK;
	return reader_string(reader, members[CALLBACK_OF].value, &members[CALLBACK_OF].place, &call->callback_of);
}

/* How the function is found and called. */
static int read_locate(const struct reader *reader, const struct json_place *place, const struct member *members,
		       bool has_table, struct calls_seen *seen, struct call_spec *call)
{
	int ways = !!members[SYMBOL].value + !!members[SYMBOLS].value +
		   (members[SLOT].value || members[METHOD_OF].value) + !!members[PROBE].value +
		   !!members[REFERS_TO].value + !!members[CALLBACK_OF].value;
	int error;

	if (ways != 1)
		return reader_error(
			reader, place,
			"must have one of symbol, symbols, slot, probe, refers_to, callback_of and method_of");
	if (members[ONLY_IN].value &&
	    ((members[SLOT].value && !members[METHOD_OF].value) || members[PROBE].value || members[CALLBACK_OF].value))
		return reader_error(reader, &members[ONLY_IN].place,
				    "is for functions that are found by their symbols, or by what they refer to");
	if (members[ONLY_IN].value) {
		error = reader_string(reader, members[ONLY_IN].value, &members[ONLY_IN].place, &call->file);
		if (error)
			return error;
	}
	if (members[METHOD_OF].value)
		error = read_method(reader, members, call);
	else if (members[SLOT].value)
		error = read_slot(reader, members, has_table, seen, call);
	else if (members[PROBE].value)
		error = read_probe(reader, members, seen, call);
	else if (members[REFERS_TO].value)
		error = read_reference(reader, members, call);
	else if (members[CALLBACK_OF].value)
		error = read_callback(reader, members, call);
	else
		error = read_symbols(reader, members, seen, call);
	if (error)
		return error;
	if (members[NAME].value)
		return reader_string(reader, members[NAME].value, &members[NAME].place, &call->function);
	if (call->locate != LOCATE_PROBE && call->locate != LOCATE_SYMBOL)
		return reader_error(reader, place, "a function that is not found by its symbol needs a name");
	call->function = strdup(call->locate == LOCATE_PROBE ? call->probe : call->symbols[0]);
	return call->function ? 0 : -ENOMEM;
}

static bool role_is_internal(int role)
{
	return role >= XPT_ROLE_TABLE && role <= XPT_ROLE_OPERATOR_END;
}

static int read_role(const struct reader *reader, const struct json_place *place, const struct member *member,
		     struct xpt_spec *spec)
{
	char known[400] = "";
	size_t used = 0;
	int role;

	if (!member->value)
		return reader_error(reader, place, "role is missing");
	if (!cJSON_IsString(member->value))
		return reader_error(reader, &member->place, "must be a string");
	role = role_from_name(member->value->valuestring);
	if (role_is_internal(role))
		return reader_error(reader, &member->place, "role '%s' is internal", role_name(role));
	if (role > 0) {
		spec->role = role;
		return 0;
	}
	for (role = XPT_ROLE_PROGRAM_LOAD; role <= XPT_ROLE_PROGRAM_READY && used < sizeof(known); role++)
		if (!role_is_internal(role))
			used += snprintf(known + used, sizeof(known) - used, " %s", role_name(role));
	return reader_error(reader, &member->place, "unknown role '%.40s' (known:%s)", member->value->valuestring,
			    known);
}

static int read_success(const struct reader *reader, const struct member *member, struct call_spec *call)
{
	static const char *const names[] = {
		[XPT_SUCCESS_ALWAYS] = "always",
		[XPT_SUCCESS_ZERO32] = "zero",
		[XPT_SUCCESS_ZERO64] = "null",
		[XPT_SUCCESS_NONZERO] = "nonzero",
	};

	if (!member->value)
		return 0;
	if (!cJSON_IsString(member->value))
		return reader_error(reader, &member->place, "must be a string");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], member->value->valuestring) == 0) {
			call->wire.success = i;
			call->has_status = i == XPT_SUCCESS_ZERO32 || i == XPT_SUCCESS_ZERO64;
			return 0;
		}
	}
	return reader_error(reader, &member->place, "unknown '%.40s' (known: always zero null nonzero)",
			    member->value->valuestring);
}

static int read_entry_only(const struct reader *reader, const struct member *members, struct call_spec *call)
{
	struct xpt_spec *spec = &call->wire;
	bool entry_only = false;
	int error = reader_bool(reader, &members[ENTRY_ONLY], &entry_only);

	if (!error && !entry_only && members[PROBE].value)
		return reader_error(reader, &members[PROBE].place,
				    "is a place, not a function that returns: the call must be entry_only");
	if (!error && call->locate == LOCATE_CALLBACK && spec->role != XPT_ROLE_WAIT)
		return reader_error(reader, &members[ROLE].place, "must be wait: that is what a callback ends");
	/* A region's end is reported separately; a callback begins when the work that it is for has ended. */
	if (!error && (spec->role == XPT_ROLE_REGION || call->locate == LOCATE_CALLBACK))
		entry_only = true;
	if (error || !entry_only)
		return error;
	if (spec->role == XPT_ROLE_EXECUTE)
		return reader_error(reader, &members[ENTRY_ONLY].place,
				    "when a call of role %s returns is what it is for", role_name(spec->role));
	if (spec->success != XPT_SUCCESS_ALWAYS && !(call->locate == LOCATE_CALLBACK && call->has_status))
		return reader_error(reader, &members[SUCCESS].place,
				    "is not known at the entry, and the call is entry_only");
	spec->flags |= XPT_SPEC_ENTRY_ONLY;
	return 0;
}

int call_spec_parse(const struct reader *reader, const cJSON *value, const struct json_place *place, bool has_table,
		    struct calls_seen *seen, struct call_spec *call)
{
	struct member members[MEMBERS] = {
		[SYMBOL] = { .key = "symbol" },	      [SYMBOLS] = { .key = "symbols" },
		[SLOT] = { .key = "slot" },	      [PROBE] = { .key = "probe" },
		[REFERS_TO] = { .key = "refers_to" }, [CALLBACK_OF] = { .key = "callback_of" },
		[METHOD_OF] = { .key = "method_of" }, [ONLY_IN] = { .key = "file" },
		[NAME] = { .key = "name" },	      [ROLE] = { .key = "role" },
		[SUCCESS] = { .key = "success" },     [FETCH] = { .key = "fetch" },
		[CODE] = { .key = "code" },	      [ENTRY_ONLY] = { .key = "entry_only" },
		[NOTE] = { .key = "note" },
	};
	int error = reader_members(reader, value, place, members, MEMBERS);

	if (!error)
		error = reader_note(reader, &members[NOTE]);
	if (!error)
		error = read_locate(reader, place, members, has_table, seen, call);
	if (!error)
		error = read_role(reader, place, &members[ROLE], &call->wire);
	if (!error)
		error = read_success(reader, &members[SUCCESS], call);
	if (!error)
		error = read_entry_only(reader, members, call);
	if (!error)
		error = call_fetches_parse(reader, place, &members[FETCH], members[SUCCESS].value != NULL, call);
	if (!error && members[CODE].value)
		error = call_code_parse(reader, &members[CODE], call);
	return error;
}

void call_spec_clear(struct call_spec *call)
{
	string_array_free(call->symbols, call->symbol_count);
	free(call->function);
	free(call->probe);
	free(call->refers_to);
	free(call->callback_of);
	free(call->method_of);
	free(call->file);
	memset(call, 0, sizeof(*call));
}
