/* SPDX-License-Identifier: BSD-2-Clause */
/* All driver descriptions of one session: the built-in ones, and those added by file. */
#ifndef XPT_DESCRIBE_DRIVER_DRIVERS_H
#define XPT_DESCRIBE_DRIVER_DRIVERS_H

#include "describe/driver/driver.h"

#define DRIVERS_MAX 64

struct drivers {
	struct driver **items; /* the built-in ones first, in the order of their names */
	size_t count;	       /* at most DRIVERS_MAX */
};

/*
 * Reads the built-in descriptions and then each of files; one with the name of a built-in replaces it.
 * -EINVAL for a bad file, or one that joins a driver that is not described; -E2BIG for too many; -errno of a file.
 */
int drivers_create(const struct log *log, const char *const *files, size_t file_count, struct drivers **result);
void drivers_free(struct drivers *drivers);

const struct driver *drivers_find(const struct drivers *drivers, const char *name); /* NULL: unknown */

/*
 * Whether keys of set and of other can be compared, where each is the set that was taken of its driver: a set of an old
 * kernel may have another kind of key. Compared are the low join->bits of each part.
 */
bool driver_joins(const struct driver_set *set, const struct driver_join *join, const struct driver *other_driver,
		  const struct driver_set *other);

#endif
