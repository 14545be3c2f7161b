/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/objects.h"

#include <errno.h>
#include <stdlib.h>

enum { THROUGH, INDEX, NAME, TYPE, PROVIDER, PROVIDERS, NODE_NOTE, NODE_MEMBERS };

/* Objects and what they hold are aligned as their pointers are. */
static int read_offset(const struct reader *reader, const struct member *member, unsigned int *offset)
{
	__s64 number = 0;
	int error = reader_number(reader, member, 0, DESCRIPTION_OFFSET_MAX, &number);

	if (!error && number % 8)
		error = reader_error(reader, &member->place, "must be a multiple of 8");
	*offset = (unsigned int)number;
	return error;
}

static int read_way(const struct reader *reader, const struct member *member, struct node_layout *layout)
{
	struct json_place at = { &member->place, NULL, 0 };
	int error = 0, size = cJSON_IsArray(member->value) ? cJSON_GetArraySize(member->value) : 0;

	if (size < 1 || size > DESCRIPTION_THROUGH_MAX)
		return reader_error(reader, &member->place, "must be an array of 1 to %d offsets",
				    DESCRIPTION_THROUGH_MAX);
	layout->through_count = (size_t)size;
	for (const cJSON *child = member->value->child; child && !error; child = child->next, at.index++) {
		const struct member offset = { .value = child, .place = at };

		error = read_offset(reader, &offset, &layout->through[at.index]);
	}
	return error;
}

static int read_layout(const struct reader *reader, const cJSON *object, const struct json_place *place,
		       struct node_layout *layout)
{
	struct member members[NODE_MEMBERS] = {
		[THROUGH] = { .key = "through" },   [INDEX] = { .key = "index" },
		[NAME] = { .key = "name" },	    [TYPE] = { .key = "type" },
		[PROVIDER] = { .key = "provider" }, [PROVIDERS] = { .key = "providers" },
		[NODE_NOTE] = { .key = "note" },
	};
	unsigned int *const offsets[NODE_MEMBERS] = {
		[INDEX] = &layout->index,
		[NAME] = &layout->name,
		[TYPE] = &layout->type,
		[PROVIDER] = &layout->provider,
	};
	int error = reader_members(reader, object, place, members, NODE_MEMBERS);

	for (size_t i = THROUGH; i <= PROVIDERS && !error; i++)
		if (!members[i].value)
			error = reader_error(reader, place, "%s is missing", members[i].key);
	if (!error)
		error = read_way(reader, &members[THROUGH], layout);
	for (size_t i = INDEX; i <= PROVIDER && !error; i++)
		error = read_offset(reader, &members[i], offsets[i]);
	if (!error)
		error = reader_string(reader, members[PROVIDERS].value, &members[PROVIDERS].place, &layout->providers);
	return error ? error : reader_note(reader, &members[NODE_NOTE]);
}

int operator_nodes_parse(const struct reader *reader, const struct member *member, struct operators_spec *operators)
{
	struct json_place at = { &member->place, NULL, 0 };
	int error;

	if (!member->value)
		return 0;
	error = reader_items(reader, member, DESCRIPTION_NODES_MAX, "layouts", sizeof(*operators->nodes),
			     &operators->nodes, &operators->node_count);
	if (error)
		return error;
	for (const cJSON *child = member->value->child; child && !error; child = child->next, at.index++)
		error = read_layout(reader, child, &at, &operators->nodes[at.index]);
	return error;
}

void operator_nodes_clear(struct operators_spec *operators)
{
	for (size_t i = 0; i < operators->node_count; i++)
		free(operators->nodes[i].providers);
	free(operators->nodes);
}

/* ---- names ---- */

static int read_row(const struct reader *reader, const struct member *member, struct name_way *way)
{
	const cJSON *row = cJSON_GetArrayItem(member->value, 0), *number = cJSON_GetArrayItem(member->value, 1);
	struct json_place at = { &member->place, NULL, 0 };
	__s64 value = 0;
	int error;

	if (!cJSON_IsArray(member->value) || cJSON_GetArraySize(member->value) != 2)
		return reader_error(reader, &member->place, "must be an array of two numbers");
	error = reader_number(reader, &(struct member){ .value = row, .place = at }, 2, DESCRIPTION_ROW_MAX, &value);
	way->kind = NAME_ROW;
	way->row = (unsigned int)value;
	at.index = 1;
	if (!error)
		error = reader_number(reader, &(struct member){ .value = number, .place = at }, 0, value - 1, &value);
	way->number = (unsigned int)value;
	return error;
}

static int read_patterns(const struct reader *reader, const struct member *member, enum name_kind kind,
			 struct name_way *way)
{
	int error = reader_strings(reader, member, &way->patterns, &way->pattern_count);

	way->kind = kind;
	return error || way->pattern_count ? error : reader_error(reader, &member->place, "must have a pattern");
}

static int read_way_to_name(const struct reader *reader, const cJSON *object, const struct json_place *place,
			    struct name_way *way)
{
	enum { FITS, ROW, STRING, POINTER, MAPPED, WITHIN, LIBRARY, NAMES_NOTE, NAMES_MEMBERS };
	struct member members[NAMES_MEMBERS] = {
		[FITS] = { .key = "fits" },	  [ROW] = { .key = "row" },	    [STRING] = { .key = "string" },
		[POINTER] = { .key = "pointer" }, [MAPPED] = { .key = "mapped" },   [WITHIN] = { .key = "within" },
		[LIBRARY] = { .key = "library" }, [NAMES_NOTE] = { .key = "note" },
	};
	int error = reader_members(reader, object, place, members, NAMES_MEMBERS), ways = 0;
	__s64 within = 0;

	for (size_t i = FITS; i <= MAPPED && !error; i++)
		ways += members[i].value != NULL;
	if (!error && ways != 1)
		error = reader_error(reader, place, "must have one of fits, row, string, pointer and mapped");
	if (!error && !members[WITHIN].value != !(members[FITS].value || members[ROW].value))
		error = reader_error(reader, place, "fits and row need within, and others take none");
	if (!error && members[WITHIN].value)
		error = reader_number(reader, &members[WITHIN], 8, DESCRIPTION_WITHIN_MAX, &within);
	way->within = (unsigned int)within;
	if (!error && members[FITS].value)
		error = read_patterns(reader, &members[FITS], NAME_FITS, way);
	else if (!error && members[MAPPED].value)
		error = read_patterns(reader, &members[MAPPED], NAME_MAPPED, way);
	else if (!error && members[ROW].value)
		error = read_row(reader, &members[ROW], way);
	else if (!error) {
		way->kind = members[STRING].value ? NAME_STRING : NAME_POINTER;
		error = read_offset(reader, &members[members[STRING].value ? STRING : POINTER], &way->at);
	}
	if (!error && members[LIBRARY].value)
		error = reader_string(reader, members[LIBRARY].value, &members[LIBRARY].place, &way->library);
	return error ? error : reader_note(reader, &members[NAMES_NOTE]);
}

int object_names_parse(const struct reader *reader, const struct member *member, struct description *description)
{
	struct json_place at = { &member->place, NULL, 0 };
	int error;

	if (!member->value)
		return 0;
	error = reader_items(reader, member, DESCRIPTION_NAMES_MAX, "ways to a name", sizeof(*description->names),
			     &description->names, &description->name_count);
	if (error)
		return error;
	for (const cJSON *child = member->value->child; child && !error; child = child->next, at.index++)
		error = read_way_to_name(reader, child, &at, &description->names[at.index]);
	return error;
}

void object_names_clear(struct description *description)
{
	for (size_t i = 0; i < description->name_count; i++) {
		string_array_free(description->names[i].patterns, description->names[i].pattern_count);
		free(description->names[i].library);
	}
	free(description->names);
}
