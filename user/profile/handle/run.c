/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "profile/handle/state.h"

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
		draft_free(report);
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
	run->inside = options->type == XPT_PROFILE_TRACE &&
		      (options->stream ? choices_have_regions(&handle->choices) : choice_is_region(&options->program));
	if (options->type == XPT_PROFILE_TRACE)
		run->trace = trace_create(take_wanted, run, run_takes_regions(run));
	if (!run->trace && options->type == XPT_PROFILE_TRACE) {
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
		draft_free(report);
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
	const struct draft_request request = { .type = options->type,
					       .sample_every = options->stream ? options->sample_every : 1,
					       .samples = options->stream ? 0 : options->samples };

	report->view.sequence = run->sequence++;
	report->view.end_reason = last ? run->reason : XPT_PROFILE_INTERVAL;
	if (run->reason == XPT_PROFILE_STOPPED && !options->stream && !run->count) {
		draft_free(report);
		return;
	}
	if (draft_finish(report, &request, profiling->names, &profiling->options)) {
		log_error(profiling->options.log, "a report of %s is left out: no memory",
			  *options->name ? options->name : "a profiling handle");
		draft_free(report);
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
