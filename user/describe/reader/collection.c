/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/reader/collection.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "describe/reader/reader.h"

#define SCHEMA 1

/* ---- one description ---- */

int described_parse(const struct description_kind *kind, const struct log *log, const char *file, const char *text,
		    size_t length, struct described **result)
{
	struct reader reader = { .log = log, .file = file, .text = text, .length = length };
	cJSON *document = reader_parse(&reader);
	struct described *described = calloc(1, kind->size);

	*result = NULL;
	if (described)
		described->file = strdup(file);
	if (!described || !described->file)
		reader_fail(&reader, -ENOMEM);
	if (!reader.error)
		kind->read(&reader, document, described);
	if (!reader.error)
		*result = described;
	else if (described)
		kind->release(described);
	cJSON_Delete(document);
	return reader.error;
}

void described_read(struct reader *reader, const struct member *members, struct described *described)
{
	const struct member *schema = &members[DESCRIBED_SCHEMA];
	__s64 number;

	/* First, so that a file for another version is not judged by the rules of this one. */
	reader_require(reader, schema);
	number = reader_number(reader, schema, 0, INT_MAX, SCHEMA);
	if (number != SCHEMA)
		reader_error(reader, &schema->place, "schema %lld is not known, only %d is", (long long)number, SCHEMA);
	described->name = reader_name(reader, &members[DESCRIBED_NAME]);
	described->title = reader_string(reader, &members[DESCRIBED_TITLE]);
	reader_note(reader, &members[DESCRIBED_NOTE]);
}

void described_clear(struct described *described)
{
	free(described->file);
	free(described->title);
	free(described->name);
}

/* ---- collections ---- */

static struct described **find(const struct collection *collection, const char *name)
{
	for (size_t i = 0; i < collection->count; i++)
		if (strcmp(collection->items[i]->name, name) == 0)
			return &collection->items[i];
	return NULL;
}

struct described *collection_find(const struct collection *collection, const char *name)
{
	struct described **found = find(collection, name);

	return found ? *found : NULL;
}

int collection_add(struct collection *collection, struct described *described)
{
	const struct description_kind *kind = collection->kind;
	struct described **found = find(collection, described->name);
	int error = 0;

	if (found && (!described->from_user || (*found)->from_user)) {
		log_error(collection->log, "%s: %s: '%s' is already described by %s", described->file, kind->what,
			  described->name, (*found)->file);
		error = -EINVAL;
	} else if (found) {
		log_debug(collection->log, "%s: replaces the built-in description of '%s'", described->file,
			  described->name);
		kind->release(*found);
		*found = described;
	} else if (collection->count == kind->most) {
		log_error(collection->log, "%s: more than %zu %ss are described", described->file, kind->most,
			  kind->what);
		error = -E2BIG;
	} else {
		error = vec_push(collection->items, collection->count, described);
	}
	if (error)
		kind->release(described);
	return error;
}

static int add_text(struct collection *collection, const char *file, const char *text, size_t length, bool from_user)
{
	struct described *described;
	int error = described_parse(collection->kind, collection->log, file, text, length, &described);

	if (error)
		return error;
	described->from_user = from_user;
	return collection_add(collection, described);
}

static int add_file(struct collection *collection, const char *path)
{
	size_t length;
	char *text;
	int error = reader_file(collection->log, path, &text, &length);

	if (error)
		return error;
	error = add_text(collection, path, text, length, true);
	free(text);
	return error;
}

int collection_read(struct collection *collection, const char *const *files, size_t file_count)
{
	const struct description_kind *kind = collection->kind;
	int error = 0;

	for (size_t i = 0; i < *kind->builtin_count && !error; i++)
		error = add_text(collection, kind->builtins[i].name, kind->builtins[i].text, kind->builtins[i].length,
				 false);
	for (size_t i = 0; i < file_count && !error; i++)
		error = add_file(collection, files[i]);
	return error;
}

void collection_free(struct collection *collection)
{
	for (size_t i = 0; i < collection->count; i++)
		collection->kind->release(collection->items[i]);
	free(collection->items);
	collection->items = NULL;
	collection->count = 0;
}
