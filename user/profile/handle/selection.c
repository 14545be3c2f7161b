/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "profile/handle/state.h"

bool selection_wants(struct handle *handle, const struct entry *entry)
{
	if (!handle->options.stream)
		return choice_fits(&handle->options.program, entry->identity);
	switch (choices_decide(&handle->choices, entry->identity)) {
	case CHOICE_ADDED:
		return true;
	case CHOICE_REMOVED:
		return false;
	default:
		return handle->expression && !(handle->everything && entry->region) &&
		       expression_fits(handle->expression, handle->profiling->options.log, entry->identity->name);
	}
}

struct member *selection_find(const struct entry *entry, const struct run *run)
{
	struct member *member;

	link_for_each(member, &entry->members, of_entry) {
		if (member->run == run)
			return member;
	}
	return NULL;
}

void member_free(struct member *member)
{
	link_remove(&member->of_entry);
	link_remove(&member->of_run);
	free(member);
}

void member_rename(struct member *member)
{
	if (!member->serial || member->serial != member->run->serial || !member->row->identity)
		return;
	identity_put(member->row->identity);
	member->row->identity = identity_get(member->entry->identity);
}

/* Everything that the program ever did was after the start. */
static bool is_born_in(const struct run *run, const struct entry *entry)
{
	return entry->loaded && entry->loaded >= run->from;
}

static void member_add(struct run *run, struct entry *entry, bool fresh)
{
	struct member *member = calloc(1, sizeof(*member));

	if (!member) {
		log_warn(run->handle->profiling->options.log, "a program is left out: no memory");
		return;
	}
	member->run = run;
	member->entry = entry;
	member->until = NEVER;
	if (fresh && is_born_in(run, entry))
		member->baseline = 0;
	else
		/* One that is known since a reading only has counted nothing before it. */
		member->baseline = fresh ? run->baseline : NEVER;
	run->pending |= member->baseline == NEVER;
	if (run->trace && entry->region && !run->inside)
		run->inside = run->handle->profiling->rates_stale = true;
	link_append(&entry->members, &member->of_entry);
	link_append(&run->members, &member->of_run);
}

static void member_return(struct member *member)
{
	if (member->until != NEVER) {
		member->baseline = NEVER;
		member->run->pending = true;
	}
	member->leaving = false;
	member->until = NEVER;
}

/* It stays until the counts of what it did so far have been read. */
static void member_leave(struct member *member)
{
	if (member->until != NEVER)
		return;
	member->leaving = true;
	member->run->pending = true;
}

static void select_one(struct run *run, struct entry *entry, bool fresh)
{
	struct member *member = selection_find(entry, run);
	bool wanted;

	/*
	 * What has ended keeps what it had: the choices may be those of the next run. But events from before that may
	 * have more programs.
	 */
	if ((member && run->ended) || (run->bound && run->bound != entry->identity->id))
		return;
	wanted = run->bound || selection_wants(run->handle, entry);
	if (member && wanted)
		member_return(member);
	else if (member)
		member_leave(member);
	else if (wanted)
		member_add(run, entry, fresh);
}

void selection_enter(struct profiling *profiling, struct entry *entry, bool fresh)
{
	struct run *run;

	link_for_each(run, &profiling->runs, link)
		select_one(run, entry, fresh);
}

void selection_refresh(struct profiling *profiling, struct run *run)
{
	struct entry *entry;

	link_for_each(entry, &profiling->catalogue.alive, link)
		select_one(run, entry, false);
	profiling->rates_stale = true;
}

void selection_born(struct entry *entry)
{
	struct member *member;

	link_for_each(member, &entry->members, of_entry) {
		if (member->baseline == NEVER && is_born_in(member->run, entry))
			member->baseline = 0;
	}
}
