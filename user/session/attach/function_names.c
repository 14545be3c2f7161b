/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/attach/function_names.h"

#include <errno.h>
#include <string.h>

#include "base/core/clock.h"

static bool is_region(const struct registry *registry, const struct found_function *function)
{
	return !function->shared && registry->specs[function->spec]->wire.role == XPT_ROLE_REGION;
}

bool function_names_any(const struct registry *registry, const struct found_functions *found)
{
	for (size_t i = 0; i < found->count; i++)
		if (is_region(registry, &found->functions[i]))
			return true;
	return false;
}

static int tell(const struct found_function *function, pid_t tgid, __u64 address, __u64 time,
		int (*record)(void *context, const struct xpt_record_header *record), void *context)
{
	union {
		struct xpt_record_region_name record;
		char room[sizeof(struct xpt_record_region_name) + XPT_ALIGN8(XPT_STRING_MAX)];
	} named = { .record = { .header = { .kind = XPT_RECORD_REGION_NAME, .tgid = tgid, .time = time },
				.name = address } };
	struct xpt_record_region_name *told = &named.record;
	size_t length = strlen(function->symbol);

	told->truncated = length > XPT_STRING_MAX;
	told->length = length > XPT_STRING_MAX ? XPT_STRING_MAX : length;
	told->header.size = XPT_ALIGN8(sizeof(*told) + told->length);
	memcpy(told->text, function->symbol, told->length);
	return record(context, &told->header);
}

int function_names_tell(const struct registry *registry, const struct found_functions *found, pid_t tgid,
			const struct mapped_file *mapped,
			int (*record)(void *context, const struct xpt_record_header *record), void *context)
{
	__u64 time = clock_monotonic();
	int error = 0;

	for (size_t i = 0; i < found->count && !error; i++) {
		const struct found_function *function = &found->functions[i];

		if (is_region(registry, function))
			error = tell(function, tgid, function->site.offset - mapped->offset + mapped->start, time,
				     record, context);
	}
	return error;
}
