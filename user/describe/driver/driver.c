/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/driver/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "describe/driver/event.h"
#include "describe/reader/reader.h"

#define SCHEMA 1
#define IOCTL_ROLES (1u << XPT_EVENT_SUBMIT | 1u << XPT_EVENT_WAIT | 1u << XPT_EVENT_MEMORY | 1u << XPT_EVENT_RESET)

/* A number of bits that are compared. A member that is not there leaves *bits as it is. */
static int read_bits(const struct reader *reader, const struct member *member, unsigned int *bits)
{
	__s64 value = *bits;
	int error = reader_number(reader, member, 0, 64, &value);

	if (!error && value != 32 && value != 64)
		error = reader_error(reader, &member->place, "must be 32 or 64");
	*bits = value;
	return error;
}

static int read_pairing(const struct reader *reader, const struct member *member, enum xpt_pairing *pairing)
{
	static const char *const names[] = {
		[XPT_PAIRING_UNIQUE] = "unique",
		[XPT_PAIRING_LATEST] = "latest",
		[XPT_PAIRING_ORDER] = "order",
	};

	if (!member->value)
		return 0;
	for (size_t i = 0; cJSON_IsString(member->value) && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], member->value->valuestring) == 0) {
			*pairing = i;
			return 0;
		}
	}
	return reader_error(reader, &member->place, "must be \"unique\", \"latest\" or \"order\"");
}

static int read_join(const struct reader *reader, const cJSON *value, const struct json_place *place,
		     struct driver_join *join)
{
	struct member members[] = { { .key = "driver" }, { .key = "bits" } };
	int error = reader_members(reader, value, place, members, 2);

	join->bits = 64;
	if (!error)
		error = reader_name(reader, place, &members[0], &join->driver);
	if (!error)
		error = read_bits(reader, &members[1], &join->bits);
	if (!error)
		join->line = json_locate(reader->text, reader->length, &members[0].place);
	return error;
}

static int read_joins(const struct reader *reader, const struct member *member, struct driver_set *set)
{
	struct json_place at = { &member->place, NULL, 0 };
	int error = 0;

	if (!member->value)
		return 0;
	if (!cJSON_IsArray(member->value) || !member->value->child)
		return reader_error(reader, &member->place, "must be an array with at least one join");
	set->joins = calloc(cJSON_GetArraySize(member->value), sizeof(*set->joins));
	if (!set->joins)
		return -ENOMEM;
	for (const cJSON *child = member->value->child; child && !error; child = child->next, at.index++)
		error = read_join(reader, child, &at, &set->joins[set->join_count++]);
	return error;
}

static int read_events(const struct reader *reader, const struct json_place *place, const struct member *member,
		       struct driver_set *set)
{
	struct json_place at = { &member->place, NULL, 0 };
	size_t size;

	if (!member->value)
		return reader_error(reader, place, "events is missing");
	if (!cJSON_IsArray(member->value) || !member->value->child)
		return reader_error(reader, &member->place, "must be an array with at least one event");
	size = cJSON_GetArraySize(member->value);
	if (size > DRIVER_EVENTS_MAX)
		return reader_error(reader, &member->place, "more than %d events", DRIVER_EVENTS_MAX);
	set->events = calloc(size, sizeof(*set->events));
	if (!set->events)
		return -ENOMEM;
	for (const cJSON *child = member->value->child; child; child = child->next, at.index++) {
		struct driver_event *event = &set->events[set->event_count++];
		int error = driver_event_parse(reader, child, &at, event);

		if (error)
			return error;
		if (event->key_count && set->key_count && event->key_count != set->key_count)
			return reader_error(reader, &at, "its key has %zu fields, that of events before %zu",
					    event->key_count, set->key_count);
		if (event->key_count)
			set->key_count = event->key_count;
	}
	return 0;
}

static int read_set(const struct reader *reader, const cJSON *value, const struct json_place *place,
		    struct driver_set *set)
{
	enum { NAME, PAIRING, BITS, JOINS, EVENTS, NOTE, MEMBERS };
	struct member members[MEMBERS] = {
		[NAME] = { .key = "name" },   [PAIRING] = { .key = "pairing" }, [BITS] = { .key = "bits" },
		[JOINS] = { .key = "joins" }, [EVENTS] = { .key = "events" },	[NOTE] = { .key = "note" },
	};
	int error = reader_members(reader, value, place, members, MEMBERS);

	set->bits = 64;
	if (!error)
		error = reader_note(reader, &members[NOTE]);
	if (!error && members[NAME].value)
		error = reader_string(reader, members[NAME].value, &members[NAME].place, &set->name);
	if (!error)
		error = read_pairing(reader, &members[PAIRING], &set->pairing);
	if (!error)
		error = read_bits(reader, &members[BITS], &set->bits);
	if (!error)
		error = read_joins(reader, &members[JOINS], set);
	if (!error)
		error = read_events(reader, place, &members[EVENTS], set);
	if (!error && set->join_count && !set->key_count)
		error = reader_error(reader, &members[JOINS].place, "no event has a key to join by");
	return error;
}

static int read_sets(const struct reader *reader, const struct member *member, struct driver *driver)
{
	struct json_place at = { &member->place, NULL, 0 };
	size_t size;
	int error = 0;

	if (!member->value)
		return 0;
	if (!cJSON_IsArray(member->value) || !member->value->child)
		return reader_error(reader, &member->place, "must be an array with at least one set of events");
	size = cJSON_GetArraySize(member->value);
	if (size > DRIVER_SETS_MAX)
		return reader_error(reader, &member->place, "more than %d sets", DRIVER_SETS_MAX);
	driver->sets = calloc(size, sizeof(*driver->sets));
	if (!driver->sets)
		return -ENOMEM;
	for (const cJSON *child = member->value->child; child && !error; child = child->next, at.index++) {
		error = read_set(reader, child, &at, &driver->sets[driver->set_count++]);
		if (!error && size > 1 && !driver->sets[at.index].name)
			error = reader_error(reader, &at, "name is missing: there are several sets");
	}
	return error;
}

/* A number of JSON cannot be hexadecimal, and in decimal nobody knows an ioctl: it is a string. */
static int read_ioctl_number(const struct reader *reader, const struct json_place *place, const struct member *member,
			     __u16 *number)
{
	const char *text;

	if (!member->value)
		return reader_error(reader, place, "number is missing");
	text = cJSON_IsString(member->value) ? member->value->valuestring : "";
	if (strncmp(text, "0x", 2) != 0 || !text[2] || strlen(text) > 6 ||
	    text[2 + strspn(text + 2, "0123456789abcdefABCDEF")])
		return reader_error(reader, &member->place, "must be a string of 0x and up to 4 hexadecimal digits");
	*number = strtoul(text + 2, NULL, 16);
	return 0;
}

static int read_ioctl(const struct reader *reader, const cJSON *value, const struct json_place *place,
		      struct driver_ioctl *number)
{
	enum { NUMBER, NAME, ROLE, NOTE, MEMBERS };
	struct member members[MEMBERS] = {
		[NUMBER] = { .key = "number" },
		[NAME] = { .key = "name" },
		[ROLE] = { .key = "role" },
		[NOTE] = { .key = "note" },
	};
	int error = reader_members(reader, value, place, members, MEMBERS);

	if (!error)
		error = reader_note(reader, &members[NOTE]);
	if (!error)
		error = read_ioctl_number(reader, place, &members[NUMBER], &number->number);
	if (!error && !members[NAME].value)
		error = reader_error(reader, place, "name is missing");
	if (!error)
		error = reader_string(reader, members[NAME].value, &members[NAME].place, &number->name);
	if (!error && members[ROLE].value)
		error = driver_role_parse(reader, place, &members[ROLE], IOCTL_ROLES, &number->role);
	return error;
}

static int read_numbers(const struct reader *reader, const struct member *member, struct driver_ioctls *ioctls)
{
	struct json_place at = { &member->place, NULL, 0 };
	size_t size;

	if (!cJSON_IsArray(member->value) || !member->value->child)
		return reader_error(reader, &member->place, "must be an array with at least one ioctl");
	size = cJSON_GetArraySize(member->value);
	if (size > DRIVER_IOCTLS_MAX)
		return reader_error(reader, &member->place, "more than %d ioctls", DRIVER_IOCTLS_MAX);
	ioctls->numbers = calloc(size, sizeof(*ioctls->numbers));
	if (!ioctls->numbers)
		return -ENOMEM;
	for (const cJSON *child = member->value->child; child; child = child->next, at.index++) {
		struct driver_ioctl *number = &ioctls->numbers[ioctls->number_count++];
		int error = read_ioctl(reader, child, &at, number);

		if (error)
			return error;
		for (const struct driver_ioctl *other = ioctls->numbers; other < number; other++)
			if (other->number == number->number)
				return reader_error(reader, &at, "number 0x%x is there twice", number->number);
	}
	return 0;
}

static int read_ioctls(const struct reader *reader, const struct member *member, struct driver_ioctls *ioctls)
{
	enum { DEVICES, BOUND, NUMBERS, NOTE, MEMBERS };
	struct member members[MEMBERS] = {
		[DEVICES] = { .key = "devices" },
		[BOUND] = { .key = "bound" },
		[NUMBERS] = { .key = "numbers" },
		[NOTE] = { .key = "note" },
	};
	int error;

	if (!member->value)
		return 0;
	error = reader_members(reader, member->value, &member->place, members, MEMBERS);
	if (!error && (!members[DEVICES].value || !members[NUMBERS].value))
		error = reader_error(reader, &member->place, "must have devices and numbers");
	if (!error)
		error = reader_note(reader, &members[NOTE]);
	if (!error)
		error = reader_strings(reader, &members[DEVICES], &ioctls->devices, &ioctls->device_count);
	if (!error && !ioctls->device_count)
		error = reader_error(reader, &members[DEVICES].place, "must name at least one device node");
	for (size_t i = 0; !error && i < ioctls->device_count; i++) {
		struct json_place at = { &members[DEVICES].place, NULL, i };

		if (strncmp(ioctls->devices[i], "/dev/", 5) != 0)
			error = reader_error(reader, &at, "must begin with /dev/");
	}
	if (!error && members[BOUND].value)
		error = reader_string(reader, members[BOUND].value, &members[BOUND].place, &ioctls->bound);
	if (!error)
		error = read_numbers(reader, &members[NUMBERS], ioctls);
	return error ? error : driver_ioctl_events(ioctls->events);
}

/* Names of modules become parts of paths. */
static int read_modules(const struct reader *reader, const struct member *member, struct driver *driver)
{
	struct json_place at = { &member->place, NULL, 0 };
	int error = reader_strings(reader, member, &driver->modules, &driver->module_count);

	for (; !error && at.index < driver->module_count; at.index++)
		if (driver->modules[at.index][strspn(driver->modules[at.index], WORD)])
			error = reader_error(reader, &at, "is no module: only letters, digits and _");
	return error;
}

static int read_driver(const struct reader *reader, const cJSON *document, struct driver *driver)
{
	enum { DRIVER_SCHEMA, NAME, TITLE, NOTE, MODULES, SETS, IOCTLS, MEMBERS };
	struct member members[MEMBERS] = {
		[DRIVER_SCHEMA] = { .key = "schema" }, [NAME] = { .key = "driver" },
		[TITLE] = { .key = "title" },	       [NOTE] = { .key = "note" },
		[MODULES] = { .key = "modules" },      [SETS] = { .key = "sets" },
		[IOCTLS] = { .key = "ioctls" },
	};
	int error = reader_members(reader, document, NULL, members, MEMBERS);

	/* First, so that a file for another version is not judged by the rules of this one. */
	if (!error)
		error = reader_schema(reader, &members[DRIVER_SCHEMA], SCHEMA);
	if (!error)
		error = reader_name(reader, NULL, &members[NAME], &driver->name);
	if (!error && !members[TITLE].value)
		error = reader_error(reader, NULL, "title is missing");
	if (!error)
		error = reader_string(reader, members[TITLE].value, &members[TITLE].place, &driver->title);
	if (!error)
		error = reader_note(reader, &members[NOTE]);
	if (!error)
		error = read_modules(reader, &members[MODULES], driver);
	if (!error && !members[SETS].value && !members[IOCTLS].value)
		error = reader_error(reader, NULL, "must have sets or ioctls");
	if (!error)
		error = read_sets(reader, &members[SETS], driver);
	if (!error)
		error = read_ioctls(reader, &members[IOCTLS], &driver->ioctls);
	return error;
}

int driver_parse(const struct log *log, const char *file, const char *text, size_t length, struct driver **result)
{
	struct reader reader = { log, file, text, length };
	struct driver *driver = NULL;
	cJSON *document = NULL;
	int error = reader_parse(&reader, &document);

	*result = NULL;
	if (error)
		goto out;
	error = -ENOMEM;
	driver = calloc(1, sizeof(*driver));
	if (!driver)
		goto out;
	driver->file = strdup(file);
	if (!driver->file)
		goto out;
	error = read_driver(&reader, document, driver);
	if (error)
		goto out;
	*result = driver;
	driver = NULL;
out:
	driver_free(driver);
	cJSON_Delete(document);
	return error;
}

static void set_clear(struct driver_set *set)
{
	for (size_t i = 0; i < set->event_count; i++)
		driver_event_clear(&set->events[i]);
	for (size_t i = 0; i < set->join_count; i++)
		free(set->joins[i].driver);
	free(set->events);
	free(set->joins);
	free(set->name);
}

void driver_free(struct driver *driver)
{
	if (!driver)
		return;
	for (size_t i = 0; i < driver->set_count; i++)
		set_clear(&driver->sets[i]);
	for (size_t i = 0; i < driver->ioctls.number_count; i++)
		free(driver->ioctls.numbers[i].name);
	driver_event_clear(&driver->ioctls.events[0]);
	driver_event_clear(&driver->ioctls.events[1]);
	string_array_free(driver->ioctls.devices, driver->ioctls.device_count);
	string_array_free(driver->modules, driver->module_count);
	free(driver->ioctls.numbers);
	free(driver->ioctls.bound);
	free(driver->sets);
	free(driver->name);
	free(driver->title);
	free(driver->file);
	free(driver);
}
