/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/merge/names.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"

#define KIND_PROCESS_NAME 'p'

static const struct {
	const char *name;
	char kind;
	bool thread;
} kinds[] = {
	{ "\"process_name\"", KIND_PROCESS_NAME, false },
	{ "\"process_sort_index\"", 'P', false },
	{ "\"thread_name\"", 't', true },
	{ "\"thread_sort_index\"", 'T', true },
};

/* False: the event is of no kind of which there can be only one. */
static bool make_key(const struct merge_event *event, struct merge_name *key)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!json_part_is(&event->name, kinds[i].name))
			continue;
		if (!event->process_known || (kinds[i].thread && !event->thread_known))
			return false;
		*key = (struct merge_name){
			.process = event->process,
			.thread = kinds[i].thread ? event->thread : 0,
			.kind = kinds[i].kind,
		};
		return true;
	}
	return false;
}

static int compare_keys(const void *a, const void *b)
{
	const struct merge_name *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->kind - y->kind;
}

int merge_names_add(struct merge_names *names, const struct merge_event *event, unsigned int input)
{
	struct json_part name = json_member(event->arguments, "name");
	struct merge_name key;

	if (!make_key(event, &key))
		return 0;
	key.input = input;
	if (key.kind == KIND_PROCESS_NAME && name.length) {
		key.name = strndup(name.text, name.length);
		if (!key.name)
			return -ENOMEM;
	}
	if (vec_push(names->items, names->count, key)) {
		free(key.name);
		return -ENOMEM;
	}
	return 0;
}

/* The winner comes first. */
static int compare_claims(const void *a, const void *b)
{
	const struct merge_name *x = a, *y = b;
	int keys = compare_keys(a, b);

	return keys ?: (x->rank > y->rank) - (x->rank < y->rank);
}

void merge_names_settle(struct merge_names *names, const bool *first)
{
	size_t kept = 0;

	if (!names->count)
		return;
	for (size_t i = 0; i < names->count; i++) {
		struct merge_name *name = &names->items[i];

		name->rank = name->input + (first[name->input] ? 0 : UINT_MAX / 2);
	}
	qsort(names->items, names->count, sizeof(*names->items), compare_claims);
	for (size_t i = 0; i < names->count; i++) {
		if (kept && !compare_keys(&names->items[kept - 1], &names->items[i]))
			free(names->items[i].name);
		else
			names->items[kept++] = names->items[i];
	}
	names->count = kept;
}

enum merge_name_fate merge_names_fate(const struct merge_names *names, const struct merge_event *event,
				      unsigned int input)
{
	struct json_part name = json_member(event->arguments, "name");
	const struct merge_name *holder;
	struct merge_name key;

	if (!names->count || !make_key(event, &key))
		return MERGE_NAME_KEPT;
	holder = bsearch(&key, names->items, names->count, sizeof(key), compare_keys);
	if (!holder || holder->input == input)
		return MERGE_NAME_KEPT;
	if (key.kind != KIND_PROCESS_NAME || !name.length || *name.text != '"' ||
	    (holder->name && json_part_is(&name, holder->name)))
		return MERGE_NAME_DROPPED;
	return MERGE_NAME_LABEL;
}

void merge_names_free(struct merge_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->items[i].name);
	free(names->items);
}
