/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/parts.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 8
#define WHOLE 10000u /* hundredths of a percent */

/* ---- the track of a job ---- */

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

enum { MOST_WAITING, FEWEST_WAITING, MOST_RUNNING, FEWEST_RUNNING };

/* ---- how many jobs it has ---- */

static void note_extremes(struct queue_depth *depth)
{
	struct depth_extreme *extreme = depth->extreme;
	unsigned int waiting = depth->last.point.waiting, running = depth->last.point.running;
	bool first = depth->changes == 1;

	if (first || waiting > extreme[MOST_WAITING].point.waiting)
		extreme[MOST_WAITING] = depth->last;
	if (first || waiting < extreme[FEWEST_WAITING].point.waiting)
		extreme[FEWEST_WAITING] = depth->last;
	if (first || running > extreme[MOST_RUNNING].point.running)
		extreme[MOST_RUNNING] = depth->last;
	if (first || running < extreme[FEWEST_RUNNING].point.running)
		extreme[FEWEST_RUNNING] = depth->last;
}

/* The first one with a later order than this; NULL: none. */
static const struct depth_extreme *next_after(const struct queue_depth *depth, unsigned int order)
{
	const struct depth_extreme *next = depth->last.order > order ? &depth->last : NULL;
	size_t i;

	for (i = 0; i < DEPTH_EXTREMES; i++)
		if (depth->extreme[i].order > order && next && depth->extreme[i].order < next->order)
			next = &depth->extreme[i];
	return next;
}

size_t queue_depth_end(struct queue_depth *depth, struct depth_point points[DEPTH_POINTS_MAX])
{
	const struct depth_extreme *next;
	size_t count = 0;

	if (!depth->changes)
		return 0;
	for (next = next_after(depth, 0); next; next = next_after(depth, next->order)) {
		if (next->point.waiting == depth->shown.waiting && next->point.running == depth->shown.running)
			continue;
		depth->shown = points[count++] = next->point;
	}
	depth->changes = 0;
	return count;
}

size_t queue_depth_add(struct queue_depth *depth, struct depth_point point, struct depth_point points[DEPTH_POINTS_MAX])
{
	size_t count = 0;

	/* A time before the step comes late: it is emitted as it is, and viewers put it where it belongs. */
	if (depth->begun && point.time >= depth->step && point.time - depth->step < DEPTH_STEP) {
		depth->last = (struct depth_extreme){ point, ++depth->changes };
		note_extremes(depth);
		return 0;
	}
	count = queue_depth_end(depth, points);
	depth->begun = true;
	depth->step = point.time;
	depth->shown = points[count++] = point;
	return count;
}

/* ---- how busy it is ---- */

static size_t emit(struct queue_busy *busy, struct busy_point *points, __u64 time, unsigned int share)
{
	if (busy->any && busy->share == share)
		return 0;
	busy->any = true;
	busy->share = share;
	*points = (struct busy_point){ time, share };
	return 1;
}

static unsigned int share_of(__u64 part, __u64 whole)
{
	unsigned __int128 share = ((unsigned __int128)part * WHOLE + whole / 2) / whole;

	return share < WHOLE ? (unsigned int)share : WHOLE;
}

/* What of it lies in a part of the length. */
static __u64 part_of(__u64 amount, __u64 part, __u64 length)
{
	return (__u64)((unsigned __int128)amount * part / length);
}

size_t queue_busy_add(struct queue_busy *busy, __u64 time, __u64 total, struct busy_point points[BUSY_POINTS_MAX])
{
	__u64 length = time - busy->time, added = total - busy->total, rest, whole;
	size_t count = 0;

	if (!busy->begun) {
		*busy = (struct queue_busy){ .begun = true, .window = time, .time = time, .total = total };
		return 0;
	}
	if (time <= busy->time || total < busy->total)
		return 0; /* out of order: the next one has its share, too */
	if (added > length)
		added = length;
	busy->time = time;
	busy->total = total;
	if (time - busy->window < BUSY_WINDOW) {
		busy->busy += added;
		return 0;
	}
	rest = busy->window + BUSY_WINDOW - (time - length);
	count += emit(busy, points + count, busy->window,
		      share_of(busy->busy + part_of(added, rest, length), BUSY_WINDOW));
	busy->window += BUSY_WINDOW;
	whole = (time - busy->window) / BUSY_WINDOW;
	if (whole)
		count += emit(busy, points + count, busy->window, share_of(added, length));
	busy->window += whole * BUSY_WINDOW;
	busy->busy = part_of(added, time - busy->window, length);
	return count;
}

size_t queue_busy_end(struct queue_busy *busy, bool idle, struct busy_point points[BUSY_POINTS_MAX])
{
	__u64 length = busy->time - busy->window;
	size_t count = 0;

	if (busy->begun && length)
		count += emit(busy, points, busy->window, share_of(busy->busy, length));
	if (idle && busy->any)
		count += emit(busy, points + count, busy->time, 0);
	return count;
}

size_t queue_busy_pause(struct queue_busy *busy, struct busy_point points[BUSY_POINTS_MAX])
{
	size_t count = queue_busy_end(busy, true, points);

	busy->begun = false;
	return count;
}
