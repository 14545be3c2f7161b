/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "profile/handle/state.h"

/* ---- where the intervals of a stream end, and which of its open reports a time belongs to ---- */

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
	if (!link_alone(&run->reports) && !budget_has_room(&run->handle->profiling->budget)) {
		report = link_last(&run->reports, struct report, link);
		report->read = 0;
		interval_place(run, report, end);
		return true;
	}
	report = report_create(&run->handle->profiling->budget, options->name);
	if (!report)
		return false;
	report->serial = ++run->serial;
	report->traced = options->type != XPT_PROFILE_LATENCY;
	report->packets = options->type == XPT_PROFILE_PERFETTO ? run->handle->profiling->options.info : NULL;
	report->rows_wanted = !report->traced && !options->summary;
	report->start = run->edge;
	report->start_realtime = start_realtime(run);
	interval_place(run, report, end);
	link_append(&run->reports, &report->link);
	return true;
}

/* Makes all intervals that begin before time. */
static void intervals_advance(struct run *run, __u64 time)
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

/* The clock may have been set: revises the end of the newest interval. */
static void intervals_revise(struct run *run, __u64 time, __s64 offset)
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

/* Ends the newest interval at time. */
static void intervals_cut(struct run *run, __u64 time)
{
	struct report *last;

	intervals_advance(run, time);
	last = newest(run);
	/* The time of the stop may be earlier than that of events that came in since. */
	while (last && last->start >= time && !last->row_count && last->link.previous != &run->reports) {
		if (run->recent == last)
			run->recent = NULL;
		report_free(last);
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

/* ---- runs ---- */

/* The first interval ends at the next boundary, however near that is. */
static __u64 first_length(const struct handle_options *options, __u64 now, __s64 offset)
{
	__s64 past = (__s64)(now + (__u64)offset) % (__s64)options->report_every;

	return options->report_every - (__u64)(past < 0 ? past + (__s64)options->report_every : past);
}

int run_begin(struct run *run, __u64 time, __s64 offset)
{
	struct report *report, *following;
	const struct handle_options *options = &run->handle->options;

	if (run->ended)
		return 0;
	link_for_each_safe(report, following, &run->reports, link)
		report_free(report);
	run->recent = NULL;
	run->start = run->edge = time;
	run->from = time + (options->stream ? 0 : options->delay);
	run->offset = offset;
	run->first = options->stream ? first_length(options, time, offset) : 0;
	intervals_advance(run, time + 1);
	return link_alone(&run->reports) ? -ENOMEM : 0;
}

int run_create(struct handle *handle, __u64 now, __s64 offset, struct run **result)
{
	const struct handle_options *options = &handle->options;
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return -ENOMEM;
	link_init(&run->link);
	link_init(&run->members);
	link_init(&run->reports);
	run->handle = handle;
	run->baseline = NEVER;
	run->pending = true;
	run->inside = options->type != XPT_PROFILE_LATENCY &&
		      (options->stream ? choices_have_regions(&handle->choices) : choice_is_region(&options->program));
	if (options->type != XPT_PROFILE_LATENCY)
		run->trace = trace_create(trace_wants, run, run_takes_regions(run));
	if (!run->trace && options->type != XPT_PROFILE_LATENCY) {
		free(run);
		return -ENOMEM;
	}
	if (run_begin(run, now, offset)) {
		run_free(run);
		return -ENOMEM;
	}
	link_append(&handle->profiling->runs, &run->link);
	*result = run;
	return 0;
}

void run_free(struct run *run)
{
	struct member *member, *next_member;
	struct report *report, *next_report;

	link_for_each_safe(member, next_member, &run->members, of_run)
		member_free(member);
	link_for_each_safe(report, next_report, &run->reports, link)
		report_free(report);
	trace_free(run->trace);
	link_remove(&run->link);
	free(run);
}

void run_end(struct run *run, enum xpt_profile_end reason, __u64 time)
{
	struct report *report;

	if (run->handle->current == run)
		run->handle->current = NULL;
	run->reason = reason;
	if (run->handle->options.stream) {
		intervals_cut(run, time);
		time = run->edge;
	} else if (!link_alone(&run->reports)) {
		report = link_first(&run->reports, struct report, link);
		if (reason != XPT_PROFILE_STOPPED && time < report->latest)
			time = report->latest;
		report->end = time;
		report->end_realtime = time + (__u64)run->offset;
	}
	run->ended = true;
	run->end = time;
}

__u64 run_due(const struct run *run)
{
	__u64 due = run->pending && !run->read ? run->from : NEVER;
	const struct report *report;

	if (run->ended && !run->read && run->end < due)
		due = run->end;
	link_for_each(report, &run->reports, link) {
		if (report->read)
			continue;
		return report->end < due ? report->end : due;
	}
	return due;
}

/* What the run's programs did before the reading is known to be theirs or not. */
static void members_read(struct run *run, __u64 time)
{
	struct member *member, *following;

	run->pending = false;
	if (run->baseline == NEVER)
		run->baseline = time;
	link_for_each_safe(member, following, &run->members, of_run) {
		if (member->baseline == NEVER)
			member->baseline = time;
		if (!member->leaving)
			continue;
		member->leaving = false;
		member->until = time;
		run->handle->profiling->rates_stale = true;
	}
}

void run_read(struct run *run, __u64 time, __s64 offset)
{
	struct report *report, *following;

	if (time < run->start)
		return;
	if (run->pending && time >= run->from)
		members_read(run, time);
	if (run->handle->options.stream && !run->ended) {
		intervals_revise(run, time, offset);
		intervals_advance(run, time + 1);
	}
	link_for_each_safe(report, following, &run->reports, link) {
		if (!report->read && report->end <= time)
			report->read = time;
	}
	if (run->ended && !run->read && time >= run->end) {
		run->read = time;
		run->handle->profiling->rates_stale = true;
	}
}

static void report_close(struct run *run, struct report *report, bool last)
{
	struct profiling *profiling = run->handle->profiling;
	const struct handle_options *options = &run->handle->options;
	const struct report_request request = { .type = options->type,
						.sample_every = options->stream ? options->sample_every : 1,
						.samples = options->stream ? 0 : options->samples };

	report->view.sequence = run->sequence++;
	report->view.end_reason = last ? run->reason : XPT_PROFILE_INTERVAL;
	if (run->reason == XPT_PROFILE_STOPPED && !options->stream && !run->count) {
		report_free(report);
		return;
	}
	if (report_finish(report, &request, profiling->names, &profiling->options)) {
		log_warn(profiling->options.log, "a report of %s is left out: no memory",
			 *options->name ? options->name : "a profiling handle");
		report_free(report);
		return;
	}
	if (report->trace_lost)
		log_warn(profiling->options.log, "the trace of %s lacks %llu events: too many calls were open at once",
			 *options->name ? options->name : "a profiling handle", report->trace_lost);
	profiling->options.deliver(profiling->options.context, run->handle, report);
}

bool run_delivered(struct run *run, __u64 time)
{
	struct report *report, *following;

	link_for_each_safe(report, following, &run->reports, link) {
		if (!report->read || report->read > time)
			return false;
		link_remove(&report->link);
		run->recent = NULL;
		report_close(run, report, run->ended && link_alone(&run->reports));
	}
	return run->ended && run->read && run->read <= time;
}
