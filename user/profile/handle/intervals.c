/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the intervals of a stream end, and which of its open reports a time belongs to. */
#include "profile/handle/state.h"

/* Missed ones made at once: a collector that was stopped for long gets one long interval for the rest. */
#define INTERVALS_MISSED_MAX 4096
/* An offset that differs by less was measured at another moment; more: the clock has been set. */
#define OFFSET_TOLERANCE 1000000ll

static struct report *newest(const struct run *run)
{
	return link_alone(&run->reports) ? NULL : link_last(&run->reports, struct report, link);
}

/* The first multiple of every on the clock that is later than floor. */
static __u64 boundary_after(__u64 floor, __s64 offset, __u64 every)
{
	__s64 past = (__s64)(floor + (__u64)offset) % (__s64)every;

	return floor + every - (past < 0 ? past + (__s64)every : past);
}

/* An interval that begins at a boundary is at least half as long as it should be: clocks are set. */
static __u64 shortest(const struct run *run, __u64 start)
{
	__u64 half = run->handle->options.report_every / 2;

	if (start == run->start)
		return start + (run->first / 2 < half ? run->first / 2 : half);
	return start + half - 1;
}

static __u64 next_end(const struct run *run, __u64 time)
{
	__u64 every = run->handle->options.report_every, floor = shortest(run, run->edge);

	if (time > run->edge && (time - run->edge) / every > INTERVALS_MISSED_MAX)
		floor = time - INTERVALS_MISSED_MAX * every;
	return boundary_after(floor, run->offset, every);
}

static void interval_place(struct run *run, struct report *report, __u64 end)
{
	report->end = run->edge = end;
	report->end_realtime = run->edge_realtime = end + (__u64)run->offset;
}

/* An interval begins where the one before ended, also in CLOCK_REALTIME. */
static __u64 start_realtime(const struct run *run)
{
	__s64 difference = (__s64)(run->edge + (__u64)run->offset - run->edge_realtime);

	if (run->edge != run->start && difference < OFFSET_TOLERANCE && difference > -OFFSET_TOLERANCE)
		return run->edge_realtime;
	return run->edge + (__u64)run->offset;
}

/* False: no memory. */
static bool interval_make(struct run *run, __u64 end)
{
	const struct handle_options *options = &run->handle->options;
	struct report *report;

	/* Receivers don't keep up: the open report is extended, so that their number is bounded. */
	if (!link_alone(&run->reports) && !draft_room(&run->handle->profiling->budget)) {
		report = link_last(&run->reports, struct report, link);
		report->read = 0;
		interval_place(run, report, end);
		return true;
	}
	report = draft_create(&run->handle->profiling->budget, options->name);
	if (!report)
		return false;
	report->serial = ++run->serial;
	report->traced = options->type == XPT_PROFILE_TRACE;
	report->rows_wanted = !report->traced && !options->summary;
	report->start = run->edge;
	report->start_realtime = start_realtime(run);
	interval_place(run, report, end);
	link_append(&run->reports, &report->link);
	return true;
}

void intervals_advance(struct run *run, __u64 time)
{
	while (!run->ended && (run->edge < time || link_alone(&run->reports)))
		if (!interval_make(run, run->handle->options.stream ? next_end(run, time) : NEVER))
			return;
}

struct report *intervals_at(struct run *run, __u64 time)
{
	struct report *report = run->recent;
	struct link *link;

	if (time <= run->start || time > TIME_MAX || (run->ended && time > run->end))
		return NULL;
	if (report && time > report->start && time <= report->end)
		return report;
	intervals_advance(run, time);
	if (link_alone(&run->reports))
		return NULL;
	for (link = run->reports.previous; link != run->reports.next; link = link->previous)
		if (time > container_of(link, struct report, link)->start)
			break;
	run->recent = container_of(link, struct report, link);
	return run->recent;
}

/*
 * A reading closes what has ended before it: what was counted since the reading before is added to the newest of that,
 * not to the time of the reading.
 */
struct report *intervals_of_count(struct run *run, const struct event_count *count)
{
	__u64 time = count->time;
	struct report *report;
	struct link *link;

	for (link = run->reports.previous; count->reading && link != &run->reports; link = link->previous) {
		report = container_of(link, struct report, link);
		if (report->end <= time && (!report->read || report->read >= time))
			return report;
	}
	if (run->ended && time > run->end) {
		if (run->read && time > run->read)
			return NULL;
		time = run->end;
	}
	return intervals_at(run, time);
}

void intervals_revise(struct run *run, __u64 time, __s64 offset)
{
	struct report *last = newest(run);
	__u64 floor, end;
	__s64 difference;

	run->offset = offset;
	if (!last || last->end <= time)
		return;
	floor = shortest(run, last->start);
	if (floor < time)
		floor = time;
	if (floor < last->latest)
		floor = last->latest;
	end = boundary_after(floor, offset, run->handle->options.report_every);
	difference = (__s64)(end - last->end);
	if (difference > OFFSET_TOLERANCE || difference < -OFFSET_TOLERANCE)
		interval_place(run, last, end);
}

void intervals_cut(struct run *run, __u64 time)
{
	struct report *last;

	intervals_advance(run, time);
	last = newest(run);
	/* The time of the stop may be earlier than that of events that came in since. */
	while (last && last->start >= time && !last->row_count && last->link.previous != &run->reports) {
		if (run->recent == last)
			run->recent = NULL;
		draft_free(last);
		last = newest(run);
	}
	if (!last)
		return;
	if (time < last->start)
		time = last->start;
	if (time < last->latest)
		time = last->latest;
	interval_place(run, last, time);
	last->read = 0;
}
