/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/state.h"

/* ---- what an event means to the runs that are for its program ---- */

/* The program's row in the report; NULL: no memory. */
static struct row *row_get(struct member *member, struct report *report)
{
	const struct entry *entry = member->entry;

	if (member->serial == report->serial)
		return member->row;
	member->row = report_row(report, entry->identity);
	member->serial = member->row ? report->serial : 0;
	if (member->row && entry->released && entry->released <= report->end)
		member->row->released = true;
	return member->row;
}

/* Is it one of those that the run samples? */
static bool run_selects(const struct run *run, bool numbered, __u64 number)
{
	const struct handle_options *options = &run->handle->options;

	return !options->stream || options->sample_every == 1 || !numbered || number % options->sample_every == 0;
}

/* Sets run->sampled if it became a sample. */
static void add_sample(struct run *run, struct report *report, struct row *row, const struct inference *inference)
{
	run->sampled = false;
	row->inferences++;
	if (!run_selects(run, inference->numbered, inference->sample.number))
		return;
	if (inference->unpaired) {
		row->lost++;
		return;
	}
	run->sampled = report_add_sample(report, row, &inference->sample);
}

static void accumulate_for_stream(struct member *member, const struct inference *inference)
{
	struct report *report = intervals_at(member->run, inference->end);
	struct row *row = report ? row_get(member, report) : NULL;

	if (!row) {
		if (report)
			log_out_of_memory(member->run->handle->profiling);
		return;
	}
	add_sample(member->run, report, row, inference);
	if (inference->end <= report->start)
		report->late += member->run->sampled;
	else if (report->latest < inference->end)
		report->latest = inference->end;
}

/* From here on the others are not of interest. */
static void bind(struct run *run, const struct entry *entry)
{
	struct member *member, *following;

	run->bound = entry->identity->id;
	link_for_each_safe(member, following, &run->members, of_run) {
		if (member->entry != entry)
			member_free(member);
	}
	run->handle->profiling->rates_stale = true;
}

static bool is_left_out(struct member *member, const struct inference *inference)
{
	struct run *run = member->run;

	if (run->ended && (run->reason == XPT_PROFILE_COMPLETE || inference->end > run->end))
		return true;
	if (run->bound && run->bound != member->entry->identity->id)
		return true;
	if (inference->start >= run->from)
		return false;
	member->ran |= inference->end > run->start;
	return true;
}

static void accumulate_for_counted(struct member *member, const struct inference *inference)
{
	struct run *run = member->run;
	const struct handle_options *options = &run->handle->options;
	struct report *report = link_alone(&run->reports) ? NULL : link_first(&run->reports, struct report, link);
	struct row *row;

	if (!report || is_left_out(member, inference))
		return;
	if (!run->bound)
		bind(run, member->entry);
	row = row_get(member, report);
	if (!row)
		return;
	if (run->skipped < options->skip) {
		row->skipped = ++run->skipped;
		return;
	}
	add_sample(run, report, row, inference);
	if (inference->unpaired)
		return;
	if (report->latest < inference->end)
		report->latest = inference->end;
	if (run->sampled && !run->first_taken)
		run->first_taken = inference->start;
	/* One that had no room counts, too: else the run would not end. */
	if (++run->count >= options->samples && !run->ended)
		run_end(run, XPT_PROFILE_COMPLETE, report->latest);
}

static void entry_count(struct entry *entry, const struct inference *inference)
{
	entry->active = true;
	if (inference->unpaired)
		return;
	entry->recorded++;
	entry->errors += inference->sample.failed;
	if (inference->unended)
		return;
	entry->timed++;
	entry->duration += (double)(inference->end - inference->start);
}

void accumulate_inference(struct profiling *profiling, struct entry *entry, const struct inference *inference)
{
	struct inference copy = *inference;
	struct member *member, *following;

	/* Its end is unknown: it belongs to where it was given up. */
	if (copy.unpaired || copy.unended)
		copy.end = profiling->now;
	if (!copy.numbered)
		copy.sample.number = entry->recorded;
	/* Of those that are left out nobody knows how many wait. */
	copy.sample.has_in_queue &= rates_are_full(profiling);
	entry_count(entry, &copy);
	link_for_each_safe(member, following, &entry->members, of_entry) {
		if (copy.end > member->until)
			continue;
		if (member->run->handle->options.stream)
			accumulate_for_stream(member, &copy);
		else
			accumulate_for_counted(member, &copy);
	}
}

/*
 * What was left out or lost was never reported one by one. Where the kernel records more than a stream wants, for
 * another one, which of those lost it would have taken is not known: they all count as lost.
 */
void accumulate_count(struct entry *entry, const struct event_count *count)
{
	__u64 amount = count->delta.left_out + count->delta.lost;
	struct report *report;
	struct member *member;
	struct row *row;

	entry->active |= count->delta.calls != 0;
	if (!amount)
		return;
	link_for_each(member, &entry->members, of_entry) {
		if (count->time > member->until || (member->baseline && count->time <= member->baseline))
			continue;
		if (!member->run->handle->options.stream && member->run->bound != entry->identity->id)
			continue;
		report = intervals_of_count(member->run, count);
		row = report ? row_get(member, report) : NULL;
		if (!row)
			continue;
		row->inferences += amount;
		row->lost += count->delta.lost;
	}
}

/* Is there another program that the run may still be bound to? */
static bool has_others(const struct run *run, const struct entry *entry)
{
	const struct member *member;

	link_for_each(member, &run->members, of_run)
		if (member->entry != entry && !member->entry->released)
			return true;
	return false;
}

static void release_for_stream(struct member *member, __u64 time)
{
	struct report *report = time > member->until ? NULL : intervals_at(member->run, time);
	struct row *row = report ? row_get(member, report) : NULL;

	if (row)
		row->released = true;
}

static void release_for_counted(struct member *member, __u64 time)
{
	struct run *run = member->run;
	struct row *row;

	if (run->ended || time <= run->start || link_alone(&run->reports))
		return;
	/* All that it did was left out by the delay, and nothing else is there to be waited for. */
	if (!run->bound && member->ran && !has_others(run, member->entry))
		bind(run, member->entry);
	if (run->bound != member->entry->identity->id)
		return;
	run_end(run, XPT_PROFILE_RELEASED, time);
	row = row_get(member, link_first(&run->reports, struct report, link));
	if (row)
		row->released = true;
}

void accumulate_release(struct profiling *profiling, struct entry *entry, __u64 time)
{
	struct member *member, *following;

	program_index_release(&profiling->programs, entry, time, profiling->now);
	rates_forget(profiling, entry);
	link_for_each_safe(member, following, &entry->members, of_entry) {
		if (member->run->handle->options.stream)
			release_for_stream(member, time);
		else
			release_for_counted(member, time);
	}
}

/* ---- events for the traces of runs ---- */

static const struct model_program *program_of(const struct event *event)
{
	switch (event->kind) {
	case EVENT_CALL:
		return event->call.program;
	case EVENT_INFERENCE:
		return event->inference.program;
	case EVENT_PROGRAM:
		return event->program.program;
	case EVENT_REGION:
		return event->region.program;
	default:
		return NULL;
	}
}

static struct member *member_of(const struct run *run, const struct event *event)
{
	const struct model_program *program = program_of(event);
	const struct entry *entry = program ? program_index_find(&run->handle->profiling->programs, program->id) : NULL;
	struct member *member = entry ? selection_find(entry, run) : NULL;

	if (!member || event_time(event) > member->until)
		return NULL;
	return run->bound && run->bound != program->id ? NULL : member;
}

/* It begins an inference, the end of which is reported later. */
static bool begins_inference(const struct event *event)
{
	return event->kind == EVENT_CALL && event->call.flow_out && !event->call.layer;
}

/* Inferences end in the order in which they began, or nearly so: those that a counted run will take are about these. */
static bool counted_wants_begin(const struct run *run, const struct event_call *call)
{
	const struct handle_options *options = &run->handle->options;

	return !run->ended && call->start >= run->from && run->enqueued > options->skip &&
	       run->enqueued <= options->skip + options->samples;
}

static bool call_wanted(const struct run *run, const struct event *event)
{
	const struct event_call *call = &event->call;

	switch (call->function->role) {
	case XPT_ROLE_PROGRAM_LOAD:
	case XPT_ROLE_PROGRAM_READY:
	case XPT_ROLE_PROGRAM_NAME:
	case XPT_ROLE_PROGRAM_UNLOAD:
		return true;
	case XPT_ROLE_ENQUEUE:
	case XPT_ROLE_LAUNCH:
		if (!begins_inference(event))
			return false;
		if (!run->handle->options.stream)
			return counted_wants_begin(run, call);
		return run_selects(run, call->numbered, call->number);
	default:
		return false;
	}
}

bool trace_wants(void *context, const struct event *event)
{
	const struct run *run = context;
	struct inference inference;

	if (inference_read(event, &inference))
		return run->sampled;
	if (!member_of(run, event))
		return false;
	if (event->kind == EVENT_CALL)
		return call_wanted(run, event);
	return event->kind == EVENT_PROGRAM;
}

static void accumulate_trace(struct run *run, const struct event *event, __u64 time)
{
	struct profiling *profiling = run->handle->profiling;
	struct report *report = intervals_at(run, time);
	struct trace_text *text = report ? report_trace(report, profiling->names) : NULL;
	__u64 lost = 0;

	if (begins_inference(event) && event->call.start >= run->from && member_of(run, event))
		run->enqueued++;
	if (trace_event(run->trace, event, text, &lost))
		log_out_of_memory(profiling);
	run->sampled = false;
	if (report)
		report->trace_lost += lost;
	if (text)
		report_trace_grown(report);
}

/* A job is emitted when the call that has submitted it is known, and belongs to the same document. */
static __u64 place_of(const struct profiling *profiling, const struct event *event, __u64 time)
{
	return time && event->kind != EVENT_JOB ? time : profiling->now;
}

void accumulate_traces(struct profiling *profiling, const struct event *event, __u64 time)
{
	struct run *run;

	link_for_each(run, &profiling->runs, link) {
		if (run->trace)
			accumulate_trace(run, event, place_of(profiling, event, time));
	}
}
