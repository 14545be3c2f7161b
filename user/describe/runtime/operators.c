/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "describe/runtime/parse.h"

#define METHOD_SLOT_MAX 255

/* ---- objects: nodes of operators ---- */

/* Objects and what they hold are aligned as their pointers are. */
static unsigned int read_offset(struct reader *reader, const struct member *member)
{
	unsigned int offset = reader_number(reader, member, 0, DESCRIPTION_OFFSET_MAX, 0);

	if (offset % 8)
		reader_error(reader, &member->place, "must be a multiple of 8");
	return offset;
}

static void read_through(struct reader *reader, const struct member *element, void *item, void *context)
{
	(void)context;
	*(unsigned int *)item = read_offset(reader, element);
}

static void read_layout(struct reader *reader, const struct member *element, void *item, void *context)
{
	enum { THROUGH, INDEX, NAME, TYPE, PROVIDER, PROVIDERS, NOTE, MEMBERS };
	struct member members[MEMBERS] = {
		[THROUGH] = { .key = "through" },   [INDEX] = { .key = "index" },
		[NAME] = { .key = "name" },	    [TYPE] = { .key = "type" },
		[PROVIDER] = { .key = "provider" }, [PROVIDERS] = { .key = "providers" },
		[NOTE] = { .key = "note" },
	};
	struct node_layout *layout = item;
	unsigned int *through;

	(void)context;
	reader_members(reader, element->value, &element->place, members, MEMBERS);
	for (size_t i = THROUGH; i <= PROVIDERS; i++)
		reader_require(reader, &members[i]);
	through = reader_array(reader, &members[THROUGH], DESCRIPTION_THROUGH_MAX, "offsets", sizeof(*through),
			       &layout->through_count, read_through, NULL);
	if (through)
		memcpy(layout->through, through, layout->through_count * sizeof(*through));
	free(through);
	layout->index = read_offset(reader, &members[INDEX]);
	layout->name = read_offset(reader, &members[NAME]);
	layout->type = read_offset(reader, &members[TYPE]);
	layout->provider = read_offset(reader, &members[PROVIDER]);
	layout->providers = reader_string(reader, &members[PROVIDERS]);
	reader_note(reader, &members[NOTE]);
}

/* ---- objects: names of programs ---- */

static void read_row(struct reader *reader, const struct member *member, struct name_way *way)
{
	struct member count = { .value = cJSON_GetArrayItem(member->value, 0), .place = { &member->place, NULL, 0 } };
	struct member number = { .value = cJSON_GetArrayItem(member->value, 1), .place = { &member->place, NULL, 1 } };
	unsigned int strings;

	if (!cJSON_IsArray(member->value) || cJSON_GetArraySize(member->value) != 2)
		reader_error(reader, &member->place, "must be an array of two numbers");
	strings = reader_number(reader, &count, 2, DESCRIPTION_ROW_MAX, 2);
	way->rows[way->row_count].count = strings;
	way->rows[way->row_count++].number = reader_number(reader, &number, 0, strings - 1, 0);
}

/* One, or an array of them. */
static void read_rows(struct reader *reader, const struct member *member, struct name_way *way)
{
	int rows = cJSON_GetArraySize(member->value);

	if (!cJSON_IsArray(cJSON_GetArrayItem(member->value, 0))) {
		read_row(reader, member, way);
		return;
	}
	if (rows > DESCRIPTION_ROWS_MAX) {
		reader_error(reader, &member->place, "has more than %d rows", DESCRIPTION_ROWS_MAX);
		return;
	}
	for (int i = 0; i < rows; i++) {
		const struct member row = { .value = cJSON_GetArrayItem(member->value, i),
					    .place = { &member->place, NULL, (size_t)i } };

		read_row(reader, &row, way);
	}
}

static void read_name_way(struct reader *reader, const struct member *element, void *item, void *context)
{
	enum { FITS, ROW, STRING, POINTER, MAPPED, WITHIN, LIBRARY, NOTE, MEMBERS };
	static const enum name_kind kinds[] = { NAME_FITS, NAME_ROW, NAME_STRING, NAME_POINTER, NAME_MAPPED };
	struct member members[MEMBERS] = {
		[FITS] = { .key = "fits" },	  [ROW] = { .key = "row" },	  [STRING] = { .key = "string" },
		[POINTER] = { .key = "pointer" }, [MAPPED] = { .key = "mapped" }, [WITHIN] = { .key = "within" },
		[LIBRARY] = { .key = "library" }, [NOTE] = { .key = "note" },
	};
	const struct member *found = NULL;
	struct name_way *way = item;
	int ways = 0;

	(void)context;
	reader_members(reader, element->value, &element->place, members, MEMBERS);
	for (size_t i = FITS; i <= MAPPED; i++) {
		if (!members[i].value)
			continue;
		found = &members[i];
		way->kind = kinds[i];
		ways++;
	}
	if (ways != 1)
		reader_error(reader, &element->place, "must have one of fits, row, string, pointer and mapped");
	if (!members[WITHIN].value != !(members[FITS].value || members[ROW].value))
		reader_error(reader, &element->place, "fits and row need within, and others take none");
	way->within = reader_number(reader, &members[WITHIN], 8, DESCRIPTION_WITHIN_MAX, 0);
	if (reader->error)
		return;
	if (found == &members[ROW]) {
		read_rows(reader, found, way);
	} else if (found == &members[STRING] || found == &members[POINTER]) {
		way->at = read_offset(reader, found);
	} else {
		way->patterns = reader_strings(reader, found, &way->pattern_count);
		if (!way->pattern_count)
			reader_error(reader, &found->place, "must have a pattern");
	}
	way->library = reader_optional_string(reader, &members[LIBRARY]);
	reader_note(reader, &members[NOTE]);
}

void object_names_parse(struct reader *reader, const struct member *member, struct description *description)
{
	if (member->value)
		description->names = reader_array(reader, member, DESCRIPTION_NAMES_MAX, "ways to a name",
						  sizeof(*description->names), &description->name_count, read_name_way,
						  NULL);
}

void object_names_clear(struct description *description)
{
	for (size_t i = 0; i < description->name_count; i++) {
		string_array_free(description->names[i].patterns, description->names[i].pattern_count);
		free(description->names[i].library);
	}
	free(description->names);
}

/* ---- operators ---- */

static void read_method(struct reader *reader, const struct member *element, void *item, void *context)
{
	enum { NAME, SLOT, OBJECT, MEMBERS };
	struct member members[MEMBERS] = {
		[NAME] = { .key = "name" },
		[SLOT] = { .key = "slot" },
		[OBJECT] = { .key = "object" },
	};
	struct method_spec *method = item;

	(void)context;
	reader_members(reader, element->value, &element->place, members, MEMBERS);
	for (size_t i = 0; i < MEMBERS; i++)
		reader_require(reader, &members[i]);
	method->call.function = reader_string(reader, &members[NAME]);
	method->slot = reader_number(reader, &members[SLOT], 0, METHOD_SLOT_MAX, 0);
	method->call.locate = LOCATE_METHOD;
	method->call.wire.role = XPT_ROLE_OPERATOR;
	if (!reader->error)
		method_fetches_parse(reader, &members[OBJECT], &method->call);
}

static void read_function(struct reader *reader, const struct member *element, void *item, void *context)
{
	enum { NAME, SYMBOLS, MEMBERS };
	struct member members[MEMBERS] = {
		[NAME] = { .key = "name" },
		[SYMBOLS] = { .key = "symbols" },
	};
	struct json_place at = { &members[SYMBOLS].place, NULL, 0 };
	struct method_spec *method = item;
	struct call_spec *call = &method->call;

	(void)context;
	reader_members(reader, element->value, &element->place, members, MEMBERS);
	for (size_t i = 0; i < MEMBERS; i++)
		reader_require(reader, &members[i]);
	call->function = reader_string(reader, &members[NAME]);
	call->symbols = reader_strings(reader, &members[SYMBOLS], &call->symbol_count);
	if (!call->symbol_count || call->symbol_count > CALL_SYMBOLS_MAX)
		reader_error(reader, &members[SYMBOLS].place, "must be an array of 1 to %d symbols", CALL_SYMBOLS_MAX);
	for (; at.index < call->symbol_count; at.index++)
		symbol_check(reader, &at, call->symbols[at.index], true);
	method->slot = element->place.index;
	call->locate = LOCATE_OPERATORS;
	call->wire.role = XPT_ROLE_OPERATOR;
	operator_fetches_set(call);
}

void operators_parse(struct reader *reader, const struct member *member, struct operators_spec *operators)
{
	enum { BASE, METHODS, NODES, FUNCTIONS, NOTE, MEMBERS };
	struct member members[MEMBERS] = {
		[BASE] = { .key = "base" },	      [METHODS] = { .key = "methods" }, [NODES] = { .key = "nodes" },
		[FUNCTIONS] = { .key = "functions" }, [NOTE] = { .key = "note" },
	};
	const struct member *functions = &members[FUNCTIONS], *methods = &members[METHODS];

	if (!member->value || reader->error)
		return;
	reader_members(reader, member->value, &member->place, members, MEMBERS);
	reader_note(reader, &members[NOTE]);
	if (functions->value) {
		for (size_t i = BASE; i <= NODES; i++)
			if (members[i].value)
				reader_error(reader, &members[i].place,
					     "functions are no members of classes with objects");
		operators->methods = reader_array(reader, functions, DESCRIPTION_METHODS_MAX, functions->key,
						  sizeof(*operators->methods), &operators->method_count, read_function,
						  NULL);
		return;
	}
	reader_require(reader, &members[BASE]);
	reader_require(reader, methods);
	operators->base = reader_string(reader, &members[BASE]);
	operators->methods = reader_array(reader, methods, DESCRIPTION_METHODS_MAX, methods->key,
					  sizeof(*operators->methods), &operators->method_count, read_method, NULL);
	if (members[NODES].value)
		operators->nodes = reader_array(reader, &members[NODES], DESCRIPTION_NODES_MAX, "layouts",
						sizeof(*operators->nodes), &operators->node_count, read_layout, NULL);
}

void operators_spec_clear(struct operators_spec *operators)
{
	for (size_t i = 0; i < operators->method_count; i++)
		call_spec_clear(&operators->methods[i].call);
	free(operators->methods);
	for (size_t i = 0; i < operators->node_count; i++)
		free(operators->nodes[i].providers);
	free(operators->nodes);
	free(operators->base);
}
