/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/name_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void name_release(void *context, struct keyed *entry)
{
	(void)context;
	free(container_of(entry, struct name, keyed));
}

void name_table_init(struct name_table *names, size_t most, bool refuses)
{
	keyed_init(&names->table, most, name_release, NULL);
	names->refuses = refuses;
}

static struct name *name_get(const struct name_table *names, __u64 a, __u64 b)
{
	struct keyed *entry = keyed_find(&names->table, a, b);

	return entry ? container_of(entry, struct name, keyed) : NULL;
}

int name_table_add(struct name_table *names, __u64 owner, __u64 a, __u64 b, const char *text, size_t length,
		   bool truncated)
{
	struct name *before = name_get(names, a, b), *name;

	length = strnlen(text, length);
	if (before && !strncmp(before->text, text, length) && !before->text[length])
		return 0;
	if (!before && names->refuses && keyed_full(&names->table))
		return -ENOSPC;
	name = malloc(sizeof(*name) + length + 1);
	if (!name)
		return -ENOMEM;
	memcpy(name->text, text, length);
	name->text[length] = '\0';
	name->truncated = truncated;
	name->used = before && before->used;
	if (before)
		keyed_drop(&names->table, &before->keyed);
	if (keyed_add(&names->table, &name->keyed, owner, a, b)) {
		free(name);
		return -ENOMEM;
	}
	return 0;
}

const struct name *name_table_find(const struct name_table *names, __u64 a, __u64 b)
{
	struct name *name = name_get(names, a, b);

	if (name)
		name->used = true;
	return name;
}

void name_table_drop(struct name_table *names, __u64 a, __u64 b)
{
	struct name *name = name_get(names, a, b);

	if (name)
		keyed_drop(&names->table, &name->keyed);
}
