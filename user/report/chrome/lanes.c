/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/lanes.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 8

/* Index of the first span that ends after time: all before it are over by then. */
static unsigned int find(const struct lane *lane, __u64 time)
{
	unsigned int low = 0, high = lane->count;

	/* Most jobs come soon after their end. */
	if (!high || lane->spans[high - 1].end <= time)
		return high;
	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (lane->spans[middle].end <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void forget_older_half(struct lane *lane)
{
	unsigned int gone = (lane->count + 1) / 2;

	lane->floor = lane->spans[gone - 1].end;
	lane->count -= gone;
	memmove(lane->spans, lane->spans + gone, lane->count * sizeof(*lane->spans));
}

static void grow(struct lane *lane, size_t *budget)
{
	unsigned int room = lane->room ? 2 * lane->room : ROOM_FIRST;
	struct lane_span *spans;

	if (room > LANE_SPANS_MAX || *budget + room - lane->room > LANES_SPANS_MAX)
		return;
	spans = realloc(lane->spans, room * sizeof(*spans));
	if (!spans)
		return;
	*budget += room - lane->room;
	lane->spans = spans;
	lane->room = room;
}

/* Makes room for one more; without any, what the lane has is forgotten up to end. */
static void insert(struct lane *lane, __u64 start, __u64 end, size_t *budget)
{
	unsigned int index;

	if (lane->count == lane->room)
		grow(lane, budget);
	if (!lane->room) {
		lane->floor = end;
		return;
	}
	if (lane->count == lane->room)
		forget_older_half(lane);
	if (end <= lane->floor)
		return;
	index = find(lane, start);
	memmove(lane->spans + index + 1, lane->spans + index, (lane->count - index) * sizeof(*lane->spans));
	lane->spans[index] = (struct lane_span){ start, end };
	lane->count++;
}

/* False: something lies there. */
static bool lane_take(struct lane *lane, __u64 start, __u64 end, size_t *budget)
{
	unsigned int index = find(lane, start);
	bool touches_former, touches_next;

	if (start < lane->floor || (index < lane->count && lane->spans[index].start < end))
		return false;
	touches_former = index && lane->spans[index - 1].end == start;
	touches_next = index < lane->count && lane->spans[index].start == end;
	if (touches_former && touches_next) {
		lane->spans[index - 1].end = lane->spans[index].end;
		lane->count--;
		memmove(lane->spans + index, lane->spans + index + 1, (lane->count - index) * sizeof(*lane->spans));
	} else if (touches_former) {
		lane->spans[index - 1].end = end;
	} else if (touches_next) {
		lane->spans[index].start = start;
	} else {
		insert(lane, start, end, budget);
	}
	return true;
}

int lanes_take(struct lanes *lanes, __u64 start, __u64 end, size_t *budget)
{
	unsigned int i;

	/* One without length takes a moment, too: two of them at once would lie in each other. */
	if (end <= start)
		end = start + 1;
	for (i = 0; i < lanes->count; i++)
		if (lane_take(&lanes->lane[i], start, end, budget))
			return (int)i;
	if (lanes->count == CHROME_LANES_MAX)
		return -1;
	lane_take(&lanes->lane[lanes->count], start, end, budget);
	return (int)lanes->count++;
}

void lanes_free(struct lanes *lanes, size_t *budget)
{
	unsigned int i;

	for (i = 0; i < lanes->count; i++) {
		*budget -= lanes->lane[i].room;
		free(lanes->lane[i].spans);
	}
	*lanes = (struct lanes){ 0 };
}
