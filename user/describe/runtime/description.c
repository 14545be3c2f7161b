/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/description.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "describe/runtime/parse.h"

/* All statuses of a runtime have room in one record (XPT_RECORD_RUNTIME), with a size of 16 bits. */
#define STATUSES_MAX 256
#define STATUS_NAME_MAX 95
#define TABLE_OFFSET_MAX 4096

/* ---- how roles, meanings and where code is are called in descriptions and in every output ---- */

const char *const role_names[ROLE_NAMES] = {
	[XPT_ROLE_PROGRAM_LOAD] = "program.load",
	[XPT_ROLE_PROGRAM_NAME] = "program.name",
	[XPT_ROLE_PROGRAM_UNLOAD] = "program.unload",
	[XPT_ROLE_EXECUTE] = "execute",
	[XPT_ROLE_ENQUEUE] = "enqueue",
	[XPT_ROLE_WAIT] = "wait",
	[XPT_ROLE_LAUNCH] = "launch",
	[XPT_ROLE_COPY] = "copy",
	[XPT_ROLE_ALLOC] = "alloc",
	[XPT_ROLE_FREE] = "free",
	[XPT_ROLE_SELECT] = "select",
	[XPT_ROLE_REGION_BEGIN] = "region.begin",
	[XPT_ROLE_REGION_END] = "region.end",
	[XPT_ROLE_REGION_NAME] = "region.name",
	[XPT_ROLE_REGION_RELEASE] = "region.release",
	[XPT_ROLE_REGION_PRINT] = "region.print",
	[XPT_ROLE_REGION] = "region",
	[XPT_ROLE_MARK] = "mark",
	[XPT_ROLE_FOLLOW] = "follow",
	[XPT_ROLE_STREAM] = "stream",
	[XPT_ROLE_CALLBACK] = "callback",
	[XPT_ROLE_PROGRAM_READY] = "program.ready",
	[XPT_ROLE_CODEOBJ_LOAD] = "codeobj.load",
	[XPT_ROLE_CODEOBJ_UNLOAD] = "codeobj.unload",
	[XPT_ROLE_RESOLVE] = "resolve",
	[XPT_ROLE_TABLE] = "table",
	[XPT_ROLE_LOADER] = "loader",
	[XPT_ROLE_OPERATOR] = "operator",
};

static const char *const meaning_names[] = {
	[XPT_MEANING_PROGRAM] = "program",   [XPT_MEANING_KEY] = "key",
	[XPT_MEANING_NAME] = "name",	     [XPT_MEANING_SIZE] = "size",
	[XPT_MEANING_CORE] = "core",	     [XPT_MEANING_STREAM] = "stream",
	[XPT_MEANING_STATUS] = "status",     [XPT_MEANING_PARENT] = "parent",
	[XPT_MEANING_ADDRESS] = "address",   [XPT_MEANING_COUNT] = "count",
	[XPT_MEANING_LENGTH] = "length",     [XPT_MEANING_OBJECT] = "object",
	[XPT_MEANING_CLASS] = "class",	     [XPT_MEANING_INFERENCE] = "inference",
	[XPT_MEANING_KEYS] = "keys",	     [XPT_MEANING_BLOCKING] = "blocking",
	[XPT_MEANING_ORDERED] = "ordered",   [XPT_MEANING_WHEN] = "when",
	[XPT_MEANING_TOKENS] = "tokens",     [XPT_MEANING_POSITION] = "position",
	[XPT_MEANING_SEQUENCE] = "sequence", [XPT_MEANING_NEXT_SEQUENCE] = "next_sequence",
	[XPT_MEANING_CALLBACK] = "callback",
};

static const char *const code_source_names[] = {
	[XPT_CODE_MEMORY] = "bytes",
	[XPT_CODE_PARTS] = "parts",
	[XPT_CODE_PATH] = "path",
	[XPT_CODE_DESCRIPTOR] = "descriptor",
};

const char *role_name(enum xpt_role role)
{
	return name_of(role_names, ROLE_NAMES, role);
}

const char *meaning_name(enum xpt_meaning meaning)
{
	return name_of(meaning_names, COUNT_OF(meaning_names), meaning);
}

const char *code_source_name(enum xpt_code_source source)
{
	return name_of(code_source_names, COUNT_OF(code_source_names), source);
}

int role_from_name(const char *name)
{
	return value_of(role_names, ROLE_NAMES, name);
}

int meaning_from_name(const char *name)
{
	return value_of(meaning_names, COUNT_OF(meaning_names), name);
}

/* ---- what a library is identified by, and its table ---- */

static void read_identify(struct reader *reader, const struct member *member, struct description *description)
{
	struct json_place at = { &member->place, NULL, 0 };

	description->identify = reader_strings(reader, member, &description->identify_count);
	for (; at.index < description->identify_count; at.index++)
		symbol_check(reader, &at, description->identify[at.index], false);
}

/* What identifies a file with the runtime. */
static void check_identity(struct reader *reader, const struct member *identify, const struct description *description)
{
	if (description->identify_count || description->table.accessor)
		return;
	for (size_t i = 0; i < description->call_count; i++)
		if (description->calls[i].locate == LOCATE_PROBE || description->calls[i].file)
			return;
	reader_error(
		reader, identify->value ? &identify->place : NULL,
		"a runtime without a table, probes or calls with a file needs identify, symbols that identify its library");
}

static void read_through(struct reader *reader, const struct member *member, struct table_spec *table)
{
	if (member->value && !cJSON_IsArray(member->value))
		reader_error(reader, &member->place, "must be an array of slots");
	reader_each_child(reader, slot, member) {
		if (table->through_count == COUNT_OF(table->through)) {
			reader_error(reader, &slot.place, "more than 2 accessors on the way");
			return;
		}
		table->through[table->through_count++] = reader_number(reader, &slot, 0, CALL_SLOT_MAX, 0);
	}
}

static void read_table(struct reader *reader, const struct member *member, struct table_spec *table)
{
	enum { ACCESSOR, THROUGH, SLOTS_OFFSET, SIZE_OFFSET, NOTE, MEMBERS };
	struct member members[MEMBERS] = {
		[ACCESSOR] = { .key = "accessor" },
		[THROUGH] = { .key = "through" },
		[SLOTS_OFFSET] = { .key = "slots_offset" },
		[SIZE_OFFSET] = { .key = "size_offset" },
		[NOTE] = { .key = "note" },
	};

	table->size_offset = -1;
	if (!member->value)
		return;
	reader_members(reader, member->value, &member->place, members, MEMBERS);
	table->accessor = reader_string(reader, &members[ACCESSOR]);
	symbol_check(reader, &members[ACCESSOR].place, table->accessor, false);
	read_through(reader, &members[THROUGH], table);
	table->slots_offset = reader_number(reader, &members[SLOTS_OFFSET], 0, TABLE_OFFSET_MAX, 0);
	table->size_offset = reader_number(reader, &members[SIZE_OFFSET], -1, TABLE_OFFSET_MAX, -1);
	reader_note(reader, &members[NOTE]);
}

/* ---- statuses ---- */

static int status_order(const void *a, const void *b)
{
	const struct status_value *one = a, *other = b;

	return (one->value > other->value) - (one->value < other->value);
}

/* Every status of every runtime is a signed number of 32 bits; -1 is written so, or as 0xffffffff. */
static __s64 read_status_value(struct reader *reader, const struct json_place *place)
{
	const char *text = place->key + (*place->key == '-');
	bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	long long value;
	char *end;

	errno = 0;
	value = strtoll(place->key, &end, hexadecimal ? 16 : 10);
	if (text[0] < '0' || text[0] > '9' || *end)
		reader_error(reader, place, "a status is a number in quotes, decimal or with 0x");
	if (hexadecimal && value > INT_MAX && value <= UINT_MAX)
		value -= 1ll << 32;
	if (errno || value < INT_MIN || value > INT_MAX)
		reader_error(reader, place, "a status has 32 bits");
	return value;
}

static void read_status(struct reader *reader, const struct member *element, struct status_value *status)
{
	static const char *const classes[] = {
		[STATUS_OK] = "ok",
		[STATUS_PENDING] = "pending",
		[STATUS_ERROR] = "error",
	};
	struct member members[] = { { .key = "name" }, { .key = "class" } };

	status->value = read_status_value(reader, &element->place);
	reader_members(reader, element->value, &element->place, members, 2);
	status->name = reader_string(reader, &members[0]);
	if (status->name && strlen(status->name) > STATUS_NAME_MAX)
		reader_error(reader, &members[0].place, "is longer than %d bytes", STATUS_NAME_MAX);
	status->class = status->value ? STATUS_ERROR : STATUS_OK;
	if (!members[1].value)
		return;
	status->class = reader_choice(reader, &members[1], "class ", classes, COUNT_OF(classes), ~0ull);
	if (!status->value && status->class != STATUS_OK)
		reader_error(reader, &members[1].place, "status 0 is always ok");
}

static void read_statuses(struct reader *reader, const struct member *member, struct description *description)
{
	size_t size = member->value ? cJSON_GetArraySize(member->value) : 0;

	if (member->value && !cJSON_IsObject(member->value))
		reader_error(reader, &member->place, "must be an object");
	if (size > STATUSES_MAX)
		reader_error(reader, &member->place, "more than %d statuses", STATUSES_MAX);
	if (!size || reader->error)
		return;
	description->statuses = calloc(size, sizeof(*description->statuses));
	if (!description->statuses) {
		reader_fail(reader, -ENOMEM);
		return;
	}
	description->status_count = size;
	reader_each_child(reader, status, member) {
		status.place.key = status.value->string;
		read_status(reader, &status, &description->statuses[status.place.index]);
	}
	qsort(description->statuses, size, sizeof(*description->statuses), status_order);
	for (size_t i = 1; i < size; i++)
		if (description->statuses[i].value == description->statuses[i - 1].value)
			reader_error(reader, &member->place, "status %lld is there twice",
				     (long long)description->statuses[i].value);
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

/* ---- calls ---- */

/* A callback is handed over by a call that fetches its address; and each that does so has one. */
static void check_callback(struct reader *reader, const struct json_place *at, const struct description *description)
{
	const struct call_spec *call = &description->calls[at->index], *other;

	for (size_t i = 0; i < description->call_count; i++) {
		other = &description->calls[i];
		if (call->callback_of && other->wire.flags & XPT_SPEC_CALLBACK &&
		    !strcmp(other->function, call->callback_of))
			return;
		if (other->callback_of && !strcmp(other->callback_of, call->function))
			return;
	}
	if (call->callback_of)
		reader_error(reader, at, "no call '%s' fetches a callback", call->callback_of);
	else if (call->wire.flags & XPT_SPEC_CALLBACK)
		reader_error(reader, at, "fetches a callback, and none is described as callback_of '%s'",
			     call->function);
}

static void read_calls(struct reader *reader, const struct member *member, struct description *description)
{
	struct calls_seen seen = { .has_table = description->table.accessor };
	struct json_place at = { &member->place, NULL, 0 };

	if (!member->value && description->operators.method_count)
		return;
	description->calls = reader_array(reader, member, XPT_SPEC_MAX, "calls", sizeof(*description->calls),
					  &description->call_count, call_spec_parse, &seen);
	calls_seen_clear(&seen);
	for (; at.index < description->call_count && !reader->error; at.index++)
		check_callback(reader, &at, description);
}

/* ---- descriptions ---- */

static void read_description(struct reader *reader, const cJSON *document, struct described *described)
{
	enum {
		LIBRARIES = DESCRIBED_NOTE + 1,
		IDENTIFY,
		OVER,
		IN_ORDER,
		STREAMS_OF,
		TABLE,
		OPERATORS,
		NAMES,
		STATUSES,
		CALLS,
		MEMBERS
	};
	struct member members[MEMBERS] = {
		[DESCRIBED_SCHEMA] = { .key = "schema" },
		[DESCRIBED_NAME] = { .key = "runtime" },
		[DESCRIBED_TITLE] = { .key = "title" },
		[DESCRIBED_NOTE] = { .key = "note" },
		[LIBRARIES] = { .key = "libraries" },
		[IDENTIFY] = { .key = "identify" },
		[OVER] = { .key = "over" },
		[IN_ORDER] = { .key = "in_order" },
		[STREAMS_OF] = { .key = "streams_of" },
		[TABLE] = { .key = "table" },
		[OPERATORS] = { .key = "operators" },
		[NAMES] = { .key = "names" },
		[STATUSES] = { .key = "statuses" },
		[CALLS] = { .key = "calls" },
	};
	struct description *description = container_of(described, struct description, described);

	reader_members(reader, document, NULL, members, MEMBERS);
	described_read(reader, members, described);
	description->libraries = reader_strings(reader, &members[LIBRARIES], &description->library_count);
	read_table(reader, &members[TABLE], &description->table);
	read_identify(reader, &members[IDENTIFY], description);
	description->over = reader_strings(reader, &members[OVER], &description->over_count);
	description->in_order = reader_bool(reader, &members[IN_ORDER]);
	if (members[STREAMS_OF].value)
		description->streams_of = reader_name(reader, &members[STREAMS_OF]);
	if (description->over_count)
		description->over_line = json_locate(reader->text, reader->length, &members[OVER].place);
	operators_parse(reader, &members[OPERATORS], &description->operators);
	object_names_parse(reader, &members[NAMES], description);
	read_statuses(reader, &members[STATUSES], description);
	read_calls(reader, &members[CALLS], description);
	check_identity(reader, &members[IDENTIFY], description);
}

static void release_description(struct described *described)
{
	struct description *description = container_of(described, struct description, described);

	for (size_t i = 0; i < description->call_count; i++)
		call_spec_clear(&description->calls[i]);
	free(description->calls);
	for (size_t i = 0; i < description->status_count; i++)
		free(description->statuses[i].name);
	free(description->statuses);
	free(description->table.accessor);
	free(description->streams_of);
	operators_spec_clear(&description->operators);
	object_names_clear(description);
	string_array_free(description->over, description->over_count);
	string_array_free(description->identify, description->identify_count);
	string_array_free(description->libraries, description->library_count);
	described_clear(described);
	free(description);
}

const struct description_kind runtime_descriptions = {
	.what = "runtime",
	.most = XPT_RUNTIME_MAX,
	.size = sizeof(struct description),
	.builtins = builtin_files,
	.builtin_count = &builtin_file_count,
	.read = read_description,
	.release = release_description,
};

int description_parse(const struct log *log, const char *file, const char *text, size_t length,
		      struct description **result)
{
	struct described *described;
	int error = described_parse(&runtime_descriptions, log, file, text, length, &described);

	*result = error ? NULL : container_of(described, struct description, described);
	return error;
}

void description_free(struct description *description)
{
	if (description)
		release_description(&description->described);
}
