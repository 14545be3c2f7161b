/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/driver/drivers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "describe/reader/builtin.h"
#include "describe/reader/reader.h"

/* Drivers while they are put together. */
struct builder {
	const struct log *log;
	struct drivers *drivers;
	__u64 from_user; /* bit i: driver i came from a file, not from the built-in ones */
};

static ssize_t find(const struct drivers *drivers, const char *name)
{
	for (size_t i = 0; i < drivers->count; i++)
		if (strcmp(drivers->items[i]->name, name) == 0)
			return i;
	return -1;
}

const struct driver *drivers_find(const struct drivers *drivers, const char *name)
{
	ssize_t found = find(drivers, name);

	return found < 0 ? NULL : drivers->items[found];
}

/* Takes the driver over, also when it fails. */
static int add(struct builder *builder, struct driver *driver, bool from_user)
{
	struct drivers *drivers = builder->drivers;
	ssize_t found = find(drivers, driver->name);

	if (found >= 0 && (!from_user || builder->from_user & 1ull << found)) {
		log_error(builder->log, "%s: driver: '%s' is already described by %s", driver->file, driver->name,
			  drivers->items[found]->file);
		driver_free(driver);
		return -EINVAL;
	}
	if (found >= 0) {
		log_debug(builder->log, "%s: replaces the built-in description of '%s'", driver->file, driver->name);
		driver_free(drivers->items[found]);
		drivers->items[found] = driver;
		builder->from_user |= 1ull << found;
		return 0;
	}
	if (drivers->count == DRIVERS_MAX) {
		log_error(builder->log, "%s: more than %d drivers are described", driver->file, DRIVERS_MAX);
		driver_free(driver);
		return -E2BIG;
	}
	if (vec_reserve(drivers->items, drivers->count)) {
		driver_free(driver);
		return -ENOMEM;
	}
	builder->from_user |= (__u64)from_user << drivers->count;
	drivers->items[drivers->count++] = driver;
	return 0;
}

static int add_builtins(struct builder *builder)
{
	for (size_t i = 0; i < builtin_driver_count; i++) {
		const struct builtin_file *file = &builtin_drivers[i];
		struct driver *driver;
		int error = driver_parse(builder->log, file->name, file->text, file->length, &driver);

		if (!error)
			error = add(builder, driver, false);
		if (error)
			return error;
	}
	return 0;
}

static int add_file(struct builder *builder, const char *path)
{
	struct driver *driver;
	size_t length;
	char *text;
	int error = reader_file(builder->log, path, &text, &length);

	if (error)
		return error;
	error = driver_parse(builder->log, path, text, length, &driver);
	free(text);
	return error ? error : add(builder, driver, true);
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

int drivers_create(const struct log *log, const char *const *files, size_t file_count, struct drivers **result)
{
	struct drivers *drivers = calloc(1, sizeof(*drivers));
	struct builder builder = { log, drivers, 0 };
	int error = drivers ? add_builtins(&builder) : -ENOMEM;

	*result = NULL;
	for (size_t i = 0; !error && i < file_count; i++)
		error = add_file(&builder, files[i]);
	for (size_t i = 0; !error && i < drivers->count; i++)
		error = check_joins(log, drivers, drivers->items[i]);
	if (error) {
		drivers_free(drivers);
		return error;
	}
	*result = drivers;
	return 0;
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
