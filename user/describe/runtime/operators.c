/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/operators.h"

#include <errno.h>
#include <stdlib.h>

#include "describe/runtime/call.h"
#include "describe/runtime/call_fetches.h"
#include "describe/runtime/objects.h"

#define METHOD_SLOT_MAX 255

static int read_method(const struct reader *reader, const cJSON *object, const struct json_place *place,
		       struct method_spec *method)
{
	enum { METHOD_NAME, METHOD_SLOT, METHOD_OBJECT, METHOD_MEMBERS };
	struct member members[METHOD_MEMBERS] = {
		[METHOD_NAME] = { .key = "name" },
		[METHOD_SLOT] = { .key = "slot" },
		[METHOD_OBJECT] = { .key = "object" },
	};
	__s64 slot = 0;
	int error = reader_members(reader, object, place, members, METHOD_MEMBERS);

	for (size_t i = 0; i < METHOD_MEMBERS && !error; i++)
		if (!members[i].value)
			error = reader_missing(reader, place, &members[i]);
	if (!error)
		error = reader_string(reader, members[METHOD_NAME].value, &members[METHOD_NAME].place,
				      &method->call.function);
	if (!error)
		error = reader_number(reader, &members[METHOD_SLOT], 0, METHOD_SLOT_MAX, &slot);
	method->slot = (unsigned int)slot;
	method->call.locate = LOCATE_METHOD;
	method->call.wire.role = XPT_ROLE_OPERATOR;
	return error ? error : method_fetches_parse(reader, &members[METHOD_OBJECT], &method->call);
}

static int read_function(const struct reader *reader, const cJSON *object, const struct json_place *place,
			 struct method_spec *method)
{
	enum { FUNCTION_NAME, FUNCTION_SYMBOLS, FUNCTION_MEMBERS };
	struct member members[FUNCTION_MEMBERS] = {
		[FUNCTION_NAME] = { .key = "name" },
		[FUNCTION_SYMBOLS] = { .key = "symbols" },
	};
	struct json_place at = { &members[FUNCTION_SYMBOLS].place, NULL, 0 };
	struct call_spec *call = &method->call;
	int error = reader_members(reader, object, place, members, FUNCTION_MEMBERS);

	for (size_t i = 0; i < FUNCTION_MEMBERS && !error; i++)
		if (!members[i].value)
			error = reader_missing(reader, place, &members[i]);
	if (!error)
		error = reader_string(reader, members[FUNCTION_NAME].value, &members[FUNCTION_NAME].place,
				      &call->function);
	if (!error)
		error = reader_strings(reader, &members[FUNCTION_SYMBOLS], &call->symbols, &call->symbol_count);
	if (!error && (!call->symbol_count || call->symbol_count > CALL_SYMBOLS_MAX))
		error = reader_error(reader, &members[FUNCTION_SYMBOLS].place, "must be an array of 1 to %d symbols",
				     CALL_SYMBOLS_MAX);
	for (; at.index < call->symbol_count && !error; at.index++)
		error = symbol_check(reader, &at, call->symbols[at.index], true);
	method->slot = (unsigned int)place->index;
	call->locate = LOCATE_OPERATORS;
	call->wire.role = XPT_ROLE_OPERATOR;
	operator_fetches_set(call);
	return error;
}

static int read_methods(const struct reader *reader, const struct member *member,
			int (*read)(const struct reader *reader, const cJSON *object, const struct json_place *place,
				    struct method_spec *method),
			struct operators_spec *operators)
{
	struct json_place at = { &member->place, NULL, 0 };
	int error = reader_items(reader, member, DESCRIPTION_METHODS_MAX, member->key, sizeof(*operators->methods),
				 &operators->methods, &operators->method_count);

	if (error)
		return error;
	for (const cJSON *child = member->value->child; child && !error; child = child->next, at.index++)
		error = read(reader, child, &at, &operators->methods[at.index]);
	return error;
}

static int read_classes(const struct reader *reader, const struct member *base, const struct member *methods,
			const struct member *nodes, struct operators_spec *operators)
{
	int error = reader_string(reader, base->value, &base->place, &operators->base);

	if (!error)
		error = read_methods(reader, methods, read_method, operators);
	return error ? error : operator_nodes_parse(reader, nodes, operators);
}

int operators_parse(const struct reader *reader, const struct member *member, struct operators_spec *operators)
{
	enum { BASE, METHODS, NODES, FUNCTIONS, OPERATORS_NOTE, OPERATORS_MEMBERS };
	struct member members[OPERATORS_MEMBERS] = {
		[BASE] = { .key = "base" },	      [METHODS] = { .key = "methods" },
		[NODES] = { .key = "nodes" },	      [FUNCTIONS] = { .key = "functions" },
		[OPERATORS_NOTE] = { .key = "note" },
	};
	int error;

	if (!member->value)
		return 0;
	error = reader_members(reader, member->value, &member->place, members, OPERATORS_MEMBERS);
	if (!error)
		error = reader_note(reader, &members[OPERATORS_NOTE]);
	if (!error && members[FUNCTIONS].value) {
		for (size_t i = BASE; i <= NODES && !error; i++)
			if (members[i].value)
				error = reader_error(reader, &members[i].place,
						     "functions are no members of classes with objects");
		return error ? error : read_methods(reader, &members[FUNCTIONS], read_function, operators);
	}
	for (size_t i = BASE; i <= METHODS && !error; i++)
		if (!members[i].value)
			error = reader_missing(reader, &member->place, &members[i]);
	return error ? error : read_classes(reader, &members[BASE], &members[METHODS], &members[NODES], operators);
}

void operators_spec_clear(struct operators_spec *operators)
{
	for (size_t i = 0; i < operators->method_count; i++)
		call_spec_clear(&operators->methods[i].call);
	free(operators->methods);
	operator_nodes_clear(operators);
	free(operators->base);
}
