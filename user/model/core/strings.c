/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/core/strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void strings_init(struct strings *strings)
{
	*strings = (struct strings){};
	link_init(&strings->waiting);
	link_init(&strings->spare);
}

static void strings_free_list(struct link *list)
{
	struct link *link, *following;

	link_each(link, following, list) free(container_of(link, struct string, link));
}

void strings_free(struct strings *strings)
{
	strings_free_list(&strings->waiting);
	strings_free_list(&strings->spare);
	map_free(&strings->map);
}

static __u64 string_key(__u32 tid, unsigned int spec, unsigned int fetch)
{
	return (__u64)tid << 32 | spec << 8 | fetch;
}

static void string_retire(struct strings *strings, struct string *string)
{
	map_remove(&strings->map, &string->node);
	link_remove(&string->link);
	link_append(&strings->spare, &string->link);
	strings->count--;
}

static struct string *string_new(struct strings *strings)
{
	struct string *string;

	if (strings->count >= STRINGS_MAX)
		string_retire(strings, container_of(strings->waiting.next, struct string, link));
	if (link_alone(&strings->spare)) {
		string = malloc(sizeof(*string));
		if (!string)
			return NULL;
		link_init(&string->link);
		return string;
	}
	string = container_of(strings->spare.next, struct string, link);
	link_remove(&string->link);
	return string;
}

int strings_add(struct strings *strings, const struct xpt_record_string *record)
{
	struct string *string = string_new(strings);

	if (!string)
		return -ENOMEM;
	if (map_add(&strings->map, &string->node, string_key(record->tid, record->spec, record->fetch),
		    record->call_start)) {
		free(string);
		return -ENOMEM;
	}
	string->tgid = record->header.tgid;
	string->truncated = record->truncated;
	string->length = record->length;
	memcpy(string->text, record->text, record->length);
	string->text[record->length] = '\0';
	link_append(&strings->waiting, &string->link);
	strings->count++;
	return 0;
}

struct string *strings_take(struct strings *strings, const struct xpt_record_call *call, unsigned int fetch)
{
	struct map_node *node = map_find(&strings->map, string_key(call->tid, call->spec, fetch), call->start);
	struct string *string;

	if (!node)
		return NULL;
	string = container_of(node, struct string, node);
	string_retire(strings, string);
	return string;
}

void strings_drop(struct strings *strings, __u32 tgid)
{
	struct link *link, *following;
	struct string *string;

	link_each(link, following, &strings->waiting)
	{
		string = container_of(link, struct string, link);
		if (string->tgid == tgid)
			string_retire(strings, string);
	}
}
