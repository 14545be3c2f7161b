/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/description.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "describe/runtime/call.h"
#include "describe/runtime/objects.h"
#include "describe/runtime/operators.h"
#include "describe/reader/reader.h"

#define SCHEMA 1
/* All statuses of a runtime have room in one record (XPT_RECORD_RUNTIME), with a size of 16 bits. */
#define STATUSES_MAX 256
#define STATUS_NAME_MAX 95
#define TABLE_OFFSET_MAX 4096

enum {
	RUNTIME_SCHEMA,
	NAME,
	TITLE,
	NOTE,
	LIBRARIES,
	IDENTIFY,
	OVER,
	IN_ORDER,
	TABLE,
	OPERATORS,
	NAMES,
	STATUSES,
	CALLS,
	MEMBERS
};

static int read_identify(const struct reader *reader, const struct member *member, struct description *description)
{
	struct json_place at = { &member->place, NULL, 0 };
	int error = reader_strings(reader, member, &description->identify, &description->identify_count);

	for (; !error && at.index < description->identify_count; at.index++)
		error = symbol_check(reader, &at, description->identify[at.index], false);
	return error;
}

/* What identifies a file with the runtime. */
static int check_identity(const struct reader *reader, const struct member *identify,
			  const struct description *description)
{
	if (description->identify_count || description->table.accessor)
		return 0;
	for (size_t i = 0; i < description->call_count; i++)
		if (description->calls[i].locate == LOCATE_PROBE || description->calls[i].file)
			return 0;
	return reader_error(
		reader, identify->value ? &identify->place : NULL,
		"a runtime without a table, probes or calls with a file needs identify, symbols that tell its library");
}

static int read_through(const struct reader *reader, const struct member *member, struct table_spec *table)
{
	struct json_place at = { &member->place, NULL, 0 };

	if (!member->value)
		return 0;
	if (!cJSON_IsArray(member->value))
		return reader_error(reader, &member->place, "must be an array of slots");
	for (const cJSON *child = member->value->child; child; child = child->next, at.index++) {
		struct member slot = { .value = child, .place = at };
		__s64 number = 0;
		int error;

		if (at.index == sizeof(table->through) / sizeof(table->through[0]))
			return reader_error(reader, &at, "more than 2 accessors on the way");
		error = reader_number(reader, &slot, 0, CALL_SLOT_MAX, &number);
		if (error)
			return error;
		table->through[table->through_count++] = number;
	}
	return 0;
}

static int read_table(const struct reader *reader, const struct member *member, struct table_spec *table)
{
	enum { ACCESSOR, THROUGH, SLOTS_OFFSET, SIZE_OFFSET, TABLE_NOTE, TABLE_MEMBERS };
	struct member members[TABLE_MEMBERS] = {
		[ACCESSOR] = { .key = "accessor" },	    [THROUGH] = { .key = "through" },
		[SLOTS_OFFSET] = { .key = "slots_offset" }, [SIZE_OFFSET] = { .key = "size_offset" },
		[TABLE_NOTE] = { .key = "note" },
	};
	__s64 slots = 0, size = -1;
	int error;

	table->size_offset = -1;
	if (!member->value)
		return 0;
	error = reader_members(reader, member->value, &member->place, members, TABLE_MEMBERS);
	if (!error && !members[ACCESSOR].value)
		error = reader_missing(reader, &member->place, &members[ACCESSOR]);
	if (!error)
		error = reader_string(reader, members[ACCESSOR].value, &members[ACCESSOR].place, &table->accessor);
	if (!error)
		error = symbol_check(reader, &members[ACCESSOR].place, table->accessor, false);
	if (!error)
		error = read_through(reader, &members[THROUGH], table);
	if (!error)
		error = reader_number(reader, &members[SLOTS_OFFSET], 0, TABLE_OFFSET_MAX, &slots);
	if (!error)
		error = reader_number(reader, &members[SIZE_OFFSET], -1, TABLE_OFFSET_MAX, &size);
	if (!error)
		error = reader_note(reader, &members[TABLE_NOTE]);
	table->slots_offset = slots;
	table->size_offset = size;
	return error;
}

static int status_order(const void *a, const void *b)
{
	const struct status_value *one = a, *other = b;

	return (one->value > other->value) - (one->value < other->value);
}

/* Every status of every runtime is a signed number of 32 bits; -1 is written so, or as 0xffffffff. */
static int read_status_value(const struct reader *reader, const struct json_place *place, __s64 *value)
{
	const char *text = place->key + (*place->key == '-');
	bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;

	errno = 0;
	*value = strtoll(place->key, &end, hexadecimal ? 16 : 10);
	if (text[0] < '0' || text[0] > '9' || *end)
		return reader_error(reader, place, "a status is a number in quotes, decimal or with 0x");
	if (hexadecimal && *value > INT_MAX && *value <= UINT_MAX)
		*value -= 1ll << 32;
	if (errno || *value < INT_MIN || *value > INT_MAX)
		return reader_error(reader, place, "a status has 32 bits");
	return 0;
}

static int read_status(const struct reader *reader, const cJSON *value, const struct json_place *place,
		       struct status_value *status)
{
	static const char *const classes[] = {
		[STATUS_OK] = "ok",
		[STATUS_PENDING] = "pending",
		[STATUS_ERROR] = "error",
	};
	struct member members[] = { { .key = "name" }, { .key = "class" } };
	int error = read_status_value(reader, place, &status->value);

	if (!error)
		error = reader_members(reader, value, place, members, 2);
	if (!error && !members[0].value)
		error = reader_missing(reader, place, &members[0]);
	if (!error)
		error = reader_string(reader, members[0].value, &members[0].place, &status->name);
	if (!error && strlen(status->name) > STATUS_NAME_MAX)
		error = reader_error(reader, &members[0].place, "is longer than %d bytes", STATUS_NAME_MAX);
	if (error)
		return error;
	status->class = status->value ? STATUS_ERROR : STATUS_OK;
	if (!members[1].value)
		return 0;
	for (size_t i = 0; i < 3; i++) {
		if (!cJSON_IsString(members[1].value) || strcmp(members[1].value->valuestring, classes[i]) != 0)
			continue;
		if (!status->value && i != STATUS_OK)
			return reader_error(reader, &members[1].place, "status 0 is always ok");
		status->class = i;
		return 0;
	}
	return reader_error(reader, &members[1].place, "must be \"ok\", \"pending\" or \"error\"");
}

static int read_statuses(const struct reader *reader, const struct member *member, struct description *description)
{
	size_t index = 0, size;

	if (!member->value)
		return 0;
	if (!cJSON_IsObject(member->value))
		return reader_error(reader, &member->place, "must be an object");
	size = cJSON_GetArraySize(member->value);
	if (size > STATUSES_MAX)
		return reader_error(reader, &member->place, "more than %d statuses", STATUSES_MAX);
	description->statuses = calloc(size ? size : 1, sizeof(*description->statuses));
	if (!description->statuses)
		return -ENOMEM;
	description->status_count = size;
	for (const cJSON *child = member->value->child; child; child = child->next, index++) {
		struct json_place at = { &member->place, child->string, index };
		int error = read_status(reader, child, &at, &description->statuses[index]);

		if (error)
			return error;
	}
	qsort(description->statuses, size, sizeof(*description->statuses), status_order);
	for (size_t i = 1; i < size; i++)
		if (description->statuses[i].value == description->statuses[i - 1].value)
			return reader_error(reader, &member->place, "status %lld is there twice",
					    (long long)description->statuses[i].value);
	return 0;
}

/* A callback is handed over by a call that fetches its address; and each that does so has one. */
static int check_callback(const struct reader *reader, const struct json_place *at,
			  const struct description *description)
{
	const struct call_spec *call = &description->calls[at->index], *other;

	for (size_t i = 0; i < description->call_count; i++) {
		other = &description->calls[i];
		if (call->callback_of && other->wire.flags & XPT_SPEC_CALLBACK &&
		    !strcmp(other->function, call->callback_of))
			return 0;
		if (other->callback_of && !strcmp(other->callback_of, call->function))
			return 0;
	}
	if (call->callback_of)
		return reader_error(reader, at, "no call '%s' fetches a callback", call->callback_of);
	if (call->wire.flags & XPT_SPEC_CALLBACK)
		return reader_error(reader, at, "fetches a callback, and none is described as callback_of '%s'",
				    call->function);
	return 0;
}

static int read_calls(const struct reader *reader, const struct member *member, struct description *description)
{
	struct json_place at = { &member->place, NULL, 0 };
	struct calls_seen seen = { 0 };
	size_t size;
	int error = 0;

	if (!member->value && description->operators.method_count)
		return 0;
	if (!member->value)
		return reader_missing(reader, NULL, member);
	if (!cJSON_IsArray(member->value) || !member->value->child)
		return reader_error(reader, &member->place, "must be an array with at least one call");
	size = cJSON_GetArraySize(member->value);
	if (size > XPT_SPEC_MAX)
		return reader_error(reader, &member->place, "more than %d calls", XPT_SPEC_MAX);
	description->calls = calloc(size, sizeof(*description->calls));
	if (!description->calls)
		return -ENOMEM;
	description->call_count = size;
	for (const cJSON *child = member->value->child; child && !error; child = child->next, at.index++)
		error = call_spec_parse(reader, child, &at, description->table.accessor != NULL, &seen,
					&description->calls[at.index]);
	calls_seen_clear(&seen);
	for (at.index = 0; at.index < size && !error; at.index++)
		error = check_callback(reader, &at, description);
	return error;
}

static int read_description(const struct reader *reader, const cJSON *document, struct description *description)
{
	struct member members[MEMBERS] = {
		[RUNTIME_SCHEMA] = { .key = "schema" },
		[NAME] = { .key = "runtime" },
		[TITLE] = { .key = "title" },
		[NOTE] = { .key = "note" },
		[LIBRARIES] = { .key = "libraries" },
		[IDENTIFY] = { .key = "identify" },
		[OVER] = { .key = "over" },
		[IN_ORDER] = { .key = "in_order" },
		[TABLE] = { .key = "table" },
		[OPERATORS] = { .key = "operators" },
		[NAMES] = { .key = "names" },
		[STATUSES] = { .key = "statuses" },
		[CALLS] = { .key = "calls" },
	};
	int error = reader_members(reader, document, NULL, members, MEMBERS);

	/* First, so that a file for another version is not judged by the rules of this one. */
	if (!error)
		error = reader_schema(reader, &members[RUNTIME_SCHEMA], SCHEMA);
	if (!error)
		error = reader_name(reader, NULL, &members[NAME], &description->name);
	if (!error && !members[TITLE].value)
		error = reader_missing(reader, NULL, &members[TITLE]);
	if (!error)
		error = reader_string(reader, members[TITLE].value, &members[TITLE].place, &description->title);
	if (!error)
		error = reader_note(reader, &members[NOTE]);
	if (!error)
		error = reader_strings(reader, &members[LIBRARIES], &description->libraries,
				       &description->library_count);
	if (!error)
		error = read_table(reader, &members[TABLE], &description->table);
	if (!error)
		error = read_identify(reader, &members[IDENTIFY], description);
	if (!error)
		error = reader_strings(reader, &members[OVER], &description->over, &description->over_count);
	if (!error)
		error = reader_bool(reader, &members[IN_ORDER], &description->in_order);
	if (!error && description->over_count)
		description->over_line = json_locate(reader->text, reader->length, &members[OVER].place);
	if (!error)
		error = operators_parse(reader, &members[OPERATORS], &description->operators);
	if (!error)
		error = object_names_parse(reader, &members[NAMES], description);
	if (!error)
		error = read_statuses(reader, &members[STATUSES], description);
	if (!error)
		error = read_calls(reader, &members[CALLS], description);
	if (!error)
		error = check_identity(reader, &members[IDENTIFY], description);
	return error;
}

int description_parse(const struct log *log, const char *file, const char *text, size_t length,
		      struct description **result)
{
	struct reader reader = { log, file, text, length };
	struct description *description = NULL;
	cJSON *document = NULL;
	int error = reader_parse(&reader, &document);

	*result = NULL;
	if (error)
		goto out;
	error = -ENOMEM;
	description = calloc(1, sizeof(*description));
	if (!description)
		goto out;
	description->file = strdup(file);
	if (!description->file)
		goto out;
	error = read_description(&reader, document, description);
	if (error)
		goto out;
	*result = description;
	description = NULL;
out:
	cJSON_Delete(document);
	description_free(description);
	return error;
}

void description_free(struct description *description)
{
	if (!description)
		return;
	for (size_t i = 0; i < description->call_count; i++)
		call_spec_clear(&description->calls[i]);
	free(description->calls);
	for (size_t i = 0; i < description->status_count; i++)
		free(description->statuses[i].name);
	free(description->statuses);
	free(description->table.accessor);
	operators_spec_clear(&description->operators);
	object_names_clear(description);
	string_array_free(description->over, description->over_count);
	string_array_free(description->identify, description->identify_count);
	string_array_free(description->libraries, description->library_count);
	free(description->file);
	free(description->title);
	free(description->name);
	free(description);
}

enum status_class description_status(const struct description *description, __s64 value, const char **name)
{
	struct status_value key = { .value = value };
	const struct status_value *found = NULL;

	if (description->status_count)
		found = bsearch(&key, description->statuses, description->status_count, sizeof(key), status_order);
	*name = found ? found->name : NULL;
	if (found)
		return found->class;
	return value ? STATUS_ERROR : STATUS_OK;
}
