/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/state.h"

/* The program's row in the report; NULL: no memory. */
static struct row *row_get(struct member *member, struct report *report)
{
	const struct entry *entry = member->entry;

	if (member->serial == report->serial)
		return member->row;
	member->row = draft_row(report, entry->identity);
	member->serial = member->row ? report->serial : 0;
	if (member->row && entry->released && entry->released <= report->end)
		member->row->released = true;
	return member->row;
}

bool take_selects(const struct run *run, bool numbered, __u64 number)
{
	const struct handle_options *options = &run->handle->options;

	return !options->stream || options->sample_every == 1 || !numbered || number % options->sample_every == 0;
}

/* Sets run->sampled if it became a sample. */
static void put(struct run *run, struct report *report, struct row *row, const struct inference *inference)
{
	run->sampled = false;
	row->inferences++;
	if (!take_selects(run, inference->numbered, inference->sample.number))
		return;
	if (inference->unpaired) {
		row->lost++;
		return;
	}
	run->sampled = draft_sample(report, row, &inference->sample);
}

static void take_for_stream(struct member *member, const struct inference *inference)
{
	struct report *report = intervals_at(member->run, inference->end);
	struct row *row = report ? row_get(member, report) : NULL;

	if (!row) {
		if (report)
			log_out_of_memory(member->run->handle->profiling);
		return;
	}
	put(member->run, report, row, inference);
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

static void take_for_counted(struct member *member, const struct inference *inference)
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
	put(run, report, row, inference);
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

void take_inference(struct profiling *profiling, struct entry *entry, const struct inference *inference)
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
			take_for_stream(member, &copy);
		else
			take_for_counted(member, &copy);
	}
}

/*
 * What was left out or lost was never reported one by one. Where the kernel records more than a stream wants, for
 * another one, which of those lost it would have taken is not known: they all count as lost.
 */
void take_count(struct entry *entry, const struct event_count *count)
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

void take_release(struct profiling *profiling, struct entry *entry, __u64 time)
{
	struct member *member, *following;

	catalogue_release(&profiling->catalogue, entry, time, profiling->now);
	rates_forget(profiling, entry);
	link_for_each_safe(member, following, &entry->members, of_entry) {
		if (member->run->handle->options.stream)
			release_for_stream(member, time);
		else
			release_for_counted(member, time);
	}
}
