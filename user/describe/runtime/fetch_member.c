/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/fetch_member.h"

#include <string.h>

#include "describe/runtime/fetch_expression.h"

#if defined(__x86_64__)
#define ARCHITECTURE "x86_64"
#elif defined(__aarch64__)
#define ARCHITECTURE "aarch64"
#else
#error "unknown architecture"
#endif

static int parse(const struct reader *reader, const struct member *member, fetch_check_fn check, void *context,
		 struct xpt_fetch *fetch, int meaning)
{
	char reason[128];

	if (!cJSON_IsString(member->value))
		return reader_error(reader, &member->place, "must be a string");
	if (fetch_expression_parse(member->value->valuestring, fetch, reason, sizeof(reason)))
		return reader_error(reader, &member->place, "%s", reason);
	fetch->meaning = meaning;
	return check(context, &member->place, fetch);
}

int fetch_member_parse(const struct reader *reader, const struct member *member, int meaning, fetch_check_fn check,
		       void *context, struct xpt_fetch *fetch, bool *given)
{
	struct member architectures[] = { { .key = "x86_64" }, { .key = "aarch64" } };
	struct xpt_fetch other;
	int error;

	*given = true;
	if (!cJSON_IsObject(member->value))
		return parse(reader, member, check, context, fetch, meaning);
	*given = false;
	error = reader_members(reader, member->value, &member->place, architectures, 2);
	for (size_t i = 0; i < 2 && !error; i++) {
		bool here = strcmp(architectures[i].key, ARCHITECTURE) == 0;

		if (!architectures[i].value)
			continue;
		error = parse(reader, &architectures[i], check, context, here ? fetch : &other, meaning);
		*given = *given || here;
	}
	return error;
}
