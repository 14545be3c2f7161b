/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/driver/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "describe/driver/event.h"

#define IOCTL_ROLES (1u << XPT_EVENT_SUBMIT | 1u << XPT_EVENT_WAIT | 1u << XPT_EVENT_MEMORY | 1u << XPT_EVENT_RESET)

/* ---- sets of events ---- */

/* A number of bits that are compared. */
static unsigned int read_bits(struct reader *reader, const struct member *member)
{
	unsigned int bits = reader_number(reader, member, 0, 64, 64);

	if (bits != 32 && bits != 64)
		reader_error(reader, &member->place, "must be 32 or 64");
	return bits;
}

static void read_join(struct reader *reader, const struct member *element, void *item, void *context)
{
	struct member members[] = { { .key = "driver" }, { .key = "bits" } };
	struct driver_join *join = item;

	(void)context;
	reader_members(reader, element->value, &element->place, members, 2);
	join->driver = reader_name(reader, &members[0]);
	join->bits = read_bits(reader, &members[1]);
	join->line = json_locate(reader->text, reader->length, &members[0].place);
}

static void read_event(struct reader *reader, const struct member *element, void *item, void *context)
{
	struct driver_event *event = item;
	struct driver_set *set = context;

	driver_event_parse(reader, element, event);
	if (event->key_count && set->key_count && event->key_count != set->key_count)
		reader_error(reader, &element->place, "its key has %zu fields, that of events before %zu",
			     event->key_count, set->key_count);
	if (event->key_count)
		set->key_count = event->key_count;
}

static void read_set(struct reader *reader, const struct member *element, void *item, void *context)
{
	enum { NAME, PAIRING, BITS, JOINS, EVENTS, NOTE, MEMBERS };
	static const char *const pairings[] = {
		[XPT_PAIRING_UNIQUE] = "unique",
		[XPT_PAIRING_LATEST] = "latest",
		[XPT_PAIRING_ORDER] = "order",
	};
	struct member members[MEMBERS] = {
		[NAME] = { .key = "name" },   [PAIRING] = { .key = "pairing" }, [BITS] = { .key = "bits" },
		[JOINS] = { .key = "joins" }, [EVENTS] = { .key = "events" },	[NOTE] = { .key = "note" },
	};
	struct driver_set *set = item;

	(void)context;
	reader_members(reader, element->value, &element->place, members, MEMBERS);
	reader_note(reader, &members[NOTE]);
	set->name = reader_optional_string(reader, &members[NAME]);
	if (members[PAIRING].value)
		set->pairing = reader_choice(reader, &members[PAIRING], "pairing ", pairings, COUNT_OF(pairings),
					     ~0ull);
	set->bits = read_bits(reader, &members[BITS]);
	if (members[JOINS].value)
		set->joins = reader_array(reader, &members[JOINS], DRIVERS_MAX, "joins", sizeof(*set->joins),
					  &set->join_count, read_join, NULL);
	set->events = reader_array(reader, &members[EVENTS], DRIVER_EVENTS_MAX, "events", sizeof(*set->events),
				   &set->event_count, read_event, set);
	if (set->join_count && !set->key_count)
		reader_error(reader, &members[JOINS].place, "no event has a key to join by");
	if (!set->name && (element->place.index || element->value->next))
		reader_error(reader, &element->place, "name is missing: there are several sets");
}

/* ---- ioctls ---- */

/* A number of JSON cannot be hexadecimal, and in decimal nobody knows an ioctl: it is a string. */
static __u16 read_number(struct reader *reader, const struct member *member)
{
	const char *text = cJSON_IsString(member->value) ? member->value->valuestring : "";

	reader_require(reader, member);
	if (strncmp(text, "0x", 2) != 0 || !text[2] || strlen(text) > 6 ||
	    text[2 + strspn(text + 2, "0123456789abcdefABCDEF")]) {
		reader_error(reader, &member->place, "must be a string of 0x and up to 4 hexadecimal digits");
		return 0;
	}
	return strtoul(text + 2, NULL, 16);
}

static void read_ioctl(struct reader *reader, const struct member *element, void *item, void *context)
{
	enum { NUMBER, NAME, ROLE, NOTE, MEMBERS };
	struct member members[MEMBERS] = {
		[NUMBER] = { .key = "number" },
		[NAME] = { .key = "name" },
		[ROLE] = { .key = "role" },
		[NOTE] = { .key = "note" },
	};
	struct driver_ioctl *number = item;

	(void)context;
	reader_members(reader, element->value, &element->place, members, MEMBERS);
	reader_note(reader, &members[NOTE]);
	number->number = read_number(reader, &members[NUMBER]);
	number->name = reader_string(reader, &members[NAME]);
	if (members[ROLE].value)
		number->role = driver_role_parse(reader, &members[ROLE], IOCTL_ROLES);
	for (const struct driver_ioctl *other = number - element->place.index; other < number; other++)
		if (other->number == number->number)
			reader_error(reader, &element->place, "number 0x%x is there twice", number->number);
}

static void read_ioctls(struct reader *reader, const struct member *member, struct driver_ioctls *ioctls)
{
	enum { DEVICES, BOUND, NUMBERS, NOTE, MEMBERS };
	struct member members[MEMBERS] = {
		[DEVICES] = { .key = "devices" },
		[BOUND] = { .key = "bound" },
		[NUMBERS] = { .key = "numbers" },
		[NOTE] = { .key = "note" },
	};
	struct json_place at = { &members[DEVICES].place, NULL, 0 };

	if (!member->value)
		return;
	reader_members(reader, member->value, &member->place, members, MEMBERS);
	if (!members[DEVICES].value || !members[NUMBERS].value)
		reader_error(reader, &member->place, "must have devices and numbers");
	reader_note(reader, &members[NOTE]);
	ioctls->devices = reader_strings(reader, &members[DEVICES], &ioctls->device_count);
	if (!ioctls->device_count)
		reader_error(reader, &members[DEVICES].place, "must name at least one device node");
	for (; at.index < ioctls->device_count; at.index++)
		if (strncmp(ioctls->devices[at.index], "/dev/", 5) != 0)
			reader_error(reader, &at, "must begin with /dev/");
	ioctls->bound = reader_optional_string(reader, &members[BOUND]);
	ioctls->numbers = reader_array(reader, &members[NUMBERS], DRIVER_IOCTLS_MAX, "ioctls", sizeof(*ioctls->numbers),
				       &ioctls->number_count, read_ioctl, NULL);
	if (!reader->error && driver_ioctl_events(ioctls->events))
		reader_fail(reader, -ENOMEM);
}

/* ---- drivers ---- */

/* Names of modules become parts of paths. */
static void read_modules(struct reader *reader, const struct member *member, struct driver *driver)
{
	struct json_place at = { &member->place, NULL, 0 };

	driver->modules = reader_strings(reader, member, &driver->module_count);
	for (; at.index < driver->module_count; at.index++)
		if (driver->modules[at.index][strspn(driver->modules[at.index], WORD)])
			reader_error(reader, &at, "is no module: only letters, digits and _");
}

static void read_driver(struct reader *reader, const cJSON *document, struct described *described)
{
	enum { MODULES = DESCRIBED_NOTE + 1, SETS, IOCTLS, MEMBERS };
	struct member members[MEMBERS] = {
		[DESCRIBED_SCHEMA] = { .key = "schema" }, [DESCRIBED_NAME] = { .key = "driver" },
		[DESCRIBED_TITLE] = { .key = "title" },	  [DESCRIBED_NOTE] = { .key = "note" },
		[MODULES] = { .key = "modules" },	  [SETS] = { .key = "sets" },
		[IOCTLS] = { .key = "ioctls" },
	};
	struct driver *driver = container_of(described, struct driver, described);

	reader_members(reader, document, NULL, members, MEMBERS);
	described_read(reader, members, described);
	read_modules(reader, &members[MODULES], driver);
	if (!members[SETS].value && !members[IOCTLS].value)
		reader_error(reader, NULL, "must have sets or ioctls");
	if (members[SETS].value)
		driver->sets = reader_array(reader, &members[SETS], DRIVER_SETS_MAX, "sets of events",
					    sizeof(*driver->sets), &driver->set_count, read_set, NULL);
	read_ioctls(reader, &members[IOCTLS], &driver->ioctls);
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

static void release_driver(struct described *described)
{
	struct driver *driver = container_of(described, struct driver, described);

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
	described_clear(described);
	free(driver);
}

static const struct description_kind driver_descriptions = {
	.what = "driver",
	.most = DRIVERS_MAX,
	.size = sizeof(struct driver),
	.builtins = builtin_drivers,
	.builtin_count = &builtin_driver_count,
	.read = read_driver,
	.release = release_driver,
};

int driver_parse(const struct log *log, const char *file, const char *text, size_t length, struct driver **result)
{
	struct described *described;
	int error = described_parse(&driver_descriptions, log, file, text, length, &described);

	*result = error ? NULL : container_of(described, struct driver, described);
	return error;
}

void driver_free(struct driver *driver)
{
	if (driver)
		release_driver(&driver->described);
}

/* ---- all of them ---- */

const struct driver *drivers_find(const struct drivers *drivers, const char *name)
{
	for (size_t i = 0; i < drivers->count; i++)
		if (strcmp(drivers->items[i]->name, name) == 0)
			return drivers->items[i];
	return NULL;
}

/* Every driver that is joined is described, and is another one. */
static int check_joins(const struct log *log, const struct drivers *drivers, const struct driver *driver)
{
	for (size_t i = 0; i < driver->set_count; i++) {
		for (size_t j = 0; j < driver->sets[i].join_count; j++) {
			const struct driver_join *join = &driver->sets[i].joins[j];
			const struct driver *other = drivers_find(drivers, join->driver);

			if (other && other != driver)
				continue;
			log_error(log, "%s:%u: sets[%zu].joins[%zu].driver: %s '%s'", driver->file, join->line, i, j,
				  other ? "a driver cannot join itself:" : "no such driver:", join->driver);
			return -EINVAL;
		}
	}
	return 0;
}

/* Takes the descriptions over. */
static int take_drivers(struct drivers *drivers, struct collection *collection)
{
	int error = 0;

	drivers->items = calloc(collection->count + 1, sizeof(struct driver *));
	if (!drivers->items)
		return -ENOMEM;
	for (; drivers->count < collection->count; drivers->count++)
		drivers->items[drivers->count] = container_of(collection->items[drivers->count], struct driver,
							      described);
	collection->count = 0;
	for (size_t i = 0; !error && i < drivers->count; i++)
		error = check_joins(collection->log, drivers, drivers->items[i]);
	return error;
}

int drivers_create(const struct log *log, const char *const *files, size_t file_count, struct drivers **result)
{
	struct collection collection = { .kind = &driver_descriptions, .log = log };
	struct drivers *drivers = calloc(1, sizeof(*drivers));
	int error = drivers ? collection_read(&collection, files, file_count) : -ENOMEM;

	if (!error)
		error = take_drivers(drivers, &collection);
	collection_free(&collection);
	if (error)
		drivers_free(drivers);
	*result = error ? NULL : drivers;
	return error;
}

void drivers_free(struct drivers *drivers)
{
	if (!drivers)
		return;
	for (size_t i = 0; i < drivers->count; i++)
		driver_free(drivers->items[i]);
	free(drivers->items);
	free(drivers);
}

bool driver_joins(const struct driver_set *set, const struct driver_join *join, const struct driver *other_driver,
		  const struct driver_set *other)
{
	return strcmp(join->driver, other_driver->name) == 0 && set->key_count && set->key_count == other->key_count;
}
