/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/queue_points.h"

#define WHOLE 10000u /* hundredths of a percent */

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

/* The next one after so many changes of the step; NULL: none. */
static const struct depth_extreme *next_after(const struct queue_depth *depth, unsigned int order)
{
	const struct depth_extreme *next = depth->last.order > order ? &depth->last : NULL;
	size_t i;

	for (i = 0; i < DEPTH_EXTREMES; i++)
		if (depth->extreme[i].order > order && next && depth->extreme[i].order < next->order)
			next = &depth->extreme[i];
	return next;
}

size_t queue_depth_end(struct queue_depth *depth, struct depth_point told[DEPTH_POINTS_MAX])
{
	const struct depth_extreme *next;
	size_t count = 0;

	if (!depth->changes)
		return 0;
	for (next = next_after(depth, 0); next; next = next_after(depth, next->order)) {
		if (next->point.waiting == depth->told.waiting && next->point.running == depth->told.running)
			continue;
		depth->told = told[count++] = next->point;
	}
	depth->changes = 0;
	return count;
}

size_t queue_depth_add(struct queue_depth *depth, struct depth_point point, struct depth_point told[DEPTH_POINTS_MAX])
{
	size_t count = 0;

	/* A time before the step comes late: it is emitted as it is, and viewers put it where it belongs. */
	if (depth->begun && point.time >= depth->step && point.time - depth->step < DEPTH_STEP) {
		depth->last = (struct depth_extreme){ point, ++depth->changes };
		note_extremes(depth);
		return 0;
	}
	count = queue_depth_end(depth, told);
	depth->begun = true;
	depth->step = point.time;
	depth->told = told[count++] = point;
	return count;
}

/* ---- how busy it is ---- */

static size_t tell(struct queue_busy *busy, struct busy_point *told, __u64 time, unsigned int share)
{
	if (busy->any && busy->share == share)
		return 0;
	busy->any = true;
	busy->share = share;
	*told = (struct busy_point){ time, share };
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

size_t queue_busy_add(struct queue_busy *busy, __u64 time, __u64 total, struct busy_point told[BUSY_POINTS_MAX])
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
	count += tell(busy, told + count, busy->window,
		      share_of(busy->busy + part_of(added, rest, length), BUSY_WINDOW));
	busy->window += BUSY_WINDOW;
	whole = (time - busy->window) / BUSY_WINDOW;
	if (whole)
		count += tell(busy, told + count, busy->window, share_of(added, length));
	busy->window += whole * BUSY_WINDOW;
	busy->busy = part_of(added, time - busy->window, length);
	return count;
}

size_t queue_busy_end(struct queue_busy *busy, bool idle, struct busy_point told[BUSY_POINTS_MAX])
{
	__u64 length = busy->time - busy->window;
	size_t count = 0;

	if (busy->begun && length)
		count += tell(busy, told, busy->window, share_of(busy->busy, length));
	if (idle && busy->any)
		count += tell(busy, told + count, busy->time, 0);
	return count;
}

size_t queue_busy_pause(struct queue_busy *busy, struct busy_point told[BUSY_POINTS_MAX])
{
	size_t count = queue_busy_end(busy, true, told);

	busy->begun = false;
	return count;
}
