/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/polled/polled.h"

#include <errno.h>
#include <stdlib.h>

#include "counter/polled/polled_source.h"

static const struct polled_source *const sources[] = { &polled_sysfs, &polled_fdinfo, &polled_nvml };
#define SOURCE_COUNT (sizeof(sources) / sizeof(sources[0]))

struct polled {
	const struct polled_source *source;
	void *state;
	bool level;
	__u64 highest;
};

const struct node *polled_node(const struct polled_place *place, size_t index)
{
	if (place->node)
		return index ? NULL : place->node;
	return place->nodes && index < place->nodes->count ? &place->nodes->items[index] : NULL;
}

int polled_list(const struct polled_place *place, polled_visit visit, void *context)
{
	int result = 0;

	for (size_t i = 0; !result && i < SOURCE_COUNT; i++)
		result = sources[i]->list(place, visit, context);
	return result;
}

int polled_open(const struct polled_place *place, const char *source, const char *event, struct polled_info *info,
		struct polled **result)
{
	struct polled *polled = calloc(1, sizeof(*polled));
	int error = -ENOENT;

	if (!polled)
		return -ENOMEM;
	for (size_t i = 0; error == -ENOENT && i < SOURCE_COUNT; i++) {
		polled->source = sources[i];
		error = sources[i]->open(place, source, event, info, &polled->state);
	}
	if (error) {
		free(polled);
		return error;
	}
	polled->level = info->level;
	*result = polled;
	return 0;
}

int polled_read(struct polled *polled, __u64 *raw)
{
	int error = polled->source->read(polled->state, raw);

	if (error || polled->level)
		return error;
	/* The value of a driver may decrease, for a while or by starting anew; a difference must not be negative. */
	if (*raw < polled->highest)
		*raw = polled->highest;
	polled->highest = *raw;
	return 0;
}

void polled_close(struct polled *polled)
{
	if (!polled)
		return;
	polled->source->close(polled->state);
	free(polled);
}
