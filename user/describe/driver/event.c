/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/driver/event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX 63		 /* bytes of the name of a system, an event or a field */
#define DOUBLE_EXACT (1ll << 53) /* whole numbers up to here are exact in JSON */
#define KEYED (1u << XPT_EVENT_QUEUE | 1u << XPT_EVENT_RUN | 1u << XPT_EVENT_DONE)

static const struct {
	const char *name;
	enum driver_type type;
} types[] = {
	{ "8", DRIVER_BITS_8 },	  { "16", DRIVER_BITS_16 },    { "32", DRIVER_BITS_32 },
	{ "64", DRIVER_BITS_64 }, { "string", DRIVER_STRING }, { "kernel_string", DRIVER_KERNEL_STRING },
};

static int read_type(const struct reader *reader, const struct json_place *place, const char *text, size_t length,
		     __u8 *mask)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strlen(types[i].name) != length || memcmp(types[i].name, text, length) != 0)
			continue;
		*mask |= types[i].type;
		return 0;
	}
	return reader_error(reader, place, "unknown type '%.*s' (known: 8 16 32 64 string kernel_string)",
			    length < 40 ? (int)length : 40, text);
}

/* NAME:TYPE[|TYPE...][?] */
static int read_field(const struct reader *reader, const struct json_place *place, const cJSON *value,
		      struct driver_field *field)
{
	const char *text = cJSON_IsString(value) ? value->valuestring : NULL, *end;
	size_t length;

	if (!text)
		return reader_error(reader, place, "must be a string such as \"name:64\"");
	length = strspn(text, WORD);
	if (!length || length > WORD_MAX || text[length] != ':')
		return reader_error(reader, place, "must be a field's name, a colon and its type, such as \"name:64\"");
	field->name = strndup(text, length);
	if (!field->name)
		return -ENOMEM;
	for (text += length; *text == ':' || *text == '|'; text = end) {
		int error;

		end = text + 1 + strcspn(text + 1, ":|?");
		error = read_type(reader, place, text + 1, end - text - 1, &field->types);
		if (error)
			return error;
		if (*end == ':')
			return reader_error(reader, place, "has two colons: other types follow '|'");
	}
	field->optional = *text == '?';
	if (text[field->optional])
		return reader_error(reader, place, "ends with '%.40s' after its types", text + field->optional);
	return 0;
}

/* The next free place among the values of an event; NULL, reported, when there is none. */
static struct driver_field *take_field(const struct reader *reader, const struct json_place *place,
				       struct driver_event *event)
{
	if (event->field_count == DRIVER_VALUES_MAX) {
		reader_error(reader, place, "more than %d values in an event", DRIVER_VALUES_MAX);
		return NULL;
	}
	return &event->fields[event->field_count++];
}

static int read_event_name(const struct reader *reader, const struct json_place *place, const struct member *member,
			   struct driver_event *event)
{
	const char *text, *colon;

	if (!member->value)
		return reader_error(reader, place, "event is missing");
	text = cJSON_IsString(member->value) ? member->value->valuestring : "";
	colon = text + strspn(text, WORD);
	if (colon == text || colon - text > WORD_MAX || *colon != ':' || !colon[1] || strlen(colon + 1) > WORD_MAX ||
	    colon[1 + strspn(colon + 1, WORD)])
		return reader_error(reader, &member->place, "must be SYSTEM:NAME of a tracepoint");
	event->system = strndup(text, colon - text);
	event->name = strdup(colon + 1);
	return event->system && event->name ? 0 : -ENOMEM;
}

int driver_role_parse(const struct reader *reader, const struct json_place *place, const struct member *member,
		      unsigned int mask, enum xpt_event_role *role)
{
	char known[128] = "";
	size_t used = 0;
	int found;

	if (!member->value)
		return reader_error(reader, place, "role is missing");
	if (!cJSON_IsString(member->value))
		return reader_error(reader, &member->place, "must be a string");
	found = driver_role_from_name(member->value->valuestring);
	if (found > 0 && mask & 1u << found) {
		*role = found;
		return 0;
	}
	for (unsigned int i = XPT_EVENT_QUEUE; i <= XPT_EVENT_WAIT && used < sizeof(known); i++)
		if (mask & 1u << i)
			used += snprintf(known + used, sizeof(known) - used, " %s", driver_role_name(i));
	return reader_error(reader, &member->place, "unknown role '%.40s' (known:%s)", member->value->valuestring,
			    known);
}

static int read_key(const struct reader *reader, const struct member *member, struct driver_event *event)
{
	struct json_place at = { &member->place, NULL, 0 };

	if (!member->value)
		return 0;
	if (!cJSON_IsArray(member->value) || !member->value->child)
		return reader_error(reader, &member->place, "must be an array of fields, at least one");
	for (const cJSON *child = member->value->child; child; child = child->next, at.index++) {
		struct driver_field *field;
		int error;

		if (at.index == DRIVER_KEY_MAX)
			return reader_error(reader, &at, "more than %d fields in a key", DRIVER_KEY_MAX);
		field = take_field(reader, &at, event);
		if (!field)
			return -EINVAL;
		field->meaning = XPT_FIELD_KEY;
		error = read_field(reader, &at, child, field);
		if (error)
			return error;
		if (field->types & ~DRIVER_NUMBER || field->optional)
			return reader_error(reader, &at, "a key is made of numbers that are always there");
		event->key_count++;
	}
	return 0;
}

static int read_fields(const struct reader *reader, const struct member *member, struct driver_event *event)
{
	struct json_place at = { &member->place, NULL, 0 };
	unsigned int seen = 0;

	if (!member->value)
		return 0;
	if (!cJSON_IsObject(member->value))
		return reader_error(reader, &member->place, "must be an object");
	for (const cJSON *child = member->value->child; child; child = child->next, at.index++) {
		int meaning = driver_meaning_from_name(child->string), error;
		struct driver_field *field;

		at.key = child->string;
		if (meaning < 0)
			return reader_error(reader, &at,
					    "unknown meaning (known: device engine context client name size address "
					    "count depth status value)");
		if (seen & 1u << meaning)
			return reader_error(reader, &at, "is there twice");
		seen |= 1u << meaning;
		field = take_field(reader, &at, event);
		if (!field)
			return -EINVAL;
		field->meaning = meaning;
		error = read_field(reader, &at, child, field);
		if (error)
			return error;
	}
	return 0;
}

/* What the condition compares with: text if the field can hold one, else a number. */
static int read_comparison(const struct reader *reader, const struct member *member, struct driver_condition *condition)
{
	int error;

	if (cJSON_IsNumber(member->value)) {
		if (condition->field.types & ~DRIVER_NUMBER)
			return reader_error(reader, &member->place, "must be a string, as the field is");
		return reader_number(reader, member, -DOUBLE_EXACT, DOUBLE_EXACT, &condition->number);
	}
	if (condition->field.types & DRIVER_NUMBER)
		return reader_error(reader, &member->place, "must be a number, as the field is");
	error = reader_string(reader, member->value, &member->place, &condition->text);
	if (!error && strlen(condition->text) > DRIVER_TEXT_MAX)
		error = reader_error(reader, &member->place, "is longer than %d bytes", DRIVER_TEXT_MAX);
	return error;
}

static int read_condition(const struct reader *reader, const struct member *member, struct driver_condition *condition)
{
	enum { FIELD, IS, IS_NOT, MEMBERS };
	struct member members[MEMBERS] = {
		[FIELD] = { .key = "field" },
		[IS] = { .key = "is" },
		[IS_NOT] = { .key = "is_not" },
	};
	int error;

	if (!member->value)
		return 0;
	error = reader_members(reader, member->value, &member->place, members, MEMBERS);
	if (error)
		return error;
	if (!members[FIELD].value || !members[IS].value == !members[IS_NOT].value)
		return reader_error(reader, &member->place, "must have field, and one of is and is_not");
	error = read_field(reader, &members[FIELD].place, members[FIELD].value, &condition->field);
	if (!error && condition->field.optional)
		error = reader_error(reader, &members[FIELD].place, "must always be there");
	if (error)
		return error;
	condition->field.meaning = XPT_FIELD_VALUE;
	condition->differs = members[IS_NOT].value;
	return read_comparison(reader, &members[condition->differs ? IS_NOT : IS], condition);
}

int driver_event_parse(const struct reader *reader, const cJSON *value, const struct json_place *place,
		       struct driver_event *event)
{
	enum { EVENT, ROLE, KEY, FIELDS, WHEN, OPTIONAL, NOTE, MEMBERS };
	struct member members[MEMBERS] = {
		[EVENT] = { .key = "event" },	[ROLE] = { .key = "role" }, [KEY] = { .key = "key" },
		[FIELDS] = { .key = "fields" }, [WHEN] = { .key = "when" }, [OPTIONAL] = { .key = "optional" },
		[NOTE] = { .key = "note" },
	};
	int error = reader_members(reader, value, place, members, MEMBERS);

	if (!error)
		error = reader_note(reader, &members[NOTE]);
	if (!error)
		error = read_event_name(reader, place, &members[EVENT], event);
	if (!error)
		error = driver_role_parse(reader, place, &members[ROLE], ~0u, &event->role);
	if (!error)
		error = read_key(reader, &members[KEY], event);
	if (!error && !event->key_count && KEYED & 1u << event->role)
		error = reader_error(reader, place, "an event of role %s needs a key", driver_role_name(event->role));
	if (!error)
		error = read_fields(reader, &members[FIELDS], event);
	if (!error)
		error = read_condition(reader, &members[WHEN], &event->condition);
	if (!error)
		error = reader_bool(reader, &members[OPTIONAL], &event->optional);
	return error;
}

void driver_event_clear(struct driver_event *event)
{
	for (size_t i = 0; i < event->field_count; i++)
		free(event->fields[i].name);
	free(event->condition.field.name);
	free(event->condition.text);
	free(event->system);
	free(event->name);
	memset(event, 0, sizeof(*event));
}

int driver_ioctl_events(struct driver_event events[2])
{
	static const struct {
		const char *name;
		enum xpt_event_meaning meaning;
	} entered[] = { { "fd", XPT_FIELD_DESCRIPTOR }, { "cmd", XPT_FIELD_COMMAND }, { "arg", XPT_FIELD_ARGUMENT } };
	struct driver_event *enter = &events[0], *leave = &events[1];

	enter->role = XPT_EVENT_ENTER;
	enter->system = strdup("syscalls");
	enter->name = strdup("sys_enter_ioctl");
	leave->role = XPT_EVENT_LEAVE;
	leave->system = strdup("syscalls");
	leave->name = strdup("sys_exit_ioctl");
	/* The kernel lays each argument of a system call out as a long, whatever its type. */
	for (; enter->field_count < sizeof(entered) / sizeof(entered[0]); enter->field_count++) {
		struct driver_field *field = &enter->fields[enter->field_count];

		field->name = strdup(entered[enter->field_count].name);
		field->types = DRIVER_BITS_64;
		field->meaning = entered[enter->field_count].meaning;
		if (!field->name)
			return -ENOMEM;
	}
	leave->fields[0] = (struct driver_field){ strdup("ret"), DRIVER_BITS_64, XPT_FIELD_STATUS, false };
	leave->field_count = 1;
	return enter->system && enter->name && leave->system && leave->name && leave->fields[0].name ? 0 : -ENOMEM;
}
