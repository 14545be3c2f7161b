/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/context_text.h"

#include <string.h>

#include "model/stream/event.h"

static __u64 hash_text(__u64 start, const char *text, size_t length)
{
	__u64 hash = 0xcbf29ce484222325 ^ start;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
	return hash;
}

/* Choices have no number, and all of them count. */
static __u64 choice_number(const struct xpt_record_text *record)
{
	return hash_text(record->id, record->text, record->length);
}

/* Where the value of a member begins in the JSON of a record; NULL: nowhere. Inside of a string the quotes would be escaped. */
static char *member_find(const struct xpt_record_text *record, const char *key)
{
	char *found = memmem(record->text, record->length, key, strlen(key));

	return found && found + strlen(key) < record->text + record->length ? found + strlen(key) : NULL;
}

/* Those without a handle are identified by where they come from. */
static __u64 code_number(const struct xpt_record_text *record)
{
	const char *uri = record->id ? NULL : member_find(record, "\"uri\":\""), *end;

	if (!uri)
		return record->id;
	end = memchr(uri, '"', (size_t)(record->text + record->length - uri));
	return hash_text(1, uri, (size_t)((end ? end : record->text + record->length) - uri));
}

__u64 context_number(const struct xpt_record_header *record)
{
	switch (record->kind) {
	case XPT_RECORD_REGION_NAME:
		return ((const struct xpt_record_region_name *)record)->name;
	case XPT_RECORD_PROCESS:
		return 0;
	case XPT_RECORD_CHOICE:
	case XPT_RECORD_MATCH:
		return choice_number((const void *)record);
	case XPT_RECORD_CODE_OBJECT:
		return code_number((const void *)record);
	default:
		return ((const struct xpt_record_text *)record)->id;
	}
}

void context_name_from_fork(struct xpt_record_text *record)
{
	char *value = member_find(record, "\"named_by\":");

	if (value && *value != '0' + NAME_FROM_OPERATORS)
		*value = '0' + NAME_FROM_FORK;
}

/* The number as 0, as long as it is. */
static void clear_number(struct xpt_record_text *record, const char *key)
{
	char *value = member_find(record, key), *end = record->text + record->length;

	for (char *at = value; at && at < end && *at >= '0' && *at <= '9'; at++)
		*at = at == value ? '0' : ' ';
}

void context_code_found(struct xpt_record_text *record)
{
	clear_number(record, "\"tid\":");
	clear_number(record, "\"waited_ns\":");
}
