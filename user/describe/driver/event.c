/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/driver/event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX 63		 /* bytes of the name of a system, an event or a field */
#define DOUBLE_EXACT (1ll << 53) /* whole numbers up to here are exact in JSON */
#define KEYED (1u << XPT_EVENT_QUEUE | 1u << XPT_EVENT_RUN | 1u << XPT_EVENT_DONE)

/* ---- how roles and meanings are called in descriptions and in every output ---- */

static const char *const role_names[] = {
	[XPT_EVENT_QUEUE] = "queue",   [XPT_EVENT_RUN] = "run",	    [XPT_EVENT_DONE] = "done",
	[XPT_EVENT_ERROR] = "error",   [XPT_EVENT_RESET] = "reset", [XPT_EVENT_MEMORY] = "memory",
	[XPT_EVENT_SUBMIT] = "submit", [XPT_EVENT_WAIT] = "wait",   [XPT_EVENT_ENTER] = "enter",
	[XPT_EVENT_LEAVE] = "leave",
};

static const char *const meaning_names[] = {
	[XPT_FIELD_KEY] = "key",
	[XPT_FIELD_DEVICE] = "device",
	[XPT_FIELD_ENGINE] = "engine",
	[XPT_FIELD_CONTEXT] = "context",
	[XPT_FIELD_CLIENT] = "client",
	[XPT_FIELD_NAME] = "name",
	[XPT_FIELD_SIZE] = "size",
	[XPT_FIELD_ADDRESS] = "address",
	[XPT_FIELD_COUNT] = "count",
	[XPT_FIELD_DEPTH] = "depth",
	[XPT_FIELD_STATUS] = "status",
	[XPT_FIELD_VALUE] = "value",
	[XPT_FIELD_DESCRIPTOR] = "descriptor",
	[XPT_FIELD_COMMAND] = "command",
	[XPT_FIELD_ARGUMENT] = "argument",
	[XPT_FIELD_TIMELINE] = "timeline",
};

/* The first number from least to most that has this name. */
static int number_of(const char *const *names, int least, int most, const char *name)
{
	int found = value_of(names, most + 1, name);

	return found >= least ? found : -ENOENT;
}

const char *driver_role_name(enum xpt_event_role role)
{
	return name_of(role_names, COUNT_OF(role_names), role);
}

const char *driver_meaning_name(enum xpt_event_meaning meaning)
{
	return name_of(meaning_names, COUNT_OF(meaning_names), meaning);
}

int driver_role_from_name(const char *name)
{
	return number_of(role_names, XPT_EVENT_QUEUE, XPT_EVENT_WAIT, name);
}

int driver_meaning_from_name(const char *name)
{
	int found = number_of(meaning_names, XPT_FIELD_DEVICE, XPT_FIELD_TIMELINE, name);

	return found >= XPT_FIELD_DESCRIPTOR && found <= XPT_FIELD_ARGUMENT ? -ENOENT : found;
}

enum xpt_event_role driver_role_parse(struct reader *reader, const struct member *member, unsigned int mask)
{
	return reader_choice(reader, member, "role ", role_names, XPT_EVENT_WAIT + 1, mask);
}

/* ---- fields ---- */

static const struct {
	const char *name;
	enum driver_type type;
} types[] = {
	{ "8", DRIVER_BITS_8 },	  { "16", DRIVER_BITS_16 },    { "32", DRIVER_BITS_32 },
	{ "64", DRIVER_BITS_64 }, { "string", DRIVER_STRING }, { "kernel_string", DRIVER_KERNEL_STRING },
};

static __u8 read_type(struct reader *reader, const struct json_place *place, const char *text, size_t length)
{
	for (size_t i = 0; i < COUNT_OF(types); i++)
		if (strlen(types[i].name) == length && memcmp(types[i].name, text, length) == 0)
			return types[i].type;
	reader_error(reader, place, "unknown type '%.*s' (known: 8 16 32 64 string kernel_string)",
		     length < 40 ? (int)length : 40, text);
	return 0;
}

/* NAME:TYPE[|TYPE...][?] */
static void read_field(struct reader *reader, const struct member *member, struct driver_field *field)
{
	const char *text = cJSON_GetStringValue(member->value), *end;
	size_t length = text ? strspn(text, WORD) : 0;

	if (!text) {
		reader_error(reader, &member->place, "must be a string such as \"name:64\"");
		return;
	}
	if (!length || length > WORD_MAX || text[length] != ':')
		reader_error(reader, &member->place,
			     "must be a field's name, a colon and its type, such as \"name:64\"");
	if (reader->error)
		return;
	field->name = strndup(text, length);
	if (!field->name)
		reader_fail(reader, -ENOMEM);
	for (text += length; *text == ':' || *text == '|'; text = end) {
		end = text + 1 + strcspn(text + 1, ":|?");
		field->types |= read_type(reader, &member->place, text + 1, end - text - 1);
		if (*end == ':')
			reader_error(reader, &member->place, "has two colons: other types follow '|'");
	}
	field->optional = *text == '?';
	if (text[field->optional])
		reader_error(reader, &member->place, "ends with '%.40s' after its types", text + field->optional);
}

/* Reads a field into the next free place among the values of an event; NULL: an error. */
static struct driver_field *add_field(struct reader *reader, const struct member *member,
				      enum xpt_event_meaning meaning, struct driver_event *event)
{
	struct driver_field *field = &event->fields[event->field_count];

	if (event->field_count == DRIVER_VALUES_MAX)
		reader_error(reader, &member->place, "more than %d values in an event", DRIVER_VALUES_MAX);
	if (reader->error)
		return NULL;
	event->field_count++;
	field->meaning = meaning;
	read_field(reader, member, field);
	return reader->error ? NULL : field;
}

static void read_key(struct reader *reader, const struct member *member, struct driver_event *event)
{
	const struct driver_field *field;

	if (member->value && (!cJSON_IsArray(member->value) || !member->value->child))
		reader_error(reader, &member->place, "must be an array of fields, at least one");
	reader_each_child(reader, child, member) {
		if (child.place.index == DRIVER_KEY_MAX)
			reader_error(reader, &child.place, "more than %d fields in a key", DRIVER_KEY_MAX);
		field = add_field(reader, &child, XPT_FIELD_KEY, event);
		if (field && (field->types & ~DRIVER_NUMBER || field->optional))
			reader_error(reader, &child.place, "a key is made of numbers that are always there");
		event->key_count++;
	}
}

static void read_fields(struct reader *reader, const struct member *member, struct driver_event *event)
{
	unsigned int seen = 0;

	if (member->value && !cJSON_IsObject(member->value))
		reader_error(reader, &member->place, "must be an object");
	reader_each_child(reader, child, member) {
		int meaning = driver_meaning_from_name(child.value->string);

		child.place.key = child.value->string;
		if (meaning < 0) {
			reader_error(reader, &child.place,
				     "unknown meaning (known: device engine context client name size address count "
				     "depth status value timeline)");
			return;
		}
		if (seen & 1u << meaning)
			reader_error(reader, &child.place, "is there twice");
		seen |= 1u << meaning;
		add_field(reader, &child, meaning, event);
	}
}

/* ---- conditions ---- */

/* What the condition compares with: text if the field can hold one, else a number. */
static void read_comparison(struct reader *reader, const struct member *member, struct driver_condition *condition)
{
	if (cJSON_IsNumber(member->value)) {
		if (condition->field.types & ~DRIVER_NUMBER)
			reader_error(reader, &member->place, "must be a string, as the field is");
		condition->number = reader_number(reader, member, -DOUBLE_EXACT, DOUBLE_EXACT, 0);
		return;
	}
	if (condition->field.types & DRIVER_NUMBER)
		reader_error(reader, &member->place, "must be a number, as the field is");
	condition->text = reader_string(reader, member);
	if (condition->text && strlen(condition->text) > DRIVER_TEXT_MAX)
		reader_error(reader, &member->place, "is longer than %d bytes", DRIVER_TEXT_MAX);
}

static void read_condition(struct reader *reader, const struct member *member, struct driver_condition *condition)
{
	enum { FIELD, IS, IS_NOT, MEMBERS };
	struct member members[MEMBERS] = {
		[FIELD] = { .key = "field" },
		[IS] = { .key = "is" },
		[IS_NOT] = { .key = "is_not" },
	};

	if (!member->value)
		return;
	reader_members(reader, member->value, &member->place, members, MEMBERS);
	if (!members[FIELD].value || !members[IS].value == !members[IS_NOT].value)
		reader_error(reader, &member->place, "must have field, and one of is and is_not");
	if (reader->error)
		return;
	read_field(reader, &members[FIELD], &condition->field);
	if (condition->field.optional)
		reader_error(reader, &members[FIELD].place, "must always be there");
	condition->field.meaning = XPT_FIELD_VALUE;
	condition->differs = members[IS_NOT].value;
	read_comparison(reader, &members[condition->differs ? IS_NOT : IS], condition);
}

/* ---- events ---- */

static void read_event_name(struct reader *reader, const struct member *member, struct driver_event *event)
{
	const char *text = cJSON_GetStringValue(member->value) ?: "";
	const char *colon = text + strspn(text, WORD);

	reader_require(reader, member);
	if (colon == text || colon - text > WORD_MAX || *colon != ':' || !colon[1] || strlen(colon + 1) > WORD_MAX ||
	    colon[1 + strspn(colon + 1, WORD)])
		reader_error(reader, &member->place, "must be SYSTEM:NAME of a tracepoint");
	if (reader->error)
		return;
	event->system = strndup(text, colon - text);
	event->name = strdup(colon + 1);
	if (!event->system || !event->name)
		reader_fail(reader, -ENOMEM);
}

void driver_event_parse(struct reader *reader, const struct member *element, struct driver_event *event)
{
	enum { EVENT, ROLE, KEY, FIELDS, WHEN, OPTIONAL, NOTE, MEMBERS };
	struct member members[MEMBERS] = {
		[EVENT] = { .key = "event" },	[ROLE] = { .key = "role" }, [KEY] = { .key = "key" },
		[FIELDS] = { .key = "fields" }, [WHEN] = { .key = "when" }, [OPTIONAL] = { .key = "optional" },
		[NOTE] = { .key = "note" },
	};

	reader_members(reader, element->value, &element->place, members, MEMBERS);
	reader_note(reader, &members[NOTE]);
	read_event_name(reader, &members[EVENT], event);
	event->role = driver_role_parse(reader, &members[ROLE], ~0u);
	read_key(reader, &members[KEY], event);
	if (!event->key_count && KEYED & 1u << event->role)
		reader_error(reader, &element->place, "an event of role %s needs a key", driver_role_name(event->role));
	read_fields(reader, &members[FIELDS], event);
	read_condition(reader, &members[WHEN], &event->condition);
	event->optional = reader_bool(reader, &members[OPTIONAL]);
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
