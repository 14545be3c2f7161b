/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/operator_nodes.h"

#include <errno.h>
#include <stdlib.h>

enum { VERSIONS, THROUGH, INDEX, NAME, TYPE, PROVIDER, PROVIDERS, NODE_NOTE, NODE_MEMBERS };

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
		[VERSIONS] = { .key = "versions" },   [THROUGH] = { .key = "through" },
		[INDEX] = { .key = "index" },	      [NAME] = { .key = "name" },
		[TYPE] = { .key = "type" },	      [PROVIDER] = { .key = "provider" },
		[PROVIDERS] = { .key = "providers" }, [NODE_NOTE] = { .key = "note" },
	};
	unsigned int *const offsets[NODE_MEMBERS] = {
		[INDEX] = &layout->index,
		[NAME] = &layout->name,
		[TYPE] = &layout->type,
		[PROVIDER] = &layout->provider,
	};
	int error = reader_members(reader, object, place, members, NODE_MEMBERS);

	for (size_t i = VERSIONS; i <= PROVIDERS && !error; i++)
		if (!members[i].value)
			error = reader_error(reader, place, "%s is missing", members[i].key);
	if (!error)
		error = reader_strings(reader, &members[VERSIONS], &layout->versions, &layout->version_count);
	if (!error && !layout->version_count)
		error = reader_error(reader, &members[VERSIONS].place, "must name the versions that it is known for");
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
	int error = 0, size = cJSON_IsArray(member->value) ? cJSON_GetArraySize(member->value) : 0;

	if (!member->value)
		return 0;
	if (size < 1 || size > DESCRIPTION_NODES_MAX)
		return reader_error(reader, &member->place, "must be an array of 1 to %d layouts",
				    DESCRIPTION_NODES_MAX);
	operators->nodes = calloc((size_t)size, sizeof(*operators->nodes));
	if (!operators->nodes)
		return -ENOMEM;
	operators->node_count = (size_t)size;
	for (const cJSON *child = member->value->child; child && !error; child = child->next, at.index++)
		error = read_layout(reader, child, &at, &operators->nodes[at.index]);
	return error;
}

void operator_nodes_clear(struct operators_spec *operators)
{
	for (size_t i = 0; i < operators->node_count; i++) {
		string_array_free(operators->nodes[i].versions, operators->nodes[i].version_count);
		free(operators->nodes[i].providers);
	}
	free(operators->nodes);
}
