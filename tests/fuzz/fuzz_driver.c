/* SPDX-License-Identifier: BSD-2-Clause */
/* A driver description is a file of the user's: whatever it holds, it is refused with a message or is sane. */
#include <string.h>

#include "describe/driver/driver.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* Names of systems and events become parts of paths. */
static void check_event(const struct driver_event *event)
{
	require(*event->system && !strpbrk(event->system, "/.:"));
	require(*event->name && !strpbrk(event->name, "/.:"));
	require(event->field_count <= DRIVER_VALUES_MAX && event->key_count <= DRIVER_KEY_MAX);
	for (size_t i = 0; i < event->field_count; i++) {
		const struct driver_field *field = &event->fields[i];

		require(*field->name && field->types);
		require((field->meaning == XPT_FIELD_KEY) == (i < event->key_count));
		require(field->meaning != XPT_FIELD_KEY || !(field->types & ~DRIVER_NUMBER));
	}
	require(!event->condition.text || event->condition.field.name);
	require(!event->condition.text || strlen(event->condition.text) <= DRIVER_TEXT_MAX);
}

static void check_set(const struct driver_set *set)
{
	require(set->event_count && set->event_count <= DRIVER_EVENTS_MAX);
	require(set->bits == 32 || set->bits == 64);
	for (size_t i = 0; i < set->event_count; i++) {
		require(!set->events[i].key_count || set->events[i].key_count == set->key_count);
		require(set->events[i].role >= XPT_EVENT_QUEUE && set->events[i].role <= XPT_EVENT_WAIT);
		check_event(&set->events[i]);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct said said = { 0 };
	struct log log = { said_write, &said, XPT_LOG_DEBUG };
	struct driver *driver;
	int error = driver_parse(&log, "fuzz.json", (const char *)data, size, &driver);

	if (error) {
		require(!driver && said.errors == 1);
		return 0;
	}
	require(!said.errors && (driver->set_count || driver->ioctls.number_count));
	for (size_t i = 0; i < driver->set_count; i++)
		check_set(&driver->sets[i]);
	for (size_t i = 0; driver->ioctls.device_count && i < 2; i++)
		check_event(&driver->ioctls.events[i]);
	driver_free(driver);
	return 0;
}
